"""Read Parquet files with large row groups in slices of bounded size; Polars holds several whole row groups at once."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.io.plugins import register_io_source

from stirred.errors import DataError
from stirred.frames import frame_of

SLICED_GROUP_BYTES = 256 << 20  # bytes of a row group in memory from which it is read in slices
MAX_PAGES_BYTES = 512 << 20  # bytes of one page of every column, which are held at once
SLICE_BYTES = 32 << 20  # bytes of a slice in memory
MAX_SLICE_ROWS = 1 << 17  # records of a slice
TEXT_OVERHEAD_BYTES = 16  # bytes of a text in memory, beside its letters
BYTES_BY_TYPE = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}
EMPTY_PARTITION = "__HIVE_DEFAULT_PARTITION__"  # the name of a folder of records without that value


def measure_group(meta: pq.FileMetaData) -> int:
    """Return the bytes that the largest row group takes in memory, with all columns."""
    kinds = [meta.schema.column(i).physical_type for i in range(meta.num_columns)]
    width = sum(BYTES_BY_TYPE.get(kind, TEXT_OVERHEAD_BYTES) for kind in kinds)
    groups = [meta.row_group(i) for i in range(meta.num_row_groups)]
    return max((max(group.num_rows * width, group.total_byte_size) for group in groups), default=0)


def scan_slices(paths: Sequence[Path], schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Yield a lazy frame over Parquet files that holds one slice of the needed columns at a time."""

    def slices(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = {name: schema[name] for name in (schema if columns is None else columns)}
        left = rows
        for path in paths:
            for part in _read_slices(path, wanted, schema):
                kept = part if left is None else part.head(left)
                yield kept if predicate is None else kept.filter(predicate)
                left = None if left is None else left - kept.height
                if left == 0:
                    return

    return register_io_source(slices, schema=schema)


def _read_slices(
    path: Path, wanted: Mapping[str, pl.DataType], schema: Mapping[str, pl.DataType]
) -> Iterator[pl.DataFrame]:
    folders = dict(part.split("=", 1) for part in path.parts[:-1] if "=" in part)
    given = {name: unquote(value) for name, value in folders.items() if name in schema}
    here = {name: dtype for name, dtype in wanted.items() if name not in given}
    texts = [name for name, dtype in here.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
    # a buffer of its own for every column, and texts as numbers with one copy of each: neither holds a whole column
    with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, read_dictionary=texts) as file:
        if set(file.schema_arrow.names) != set(schema) - set(given):
            raise DataError(
                f"cannot read {path.name}",
                why="the files differ in their columns or types",
                fix="give all files of a record type the same columns",
            )
        names = list(here) or file.schema_arrow.names[:1]
        rows = max(1024, min(MAX_SLICE_ROWS, SLICE_BYTES // (TEXT_OVERHEAD_BYTES * len(names))))
        for batch in file.iter_batches(batch_size=rows, columns=names):
            frame = pl.DataFrame([_read_series(name, batch.column(name)) for name in names])
            areas = [
                pl.lit(None if value == EMPTY_PARTITION else value).alias(name)
                for name, value in given.items()
            ]
            frame = frame.with_columns(areas)
            yield (
                frame.select(pl.col(name).cast(dtype) for name, dtype in wanted.items()) if wanted else frame
            )


def _read_series(name: str, column: pa.Array) -> pl.Series:
    """Return a column of a slice; a text that occurs often is held once."""
    if pa.types.is_dictionary(column.type):
        texts = frame_of(pa.table({name: column.dictionary}))[name]
        numbers = frame_of(pa.table({name: column.indices}))[name]
        return texts.gather(numbers)
    return frame_of(pa.table({name: column}))[name]
