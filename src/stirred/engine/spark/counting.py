"""Count a census on Spark and hold it against its schema: only sums and places reach this process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from stirred.census import toml
from stirred.census.census import Census
from stirred.census.records import CensusFiles, cast_codes, list_columns
from stirred.census.schema import RecordSchema
from stirred.census.validation import Passes
from stirred.census.validation.rules import (
    RULE_STAGES,
    PassCounts,
    RecordRule,
    SingleRecords,
    count_pass,
    list_linked_columns,
    rule_file,
    sum_broken,
    sum_rules,
)
from stirred.census.validation.structure import (
    ID,
    PERSONS,
    SIZE,
    choose_link_type,
    find_orphans,
    find_wrong_sizes,
)
from stirred.engine.spark.faults import UNKNOWN_FAULTS
from stirred.engine.spark.flow import SparkFlow, SparkParts
from stirred.engine.spark.reading import (
    KEY_COLUMN,
    AddLink,
    ConvertColumns,
    estimate_bytes,
    join_flows,
    list_addresses,
    make_duplicate_error,
    open_own,
    read_own,
    read_records,
    stream_remote,
)
from stirred.engine.spark.session import Cluster
from stirred.engine.spark.tasks import ReadBatches
from stirred.engine.tables import PART_COLUMN, PlaceRows, plain_schema, to_plain
from stirred.errors import ClusterError, SchemaError, StirredError
from stirred.frames import arrow_of, collect_frame, frame_of

# Hold a census against its schema: the executors count what breaks it.
#
# Where the files are not Parquet that tasks read, where something cannot be read or a rule cannot be computed, the pass is
# made in this process, as on one machine, so that the same problem is found and told in the same words.

T = TypeVar("T")
BROKEN_SCHEMA = pa.schema(
    [
        ("rows", pa.int64()),
        ("rises", pa.bool_()),  # whether the identifiers rise, none is empty and all are whole numbers
        ("least", pa.int64()),
        ("most", pa.int64()),
        ("broken", pa.list_(pa.int64())),
    ]
)
LINKED_SCHEMA = pa.schema([("orphans", pa.int64()), ("wrong", pa.int64())])


@dataclass(frozen=True, slots=True)
class BrokenOfBatch:
    """Count how many records of a batch break each rule of these stages."""

    source: ConvertColumns
    stages: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row."""
        records = read_loosely(self.source, table)
        rows, *broken = collect_frame(records.frame.select(pl.len(), *sum_rules(records, self.stages))).row(0)
        ids = records.record.id
        rises, least, most = find_range(collect_frame(records.frame.select(ids))[ids]) if ids else NO_RANGE
        columns = [[rows], [rises], [least], [most], [[count or 0 for count in broken]]]
        return pa.table(dict(zip(BROKEN_SCHEMA.names, columns, strict=True)), schema=BROKEN_SCHEMA)


NO_RANGE = (False, 0, 0)


def find_range(ids: pl.Series) -> tuple[bool, int, int]:
    """Return whether identifiers are whole numbers that rise, the least and the most of them.

    >>> find_range(pl.Series([3, 5, 9])), find_range(pl.Series([3, 3])), find_range(pl.Series(["a"]))
    ((True, 3, 9), (False, 0, 0), (False, 0, 0))
    """
    if not len(ids):
        return True, 0, -1
    whole = ids.cast(pl.Int64, strict=False) if ids.dtype.is_integer() else None
    if whole is None or whole.null_count() or not bool((whole.diff().drop_nulls() > 0).all()):
        return NO_RANGE
    return True, int(whole[0]), int(whole[-1])


def are_apart(ranges: Sequence[tuple[bool, int, int]]) -> bool:
    """Return whether no identifier can be in two batches: all rise, and no two ranges meet.

    >>> are_apart([(True, 5, 9), (True, 1, 4)]), are_apart([(True, 5, 9), (True, 1, 5)]), are_apart([(False, 0, 0)])
    (True, False, False)
    """
    known = sorted((least, most) for rises, least, most in ranges if least <= most)
    apart = all(one[1] < other[0] for one, other in pairwise(known))
    return apart and all(rises for rises, _, _ in ranges)


def read_loosely(source: ConvertColumns, table: pa.Table) -> SingleRecords:
    """Return the records of a batch with values that do not fit made empty, as a validation reads a file."""
    return rule_file(source.schema, source.schema.record(source.record_type), source.file(table))


@dataclass(frozen=True, slots=True)
class LooseColumns:
    """Select variables of a batch, in the types that a validation gives them; ``once`` keeps each row once."""

    source: ConvertColumns
    names: tuple[str, ...]
    types: tuple[pl.DataType, ...]
    once: bool = False

    def __call__(self, table: pa.Table) -> pa.Table:
        """The selected columns, those with an empty name as empty values."""
        frame = read_loosely(self.source, table).frame
        columns = [
            (pl.col(name) if name else pl.lit(None)).cast(kind).alias(name or SIZE)
            for name, kind in zip(self.names, self.types, strict=True)
        ]
        found = frame.select(columns)
        return to_plain(arrow_of(collect_frame(found.unique() if self.once else found)))

    def schema(self) -> pa.Schema:
        """Return the columns of the result."""
        kinds = {name or SIZE: kind for name, kind in zip(self.names, self.types, strict=True)}
        return plain_schema(arrow_of(pl.DataFrame(schema=kinds)).schema)


@dataclass(frozen=True, slots=True)
class Rename:
    """Give the columns of a table other names."""

    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same values."""
        return table.rename_columns(list(self.names))


@dataclass(frozen=True, slots=True)
class LinkedCounts:
    """Count in a part the persons without a household, and the households of another size."""

    sized: bool

    def __call__(self, _part: int, links: pa.Table, homes: pa.Table) -> pa.Table:
        """One row."""
        some, there = (frame_of(side).lazy().filter(pl.col(ID).is_not_null()) for side in (links, homes))
        orphans = collect_frame(find_orphans(some, there).select(pl.col(PERSONS).sum())).item() or 0
        wrong = collect_frame(find_wrong_sizes(some, there).select(pl.len())).item() if self.sized else 0
        return pa.table({"orphans": [orphans], "wrong": [wrong]}, schema=LINKED_SCHEMA)


@dataclass(frozen=True, slots=True)
class BrokenLinked:
    """Count how many records of a batch, joined to what they are linked to, break each rule."""

    rules: tuple[RecordRule, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """One row with a column for each rule."""
        return to_plain(arrow_of(collect_frame(sum_broken(frame_of(table).lazy(), self.rules))))


def keep_once(_part: int, table: pa.Table) -> pa.Table:
    """Return each row of a part once."""
    return to_plain(arrow_of(frame_of(table.drop_columns([PART_COLUMN])).unique()))


class ClusterPasses(Passes):
    """The passes of a validation, made by the executors."""

    def __init__(self, engine: Cluster, census: Census) -> None:
        self.engine, self.census = engine, census

    def count_broken(self, records: SingleRecords, stages: Sequence[str] = RULE_STAGES) -> PassCounts:
        """Return how many records break each rule, and whether the identifiers are unique by their order."""

        def there() -> PassCounts | None:
            opened = self._open(records.record.name, records.names)
            if opened is None:
                return None
            flow, source = opened
            told = flow.map(BrokenOfBatch(source, tuple(stages)), BROKEN_SCHEMA).gather()
            broken = np.array(told.column("broken").to_pylist() or [[0] * len(sum_rules(records, stages))])
            made = count_pass(
                records, stages, pc.sum(told.column("rows")).as_py() or 0, broken.sum(axis=0).tolist()
            )
            ranges = list(
                zip(*(told.column(name).to_pylist() for name in ("rises", "least", "most")), strict=True)
            )
            unique = bool(records.record.id) and are_apart(ranges)
            return PassCounts(rows=made.rows, problems=made.problems, unique=unique)

        return self._try(there, lambda: Passes.count_broken(self, records, stages))

    def count_twice(self, census: CensusFiles, record: RecordSchema, rows: int) -> int:
        """Return how many identifiers were used before, which meet by their hash."""

        def there() -> int | None:
            flow = self._select(census, record.name, (record.id,))
            if flow is None:
                return None
            keyed = flow.map(
                Rename((KEY_COLUMN,)), pa.schema([flow.schema.field(record.id).with_name(KEY_COLUMN)])
            )
            met = self._meet((keyed,), KEY_COLUMN, estimate_bytes(flow))
            return int(pc.sum(met.map(count_repeated, COUNT_SCHEMA).gather().column("count")).as_py() or 0)

        return self._try(there, lambda: Passes.count_twice(self, census, record, rows))

    def count_unlinked(
        self, census: CensusFiles, record: RecordSchema, counts: Mapping[str, PassCounts]
    ) -> tuple[int, int]:
        """Return how many persons have no household and how many households another size; both sides meet by their hash."""

        def there() -> tuple[int, int] | None:
            home = census.schema.record(record.linked_to)
            types = (
                census.scan(record.name).collect_schema()[record.household],
                census.scan(home.name).collect_schema()[home.id],
            )
            one = types[0] if types[0] == types[1] else choose_link_type(*types)
            links = self._select(census, record.name, (record.household,), (one,))
            homes = self._select(census, home.name, (home.id, home.size), (one, pl.Int64()))
            if links is None or homes is None:
                return None
            sides = []
            for flow, names in ((links, (ID,)), (homes, (ID, SIZE))):
                kinds = [field.with_name(name) for field, name in zip(flow.schema, names, strict=True)]
                sides.append(flow.map(Rename(names), pa.schema(kinds)))
            met = self._meet(sides, ID, sum(estimate_bytes(side) for side in sides))
            told = met.map(LinkedCounts(bool(home.size)), LINKED_SCHEMA).gather()
            orphans, wrong = (int(pc.sum(told.column(name)).as_py() or 0) for name in LINKED_SCHEMA.names)
            return orphans, wrong

        return self._try(there, lambda: Passes.count_unlinked(self, census, record, counts))

    def count_linked(
        self, census: CensusFiles, record: RecordSchema, rules: Sequence[RecordRule]
    ) -> Sequence[int]:
        """Return how many records break each rule across a link, after both sides were joined by it."""

        def there() -> Sequence[int] | None:
            other = census.schema.record(record.linked_to)
            own = set(census.columns(record.name))
            asked = list_linked_columns(census, record)
            keep = list(dict.fromkeys([record.household, *(name for name in asked if name in own)]))
            wanted = [name for name in asked if name not in own]
            left = self._select(census, record.name, keep)
            right = self._select(census, other.name, list(dict.fromkeys([other.id, *wanted])))
            if left is None or right is None:
                return None
            joined = join_flows(self.engine, record, other, left, right, keep, wanted)
            schema = pa.schema([(str(i), pa.int64()) for i in range(len(rules))])
            told = joined.map(BrokenLinked(tuple(rules)), schema).gather()
            return [int(pc.sum(column).as_py() or 0) for column in told.columns]

        return self._try(there, lambda: Passes.count_linked(self, census, record, rules))

    def list_places(self, census: CensusFiles, record_type: str, named: list[str]) -> pl.DataFrame:
        """Return the places of the records, each combination of areas once."""

        def there() -> pl.DataFrame | None:
            flow = self._select(census, record_type, named, once=True)
            if flow is None:
                return None
            met = self._meet((flow,), named, estimate_bytes(flow))
            return frame_of(met.map(keep_once, flow.schema).gather())

        return self._try(there, lambda: Passes.list_places(self, census, record_type, named))

    def _try(self, there: Callable[[], T | None], here: Callable[[], T]) -> T:
        """Return what the executors found, or what this process finds where they cannot."""
        try:
            found = there()
        except ClusterError as error:
            if error.what not in UNKNOWN_FAULTS:
                raise
            found = None
        except StirredError:  # this process says what cannot be read, and why
            found = None
        return here() if found is None else found

    def _open(self, record_type: str, names: Sequence[str]) -> tuple[SparkFlow, ConvertColumns] | None:
        if self.census.shares_file(self.census.schema.record(record_type)):
            return None
        return open_own(self.engine, self.census, record_type, names)

    def _select(
        self,
        census: CensusFiles,
        record_type: str,
        names: Sequence[str],
        types: Sequence[pl.DataType] = (),
        *,
        once: bool = False,
    ) -> SparkFlow | None:
        """Return some variables of the records; ``census`` is the one that a validation reads."""
        opened = self._open(record_type, [name for name in names if name])
        if opened is None:
            return None
        known = census.scan(record_type).collect_schema()
        kernel = LooseColumns(
            opened[1], tuple(names), tuple(types) or tuple(known[name] for name in names), once
        )
        return opened[0].map(kernel, kernel.schema())

    def _meet(self, flows: Sequence[SparkFlow], by: str | Sequence[str], size: int) -> SparkParts:
        """Return parts in which rows with the same values meet."""
        parts = self.engine.parts_for(size)
        placed = PlaceRows((by,) if isinstance(by, str) else tuple(by), parts)
        return SparkParts.of(
            self.engine, [flow.map(placed, placed.schema(flow.schema)) for flow in flows], PART_COLUMN, parts
        )


# A census that is counted on Spark, with the same results as on one machine.

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
        census = SparkCensus(schema=toml.load_schema(path), folder=path.parent, engine=engine)
        for record in census.schema.records:
            census.scan(record.name)
        return census

    def _passes(self) -> Passes:
        """Return the executors, who hold the records against the schema."""
        return ClusterPasses(self.engine, self)

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
        if not self.schema.record(record_type).where:
            if flow.rows is not None:
                return flow.rows
            if isinstance(flow.source, ReadBatches):  # from the footers of files that only Spark can open
                return int(self.engine.watch.run(flow.frame.count, step="count records"))
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
