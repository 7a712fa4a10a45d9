"""Write the documents of a packet: specification, card, registry entry, script and the two reports."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred._support import find_missing, missing_extra, pads
from stirred.assess.assessment import Assessment, RelationAssessment, assess_relation, assess_tables
from stirred.assess.attack.inference import guess_by_area
from stirred.assess.attack.uniqueness import (
    MAX_RECORDS,
    Uniqueness,
    choose_questions,
    compare_with_census,
    count_cells_of_one,
    measure_uniqueness,
)
from stirred.assess.conclusions import (
    ChangedNumber,
    Coefficient,
    Conclusions,
    Oddity,
    choose_scope,
    compare_coefficients,
    compare_districts,
    compare_propensity,
    compare_segregation,
    count_oddities,
    find_variable,
    is_nominal,
)
from stirred.assess.contradictions import Contradiction, find_contradictions
from stirred.census import Census, Schema
from stirred.census.geography import read_borders
from stirred.engine import Engine, Local
from stirred.errors import PlanError, did_you_mean
from stirred.frames import collect_frame, frame_of
from stirred.languages import Language, Phrase
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.release import (
    Release,
    count_records,
    filter_participants,
    find_values,
    join_household,
    require_schema,
    scan_records,
)
from stirred.publish.composition import FIGURES, PlanPromise, convert_comparable
from stirred.publish.named_plans import list_quantities
from stirred.publish.packet.receipt import list_versions
from stirred.publish.plan import Plan, Questions
from stirred.publish.plan.description import Reason
from stirred.publish.plan.models import AboutConfig
from stirred.publish.registry import About, registry_entry, to_yaml
from stirred.report import Report, Section, render, risk, sections, utility
from stirred.report.charts import Ground
from stirred.report.document import label_codes
from stirred.report.first_screen import first_screen
from stirred.report.html import card_in_words
from stirred.report.sections import draw_exhibit
from stirred.report.uncertainty import Labels, write_published
from stirred.spec import NormalizedRenyi, Specification
from stirred.spec.card import Card
from stirred.spec.files import save

if TYPE_CHECKING:
    from stirred.assess.attack.inference import InferredTable
    from stirred.assess.universe.measures import Disclosure


# What a report knows of places and codes: how areas nest, their borders, and the words for codes; all of it public.

MAX_AREAS = 100_000  # areas of a level whose nesting is not kept: a picture holds far fewer


def labels_of(schema: Schema) -> Labels:
    """Return the labels of variables and levels, from the schema."""
    variables = [variable for record in schema.records for variable in record.variables]
    return Labels(
        variables={v.name: v.label for v in variables if v.label},
        levels={v.name: dict(v.labels) for v in variables},
    )


def _find_areas(
    data: "pa.Table | pads.Dataset", spine: Sequence[str], wanted: Sequence[int], engine: Engine
) -> pl.DataFrame:
    """Return the areas of the finest wanted level that can be drawn, below those above it; no column where none can."""
    for place in reversed(wanted):
        found = find_values(data, spine[: place + 1], engine=engine, most=MAX_AREAS)
        if found is not None:  # otherwise the level is not drawn; a nation has millions of blocks
            return found
    return pl.DataFrame()


def ground_of(
    schema: Schema, census_file: Path, releases: Sequence[Release], engine: Engine | None = None
) -> Ground:
    """Return the nesting of areas in the released records, and the borders that census.toml names."""
    above: dict[str, dict[str, tuple[str, ...]]] = {}
    for release in releases:
        for data in release.microdata.values():
            spine = [level for level in schema.spine if level in data.schema.names]
            wanted = [place for place, level in enumerate(spine) if place and level not in above]
            areas = _find_areas(data, spine, wanted, engine or Local())
            for place in wanted[: bisect_left(wanted, areas.width)]:
                named = areas.select(pl.col(spine[: place + 1]).cast(pl.String))
                rows = named.unique(maintain_order=True).rows()
                above[spine[place]] = {
                    row[-1]: tuple(map(str, row[:-1])) for row in rows if row[-1] is not None
                }
    return Ground(
        levels=schema.spine,
        ancestors=above,
        borders=read_borders(schema, census_file.parent),
        labels=labels_of(schema).levels,
    )


# The plan's questions put to the census and to the release: tables, relations and conclusions. Internal.


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


# The chapter on risk of a packet's reports: the public part from the releases alone, the internal one beside the census.

MAX_RECORDS_UNDONE = 2_000_000  # records whose swap is undone for the report, and whose area is guessed from
MAX_TABLE_VARIABLES = 5  # of a table whose exact sums are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRisk:
    """What anyone can find in releases that needs nothing but them: undone swaps, guesses by area, guessed cells."""

    undone: tuple[risk.InversionShares, ...] = ()
    guessed: tuple[risk.AreaGuesses, ...] = ()
    believed: "tuple[InferredTable, ...]" = ()

    def plain(self, labels: Mapping[str, str]) -> risk.PlainRisk | None:
        """Return the most intelligible of these risks, or None where nothing was measured."""
        if self.undone:
            return risk.describe_undone(max(self.undone, key=lambda one: one.share))
        if self.guessed:
            return risk.describe_guessed(self.guessed[0], labels)
        return risk.describe_believed(self.believed) if self.believed else None


def measure_risk(plan: Plan, schema: Schema, releases: Sequence[Release], tables: "Shown") -> MeasuredRisk:
    """Measure what the attacks of the public report find, from the releases alone."""
    own = _own_releases(plan, schema, releases)
    undone = (_measure_undo(mechanism, release) for mechanism, release in own)
    guessed = (_measure_guess(mechanism, release) for mechanism, release in own)
    return MeasuredRisk(
        undone=tuple(one for one in undone if one is not None),
        guessed=tuple(one for one in guessed if one is not None),
        believed=tuple(_derive_beliefs(plan, schema, tables)),
    )


def _own_releases(plan: Plan, schema: Schema, releases: Sequence[Release]) -> list[tuple[Mechanism, Release]]:
    """Return the releases that were not made from others, with their mechanisms."""
    return [
        (step.mechanism, replace(release, schema=schema))
        for step, release in zip(plan.steps, releases, strict=True)
        if step.source is None
    ]


def public_risk(
    plan: Plan,
    schema: Schema,
    specification: Specification,
    releases: Sequence[Release],
    tables: Mapping[str, tuple[Sequence[str], pa.Table]],
    engine: Engine,
    labels: Mapping[str, str],
    measured: MeasuredRisk | None = None,
    lone: "Lone | None" = None,
) -> list[Section]:
    """Return the public sections on uniqueness, exact numbers and attacks, from the releases alone."""
    known = [replace(release, schema=schema) for release in releases]
    if lone is None:
        lone = [measure_uniqueness(release, engine) for release in known]
    found = [one for of_release in lone for one in of_release]
    section = risk.write_unique(
        found,
        count_cells_of_one(tables),
        limited=specification.budget.is_finite,
        labels=labels,
        released={name: _rows(release, name) for release in known for name in release.microdata},
    )
    own = _own_releases(plan, schema, releases)
    given = dict.fromkeys(
        one for mechanism, release in own for one in _find_given_away(mechanism, release, engine)
    )
    measured = measured or measure_risk(plan, schema, releases, tables)
    parts: list[Section | None] = [risk.write_inversion(one) for one in measured.undone]
    parts += [risk.write_majority(one, labels) for one in measured.guessed]
    parts += [section, risk.write_disclosure(tuple(given), labels)]
    parts.append(risk.write_noisy_tables(measured.believed))
    parts.append(risk.write_skipped(_list_omissions(own)))
    return [replace(one, folded=True) for one in parts if one is not None]


def internal_risk(truth: Census, releases: Sequence[Release], engine: Engine, lone: "Lone") -> list[Section]:
    """Return the section that compares uniqueness in the census and in the release; none if empty."""
    known = [replace(release, schema=truth.schema) for release in releases]
    found = [
        one
        for release, of_release in zip(known, lone, strict=True)
        for one in compare_with_census(of_release, release, truth, engine)
    ]
    section = risk.write_before_and_after(found)
    return [] if section is None else [section]


def _find_given_away(mechanism: Mechanism, release: Release, engine: Engine) -> "tuple[Disclosure, ...]":
    from stirred.assess.universe.measures import measure_disclosure  # loads numerical libraries

    tables = [release.tables[name] for name in mechanism.list_own_tables(release)]
    return measure_disclosure(
        release,
        tables=tables,
        record_type=mechanism.record_type,
        most=MAX_RECORDS_UNDONE,
        engine=engine,
    )


def _measure_undo(mechanism: Mechanism, release: Release) -> risk.InversionShares | None:
    """Measure what the best undo finds, where the mechanism states the law of its moves."""
    if not 0 < _rows(release, mechanism.record_type) <= MAX_RECORDS_UNDONE:
        return None
    data = release.microdata[mechanism.record_type]
    taking = filter_participants(require_schema(release), mechanism.record_type, scan_records(data))
    law = mechanism.exchange(release)
    if law is None or collect_frame(taking.select(pl.len())).item() < 2:
        return None
    # imported here: most runs have no swap to undo, and attacks load solvers
    from stirred.assess.attack.inversion import BANDS, BEST_GUESS, CERTAIN, IN_PLACE, TOP_BAND, invert_swap

    result = invert_swap(release, mechanism=mechanism)
    found = {one.name: one for one in result.measures}
    shares = [found[name].value for name in (IN_PLACE, BEST_GUESS, CERTAIN)]
    if any(share is None for share in shares):
        return None
    share, best, sure = (float(one or 0.0) for one in shares)
    bands = dict(result.tables[BANDS].select("chance", "records").rows())
    return risk.InversionShares(
        record_type=mechanism.record_type,
        share=share,
        guess=found[IN_PLACE].baselines[0].value,
        best=best,
        sure=sure,
        known=bands.get(TOP_BAND, 0) / sum(bands.values()),
    )


def _measure_guess(mechanism: Mechanism, release: Release) -> risk.AreaGuesses | None:
    """Measure what the area alone tells of released records, where no law of moves is known."""
    types = [name for name in ("person", *sorted(release.microdata)) if name in release.microdata]
    if mechanism.exchange(release) is not None or not types:
        return None
    record_type = types[0]
    asked = choose_questions(release, record_type)
    if _rows(release, record_type) > MAX_RECORDS_UNDONE or not asked or not asked[-1][1]:
        return None
    variables, area = asked[-1]
    records = join_household(release, require_schema(release), record_type)
    found = [guess_by_area(records, area, name) for name in variables if name != area]
    told = tuple(one for one in found if one is not None)
    return risk.AreaGuesses(record_type=record_type, guesses=told) if told else None


def _derive_beliefs(
    plan: Plan, schema: Schema, tables: Mapping[str, tuple[Sequence[str], pa.Table]]
) -> "list[InferredTable]":
    """Derive what tables with errors let anyone believe of their cells; exact sums bound the cells."""
    from stirred.assess.attack.inference import infer_table  # loads numerical libraries

    stated = {table.name: table.record_type for table in plan.tables}
    found = []
    for name, (by, table) in tables.items():
        frame = frame_of(table)
        if "count" not in frame.columns or "weighted" in frame.columns:
            continue
        exact: list[pl.DataFrame] = []
        if len(plan.steps) == 1:  # of several releases it is not known here which one made a table
            mechanism = plan.steps[0].mechanism
            record_type = stated.get(name, mechanism.record_type)
            exact = [
                frame.group_by(list(part)).agg(pl.col("count").sum())
                for size in range(1, min(len(by), MAX_TABLE_VARIABLES))
                for part in combinations(by, size)
                if record_type == mechanism.record_type and mechanism.keeps(part, schema)
            ]
        one = infer_table(name, frame, list(by), exact)
        if one is not None:
            found.append(one)
    return found


def _list_omissions(own: Sequence[tuple[Mechanism, Release]]) -> list[risk.SkippedPart]:
    """Return what the limits of this chapter leave out, so that the report can say it."""
    found = []
    for mechanism, release in own:
        for record_type in sorted(release.microdata):
            rows = _rows(release, record_type)
            limits = [("alone", MAX_RECORDS)] if rows > MAX_RECORDS else []
            law = mechanism.exchange(release)
            if rows > MAX_RECORDS_UNDONE and law is not None and record_type == mechanism.record_type:
                limits.append(("undone", MAX_RECORDS_UNDONE))
            elif rows > MAX_RECORDS_UNDONE and law is None:
                limits.append(("majority", MAX_RECORDS_UNDONE))
            found += [
                risk.SkippedPart(what=what, record_type=record_type, records=rows, most=most)
                for what, most in limits
            ]
    return found


def _rows(release: Release, record_type: str) -> int:
    data = release.microdata.get(record_type)
    if data is None:
        return 0
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())


# What the report of several mechanisms shows: how their budgets add up, and where their tables contradict each other.


def build_product_exhibits(plan: Plan, promise: PlanPromise, tables: Mapping[str, pa.Table]) -> list[Exhibit]:
    """Return the budget by product where several spend one, and contradictions between two tables."""
    found = [tabulate_budgets(plan, promise)] if len(promise.shares) > 1 or plan.retabulations else []
    counted = find_contradictions(tables, list_quantities())
    return found + ([tabulate_contradictions(counted)] if counted else [])


def tabulate_budgets(plan: Plan, promise: PlanPromise) -> Exhibit:
    """Return a table with one row per product: its unit, its factors, and its cost by each of them."""
    whole, published = promise.whole, promise.published
    symbol = "ρ²" if isinstance(whole.output_premetric, NormalizedRenyi) else "ε"
    columns = [
        Phrase("composed.product"),
        Phrase("composed.unit"),
        Phrase("composed.counted", symbol=symbol),
        Phrase("composed.published_factor"),
        Phrase("composed.published", symbol=symbol),
        Phrase("composed.bureau_factor"),
        Phrase("composed.bureau", symbol=symbol),
        Phrase("composed.proved_factor"),
        Phrase("composed.proved", symbol=symbol),
    ]
    rows: list[tuple[object, ...]] = [
        (
            share.label,
            share.unit,
            str(share.counted),
            *(
                text
                for figure, budget in zip(FIGURES, (share.published, share.bureau, share.proved), strict=True)
                for text in (
                    "1" if share.conversion is None else str(share.conversion.factor(figure).times),
                    str(budget),
                )
            ),
        )
        for share in promise.shares
    ]
    free = [
        *((step.label, plan.steps[step.source].label) for step in plan.steps if step.source is not None),
        *((item.name, plan.steps[item.source].label) for item in plan.retabulations),
    ]
    rows += [
        (name, Phrase("composed.from", name=source), "0", "", "0", "", "0", "", "0") for name, source in free
    ]
    rows.append(
        (
            Phrase("composed.together"),
            str(whole.input_premetric),
            "",
            "",
            str(convert_comparable(published)),
            "",
            str(convert_comparable(promise.bureau)),
            "",
            str(convert_comparable(whole)),
        )
    )
    return Exhibit(
        title=Phrase("composed.title"),
        finding=Phrase(
            "composed.finding",
            budget=whole.shown_budget,
            unit=str(whole.input_premetric),
            published=published.shown_budget,
        ),
        parts=(Listing(caption=Phrase("composed.caption"), columns=columns, rows=rows, numeric=columns[2:]),),
        note=Phrase("composed.later"),
    )


def tabulate_contradictions(found: Sequence[Contradiction]) -> Exhibit:
    """Return a table of how many numbers stand in two tables with two values."""
    columns = [
        Phrase("composed.contradiction.quantity"),
        Phrase("composed.contradiction.tables"),
        Phrase("composed.contradiction.compared"),
        Phrase("composed.contradiction.differ"),
        Phrase("composed.contradiction.largest"),
    ]
    rows = [
        (
            Phrase(f"composed.quantity.{one.quantity.name}"),
            f"{one.quantity.first.table}, {one.quantity.second.table}",
            one.compared,
            one.differ,
            one.largest,
        )
        for one in found
    ]
    compared_, differ = sum(one.compared for one in found), sum(one.differ for one in found)
    finding = (
        Phrase("composed.contradiction.finding", differ=differ, compared=compared_)
        if differ
        else Phrase("composed.contradiction.none", compared=compared_)
    )
    return Exhibit(
        title=Phrase("composed.contradiction.title"),
        finding=finding,
        parts=(
            Listing(
                caption=Phrase("composed.contradiction.caption"),
                columns=columns,
                rows=rows,
                numeric=columns[2:],
            ),
        ),
        chapter="accuracy",
    )


# The script of a packet: plain Python that makes the packet again, given the census and the key.

# The text is the same for every packet: nothing of a plan becomes code.
SCRIPT = '''"""Makes this packet again: python redo.py CENSUS_FOLDER KEY_FILE OUT

CENSUS_FOLDER holds the census file that the plan names; KEY_FILE is the key of the release, which never
lies in a packet. The plan is plan.toml beside this script; it is read as data. With the versions of
receipt.json the public part comes out byte for byte the same.
"""

import sys
from pathlib import Path

from stirred.chance import Key
from stirred.publish import parse, run


def main(census: str, key: str, out: str) -> None:
    text = Path(__file__).with_name("plan.toml").read_text(encoding="utf-8")
    packet = run(parse(text, folder=Path(census)), out, key=Key.load(key))
    print(packet.folder)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
'''


# The papers of a packet: specification, card, registry entry, script and the two reports.

Shown = Mapping[str, tuple[Sequence[str], pa.Table]]  # name → variables, table
Lone = Sequence[tuple[Uniqueness, ...]]  # of each release, how many of its records are unique


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketDocuments:
    """Documents of a release; the internal report contains the sections of the public one, built once."""

    plan: Plan
    specification: Specification
    report: Report
    tables: Shown
    ground: Ground
    risks: Mapping[str, risk.PlainRisk]
    labels: Mapping[str, str]  # words for variables
    lone: Lone

    @classmethod
    def build(
        cls,
        plan: Plan,
        schema: Schema,
        specification: Specification,
        releases: Sequence[Release],
        tables: Shown,
        engine: Engine,
        language: Language | None = None,
        promise: PlanPromise | None = None,
    ) -> "PacketDocuments":
        """Build everything that is computed from the releases alone."""
        ground = ground_of(schema, plan.folder / plan.census_file, releases, engine)
        labels = labels_of(schema).variables
        measured = measure_risk(plan, schema, releases, tables)
        lone = [measure_uniqueness(replace(release, schema=schema), engine) for release in releases]
        plain = measured.plain(labels)
        risks = {} if plain is None else {"": plain}
        report = Report(
            title=plan.title,
            subtitle=Phrase("report.subtitle"),
            audience="public",
            private=all(release.private for release in releases),
            sections=tuple(
                public_sections(
                    plan, schema, specification, releases, tables, engine, ground, promise, measured, lone
                )
            ),
            first=first_screen({"": specification}, tables={"": tables}, labels=labels, risks=risks),
            language=language or Language.of(plan.language),
            levels=labels_of(schema).levels,
        )
        return cls(
            plan=plan,
            specification=specification,
            report=report,
            tables=tables,
            ground=ground,
            risks=risks,
            labels=labels,
            lone=lone,
        )

    def write_public(self, folder: Path) -> None:
        """Write specification, card, registry entry, script and the public report."""
        save(self.specification, folder / "spec.json")
        card = Card(
            self.specification,
            title=self.plan.title,
            language=self.plan.language,
            labels=self.labels,
            signature=_signature(self.plan),
        )
        mark = "" if self.report.private else f"**{card.says('card.not_private')}**\n\n"
        text, page = card.markdown(), _mark_card(card, private=self.report.private)
        levels = self.report.levels
        (folder / "card.md").write_text(mark + label_codes(text, levels), encoding="utf-8")
        (folder / "card.html").write_text(card_in_words(page, levels), encoding="utf-8")
        asked = self.plan.about != AboutConfig().model_dump()
        if asked and self.specification.budget.is_finite:  # the registry lists private releases alone
            entry = _registry(self.plan, replace(card, language="en"))
            (folder / "registry.yaml").write_text(entry, encoding="utf-8")
        (folder / "redo.py").write_text(SCRIPT, encoding="utf-8")
        (folder / "report.html").write_text(render(self.report), encoding="utf-8")

    def write_internal(
        self,
        truth: Census,
        releases: Sequence[Release],
        tables: Mapping[str, pa.Table],
        folder: Path,
        engine: Engine,
    ) -> None:
        """Write the comparison with the truth, watermarked, before all sections of the public report; in English alone."""
        found = assess_questions(self.plan, truth, releases, tables, engine)
        found.summary().write_csv(folder / "metrics.csv")
        report = replace(
            self.report,
            subtitle=INTERNAL if self.plan.language == "en" else f"{INTERNAL}. {ENGLISH}",
            language=Language.of("en"),
            audience="internal",
            first=first_screen(
                {"": self.specification},
                tables={"": self.tables},
                assessments=[found],
                labels=labels_of(truth.schema).variables,
                risks=self.risks,
            ),
            sections=(
                *_build_comparison(found, self.ground),
                *internal_risk(truth, releases, engine, self.lone),
                *self.report.sections,
            ),
        )
        (folder / "report.html").write_text(render(report), encoding="utf-8")


INTERNAL = "Comparison with the confidential data"
ENGLISH = "Internal reports are in English; the card and the public report are in the language of the plan."


def _build_comparison(found: Assessment, ground: Ground) -> Sequence[Section]:
    """Return the sections that compare with the truth, where charts can be drawn."""
    return utility.write_truth_sections([found], ground=ground) if find_missing("report") is None else ()


def _explain_no_charts(module: str) -> Section:
    """Return the section that a report without charts has in their place."""
    error = missing_extra(module, "report", why="the charts and tables of a report are drawn with it")
    return Section(
        title="No charts were drawn",
        lead=f"{error.what}: {error.why}. Run {error.fix} and then the plan again.",
    )


def _mark_card(card: Card, *, private: bool) -> str:
    """Return the card, with a mark where the release was made with a test key."""
    html = card.html()
    if private:
        return html
    style = "border:3px solid #b00;color:#b00;padding:.5rem;font:700 1rem sans-serif"
    mark = f'<p style="{style}">{card.says("card.not_private")}</p>'
    return html.replace("<body>", f"<body>{mark}", 1) if "<body>" in html else mark + html


def _signature(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return who answers for the release, from the plan; what it leaves open is filled in by hand."""
    about, open_ = plan.about, AboutConfig()
    curators = about["data_curators"]
    office = (
        ", ".join(map(str, curators))
        if isinstance(curators, list) and curators != open_.data_curators
        else ""
    )
    date = str(about["publication_date"])
    values = {
        "office": office or plan.owner,
        "contact": str(about["contact"]),
        "date": "" if date == open_.publication_date else date,
        "plan": plan.digest,
        "signature": "",
    }
    say = Language.of(plan.language).say
    return tuple((say(f"card.sign.{name}"), value) for name, value in values.items())


def _registry(plan: Plan, card: Card) -> str:
    """Return a draft entry for the deployments registry; mark what the plan's [about] leaves open."""
    about = About.of(
        {
            "name": plan.title,
            "data_product_type": "Dataset" if plan.microdata else "Summary statistics",
            "mechanisms": "; ".join(mechanism.name for mechanism in plan.mechanisms),
            **{name: value for name, value in plan.about.items() if name != "contact"},
        }
    )
    return to_yaml(registry_entry(card, about))


def public_sections(
    plan: Plan,
    schema: Schema,
    specification: Specification,
    releases: Sequence[Release],
    tables: Shown,
    engine: Engine,
    ground: Ground,
    promise: PlanPromise | None = None,
    measured: MeasuredRisk | None = None,
    lone: Lone | None = None,
) -> list[Section]:
    """Return the sections of the public report, in reading order."""
    checks = [check for release in releases for check in release.checks]
    parts = [
        sections.write_promise(specification, labels=labels_of(schema).variables),
        sections.write_exact(specification, checks, [_reason(reason) for reason in plan.reasons]),
    ]
    if promise is not None and len(plan.steps) > 1:
        parts += [
            draw_exhibit(exhibit)
            for exhibit in build_product_exhibits(plan, promise, {n: t for n, (_, t) in tables.items()})
        ]
    if (module := find_missing("report")) is not None:
        return [*parts, _explain_no_charts(module), sections.write_method(_method(plan))]
    labels = labels_of(schema).variables
    parts += public_risk(plan, schema, specification, releases, tables, engine, labels, measured, lone)
    for number, (step, release) in enumerate(zip(plan.steps, releases, strict=True), 1):
        shown_of = () if step.source is not None else step.mechanism.exhibits(release, engine=engine)
        drawn = [draw_exhibit(exhibit, mark=f"-{number}" if number > 1 else "") for exhibit in shown_of]
        parts += [replace(section, folded=True) for section in drawn]
    methods = [mechanism.name for mechanism in plan.mechanisms]
    parts.append(write_published(tables, labels=labels_of(schema), ground=ground, methods=methods))
    parts.append(sections.write_method(_method(plan)))
    return parts


def _reason(reason: Reason) -> tuple[str, str]:
    source = f" ({reason.citation})" if reason.citation else ""
    return Phrase("report.exact.why", statistic=reason.invariant), f"{reason.kind}: {reason.text}{source}"


def _method(plan: Plan) -> list[tuple[str, str]]:
    def write_label(name: str) -> str:
        return Phrase(f"report.method.{name}")

    rows = [(write_label("mechanism"), f"{m.name}: {_parameters(m.parameters())}") for m in plan.mechanisms]
    rows += [(write_label("owner"), plan.owner or write_label("unnamed")), (write_label("plan"), plan.digest)]
    rows.append(
        (write_label("versions"), ", ".join(f"{name} {number}" for name, number in list_versions().items()))
    )
    rows.append((write_label("cite"), Phrase("report.method.citation", title=plan.title)))
    return rows


def _parameters(values: Mapping[str, object]) -> str:
    told = {name: value for name, value in values.items() if value not in (None, [], {}, "")}
    return "; ".join(f"{name} {_setting(value)}" for name, value in told.items())


def _setting(value: object) -> str:
    """Write a setting as people do: lists with commas, nested lists with ×, digests by what they are of.

    >>> _setting([["size", "tenure"], ["size"]]), _setting(True), _setting({"small": "0f" * 32, "rare": "1/5"})
    ('size × tenure, size', 'yes', 'small, rare 1/5')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(
            name if _is_digest(one) else f"{name} {_setting(one)}" for name, one in value.items()
        )
    if isinstance(value, list):
        return ", ".join(" × ".join(map(str, one)) if isinstance(one, list) else str(one) for one in value)
    return str(value)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and len(value) == 64 and not set(value) - {*"0123456789abcdef"}
