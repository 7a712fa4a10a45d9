"""Read a record type's own columns on Spark: from Parquet, or through a copy in scratch for other formats."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.census.census import Census, redact_errors
from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.codebook.typed import convert_frame, list_variables
from stirred.census.readers.dispatch import find_format
from stirred.census.readers.parquet import PARQUET_ENDINGS
from stirred.census.readers.paths import is_remote, resolve_files
from stirred.engine.plain import plain_schema, to_plain
from stirred.engine.spark.cluster import Cluster
from stirred.engine.spark.flow import SparkFlow
from stirred.engine.spark.reading.kernels import ConvertColumns, restore_unsigned
from stirred.engine.spark.reading.tables import can_read, open_parquet, quote_name, write_scratch
from stirred.engine.spark.tasks import ReadBatches
from stirred.errors import DataError, SchemaError
from stirred.frames import arrow_of, frame_of


def read_own(engine: Cluster, census: Census, record_type: str, names: Sequence[str]) -> SparkFlow:
    """Return the record type's own columns, with the schema's types."""
    record = census.schema.record(record_type)
    raw = census.source(record_type).collect_schema()
    scanned = convert_frame(census.schema, record, census.file(record_type)).select(names)
    empty = arrow_of(pl.DataFrame(schema=scanned.collect_schema()))
    schema = plain_schema(empty.schema)
    # a table that is given takes the place of the files
    paths = None if record_type in census.files else list_addresses(record) or list_parquet(census, record)
    sources = list_needed_sources(census.schema, record, raw, names) if paths is not None else []
    raw_kinds = arrow_of(pl.DataFrame(schema={name: raw[name] for name in sources})).schema
    if paths is None or not can_read(paths, raw_kinds):
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
    require_alike(paths, sources, record_type)
    frame = open_parquet(engine, paths, base=find_base(paths)).select(*(quote_name(name) for name in sources))
    kernel = ConvertColumns(
        census.schema, record_type, tuple(raw.items()), tuple(census.forms(record_type).items()), tuple(names)
    )
    return SparkFlow(engine, frame, ReadBatches(), schema, (kernel,))


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
