"""Refuse Parquet files that would exhaust the machine, by what their footer and their pages declare."""

from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stirred.census.readers.limits import require_columns
from stirred.census.readers.parquet.pages import find_pages, measure_pages
from stirred.census.readers.parquet.slices import MAX_PAGES_BYTES, SLICED_GROUP_BYTES, measure_group
from stirred.errors import DataError

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
