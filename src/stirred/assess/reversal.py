"""Measure how far held columns undo a swap: how well they predict the swapped variables on the released file alone.

Survey weights that are constant within an enumeration area, or a postcode that follows from the district, stay with
the household when its place is swapped. Most records are not swapped, so the released file shows which value belongs
to which place, and the swapped records can be put back. The measure uses nothing but the released file, so it is
post-processing: it costs no protection loss.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

LEVEL = 0.5  # of the way from chance to certainty: from here on a release is refused
CANDIDATES = 8  # columns from which sets of two are tried
PER_BIN = 10  # records of a bin, where numbers are tried in bins

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """How well some held columns predict the swapped variables: shares of records guessed right from all others."""

    columns: tuple[str, ...]
    guessed: float
    chance: float  # the same with the swapped variables permuted within strata

    @property
    def share(self) -> float:
        """How far the guesses are from chance (0) to certainty (1)."""
        return max(0.0, (self.guessed - self.chance) / (1 - self.chance)) if self.chance < 1 else 0.0

    def __str__(self) -> str:
        return (
            f"{' with '.join(self.columns)}: places the swap for {self.guessed:.1%} of records "
            f"(by chance {self.chance:.1%})"
        )


def reversals(
    released: pl.DataFrame, *, match: Sequence[str], swap: Sequence[str], held: Sequence[str]
) -> tuple[Reversal, ...]:
    """Every held column, and sets of two of the best ones, with what they predict; the best first.

    A record is guessed from all other records that have the same values in these columns, within its stratum and in
    the whole file: the most frequent place among them. What chance gives is measured in the same way after the
    places were permuted within strata.

    >>> released = pl.DataFrame({"area": ["a", "b"] * 20, "weight": [1.5, 2.5] * 20, "rooms": [1, 1, 2, 2] * 10})
    >>> for found in reversals(released, match=[], swap=["area"], held=["weight", "rooms"]):
    ...     print(found.columns, round(found.share, 1))
    ('weight',) 1.0
    ('weight', 'rooms') 1.0
    ('rooms',) 0.0
    """
    if not released.height or not swap or not held:
        return ()
    strata, places = _codes(released, match), _codes(released, swap)
    mixed = _permuted(places, strata)
    known = {name: _forms(released[name]) for name in held}
    singles = [_best((name,), known[name], strata, places, mixed) for name in held]
    singles.sort(key=lambda found: -found.share)
    tried = sorted((found.columns[0] for found in singles[:CANDIDATES]), key=list(held).index)
    pairs = [
        _best(
            pair,
            [_joined(one, other) for one, other in itertools.product(known[pair[0]], known[pair[1]])],
            strata,
            places,
            mixed,
        )
        for pair in itertools.combinations(tried, 2)
    ]
    return tuple(sorted([*singles, *pairs], key=lambda found: (-found.share, len(found.columns))))


def _forms(values: pl.Series) -> list[Codes]:
    """A column as codes; numbers with many values also in bins, because coordinates lie close without being equal."""
    found = [_codes(values.to_frame("value"), ["value"])]
    bins = max(2, round((values.len() / PER_BIN) ** 0.5))
    if values.dtype.is_numeric() and values.n_unique() > bins:
        found.append(
            (values.rank("ordinal").fill_null(0).to_numpy().astype(np.int64) * bins) // (values.len() + 1)
        )
    return found


def _best(
    columns: tuple[str, ...], forms: list[Codes], strata: Codes, places: Codes, mixed: Codes
) -> Reversal:
    found = [
        Reversal(columns=columns, guessed=_guessed(groups, places), chance=_guessed(groups, mixed))
        for form in forms
        for groups in (form, _joined(strata, form))
    ]
    return max(found, key=lambda one: one.share)


def _guessed(groups: Codes, places: Codes) -> float:
    """The share of records whose place is the most frequent one among the others of their group; ties count half."""
    counts = (
        pl.DataFrame({"group": groups, "place": places})
        .group_by("group", "place")
        .len("n")
        .group_by("group")
        .agg(
            first=pl.col("n").max().cast(pl.Int64),
            second=pl.col("n").top_k(2).min().cast(pl.Int64) * (pl.len() > 1),
        )
    )
    alone, second = counts["first"] - 1, counts["second"]
    right = (alone > second).cast(pl.Float64) + ((alone == second) & (alone > 0)).cast(pl.Float64) / 2
    return float((right * counts["first"]).sum()) / groups.size


def _codes(frame: pl.DataFrame, names: Sequence[str]) -> Codes:
    """One number for each combination of values."""
    if not names:
        return np.zeros(frame.height, np.int64)
    return frame.select(pl.struct(list(names)).rank("dense").cast(pl.Int64)).to_series().to_numpy()


def _joined(one: Codes, other: Codes) -> Codes:
    return one * (int(other.max(initial=0)) + 1) + other


def _permuted(places: Codes, strata: Codes) -> Codes:
    """The places permuted within strata; the permutation is fixed, so that a packet is the same when it is redone."""
    words = np.random.default_rng(1).random(places.size)
    source = np.lexsort((words, strata))
    target = np.argsort(strata, kind="stable")
    found = np.empty_like(places)
    found[target] = places[source]
    return found
