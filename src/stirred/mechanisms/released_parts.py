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
from stirred.census.geography import attach
from stirred.engine import Engine, Flow
from stirred.engine.placing import PART, Placed
from stirred.mechanisms.participation import takes_part
from stirred.mechanisms.release import Release

UNIT, TAKES, KIND = "unit", "__takes", "__kind"
WIDTH = 16  # bytes a value takes on its way, on average


def frame_of(table: pa.Table) -> pl.DataFrame:
    """Rows as polars holds them."""
    return pl.DataFrame(pl.from_arrow(table))


def arrow_of(frame: pl.DataFrame) -> pa.Table:
    """Rows as Arrow holds them."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _placed(frame: pl.DataFrame, columns: Sequence[str], parts: int) -> pa.Table:
    """The rows with the part in which equal values meet (which one it is changes nothing); without columns there is one."""
    return Placed(tuple(columns), parts)(arrow_of(frame))


def cells_schema(schema: pa.Schema, keys: Sequence[str], numbers: Sequence[str]) -> pa.Schema:
    """The columns of a table of cells: its keys, then whole numbers."""
    return pa.schema([schema.field(name) for name in keys] + [(name, pa.int64()) for name in numbers])


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some columns of released records: the identifier as ``unit``, areas beside the spine, and who takes part."""

    columns: tuple[str, ...]
    unit: str
    kinds: Kinds | None  # of records that never take part
    areas: tuple[Schema, tuple[str, ...], Path] | None
    part_by: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        frame = frame_of(table)
        if self.areas is not None:
            schema, names, folder = self.areas
            frame = pl.DataFrame(attach(schema, frame.lazy(), list(names), folder).collect())
        takes = takes_part(self.kinds, frame.columns)
        unit = [pl.col(self.unit).alias(UNIT)] if self.unit else []
        return _placed(frame.select(*unit, *self.columns, takes.alias(TAKES)), self.part_by, self.parts)


def cells(frame: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """How many rows each cell has."""
    return frame.group_by(list(keys)).agg(pl.len().cast(pl.Int64).alias("count"))


@dataclass(frozen=True, slots=True)
class CountCells:
    """The cells of some rows."""

    keys: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        found = cells(frame_of(table).lazy(), self.keys).collect()
        return _placed(pl.DataFrame(found), self.keys, self.parts)


@dataclass(frozen=True, slots=True)
class AddCells:
    """Cells of one part, added up."""

    keys: tuple[str, ...]

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        return arrow_of(frame_of(table).group_by(list(self.keys)).agg(pl.col("count").sum()))


@dataclass(frozen=True, slots=True)
class Met:
    """Linked records with the columns of their household, behind the households themselves."""

    columns: tuple[str, ...]  # of the household
    own: tuple[str, ...]
    part_by: tuple[str, ...]
    parts: int

    def __call__(self, _: int, homes: pa.Table, records: pa.Table) -> pa.Table:
        home, own = frame_of(homes).select(UNIT, *self.columns, TAKES), frame_of(records)
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
        return _placed(both, self.part_by, self.parts)


@dataclass(frozen=True, slots=True)
class StratumKernel(ABC):
    """Makes rows of whole strata from the records that take part and from the records that a table counts."""

    by: tuple[str, ...]
    match: tuple[str, ...]
    swap: tuple[str, ...]

    @property
    def asked(self) -> tuple[str, ...]:
        """What is read of the records that a table counts; here the variables of the table."""
        return self.by

    @property
    def strata(self) -> tuple[str, ...]:
        """The variables that make strata and places."""
        return tuple(dict.fromkeys([*self.match, *self.swap]))

    @property
    def columns(self) -> list[str]:
        """The columns of the records that take part; without a table and without strata they are only counted."""
        return [*([UNIT] if self.by else []), *self.strata] or [TAKES]

    @abstractmethod
    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """The rows; ``units`` and ``counted`` have the column ``unit``, which names the record that is swapped."""

    @abstractmethod
    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """The columns of the rows."""

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        frame = frame_of(table)
        units, counted = frame.filter(TAKES), frame
        if KIND in frame.columns:
            units, counted = units.filter(pl.col(KIND) == 0), frame.filter(pl.col(KIND) == 1)
        return arrow_of(
            self.of(units.select(self.columns), counted.select(UNIT, *self.asked) if self.by else counted)
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
        """About how many bytes so many columns of the records take."""
        data = self.release.microdata[self.record_type]
        rows = int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())
        return rows * columns * WIDTH

    def fit(self, columns: int) -> bool:
        """Whether so many columns of the records fit in memory."""
        return self.engine.fits(self._size(columns))

    def parts(self, columns: int) -> int:
        """Into how many parts the records are divided."""
        return self.engine.parts_for(self._size(columns))

    @property
    def home(self) -> str:
        """The record type they are linked to in the release, or nothing."""
        record = self.schema.record(self.record_type)
        linked = record.linked_to or ""
        there = self.release.microdata[self.record_type].schema.names
        return linked if linked in self.release.microdata and record.household in there else ""

    def chosen(self, record_type: str, columns: Sequence[str], part_by: Sequence[str], parts: int) -> Flow:
        """Columns of a record type, those of areas beside the spine included."""
        data = self.release.microdata[record_type]
        record = self.schema.record(record_type)
        there = data.schema.names
        lacking = tuple(name for name in columns if name not in there)
        unit = record.id if record_type != self.record_type or not self.home else record.household
        areas = (self.schema, lacking, self.folder) if lacking and self.folder is not None else None
        kernel = Chosen(
            tuple(columns), unit if unit in there else "", record.kinds, areas, tuple(part_by), parts
        )
        flow = self.engine.released(data)
        sample = kernel(flow.schema.empty_table())
        return flow.map(kernel, sample.schema)

    def met(self, asked: Sequence[str], strata: Sequence[str], part_by: Sequence[str], parts: int) -> Flow:
        """What is asked and what makes strata and places, of linked records with their household (one exchange).

        A variable that both have is the record's own, unless it makes strata or places, which are the household's.
        """
        if not self.home:
            return self.chosen(self.record_type, list(dict.fromkeys([*strata, *asked])), part_by, parts)
        own = self.release.microdata[self.record_type].schema.names
        mine = [name for name in asked if name in own and name not in strata]
        of_home = list(dict.fromkeys([*strata, *(name for name in asked if name not in mine)]))
        homes = self.chosen(self.home, of_home, (UNIT,), parts)
        records = self.chosen(self.record_type, mine, (UNIT,), parts)
        kernel = Met(tuple(of_home), tuple(mine), tuple(part_by), parts)
        sample = kernel(0, homes.schema.empty_table(), records.schema.empty_table())
        return self.engine.exchange(homes, records, by=PART, parts=parts).map(kernel, sample.schema).flow()

    def in_strata(self, kernel: StratumKernel) -> pl.DataFrame:
        """The rows that a kernel makes of parts in which whole strata meet (one exchange by match variables)."""
        parts = self.parts(len(kernel.strata) + len(kernel.asked) + 3)
        if kernel.by:
            flow = self.met(kernel.asked, kernel.strata, kernel.match, parts)
        else:
            flow = self.chosen(self.record_type, kernel.strata, kernel.match, parts)
        met = self.engine.exchange(flow, by=PART, parts=parts)
        return frame_of(met.map(kernel, kernel.schema(flow.schema)).gathered())


def counts(records: ReleasedRecords, by: Sequence[str]) -> pl.DataFrame:
    """The table of counts, sorted."""
    keys = tuple(by)
    parts = records.parts(len(keys) + 2)
    own = records.release.microdata[records.record_type].schema.names
    plain = all(name in own for name in keys) or not records.home
    flow = records.chosen(records.record_type, keys, (), parts) if plain else records.met(keys, (), (), parts)
    if not plain:
        flow = flow.map(_only_records, flow.schema)
    schema = cells_schema(flow.schema, keys, ("count",))
    cells = flow.map(CountCells(keys, parts), schema.append(pa.field(PART, pa.int32())))
    found = records.engine.exchange(cells, by=PART, parts=parts).map(AddCells(keys), schema).gathered()
    return frame_of(found).sort(list(keys), nulls_last=False)


def _only_records(table: pa.Table) -> pa.Table:
    return arrow_of(frame_of(table).filter(pl.col(KIND) == 1))
