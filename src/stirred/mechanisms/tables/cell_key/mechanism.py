"""Define the cell key method as a mechanism: tables with bounded noise that depends on who is in a cell."""

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from stirred.census.schema import Schema
from stirred.chance import Key
from stirred.engine import Engine, Flow
from stirred.errors import InputError, PlanError
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, require_inputs
from stirred.mechanisms.contents import MAX_OUTPUTS, Content, Law, Row, make_content, rows_of
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit, Listing, Series
from stirred.mechanisms.proposal import Proposal, find_root
from stirred.mechanisms.release import BYTES_PER_VALUE, Release, format_table
from stirred.mechanisms.tables.base import MadeTables, RecordTables, name_table, propose_tables, read_records
from stirred.mechanisms.tables.cell_key.cells import (
    COUNT,
    KeyedCells,
    RecordKeys,
    ShownCells,
    TotalCells,
    count_keyed_cells,
    find_key_column,
    total_cells,
)
from stirred.mechanisms.tables.cell_key.perturbation import (
    UNITS_PER_ONE,
    Flex,
    IntervalTable,
    MagnitudeNoise,
    Perturbation,
    design_table,
    estimate_counts,
    find_smallest_shown,
    make_magnitude_table,
    read_table,
    to_number,
)
from stirred.mechanisms.tables.config import CellKeyConfig
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.census import Census


# The exact law of one table of perturbed counts: cells are disjoint, so their keys are independent and uniform.

COUNT_COLUMN = "count"


def enumerate_table(
    counts: pa.Table, by: Sequence[str], perturbation: Perturbation, *, name: str, threshold: int
) -> Law | None:
    """Return the law of everything that one table may show, or None where there are too many outputs.

    A key differs from uniform by less than its modulus / 2⁵³, which is left out here.
    """
    frame = frame_of(counts)
    numbers = frame[COUNT_COLUMN].to_list()
    cells = rows_of(frame.select(list(by))) if by else [()] * len(numbers)
    options = [
        _enumerate_cell(cell, number, by, perturbation, threshold)
        for cell, number in zip(cells, numbers, strict=True)
    ]
    if prod(len(option) for option in options) > MAX_OUTPUTS:
        return None
    found: dict[tuple[Row, ...], Fraction] = {(): Fraction(1)}
    for option in options:
        found = {
            (*rows, *row): chance * more for rows, chance in found.items() for row, more in option.items()
        }
    law: dict[Content, Fraction] = {}
    for rows, chance in found.items():
        content = make_content({name: rows})
        law[content] = law.get(content, Fraction(0)) + chance
    return law


def _enumerate_cell(
    cell: Row, number: int, by: Sequence[str], perturbation: Perturbation, threshold: int
) -> dict[tuple[Row, ...], Fraction]:
    """Return the law of everything that one cell may show: its row with a count, or nothing."""
    reach = int(perturbation.largest)
    noise = np.arange(-reach, reach + 1)
    chances = perturbation.chance(np.full(len(noise), number), noise)
    names = sorted([*by, COUNT_COLUMN])
    values = dict(zip(sorted(by), cell, strict=True))
    found: dict[tuple[Row, ...], Fraction] = {}
    for value, chance in zip((number + noise).tolist(), chances.tolist(), strict=True):
        if chance:
            row = tuple(str(value) if name == COUNT_COLUMN else values[name] for name in names)
            key = (row,) if value >= max(threshold, 1) else ()
            found[key] = found.get(key, Fraction(0)) + Fraction(chance).limit_denominator(UNITS_PER_ONE)
    return found


# What a report says about the cell key method: the law of its noise, and what it does not promise.


def make_exhibits(
    table: Perturbation, release: "Release | None", *, secret: bool, continues: bool
) -> Sequence[Exhibit]:
    """Return the noise by count and the limits of the method; the noise of a ``secret`` table is left out."""
    parts = (_show_law(table),) if not secret and isinstance(table, IntervalTable) else ()
    finding = Phrase("cell_key.noise.finding")
    if release is not None:
        number = sum(one.num_rows for one in release.tables.values())
        finding = Phrase("cell_key.noise.shown", number=number)
    return (
        Exhibit(
            title=Phrase("cell_key.noise.title"),
            finding=finding,
            parts=(*parts, _list_errors(table)),
            note=Phrase("cell_key.noise.note"),
            chapter="method",
        ),
        Exhibit(
            title=Phrase("cell_key.limits.title"),
            finding=Phrase("cell_key.limits.continues" if continues else "cell_key.limits.finding"),
            chapter="risk",
        ),
    )


def _show_law(table: IntervalTable) -> Series:
    chosen = [at for at in table.classes() if at in (1.0, 2.0, 3.0, table.classes()[-1])]
    last = table.classes()[-1]
    names = {
        at: Phrase("cell_key.law.from" if at == last else "cell_key.law.count", count=int(at))
        for at in chosen
    }
    rows = [
        {"noise": float(value), "chance": float(chance), "count": names[at]}
        for at in chosen
        for value, chance in zip(table.rows[float(at)].values, table.rows[float(at)].chances, strict=True)
    ]
    return Series(
        name="cell-key-noise",
        kind="line",
        title=Phrase("cell_key.law.title"),
        sentence=Phrase("cell_key.law.sentence"),
        rows=rows,
        x="noise",
        y="chance",
        group="count",
    )


def _list_errors(table: Perturbation) -> Listing:
    counts = np.array([1, 2, 3, 5, 10, 100, 1000])
    errors, _, _ = estimate_counts(table, counts)
    rows = [
        (int(count), float(f"{error:.2g}"), float(f"{100 * error / count:.2g}"))
        for count, error in zip(counts, errors, strict=True)
    ]
    columns = tuple(Phrase(f"cell_key.errors.{name}") for name in ("count", "error", "share"))
    return Listing(caption=Phrase("cell_key.errors.caption"), columns=columns, rows=rows, numeric=columns)


# The cell key method as a mechanism: tables of counts with bounded noise that depends on who is in a cell.

DESIGN_SETTINGS = frozenset(("D", "V", "js", "pstay", "pstay_rule", "mono"))
MAGNITUDE_SETTINGS = frozenset(
    ("magnitudes", "epsilon", "p_large", "p_small", "fp", "q", "mu_c", "sensitive_below", "magnitude_V")
)


class CellKey(RecordTables):
    """Counts with noise from a perturbation table, looked up by the count and by the sum of the records' keys.

    The same set of records has the same noise in every table; tables do not add up. No budget is finite (proof.md): a
    count in a cell proves that the cell has a record.
    """

    name: ClassVar[str] = "cell-key"
    config: CellKeyConfig

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Return tables of the coarsest area, if there is one, by each of the first categories."""
        record = find_root(schema)
        if not record.id:
            raise PlanError(
                "this mechanism cannot be proposed for this census",
                why=f"{record.name} records have no identifier, from which their keys would be made",
                fix=f'name it in census.toml: id = "…" under [record.{record.name}], or name a column of keys: record_key',
            )
        return propose_tables(schema, record, {}, {})

    def check_settings(self) -> None:
        """Refuse settings without a table, and weights that tell true counts or are added up themselves."""
        super().check_settings()
        if not Fraction(self.config.weight_base) > 0:
            raise InputError(
                "weight_base is not above 0",
                why="weighted counts are rounded to its multiples, so that they do not tell true counts",
                fix='weight_base="10"',
            )
        if self.config.weight in self.config.magnitudes:
            raise InputError(
                f"{self.config.weight} is the weight and a magnitude",
                why="a weighted total of the weights is no number that tables need",
                fix="leave it out of magnitudes",
            )

    @cached_property
    def perturbation(self) -> Perturbation:
        """Return the perturbation table: read from a file, or designed."""
        own = self.config
        if own.ptable is not None:
            return read_table(Path(own.ptable), digits=own.digits, ties=own.ties, period=own.period)
        stay = None if own.pstay is None else to_number(own.pstay)
        return design_table(
            own.D, to_number(own.V), js=own.js, stay=stay, lowered=own.pstay_rule == "lowered", mono=own.mono,
            digits=own.digits, ties=own.ties,
        )  # fmt: skip

    @cached_property
    def magnitude_noise(self) -> MagnitudeNoise:
        """Return the noise of totals, by a table with fractions: read from a file, or designed."""
        own, large = self.config, to_number(self.config.p_large)
        noise = MagnitudeNoise(
            table=make_magnitude_table(
                None if own.magnitude_ptable is None else Path(own.magnitude_ptable),
                own.D,
                to_number(own.magnitude_V),
                digits=own.digits,
                ties=own.ties,
            ),
            multiplier=Flex(
                fp=to_number(own.fp),
                small=large if own.p_small is None else to_number(own.p_small),
                large=large,
                q=to_number(own.q),
            ),
            weights=[to_number(weight) for weight in own.epsilon],
            extra=to_number(own.mu_c),
        )
        noise.require_keys(self.perturbation.modulus)
        return noise

    def parameters(self) -> dict[str, object]:
        """Return the settings that are used; of a perturbation table in a file only its digest."""
        own = self.config
        unused: set[str] = set()
        if own.ptable is not None:
            unused |= DESIGN_SETTINGS
        if own.pstay is None or own.pstay_rule == "exact":
            unused.add("pstay_rule")
        if own.magnitude_ptable is not None:
            unused.add("magnitude_V")
        if not own.magnitudes:
            unused |= MAGNITUDE_SETTINGS
        if not own.weight:
            unused.add("weight_base")
        files = {"ptable": own.ptable, "magnitude_ptable": own.magnitude_ptable}
        return {name: value for name, value in own.parameters().items() if name not in unused} | {
            name: hashlib.sha256(Path(path).read_bytes()).hexdigest()
            for name, path in files.items()
            if path is not None
        }

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Return the variables of the tables, and the columns that are added up in them."""
        return tuple(dict.fromkeys([*super().columns_read, *self._summed_columns]))

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop at a perturbation table that cannot be, and at records that have no key."""
        _ = self.perturbation
        if self.config.magnitudes:
            _ = self.magnitude_noise
        find_key_column(census, self.config.record, self.config.record_key)
        super().refuse(census, engine)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return no finite budget; on the records of an earlier release, the promise of that release."""
        require_inputs(census, engine)
        return self.state_without_budget(
            census,
            source=Phrase("cell_key.source"),
            notes=(Phrase("cell_key.note.witness"), *self._weighted_note()),
            chained=Phrase("cell_key.note.chained"),
        )

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that a count changes, for the count whose row of the perturbation table changes least."""
        if self.given is not None:
            return None
        counts = np.arange(1, 2 * max(int(self.perturbation.largest), 1) + 2)
        stays = self.perturbation.chance(counts, np.zeros(len(counts), np.int64))
        return ExpectedEffect(kind="cells", share=1 - float(stays.max()))

    def make_tables(
        self,
        census: "Census",
        promise: Specification,  # noqa: ARG002
        key: Key,
        engine: Engine,
    ) -> MadeTables:
        """Return each table with its perturbed counts; keys, noise and true counts never leave it."""
        column = find_key_column(census, self.config.record, self.config.record_key)
        keys = RecordKeys(
            key.bind(self.name, "record keys"),  # not bound to tables or data: keys are permanent
            column,
            self.perturbation.modulus,
            permanent=self.config.record_key is not None,
        )
        made: dict[str, pa.Table] = {}
        for by in self.tables:
            flow = self._open_flow(census, engine, list(dict.fromkeys([*by, column, *self._summed_columns])))
            made |= self._make_tables(flow, by, keys, engine, self._count_parts(census, engine, by))
        return MadeTables(tables=made)

    def require_weight(self, weight: str, *, record_type: str, census: "Census") -> None:  # noqa: ARG002
        """Raise an error unless the tables have this weight or magnitude."""
        if weight not in self._summed_columns or record_type != self.config.record:
            raise InputError(
                f"no table is weighted by {weight}",
                why="the method adds up its own weight and magnitudes alone, in the tables that it perturbs",
                fix=f'name it: weight = "{weight}", or magnitudes = ["{weight}"]',
            )

    def read_table(self, release: Release, by: Sequence[str], weight: str) -> pa.Table | None:
        """Return one of the tables with standard error and 95 % interval of each count; refuse sums of cells."""
        if weight and weight not in self._summed_columns:
            return None
        found = self.find_table(
            release,
            by,
            "perturbed counts are not added up: their errors would add up too, and each sum has its own key",
        )
        if weight:
            known = next(own for own in self.tables if {*own} == {*by})
            return format_table(frame_of(release.tables[f"{weight}-of-{name_table(known)}"]), by)
        count = found[COUNT].to_numpy()
        error, low, high = estimate_counts(self.perturbation, count)
        if self.given is not None:  # an interval would be about the released records, not about the census
            return format_table(found.select(*by, COUNT).with_columns(variance=error**2), by)
        return format_table(
            found.select(*by, COUNT).with_columns(
                estimate=count.astype(np.float64), standard_error=error, low=low, high=high
            ),
            by,
        )

    def exact_law(self, census: "Census") -> Law | None:
        """Return the law of a single table of counts, or None where keys are given or there is more to show."""
        if len(self.tables) > 1 or any(
            [self.config.record_key, self.given, self.config.weight, *self.config.magnitudes]
        ):
            return None
        by = list(self.tables[0])
        counts = census.counts(self.config.record, by)
        return enumerate_table(
            counts, by, self.perturbation, name=name_table(by), threshold=self.config.threshold
        )

    def details(self) -> Mapping[str, object]:
        """Return the pair of data sets that shows why no budget is finite."""
        if self.given is not None:
            return {}
        number, chance = self.smallest_shown()
        return {
            "witness": {
                "first": "a cell with no record",
                "second": f"the same records, {number} of them changed into that cell",
                "distance": number,
                "event": "the cell is shown",
                "chances": [0.0, chance],
            }
        }

    def smallest_shown(self) -> tuple[int, float]:
        """Return the smallest count that is ever shown, and the chance that it is."""
        return find_smallest_shown(self.perturbation, self.config.threshold)

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return the law of the noise, and what it does not do."""
        return make_exhibits(
            self.perturbation,
            release,
            secret=self.config.ptable is not None,
            continues=self.given is not None,
        )

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the variance of a designed table."""
        if self.config.ptable is not None:
            return ()
        top = Fraction(self.config.D * self.config.D, 2)
        return (
            Knob(
                name="V",
                effect="a larger variance has a larger error; the budget is infinite in any case",
                settings=tuple(top * step / 16 for step in range(1, 16)),
                turned=lambda variance: self.replace(V=variance),
            ),
        )

    def _weighted_note(self) -> tuple[Phrase, ...]:
        """Return the note on what a weighted table shows without noise."""
        return (Phrase("cell_key.note.mean_weight"),) if self.config.weight else ()

    @property
    def _summed_columns(self) -> tuple[str, ...]:
        """Return the columns that are added up beside the counts."""
        return tuple(
            dict.fromkeys([*([self.config.weight] if self.config.weight else []), *self.config.magnitudes])
        )

    def _count_parts(self, census: "Census", engine: Engine, by: Sequence[str]) -> int:
        """Return into how many parts the cells of a table are divided; 0 where they are added up in this process."""
        rows = census.count(self.config.record)
        size = rows * BYTES_PER_VALUE * (len(by) + 2 + 3 * len(self._summed_columns))
        return engine.parts_for(size) if by and not engine.fits(size) else 0

    def _make_tables(
        self, flow: Flow, by: Sequence[str], keys: RecordKeys, engine: Engine, parts: int
    ) -> dict[str, pa.Table]:
        """Return the table of counts, and one table for each weight and magnitude."""
        name, table, threshold = name_table(by), self.perturbation, self.config.threshold
        if not self._summed_columns:
            counted = KeyedCells(tuple(by), keys)
            if parts:
                return {name: ShownCells.in_parts(flow, counted, table, threshold, engine, parts).table()}
            return {name: ShownCells.of(count_keyed_cells(flow, counted), by, table, threshold).table()}
        kernel = TotalCells(
            by=tuple(by),
            keys=keys,
            weight=self.config.weight or "",
            magnitudes=tuple(self.config.magnitudes),
            contributors=len(self.config.epsilon),
        )
        shown = (
            ShownCells.in_parts(flow, kernel, table, threshold, engine, parts)
            if parts
            else ShownCells.of(total_cells(flow, kernel), by, table, threshold)
        )
        made = {name: shown.table()}
        if self.config.weight:
            base = Fraction(self.config.weight_base)
            if self.given is None:  # released records have shown their own counts
                shown.require_base(base, self.config.weight, self.perturbation.largest)
            weighted = shown.weight_table(self.perturbation, base)
            made[f"{self.config.weight}-of-{name}"] = self._blank_errors(weighted)
        for place, magnitude in enumerate(self.config.magnitudes):
            total = shown.total(
                place, kernel.largest(place), self.magnitude_noise, self.config.sensitive_below
            )
            made[f"{magnitude}-of-{name}"] = self._blank_errors(total)
        return made

    def _blank_errors(self, table: pa.Table) -> pa.Table:
        """Return the table; of released records without its error, which would not be about the census."""
        if self.given is None:
            return table
        nothing = pa.nulls(table.num_rows, pa.float64())
        for name in ("standard_error", "low", "high"):
            table = table.set_column(table.column_names.index(name), name, nothing)
        return table

    def _open_flow(self, census: "Census", engine: Engine, columns: list[str]) -> Flow:
        if self.given is None:
            return engine.records(census, self.config.record, columns)
        return engine.stream_released(read_records(self.given, census, self.config.record, columns))
