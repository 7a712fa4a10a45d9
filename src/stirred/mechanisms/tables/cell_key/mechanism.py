"""Define the cell key method as a mechanism: tables with bounded noise that depends on who is in a cell."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from stirred.census.schema import Schema
from stirred.chance import Key
from stirred.engine import Engine, Flow, Local, Progress
from stirred.errors import InputError, PlanError, require_kind
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, Mechanism, require_inputs
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.contents import MAX_OUTPUTS, Content, Law, Row, make_content, rows_of
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit, Listing, Series
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_tables
from stirred.mechanisms.release import Release, find_own_table, format_table
from stirred.mechanisms.tables.base import RecordTables, name_table, read_records
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
    Ties,
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
    from stirred.census import Census, Schema


# Tables for the cell key method that the schema of a census suggests.


def propose(schema: Schema) -> Proposal:
    """Return tables of the coarsest area, if there is one, by each of the first categories."""
    record = find_root(schema)
    found = choose_variables(schema, record)[:3]
    if not record.id:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"{record.name} records have no identifier, from which their keys would be made",
            fix=f'name it in census.toml: id = "…" under [record.{record.name}], or name a column of keys: record_key',
        )
    tables, why = list_tables(schema, record, found)
    if not tables:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"{record.name} records have neither areas nor a category, and a table is by one of them",
            fix="list the variables in census.toml",
        )
    return Proposal(
        settings={
            "tables": tables,
            "record": record.name,
            "without_guarantee": "to be written: why these tables are published without a finite budget",
        },
        reasons={
            "tables": why,
            "record": "the records that are counted",
            "without_guarantee": "no budget is finite; swap first (given) to have one",
        },
        undecided=(
            "whether to publish without a finite budget, or to swap first and name the swap in given",
        ),
    )


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

MAGNITUDE_SETTINGS = (
    *("magnitudes", "epsilon", "p_large", "p_small", "fp", "q", "mu_c", "sensitive_below", "magnitude_V"),
)


@dataclass(frozen=True, kw_only=True)
class CellKey(RecordTables):
    """Counts with noise from a perturbation table, looked up by the count and by the sum of the records' keys.

    The same set of records has the same noise in every table; tables do not add up. No budget is finite (proof.md): a
    count in a cell proves that the cell has a record.
    """

    name: ClassVar[str] = "cell-key"
    Config: ClassVar[type[MechanismConfig]] = CellKeyConfig

    file_settings: ClassVar[tuple[str, ...]] = ("ptable", "given", "magnitude_ptable")

    ptable: Path | str | None = None
    D: int = 5
    V: Fraction | str | int = 3
    js: int = 0
    pstay: Fraction | str | None = None
    pstay_rule: str = "exact"
    mono: bool = True
    digits: int = 8
    ties: str = "below"
    record_key: str | None = None
    threshold: int = 0
    period: int = 250
    weight: str | None = None
    weight_base: Fraction | str | int = 10
    magnitudes: Sequence[str] = ()
    epsilon: Sequence[Fraction | str | int] = ("1",)
    p_large: Fraction | str = "0.05"
    p_small: Fraction | str | None = None
    fp: Fraction | str | int = 0
    q: Fraction | str | int = 3
    mu_c: Fraction | str | int = 0
    sensitive_below: int = 0
    magnitude_V: Fraction | str | int = 2  # noqa: N815 - as the literature writes it
    magnitude_ptable: Path | str | None = None

    def __post_init__(self) -> None:
        RecordTables.__post_init__(self)
        for name in ("ptable", "magnitude_ptable"):
            given = getattr(self, name)
            if given is not None:
                require_kind(
                    name, given, (str, Path), wanted="the path of a file", fix=f'{name}="ptable.csv"'
                )
                object.__setattr__(self, name, Path(given))
        if self.pstay_rule not in ("exact", "lowered"):
            raise InputError(
                f"pstay_rule is {self.pstay_rule!r}",
                why="there are two rules",
                fix='pstay_rule="exact", or "lowered"',
            )
        if not Fraction(str(self.weight_base)) > 0:
            raise InputError(
                "weight_base is not above 0",
                why="weighted counts are rounded to its multiples, so that they do not tell true counts",
                fix='weight_base="10"',
            )
        if self.weight in self.magnitudes:
            raise InputError(
                f"{self.weight} is the weight and a magnitude",
                why="a weighted total of the weights is no number that tables need",
                fix="leave it out of magnitudes",
            )
        if self.ties not in ("below", "up-to"):
            raise InputError(
                f"ties is {self.ties!r}", why="there are two rules", fix='ties="below", or "up-to"'
            )

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Return small tables of the coarsest areas."""
        return propose(schema)

    @cached_property
    def perturbation(self) -> Perturbation:
        """Return the perturbation table: read from a file, or designed."""
        if self.ptable is not None:
            return read_table(self.ptable, digits=self.digits, ties=self._ties, period=self.period)
        stay = None if self.pstay is None else to_number(self.pstay)
        return design_table(
            self.D, to_number(self.V), js=self.js, stay=stay, lowered=self.pstay_rule == "lowered", mono=self.mono,
            digits=self.digits, ties=self._ties,
        )  # fmt: skip

    @cached_property
    def magnitude_noise(self) -> MagnitudeNoise:
        """Return the noise of totals, by a table with fractions: read from a file, or designed."""
        large = to_number(self.p_large)
        noise = MagnitudeNoise(
            table=make_magnitude_table(
                None if self.magnitude_ptable is None else Path(self.magnitude_ptable),
                self.D,
                to_number(self.magnitude_V),
                digits=self.digits,
                ties=self._ties,
            ),
            multiplier=Flex(
                fp=to_number(self.fp),
                small=large if self.p_small is None else to_number(self.p_small),
                large=large,
                q=to_number(self.q),
            ),
            weights=[to_number(weight) for weight in self.epsilon],
            extra=to_number(self.mu_c),
        )
        noise.require_keys(self.perturbation.modulus)
        return noise

    @property
    def _ties(self) -> Ties:
        return "up-to" if self.ties == "up-to" else "below"

    def parameters(self) -> dict[str, object]:
        """Return the parameters for the receipt; of a perturbation table in a file only its digest."""
        found = self.settings()
        if self.ptable is not None:
            design = ("D", "V", "js", "pstay", "pstay_rule", "mono")
            found = {name: value for name, value in found.items() if name not in design}
            found["ptable"] = hashlib.sha256(Path(self.ptable).read_bytes()).hexdigest()
        if self.magnitude_ptable is not None:
            found.pop("magnitude_V")
            found["magnitude_ptable"] = hashlib.sha256(Path(self.magnitude_ptable).read_bytes()).hexdigest()
        if not self.magnitudes:
            found = {name: value for name, value in found.items() if name not in MAGNITUDE_SETTINGS}
        if not self.weight:
            found.pop("weight_base")
        if self.pstay is None or self.pstay_rule == "exact":
            found.pop("pstay_rule", None)
        return {name: value for name, value in found.items() if value is not None and name != "given"}

    def settings(self) -> dict[str, object]:
        """Return the keys of a [[mechanism]]."""
        found = RecordTables.settings(self)
        found["V"] = str(Fraction(str(self.V)))
        found["pstay"] = None if self.pstay is None else str(Fraction(str(self.pstay)))
        found["magnitudes"] = list(self.magnitudes)
        for name in ("p_large", "p_small", "fp", "q", "mu_c", "magnitude_V", "weight_base"):
            found[name] = None if found[name] is None else str(Fraction(str(found[name])))
        found["epsilon"] = [str(Fraction(str(weight))) for weight in self.epsilon]
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the variables of the tables, and the columns that are added up in them."""
        return tuple(dict.fromkeys([*(name for by in self.tables for name in by), *self._summed_columns]))

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop at a perturbation table that cannot be, and at records that have no key."""
        _ = self.perturbation
        if self.magnitudes:
            _ = self.magnitude_noise
        find_key_column(census, self.record, self.record_key)
        RecordTables.refuse(self, census, engine)

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

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,  # noqa: ARG002
        state: Path | None = None,  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> Release:
        """Release each table with its perturbed counts; keys, noise and true counts never leave it."""
        engine = engine or Local()
        census = self.admit_census(census, key, engine)
        column = find_key_column(census, self.record, self.record_key)
        keys = RecordKeys(
            key.bind(self.name, "record keys"),  # not bound to tables or data: keys are permanent
            column,
            self.perturbation.modulus,
            permanent=self.record_key is not None,
        )
        made: dict[str, pa.Table] = {}
        for by in self.tables:
            flow = self._open_flow(census, engine, list(dict.fromkeys([*by, column, *self._summed_columns])))
            made |= self._make_tables(flow, by, keys)
        return self.make_release(census, key, self.specification(census), made)

    def require_weight(self, weight: str, *, record_type: str, census: "Census") -> None:  # noqa: ARG002
        """Raise an error unless the tables have this weight or magnitude."""
        if weight not in self._summed_columns or record_type != self.record:
            raise InputError(
                f"no table is weighted by {weight}",
                why="the method adds up its own weight and magnitudes alone, in the tables that it perturbs",
                fix=f'name it: weight = "{weight}", or magnitudes = ["{weight}"]',
            )

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return one of the tables with standard error and 95 % interval of each count; refuse sums of cells."""
        if (record_type or self.record) != self.record or (weight and weight not in self._summed_columns):
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        found = find_own_table(release, by)
        if found is not None and weight:
            known = next(own for own in self.tables if {*own} == {*by})
            return format_table(frame_of(release.tables[f"{weight}-of-{name_table(known)}"]), by)
        if found is None:
            raise InputError(
                f"no table of {', '.join(by) or 'no variable'} was perturbed",
                why="perturbed counts are not added up: their errors would add up too, and each sum has its own key",
                fix="name the table in the setting tables and run again",
            )
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
        if len(self.tables) > 1 or any([self.record_key, self.given, self.weight, *self.magnitudes]):
            return None
        by = list(self.tables[0])
        counts = census.counts(self.record, by)
        return enumerate_table(counts, by, self.perturbation, name=name_table(by), threshold=self.threshold)

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
        return find_smallest_shown(self.perturbation, self.threshold)

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return the law of the noise, and what it does not do."""
        return make_exhibits(
            self.perturbation, release, secret=self.ptable is not None, continues=self.given is not None
        )

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the variance of a designed table."""
        if self.ptable is not None:
            return ()
        top = Fraction(self.D * self.D, 2)
        return (
            Knob(
                name="V",
                effect="a larger variance has a larger error; the budget is infinite in any case",
                settings=tuple(top * step / 16 for step in range(1, 16)),
                turned=lambda variance: replace(self, V=variance),
            ),
        )

    def _weighted_note(self) -> tuple[Phrase, ...]:
        """Return the note on what a weighted table shows without noise."""
        return (Phrase("cell_key.note.mean_weight"),) if self.weight else ()

    @property
    def _summed_columns(self) -> tuple[str, ...]:
        """Return the columns that are added up beside the counts."""
        return tuple(dict.fromkeys([*([self.weight] if self.weight else []), *self.magnitudes]))

    def _make_tables(self, flow: Flow, by: Sequence[str], keys: RecordKeys) -> dict[str, pa.Table]:
        """Return the table of counts, and one table for each weight and magnitude."""
        name = name_table(by)
        if not self._summed_columns:
            cells = count_keyed_cells(flow, KeyedCells(tuple(by), keys))
            return {name: ShownCells.of(cells, by, self.perturbation, self.threshold).table()}
        kernel = TotalCells(
            by=tuple(by),
            keys=keys,
            weight=self.weight or "",
            magnitudes=tuple(self.magnitudes),
            contributors=len(self.epsilon),
        )
        shown = ShownCells.of(total_cells(flow, kernel), by, self.perturbation, self.threshold)
        made = {name: shown.table()}
        if self.weight:
            base = Fraction(str(self.weight_base))
            if self.given is None:  # released records have shown their own counts
                shown.require_base(base, self.weight, self.perturbation.largest)
            weighted = shown.weight_table(self.perturbation, base)
            made[f"{self.weight}-of-{name}"] = self._blank_errors(weighted)
        for place, magnitude in enumerate(self.magnitudes):
            total = shown.total(place, kernel.largest(place), self.magnitude_noise, self.sensitive_below)
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
            return engine.records(census, self.record, columns)
        return engine.stream_released(read_records(self.given, census, self.record, columns))
