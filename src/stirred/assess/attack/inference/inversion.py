"""Undo a swap whose rate is known: the chance that each record is where it is shown, for households and for their people."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import polars as pl

from stirred.assess.attack.inference.assignment import JOINT, choose_held_variable, guess_joint_places
from stirred.assess.attack.inference.places import BEST, COME, POSTERIOR, PRIOR, STAY, posterior_places
from stirred.assess.attack.linkage.intervals import wilson_interval
from stirred.assess.attack.result import AttackResult
from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.census import Census
from stirred.frames import collect_frame
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.participation import Exchange, takes_part
from stirred.mechanisms.registry import rebuild_mechanism
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import require_schema, scan_records
from stirred.spec.multiverse import pluralize

MAX_JOINT_RECORDS = 500_000  # records, for which each held variable is tried
CHANCE_BAND_EDGES = (0.0, 0.5, 0.9, 0.95, 0.99, 1.0)
IN_PLACE, BEST_GUESS = name_measure("in_place"), name_measure("best_guess")
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
    units = _units(release, law)
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
        "posterior by band": count_by_band(found),
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


def _units(release: Release, law: Exchange) -> pl.DataFrame:
    frame = scan_records(release.microdata[law.record_type])
    kinds = require_schema(release).record(law.record_type).kinds
    return collect_frame(frame.filter(takes_part(kinds, frame.collect_schema().names())))


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
    band = pl.lit(f"{CHANCE_BAND_EDGES[-2]:g} to {CHANCE_BAND_EDGES[-1]:g}")
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
