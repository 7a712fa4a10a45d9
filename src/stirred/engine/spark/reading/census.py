"""A census that is counted on Spark, with the same results as on one machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from stirred.census.census import Census, cast_codes, list_columns
from stirred.census.codebook import parse
from stirred.census.codebook.schema import RecordSchema
from stirred.engine.placing import PART_COLUMN, PlaceRows
from stirred.engine.plain import to_plain
from stirred.engine.spark.cluster import Cluster
from stirred.engine.spark.flow import SparkParts
from stirred.engine.spark.reading.files import list_addresses, read_own, stream_remote
from stirred.engine.spark.reading.kernels import KEY_COLUMN, AddLink, make_duplicate_error
from stirred.engine.spark.reading.records import estimate_bytes, read_records
from stirred.engine.spark.tasks import ReadBatches
from stirred.errors import SchemaError
from stirred.frames import arrow_of, frame_of

COUNT_SCHEMA = pa.schema([("count", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkCensus(Census):
    """The same census: ``count``, ``counts``, ``weighted`` and the check of identifiers run on Spark.

    Counts are identical. Sums of fractional weights may differ in their last digits, as they do between
    two runs on one machine, because they depend on the order of additions; sums of whole weights do not. Methods that scan
    records (``scan``, ``table``, ``batches``) still stream them through this process. Files may also be addresses that
    only Spark knows (``hdfs:``, ``s3a:``); their order is then Spark's.
    """

    engine: Cluster

    @staticmethod
    def on(engine: Cluster, census: Census) -> "SparkCensus":
        """Return a census counted by an engine."""
        return SparkCensus(
            schema=census.schema,
            files=census.files,
            folder=census.folder,
            _linkable=census._linkable,
            _forms=census._forms,
            engine=engine,
        )._mark_checked(census._checked)

    @staticmethod
    def read(engine: Cluster, path: Path) -> "SparkCensus":
        """Return the census that a census.toml describes; its files may be where only Spark can read them."""
        path = path / "census.toml" if path.is_dir() else path
        census = SparkCensus(schema=parse.load_schema(path), folder=path.parent, engine=engine)
        for record in census.schema.records:
            census.scan(record.name)
        return census

    def source(self, record_type: str) -> pl.LazyFrame:
        """Return the columns of the files as they are."""
        record = self.schema.record(record_type)
        if record_type not in self.files and list_addresses(record):
            if self.shares_file(record):
                raise SchemaError(
                    f"the {record_type} records cannot be split on Spark",
                    why="household_from makes households from a person file, and only Spark can open that file",
                    fix="write the households and the persons as two files, or copy the file to this machine",
                )
            return stream_remote(self.engine, record)
        return Census.source(self, record_type)

    def count(self, record_type: str) -> int:
        """Return how many records there are."""
        flow = read_own(self.engine, self, record_type, self.columns(record_type)[:1])
        if isinstance(flow.source, ReadBatches) and not self.schema.record(record_type).where:
            return int(self.engine.watch.run(flow.frame.count, None, 0))  # from the footers of the files
        return int(pc.sum(flow.map(count_batch, COUNT_SCHEMA).gather().column("count")).as_py() or 0)

    def _aggregate(
        self,
        record_type: str,
        by: Sequence[str],
        where: Mapping[str, Sequence[str]] | None,
        value: pl.Expr,
        extra: list[str],
    ) -> pa.Table:
        names, wanted = list_columns(by, where, extra)
        flow = read_records(self.engine, self, record_type, wanted or self.columns(record_type)[:1])
        empty = frame_of(flow.schema.empty_table())
        codes = {name: cast_codes(some, empty.schema[name], name) for name, some in (where or {}).items()}
        cells = BatchCells(tuple(names), value, tuple(codes.items()))
        schema = cells(flow.schema.empty_table()).schema
        partial = flow.map(cells, schema)
        if not names:
            return _sort_cells(sum_cells(partial.gather(), ()), names)
        parts = self.engine.parts_for(estimate_bytes(flow))
        placed = PlaceRows(tuple(names), parts)
        together = SparkParts.of(
            self.engine, (partial.map(placed, placed.schema(schema)),), PART_COLUMN, parts
        )
        return _sort_cells(together.map(CellSums(tuple(names)), schema).gather(), names)

    def _require_once(self, record: RecordSchema) -> None:
        """Check once, on Spark, that the identifiers of a record type are unique."""
        if record.name in self._linkable:
            return
        flow = read_own(self.engine, self, record.name, [record.id])
        keyed = flow.map(
            AddLink(record.id, False, ()), pa.schema([flow.schema.field(record.id).with_name(KEY_COLUMN)])
        )
        parts = self.engine.parts_for(estimate_bytes(flow))
        placed = PlaceRows((KEY_COLUMN,), parts)
        met = SparkParts.of(
            self.engine, (keyed.map(placed, placed.schema(keyed.schema)),), PART_COLUMN, parts
        )
        again = pc.sum(met.map(count_repeated, COUNT_SCHEMA).gather().column("count")).as_py()
        if again:
            raise make_duplicate_error(record, f"{again:,}")
        self._linkable.add(record.name)


@dataclass(frozen=True, slots=True)
class BatchCells:
    """The cells of a batch with their values, for the records that have the requested codes."""

    names: tuple[str, ...]
    value: pl.Expr
    codes: tuple[tuple[str, pl.Series], ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row for each cell."""
        frame = frame_of(table)
        for name, codes in self.codes:
            frame = frame.filter(pl.col(name).is_in(codes.implode()))
        cells = frame.group_by(self.names).agg(self.value) if self.names else frame.select(self.value)
        return to_plain(arrow_of(cells))


@dataclass(frozen=True, slots=True)
class CellSums:
    """The cells of a part, each with its sum."""

    names: tuple[str, ...]

    def __call__(self, _part: int, table: pa.Table) -> pa.Table:
        """One row for each cell."""
        return to_plain(arrow_of(sum_cells(table.drop_columns([PART_COLUMN]), self.names)))


def sum_cells(table: pa.Table, names: Sequence[str]) -> pl.DataFrame:
    """Return the sums of the last column, grouped by the others."""
    frame = frame_of(table)
    total = pl.col(frame.columns[-1]).sum()
    return frame.group_by(names).agg(total) if names else frame.select(total)


def count_batch(table: pa.Table) -> pa.Table:
    """Return how many rows a batch has.

    >>> count_batch(pa.table({"a": [1, 2]})).to_pydict()
    {'count': [2]}
    """
    return pa.table({"count": [table.num_rows]}, schema=COUNT_SCHEMA)


def count_repeated(_part: int, table: pa.Table) -> pa.Table:
    """Return how many identifiers of a part were used before; empty ones do not count.

    >>> count_repeated(0, pa.table({KEY_COLUMN: [1, 2, 1, None]})).to_pydict()
    {'count': [1]}
    """
    ids = table.column(KEY_COLUMN).drop_null()
    return pa.table({"count": [len(ids) - pc.count_distinct(ids).as_py()]}, schema=COUNT_SCHEMA)


def _sort_cells(cells: pl.DataFrame | pa.Table, names: list[str]) -> pa.Table:
    frame = cells if isinstance(cells, pl.DataFrame) else frame_of(cells)
    frame = frame.sort(names, nulls_last=False) if names else frame
    return arrow_of(frame)
