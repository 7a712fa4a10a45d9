"""Define SafeTab-H: noisy counts of households by type and tenure for the groups that SafeTab-P published."""

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import pyarrow as pa

from stirred.census.schema import Schema
from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.errors import InputError, PlanError
from stirred.languages import Phrase
from stirred.mechanisms.base import Mechanism, check_inputs, require_inputs
from stirred.mechanisms.census2020.config import SafeTabHConfig
from stirred.mechanisms.census2020.factors import SAFETAB_H_CONVERSION
from stirred.mechanisms.census2020.noise import CellNoise
from stirred.mechanisms.census2020.safetab.base import ProductSettings, SafeTab, larger_sum
from stirred.mechanisms.census2020.safetab.groups import (
    CountsInParts,
    GroupCounts,
    GroupSet,
    Regions,
    Tally,
    geographic_columns,
    make_group_maps,
)
from stirred.mechanisms.census2020.safetab.households.budgets import (
    CHANGED_FACTOR,
    HouseholderSource,
    build_ledger,
    build_specification,
    find_cells,
    find_source,
    list_places,
    settle_budgets,
    write_notes,
)
from stirred.mechanisms.census2020.safetab.households.tables import (
    LEVELS,
    TABLES,
    VARIABLES,
    GroupTotals,
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
    measure_in_parts,
    measure_rows,
    read_totals,
    require_there,
    write_files,
)
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, smallest_effect
from stirred.mechanisms.exhibits import Exhibit, Listing, format_value
from stirred.mechanisms.proposal import Proposal, find_root, list_areas
from stirred.mechanisms.release import Release, format_table
from stirred.spec import Specification
from stirred.spec.conversions import Conversion
from stirred.spec.invariants import Views, make_view

if TYPE_CHECKING:
    from stirred.census import Census


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
    settings: ProductSettings[Place], noises: Mapping[Place, CellNoise], release: Release | None = None
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


class SafeTabH(SafeTab):
    """Households of each detailed population group by type (T3) and by tenure (T4), driven by SafeTab-P's T1.

    >>> SafeTabH().total_budget
    Fraction(4447651, 500000)
    """

    name: ClassVar[str] = "safetab-h"
    config: SafeTabHConfig
    conversion: ClassVar[Conversion | None] = SAFETAB_H_CONVERSION
    seconds_per_million: ClassVar[float] = 10.0

    def check_settings(self) -> None:
        """Refuse settings that contradict themselves."""
        _ = self.exact_settings

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Return the published product of 2020, where the census has detailed codes."""
        return propose(schema)

    @property
    def exact_settings(self) -> ProductSettings[Place]:
        """Return budgets and thresholds as exact numbers."""
        return settle_budgets(self.config)

    @property
    def total_budget(self) -> Fraction | None:
        """Return the budget of all tables, per household added or removed; None is infinite."""
        return None if self.is_noiseless else larger_sum(self.exact_settings.budgets)

    def parameters(self) -> dict[str, object]:
        """Return every setting; totals and lists by the names of their files, wherever these lie."""
        found = self.settings()
        return found | {
            name: None if found[name] is None else Path(str(found[name])).name for name in PATH_SETTINGS
        }

    def identity(self) -> dict[str, object]:
        """Return what the key is bound to: every setting that decides a count or its noise."""
        own = {name: value for name, value in self.parameters().items() if name not in PATH_SETTINGS}
        return own | {"lists": self.lists.digest()}

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:  # noqa: ARG002
        """Stop if the totals are missing or were made with other lists, or if nothing can be counted."""
        if self.config.totals is None:
            raise InputError(
                "SafeTab-H needs the totals of SafeTab-P",
                why="they decide which groups are shown and with how much detail",
                fix="--totals a packet of stirred safetab-p, its table t1, or a pop-group-totals.txt",
            )
        require_there(Path(self.config.totals))
        if not self._places(census):
            raise InputError(
                "there is nothing to tabulate",
                why="no table with a budget has the columns that it needs in this census",
                fix="give budgets of your own, or name the columns: --household-type, --tenure, --regions",
            )
        if is_made(Path(self.config.totals)):
            self._read_totals()

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the promise per household; neither a record nor the totals are read for it."""
        require_inputs(census, engine)
        return build_specification(
            census,
            self._budgets(census),
            definition=self.config.definition,
            compared=self.config.neighbours,
            known=self.config.invariants,
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
                    {}, "state" if "state" in geographic_columns(census) else "", self.config.puerto_rico
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
        if isinstance(counts, CountsInParts):
            rows = measure_in_parts(groups, counts, cells, measurements, own)
        else:
            rows = measure_rows(groups, counts, cells, measurements, own)
        noises = {place: made.noise for place, made in measurements.items()}
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables={table.lower(): make_table(table, frame, noises) for table, frame in rows.items()},
            files=write_files(out, rows) if out is not None else (),
            checks=check_rows(rows, totals),
            ledger=build_ledger(
                self._budgets(census), self.config.definition, self.config.neighbours, promise.budget
            ),
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
        return (make_view(census.domain, self._source(census).record_type, self.code_columns),)

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
        factor = CHANGED_FACTOR if self.config.neighbours == "changed" else 1
        noises = self._noises(paid)
        return [noises[at].sample_noise("-".join(map(str, at)), key, paid[at] * factor) for at in noises]

    def _source(self, census: "Census") -> HouseholderSource:
        return find_source(
            census,
            self.config.races,
            self.config.ethnicity,
            self.config.householder,
            self.config.householders,
        )

    def _cells(self, census: "Census") -> TypeAndTenure:
        record = self._source(census).record_type
        return find_cells(
            census,
            record,
            (self.config.household_type, self.config.tenure),
            self.config.types,
            self.config.tenures,
        )

    def _places(self, census: "Census") -> tuple[Place, ...]:
        return list_places(census, self.exact_settings, self.region_types, self._cells(census))

    def _budgets(self, census: "Census") -> dict[Place, Fraction] | None:
        if self.is_noiseless:
            return None
        return {place: self.exact_settings.budgets[place] for place in self._places(census)}

    def _noises(self, budgets: Mapping[Place, Fraction]) -> dict[Place, CellNoise]:
        """Return the noise of every table, region type and level that has a budget."""
        lists, kinds = self.lists, self.region_types
        found = {}
        for place, amount in budgets.items():
            if amount > 0:
                _, name, level = place
                touched = lists.sensitivity(level, fine=kinds[name].fine, most_codes=self.config.most_codes)
                budget = None if self.is_noiseless else amount
                found[place] = CellNoise.of(self.config.definition, budget, touched)
        return found

    def _read_totals(self) -> GroupTotals:
        """Read the totals, and refuse those made with other code lists."""
        if self.config.totals is None:
            raise InputError(
                "SafeTab-H needs the totals of SafeTab-P", why="none are given", fix="totals=Path(…)"
            )
        totals = read_totals(Path(self.config.totals))
        if totals.lists and totals.lists != self.lists.digest():
            raise InputError(
                "the totals were made with other code lists",
                why="the digest of the lists that they carry is not that of these lists, so groups would not mean the same",
                fix="--codes the folder that SafeTab-P was given",
            )
        return totals

    def _groups(self, census: "Census", totals: GroupTotals) -> list[PublishedGroups]:
        """Return the groups of the totals, by region type and level; illegal iterations are in none."""
        lists, kinds = self.lists, self.region_types
        maps = make_group_maps(lists, self.config.most_codes)
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
            place: Measurement(place[0], settings.thresholds.get(place, ()), noises[place], self.config.clamp)
            for place in places
            if place[1:] in there
        }

    def _bind_key(self, key: Key, totals: GroupTotals, counts: Sequence[GroupCounts] | CountsInParts) -> Key:
        """Return the key of this run alone, bound to its settings, its totals and its counts."""
        if isinstance(counts, CountsInParts):
            digest, _ = counts.digest(key)
        else:
            digest = key.digest(
                *(part for one in counts for part in (one.keys.tobytes(), one.counts.tobytes()))
            )
        identity = json.dumps(self.identity(), sort_keys=True)
        return key.bind(self.name, identity, totals.digest(), digest)

    def _describe_run(self, totals: GroupTotals) -> tuple[str, ...]:
        """Return notes on this run: totals without a digest of their lists, and a run without noise."""
        notes: list[str] = [] if totals.lists else [Phrase("safetab_h.note.lists")]
        if self.is_noiseless:
            notes.append(Phrase("safetab_h.note.noiseless"))
        return tuple(notes)


def _figure_columns(grid: pa.Table, by: Sequence[str]) -> list[str]:
    return [name for name in grid.column_names if name not in by]
