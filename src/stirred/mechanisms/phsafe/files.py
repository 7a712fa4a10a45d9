"""Write the tables as the Bureau's program does: one text file each, with ``|`` between fields, its variance in each row."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from stirred.mechanisms.phsafe.measure import ITERATION, REGION, REGION_TYPE, cell_column, list_variables
from stirred.mechanisms.safetab.noise import Definition

NOISE_NAMES = {"zcdp": "Discrete Gaussian", "puredp": "Two-Sided Geometric"}


def to_bureau_table(name: str, table: pl.DataFrame, definition: Definition) -> pl.DataFrame:
    """Return a published table with the Bureau's columns, all of them text, sorted as text."""
    cell = f"{name.upper()}_DATA_CELL"
    iteration = [pl.col(ITERATION).alias("ITERATION_CODE")] if ITERATION in list_variables(name) else []
    variance = [_write_number(value) for value in table["variance"].to_list()]
    made = table.select(
        pl.col(REGION).alias("REGION_ID"),
        pl.col(REGION_TYPE).alias("REGION_TYPE"),
        *iteration,
        pl.col(cell_column(name)).cast(pl.String).alias(cell),
        pl.lit(NOISE_NAMES[definition]).alias("NOISE_DISTRIBUTION"),
        pl.Series("VARIANCE", variance, pl.String),
        pl.col("count").cast(pl.String).alias("COUNT"),
    )
    keys = ["REGION_ID", "REGION_TYPE", *(["ITERATION_CODE"] if iteration else []), cell]
    return made.sort(keys)


def write_files(folder: Path, tables: Mapping[str, pl.DataFrame], definition: Definition) -> tuple[Path, ...]:
    """Write one file for each table, such as PH1_num.csv, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        to_bureau_table(name, table, definition).write_csv(path, separator="|")
        paths.append(path)
    return tuple(paths)


def _write_number(value: float) -> str:
    """Return a variance with all its digits; whole ones without a point.

    >>> _write_number(8.0), _write_number(31.83385287773731)
    ('8', '31.83385287773731')
    """
    return str(int(value)) if value == int(value) else repr(value)
