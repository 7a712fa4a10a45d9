"""Undo a swap whose rate is known: the chance that each record is where it is shown, for households and for their people."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import polars as pl

from stirred.assess.attack.inference.assignment import JOINT, joint_places, most_telling
from stirred.assess.attack.inference.places import BEST, COME, POSTERIOR, PRIOR, STAY, posterior_places
from stirred.assess.attack.linkage.intervals import wilson
from stirred.assess.attack.result import AttackResult
from stirred.assess.risk import Baseline, RiskMeasure, named
from stirred.census import Census
from stirred.frames import collected
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.participation import Exchange, takes_part
from stirred.mechanisms.registry import mechanism_of
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import lazy, schema_of
from stirred.spec.multiverse import plural

MOST_TOGETHER = 500_000  # records, for which each held variable is tried
BANDS = (0.0, 0.5, 0.9, 0.95, 0.99, 1.0)
IN_PLACE, BEST_GUESS = named("in_place"), named("best_guess")
CERTAIN, ODDS, FOUND = named("certain"), named("odds"), named("found_in_place")


def inversion(
    release: Release,
    census: Census | None = None,
    *,
    mechanism: Mechanism | None = None,
    given: Sequence[str] = (),
    records: bool = False,
) -> AttackResult:
    """The best undo of a swap with a known rate: who is where they are shown, and how sure an attacker can be of it.

    All measures but one are computed from the release alone. With the ``census`` the one is added that says how many records
    that are unique on what is held were found in place. ``given`` are held variables from which the attacker's prior is
    estimated; ``records`` adds the table of all records with their chances.
    """
    law = (mechanism or mechanism_of(release)).exchange(release)
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
        joint = joint_places(units, law, given=given)[JOINT]
        found = found.with_columns(pl.coalesce(joint, pl.col(BEST)).alias(BEST))
    about = plural(law.record_type)
    likely = found.filter(pl.col(POSTERIOR) >= 0.95).height / found.height
    guess = Baseline(name="a guess by the prior", value=_mean(found, PRIOR))
    measures = [
        _public(IN_PLACE, about, _mean(found, POSTERIOR), guess),
        _public(named("in_place_people"), "people of these records", _weighted(found, POSTERIOR), guess),
        _public(BEST_GUESS, about, _mean(found, BEST), guess),
        _public(CERTAIN, about, likely),
        _odds(found, about),
    ]
    if census is not None and not given:
        measures += _together(release, law, units, mechanism)
    tables = {"posterior by band": by_band(found), "posterior by size of the stratum": by_size(found)}
    if census is not None:
        measures.append(_found_in_place(census, law, found))
    if records:
        tables["posterior of records"] = found.drop(STAY, COME)
    return AttackResult(measures=tuple(measures), tables=tables)


def _together(
    release: Release, law: Exchange, units: pl.DataFrame, mechanism: Mechanism | None
) -> list[RiskMeasure]:
    """The same guess with the held variable that tells most of places, all records of a stratum guessed together."""
    if units.height > MOST_TOGETHER:
        return []
    record = schema_of(release).record(law.record_type)
    other = {record.id, record.household, *law.match, *law.moving, *schema_of(release).spine}
    name = most_telling(units, law, [column for column in units.columns if column not in other])
    if not name:
        return []
    found = inversion(release, mechanism=mechanism, given=[name]).measure(BEST_GUESS)
    return [replace(found, name=named("best_together", variable=name))]


def _units(release: Release, law: Exchange) -> pl.DataFrame:
    frame = lazy(release.microdata[law.record_type])
    kinds = schema_of(release).record(law.record_type).kinds
    return collected(frame.filter(takes_part(kinds, frame.collect_schema().names())))


def _people(release: Release, law: Exchange, units: pl.DataFrame) -> pl.Series:
    """How many people each record stands for: those linked to it, or 1."""
    record = schema_of(release).record(law.record_type)
    for other in schema_of(release).records:
        if (
            other.linked_to == law.record_type
            and other.name in release.microdata
            and record.id in units.columns
        ):
            many = collected(lazy(release.microdata[other.name]).group_by(other.household).len("people"))
            linked = units.select(pl.col(record.id)).join(
                many, left_on=record.id, right_on=other.household, how="left", maintain_order="left"
            )
            return linked["people"].fill_null(0).cast(pl.Int64).alias("people")
    return pl.Series("people", [1] * units.height, pl.Int64)


def by_band(found: pl.DataFrame) -> pl.DataFrame:
    """Records and people by the chance that they are where they are shown, and how many of them are to be expected there."""
    band = pl.lit(f"{BANDS[-2]:g} to {BANDS[-1]:g}")
    for low, high in reversed([*pairwise(BANDS)][:-1]):
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


def by_size(found: pl.DataFrame) -> pl.DataFrame:
    """The same by the size of the stratum, in powers of two: small strata are hardly swapped at all."""
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


def _found_in_place(census: Census, law: Exchange, found: pl.DataFrame) -> RiskMeasure:
    """Records that are unique in their stratum on what is held are recognised; how many are at their own place."""
    record = census.schema.record(law.record_type)
    columns = [
        n
        for n in found.columns
        if n in census.columns(law.record_type) and n not in (record.id, record.household)
    ]
    held = [name for name in columns if name not in law.moving]
    truth = census.scan(law.record_type, [*columns, *([record.kinds.column] if record.kinds else [])])
    truth = truth.filter(takes_part(record.kinds, truth.collect_schema().names())).select(columns)
    first = _unique(collected(truth), held)
    second = _unique(found.select(*columns, POSTERIOR, PRIOR), held)
    both = first.join(second, on=held, nulls_equal=True, suffix="_shown")
    about = f"{plural(law.record_type)} that are unique in their stratum on what is held"
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
    low, high = wilson(hits, both.height)
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


def _unique(frame: pl.DataFrame, held: list[str]) -> pl.DataFrame:
    """The records whose held values no other record has, as texts: two files may code a value differently."""
    plain = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return plain.filter(pl.len().over(held) == 1) if held else plain.head(0)


def _odds(found: pl.DataFrame, about: str) -> RiskMeasure:
    """ln of the factor by which seeing a record at a place moves the odds of that place against one other."""
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


def _public(name: str, about: str, value: float, *baselines: Baseline) -> RiskMeasure:
    return RiskMeasure(
        name=name, about=about, kind="absolute", value=value, unit="share", public=True, baselines=baselines
    )


def _mean(frame: pl.DataFrame, column: str) -> float:
    return float(frame.select(pl.col(column).mean()).item())


def _weighted(frame: pl.DataFrame, column: str) -> float:
    total = int(frame["people"].sum())
    return float((frame[column] * frame["people"]).sum()) / total if total else _mean(frame, column)
