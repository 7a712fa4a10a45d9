"""Scan Parquet and Arrow files, in slices where row groups are large; refuse files that exhaust the machine."""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from polars.io.plugins import register_io_source

from stirred.census.readers.sources import require_columns, resolve_files
from stirred.census.schema import Source
from stirred.errors import DataError
from stirred.frames import frame_of

# How large the pages of a Parquet column become when they are unpacked, by their headers and without unpacking one.
#
# A page header is a structure of Thrift's compact protocol: for each field a byte with the step to its number and its
# type, then its value. Field 2 is the size when unpacked, field 3 the size in the file:
# https://github.com/apache/parquet- format.

MAX_PAGE_HEADER_BYTES = 1 << 16  # bytes of one header, with the smallest and largest value of its page
USUAL_PAGE_HEADER_BYTES = 256  # bytes that are enough for nearly every header
TRUE, FALSE, BYTE, DOUBLE, BINARY, STRUCT = 1, 2, 3, 7, 8, 12
THRIFT_INTEGER_KINDS = (4, 5, 6)
MAX_STRUCT_DEPTH = 8  # structures inside structures: a header has three


def find_pages(column: pq.ColumnChunkMetaData) -> tuple[int, int]:
    """Return where the pages of one column of a row group begin and end in the file."""
    start = int(column.data_page_offset)
    if column.has_dictionary_page:
        first = int(column.dictionary_page_offset)
        start = min(start or first, first)  # 0: a column without values has no page of data
    return start, start + int(column.total_compressed_size)


def measure_pages(file: BinaryIO, start: int, end: int) -> tuple[int, int]:
    """Return the largest page and the sum of all pages between two places, in bytes; none raises ValueError."""
    largest = together = 0
    while start < end:
        fields, length = _read_page_header(file, start, end)
        size, stored = fields.get(2, -1), fields.get(3, -1)
        if size < 0 or stored < 0:
            raise ValueError("no page begins here")
        largest, together = max(largest, size), together + size
        start += length + stored
    return largest, together


def _read_page_header(file: BinaryIO, start: int, end: int) -> tuple[dict[int, int], int]:
    """Return the numbers of the structure that begins there, and its length."""
    for size in (USUAL_PAGE_HEADER_BYTES, MAX_PAGE_HEADER_BYTES):
        file.seek(start)
        try:
            return _read_struct(file.read(min(size, end - start)), 0, MAX_STRUCT_DEPTH)
        except IndexError:  # it is longer
            continue
    raise ValueError("a header is not complete")


def _read_struct(data: bytes, at: int, deep: int) -> tuple[dict[int, int], int]:
    if not deep:
        raise ValueError("structures are too deep")
    fields: dict[int, int] = {}
    field = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            field += step
        else:
            field, at = _read_signed(data, at)
        if kind in THRIFT_INTEGER_KINDS:
            fields[field], at = _read_signed(data, at)
        else:
            at = _skip_value(data, at, kind, deep)
    return fields, at + 1


def _skip_value(data: bytes, at: int, kind: int, deep: int) -> int:
    """Return the place after a value that is not asked for."""
    if kind in (TRUE, FALSE):
        return at
    if kind == BYTE:
        return at + 1
    if kind == DOUBLE:
        return at + 8
    if kind == BINARY:
        length, at = _read_varint(data, at)
        return at + length
    if kind == STRUCT:
        return _read_struct(data, at, deep - 1)[1]
    raise ValueError("a page header has no lists")


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:
            return value, at
    raise ValueError("a number is too long")


def _read_signed(data: bytes, at: int) -> tuple[int, int]:
    """Return a signed number.

    >>> _read_signed(bytes([0xD0, 0x0F]), 0)
    (1000, 2)
    """
    value, at = _read_varint(data, at)
    return value >> 1 ^ -(value & 1), at


# Read Parquet files with large row groups in slices of bounded size; Polars holds several whole row groups at once.

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


# Refuse Parquet files that would exhaust the machine, by what their footer and their pages declare.

MAX_FOOTER_BYTES = 64 << 20  # bytes that describe a Parquet file
MAX_GROUP_ROWS = 1 << 24  # records of a row group: several of them are held at once
MAX_CHUNK_BYTES = 4 << 30  # bytes that one column of a row group may declare
DENSE_ROWS_AND_ROWS_PER_BYTE = (
    10_000_000,
    50,
)  # records from which, and records in a byte with which, a file is not plausible
MAX_BYTES_ALL_PAGES_READ = 64 << 20  # bytes of a file whose pages are all looked at
PAGE_SLACK_BYTES = 1 << 20  # bytes that the pages of a column may have beyond what it declares


def require_parquet(path: Path) -> int:
    """Refuse a Parquet file whose footer contradicts itself or declares what no writer writes; it is read once.

    Returns the bytes that its largest row group takes in memory.
    """
    told = path.stat()
    return _require_parquet(path, told.st_size, told.st_mtime_ns)


@lru_cache(maxsize=4096)
def _require_parquet(path: Path, size: int, _changed: int) -> int:
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
    if tail[4:] == b"PAR1" and int.from_bytes(tail[:4], "little") > MAX_FOOTER_BYTES:
        raise _make_implausible_error(
            path, f"its description alone is longer than {MAX_FOOTER_BYTES:,} bytes"
        )
    try:
        meta = pq.read_metadata(path)
    except (pa.ArrowException, OSError, ValueError):
        raise DataError(
            f"cannot read {path.name}",
            why="the file is not a complete Parquet file",
            fix="copy or write it again",
        ) from None
    require_columns(meta.schema.names, path.name)
    why = _find_footer_fault(meta, size - 8 - int.from_bytes(tail[:4], "little"))
    if why:
        raise _make_implausible_error(path, why)
    size_in_memory = measure_group(meta)
    # a large file of ordinary row groups has too many pages to look at; it cannot be sent unnoticed either
    if (size <= MAX_BYTES_ALL_PAGES_READ or size_in_memory > SLICED_GROUP_BYTES) and (
        why := _find_pages_fault(path, meta)
    ):
        raise _make_implausible_error(path, why)
    return size_in_memory


def _find_pages_fault(path: Path, meta: pq.FileMetaData) -> str:
    """Return what is wrong with the sizes that the pages of a file declare for themselves."""
    with path.open("rb") as file:
        for number in range(meta.num_row_groups):
            group = meta.row_group(number)
            held = 0  # a page of every column
            for index in range(group.num_columns):
                column = group.column(index)
                try:
                    largest, together = measure_pages(file, *find_pages(column))
                except ValueError:
                    return "a column has no pages where it declares them"
                if together > column.total_uncompressed_size + PAGE_SLACK_BYTES:
                    return "the pages of a column are larger than the column declares"
                held += largest
            if held > MAX_PAGES_BYTES:
                return f"its pages take {held:,} bytes at once when they are unpacked; {MAX_PAGES_BYTES:,} are allowed"
    return ""


def _find_footer_fault(meta: pq.FileMetaData, end: int) -> str:
    """Return what is wrong with a footer; the data of its columns end before the byte ``end``."""
    flat = [meta.schema.column(i).max_repetition_level == 0 for i in range(meta.num_columns)]
    places: list[tuple[int, int]] = []
    rows = 0
    for number in range(meta.num_row_groups):
        group = meta.row_group(number)
        rows += group.num_rows
        if not 0 <= group.num_rows <= MAX_GROUP_ROWS:
            return f"it declares {group.num_rows:,} records in one row group; {MAX_GROUP_ROWS:,} are allowed"
        for index in range(group.num_columns):
            column = group.column(index)
            if column.num_values or column.total_compressed_size:  # else it has no pages
                places.append(find_pages(column))
            if flat[index] and column.num_values != group.num_rows:
                return "it declares different numbers of records for columns of one row group"
            if not 0 <= column.total_uncompressed_size <= MAX_CHUNK_BYTES:
                return f"one column of a row group declares more than {MAX_CHUNK_BYTES:,} bytes"
    if rows != meta.num_rows:
        return f"it declares {meta.num_rows:,} records, its row groups {rows:,}"
    if rows > DENSE_ROWS_AND_ROWS_PER_BYTE[0] and rows > DENSE_ROWS_AND_ROWS_PER_BYTE[1] * max(end, 1):
        return f"it declares {rows:,} records in {end:,} bytes"
    places.sort()
    if any(first < 4 or last > end or last < first for first, last in places):
        return "it declares data outside the file"
    if any(after < last for (_, last), (after, _) in pairwise(places)):
        return "two of its columns or row groups are the same bytes"
    return ""


def _make_implausible_error(path: Path, why: str) -> DataError:
    return DataError(
        f"{path.name} does not look like records",
        why=why,
        fix="copy or write it again, with row groups of about a million records",
    )


# Scan Parquet and Arrow files: one, many, or a partitioned folder; they are never loaded as a whole.

# row groups that Polars holds at once, beside those it decodes; otherwise twice as many as there are threads
os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "2")
PARQUET_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc")


def scan_parquet(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame over Parquet files; a folder with names like ``state=44`` gives its columns too."""
    paths = resolve_files(source.files, folder, PARQUET_ENDINGS)
    if paths[0].suffix in (".arrow", ".feather", ".ipc"):
        return pl.scan_ipc(paths)
    largest = max(map(require_parquet, paths))
    # pyarrow tells damage as an error; Polars may end the process, and what it reads best are large files
    small = sum(path.stat().st_size for path in paths) <= MAX_BYTES_ALL_PAGES_READ
    partitioned = any("=" in part for path in paths for part in path.relative_to(path.anchor).parts[:-1])
    # Partition values stay text: "044" must not become 44.
    whole = pl.scan_parquet(
        paths, hive_partitioning=partitioned, hive_schema=_partition_types(paths), glob=False
    )
    return scan_slices(paths, whole.collect_schema()) if small or largest > SLICED_GROUP_BYTES else whole


def _partition_types(paths: list[Path]) -> dict[str, pl.DataType] | None:
    keys = {part.split("=", 1)[0] for path in paths for part in path.parts[:-1] if "=" in part}
    return {key: pl.String() for key in sorted(keys)} or None
