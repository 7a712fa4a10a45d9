"""Read IPUMS extracts: fixed-width or CSV data with the DDI codebook, through ipumspy (extra ``ipums``).

The codebook gives the position of each variable; a lazy query splits the lines, so that an extract of any size streams.
In a hierarchical extract ``table`` names the record type ("H" or "P").
"""

import warnings
from pathlib import Path
from typing import Any

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.readers import delimited
from stirred.census.readers.paths import resolve_files
from stirred.errors import DataError, SchemaError
from stirred.extras import import_optional
from stirred.toml_text import require_plain

LINE_COLUMN = "\x00line"


def scan_ipums(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame of an extract with the names of its codebook; implied decimals are applied."""
    book = read_ddi(source, folder)
    if any(name.lower().endswith((".csv", ".csv.gz")) for name in source.files):
        return delimited.scan_delimited(source, folder)
    paths = resolve_files(source.files, folder)
    lines = pl.scan_csv(
        paths, separator="\x01", has_header=False, quote_char=None, new_columns=[LINE_COLUMN], infer_schema=False, glob=False,
        empty_string_is_null=False,
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
