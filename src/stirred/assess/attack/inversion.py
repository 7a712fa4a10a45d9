"""Invert a swap whose rate is known: compute the probability that each record is where it is shown."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.risk import AttackResult, Baseline, RiskMeasure, name_measure, wilson_interval
from stirred.census import Census
from stirred.errors import InputError
from stirred.frames import collect_frame
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.registry import rebuild_mechanism
from stirred.mechanisms.release import Exchange, Release, require_schema, scan_records, takes_part
from stirred.spec.invariants import pluralize

# Where a record truly is, given where a swap shows it: Bayes on the law of one record.
#
# In a stratum of n records, $n_t$ of which are shown at t, a record at t stays with chance $1 - q(n-n_t)/(n-1)$ and
# one from elsewhere comes to t with chance $q n_t/(n-1)$. All data sets of the universe being equally likely, the
# chance that a record shown at t is truly there is the former, also for records that share all they hold: given the
# release, the permutation has the law it had before.

STAY, COME, PRIOR, POSTERIOR, BEST = "stay", "come", "prior", "posterior", "best_guess"


def _group_size(*by: str) -> pl.Expr:
    return pl.len().over(list(by)) if by else pl.len()


def posterior_places(units: pl.DataFrame, law: Exchange, *, given: Sequence[str] = ()) -> pl.DataFrame:
    """Return the released records with the chance that each is in place, before and after the release.

    The prior takes the margins of the stratum, which are exact; with ``given`` it takes how the other records with these
    values are spread in the stratum, from the release's own table without its shrinkage, and one record's worth of the
    margins.

    >>> law = Exchange(record_type="h", match=(), moving=("t",), selected=lambda n: np.full(np.shape(n), 0.3))
    >>> posterior_places(pl.DataFrame({"t": ["a", "b", "b", "b"]}), law)["posterior"].round(4).to_list()
    [0.7, 0.9, 0.9, 0.9]
    """
    match, place = [*law.match], [*law.moving]
    frame = _add_sizes(units, match, place)
    frame = frame.with_columns(pl.Series("q", law.find_moved(units)))
    others = pl.max_horizontal(pl.col("n") - 1, 1)
    frame = frame.with_columns(
        (1 - pl.col("q") * (pl.col("n") - pl.col("n_t")) / others).alias(STAY),
        (pl.col("q") * pl.col("n_t") / others).alias(COME),
        (pl.col("n_t") / pl.col("n")).alias(PRIOR),
        # the best guess: where it is shown, or the largest other place
        (pl.col("q") * pl.col("n_other") / others).alias("elsewhere"),
    )
    if given:
        frame = frame.with_columns(_share_at_place(match, place, [*given]).alias(PRIOR))
    here, away = pl.col(PRIOR) * pl.col(STAY), (1 - pl.col(PRIOR)) * pl.col(COME)
    frame = frame.with_columns((here / (here + away)).fill_nan(1.0).alias(POSTERIOR))
    best = pl.max_horizontal(POSTERIOR, "elsewhere") if not given else pl.col(POSTERIOR)
    return frame.with_columns(best.alias(BEST)).drop("elsewhere", "n_other")


def _add_sizes(units: pl.DataFrame, match: list[str], place: list[str]) -> pl.DataFrame:
    """Add n, n_t and the size of the largest other place."""
    if units.height == 0:
        raise InputError(
            "there is no record whose place could be inferred",
            why="the release has none that takes part in the swap",
            fix="attack a release that has records",
        )
    counts = units.group_by([*match, *place]).len("n_t")
    ranked = counts.sort("n_t", descending=True)
    over = [*match]
    first = pl.col("n_t").first().over(over) if over else pl.col("n_t").first()
    second = pl.col("n_t").slice(1, 1).sum().over(over) if over else pl.col("n_t").slice(1, 1).sum()
    total = pl.col("n_t").sum().over(over) if over else pl.col("n_t").sum()
    ranked = ranked.with_columns(total.alias("n"), first.alias("top"), second.alias("next"))
    ranked = ranked.with_columns(
        pl.when(pl.col("n_t") == pl.col("top")).then("next").otherwise("top").alias("n_other")
    )
    keep = [*match, *place, "n", "n_t", "n_other"]
    return units.join(
        ranked.select(pl.col(keep)), on=[*match, *place], how="left", maintain_order="left", nulls_equal=True
    ).with_columns(pl.col("n", "n_t", "n_other").cast(pl.Int64))


def _share_at_place(match: list[str], place: list[str], given: list[str]) -> pl.Expr:
    """Estimate the share of the other records with these values at the shown place, without shrinkage."""
    alike = _group_size(*match, *given).cast(pl.Int64) - 1  # the record itself is what is inferred
    here = _group_size(*match, *given, *place).cast(pl.Int64) - 1
    weight = pl.col("q") * pl.col("n") / pl.max_horizontal(pl.col("n") - 1, 1)
    even = alike * pl.col("n_t") / pl.col("n")
    shrunk = pl.when(weight < 1 - 1e-9).then((here - weight * even) / (1 - weight)).otherwise(even)
    return ((pl.max_horizontal(shrunk, 0.0) + pl.col("n_t") / pl.col("n")) / (alike + 1)).clip(0.0, 1.0)


# Where all records of a stratum truly are, guessed together: as many were at each place as are shown there.
#
# One record by itself is at s with a weight $w_s = \theta_s\, c(t \mid s)$: how records with its values are spread,
# times the chance that it is then shown at t. Guessed one by one, records crowd into the places that many of them like
# best, more than a place has. So the weights are scaled until every place has its known number of records (Sinkhorn),
# and the scaled weights are the chances. On small strata this finds nearly as many as listing all arrangements, and
# more than the likeliest arrangement alone does, because that one is only one of many.

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
    moved = law.find_moved(units)
    for start, end in pairwise(edges.tolist()):
        rows = order[start:end]
        found = _guess_stratum(place[rows], kind[rows], float(moved[rows].mean()))
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


# Undo a swap whose rate is known: the chance that each record is where it is shown, for households and for their people.

MAX_JOINT_RECORDS = 500_000  # records, for which each held variable is tried
CHANCE_BAND_EDGES = (0.0, 0.5, 0.9, 0.95, 0.99, 1.0)
IN_PLACE, BEST_GUESS = name_measure("in_place"), name_measure("best_guess")
BANDS, TOP_BAND = "posterior by band", f"{CHANCE_BAND_EDGES[-2]:g} to {CHANCE_BAND_EDGES[-1]:g}"
CERTAIN, ODDS, FOUND = name_measure("certain"), name_measure("odds"), name_measure("found_in_place")


def invert_swap(
    release: Release,
    census: Census | None = None,
    *,
    mechanism: Mechanism | None = None,
    given: Sequence[str] = (),
    records: bool = False,
) -> AttackResult:
    """Measure the best inversion of a swap with a known rate: who is in place, and how sure that is.

    All measures but one are computed from the release alone. With the ``census`` the one is added that says how many records
    that are unique on what is held were found in place. ``given`` are held variables from which the attacker's prior is
    estimated; ``records`` adds the table of all records with their chances.
    """
    law = (mechanism or rebuild_mechanism(release)).exchange(release)
    if law is None:
        reason = f"{release.mechanism} has no law of places that is public and in closed form"
        return AttackResult(
            measures=(
                RiskMeasure(
                    name=IN_PLACE, about="records", kind="absolute", value=None, unit="share", reason=reason
                ),
            )
        )
    alone = census is None and not given and not records and law.moved is None
    units = _units(release, law, whole=not alone)
    found = posterior_places(units, law, given=given).with_columns(_people(release, law, units))
    if given:  # guessed together, records do not crowd into places that they like best
        joint = guess_joint_places(units, law, given=given)[JOINT]
        found = found.with_columns(pl.coalesce(joint, pl.col(BEST)).alias(BEST))
    about = pluralize(law.record_type)
    likely = found.filter(pl.col(POSTERIOR) >= 0.95).height / found.height
    guess = Baseline(name="a guess by the prior", value=_mean(found, PRIOR))
    measures = [
        _public_measure(IN_PLACE, about, _mean(found, POSTERIOR), guess),
        _public_measure(
            name_measure("in_place_people"),
            "people of these records",
            _weighted_mean(found, POSTERIOR),
            guess,
        ),
        _public_measure(BEST_GUESS, about, _mean(found, BEST), guess),
        _public_measure(CERTAIN, about, likely),
        _measure_odds(found, about),
    ]
    if census is not None and not given:
        measures += _guess_jointly(release, law, units, mechanism)
    tables = {
        BANDS: count_by_band(found),
        "posterior by size of the stratum": count_by_size(found),
    }
    if census is not None:
        measures.append(_measure_in_place(census, law, found))
    if records:
        tables["posterior of records"] = found.drop(STAY, COME)
    return AttackResult(measures=tuple(measures), tables=tables)


def _guess_jointly(
    release: Release, law: Exchange, units: pl.DataFrame, mechanism: Mechanism | None
) -> list[RiskMeasure]:
    """Repeat the guess for all records of a stratum together, with the most informative held variable."""
    if units.height > MAX_JOINT_RECORDS:
        return []
    record = require_schema(release).record(law.record_type)
    other = {record.id, record.household, *law.match, *law.moving, *require_schema(release).spine}
    name = choose_held_variable(units, law, [column for column in units.columns if column not in other])
    if not name:
        return []
    found = invert_swap(release, mechanism=mechanism, given=[name]).measure(BEST_GUESS)
    return [replace(found, name=name_measure("best_together", variable=name))]


def _units(release: Release, law: Exchange, *, whole: bool = True) -> pl.DataFrame:
    """Return the records that take part; without ``whole`` only what their places are inferred from, text as numbers."""
    frame = scan_records(release.microdata[law.record_type])
    record = require_schema(release).record(law.record_type)
    there = frame.collect_schema().names()
    taking = frame.filter(takes_part(record.kinds, there))
    if not whole:
        needed = {record.id, *law.match, *law.moving}
        taking = taking.select(name for name in there if name in needed)
        taking = taking.with_columns(pl.col(pl.String).cast(pl.Categorical))
    return collect_frame(taking)


def _people(release: Release, law: Exchange, units: pl.DataFrame) -> pl.Series:
    """Return how many people each record stands for: those linked to it, or 1."""
    record = require_schema(release).record(law.record_type)
    for other in require_schema(release).records:
        if (
            other.linked_to == law.record_type
            and other.name in release.microdata
            and record.id in units.columns
        ):
            many = collect_frame(
                scan_records(release.microdata[other.name]).group_by(other.household).len("people")
            )
            linked = units.select(pl.col(record.id)).join(
                many, left_on=record.id, right_on=other.household, how="left", maintain_order="left"
            )
            return linked["people"].fill_null(0).cast(pl.Int64).alias("people")
    return pl.Series("people", [1] * units.height, pl.Int64)


def count_by_band(found: pl.DataFrame) -> pl.DataFrame:
    """Count records and people by their chance to be in place, and how many of them to expect there."""
    band = pl.lit(TOP_BAND)
    for low, high in reversed([*pairwise(CHANCE_BAND_EDGES)][:-1]):
        band = pl.when(pl.col(POSTERIOR) < high).then(pl.lit(f"{low:g} to {high:g}")).otherwise(band)
    return (
        found.with_columns(band.alias("chance"))
        .group_by("chance")
        .agg(
            pl.len().alias("records"),
            pl.col("people").sum(),
            pl.col(POSTERIOR).sum().alias("records_in_place"),
            (pl.col(POSTERIOR) * pl.col("people")).sum().alias("people_in_place"),
        )
        .sort("chance")
    )


def count_by_size(found: pl.DataFrame) -> pl.DataFrame:
    """Count records in place by the size of their stratum, in powers of two."""
    size = (2 ** pl.col("n").log(2).floor()).cast(pl.Int64)
    return (
        found.group_by(size.alias("stratum_of_at_least"))
        .agg(
            pl.len().alias("records"),
            pl.col("people").sum(),
            pl.col(POSTERIOR).mean().alias("mean_chance"),
            pl.col(POSTERIOR).min().alias("smallest_chance"),
            pl.col(PRIOR).mean().alias("mean_prior"),
        )
        .sort("stratum_of_at_least")
    )


def _measure_in_place(census: Census, law: Exchange, found: pl.DataFrame) -> RiskMeasure:
    """Measure how many records that are unique in their stratum are at their own place."""
    record = census.schema.record(law.record_type)
    columns = [
        n
        for n in found.columns
        if n in census.columns(law.record_type) and n not in (record.id, record.household)
    ]
    held = [name for name in columns if name not in law.moving]
    truth = census.scan(law.record_type, [*columns, *([record.kinds.column] if record.kinds else [])])
    truth = truth.filter(takes_part(record.kinds, truth.collect_schema().names())).select(columns)
    first = _select_unique(collect_frame(truth), held)
    second = _select_unique(found.select(*columns, POSTERIOR, PRIOR), held)
    both = first.join(second, on=held, nulls_equal=True, suffix="_shown")
    about = f"{pluralize(law.record_type)} that are unique in their stratum on what is held"
    if not both.height:
        return RiskMeasure(
            name=FOUND,
            about=about,
            kind="absolute",
            value=None,
            unit="share",
            reason="no record is unique there",
        )
    same = pl.all_horizontal(pl.col(n).eq_missing(pl.col(f"{n}_shown")) for n in law.moving)
    hits = int(both.select(same.sum()).item())
    low, high = wilson_interval(hits, both.height)
    return RiskMeasure(
        name=FOUND,
        about=about,
        kind="absolute",
        value=hits / both.height,
        low=low,
        high=high,
        unit="share",
        baselines=(
            Baseline(name="expected from the rate alone", value=_mean(both, POSTERIOR)),
            Baseline(name="a guess by the prior", value=_mean(both, PRIOR)),
        ),
    )


def _select_unique(frame: pl.DataFrame, held: list[str]) -> pl.DataFrame:
    """Return the records with unique held values, as texts, because two files may code a value differently."""
    plain = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return plain.filter(pl.len().over(held) == 1) if held else plain.head(0)


def _measure_odds(found: pl.DataFrame, about: str) -> RiskMeasure:
    """Measure the log factor by which seeing a record at a place moves the odds of that place against another."""
    moved = found.filter(pl.col(COME) > 0)
    largest = float(moved.select((pl.col(STAY) / pl.col(COME)).log().max()).item()) if moved.height else None
    return RiskMeasure(
        name=ODDS,
        about=about,
        kind="relative",
        value=largest,
        unit="epsilon",
        public=True,
        reason="two records exchange places in it: at most twice the budget per record"
        if largest is not None
        else "no record can move",
    )


def _public_measure(name: str, about: str, value: float, *baselines: Baseline) -> RiskMeasure:
    return RiskMeasure(
        name=name, about=about, kind="absolute", value=value, unit="share", public=True, baselines=baselines
    )


def _mean(frame: pl.DataFrame, column: str) -> float:
    return float(frame.select(pl.col(column).mean()).item())


def _weighted_mean(frame: pl.DataFrame, column: str) -> float:
    total = int(frame["people"].sum())
    return float((frame[column] * frame["people"]).sum()) / total if total else _mean(frame, column)
