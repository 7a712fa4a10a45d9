"""Read files of statistical programs: SPSS, Stata and SAS (extra ``stat``), and IPUMS extracts (``ipums``)."""

import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from stirred._support import import_optional
from stirred.census.readers import delimited
from stirred.census.readers.sources import resolve_files
from stirred.census.schema import Source
from stirred.errors import DataError, SchemaError
from stirred.text_formats import require_plain

# Read SPSS, Stata and SAS files through pyreadstat (extra ``stat``), in chunks of rows and only the needed columns.
#
# These formats store a date as a number with a format that says so; it is read as a date, as from any other file.

STAT_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
ROWS_PER_CHUNK = 100_000
MILLISECONDS_PER_DAY = 86_400_000
# ending → days from the file's first day to 1970-01-01, milliseconds of a unit of its dates, and of its moments
CLOCKS_BY_FORMAT: dict[str, tuple[int, int, int]] = {
    ".dta": (3_653, MILLISECONDS_PER_DAY, 1),
    ".sas7bdat": (3_653, MILLISECONDS_PER_DAY, 1000),
    ".xpt": (3_653, MILLISECONDS_PER_DAY, 1000),
}
SPSS_CLOCK = (141_428, 1000, 1000)  # seconds since 1582-10-14
MOMENT_FORMATS = re.compile(r"^(DATETIME|E8601DT|YMDHMS|%tc)", re.IGNORECASE)
DATE_FORMATS = re.compile(
    r"^(DATE|ADATE|EDATE|JDATE|SDATE|DDMMYY|MMDDYY|YYMMDD|E8601DA|%td|%d)", re.IGNORECASE
)


def scan_stat(source: Source, folder: Path) -> pl.LazyFrame:
    """Yield a lazy frame over statistical files; codes are kept and not replaced by value labels."""
    library = import_optional("pyreadstat", "stat", why="SPSS, Stata and SAS files are read with it")
    paths = resolve_files(source.files, folder, tuple(STAT_READERS))
    schema = _read_schema(library, paths[0])

    def chunks(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = list(schema) if columns is None else columns
        left = rows
        for path in paths:
            for chunk in _read_chunks(library, path, wanted, schema, left):
                yield chunk if predicate is None else chunk.filter(predicate)
                left = None if left is None else left - chunk.height
                if left is not None and left <= 0:
                    return

    return register_io_source(chunks, schema=schema)


def _read_schema(library: ModuleType, path: Path) -> dict[str, pl.DataType]:
    try:
        _, meta = getattr(library, STAT_READERS[path.suffix.lower()])(
            path, metadataonly=True, output_format="dict"
        )
    except (library.ReadstatError, library.PyreadstatError, OSError, ValueError):
        raise DataError(
            f"cannot read {path.name}", why="its header is damaged", fix="copy or export it again"
        ) from None
    types: Mapping[str, str] = meta.readstat_variable_types
    formats: Mapping[str, str] = meta.original_variable_types
    return {name: _find_type(types[name], formats.get(name) or "") for name in meta.column_names}


def _find_type(stored: str, written: str) -> pl.DataType:
    """Return the type of a column by how it is stored and how its values are written.

    >>> _find_type("double", "DATE11"), _find_type("double", "%tc"), _find_type("double", "F8.2"), _find_type("string", "A2")
    (Date, Datetime(time_unit='ms', time_zone=None), Float64, String)
    """
    if stored == "string":
        return pl.String()
    if MOMENT_FORMATS.match(written):
        return pl.Datetime("ms")
    return pl.Date() if DATE_FORMATS.match(written) else pl.Float64()


def _read_chunks(
    library: ModuleType, path: Path, columns: list[str], schema: Mapping[str, pl.DataType], limit: int | None
) -> Iterator[pl.DataFrame]:
    options: dict[str, Any] = {"usecols": columns or list(schema)[:1], "output_format": "dict"}
    options["disable_datetime_conversion"] = True  # done here, by column and without objects of Python
    reader = getattr(library, STAT_READERS[path.suffix.lower()])
    offset = 0
    while limit is None or offset < limit:
        rows = ROWS_PER_CHUNK if limit is None else min(ROWS_PER_CHUNK, limit - offset)
        try:
            data, _ = reader(path, row_offset=offset, row_limit=rows, **options)
        except (library.ReadstatError, library.PyreadstatError, OSError, ValueError):
            raise DataError(
                f"cannot read {path.name}", why="the file is incomplete", fix="copy or export it again"
            ) from None
        frame = pl.DataFrame({name: pl.Series(name, data[name], strict=False) for name in options["usecols"]})
        clock = CLOCKS_BY_FORMAT.get(path.suffix.lower(), SPSS_CLOCK)
        frame = frame.select(_clean_column(name, frame.schema[name], schema[name], clock) for name in columns)
        if columns and frame.height == 0:
            return
        yield frame
        offset += frame.height
        if not columns or frame.height < rows:
            return


def _clean_column(name: str, dtype: pl.DataType, target: pl.DataType, clock: tuple[int, int, int]) -> pl.Expr:
    value = pl.col(name)
    if dtype.is_float():
        value = value.fill_nan(None)
    if not target.is_temporal():
        return value.cast(target)
    first, day, moment = clock
    unit = day if target == pl.Date else moment
    since = (value.cast(pl.Float64) * unit).round().cast(pl.Int64) - first * MILLISECONDS_PER_DAY
    return since.cast(pl.Datetime("ms")).cast(target)


# Read IPUMS extracts: fixed-width or CSV data with the DDI codebook, through ipumspy (extra ``ipums``).
#
# The codebook gives the position of each variable; a lazy query splits the lines, so that an extract of any size
# streams. In a hierarchical extract ``table`` names the record type ("H" or "P").

LINE_COLUMN = "\x00line"


def scan_ipums(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame of an extract with the names of its codebook; implied decimals are applied."""
    book = read_ddi(source, folder)
    if any(name.lower().endswith((".csv", ".csv.gz")) for name in source.files):
        return delimited.scan_delimited(source, folder)
    paths = resolve_files(source.files, folder)
    lines = pl.scan_csv(
        paths, separator="\x01", has_header=False, quote_char=None, new_columns=[LINE_COLUMN], infer_schema=False,
        glob=False, empty_string_is_null=False,
    )  # fmt: skip
    described = book.data_description
    hierarchical = book.file_description.structure == "hierarchical"
    if hierarchical:
        described = _list_variables(book, source)
        lines = lines.filter(_cut_field(_find_rectype(book)) == source.table)
    return lines.select(_convert_field(variable) for variable in described)


def read_ddi(source: Source, folder: Path) -> Any:
    """Return the DDI codebook of an extract, with names, positions, codes and labels of its variables."""
    readers = import_optional("ipumspy.readers", "ipums", why="IPUMS codebooks are read with it")
    data = Path(source.files[0])
    name = source.ddi or str(data.with_name(data.name.split(".")[0] + ".xml"))
    path = folder / name
    try:
        require_plain(path)
    except OSError:
        raise SchemaError(
            f"no codebook {name}", why="an IPUMS extract is read with its DDI file", fix='add ddi = "….xml"'
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # ipumspy prints a reminder to cite; our docs ask for the citation
            return readers.read_ipums_ddi(path)
    except Exception:
        raise DataError(
            f"cannot read the codebook {name}", why="it is not a DDI file", fix="download it again"
        ) from None


def _list_variables(book: Any, source: Source) -> list[Any]:
    kinds = list(book.file_description.rectypes)
    if source.table not in kinds:
        raise SchemaError(
            "cannot tell which records of the extract to read",
            why="it holds records of several types in one file",
            fix="add table = one of " + ", ".join(kinds),
        )
    return [v for v in book.data_description if source.table in (v.rectype or "").split() or not v.rectype]


def _find_rectype(book: Any) -> Any:
    idvar = book.file_description.rectype_idvar
    return next(v for v in book.data_description if v.id == idvar or v.name == idvar)


def _cut_field(variable: Any) -> pl.Expr:
    return pl.col(LINE_COLUMN).str.slice(variable.start, variable.end - variable.start)


def _convert_field(variable: Any) -> pl.Expr:
    value = _cut_field(variable).str.strip_chars()
    value = pl.when(value != "").then(value)
    if variable.vartype in ("numeric", "integer", "float") and variable.shift:
        # Implied decimals: the codebook says how many. A field that is not a number stays text and is counted by validation.
        value = value.cast(pl.Float64, strict=False) / pl.lit(10.0**variable.shift)
    return value.alias(variable.name)
