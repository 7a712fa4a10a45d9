"""Released records that do not fit in memory: counted where they lie, in parts, to the same numbers.

A table of linked records first meets its households (one exchange by household). What comes back are cells, never records.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.census import Schema
from stirred.census.codebook.schema import Kinds
from stirred.census.geography import attach_levels
from stirred.engine import Engine, Flow
from stirred.engine.placing import PART_COLUMN, PlaceRows
from stirred.mechanisms.participation import takes_part
from stirred.mechanisms.release import Release

UNIT, TAKES, KIND = "unit", "__takes", "__kind"
BYTES_PER_VALUE = 16  # bytes a value takes on its way, on average


def as_frame(table: pa.Table) -> pl.DataFrame:
    """Return an Arrow table as a polars frame."""
    return pl.DataFrame(pl.from_arrow(table))


def as_arrow(frame: pl.DataFrame) -> pa.Table:
    """Return a polars frame as an Arrow table."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _place_rows(frame: pl.DataFrame, columns: Sequence[str], parts: int) -> pa.Table:
    """Append the part number of each row, equal for equal values, and return the table."""
    return PlaceRows(tuple(columns), parts)(as_arrow(frame))


def cells_schema(schema: pa.Schema, keys: Sequence[str], numbers: Sequence[str]) -> pa.Schema:
    """Return the columns of a table of cells: its keys, then whole numbers."""
    return pa.schema([schema.field(name) for name in keys] + [(name, pa.int64()) for name in numbers])


@dataclass(frozen=True, slots=True)
class ChooseColumns:
    """Select columns of released records: the identifier as ``unit``, off-spine areas, and who takes part."""

    columns: tuple[str, ...]
    unit: str
    kinds: Kinds | None  # of records that never take part
    areas: tuple[Schema, tuple[str, ...], Path] | None
    part_by: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        frame = as_frame(table)
        if self.areas is not None:
            schema, names, folder = self.areas
            frame = pl.DataFrame(attach_levels(schema, frame.lazy(), list(names), folder).collect())
        takes = takes_part(self.kinds, frame.columns)
        unit = [pl.col(self.unit).alias(UNIT)] if self.unit else []
        return _place_rows(frame.select(*unit, *self.columns, takes.alias(TAKES)), self.part_by, self.parts)


def count_cells(frame: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Return how many rows each cell has."""
    return frame.group_by(list(keys)).agg(pl.len().cast(pl.Int64).alias("count"))


@dataclass(frozen=True, slots=True)
class CountCells:
    """Count the cells of some rows."""

    keys: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        found = count_cells(as_frame(table).lazy(), self.keys).collect()
        return _place_rows(pl.DataFrame(found), self.keys, self.parts)


@dataclass(frozen=True, slots=True)
class AddCells:
    """Add up the cells of one part."""

    keys: tuple[str, ...]

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        return as_arrow(as_frame(table).group_by(list(self.keys)).agg(pl.col("count").sum()))


@dataclass(frozen=True, slots=True)
class JoinHouseholds:
    """Join linked records to the columns of their household, and put the households first."""

    columns: tuple[str, ...]  # of the household
    own: tuple[str, ...]
    part_by: tuple[str, ...]
    parts: int

    def __call__(self, _: int, homes: pa.Table, records: pa.Table) -> pa.Table:
        home, own = as_frame(homes).select(UNIT, *self.columns, TAKES), as_frame(records)
        joined = own.select(UNIT, *self.own).join(home, on=UNIT, how="left")
        names = [UNIT, *dict.fromkeys([*self.columns, *self.own]), TAKES]
        first = home.with_columns(
            pl.lit(None, joined.schema[name]).alias(name) for name in self.own if name not in self.columns
        )
        both = pl.concat(
            [
                first.select(names).with_columns(pl.lit(0, pl.Int8).alias(KIND)),
                joined.select(names).with_columns(pl.lit(1, pl.Int8).alias(KIND)),
            ]
        )
        return _place_rows(both, self.part_by, self.parts)


@dataclass(frozen=True, slots=True)
class StratumKernel(ABC):
    """Make rows of whole strata from the records that take part and from those that a table counts."""

    by: tuple[str, ...]
    match: tuple[str, ...]
    swap: tuple[str, ...]

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Return the columns to read of the records that a table counts; here the variables of the table."""
        return self.by

    @property
    def strata(self) -> tuple[str, ...]:
        """Return the variables that make strata and places."""
        return tuple(dict.fromkeys([*self.match, *self.swap]))

    @property
    def columns(self) -> list[str]:
        """Return the columns of the records that take part; without a table and strata, only whether they do."""
        return [*([UNIT] if self.by else []), *self.strata] or [TAKES]

    @abstractmethod
    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the rows; ``units`` and ``counted`` have the column ``unit``, which names the swapped record."""

    @abstractmethod
    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """Return the columns of the rows."""

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        frame = as_frame(table)
        units, counted = frame.filter(TAKES), frame
        if KIND in frame.columns:
            units, counted = units.filter(pl.col(KIND) == 0), frame.filter(pl.col(KIND) == 1)
        return as_arrow(
            self.of(
                units.select(self.columns), counted.select(UNIT, *self.read_columns) if self.by else counted
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedRecords:
    """Released records of a type, with what a table asks of them, and of their households where they are linked."""

    engine: Engine
    release: Release
    schema: Schema
    record_type: str
    folder: Path | None

    def _size(self, columns: int) -> int:
        """Return about how many bytes so many columns of the records take."""
        data = self.release.microdata[self.record_type]
        rows = int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())
        return rows * columns * BYTES_PER_VALUE

    def fits_memory(self, columns: int) -> bool:
        """Return whether so many columns of the records fit in memory."""
        return self.engine.fits(self._size(columns))

    def parts(self, columns: int) -> int:
        """Return into how many parts the records are divided."""
        return self.engine.parts_for(self._size(columns))

    @property
    def home(self) -> str:
        """Return the record type they are linked to in the release, or an empty text."""
        record = self.schema.record(self.record_type)
        linked = record.linked_to or ""
        there = self.release.microdata[self.record_type].schema.names
        return linked if linked in self.release.microdata and record.household in there else ""

    def choose_columns(
        self, record_type: str, columns: Sequence[str], part_by: Sequence[str], parts: int
    ) -> Flow:
        """Return the flow of some columns of a record type, off-spine areas included."""
        data = self.release.microdata[record_type]
        record = self.schema.record(record_type)
        there = data.schema.names
        lacking = tuple(name for name in columns if name not in there)
        unit = record.id if record_type != self.record_type or not self.home else record.household
        areas = (self.schema, lacking, self.folder) if lacking and self.folder is not None else None
        kernel = ChooseColumns(
            tuple(columns), unit if unit in there else "", record.kinds, areas, tuple(part_by), parts
        )
        flow = self.engine.stream_released(data)
        sample = kernel(flow.schema.empty_table())
        return flow.map(kernel, sample.schema)

    def join_households(
        self, asked: Sequence[str], strata: Sequence[str], part_by: Sequence[str], parts: int
    ) -> Flow:
        """Return the flow of linked records with the columns of their household (one exchange).

        A variable that both have is the record's own, unless it makes strata or places, which are the household's.
        """
        if not self.home:
            return self.choose_columns(
                self.record_type, list(dict.fromkeys([*strata, *asked])), part_by, parts
            )
        own = self.release.microdata[self.record_type].schema.names
        mine = [name for name in asked if name in own and name not in strata]
        of_home = list(dict.fromkeys([*strata, *(name for name in asked if name not in mine)]))
        homes = self.choose_columns(self.home, of_home, (UNIT,), parts)
        records = self.choose_columns(self.record_type, mine, (UNIT,), parts)
        kernel = JoinHouseholds(tuple(of_home), tuple(mine), tuple(part_by), parts)
        sample = kernel(0, homes.schema.empty_table(), records.schema.empty_table())
        return (
            self.engine.exchange(homes, records, by=PART_COLUMN, parts=parts)
            .map(kernel, sample.schema)
            .flow()
        )

    def map_strata(self, kernel: StratumKernel) -> pl.DataFrame:
        """Return the rows that a kernel makes of parts that hold whole strata (one exchange)."""
        parts = self.parts(len(kernel.strata) + len(kernel.read_columns) + 3)
        if kernel.by:
            flow = self.join_households(kernel.read_columns, kernel.strata, kernel.match, parts)
        else:
            flow = self.choose_columns(self.record_type, kernel.strata, kernel.match, parts)
        met = self.engine.exchange(flow, by=PART_COLUMN, parts=parts)
        return as_frame(met.map(kernel, kernel.schema(flow.schema)).gather())


def count_in_parts(records: ReleasedRecords, by: Sequence[str]) -> pl.DataFrame:
    """Return the table of counts of records that are counted in parts, sorted."""
    keys = tuple(by)
    parts = records.parts(len(keys) + 2)
    own = records.release.microdata[records.record_type].schema.names
    plain = all(name in own for name in keys) or not records.home
    flow = (
        records.choose_columns(records.record_type, keys, (), parts)
        if plain
        else records.join_households(keys, (), (), parts)
    )
    if not plain:
        flow = flow.map(_keep_records, flow.schema)
    schema = cells_schema(flow.schema, keys, ("count",))
    cells = flow.map(CountCells(keys, parts), schema.append(pa.field(PART_COLUMN, pa.int32())))
    found = records.engine.exchange(cells, by=PART_COLUMN, parts=parts).map(AddCells(keys), schema).gather()
    return as_frame(found).sort(list(keys), nulls_last=False)


def _keep_records(table: pa.Table) -> pa.Table:
    return as_arrow(as_frame(table).filter(pl.col(KIND) == 1))
