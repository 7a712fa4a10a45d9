"""The plan's questions put to the census and to the release: tables, relations and conclusions. Internal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from stirred.assess.assessment import Assessment, RelationAssessment, assess_relation, assess_tables
from stirred.assess.conclusions import (
    ChangedNumber,
    Coefficient,
    Conclusions,
    coefficients,
    distinguishable,
    districts,
    segregation,
)
from stirred.assess.utility.areas import Oddity, oddities
from stirred.census import Census
from stirred.engine import Engine, Local
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.released import counted, joined, taking_part
from stirred.publish.plan import Plan, Questions


@dataclass(frozen=True, slots=True)
class Sides:
    """The census and the release, which give the same counts; their records are never joined."""

    census: Census
    release: Release
    record_type: str
    engine: Engine

    def both(self, names: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The cells of some variables before and after, with how many records each has."""
        keys = list(dict.fromkeys(names))
        before = pl.DataFrame(pl.from_arrow(self.census.counts(self.record_type, keys)))
        after = self._after(keys)
        types = {name: pl.String for name in keys if not before[name].dtype.is_numeric()}
        # in one order on every engine: the last bit of a sum depends on it
        sides = (side.cast(types).sort(keys, nulls_last=False) for side in (before, after))  # type: ignore[arg-type]
        first, second = sides
        return first, second

    def _after(self, keys: list[str]) -> pl.DataFrame:
        release = replace(self.release, schema=self.census.schema, folder=self.census.folder)
        return counted(release, keys, record_type=self.record_type, engine=self.engine)


def assessment(
    plan: Plan,
    census: Census,
    releases: Sequence[Release],
    tables: Mapping[str, pa.Table],
    engine: Engine | None = None,
) -> Assessment:
    """The published tables and the plan's questions against the truth."""
    wanted = {table.name: (table.record_type, table.by, tables[table.name]) for table in plan.tables}
    found = assess_tables(plan.title, census, wanted)
    relations: list[RelationAssessment] = []
    conclusions = Conclusions()
    if plan.questions.variables():
        mechanism = plan.mechanisms[0]
        sides = _sides(mechanism, releases[0], census, plan.questions, engine or Local())
        relations = list(_relations(mechanism, plan.questions, sides))
        conclusions = _conclusions(plan.questions, sides)
    if plan.questions.improbable:
        odd = _improbable(plan.questions.improbable, census, releases[0], engine or Local())
        conclusions = replace(conclusions, oddities=tuple(odd))
    return Assessment(
        name=found.name, tables=found.tables, relations=tuple(relations), conclusions=conclusions
    )


def _sides(
    mechanism: Mechanism, release: Release, census: Census, questions: Questions, engine: Engine
) -> Sides:
    record_type = mechanism.record_type
    there = joined(release, census.schema, record_type).collect_schema().names()
    for name in questions.variables():
        if name not in there:
            raise PlanError(
                f"the plan's [assess] asks for {name}, which is not released",
                why=f"the released {record_type} records have no such column",
                fix=did_you_mean(name, there),
            )
    return Sides(census, release, record_type, engine)


def _relations(mechanism: Mechanism, questions: Questions, sides: Sides) -> Iterator[RelationAssessment]:
    for pair in questions.relations:
        yield assess_relation(*sides.both(pair), pair, kept=mechanism.keeps(pair, sides.census.schema))


def _conclusions(questions: Questions, sides: Sides) -> Conclusions:
    changes: list[ChangedNumber] = []
    for area, group in questions.segregation:
        changes += segregation(*sides.both([area, group]), area, group)
    changes += [districts(*sides.both([level]), level) for level in questions.districts]
    if questions.propensity:
        changes.append(distinguishable(*sides.both(questions.propensity), questions.propensity))
    fits: list[Coefficient] = []
    for outcome, on in questions.regressions:
        fits += coefficients(*sides.both([outcome, *on]), outcome, on)
    return Conclusions(changes=tuple(changes), coefficients=tuple(fits))


def _improbable(level: str, census: Census, release: Release, engine: Engine) -> list[Oddity]:
    """Impossible and improbable areas of a level, before and after, as far as the released records show them."""
    frames: list[list[pl.DataFrame]] = [[], []]
    for record_type, name in (("household", "households"), ("person", "persons")):
        if record_type not in release.microdata or record_type not in census.schema.record_types:
            continue
        known = set(census.columns(record_type))
        asked = [level, *(column for column in ("age", "kind") if column in known)]
        for side, cells in enumerate(Sides(census, release, record_type, engine).both(asked)):
            moved = taking_part(census.schema, record_type, cells.lazy())
            sums = [pl.col("count").sum().alias(name)]
            if record_type == "person" and "age" in asked:
                adult = pl.col("age") >= 18
                sums.append(pl.col("count").filter(adult).sum().alias("adults"))
                sums.append(pl.col("count").filter(~adult).sum().alias("children"))
            frames[side].append(moved.group_by(pl.col(level).cast(pl.String)).agg(sums).collect())
    return oddities(*(_joined(side, level) for side in frames))


def _joined(frames: list[pl.DataFrame], level: str) -> pl.DataFrame:
    """One row an area: households, persons, adults and children, where the records have them."""
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.join(frame, on=level, how="full", coalesce=True)
    return whole.fill_null(0)
