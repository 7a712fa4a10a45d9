r"""Where all records of a stratum truly are, guessed together: as many were at each place as are shown there.

One record by itself is at s with a weight $w_s = \theta_s\, c(t \mid s)$: how records with its values are spread, times the
chance that it is then shown at t. Guessed one by one, records crowd into the places that many of them like best, more than a
place has. So the weights are scaled until every place has its known number of records (Sinkhorn), and the scaled weights are
the chances. On small strata this finds nearly as many as listing all arrangements, and more than the likeliest arrangement
alone does, because that one is only one of many.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.inference.places import POSTERIOR, posterior_places
from stirred.mechanisms.participation import Exchange

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
JOINT, GUESSED, SHOWN = "joint_chance", "guessed_place", "shown_place"
MAX_SCALING_ROUNDS = 200  # of scaling, at most
SUM_TOLERANCE = 1e-6  # how far sums may be from those that are known, as a share
MAX_LEVELS = 100  # of a variable by which records are guessed
MAX_STRATUM_WEIGHTS = 4_000_000  # weights of one stratum; larger strata are guessed record by record


def guess_joint_places(units: pl.DataFrame, law: Exchange, *, given: Sequence[str]) -> pl.DataFrame:
    """Return the guessed and the shown place of each record by number, and the chance that the guess is right.

    ``given`` are held variables whose spread over places is the prior. The chance is null in strata that are too large.

    >>> law = Exchange(record_type="h", match=(), moving=("t",), selected=lambda n: np.full(np.shape(n), 0.4))
    >>> units = pl.DataFrame({"h": ["x", "x", "y", "y"], "t": ["a", "a", "b", "b"]})
    >>> guess_joint_places(units, law, given=["h"])["joint_chance"].round(2).to_list()
    [0.92, 0.92, 0.92, 0.92]
    """
    codes = units.select(
        _code(law.match).alias("stratum"), _code(law.moving).alias("place"), _code(given).alias("type")
    )
    stratum, place, kind = (codes[name].to_numpy().astype(np.int64) for name in codes.columns)
    guessed, chance = place.copy(), np.full(units.height, np.nan)
    order = np.argsort(stratum, kind="stable")
    edges = np.flatnonzero(np.diff(stratum[order], prepend=-1, append=-1))
    sizes = np.diff(edges)
    selected = dict(zip(np.unique(sizes).tolist(), law.selected(np.unique(sizes)), strict=True))
    for start, end in pairwise(edges.tolist()):
        rows = order[start:end]
        found = _guess_stratum(place[rows], kind[rows], float(selected[end - start]))
        if found is not None:
            guessed[rows], chance[rows] = found
    return pl.DataFrame({GUESSED: guessed, SHOWN: place, JOINT: chance}).with_columns(
        pl.col(JOINT).fill_nan(None)
    )


def choose_held_variable(units: pl.DataFrame, law: Exchange, held: Sequence[str]) -> str:
    """Return the held variable that finds most records where they are shown, or "" where none does.

    >>> law = Exchange(record_type="h", match=(), moving=("t",), selected=lambda n: np.full(np.shape(n), 0.4))
    >>> units = pl.DataFrame({"h": ["x", "x", "y", "y"] * 5, "k": ["u", "v"] * 10, "t": ["a", "a", "b", "b"] * 5})
    >>> choose_held_variable(units, law, ["h", "k"])
    'h'
    """
    best, found = posterior_places(units, law)[POSTERIOR].to_numpy().mean() + 1e-9, ""
    for name in held:
        if 2 <= units[name].n_unique() <= MAX_LEVELS:
            share = posterior_places(units, law, given=[name])[POSTERIOR].to_numpy().mean()
            best, found = (share, name) if share > best else (best, found)
    return found


def _code(names: Sequence[str]) -> pl.Expr:
    return pl.struct(list(names)).rank("dense").cast(pl.Int64) - 1 if names else pl.lit(0, pl.Int64)


def _guess_stratum(place: Integers, kind: Integers, q: float) -> tuple[Integers, Floats] | None:
    """Guess the place of each record of one stratum; return the places and their chances."""
    places, here = np.unique(place, return_inverse=True)
    kinds, own = np.unique(kind, return_inverse=True)
    classes, member, many = np.unique(own * places.size + here, return_inverse=True, return_counts=True)
    if classes.size * places.size > MAX_STRATUM_WEIGHTS:
        return None
    h, t = classes // places.size, classes % places.size
    table = np.zeros((kinds.size, places.size))
    np.add.at(table, (h, t), many)
    room = table.sum(axis=0)
    weights = _spread_others(table, room, h, t, q) * _chance_shown(room, t, q)
    chances = balance_weights(weights, many.astype(np.float64), room) / many[:, None]
    best = chances.argmax(axis=1)
    return places[best[member]], chances[np.arange(classes.size), best][member]


def _spread_others(table: Floats, room: Floats, h: Integers, t: Integers, q: float) -> Floats:
    """Return the spread of the other records of each type, without shrinkage, with one record of margins added."""
    n = room.sum()
    share = room / n
    alike = table.sum(axis=1)[h, None] - 1
    others = table[h].copy()
    others[np.arange(h.size), t] -= 1
    weight = q * n / max(n - 1, 1)
    even = alike * share
    shrunk = np.maximum((others - weight * even) / (1 - weight), 0.0) if weight < 1 - 1e-9 else even
    found: Floats = shrunk + share
    return found


def _chance_shown(room: Floats, t: Integers, q: float) -> Floats:
    """Return the chance to be shown at place t, by the true place."""
    n = room.sum()
    found: Floats = np.repeat((q * room[t] / max(n - 1, 1))[:, None], room.size, axis=1)
    found[np.arange(t.size), t] = 1 - q * (n - room[t]) / max(n - 1, 1)
    return found


def balance_weights(weights: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale weights by rows and by columns until both have these sums.

    >>> balance_weights(np.array([[1.0, 1.0], [3.0, 1.0]]), np.array([1.0, 1.0]), np.array([1.0, 1.0])).round(3).tolist()
    [[0.366, 0.634], [0.634, 0.366]]
    """
    found = weights.copy()
    for _ in range(MAX_SCALING_ROUNDS):
        found *= (rows / np.maximum(found.sum(axis=1), 1e-300))[:, None]
        sums = found.sum(axis=0)
        if (np.abs(sums - columns) <= SUM_TOLERANCE * columns).all():
            break
        found *= columns / np.maximum(sums, 1e-300)
    found *= (rows / np.maximum(found.sum(axis=1), 1e-300))[:, None]
    return found
