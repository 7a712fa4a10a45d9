"""Records and tables as CSV, batch by batch: a file of any size needs the memory of a few batches."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as pads
import pyarrow.parquet as pq

ROWS = 65_536  # in a batch


def write_csv(data: "pa.Table | pads.Dataset", path: Path) -> None:
    """Write the rows in their order, codes as the texts that they stand for."""
    schema = pa.schema([(field.name, _plain(field.type)) for field in data.schema])
    with pa.csv.CSVWriter(str(path), schema) as file:
        for batch in _batches(data):
            columns = [column.cast(_plain(column.type)) for column in batch.columns]
            file.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _batches(data: "pa.Table | pads.Dataset") -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.Table):
        yield from data.to_batches(max_chunksize=ROWS)
        return
    for name in data.files:
        # one row group at a time: a scan of the whole file reads ahead and keeps what it read
        with pq.ParquetFile(name, pre_buffer=False) as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(batch_size=ROWS, row_groups=[group], use_threads=False)
