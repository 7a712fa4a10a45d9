"""Read SPSS, Stata and SAS files through pyreadstat (extra ``stat``), in chunks of rows and only the needed columns."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from stirred.census.codebook.schema import Source
from stirred.census.readers.extras import optional
from stirred.census.readers.paths import resolve
from stirred.errors import DataError

READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
ROWS = 100_000


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
    return {name: pl.String() if types[name] == "string" else pl.Float64() for name in meta.column_names}


def _chunks(
    library: ModuleType, path: Path, columns: list[str], schema: Mapping[str, pl.DataType], limit: int | None
) -> Iterator[pl.DataFrame]:
    options: dict[str, Any] = {"usecols": columns or list(schema)[:1], "output_format": "dict"}
    # dates stay numbers: a census variable is a code
    options["disable_datetime_conversion"] = True
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
        frame = frame.select(_clean(name, frame.schema[name], schema[name]) for name in columns)
        if columns and frame.height == 0:
            return
        yield frame
        offset += frame.height
        if not columns or frame.height < rows:
            return


def _clean(name: str, dtype: pl.DataType, target: pl.DataType) -> pl.Expr:
    value = pl.col(name)
    if dtype.is_float():
        value = value.fill_nan(None)
    return value.cast(target)
