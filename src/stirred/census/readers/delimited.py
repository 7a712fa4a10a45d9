"""Read CSV and other delimited text as text columns; the schema converts them later, so that no bad value is shown."""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Literal

import polars as pl
import pyarrow as pa
from polars.io.plugins import register_io_source

from stirred.census.readers.sources import (
    COMPRESSION_OF_ENDING,
    MAX_HEADER_BYTES,
    MAX_LINE_BYTES,
    make_line_error,
    require_lines,
    resolve_files,
)
from stirred.census.schema import Source
from stirred.errors import DataError
from stirred.frames import collect_frame
from stirred.text_formats import split_quoted

TEXT_ENDINGS = (".csv", ".tsv", ".txt", ".psv", ".csv.gz", ".csv.zst")
BLOCK_BYTES = 1 << 24  # bytes of text held at once when a file is read in blocks
SEPARATORS = (",", "|", ";", "\t")


def scan_delimited(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame of text columns over delimited files with the same header."""
    paths = resolve_files(source.files, folder, TEXT_ENDINGS)
    separator = source.separator or guess_separator(paths[0])
    header = read_header(paths[0], separator) if source.header else None
    if header and not source.columns:
        require_names(paths[0], header, separator)
    for path in paths[1:] if header else []:
        if read_header(path, separator) != header:
            raise DataError(
                f"{path.name} has another header than {paths[0].name}",
                why="the files of one record type form one table",
                fix="give both files the same columns",
            )
    if source.encoding == "latin1":
        names = list(source.columns) or read_header(paths[0], separator, encoding="latin-1")
        # letters with different accents must stay different
        return scan_blocks(
            [partial(_open_text, path) for path in paths],
            names,
            separator=separator,
            header=source.header,
            encoding="latin-1",
        )
    # Polars keeps both of the two quotation marks that stand for one in a name
    quoted = header if header and any('"' in name for name in header) else None
    return pl.scan_csv(
        paths,
        separator=separator,
        has_header=source.header,
        infer_schema=False,
        new_columns=list(source.columns) or quoted,
        glob=False,
        truncate_ragged_lines=False,
    )


def require_even(source: Source, folder: Path) -> None:
    """Raise an error if a line has more fields than the header; a query of some columns does not notice it."""
    paths = resolve_files(source.files, folder, TEXT_ENDINGS)
    for path in paths:
        require_lines(path)
    separator = source.separator or guess_separator(paths[0])
    fields = len(source.columns) or len(read_header(paths[0], separator))
    lines = pl.scan_csv(
        paths, separator="\x01", has_header=False, quote_char=None, new_columns=["line"], infer_schema=False,
        glob=False, truncate_ragged_lines=True, encoding="utf8-lossy",
    )  # fmt: skip
    marks = pl.col("line").str.count_matches(separator, literal=True).max()
    if (collect_frame(lines.select(marks), streaming=True).item() or 0) >= fields:
        # some separators may lie between quotation marks: only a query of all columns counts the fields
        collect_frame(scan_delimited(source, folder).select(pl.all().null_count()), streaming=True)


def _open_text(path: Path) -> IO[bytes]:
    return path.open("rb")


def scan_blocks(
    files: Sequence[Callable[[], IO[bytes]]],
    names: list[str],
    *,
    separator: str,
    header: bool,
    encoding: str,
    quote: str | None = '"',
) -> pl.LazyFrame:
    """Read text columns of files that can only be read from the start (another encoding, a member of an archive)."""

    def blocks(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left = rows
        for opened in files:
            with opened() as stream:
                if header:
                    stream.readline(MAX_HEADER_BYTES)
                while lines := stream.read(BLOCK_BYTES) + stream.readline(MAX_LINE_BYTES + 1):
                    if len(lines) > BLOCK_BYTES + MAX_LINE_BYTES:
                        raise make_line_error("a file", MAX_LINE_BYTES)
                    frame = pl.read_csv(
                        lines.decode(encoding, errors="replace").encode("utf-8"),
                        has_header=False,
                        separator=separator,
                        quote_char=quote,
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


def require_names(path: Path, header: list[str], separator: str) -> None:
    """Raise an error if the first line is a record: its values would be read, and shown, as names of columns."""
    if any("\r" in name or "\x00" in name for name in header):
        raise DataError(
            f"{path.name} is not a text file with one record per line",
            why="its first line holds bare carriage returns or zero bytes, as UTF-16 text does",
            fix="save it as UTF-8 with line feeds",
        )
    if len(header) == 1 and '" "' in header[0]:
        raise DataError(
            f"the columns of {path.name} are divided by spaces",
            why="spaces stand in texts too; write.table of R divides so, and gives the names of rows no column name",
            fix="divide them by commas, semicolons, tabs or bars: in R, write.csv(frame, file, row.names = FALSE)",
        )
    # for any separator the line may have
    if any(_is_number(part) for name in header for part in re.split("[,|;\t]", name)):
        raise DataError(
            f"the first line of {path.name} holds numbers",
            why="it looks like a record, not like names of columns",
            fix="header = false and columns = [...] if there is no header; columns = [...] if these are names",
        )

    again = {name for name in header if name and header.count(name) > 1}
    repeated = _count_repeated(path, header, separator)
    if repeated > 1:
        raise DataError(
            f"the first line of {path.name} is like the other lines",
            why=f"{repeated} of its fields stand in the same place of a later line, as the codes of records do",
            fix="header = false and columns = [...] if there is no header; delete a header that is repeated",
        )
    if again:
        raise DataError(
            f"the header of {path.name} names a column twice",
            why=f"it cannot be told which one holds the values ({len(again)} of its names stand more than once)",
            fix="rename or remove one of them; columns = [...] gives other names to all columns",
        )


def _count_repeated(path: Path, header: list[str], separator: str) -> int:
    """Return how many fields of the first line are found again in the same place of one of the next lines."""
    if path.suffix in COMPRESSION_OF_ENDING:
        return 0
    with path.open("rb") as stream:
        stream.readline(1 << 20)
        lines = stream.read(1 << 16).decode("utf-8", errors="replace").splitlines()[:500]
    later = zip(
        *(fields for line in lines if len(fields := line.split(separator)) == len(header)), strict=True
    )
    found = zip(header, later, strict=False)
    return sum(
        bool(name) and any(name == field.strip().strip('"') for field in fields) for name, fields in found
    )


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return name.lower() not in ("nan", "inf", "infinity")


def guess_separator(path: Path) -> str:
    """Return the separator that occurs most often in the first line; a comma when none does."""
    line = _read_first_line(path)
    return max(SEPARATORS, key=lambda mark: (line.count(mark), mark == ","))


def find_encoding(path: Path) -> Literal["utf8", "latin1"]:
    """Return UTF-8 if the whole file is valid UTF-8, otherwise Latin-1, which accepts any bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as stream:
        try:
            while block := stream.read(BLOCK_BYTES):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return "latin1"
    return "utf8"


def read_header(path: Path, separator: str, *, encoding: str = "utf-8-sig") -> list[str]:
    """Return the names in the first line; a separator between quotation marks belongs to the name."""
    line = _read_first_line(path, encoding)
    plain = [name.strip().strip('"') for name in line.split(separator)]
    names = split_quoted(line, separator)
    if '""' not in line and len(plain) == len(names):
        return plain
    return [name.strip() for name in names]


def _read_first_line(path: Path, encoding: str = "utf-8-sig") -> str:
    with path.open("rb") as raw:
        line = _read_start(path, raw, MAX_HEADER_BYTES + 1).partition(b"\n")[0]
    if len(line) > MAX_HEADER_BYTES:
        raise make_line_error(path.name, MAX_HEADER_BYTES)
    return line.decode(encoding, errors="replace").rstrip("\r\n")


def _read_start(path: Path, raw: IO[bytes], size: int) -> bytes:
    """Return the first bytes of a file's text, also where it is compressed."""
    if path.suffix not in COMPRESSION_OF_ENDING:
        return raw.read(size)
    with pa.CompressedInputStream(raw, COMPRESSION_OF_ENDING[path.suffix]) as stream:
        return bytes(stream.read(size))
