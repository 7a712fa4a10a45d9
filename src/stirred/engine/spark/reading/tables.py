"""Give tables to Spark: it reads Parquet files itself; everything else is first written to scratch, batch by batch."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stirred.arrow import pads
from stirred.engine.plain import plain_schema, to_plain
from stirred.engine.spark.cluster import Cluster
from stirred.engine.spark.flow import SparkFlow
from stirred.engine.spark.tasks import ReadBatches, ReadMessages
from stirred.engine.spark.watch import translate_errors
from stirred.engine.spark.wire import WIRE_SCHEMA, pack_messages

GLOB_CHARACTERS = set("{}[]*?\\")  # Spark would read a path with one of these characters as a pattern


@dataclass(frozen=True, slots=True)
class CastColumns:
    """Convert columns that Spark has read to their declared types (Spark reads an unsigned integer as a wider number)."""

    schema: pa.Schema

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same values in the declared types."""
        return table.cast(self.schema)


def write_scratch(engine: Cluster, tables: Iterable[pa.Table], schema: pa.Schema) -> SparkFlow:
    """Write tables that only this process can read to scratch, one by one, and return a flow over them."""
    path = engine.scratch / f"{uuid.uuid4().hex}.parquet"
    with pq.ParquetWriter(path, WIRE_SCHEMA) as writer:
        for table in tables:
            for message in pack_messages(table.cast(schema), 0, 0):
                writer.write_batch(message)
    return SparkFlow(engine, open_parquet(engine, [path]), ReadMessages(schema), schema)


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


def can_read(paths: Iterable[Path | str], schema: pa.Schema) -> bool:
    """Return whether Spark reads these files correctly: no patterns in their names, no types it does not know."""
    if any(GLOB_CHARACTERS & set(str(path.absolute())) for path in paths if isinstance(path, Path)):
        return False
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
        if can_read(paths, data.schema) and all(path.exists() for path in paths):
            frame = open_parquet(engine, paths).select(*(quote_name(name) for name in schema.names))
            return SparkFlow(engine, frame, ReadBatches(), schema, (CastColumns(schema),))
    return write_scratch(engine, (to_plain(batch) for batch in data.to_batches()), schema)


def quote_name(name: str) -> str:
    """Return a column's name, quoted for Spark.

    >>> quote_name("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"
