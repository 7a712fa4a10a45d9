"""CSV and other delimited text: scanned as text, typed by the schema afterwards, so that no bad value is ever echoed."""

from pathlib import Path

import polars as pl

from stirred.census.readers.paths import resolve
from stirred.census.schema import Source
from stirred.errors import DataError

ENDINGS = (".csv", ".tsv", ".txt", ".psv", ".csv.gz", ".csv.zst")
SEPARATORS = (",", "|", ";", "\t")


def scan(source: Source, folder: Path) -> pl.LazyFrame:
    """A lazy frame of text columns over delimited files with the same header."""
    paths = resolve(source.files, folder, ENDINGS)
    separator = source.separator or guess_separator(paths[0])
    header = header_of(paths[0], separator) if source.header else None
    for path in paths[1:] if header else []:
        if header_of(path, separator) != header:
            raise DataError(
                f"{path.name} has another header than {paths[0].name}", fix="give both the same columns"
            )
    return pl.scan_csv(
        paths,
        separator=separator,
        has_header=source.header,
        infer_schema=False,
        encoding="utf8-lossy" if source.encoding == "latin1" else source.encoding,  # type: ignore[arg-type]
        new_columns=list(source.columns) or None,
        glob=False,
        truncate_ragged_lines=False,
    )


def guess_separator(path: Path) -> str:
    """The separator that occurs most often in the first line; a comma when none does."""
    line = _first_line(path)
    return max(SEPARATORS, key=lambda mark: (line.count(mark), mark == ","))


def header_of(path: Path, separator: str) -> list[str]:
    """The names in the first line."""
    return [name.strip().strip('"') for name in _first_line(path).split(separator)]


def _first_line(path: Path) -> str:
    if path.suffix in (".gz", ".zst"):
        names = (
            pl.scan_csv(path, infer_schema=False, n_rows=0, has_header=True, separator="\x01")
            .collect_schema()
            .names()
        )
        return names[0] if names else ""
    with path.open("rb") as stream:
        return stream.readline(1 << 20).decode("utf-8-sig", errors="replace").rstrip("\r\n")
