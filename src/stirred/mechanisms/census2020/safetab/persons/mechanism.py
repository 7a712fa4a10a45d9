"""Define SafeTab-P: look at each population group with noise, publish a total or sex by age (T1, T2)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census.progress import silent
from stirred.census.schema import Schema
from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.errors import InputError, PlanError
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.base import Mechanism, check_inputs, require_inputs
from stirred.mechanisms.census2020.config import SafeTabPConfig
from stirred.mechanisms.census2020.factors import SAFETAB_P_CONVERSION
from stirred.mechanisms.census2020.safetab.base import SafeTab
from stirred.mechanisms.census2020.safetab.groups import (
    CodeLists,
    CountsInParts,
    GroupCounts,
    GroupSet,
    Regions,
    Tally,
    choose_region_types,
    count_groups,
    find_regions,
    geographic_columns,
    make_group_maps,
)
from stirred.mechanisms.census2020.safetab.persons import budgets
from stirred.mechanisms.census2020.safetab.persons.budgets import (
    PRESETS,
    Apportionment,
    Line,
)
from stirred.mechanisms.census2020.safetab.persons.tables import (
    CHANCE_ONE_SIDE,
    FIGURE_COLUMNS,
    MEASURED_SCHEMA,
    T1,
    T2,
    MeasuredGroups,
    MeasurePersons,
    SexByAge,
    Stages,
    draw_empty,
    make_tables,
    measure_groups,
    sum_groups,
    to_frame,
    unpack_measured,
    write_files,
)
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, smallest_effect
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.proposal import Proposal, find_root, list_areas
from stirred.mechanisms.release import Check, Release
from stirred.spec import Budget, Specification
from stirred.spec.conversions import Conversion
from stirred.spec.invariants import Views, make_view

if TYPE_CHECKING:
    from stirred.census import Census


# The settings of SafeTab-P that the schema of a census suggests.


def propose(schema: Schema) -> Proposal:
    """Return the 2020 product where persons have detailed race codes; refuse where they have none."""
    list_areas(schema, find_root(schema))
    person = next((record for record in schema.records if record.name == "person"), None)
    if person is None or "race_code_1" not in person.names:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts groups by detailed race codes, and persons have no variable race_code_1",
            fix='write the plan by hand and name the columns with codes: races = ["…"]',
        )
    races = [name for place in range(1, 9) if (name := f"race_code_{place}") in person.names]
    ethnicity = "ethnicity_code" if "ethnicity_code" in person.names else ""
    return Proposal(
        settings={"preset": "ddhc-a-2020", "races": races, "ethnicity": ethnicity},
        reasons={
            "preset": "budgets and thresholds of the 2020 Detailed DHC-A: a start, not a choice",
            "races": "the columns with detailed race codes",
            "ethnicity": "the column with the detailed ethnicity",
        },
        undecided=("codes: without a folder of code lists, Stirred's own invented groups are used",),
    )


# The steps of a run after the census was counted: measure every set, and hold the tables against each other.


def name_sets(sets: Sequence[GroupSet]) -> list[bytes]:
    """Return the region type, level and regions of every set as bytes."""
    return [repr((item.kind, item.level, item.regions)).encode() for item in sets]


def encode_counts(tally: Tally, counts: Sequence[GroupCounts]) -> list[bytes]:
    """Return everything a run read of the census as bytes: the regions of every set, and its counts."""
    found = []
    for name, some in zip(name_sets(tally.sets), counts, strict=True):
        found += [name, some.keys.tobytes(), some.counts.tobytes()]
    return found


@dataclass(frozen=True, slots=True)
class SetPlan:
    """How a set is measured: its stages, and the numbers of iterations that get a total without a first look."""

    item: GroupSet
    stages: Stages
    detailed: NDArray[np.int64]


def plan_sets(sets: Sequence[GroupSet], here: Apportionment, lists: CodeLists) -> list[SetPlan]:
    """Return how every set is measured."""
    lines = {(line.kind, line.level): line for line in here.lines}
    found = []
    for item in sets:
        shown = lists.list_iterations(item.level, fine=item.kind.fine)
        detailed = np.array([number for number, one in enumerate(shown) if one.detailed_only], np.int64)
        found.append(SetPlan(item, here.stages(lines[item.kind, item.level]), detailed))
    return found


def measure_sets(
    plans: Sequence[SetPlan], counts: Sequence[GroupCounts], key: Key, say: Progress
) -> list[tuple[GroupSet, Stages, MeasuredGroups]]:
    """Return every set with its noise and what is published of it."""
    found = []
    for place, (plan, some) in enumerate(zip(plans, counts, strict=True)):
        say("measure", place, len(plans))
        made = measure_groups(plan.item, some, plan.detailed, plan.stages, key)
        found.append((plan.item, plan.stages, made))
    say("measure", len(plans), len(plans))
    return found


def measure_in_parts(
    plans: Sequence[SetPlan], counts: CountsInParts, groups: NDArray[np.int64], key: Key, say: Progress
) -> list[tuple[GroupSet, Stages, MeasuredGroups]]:
    """Return the same with the noise drawn in the parts; ``groups`` is how many of each set (column) a part (row) has."""
    empty = [
        draw_empty(plan.item, int(present), plan.stages, key)
        for plan, present in zip(plans, groups.sum(axis=0), strict=True)
    ]
    kernel = MeasurePersons(
        sets=tuple(plan.item for plan in plans),
        stages=tuple(plan.stages for plan in plans),
        detailed=tuple(plan.detailed for plan in plans),
        empty=tuple(empty),
        before=np.cumsum(groups, axis=0) - groups,
        placed=counts.placed,
        key=key,
    )
    rows = counts.parts.map(kernel, MEASURED_SCHEMA).gather(lambda done, total: say("measure", done, total))
    counts.parts.drop()
    return [(plan.item, plan.stages, unpack_measured(place, rows)) for place, plan in enumerate(plans)]


def check_agreement(tables: Table[str, pa.Table]) -> Check:
    """Check that T1 has the sum of all cells of every group in T2."""
    sums = sum_groups(to_frame(tables["t2"]))
    totals = to_frame(tables["t1"]).select(*T1, "count")
    joined = sums.join(totals, on=list(T1), how="left")
    kept = bool((joined["count"] == joined["sum"]).fill_null(False).all())
    return Check(invariant=Phrase("safetab.check"), kept=kept, numbers=sums.height)


# What the report shows of a run: the noise of every region type and level, and what decides which rows are shown.


def make_exhibits(allotment: Apportionment, tables: Table[str, pa.Table]) -> tuple[Exhibit, ...]:
    """Return the noise with margins of error, and which rows are shown, after a run with their number."""
    return (_show_noise(allotment), _show_selection(allotment, _count_rows(tables)))


def _show_noise(allotment: Apportionment) -> Exhibit:
    columns = [
        Phrase("safetab.exhibit.type"),
        Phrase("safetab.exhibit.level"),
        Phrase("safetab.exhibit.budget"),
        Phrase("safetab.exhibit.deviation"),
        Phrase("safetab.exhibit.margin"),
        Phrase("safetab.exhibit.look"),
    ]
    rows, margins = [], []
    for line in allotment.lines:
        first, second = (
            allotment.noise(line, share) for share in (allotment.first_stage, 1 - allotment.first_stage)
        )
        margin = 0 if line.budget is None else second.cut(CHANCE_ONE_SIDE)
        margins.append((margin, line))
        deviations = [f"{float(noise.variance) ** 0.5:.4g}" for noise in (second, first)]
        paid = "∞" if line.budget is None else str(Budget.of(line.budget))
        rows.append((line.kind.name, line.level, paid, deviations[0], f"± {margin:,}", deviations[1]))
    least, most = (choose(margins, key=lambda pair: pair[0]) for choose in (min, max))
    return Exhibit(
        title=Phrase("safetab.exhibit.title"),
        finding=Phrase(
            "safetab.exhibit.finding",
            least=least[0],
            least_at=_name_line(least[1]),
            most=most[0],
            most_at=_name_line(most[1]),
        ),
        parts=(
            Listing(
                caption=Phrase("safetab.exhibit.caption"), columns=columns, rows=rows, numeric=columns[1:]
            ),
        ),
        note=Phrase("safetab.exhibit.sums"),
        chapter="accuracy",
    )


def _show_selection(allotment: Apportionment, shown: Table[tuple[str, str], int] | None) -> Exhibit:
    columns = [
        Phrase("safetab.exhibit.type"),
        Phrase("safetab.exhibit.level"),
        Phrase("safetab.exhibit.thresholds"),
        Phrase("safetab.exhibit.cut"),
    ]
    rows = []
    for line in allotment.lines:
        cut = allotment.stages(line).cut
        steps = ", ".join(f"{step:,}" for step in line.thresholds)
        hidden: object = Phrase("safetab.exhibit.all_shown") if cut is None else f"{cut:,}"
        rows.append((line.kind.name, line.level, steps, hidden))
    parts = [
        Listing(caption=Phrase("safetab.exhibit.selected"), columns=columns, rows=rows, numeric=columns[1:])
    ]
    if shown is not None:
        names = [Phrase("safetab.exhibit.type"), "t1", "t2"]
        kinds = list(dict.fromkeys(line.kind.name for line in allotment.lines))
        counted = [(kind, shown.get((kind, "t1"), 0), shown.get((kind, "t2"), 0)) for kind in kinds]
        parts.append(
            Listing(caption=Phrase("safetab.exhibit.rows"), columns=names, rows=counted, numeric=names[1:])
        )
    hides = 1 - allotment.suppression if allotment.suppression else Fraction(1)
    return Exhibit(
        title=Phrase("safetab.exhibit.shown"),
        finding=Phrase("safetab.exhibit.suppressed" if allotment.suppression else "safetab.exhibit.nothing_hidden",
                       share=f"{float(hides):g}"),
        parts=tuple(parts),
        note=Phrase("safetab.exhibit.selection"),
        chapter="accuracy",
    )  # fmt: skip


def _name_line(line: Line) -> str:
    return f"{line.kind.name}, {line.level}"


def _count_rows(tables: Table[str, pa.Table]) -> dict[tuple[str, str], int] | None:
    """Return how many rows each table has of each region type; these are published."""
    if "t1" not in tables:
        return None
    found = {}
    for name in ("t1", "t2"):
        column = frame_of(tables[name].select(["region_type"]))["region_type"]
        for kind, number in column.value_counts().iter_rows():
            found[str(kind), name] = int(number)
    return found


# SafeTab-P as a mechanism: count population groups, look at each with noise, publish a total or sex by age (T1, T2).

STATE_TYPE = "STATE"


class SafeTabP(SafeTab):
    """Totals of detailed population groups (T1), and sex by age where a group is large enough (T2).

    >>> SafeTabP().total_budget
    Fraction(618, 125)
    """

    name: ClassVar[str] = "safetab-p"
    config: SafeTabPConfig
    seconds_per_million: ClassVar[float] = 20.0
    conversion: ClassVar[Conversion | None] = SAFETAB_P_CONVERSION

    def check_settings(self) -> None:
        """Refuse settings that cannot be true together."""
        if len(self.config.sexes) != 2:
            raise InputError(
                "sexes are not two levels", why="T2 has a part for each of two", fix='sexes = ["1", "2"]'
            )
        if not self.code_columns:
            raise InputError(
                "no column holds codes", why="groups are found by codes", fix='races = ["race_code_1"]'
            )
        races = len(self.config.races)
        if races > self.config.most_codes:
            raise InputError(
                f"{races} columns of race codes are more than most_codes",
                why="the noise is made for persons with at most that many codes",
                fix=f"most_codes = {races}",
            )
        if not 0 < self.first_stage < 1:
            raise InputError(
                "first_stage lies outside 0 to 1",
                why="both the first look and what follows it need a part of the budget",
                fix='first_stage = "1/10"',
            )
        if not 0 <= self.suppression < 1:
            raise InputError(
                "suppression is not below 1",
                why="no bound hides every row without persons",
                fix='suppression = "0.9999", or "0" to show all',
            )
        _ = self.region_types  # refuses region types that do not exist
        budgets.set_amounts(self.config)

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Return the preset, where persons have detailed codes."""
        return propose(schema)

    @property
    def total_budget(self) -> Fraction | None:
        """Return the budget of all tables, per person added or removed; None is infinite."""
        return self.apportion().total_budget()

    @property
    def first_stage(self) -> Fraction:
        """Return the share of each budget that decides how much detail a group gets."""
        own = self.config.first_stage
        return PRESETS[self.config.preset].first_stage if own is None else Fraction(own)

    @property
    def suppression(self) -> Fraction:
        """Return the least probability that a group without persons is not shown below the states."""
        own = self.config.suppression
        return PRESETS[self.config.preset].suppression if own is None else Fraction(own)

    @property
    def _state(self) -> str:
        return self.region_types[STATE_TYPE].column

    def apportion(self, census: "Census | None" = None) -> Apportionment:
        """Return the measured lines and their budgets; without a census, as if it had every region type."""
        kinds = tuple(self.region_types.values())
        if census is not None:
            kinds = choose_region_types(census, kinds, state=self._state)
        lines = budgets.make_lines(
            kinds,
            budgets.set_amounts(self.config),
            self.lists,
            most_codes=self.config.most_codes,
            noiseless=self.is_noiseless,
        )
        return Apportionment(
            lines=lines,
            definition=self.config.definition,
            first_stage=self.first_stage,
            suppression=self.suppression,
        )

    def parameters(self) -> dict[str, object]:
        """Return every setting as exact JSON; the lists by their digest, wherever they lie."""
        return self.settings() | {"codes": None if self.config.codes is None else self.lists.digest()}

    def identity(self) -> dict[str, object]:
        """Return what the key is bound to: all that decides the law of the release.

        What the promise compares and supposes is left out: it must not change the noise.
        """
        said = {name: value for name, value in self.parameters().items() if name not in ("codes", "preset")}
        lines = [(line.name, str(line.budget), line.thresholds) for line in self.apportion().lines]
        shares = (str(self.first_stage), str(self.suppression))
        return said | {
            "neighbours": "",
            "invariants": "",
            "lists": self.lists.digest(),
            "lines": lines,
            "shares": shares,
        }

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop where columns are missing, where no region type has a budget, or where regions are not public."""
        self._refuse_columns(census)
        if census.schema.geography.areas is not None:
            self._regions(census, engine)

    def _refuse_columns(self, census: "Census") -> None:
        record = census.schema.record(self.config.record)
        known = set(census.columns(record.name))
        if record.linked_to:
            known |= set(census.columns(record.linked_to))
        for name in (*self.code_columns, self.config.sex, self.config.age):
            if name not in known:
                raise InputError(
                    f"{self.config.record} records have no column {name}",
                    why="population groups are counted by detailed codes, sex and age",
                    fix='name the columns: races = […], ethnicity = "", sex = "…", age = "…"',
                )
        if not self.apportion(census).lines:
            raise InputError(
                "no table can be made of this census",
                why="it has no column for any region type that has a budget",
                fix='name the column of a region type: regions = { STATE = "…" }',
            )

    def _regions(self, census: "Census", engine: Engine | None) -> Regions:
        kinds = tuple(dict.fromkeys(line.kind for line in self.apportion(census).lines))
        return find_regions(census, kinds, state=self._state, island=self.config.puerto_rico, engine=engine)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the zCDP or pure DP promise for persons; no record is read for it."""
        require_inputs(census, engine)
        here = self.apportion(census)
        there = {line.kind.name for line in here.lines}
        known = geographic_columns(census)
        absent = tuple(
            dict.fromkeys(
                line.kind.name
                for line in self.apportion().lines
                if line.kind.name not in there and (not line.kind.island or self._state in known)
            )
        )
        return budgets.build_specification(
            census,
            here,
            self.config.record,
            self.config.neighbours,
            absent,
            stated=self.config.invariants,
            released=self.views(census),
        )

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        state: Path | None = None,  # noqa: ARG002
        progress: Progress | None = None,
    ) -> Release:
        """Count, measure, publish; with ``out`` also the Bureau's files."""
        census = check_inputs(census, key, engine)
        self._refuse_columns(census)
        promise = self.specification(census)
        lists, here = self.lists, self.apportion(census)
        say = progress or silent
        say("tabulate", 0, 1)
        tally = self.tally(census, engine)
        counts = count_groups(census, tally, record_type=self.config.record, engine=engine)
        say("tabulate", 1, 1)
        reader, plans = key.bind("reader"), plan_sets(tally.sets, here, lists)
        identity = json.dumps(self.identity(), sort_keys=True)
        if isinstance(counts, CountsInParts):
            digest, groups = counts.digest(reader, name_sets(tally.sets))
            found = measure_in_parts(plans, counts, groups, key.bind(self.name, identity, digest), say)
        else:
            digest = reader.digest(*encode_counts(tally, counts))
            found = measure_sets(plans, counts, key.bind(self.name, identity, digest), say)
        tables = make_tables(found, self.config.sexes, clamp=self.config.clamp, digest=lists.digest())
        files = write_files(tables, out, lists.digest()) if out is not None else ()
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables=tables,
            files=files,
            settings=self.settings(),
            checks=(check_agreement(tables),),
            ledger=budgets.build_ledger(here, self.config.neighbours, promise.budget, self.name),
            notes=(Phrase("safetab.note.noiseless"),) if self.is_noiseless else (),
            input_digest=hashlib.sha256(digest).hexdigest(),
            private=key.private and not self.is_noiseless,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
        )

    def tally(self, census: "Census", engine: Engine | None = None) -> Tally:
        """Return what is counted: the groups of every region, by sex and age."""
        here, lists = self.apportion(census), self.lists
        known = self._regions(census, engine)
        maps = make_group_maps(lists, self.config.most_codes)
        sets = tuple(
            GroupSet(line.kind, line.level, known.of(line.kind), maps[line.level, line.kind.fine])
            for line in here.lines
            if known.of(line.kind)
        )
        cells = SexByAge(self.config.sex, tuple(self.config.sexes), self.config.age)
        return Tally(
            sets=sets,
            regions=known,
            races=tuple(self.config.races),
            ethnicity=self.config.ethnicity,
            cells=cells,
        )

    def views(self, census: "Census") -> Views:
        """Return the codes of race and ethnicity, which every table counts; sex and age for larger groups."""
        return (make_view(census.domain, self.config.record, self.code_columns),)

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:  # noqa: ARG002
        """Return the variables of T1 and T2, which are no columns of the census."""
        return {self.config.record: T2}

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return T1 or T2 with the variance, standard error and 95 % interval of every row."""
        for name, columns in (("t1", T1), ("t2", T2)):
            if set(by) == set(columns) and name in release.tables and not weight:
                return release.tables[name].select([*columns, *FIGURE_COLUMNS])
        return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)

    def list_own_tables(self, release: Release) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002
        """Return T1 and T2 with their variables."""
        return {"t1": T1, "t2": T2}

    def details(self) -> Mapping[str, object]:
        """Return budget, noise and bounds of every region type and level."""
        here = self.apportion()
        return {
            "lines": {
                line.name: {
                    "budget": "inf" if line.budget is None else str(line.budget),
                    "sensitivity": line.sensitivity,
                    "variance": float(here.stages(line).second.variance),
                    "first_variance": float(here.stages(line).first.variance),
                    "shown_above": here.stages(line).cut,
                }
                for line in here.lines
            }
        }

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return noise and margins of error, and what decides which rows are shown."""
        here = self.apportion()
        if release is not None and release.ledger is not None:
            kinds = set(release.tables["t1"].column("region_type").to_pylist())
            here = replace(
                here, lines=tuple(line for line in here.lines if line.kind.name in kinds) or here.lines
            )
        return make_exhibits(here, {} if release is None else release.tables)

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a count is not 0, in the line with the least noise."""
        here = self.apportion(census)
        return smallest_effect({line.name: here.stages(line).second.change for line in here.lines})

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """Return the noise of both stages of every line, as a release draws it."""
        del engine
        here = self.apportion(census)
        return here.sample_lines(key, budgets.PROVED_FACTOR if self.config.neighbours == "changed" else 1)
