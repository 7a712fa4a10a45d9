"""Remove dictionaries from tables before rows are exchanged, because two batches may number the same text differently."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from stirred.arrow import pads

ROWS_PER_BATCH = 1 << 18  # rows of a batch


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values are exchanged.

    >>> plain_type(pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which rows are exchanged: no dictionaries, no metadata."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def to_plain(data: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the same values without dictionaries and metadata.

    >>> to_plain(pa.table({"a": pa.array(["x", "y"]).dictionary_encode()})).schema.field("a").type
    DataType(string)
    """
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    return table.cast(plain_schema(table.schema))


def stream_tables(data: "pa.Table | pads.Dataset") -> Iterator[pa.Table]:
    """Yield released records in their order, in batches without dictionaries; Parquet files one row group at a time.

    >>> [batch.num_rows for batch in stream_tables(pa.table({"a": [1, 2]}))]
    [2]
    """
    for batch in _read_batches(data):
        for start in range(0, batch.num_rows, ROWS_PER_BATCH):
            yield to_plain(batch.slice(start, ROWS_PER_BATCH))


def _read_batches(data: "pa.Table | pads.Dataset") -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.Table) or not (
        isinstance(data, pads.FileSystemDataset) and isinstance(data.format, pads.ParquetFileFormat)
    ):
        yield from data.to_batches()
        return
    for name in data.files:  # a scan of the data set reads ahead until it holds all of it
        with pq.ParquetFile(name, filesystem=data.filesystem, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=ROWS_PER_BATCH)
