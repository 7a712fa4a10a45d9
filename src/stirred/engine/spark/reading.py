"""Read and count the records of a census on Spark, with the same results as on one machine."""

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred._support import pads
from stirred.census import variables
from stirred.census.census import Census
from stirred.census.geography import read_ancestors, read_crosswalk
from stirred.census.readers.parquet import PARQUET_ENDINGS
from stirred.census.readers.sources import find_format, is_remote, redact_errors, resolve_files
from stirred.census.schema import RecordSchema, Schema
from stirred.census.variables import convert_frame, list_variables
from stirred.engine.spark.faults import translate_errors
from stirred.engine.spark.flow import SparkFlow, SparkParts
from stirred.engine.spark.session import Cluster
from stirred.engine.spark.tasks import (
    WIRE_SCHEMA,
    FileSlice,
    ReadBatches,
    ReadMessages,
    ReadSlices,
    pack_messages,
)
from stirred.engine.tables import PART_COLUMN, PlaceRows, plain_schema, to_plain
from stirred.errors import DataError, InputError, SchemaError, did_you_mean
from stirred.frames import OLDEST_ARROW, arrow_of, collect_frame, frame_of

# Give tables to Spark: its tasks read Parquet files; everything else is first written to scratch, batch by batch.

GLOB_CHARACTERS = set("{}[]*?\\")  # Spark would read a path with one of these characters as a pattern


@dataclass(frozen=True, slots=True)
class CastColumns:
    """Convert columns that were read to their declared types (Spark reads an unsigned integer as a wider number)."""

    schema: pa.Schema

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same values in the declared types."""
        return table.cast(self.schema)


def write_scratch(engine: Cluster, tables: Iterable[pa.Table], schema: pa.Schema) -> SparkFlow:
    """Write tables that only this process can read to scratch, one by one, and return a flow over them.

    Every message is encrypted with a key that only the flow's tasks carry: what a killed process leaves is noise.
    """
    path, key = engine.scratch / f"{uuid.uuid4().hex}.parquet", os.urandom(32)
    rows = 0
    with (
        os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file,
        pq.ParquetWriter(file, WIRE_SCHEMA, compression="none") as writer,
    ):
        for table in tables:
            rows += table.num_rows
            for message in pack_messages(table.cast(schema), 0, 0, key):
                writer.write_batch(message)
    return SparkFlow(engine, open_parquet(engine, [path]), ReadMessages(schema, key), schema, rows=rows)


SLICE_BYTES = 1 << 26  # bytes of a file that one task reads, if its row groups allow it
SLICES_PER_CORE = 2  # slices at least, where there are as many row groups, so that cores end together


def read_slices(
    engine: Cluster, paths: Sequence[Path], columns: Sequence[str], schema: pa.Schema
) -> SparkFlow:
    """Return a flow over columns of Parquet files, which the tasks read themselves, each some row groups."""
    footers = [pq.read_metadata(path) for path in paths]
    groups, size = sum(one.num_row_groups for one in footers), sum(path.stat().st_size for path in paths)
    wanted = max(-(-size // SLICE_BYTES), SLICES_PER_CORE * int(engine.context.defaultParallelism))
    step = max(1, groups // wanted)
    slices = tuple(
        FileSlice(str(path.absolute()), path.stat().st_size, first, min(first + step, one.num_row_groups))
        for path, one in zip(paths, footers, strict=True)
        for first in range(0, one.num_row_groups, step)
    )
    tasks = engine.session.range(0, len(slices), 1, max(len(slices), 1))
    rows = sum(one.num_rows for one in footers)
    return SparkFlow(engine, tasks, ReadSlices(slices, tuple(columns)), schema, (CastColumns(schema),), rows)


def open_parquet(engine: Cluster, paths: Sequence[Path | str], *, base: str = "") -> Any:
    """Return a data frame over Parquet files; names are local paths or addresses that Spark knows."""
    reader = engine.session.read
    if base:
        reader = reader.option("basePath", base)
    with translate_errors():
        return reader.parquet(*(file_address(path) for path in paths))


def file_address(path: Path | str) -> str:
    """Return the address of a file for Spark.

    >>> file_address(Path("/data/census.parquet")), file_address("s3a://office/census.parquet")
    ('file:/data/census.parquet', 's3a://office/census.parquet')
    """
    return path if isinstance(path, str) else f"file:{path.absolute()}"


def has_pattern(paths: Iterable[Path | str]) -> bool:
    """Return whether Spark would read the name of one of these files as a pattern."""
    return any(GLOB_CHARACTERS & set(str(path.absolute())) for path in paths if isinstance(path, Path))


def knows_types(schema: pa.Schema) -> bool:
    """Return whether values of all these types are the same on Spark."""
    return all(knows_type(field.type) for field in schema)


def knows_type(kind: pa.DataType) -> bool:
    """Return whether Spark's reader leaves values of a type unchanged.

    >>> knows_type(pa.uint64()), knows_type(pa.timestamp("ns"))
    (True, False)
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    plainly = (
        pa.types.is_integer(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_date32(kind)
    )
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return bool(plainly or text)


def read_released(engine: Cluster, data: "pa.Table | pads.Dataset") -> SparkFlow:
    """Return released records, from their Parquet files or from copies in scratch."""
    schema = plain_schema(data.schema)
    if isinstance(data, pads.FileSystemDataset) and isinstance(data.format, pads.ParquetFileFormat):
        paths = [Path(name) for name in data.files]
        if knows_types(data.schema) and all(path.exists() for path in paths):
            return read_slices(engine, paths, schema.names, schema)
    return write_scratch(engine, (to_plain(batch) for batch in data.to_batches()), schema)


def quote_name(name: str) -> str:
    """Return a column's name, quoted for Spark.

    >>> quote_name("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


# Kernels for records in Spark's tasks: give them the schema's types, join them by their link, look up area codes.

KEY_COLUMN = "stirred:key"


@dataclass(frozen=True, slots=True)
class ConvertColumns:
    """Convert the columns that Spark reads from a file to the variables of the schema; columns not read count as empty."""

    schema: Schema
    record_type: str
    raw: tuple[tuple[str, pl.DataType], ...]
    forms: tuple[tuple[str, str], ...]
    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The typed variables."""
        with redact_errors(self.record_type):
            made = convert_frame(self.schema, self.schema.record(self.record_type), self.file(table))
            return to_plain(arrow_of(collect_frame(made.select(self.names))))

    def file(self, table: pa.Table) -> pl.LazyFrame:
        """Return the columns of the file as ``CensusFiles.file`` gives them."""
        frame = frame_of(restore_unsigned(table))
        columns = [
            pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in self.raw
        ]
        shaped = variables.apply_forms(frame.lazy().select(columns), dict(self.forms))
        return variables.add_keys(self.schema, self.schema.record(self.record_type), shaped)


def restore_unsigned(table: pa.Table) -> pa.Table:
    """Return the table with its unsigned 64-bit integers restored, which Spark reads as decimals."""
    kinds = [
        pa.field(field.name, pa.uint64() if pa.types.is_decimal(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(kinds))


@dataclass(frozen=True, slots=True)
class JoinLinked:
    """Add to the records of a part columns of the records they are linked to."""

    record: RecordSchema
    other: RecordSchema
    names: tuple[str, ...]
    columns: tuple[str, ...]

    def __call__(self, _part: int, left: pa.Table, right: pa.Table) -> pa.Table:
        """All records; the columns are empty where the link names no record."""
        here, there = frame_of(left), frame_of(right)
        ids = there.get_column(KEY_COLUMN).drop_nulls()
        again = len(ids) - ids.n_unique()
        if again:
            raise make_duplicate_error(self.other, f"at least {again:,}")
        made = here.join(
            there.select(KEY_COLUMN, *self.names), on=KEY_COLUMN, how="left", maintain_order="left"
        )
        return to_plain(arrow_of(made.select(self.columns)))


@dataclass(frozen=True, slots=True)
class AddLink:
    """Add the link of each record as one more column, as text when the two sides store it in different types."""

    column: str
    text: bool
    keep: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The kept columns and the link."""
        key = table.column(self.column)
        if self.text and not pa.types.is_string(key.type):
            text = pl.Series(key).cast(pl.String).to_arrow(compat_level=OLDEST_ARROW)
            key = pa.chunked_array([text]).cast(pa.string())
        return table.select(list(self.keep)).append_column(KEY_COLUMN, key)


@dataclass(frozen=True, slots=True)
class AddAreaCodes:
    """Add codes of areas from a small table that is sent with the kernel."""

    key: str
    table: pa.Table
    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The table with the codes in more columns."""
        frame, small = frame_of(table), frame_of(self.table)
        small = small.select(pl.col(self.key).cast(frame.schema[self.key], strict=False), *self.names)
        small = small.unique(subset=self.key, keep="first", maintain_order=True)
        made = frame.join(small, on=self.key, how="left", maintain_order="left")
        return to_plain(arrow_of(made))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the schema with the columns of the codes appended."""
        for name in self.names:
            before = before.append(plain_schema(self.table.schema).field(name))
        return before


@dataclass(frozen=True, slots=True)
class SelectColumns:
    """Some columns of a table."""

    columns: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """Those columns, in that order."""
        return table.select(list(self.columns))


def make_duplicate_error(record: RecordSchema, again: str) -> DataError:
    """Return the error for two records of a type that share an identifier."""
    return DataError(
        f"{record.name}.{record.id}: {again} identifiers were used before by another record",
        why="records linked to them would be counted more than once",
        fix="see all problems with: stirred data check census.toml",
    )


# Read a record type's own columns on Spark: from Parquet, or through a copy in scratch for other formats.


def read_own(engine: Cluster, census: Census, record_type: str, names: Sequence[str]) -> SparkFlow:
    """Return the record type's own columns, with the schema's types."""
    record = census.schema.record(record_type)
    scanned = convert_frame(census.schema, record, census.file(record_type)).select(names)
    schema = plain_schema(arrow_of(pl.DataFrame(schema=scanned.collect_schema())).schema)
    there = open_own(engine, census, record_type, names)
    if there is None:
        key = (
            id(census.schema),
            id(census.files.get(record_type)),
            str(census.folder),
            record_type,
            tuple(names),
        )
        if key not in engine.kept_tables:
            batches = (to_plain(batch) for batch in census.batches(record_type, names))
            # the census is kept so that its id() is not reused
            engine.kept_tables[key] = (write_scratch(engine, batches, schema), census)
        kept: SparkFlow = engine.kept_tables[key][0]
        return kept
    flow, kernel = there
    return flow.map(kernel, schema)


def open_own(
    engine: Cluster, census: Census, record_type: str, names: Sequence[str]
) -> tuple[SparkFlow, ConvertColumns] | None:
    """Return the columns of the files for these variables, and what converts them; None where Spark cannot read them."""
    record = census.schema.record(record_type)
    # a table that is given takes the place of the files
    paths = None if record_type in census.files else list_addresses(record) or list_parquet(census, record)
    if paths is None:
        return None
    raw = census.source(record_type).collect_schema()
    sources = list_needed_sources(census.schema, record, raw, names)
    kinds = arrow_of(pl.DataFrame(schema={name: raw[name] for name in sources})).schema
    near, base = [path for path in paths if isinstance(path, Path)], find_base(paths)
    by_name = base or not near  # folders whose names have values, or addresses: only Spark reads them
    if not knows_types(kinds) or (by_name and has_pattern(paths)):
        return None
    require_alike(paths, sources, record_type)
    kernel = ConvertColumns(
        census.schema, record_type, tuple(raw.items()), tuple(census.forms(record_type).items()), tuple(names)
    )
    schema = plain_schema(kinds)
    if not by_name:
        return read_slices(engine, near, sources, schema), kernel
    frame = open_parquet(engine, paths, base=base).select(*(quote_name(name) for name in sources))
    rows = sum(pq.read_metadata(path).num_rows for path in near)
    return SparkFlow(engine, frame, ReadBatches(), schema, (), rows if near else None), kernel


def list_addresses(record: RecordSchema) -> list[str]:
    """Return the addresses of a record type that only Spark can read; they are read as Parquet."""
    found = [name for name in record.source.files if is_remote(name)]
    if found and len(found) < len(record.source.files):
        raise SchemaError(
            f"the files of the {record.name} records are of two kinds",
            why="some are addresses for Spark, some are paths",
            fix="write all of them as addresses (file:/… for paths)",
        )
    return found


def stream_remote(engine: Cluster, record: RecordSchema) -> pl.LazyFrame:
    """Yield the columns of files that only Spark can open, as they stream through this process.

    Order and types are Spark's: it has no dictionaries (they become text), and unsigned integers become wider ones.
    """
    from polars.io.plugins import register_io_source
    from pyspark.sql.pandas.types import to_arrow_schema

    frame = open_parquet(engine, list_addresses(record))
    schema = restore_unsigned(to_arrow_schema(frame.schema, timezone="UTC").empty_table()).schema

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, n: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        kept = pa.schema([schema.field(name) for name in (columns or schema.names)])
        flow = SparkFlow(
            engine,
            frame.select(*(quote_name(name) for name in kept.names)),
            ReadBatches(),
            kept,
            (restore_unsigned,),
        )
        for table in flow.stream():
            made = frame_of(table)
            made = made if predicate is None else made.filter(predicate)
            made = made if n is None else made.head(n)
            n = None if n is None else n - made.height
            yield made
            if n == 0:
                return

    empty = frame_of(schema.empty_table())
    return register_io_source(rows, schema=empty.schema)


def list_parquet(census: Census, record: RecordSchema) -> list[Path] | None:
    """Return the Parquet files of a record type, or None if it has another format or must be split."""
    if record.name in census.files or not record.source.files or census.shares_file(record):
        return None
    if find_format(record.source, census.folder) != "parquet":
        return None
    paths = resolve_files(record.source.files, census.folder, PARQUET_ENDINGS)
    return paths if all(path.suffix.lower() in {".parquet", ".pq"} for path in paths) else None


def list_needed_sources(
    schema: Schema, record: RecordSchema, raw: pl.Schema, names: Sequence[str]
) -> list[str]:
    """Return the columns of the file that these variables need, and those that select the records."""
    wanted = {*names, *(name for name, _ in record.where)}
    levels = {level.name: level.columns or (level.name,) for level in schema.geography.spine}
    levels |= dict(record.keys)
    found: list[str] = []
    for variable in list_variables(schema, record, raw):
        if variable.name in wanted:
            made_of = levels.get(variable.name, (variable.source,))
            found += made_of if all(name in raw for name in made_of) else (variable.source,)
    return list(dict.fromkeys(found))


def find_base(paths: Sequence[Path | str]) -> str:
    """Return the folder above the first one named like ``state=44``, or empty text."""
    if isinstance(paths[0], str):
        return ""
    parts = paths[0].absolute().parts[:-1]
    first = next((i for i, part in enumerate(parts) if "=" in part), None)
    return "" if first is None else "file:" + str(Path(*parts[:first]))


def require_alike(paths: Sequence[Path | str], columns: Sequence[str], record_type: str) -> None:
    """Raise an error if files differ in these columns, because Spark would fill missing columns silently."""
    near = [path for path in paths if isinstance(path, Path)]
    with redact_errors(record_type):
        kinds = {
            tuple(
                (name, str(schema.field(name).type)) if name in schema.names else (name, "")
                for name in columns
            )
            for schema in map(pq.read_schema, near)
        }
    if len(kinds) > 1:
        raise DataError(
            f"cannot read the {record_type} records",
            why="the files differ in their columns or types",
            fix="give all files of a record type the same columns",
        )


# Read records on Spark, with the columns that come from their household and from files of areas.


def read_records(engine: Cluster, census: Census, record_type: str, columns: Sequence[str]) -> SparkFlow:
    """Return the records with exactly these columns, as ``Census.scan`` resolves them."""
    record = census.schema.record(record_type)
    asked = list(dict.fromkeys(columns))
    there = list(census.columns(record_type))
    needed = census._list_needed(asked)
    lacking = [name for name in asked if name not in there]
    if not lacking:
        return read_own(engine, census, record_type, asked)
    keep = [name for name in there if name in {*needed, record.household}]
    wanted: list[str] = []
    if record.linked_to:
        reachable = census.columns(record.linked_to)
        wanted = [name for name in census._list_needed(lacking) if name in reachable and name not in there]
    flow = (
        join_linked(engine, census, record, keep, wanted)
        if wanted
        else read_own(engine, census, record_type, keep or there[:1])
    )
    for look_up in make_lookups(
        census, [name for name in asked if name not in flow.schema.names], flow.schema.names
    ):
        flow = flow.map(look_up, look_up.schema(flow.schema))
    for name in asked:
        if name not in flow.schema.names:
            known_names = sorted({*flow.schema.names, *there})
            raise InputError(
                f"{record.name} records have no column {name}",
                why="it was asked for",
                fix=did_you_mean(name, known_names),
            )
    return flow.map(SelectColumns(tuple(asked)), pa.schema([flow.schema.field(name) for name in asked]))


def join_linked(
    engine: Cluster, census: Census, record: RecordSchema, keep: list[str], wanted: list[str]
) -> SparkFlow:
    """Add columns of linked records: one shuffle brings both sides together by the hash of the link."""
    other = census.schema.record(record.linked_to)
    left = read_own(engine, census, record.name, keep)
    right = read_own(engine, census, other.name, list(dict.fromkeys([other.id, *wanted])))
    return join_flows(engine, record, other, left, right, keep, wanted)


def join_flows(
    engine: Cluster,
    record: RecordSchema,
    other: RecordSchema,
    left: SparkFlow,
    right: SparkFlow,
    keep: list[str],
    wanted: list[str],
) -> SparkFlow:
    """Return the kept columns of the records of one flow with the wanted ones of those they are linked to."""
    kinds = left.schema.field(record.household).type, right.schema.field(other.id).type
    text = kinds[0] != kinds[1]
    parts = engine.parts_for(estimate_bytes(left) + estimate_bytes(right))
    key = pa.field(KEY_COLUMN, pa.string() if text else kinds[0])
    placed = PlaceRows((KEY_COLUMN,), parts)
    sides = []
    for flow, column, names in ((left, record.household, keep), (right, other.id, wanted)):
        schema = pa.schema([*(flow.schema.field(name) for name in names), key])
        keyed = flow.map(AddLink(column, text, tuple(names)), schema)
        sides.append(keyed.map(placed, placed.schema(schema)))
    columns = (*keep, *wanted)
    schema = pa.schema([(left if name in keep else right).schema.field(name) for name in columns])
    joined = JoinLinked(record, other, tuple(wanted), columns)
    flow = SparkParts.of(engine, sides, PART_COLUMN, parts).map(joined, schema).flow()
    return replace(flow, rows=left.rows)  # a join keeps every record


def make_lookups(census: Census, lacking: list[str], there: list[str]) -> list[AddAreaCodes]:
    """Return kernels that find missing geographic columns by the code of the level that determines them."""
    schema, folder = census.schema, census.folder
    geography = schema.geography
    finest = schema.spine[-1] if schema.spine else ""
    found = []
    levels = [name for name in lacking if name in schema.spine]
    levels += [
        off.of for off in geography.off_spine if off.name in lacking and off.of and off.of not in there
    ]
    levels = [name for name in dict.fromkeys(levels) if name not in there]
    if levels and geography.areas is not None and finest in there:
        found.append(_make_lookup(read_ancestors(schema, folder), finest, levels))
    beside = [off for off in geography.off_spine if off.name in lacking and off.files]
    return found + [
        _make_lookup(read_crosswalk(schema, off.name, folder), off.of, [off.name]) for off in beside
    ]


def _make_lookup(table: pl.LazyFrame, key: str, names: list[str]) -> AddAreaCodes:
    frame = collect_frame(table.select(key, *names))
    return AddAreaCodes(key, arrow_of(frame), tuple(names))


TEXT_BYTES = 16  # bytes of a text in memory, with the numbers that say where it lies


def estimate_bytes(flow: SparkFlow) -> int:
    """Return how many bytes the rows of a flow take in memory: rows times the width of their columns.

    The bytes of the files do not tell: a sorted column is compressed a hundredfold.
    """
    rows = flow.rows
    if rows is None:  # from the footers of files that only Spark can open
        rows = int(flow.engine.watch.run(flow.frame.count, step="count rows"))
    return rows * row_width(flow.schema)


def row_width(schema: pa.Schema) -> int:
    """Return about how many bytes a row takes in memory.

    >>> row_width(pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.bool_())]))
    25
    """
    return sum(_column_width(field.type) for field in schema)


def _column_width(kind: pa.DataType) -> int:
    try:
        return int(-(-kind.bit_width // 8))
    except ValueError:  # texts have no fixed width
        return TEXT_BYTES
