"""Tables of released records that do not fit in memory: counted where they lie, in parts, to the same numbers.

A table of linked records first meets its households (one exchange by household). What comes back are cells, never records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads

from stirred.census import Schema
from stirred.census.geography import attach
from stirred.engine import Engine, Flow
from stirred.engine.placing import PART, Placed
from stirred.mechanisms.release import Release

UNIT, TAKES = "unit", "__takes"
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
    still: tuple[str, tuple[str, ...]] | None  # the column and the levels of records that never take part
    areas: tuple[Schema, tuple[str, ...], Path] | None
    part_by: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        frame = frame_of(table)
        if self.areas is not None:
            schema, names, folder = self.areas
            found = attach(schema, frame.lazy(), list(names), folder).collect()
            assert isinstance(found, pl.DataFrame)
            frame = found
        takes = pl.lit(True)
        if self.still is not None:
            takes = ~pl.col(self.still[0]).cast(pl.String).is_in(list(self.still[1]))
        unit = [pl.col(self.unit).alias(UNIT)] if self.unit else []
        return _placed(frame.select(*unit, *self.columns, takes.alias(TAKES)), self.part_by, self.parts)


@dataclass(frozen=True, slots=True)
class Counted:
    """The cells of some rows."""

    keys: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        cells = frame_of(table).group_by(list(self.keys)).agg(pl.len().cast(pl.Int64).alias("count"))
        return _placed(cells, self.keys, self.parts)


@dataclass(frozen=True, slots=True)
class Added:
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
                first.select(names).with_columns(pl.lit(0, pl.Int8).alias("__kind")),
                joined.select(names).with_columns(pl.lit(1, pl.Int8).alias("__kind")),
            ]
        )
        return _placed(both, self.part_by, self.parts)


def rows(data: "pa.Table | pads.Dataset") -> int:
    """How many records there are, from the footers of the files."""
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Released records of a type, with what a table asks of them, and of their households where they are linked."""

    engine: Engine
    release: Release
    schema: Schema
    record_type: str
    folder: Path | None

    def size(self, columns: int) -> int:
        """About how many bytes so many columns of the records take."""
        return rows(self.release.microdata[self.record_type]) * columns * WIDTH

    def parts(self, columns: int) -> int:
        """Into how many parts the records are cut."""
        return self.engine.parts_for(self.size(columns))

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
        kinds = record.kinds
        still = None
        if kinds is not None and kinds.column in there:
            levels = tuple(str(level) for level in (*kinds.vacant, *kinds.group_quarters))
            still = (kinds.column, levels)
        areas = (self.schema, lacking, self.folder) if lacking and self.folder is not None else None
        kernel = Chosen(tuple(columns), unit if unit in there else "", still, areas, tuple(part_by), parts)
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


def counts(records: Records, by: Sequence[str]) -> pl.DataFrame:
    """The table of counts, sorted."""
    keys = tuple(by)
    parts = records.parts(len(keys) + 2)
    own = records.release.microdata[records.record_type].schema.names
    plain = all(name in own for name in keys) or not records.home
    flow = records.chosen(records.record_type, keys, (), parts) if plain else records.met(keys, (), (), parts)
    if not plain:
        flow = flow.map(_only_records, flow.schema)
    schema = cells_schema(flow.schema, keys, ("count",))
    cells = flow.map(Counted(keys, parts), schema.append(pa.field(PART, pa.int32())))
    found = records.engine.exchange(cells, by=PART, parts=parts).map(Added(keys), schema).gathered()
    return frame_of(found).sort(list(keys), nulls_last=False)


def _only_records(table: pa.Table) -> pa.Table:
    return arrow_of(frame_of(table).filter(pl.col("__kind") == 1))
