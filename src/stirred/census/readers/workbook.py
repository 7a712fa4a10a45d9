"""Read a sheet of an Excel workbook through python-calamine (extra ``xlsx``); a cell keeps the type that Excel shows.

A text cell stays text, so that the code 01 stays 01; numbers that are all whole are whole numbers; a column of text and
numbers is text. A sheet is read once and held in memory: Excel has at most 1,048,576 rows.
"""

import datetime
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl

from stirred._support import import_optional
from stirred.census.readers.sources import require_columns, resolve_files
from stirred.census.schema import Source
from stirred.errors import DataError, SchemaError, did_you_mean

WORKBOOK_ENDINGS = (".xlsx", ".xlsm")
MAX_CELLS = 100_000_000  # of the rectangle that the filled cells span, which the library holds
MAX_DIRECTORY_BYTES = 1 << 24  # of the parts that name the sheets
ROWS_SEARCHED = 30  # for the names of the columns
_BLOCK_BYTES = 1 << 22
_CELL_PLACE = re.compile(rb'<(?:\w+:)?c\s[^>]*?\br="([A-Z]{1,3})(\d{1,7})"')
_ERROR_CELL = re.compile(rb'<(?:\w+:)?c\s[^>]*?\bt="e"')
_MAX_EXACT_NUMBER = 2.0**53  # whole numbers below it are exact, as Excel stores them

Cell = Any  # text, a number, a truth value, a date, or empty text


def scan_workbook(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame of one sheet; the files of a record type have the same columns."""
    paths = resolve_files(source.files, folder, WORKBOOK_ENDINGS)
    names: list[str] = []
    rows: list[list[Cell]] = []
    for path in paths:
        found, more = _read_table(source, path)
        if names and found != names:
            raise DataError(
                f"{path.name} has another header than {paths[0].name}",
                why="the files of one record type form one table",
                fix="give both files the same columns",
            )
        names, rows = found, rows + more
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pl.DataFrame(
        [_make_series(name, cells) for name, cells in zip(names, columns, strict=True)]
    ).lazy()


def list_sheets(path: Path) -> list[str]:
    """Return the names of the visible sheets of cells, in their order."""
    library = _load_library()
    with _open_workbook(library, path) as book:
        return [
            sheet.name
            for sheet in book.sheets_metadata
            if sheet.typ == library.SheetTypeEnum.WorkSheet
            and sheet.visible == library.SheetVisibleEnum.Visible
        ]


def find_header_row(source: Source, folder: Path) -> int:
    """Return the row, from 1, that is filled in every used column; the first row when there is none.

    Titles and notes often stand above a table, in one or two cells.
    """
    rows = _read_cells(source, resolve_files(source.files, folder, WORKBOOK_ENDINGS)[0])
    used = {place for row in rows for place, cell in enumerate(row) if cell != ""}
    for number, row in enumerate(rows[:ROWS_SEARCHED], start=1):
        if used and all(row[place] != "" for place in used):
            return number
    return 1


def _load_library() -> Any:
    return import_optional("python_calamine", "xlsx", why="Excel workbooks are read with it")


def _open_workbook(library: Any, path: Path) -> Any:
    try:
        return library.CalamineWorkbook.from_path(str(path))
    except library.PasswordError:
        raise DataError(
            f"cannot open {path.name}", why="a password protects it", fix="save it without a password"
        ) from None
    except (library.CalamineError, OSError, ValueError):
        raise _make_damaged_error(path) from None


def _make_damaged_error(path: Path) -> DataError:
    return DataError(
        f"cannot open {path.name}",
        why="it is not a complete Excel workbook (.xlsx)",
        fix="save it again as an Excel workbook, or as CSV",
    )


def _read_table(source: Source, path: Path) -> tuple[list[str], list[list[Cell]]]:
    """Return the names of the columns, and the rows that have a filled cell."""
    rows = _read_cells(source, path)
    if source.header:
        names, rows = _read_column_names(path, rows, source), rows[source.header_row :]
        used = [place for place, name in enumerate(names) if name]
        stray = sum(row[place] != "" for row in rows for place, name in enumerate(names) if not name)
        if stray:
            raise DataError(
                f"a column of {path.name} has no name",
                why=f"row {source.header_row} is empty above {stray:,} filled cells",
                fix="write a name above every column, or name the row of the names: header_row = …",
            )
        names = list(source.columns) or [names[place] for place in used]
        rows = [[row[place] for place in used] for row in rows]
    else:
        names = list(source.columns)
    width = max(map(len, rows), default=len(names))
    if width != len(names):
        raise DataError(
            f"{path.name} has {width} columns and {len(names)} names",
            why="columns = [...] names every column of the sheet",
            fix="name each column once, in the order of the sheet",
        )
    return names, [row for row in rows if any(cell != "" for cell in row)]


def _read_column_names(path: Path, rows: Sequence[Sequence[Cell]], source: Source) -> list[str]:
    """Return the names in the header row; empty where it is empty."""
    if len(rows) < source.header_row:
        raise DataError(
            f"the sheet of {path.name} has no row {source.header_row}",
            why="the names of the columns are read from it",
            fix="check sheet and header_row in census.toml",
        )
    header = rows[source.header_row - 1]
    if not source.columns:
        numbers = sum(not isinstance(cell, str) for cell in header)
        if numbers:
            raise DataError(
                f"row {source.header_row} of {path.name} holds numbers or dates",
                why=f"{numbers} of its cells look like a record, not like names of columns",
                fix="name the row of the names: header_row = …; without one: header = false and columns = [...]",
            )
    names = [str(cell).strip() for cell in header]
    again = {name for name in names if name and names.count(name) > 1}
    if again and not source.columns:
        raise DataError(
            f"the header of {path.name} names a column twice",
            why=f"it cannot be told which one holds the values ({len(again)} of its names stand more than once)",
            fix="rename or remove one of them; columns = [...] gives other names to all columns",
        )
    require_columns(names, path.name)
    return names


def _read_cells(source: Source, path: Path) -> list[list[Cell]]:
    """Return every row of the sheet from the first one of the workbook on, all of one width."""
    library = _load_library()
    with _open_workbook(library, path) as book:
        name = _choose_sheet(source, path, book.sheet_names)
        _require_small(path, name)
        try:
            return list(book.get_sheet_by_name(name).to_python(skip_empty_area=False))
        except (library.CalamineError, ValueError, OverflowError):
            raise _make_damaged_error(path) from None


def _choose_sheet(source: Source, path: Path, names: Sequence[str]) -> str:
    if source.sheet:
        if source.sheet not in names:
            raise SchemaError(
                f"{path.name} has no sheet {source.sheet}",
                why="census.toml names this sheet",
                fix=did_you_mean(source.sheet, names),
            )
        return source.sheet
    visible = list_sheets(path)
    if len(visible) != 1:
        raise SchemaError(
            f"cannot tell which sheet of {path.name} holds the records",
            why=f"it has {len(visible)} visible sheets: {', '.join(visible) or 'none'}",
            fix='name it: sheet = "…" in census.toml, or --sheet NAME of stirred data describe',
        )
    return visible[0]


def _require_small(path: Path, sheet: str) -> None:
    """Refuse a sheet with cells that show an error of Excel, or that would not fit in memory, before it is read."""
    rows = columns = errors = 0
    try:
        with zipfile.ZipFile(path) as archive, archive.open(_find_part(archive, sheet)) as stream:
            for block in _read_blocks(stream):
                errors += len(_ERROR_CELL.findall(block))
                for letters, number in _CELL_PLACE.findall(block):
                    rows = max(rows, int(number))
                    columns = max(columns, _column_number(letters))
    except (
        zipfile.BadZipFile,
        OSError,
        KeyError,
        StopIteration,
        ElementTree.ParseError,
        NotImplementedError,
    ):
        raise _make_damaged_error(path) from None
    if rows * columns > MAX_CELLS:
        raise DataError(
            f"sheet {sheet} of {path.name} does not look like records",
            why=f"its cells span {rows:,} rows and {columns:,} columns; {MAX_CELLS:,} cells are allowed",
            fix="delete the cells far from the table, or save the table as CSV",
        )
    if errors:
        raise DataError(
            f"sheet {sheet} of {path.name} has {errors:,} cells that show an error of Excel",
            why="a formula failed, as #N/A and #DIV/0! say, so that the cell has no value",
            fix="correct the formulas, or empty these cells",
        )


def _find_part(archive: zipfile.ZipFile, sheet: str) -> str:
    """Return the part of the archive that holds a sheet."""
    with archive.open("xl/workbook.xml") as stream:
        book = ElementTree.fromstring(stream.read(MAX_DIRECTORY_BYTES))
    with archive.open("xl/_rels/workbook.xml.rels") as stream:
        links = ElementTree.fromstring(stream.read(MAX_DIRECTORY_BYTES))
    found = next(part for part in book.iter() if part.tag.endswith("}sheet") and part.get("name") == sheet)
    key = next(value for name, value in found.attrib.items() if name.endswith("}id"))
    target = next(link.attrib["Target"] for link in links if link.get("Id") == key)
    return target.removeprefix("/") if target.startswith("/") else f"xl/{target}"


def _read_blocks(stream: Any) -> Iterator[bytes]:
    """Yield the text of a sheet in blocks that end with a whole tag."""
    rest = b""
    while block := stream.read(_BLOCK_BYTES):
        whole, mark, tail = (rest + block).rpartition(b">")
        yield whole + mark
        rest = tail


def _column_number(letters: bytes) -> int:
    """Return the number of a column.

    >>> _column_number(b"A"), _column_number(b"AA"), _column_number(b"XFD")
    (1, 27, 16384)
    """
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _make_series(name: str, cells: Sequence[Cell]) -> pl.Series:
    """Return a column with the type that all its filled cells have.

    >>> _make_series("age", (57.0, "", 3.0)).to_list(), _make_series("code", ("01", 7.0)).to_list()
    ([57, None, 3], ['01', '7'])
    """
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pl.Series(name, values, dtype=pl.String)
    if kinds <= {int, float}:
        whole = all(
            value is None or (value == int(value) and abs(value) < _MAX_EXACT_NUMBER) for value in values
        )
        made = [None if value is None else int(value) if whole else float(value) for value in values]
        return pl.Series(name, made, dtype=pl.Int64 if whole else pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds <= {int, float, str}:
        return pl.Series(
            name, [None if value is None else _write_text(value) for value in values], dtype=pl.String
        )
    if kinds == {datetime.date, datetime.datetime}:
        midnight = datetime.time()
        values = [
            datetime.datetime.combine(value, midnight) if type(value) is datetime.date else value
            for value in values
        ]
        kinds = {datetime.datetime}
    if len(kinds) > 1:
        counts = sorted(sum(type(value) is kind for value in values) for kind in kinds)
        raise DataError(
            f"column {name} mixes dates or truth values with other cells",
            why=f"{sum(counts[:-1]):,} of its cells have another type than the rest",
            fix="give the column one format in Excel",
        )
    return pl.Series(name, values)


def _write_text(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < _MAX_EXACT_NUMBER else repr(float(value))
