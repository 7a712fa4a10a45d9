"""Read SPSS, Stata and SAS files through pyreadstat (extra ``stat``), in chunks of rows and only the needed columns.

These formats store a date as a number with a format that says so; it is read as a date, as from any other file.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from stirred.census.codebook.schema import Source
from stirred.census.readers.paths import resolve
from stirred.errors import DataError
from stirred.extras import optional

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
ROWS = 100_000
DAY = 86_400_000
# ending → days from the file's first day to 1970-01-01, milliseconds of a unit of its dates, and of its moments
CLOCKS: dict[str, tuple[int, int, int]] = {
    ".dta": (3_653, DAY, 1),
    ".sas7bdat": (3_653, DAY, 1000),
    ".xpt": (3_653, DAY, 1000),
}
SPSS = (141_428, 1000, 1000)  # seconds since 1582-10-14
MOMENTS = re.compile(r"^(DATETIME|E8601DT|YMDHMS|%tc)", re.IGNORECASE)
DATES = re.compile(r"^(DATE|ADATE|EDATE|JDATE|SDATE|DDMMYY|MMDDYY|YYMMDD|E8601DA|%td|%d)", re.IGNORECASE)


def scan(source: Source, folder: Path) -> pl.LazyFrame:
    """A lazy frame over statistical files; codes are kept and not replaced by value labels."""
    library = optional("pyreadstat", "stat", why="SPSS, Stata and SAS files are read with it")
    paths = resolve(source.files, folder, tuple(READERS))
    schema = _schema(library, paths[0])

    def chunks(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = list(schema) if columns is None else columns
        left = rows
        for path in paths:
            for chunk in _chunks(library, path, wanted, schema, left):
                yield chunk if predicate is None else chunk.filter(predicate)
                left = None if left is None else left - chunk.height
                if left is not None and left <= 0:
                    return

    return register_io_source(chunks, schema=schema)


def _schema(library: ModuleType, path: Path) -> dict[str, pl.DataType]:
    try:
        _, meta = getattr(library, READERS[path.suffix.lower()])(
            path, metadataonly=True, output_format="dict"
        )
    except (library.ReadstatError, library.PyreadstatError, OSError, ValueError):
        raise DataError(
            f"cannot read {path.name}", why="its header is damaged", fix="copy or export it again"
        ) from None
    types: Mapping[str, str] = meta.readstat_variable_types
    formats: Mapping[str, str] = meta.original_variable_types
    return {name: _type(types[name], formats.get(name) or "") for name in meta.column_names}


def _type(stored: str, written: str) -> pl.DataType:
    """The type of a column by how it is stored and how its values are written.

    >>> _type("double", "DATE11"), _type("double", "%tc"), _type("double", "F8.2"), _type("string", "A2")
    (Date, Datetime(time_unit='ms', time_zone=None), Float64, String)
    """
    if stored == "string":
        return pl.String()
    if MOMENTS.match(written):
        return pl.Datetime("ms")
    return pl.Date() if DATES.match(written) else pl.Float64()


def _chunks(
    library: ModuleType, path: Path, columns: list[str], schema: Mapping[str, pl.DataType], limit: int | None
) -> Iterator[pl.DataFrame]:
    options: dict[str, Any] = {"usecols": columns or list(schema)[:1], "output_format": "dict"}
    options["disable_datetime_conversion"] = True  # done here, by column and without objects of Python
    reader = getattr(library, READERS[path.suffix.lower()])
    offset = 0
    while limit is None or offset < limit:
        rows = ROWS if limit is None else min(ROWS, limit - offset)
        try:
            data, _ = reader(path, row_offset=offset, row_limit=rows, **options)
        except (library.ReadstatError, library.PyreadstatError, OSError, ValueError):
            raise DataError(
                f"cannot read {path.name}", why="the file is incomplete", fix="copy or export it again"
            ) from None
        frame = pl.DataFrame({name: pl.Series(name, data[name], strict=False) for name in options["usecols"]})
        clock = CLOCKS.get(path.suffix.lower(), SPSS)
        frame = frame.select(_clean(name, frame.schema[name], schema[name], clock) for name in columns)
        if columns and frame.height == 0:
            return
        yield frame
        offset += frame.height
        if not columns or frame.height < rows:
            return


def _clean(name: str, dtype: pl.DataType, target: pl.DataType, clock: tuple[int, int, int]) -> pl.Expr:
    value = pl.col(name)
    if dtype.is_float():
        value = value.fill_nan(None)
    if not target.is_temporal():
        return value.cast(target)
    first, day, moment = clock
    unit = day if target == pl.Date else moment
    since = (value.cast(pl.Float64) * unit).round().cast(pl.Int64) - first * DAY
    return since.cast(pl.Datetime("ms")).cast(target)
