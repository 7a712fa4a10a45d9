"""CSV and other delimited text: scanned as text, typed by the schema afterwards, so that no bad value is ever echoed."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from stirred.census.readers.paths import resolve
from stirred.census.schema import Source
from stirred.errors import DataError

ENDINGS = (".csv", ".tsv", ".txt", ".psv", ".csv.gz", ".csv.zst")
BLOCK = 1 << 24  # bytes of Latin-1 text held at once
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
    if source.encoding == "latin1":
        names = list(source.columns) or header_of(paths[0], separator, encoding="latin-1")
        return _latin1(paths, separator, names, header=source.header)
    return pl.scan_csv(
        paths,
        separator=separator,
        has_header=source.header,
        infer_schema=False,
        new_columns=list(source.columns) or None,
        glob=False,
        truncate_ragged_lines=False,
    )


def _latin1(paths: list[Path], separator: str, names: list[str], *, header: bool) -> pl.LazyFrame:
    """Latin-1 text, turned into UTF-8 block by block: two letters with different accents must not become one."""

    def blocks(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left = rows
        for path in paths:
            with path.open("rb") as stream:
                if header:
                    stream.readline()
                while lines := stream.read(BLOCK) + stream.readline():
                    frame = pl.read_csv(
                        lines.decode("latin-1").encode("utf-8"),
                        has_header=False,
                        separator=separator,
                        new_columns=names,
                        infer_schema=False,
                    )
                    frame = frame.select(columns) if columns is not None else frame
                    frame = frame if predicate is None else frame.filter(predicate)
                    yield frame if left is None else frame.head(left)
                    left = None if left is None else left - frame.height
                    if left is not None and left <= 0:
                        return

    return register_io_source(blocks, schema={name: pl.String() for name in names})


def guess_separator(path: Path) -> str:
    """The separator that occurs most often in the first line; a comma when none does."""
    line = _first_line(path)
    return max(SEPARATORS, key=lambda mark: (line.count(mark), mark == ","))


def header_of(path: Path, separator: str, *, encoding: str = "utf-8-sig") -> list[str]:
    """The names in the first line."""
    return [name.strip().strip('"') for name in _first_line(path, encoding).split(separator)]


def _first_line(path: Path, encoding: str = "utf-8-sig") -> str:
    if path.suffix in (".gz", ".zst"):
        names = (
            pl.scan_csv(path, infer_schema=False, n_rows=0, has_header=True, separator="\x01")
            .collect_schema()
            .names()
        )
        return names[0] if names else ""
    with path.open("rb") as stream:
        return stream.readline(1 << 20).decode(encoding, errors="replace").rstrip("\r\n")
