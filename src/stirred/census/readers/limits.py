"""Refuse files that would exhaust the machine, by what they declare and before their records are read.

The limits are far above what any census needs; a file beyond them is damaged or made to do harm.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from stirred.errors import DataError

MAX_COLUMNS = 2_000
MAX_NAME_CHARACTERS = 1_000  # characters of a column's name
MAX_HEADER_BYTES = 1 << 20  # bytes of the first line of a text file
MAX_LINE_BYTES = 1 << 24  # bytes of any line
COMPRESSION_OF_ENDING = {".gz": "gzip", ".zst": "zstd"}


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
    if len(columns) > MAX_COLUMNS:
        why = f"it has {len(columns):,} columns; {MAX_COLUMNS:,} are allowed"
    elif longest > MAX_NAME_CHARACTERS:
        why = f"a column has a name of {longest:,} characters; {MAX_NAME_CHARACTERS:,} are allowed"
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
        plain = path.suffix not in COMPRESSION_OF_ENDING
        stream = raw if plain else pa.CompressedInputStream(raw, COMPRESSION_OF_ENDING[path.suffix])
        try:
            length = 0  # of the line that the block before ends with
            while block := stream.read(MAX_LINE_BYTES // 4):
                first = block.find(b"\n")
                if length + (len(block) if first < 0 else first) > MAX_LINE_BYTES:
                    raise make_line_error(path.name, MAX_LINE_BYTES)
                length = length + len(block) if first < 0 else len(block) - 1 - block.rfind(b"\n")
        except OSError:
            return  # a damaged archive: the reader of the records says so


def make_line_error(file: str, limit: int) -> DataError:
    """Return the error for a line that no record has."""
    return DataError(
        f"{file} is not a text file with one record per line",
        why=f"a line is longer than {limit:,} bytes",
        fix="check its line ends and quoting; lines end with a line feed",
    )
