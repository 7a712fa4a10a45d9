"""The plan's questions put to the census and to the release: tables, relations and conclusions. Internal."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import polars as pl
import pyarrow as pa

from stirred.assess.assessment import Assessment, RelationAssessment, assess_relations, assess_tables
from stirred.assess.conclusions import (
    Change,
    Coefficient,
    Conclusions,
    coefficients,
    distinguishable,
    districts,
    segregation,
)
from stirred.assess.utility.areas import Oddity, oddities
from stirred.census import Census
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.swapping import PermutationSwapping
from stirred.publish.plan import Plan, Questions
from stirred.publish.tables import joined, taking_part


def assessment(
    plan: Plan, census: Census, releases: Sequence[Release], tables: Mapping[str, pa.Table]
) -> Assessment:
    """The published tables and the plan's questions against the truth."""
    wanted = {table.name: (table.record_type, table.by, tables[table.name]) for table in plan.tables}
    found = assess_tables(plan.title, census, wanted)
    relations: list[RelationAssessment] = []
    conclusions = Conclusions()
    if plan.questions.variables():
        mechanism, release = plan.mechanisms[0], releases[0]
        before, after = _both(mechanism, release, census, plan.questions.variables())
        relations = list(_relations(mechanism, census, plan.questions, before, after))
        conclusions = _conclusions(plan.questions, before, after)
    if plan.questions.improbable:
        odd = _improbable(plan.questions.improbable, census, releases[0])
        conclusions = replace(conclusions, oddities=tuple(odd))
    return Assessment(
        name=found.name, tables=found.tables, relations=tuple(relations), conclusions=conclusions
    )


def _both(
    mechanism: Mechanism, release: Release, census: Census, names: list[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The same variables of the original and of the protected records."""
    record_type = (
        mechanism.resolution if isinstance(mechanism, PermutationSwapping) else next(iter(release.microdata))
    )
    protected = joined(release, census.schema, record_type)
    there = protected.collect_schema().names()
    for name in names:
        if name not in there:
            raise PlanError(
                f"the plan's questions ask for {name}, which is not released", fix=did_you_mean(name, there)
            )
    before = census.scan(record_type, names).collect()
    after = protected.select(names).collect()
    assert isinstance(before, pl.DataFrame)
    assert isinstance(after, pl.DataFrame)
    types = {name: pl.String for name in names if not before[name].dtype.is_numeric()}
    return before.cast(types), after.cast(types)  # type: ignore[arg-type]


def _relations(
    mechanism: Mechanism, census: Census, questions: Questions, before: pl.DataFrame, after: pl.DataFrame
) -> tuple[RelationAssessment, ...]:
    swapping = isinstance(mechanism, PermutationSwapping)
    match = mechanism.match if isinstance(mechanism, PermutationSwapping) else ()
    moving = [level for level in census.schema.spine if level not in match]
    if isinstance(mechanism, PermutationSwapping):
        moving = [*mechanism.swap, *moving]
    found = assess_relations(before, after, questions.relations, match=match, swap=moving)
    if swapping:
        return found
    return tuple(
        RelationAssessment(
            first=r.first, second=r.second, original=r.original, protected=r.protected, kept=False
        )
        for r in found
    )


def _conclusions(questions: Questions, before: pl.DataFrame, after: pl.DataFrame) -> Conclusions:
    changes: list[Change] = []
    for area, group in questions.segregation:
        changes += segregation(before, after, area, group)
    changes += [districts(before, after, level) for level in questions.districts]
    if questions.propensity:
        changes.append(distinguishable(before, after, questions.propensity))
    fits: list[Coefficient] = []
    for outcome, on in questions.regressions:
        fits += coefficients(before, after, outcome, on)
    return Conclusions(changes=tuple(changes), coefficients=tuple(fits))


def _improbable(level: str, census: Census, release: Release) -> list[Oddity]:
    """Areas of a level that cannot be or hardly can be, before and after, as far as the released records tell."""
    sides = [_areas(level, lambda r: census.scan(r, _columns(census.columns(r), level)), census, release)]
    sides.append(_areas(level, lambda r: joined(release, census.schema, r), census, release))
    return oddities(*sides)


def _columns(known: Sequence[str], level: str) -> list[str]:
    return list(dict.fromkeys([level, *(name for name in ("age", "kind") if name in known)]))


def _areas(
    level: str, records: Callable[[str], pl.LazyFrame], census: Census, release: Release
) -> pl.DataFrame:
    """One row an area: households, persons, adults and children, where the records have them."""
    frames: list[pl.LazyFrame] = []
    for record_type, name in (("household", "households"), ("person", "persons")):
        if record_type not in release.microdata or record_type not in census.schema.record_types:
            continue
        frame = records(record_type)
        frame = taking_part(census.schema, record_type, frame)
        counts = [pl.len().alias(name)]
        if record_type == "person" and "age" in frame.collect_schema().names():
            adult = pl.col("age") >= 18
            counts += [adult.sum().alias("adults"), (~adult).sum().alias("children")]
        frames.append(frame.group_by(pl.col(level).cast(pl.String)).agg(counts))
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.join(frame, on=level, how="full", coalesce=True)
    made = whole.collect()
    assert isinstance(made, pl.DataFrame)
    return made.fill_null(0)
