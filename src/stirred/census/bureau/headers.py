"""Check the first line of a file, which must name the columns; what else it holds is never shown."""

from collections.abc import Sequence
from pathlib import Path

from stirred.errors import DataError
from stirred.roots import require_readable

MAX_HEADER_BYTES = 1 << 20  # bytes of a header, as for every text file


def require_columns(path: Path, wanted: Sequence[str], *, separator: str = "|") -> None:
    """Raise one error if a file is empty, is not text, has no header, or lacks a column."""
    header = _read_names(path, separator)
    example = separator.join(wanted)
    if header == [""]:
        raise DataError(
            f"{path.name} is empty" if not path.stat().st_size else f"the first line of {path.name} is empty",
            why="its first line must name the columns",
            fix=f"first line: {example}",
        )
    if any("\x00" in name or "\ufffd" in name or "\r" in name for name in header):
        raise DataError(
            f"{path.name} is not a text file with one record per line",
            why="its first line is not UTF-8, or holds zero bytes or bare carriage returns",
            fix="save it as UTF-8 with line feeds",
        )
    lacking = [name for name in wanted if name not in header]
    if len(lacking) == len(wanted):  # its first line may be a record, which is not shown
        raise DataError(
            f"the first line of {path.name} names none of its columns",
            why=f"it must name the columns, with {separator} between them",
            fix=f"first line: {example}",
        )
    if lacking:
        raise DataError(
            f"{path.name} lacks {', '.join(lacking)}",
            why=f"its first line must name the columns, with {separator} between them",
            fix=f"first line: {example}",
        )
    twice = sorted(name for name in wanted if header.count(name) > 1)
    if twice:
        raise DataError(
            f"{path.name} names {', '.join(twice)} twice",
            why="it cannot be told which column holds the values",
            fix="remove one of them",
        )


def has_columns(path: Path, wanted: Sequence[str], *, separator: str = "|") -> bool:
    """Return whether the first line names all of these columns."""
    return set(wanted) <= set(_read_names(path, separator))


def _read_names(path: Path, separator: str) -> list[str]:
    """Return the names in the first line, read without Polars, which light commands do not load."""
    with require_readable(path).open("rb") as stream:
        line = stream.readline(MAX_HEADER_BYTES)
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    return [name.strip().strip('"') for name in text.split(separator)]
