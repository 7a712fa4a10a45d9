"""Records and tables as CSV, batch by batch: a file of any size needs the memory of a few batches."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from stirred.arrow import pads, pc

ROWS_PER_BATCH = 65_536  # in a batch
FORMULA_PATTERN = "^[=+\\-@\\t\\r]"  # the first characters of what a spreadsheet computes
NUMBER_PATTERN = r"^[+-]?[0-9]+(\.[0-9]+)?$"


def write_csv(data: "pa.Table | pads.Dataset", path: Path, *, escape: bool = True) -> None:
    """Write the rows in their order, codes as the texts that they stand for.

    With ``escape`` texts that a spreadsheet would compute, such as ``=1+1``, begin with an apostrophe; numbers do not.
    """
    schema = pa.schema(
        [(_escape_name(field.name) if escape else field.name, _plain(field.type)) for field in data.schema]
    )
    with pa.csv.CSVWriter(str(path), schema) as file:
        for batch in _batches(data):
            columns = [column.cast(_plain(column.type)) for column in batch.columns]
            columns = [_escape_column(column) for column in columns] if escape else columns
            file.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _escape_column(column: pa.Array) -> pa.Array:
    """Prefix an apostrophe to texts that a spreadsheet would compute (OWASP, CSV injection)."""
    if not pa.types.is_string(column.type) and not pa.types.is_large_string(column.type):
        return column
    computed = pc.and_(
        pc.match_substring_regex(column, FORMULA_PATTERN),
        pc.invert(pc.match_substring_regex(column, NUMBER_PATTERN)),
    )
    if not pc.any(computed).as_py():
        return column
    mark, nothing = (
        pa.scalar("'", column.type),
        pa.scalar("", column.type),
    )  # pyarrow joins texts of one type only
    return pc.if_else(computed, pc.binary_join_element_wise(mark, column, nothing), column)


def _escape_name(name: str) -> str:
    return str(_escape_column(pa.array([name], pa.string()))[0].as_py())


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _batches(data: "pa.Table | pads.Dataset") -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.Table):
        yield from data.to_batches(max_chunksize=ROWS_PER_BATCH)
        return
    for name in data.files:
        # one row group at a time: a scan of the whole file reads ahead and keeps what it read
        with pq.ParquetFile(name, pre_buffer=False) as file:
            for group in range(file.num_row_groups):
                yield from file.iter_batches(batch_size=ROWS_PER_BATCH, row_groups=[group], use_threads=False)
