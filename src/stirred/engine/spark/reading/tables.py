"""Give tables to Spark: it reads Parquet files itself; everything else is first written to scratch, batch by batch."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from stirred.arrow import pads
from stirred.engine.plain import plain, plain_schema
from stirred.engine.spark.cluster import Cluster
from stirred.engine.spark.flow import SparkFlow
from stirred.engine.spark.tasks import Messages, Read
from stirred.engine.spark.watch import in_our_words
from stirred.engine.spark.wire import WIRE, messages

GLOB = set("{}[]*?\\")  # Spark would read a path with one of these characters as a pattern


@dataclass(frozen=True, slots=True)
class Cast:
    """Convert columns that Spark has read to their declared types (Spark reads an unsigned integer as a wider number)."""

    schema: pa.Schema

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same values in the declared types."""
        return table.cast(self.schema)


def laid(engine: Cluster, tables: Iterable[pa.Table], schema: pa.Schema) -> SparkFlow:
    """Write tables that only this process can read to scratch, one by one, and return a flow over them."""
    path = engine.scratch / f"{uuid.uuid4().hex}.parquet"
    with pq.ParquetWriter(path, WIRE) as writer:
        for table in tables:
            for message in messages(table.cast(schema), 0, 0):
                writer.write_batch(message)
    return SparkFlow(engine, opened(engine, [path]), Messages(schema), schema)


def opened(engine: Cluster, paths: Sequence[Path | str], *, base: str = "") -> Any:
    """A data frame over Parquet files; names are local paths or addresses that Spark knows."""
    reader = engine.session.read
    if base:
        reader = reader.option("basePath", base)
    with in_our_words():
        return reader.parquet(*(address(path) for path in paths))


def address(path: Path | str) -> str:
    """The address of a file for Spark.

    >>> address(Path("/data/census.parquet")), address("s3a://office/census.parquet")
    ('file:/data/census.parquet', 's3a://office/census.parquet')
    """
    return path if isinstance(path, str) else f"file:{path.absolute()}"


def readable(paths: Iterable[Path | str], schema: pa.Schema) -> bool:
    """Whether Spark reads these files correctly: no patterns in their names, no types it does not know."""
    if any(GLOB & set(str(path.absolute())) for path in paths if isinstance(path, Path)):
        return False
    return all(known(field.type) for field in schema)


def known(kind: pa.DataType) -> bool:
    """Whether Spark's reader leaves values of a type unchanged.

    >>> known(pa.uint64()), known(pa.timestamp("ns"))
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


def released(engine: Cluster, data: "pa.Table | pads.Dataset") -> SparkFlow:
    """Released records, from their Parquet files or from copies in scratch."""
    schema = plain_schema(data.schema)
    if isinstance(data, pads.FileSystemDataset) and isinstance(data.format, pads.ParquetFileFormat):
        paths = [Path(name) for name in data.files]
        if readable(paths, data.schema) and all(path.exists() for path in paths):
            frame = opened(engine, paths).select(*(quoted(name) for name in schema.names))
            return SparkFlow(engine, frame, Read(), schema, (Cast(schema),))
    return laid(engine, (plain(batch) for batch in data.to_batches()), schema)


def quoted(name: str) -> str:
    """A column's name, quoted for Spark.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"
