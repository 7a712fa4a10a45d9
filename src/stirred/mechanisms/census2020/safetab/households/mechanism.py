"""Define SafeTab-H: noisy counts of households by type and tenure for the groups that SafeTab-P published."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import polars as pl
import pyarrow as pa

from stirred.census.schema import Schema
from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.errors import InputError, PlanError
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, Mechanism, check_inputs, require_inputs, totals_to_try
from stirred.mechanisms.census2020.config import ETHNICITY, RACES, SafeTabHConfig
from stirred.mechanisms.census2020.factors import SAFETAB_H_CONVERSION
from stirred.mechanisms.census2020.noise import CellNoise, Definition
from stirred.mechanisms.census2020.safetab.groups import (
    CodeLists,
    GroupCounts,
    GroupSet,
    Regions,
    Tally,
    geographic_columns,
    make_group_maps,
    set_columns,
)
from stirred.mechanisms.census2020.safetab.households.budgets import (
    CHANGED_FACTOR,
    HouseholderSource,
    KnownInvariants,
    NeighbourKind,
    build_ledger,
    build_specification,
    find_cells,
    find_source,
    larger_sum,
    list_places,
    parse_exact,
    require_settings,
    settle_budgets,
    write_notes,
)
from stirred.mechanisms.census2020.safetab.households.tables import (
    LEVELS,
    TABLES,
    VARIABLES,
    GroupTotals,
    HouseholdSettings,
    Measurement,
    Place,
    PublishedGroups,
    TypeAndTenure,
    cell_column,
    check_rows,
    count_households,
    half_width,
    is_made,
    make_table,
    measure_rows,
    read_totals,
    require_there,
    write_files,
)
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, smallest_effect
from stirred.mechanisms.exhibits import Exhibit, Listing, format_value
from stirred.mechanisms.proposal import Proposal, find_root, list_areas
from stirred.mechanisms.release import Release, format_table
from stirred.spec import Specification
from stirred.spec.conversions import Conversion
from stirred.spec.invariants import Views, make_view

if TYPE_CHECKING:
    from stirred.census import Census, Schema


# Settings of SafeTab-H that the schema of a census suggests.

TOTALS_LABEL = "safetab-p"  # the label of the [[mechanism]] that makes them, unless it has another


def propose(schema: Schema) -> Proposal:
    """Return the published product of 2020, where records have detailed codes."""
    list_areas(schema, find_root(schema))
    coded = [record for record in schema.records if "race_code_1" in record.names]
    if not coded:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts households by detailed race and ethnicity, and no record type has race_code_1",
            fix="write the plan by hand and name the columns: races = [ … ]",
        )
    return Proposal(
        settings={"totals": TOTALS_LABEL, "preset": "ddhc-b-2020", "definition": "zcdp"},
        reasons={
            "totals": "what SafeTab-P publishes decides which groups are shown; its [[mechanism]] stands before this one",
            "preset": "the budgets and thresholds of the Detailed DHC-B of 2020",
            "definition": "discrete Gaussian noise, as in 2020",
        },
        undecided=("which code lists to use: codes = a folder, or Stirred's own invented groups",),
    )


# What the report shows of SafeTab-H: its noise by table, region type and level, and how much detail the groups have.


def show_noise(
    settings: HouseholdSettings, noises: Mapping[Place, CellNoise], release: Release | None = None
) -> Exhibit:
    """Return the exhibit of the noise of every count that has a budget, or that a release has."""
    there = None if release is None else _list_region_types(release)
    rows = [
        (
            table,
            name,
            level,
            write_amount(settings.budgets[table, name, level]),
            round(float(noise.variance) ** 0.5, 4),
            int(half_width(noise, 1)),
            ", ".join(f"{cut:,}" for cut in settings.thresholds.get((table, name, level), ())),
        )
        for (table, name, level), noise in noises.items()
        if there is None or (table, name) in there
    ]
    spread = [row[4] for row in rows] or [0.0]
    return Exhibit(
        title=Phrase("safetab_h.exhibit.noise"),
        finding=Phrase(
            "safetab_h.exhibit.finding", least=format_value(min(spread)), most=format_value(max(spread))
        ),
        parts=(
            Listing(
                caption=Phrase("safetab_h.exhibit.caption"),
                columns=(
                    Phrase("safetab_h.exhibit.table"),
                    Phrase("safetab_h.exhibit.region_type"),
                    Phrase("safetab_h.exhibit.level"),
                    Phrase("safetab_h.exhibit.budget"),
                    Phrase("safetab_h.exhibit.deviation"),
                    Phrase("safetab_h.exhibit.margin"),
                    Phrase("safetab_h.exhibit.thresholds"),
                ),
                rows=rows,
                numeric=(Phrase("safetab_h.exhibit.deviation"), Phrase("safetab_h.exhibit.margin")),
            ),
        ),
        note=Phrase("safetab_h.exhibit.note"),
        chapter="accuracy",
    )


def write_amount(amount: Fraction) -> str:
    """Return a budget as people write it: a decimal where it is one, else a fraction.

    >>> write_amount(Fraction("0.006915")), write_amount(Fraction(1, 3))
    ('0.006915', '1/3')
    """
    decimal = format(Decimal(amount.numerator) / Decimal(amount.denominator), "f")
    return decimal if Fraction(decimal) == amount else str(amount)


def _list_region_types(release: Release) -> set[tuple[str, str]]:
    """Return the tables of a release with the region types that each has."""
    return {
        (table, str(name))
        for table in TABLES
        if table.lower() in release.tables
        for name in release.tables[table.lower()]["region_type"].unique().to_pylist()
    }


def show_groups(release: Release) -> Exhibit:
    """Return the exhibit of groups by statistics level, with the number of negative counts."""
    rows, groups, negative = [], 0, 0
    for table in TABLES:
        grid = release.tables.get(table.lower())
        if grid is None:
            continue
        frame = pl.DataFrame(pl.from_arrow(grid))
        detail = frame.group_by(VARIABLES).agg(pl.col(cell_column(table)).len().alias("cells"))
        for level in LEVELS[table]:
            number = int((detail["cells"] == len(level.published_cells)).sum())
            rows.append((level.file, len(level.published_cells), number))
        groups = max(groups, detail.height)
        negative += int((frame["count"] < 0).sum())
    return Exhibit(
        title=Phrase("safetab_h.exhibit.groups"),
        finding=Phrase("safetab_h.exhibit.shown", groups=groups, negative=negative),
        parts=(
            Listing(
                caption=Phrase("safetab_h.exhibit.files"),
                columns=(
                    Phrase("safetab_h.exhibit.file"),
                    Phrase("safetab_h.exhibit.cells"),
                    Phrase("safetab_h.exhibit.number"),
                ),
                rows=rows,
                numeric=(Phrase("safetab_h.exhibit.cells"), Phrase("safetab_h.exhibit.number")),
            ),
        ),
        chapter="method",
    )


# SafeTab-H as a mechanism: noisy counts of households by type and tenure for the groups that SafeTab-P published.

PATH_SETTINGS = ("totals", "codes")


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeTabH(Mechanism):
    """Households of each detailed population group by type (T3) and by tenure (T4), driven by SafeTab-P's T1.

    >>> SafeTabH().total_budget
    Fraction(4447651, 500000)
    """

    name: ClassVar[str] = "safetab-h"
    Config: ClassVar[type[MechanismConfig]] = SafeTabHConfig
    conversion: ClassVar[Conversion | None] = SAFETAB_H_CONVERSION
    seconds_per_million: ClassVar[float] = 10.0
    bytes_per_record: ClassVar[int] = 200

    totals: Path | None = None
    preset: str = "ddhc-b-2020"
    codes: Path | None = None
    definition: Definition = "zcdp"
    budget: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, str] = field(default_factory=dict)
    total: str | Fraction | None = None
    epsilon: str | None = None
    clamp: bool = False
    most_codes: int = 8
    neighbours: NeighbourKind = "added-or-removed"
    invariants: KnownInvariants = "housing-units"
    races: Sequence[str] = RACES
    ethnicity: str = ETHNICITY
    household_type: str = "type"
    types: Mapping[str, str] = field(default_factory=dict)
    tenure: str = "tenure"
    tenures: Mapping[str, str] = field(default_factory=dict)
    householder: str = "relationship"
    householders: Sequence[str] = ("0", "1")
    regions: Mapping[str, str] = field(default_factory=dict)
    puerto_rico: str = "72"

    def __post_init__(self) -> None:
        require_settings({name: getattr(self, name) for name in SafeTabHConfig.model_fields}, PATH_SETTINGS)
        for name in ("races", "householders"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name in PATH_SETTINGS:
            if getattr(self, name) is not None:
                object.__setattr__(self, name, Path(getattr(self, name)))
        self.exact_settings  # noqa: B018 - refuses settings that contradict themselves

    @classmethod
    def of(cls, config: MechanismConfig) -> Self:
        """Return the mechanism with these settings; two of them are paths."""
        settings = {name: getattr(config, name) for name in type(config).model_fields}
        for name in PATH_SETTINGS:
            settings[name] = None if settings[name] is None else Path(settings[name])
        return cls(**settings)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Return the published product of 2020, where the census has detailed codes."""
        return propose(schema)

    @property
    def exact_settings(self) -> HouseholdSettings:
        """Return budgets and thresholds as exact numbers."""
        total = None if self.total is None else parse_exact("total", self.total)
        return settle_budgets(self.preset, self.budget, self.thresholds, total)

    @property
    def is_noiseless(self) -> bool:
        """Return whether the budget is infinite: no noise, no protection."""
        return self.epsilon == "inf"

    @property
    def total_budget(self) -> Fraction:
        """Return the budget of all tables, counted per household added or removed."""
        return larger_sum(self.exact_settings.budgets)

    @property
    def lists(self) -> CodeLists:
        """Return the code lists."""
        return CodeLists.own() if self.codes is None else CodeLists.read(self.codes)

    def parameters(self) -> dict[str, object]:
        """Return every setting; totals and lists by the names of their files, wherever these lie."""
        named = {name: None if (path := getattr(self, name)) is None else path.name for name in PATH_SETTINGS}
        return self.settings() | named

    def identity(self) -> dict[str, object]:
        """Return what the key is bound to: every setting that decides a count or its noise."""
        own = {name: value for name, value in self.parameters().items() if name not in PATH_SETTINGS}
        return own | {"lists": self.lists.digest()}

    def settings(self) -> dict[str, object]:
        """Return the keys of a [[mechanism]]."""
        found: dict[str, object] = {}
        for name in SafeTabHConfig.model_fields:
            value = getattr(self, name)
            if isinstance(value, Path | Fraction):
                value = str(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            elif isinstance(value, list | tuple):
                value = list(value)
            found[name] = value
        return found

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:  # noqa: ARG002
        """Stop if the totals are missing or were made with other lists, or if nothing can be counted."""
        if self.totals is None:
            raise InputError(
                "SafeTab-H needs the totals of SafeTab-P",
                why="they decide which groups are shown and with how much detail",
                fix="--totals a packet of stirred safetab-p, its table t1, or a pop-group-totals.txt",
            )
        require_there(self.totals)
        if not self._places(census):
            raise InputError(
                "there is nothing to tabulate",
                why="no table with a budget has the columns that it needs in this census",
                fix="give budgets of your own, or name the columns: --household-type, --tenure, --regions",
            )
        if is_made(self.totals):
            self._read_totals()

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the promise per household; neither a record nor the totals are read for it."""
        require_inputs(census, engine)
        return build_specification(
            census,
            self._budgets(census),
            definition=self.definition,
            compared=self.neighbours,
            known=self.invariants,
            record_type=self._source(census).record_type,
            notes=write_notes(self.exact_settings.budgets, self._places(census)),
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
        """Count, add noise, publish; with ``out`` the Bureau's files are written there."""
        census = check_inputs(census, key, engine)
        self.refuse(census)
        promise = self.specification(census)
        totals = self._read_totals()
        groups = self._groups(census, totals)
        cells, source = self._cells(census), self._source(census)
        if progress is not None:
            progress("households", 0, 2)
        counts = count_households(
            engine.census(census) if engine else census,
            Tally(
                sets=tuple(item.item for item in groups),
                regions=Regions(
                    {}, "state" if "state" in geographic_columns(census) else "", self.puerto_rico
                ),
                races=source.races,
                ethnicity=source.ethnicity,
                cells=cells,
                where=source.where,
            ),
            record_type=source.record_type,
            link=source.link,
            engine=engine,
        )
        if progress is not None:
            progress("noise", 1, 2)
        own = self._bind_key(key, totals, counts)
        measurements = self._measurements(census, groups)
        rows = measure_rows(groups, counts, cells, measurements, own)
        noises = {place: made.noise for place, made in measurements.items()}
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables={table.lower(): make_table(table, frame, noises) for table, frame in rows.items()},
            files=write_files(out, rows) if out is not None else (),
            checks=check_rows(rows, totals),
            ledger=build_ledger(self._budgets(census), self.definition, self.neighbours, promise.budget),
            settings=self.settings(),
            notes=self._describe_run(totals),
            input_digest=own.digest(b"input").hex(),
            private=key.private and not self.is_noiseless,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
        )

    def views(self, census: "Census") -> Views:
        """Return the householder's codes of race and ethnicity, which every table counts."""
        names = (*self.races, *filter(None, [self.ethnicity]))
        return (make_view(census.domain, self._source(census).record_type, names),)

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:
        """Return the variables of T3 and T4, which are no columns of the census."""
        tables = {table for table, _, _ in self._places(census)}
        cells = tuple(cell_column(table) for table in TABLES if table in tables)
        return {self.record_type: (*VARIABLES, *cells)}

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return T3 or T4 as published; refuse other variables, because regions and cells overlap."""
        for table in TABLES:
            grid = release.tables.get(table.lower())
            if grid is not None and not weight and set(by) == {*VARIABLES, cell_column(table)}:
                found = format_table(
                    pl.DataFrame(pl.from_arrow(grid)).select(*by, *_figure_columns(grid, by)), by
                )
                return found.replace_schema_metadata(grid.schema.metadata)
        return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)

    def details(self) -> Mapping[str, object]:
        """Return budgets by table, region type and level."""
        return {
            "budgets": {
                f"{table}-{name}-{level}": str(amount)
                for (table, name, level), amount in self.exact_settings.budgets.items()
                if amount
            }
        }

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return the noise of every table, and how many groups have how much detail."""
        made = self._noises(self.exact_settings.budgets)
        noise = () if self.is_noiseless else (show_noise(self.exact_settings, made, release),)
        return noise if release is None else (*noise, show_groups(release))

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total budget."""
        if self.is_noiseless:
            return ()
        return (
            Knob(
                name="total",
                effect="a larger total is a larger budget and has a smaller error",
                settings=totals_to_try(self.total_budget),
                turned=lambda total: replace(self, total=total),
            ),
        )

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a count is not 0, in the table with the least noise."""
        paid = {} if self.is_noiseless else self._budgets(census) or {}
        return smallest_effect(
            {"-".join(map(str, at)): noise.change for at, noise in self._noises(paid).items()}
        )

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """Return the noise of every table, region type and level, as a release draws it."""
        del engine
        paid = {} if self.is_noiseless else self._budgets(census) or {}
        factor = CHANGED_FACTOR if self.neighbours == "changed" else 1
        noises = self._noises(paid)
        return [noises[at].sample_noise("-".join(map(str, at)), key, paid[at] * factor) for at in noises]

    def _source(self, census: "Census") -> HouseholderSource:
        return find_source(census, self.races, self.ethnicity, self.householder, self.householders)

    def _cells(self, census: "Census") -> TypeAndTenure:
        record = self._source(census).record_type
        return find_cells(census, record, (self.household_type, self.tenure), self.types, self.tenures)

    def _places(self, census: "Census") -> tuple[Place, ...]:
        kinds = set_columns(self.regions)
        return list_places(census, self.exact_settings, kinds, self._cells(census))

    def _budgets(self, census: "Census") -> dict[Place, Fraction] | None:
        if self.is_noiseless:
            return None
        return {place: self.exact_settings.budgets[place] for place in self._places(census)}

    def _noises(self, budgets: Mapping[Place, Fraction]) -> dict[Place, CellNoise]:
        """Return the noise of every table, region type and level that has a budget."""
        lists, kinds = self.lists, set_columns(self.regions)
        found = {}
        for place, amount in budgets.items():
            if amount > 0:
                _, name, level = place
                touched = lists.sensitivity(level, fine=kinds[name].fine, most_codes=self.most_codes)
                budget = None if self.is_noiseless else amount
                found[place] = CellNoise.of(self.definition, budget, touched)
        return found

    def _read_totals(self) -> GroupTotals:
        """Read the totals, and refuse those made with other code lists."""
        if self.totals is None:
            raise InputError(
                "SafeTab-H needs the totals of SafeTab-P", why="none are given", fix="totals=Path(…)"
            )
        totals = read_totals(self.totals)
        if totals.lists and totals.lists != self.lists.digest():
            raise InputError(
                "the totals were made with other code lists",
                why="the digest of the lists that they carry is not that of these lists, so groups would not mean the same",
                fix="--codes the folder that SafeTab-P was given",
            )
        return totals

    def _groups(self, census: "Census", totals: GroupTotals) -> list[PublishedGroups]:
        """Return the groups of the totals, by region type and level; illegal iterations are in none."""
        lists, kinds = self.lists, set_columns(self.regions)
        maps = make_group_maps(lists, self.most_codes)
        found = []
        for name, level in dict.fromkeys((name, level) for _, name, level in self._places(census)):
            kind = kinds[name]
            mapping = maps[level, kind.fine]
            regions, numbers, counts = totals.of(name, mapping.codes)
            if len(numbers):
                found.append(PublishedGroups(GroupSet(kind, level, regions, mapping), numbers, counts))
        return found

    def _measurements(self, census: "Census", groups: Sequence[PublishedGroups]) -> dict[Place, Measurement]:
        settings, places = self.exact_settings, self._places(census)
        noises = self._noises({place: settings.budgets[place] for place in places})
        there = {(item.item.kind.name, item.item.level) for item in groups}
        return {
            place: Measurement(place[0], settings.thresholds.get(place, ()), noises[place], self.clamp)
            for place in places
            if place[1:] in there
        }

    def _bind_key(self, key: Key, totals: GroupTotals, counts: Sequence[GroupCounts]) -> Key:
        """Return the key of this run alone, bound to its settings, its totals and its counts."""
        told = [part for item in counts for part in (item.keys.tobytes(), item.counts.tobytes())]
        identity = json.dumps(self.identity(), sort_keys=True)
        return key.bind(self.name, identity, totals.digest(), key.digest(*told))

    def _describe_run(self, totals: GroupTotals) -> tuple[str, ...]:
        """Return notes on this run: totals without a digest of their lists, and a run without noise."""
        notes: list[str] = [] if totals.lists else [Phrase("safetab_h.note.lists")]
        if self.is_noiseless:
            notes.append(Phrase("safetab_h.note.noiseless"))
        return tuple(notes)


def _figure_columns(grid: pa.Table, by: Sequence[str]) -> list[str]:
    return [name for name in grid.column_names if name not in by]
