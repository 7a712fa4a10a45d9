"""Refuse files that would exhaust the machine, by what they declare and before their records are read.

The limits are far above what any census needs; a file beyond them is damaged or made to do harm.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stirred.errors import DataError

COLUMNS = 2_000
NAME = 1_000  # characters of a column's name
HEADER = 1 << 20  # bytes of the first line of a text file
LINE = 1 << 24  # bytes of any line
FOOTER = 64 << 20  # bytes that describe a Parquet file
GROUP = 1 << 24  # records of a row group: several of them are held at once
CHUNK = 4 << 30  # bytes that one column of a row group may declare
DENSE = 10_000_000, 50  # records from which, and records in a byte with which, a file is not plausible
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}


def require_columns(columns: Sequence[str], file: str) -> None:
    """Refuse more columns, or longer names of columns, than a census can have.

    >>> require_columns(["n" * 5000], "a.csv")
    Traceback (most recent call last):
    ...
    stirred.errors.DataError: a.csv does not look like records
      why: a column has a name of 5,000 characters; 1,000 are allowed
      fix: write only the columns of the census, under short names
    """
    longest = max(map(len, columns), default=0)
    if len(columns) > COLUMNS:
        why = f"it has {len(columns):,} columns; {COLUMNS:,} are allowed"
    elif longest > NAME:
        why = f"a column has a name of {longest:,} characters; {NAME:,} are allowed"
    else:
        return
    raise DataError(
        f"{file} does not look like records",
        why=why,
        fix="write only the columns of the census, under short names",
    )


def require_lines(path: Path) -> None:
    """Refuse a text file whose first line, or any other line, is longer than a record can be."""
    with path.open("rb") as raw:
        plain = path.suffix not in COMPRESSED
        stream = raw if plain else pa.CompressedInputStream(raw, COMPRESSED[path.suffix])
        try:
            length = 0  # of the line that the block before ends with
            while block := stream.read(LINE // 4):
                first = block.find(b"\n")
                if length + (len(block) if first < 0 else first) > LINE:
                    raise too_long(path.name, LINE)
                length = length + len(block) if first < 0 else len(block) - 1 - block.rfind(b"\n")
        except OSError:
            return  # a damaged archive: the reader of the records says so


def too_long(file: str, limit: int) -> DataError:
    """The error for a line that no record has."""
    return DataError(
        f"{file} is not a text file with one record per line",
        why=f"a line is longer than {limit:,} bytes",
        fix="check its line ends and quoting; lines end with a line feed",
    )


def require_parquet(path: Path) -> None:
    """Refuse a Parquet file whose footer contradicts itself or declares what no writer writes; it is read once."""
    told = path.stat()
    _require_parquet(path, told.st_size, told.st_mtime_ns)


@lru_cache(maxsize=4096)
def _require_parquet(path: Path, size: int, _changed: int) -> None:
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read(8)
    if tail[4:] == b"PAR1" and int.from_bytes(tail[:4], "little") > FOOTER:
        raise _implausible(path, f"its description alone is longer than {FOOTER:,} bytes")
    try:
        meta = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        raise DataError(
            f"cannot read {path.name}",
            why="the file is not a complete Parquet file",
            fix="copy or write it again",
        ) from None
    require_columns(meta.schema.names, path.name)
    why = _fault(meta, size - 8 - int.from_bytes(tail[:4], "little"))
    if why:
        raise _implausible(path, why)


def _fault(meta: pq.FileMetaData, end: int) -> str:
    """What is wrong with a footer; the data of its columns end before the byte ``end``."""
    flat = [meta.schema.column(i).max_repetition_level == 0 for i in range(meta.num_columns)]
    places: list[tuple[int, int]] = []
    rows = 0
    for number in range(meta.num_row_groups):
        group = meta.row_group(number)
        rows += group.num_rows
        if not 0 <= group.num_rows <= GROUP:
            return f"it declares {group.num_rows:,} records in one row group; {GROUP:,} are allowed"
        for index in range(group.num_columns):
            column = group.column(index)
            start = column.data_page_offset
            if column.has_dictionary_page:
                start = min(start, column.dictionary_page_offset)
            places.append((start, start + column.total_compressed_size))
            if flat[index] and column.num_values != group.num_rows:
                return "it declares different numbers of records for columns of one row group"
            if not 0 <= column.total_uncompressed_size <= CHUNK:
                return f"one column of a row group declares more than {CHUNK:,} bytes"
    if rows != meta.num_rows:
        return f"it declares {meta.num_rows:,} records, its row groups {rows:,}"
    if rows > DENSE[0] and rows > DENSE[1] * max(end, 1):
        return f"it declares {rows:,} records in {end:,} bytes"
    places.sort()
    if any(first < 4 or last > end or last < first for first, last in places):
        return "it declares data outside the file"
    if any(after < last for (_, last), (after, _) in pairwise(places)):
        return "two of its columns or row groups are the same bytes"
    return ""


def _implausible(path: Path, why: str) -> DataError:
    return DataError(
        f"{path.name} does not look like records",
        why=why,
        fix="copy or write it again, with row groups of about a million records",
    )
