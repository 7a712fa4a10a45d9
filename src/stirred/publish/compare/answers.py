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
    compare_coefficients,
    compare_districts,
    compare_propensity,
    compare_segregation,
)
from stirred.assess.scope import choose_scope, find_variable, is_nominal
from stirred.assess.utility.areas import Oddity, count_oddities
from stirred.census import Census
from stirred.engine import Engine, Local
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.released import count_records, filter_participants, join_household
from stirred.publish.plan import Plan, Questions


@dataclass(frozen=True, slots=True)
class QuestionCells:
    """The cells of a question, before and after, and the records that they count, in words."""

    sides: tuple[pl.DataFrame, pl.DataFrame]
    about: str


@dataclass(frozen=True, slots=True)
class Sides:
    """The census and the release, counted by the same cells; their records are never joined."""

    census: Census
    release: Release
    record_type: str
    engine: Engine

    def select_cells(self, names: Sequence[str]) -> "QuestionCells":
        """Return the cells of a question's variables before and after, for the records it is about."""
        keys = list(dict.fromkeys(names))
        scope = choose_scope(self.census.schema, self.record_type, keys, self.there)
        before, after = self.count_both([*keys, *scope.columns])
        return QuestionCells((scope.keep_cells(before, keys), scope.keep_cells(after, keys)), scope.words)

    def count_both(self, names: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Count the cells of some variables before and after; nominal variables are text."""
        keys = list(dict.fromkeys(names))
        before = pl.DataFrame(pl.from_arrow(self.census.counts(self.record_type, keys)))
        after = self._after(keys)
        types = {name: pl.String for name in keys if self._nominal(name, before[name].dtype)}
        # in one order on every engine: the last bit of a sum depends on it
        sides = (side.cast(types).sort(keys, nulls_last=False) for side in (before, after))  # type: ignore[arg-type]
        first, second = sides
        return first, second

    @property
    def there(self) -> list[str]:
        """Return the variables of the released records."""
        return join_household(self.release, self.census.schema, self.record_type).collect_schema().names()

    def labels(self, names: Sequence[str]) -> dict[str, dict[str, str]]:
        """Return the labels for the levels of some variables."""
        found = {name: find_variable(self.census.schema, self.record_type, name) for name in names}
        return {name: dict(variable.labels) for name, variable in found.items() if variable is not None}

    def _nominal(self, name: str, kind: pl.DataType) -> bool:
        told = is_nominal(self.census.schema, self.record_type, name)
        return not kind.is_numeric() if told is None else told

    def _after(self, keys: list[str]) -> pl.DataFrame:
        release = replace(self.release, schema=self.census.schema, folder=self.census.folder)
        return count_records(release, keys, record_type=self.record_type, engine=self.engine)


def assess_questions(
    plan: Plan,
    census: Census,
    releases: Sequence[Release],
    tables: Mapping[str, pa.Table],
    engine: Engine | None = None,
) -> Assessment:
    """Assess the published tables and the plan's questions against the truth."""
    wanted = {table.name: (table.record_type, table.by, tables[table.name]) for table in plan.tables}
    found = assess_tables(plan.title, census, wanted)
    relations: list[RelationAssessment] = []
    conclusions = Conclusions()
    for questions in plan.questions.each():
        if not questions.variables():
            continue
        mechanism = plan.mechanisms[0]
        sides = _sides(mechanism, releases[0], census, questions, engine or Local())
        relations += _relations(mechanism, questions, sides)
        more = _conclusions(questions, sides)
        conclusions = Conclusions(
            changes=(*conclusions.changes, *more.changes),
            coefficients=(*conclusions.coefficients, *more.coefficients),
        )
    if plan.questions.improbable:
        odd = _improbable(plan.questions.improbable, census, releases[0], engine or Local())
        conclusions = replace(conclusions, oddities=tuple(odd))
    return Assessment(
        name=found.name, tables=found.tables, relations=tuple(relations), conclusions=conclusions
    )


def _sides(
    mechanism: Mechanism, release: Release, census: Census, questions: Questions, engine: Engine
) -> Sides:
    sides = Sides(census, release, questions.record_type or mechanism.record_type, engine)
    for name in questions.variables():
        if name not in sides.there:
            raise PlanError(
                f"the plan's [assess] asks for {name}, which is not released",
                why=f"the released {sides.record_type} records have no such column",
                fix=did_you_mean(name, sides.there),
            )
    return sides


def _relations(mechanism: Mechanism, questions: Questions, sides: Sides) -> Iterator[RelationAssessment]:
    for pair in questions.relations:
        asked, kept = sides.select_cells(pair), mechanism.keeps(pair, sides.census.schema)
        yield assess_relation(*asked.sides, pair, kept=kept, about=asked.about)


def _conclusions(questions: Questions, sides: Sides) -> Conclusions:
    changes: list[ChangedNumber] = []
    for area, group in questions.segregation:
        asked = sides.select_cells([area, group])
        changes += compare_segregation(
            *asked.sides, area, group, about=asked.about, labels=sides.labels([group])
        )
    for level in questions.districts:
        asked = sides.select_cells([level])
        changes.append(compare_districts(*asked.sides, level, about=asked.about))
    if questions.propensity:
        asked = sides.select_cells(questions.propensity)
        changes.append(compare_propensity(*asked.sides, questions.propensity, about=asked.about))
    fits: list[Coefficient] = []
    for outcome, on in questions.regressions:
        asked, labels = sides.select_cells([outcome, *on]), sides.labels([outcome, *on])
        fits += compare_coefficients(*asked.sides, outcome, on, about=asked.about, labels=labels)
    return Conclusions(changes=tuple(changes), coefficients=tuple(fits))


def _improbable(level: str, census: Census, release: Release, engine: Engine) -> list[Oddity]:
    """Return impossible and improbable areas of a level before and after, as far as the release shows them."""
    frames: list[list[pl.DataFrame]] = [[], []]
    for record_type, name in (("household", "households"), ("person", "persons")):
        if record_type not in release.microdata or record_type not in census.schema.record_types:
            continue
        known = set(census.columns(record_type))
        asked = [level, *(column for column in ("age", "kind") if column in known)]
        for side, cells in enumerate(Sides(census, release, record_type, engine).count_both(asked)):
            moved = filter_participants(census.schema, record_type, cells.lazy())
            sums = [pl.col("count").sum().alias(name)]
            if record_type == "person" and "age" in asked:
                adult = pl.col("age") >= 18
                sums.append(pl.col("count").filter(adult).sum().alias("adults"))
                sums.append(pl.col("count").filter(~adult).sum().alias("children"))
            frames[side].append(moved.group_by(pl.col(level).cast(pl.String)).agg(sums).collect())
    return count_oddities(*(_join_areas(side, level) for side in frames))


def _join_areas(frames: list[pl.DataFrame], level: str) -> pl.DataFrame:
    """Join frames to one row per area: households, persons, adults and children, as far as known."""
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.join(frame, on=level, how="full", coalesce=True)
    return whole.fill_null(0)
