"""Choose the reader of a file by its format."""

import importlib
from pathlib import Path

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.readers.limits import require_columns
from stirred.errors import SchemaError, did_you_mean
from stirred.roots import require_names

# format → module of stirred.census with scan(source, folder) -> LazyFrame; loaded only when used
FORMATS: dict[str, str] = {
    "parquet": "readers.parquet",
    "arrow": "readers.parquet",
    "csv": "readers.delimited",
    "stat": "readers.stat",
    "duckdb": "readers.database",
    "xlsx": "readers.workbook",
    "ipums": "readers.ipums",
    "pl94": "readers.pl94",
    "ppmf": "readers.ppmf",
    "grf-c": "bureau.grf",
    "phsafe-units": "bureau.phsafe",
    "phsafe-persons": "bureau.phsafe",
    "mdf-units": "bureau.mdf",
    "mdf-persons": "bureau.mdf",
}
FORMAT_OF_ENDING: dict[str, str] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".psv": "csv",
    ".gz": "csv",
    ".zst": "csv",
    ".sav": "stat",
    ".zsav": "stat",
    ".por": "stat",
    ".dta": "stat",
    ".sas7bdat": "stat",
    ".xpt": "stat",
    ".duckdb": "duckdb",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
    ".pl": "pl94",
    ".zip": "pl94",
    ".dat": "ipums",
}


def find_format(source: Source, folder: Path) -> str:
    """Return the format a source is written in."""
    if source.format:
        if source.format not in FORMATS:
            raise SchemaError(
                f"Stirred cannot read the format {source.format}",
                why="this format is asked for",
                fix=did_you_mean(source.format, FORMATS),
            )
        return source.format
    if source.ddi:
        return "ipums"
    first = source.files[0]
    require_names(source.files, folder)
    path = folder / first
    if path.is_dir():
        return _find_folder_format(path)
    suffix = ".dat" if first.lower().endswith(".dat.gz") else Path(first).suffix.lower()
    if suffix not in FORMAT_OF_ENDING:
        raise SchemaError(
            f"cannot tell the format of {first}",
            why="its name has no known ending",
            fix=f"say its format (format in census.toml, --format of data describe): {', '.join(sorted(FORMATS))}",
        )
    return FORMAT_OF_ENDING[suffix]


def _find_folder_format(path: Path) -> str:
    for inner in sorted(path.rglob("*")):
        if (
            inner.is_file()
            and not inner.name.startswith((".", "_"))
            and inner.suffix.lower() in FORMAT_OF_ENDING
        ):
            return FORMAT_OF_ENDING[inner.suffix.lower()]
    return "parquet"


def open_source(source: Source, folder: Path) -> pl.LazyFrame:
    """Return a lazy frame over a record type's files."""
    if not source.files:
        raise SchemaError(
            "a record type has no files",
            why="its records are read from files",
            fix='add files = ["…"] to it, or use Census.of for tables in memory',
        )
    module = importlib.import_module(f"stirred.census.{FORMATS[find_format(source, folder)]}")
    frame: pl.LazyFrame = module.scan(source, folder)
    require_columns(frame.collect_schema().names(), source.files[0])
    return frame
