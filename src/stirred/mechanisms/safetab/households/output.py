"""What is published: T3 and T4 with the interval of every row, and the same counts in the files of the Bureau's program."""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.frames import arrow_of
from stirred.mechanisms.marks import SELECTED_ROWS_KEY
from stirred.mechanisms.safetab.households.cells import LEVELS, TableName
from stirred.mechanisms.safetab.households.measure import VARIABLES
from stirred.mechanisms.safetab.households.presets import Place
from stirred.mechanisms.safetab.noise import CellNoise
from stirred.mechanisms.safetab.regions import REGION_TYPES

Z95 = 1.959963984540054
LAPLACE95 = 2.1183  # ln 20 / √2: of one Laplace draw, which reaches farther than a sum
CHANCE_ONE_SIDE = Fraction(39, 40)
MAX_LISTED_DEVIATION = 10_000  # a standard deviation beyond which no law is listed
REGION_ORDER = {name: place for place, name in enumerate(REGION_TYPES)}


def cell_column(table: TableName) -> str:
    """Return the name of the column with the cell of a table."""
    return f"{table.lower()}_cell"


def half_width(noise: CellNoise, terms: int) -> float:
    """Return a whole number that the noise of a sum of cells exceeds with a probability of 5 % at most.

    It is exact for one cell; a sum of Gaussian noise is taken as normal and rounded up, that of geometric noise is computed.
    Noise so wide that its steps do not matter is taken as continuous.
    """
    if noise.budget is None:
        return 0.0
    spread = float(terms * noise.variance) ** 0.5
    if terms == 1 and spread < MAX_LISTED_DEVIATION:
        return float(noise.cut(CHANCE_ONE_SIDE))
    if noise.definition == "zcdp" or spread >= MAX_LISTED_DEVIATION:
        return float(ceil((Z95 if noise.definition == "zcdp" else LAPLACE95) * spread))
    reach = int(40 * noise.scale * terms**0.5) + 8
    steps = np.abs(np.arange(-reach, reach + 1))
    one = np.exp(-steps / noise.scale)
    size = 1 << (terms * (len(one) - 1) + 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(one / one.sum(), size) ** terms, size)
    middle = terms * reach
    inside = np.cumsum(np.concatenate([law[middle : middle + 1], 2 * law[middle + 1 : 2 * middle + 1]]))
    return float(np.argmax(inside >= 0.95))


def make_table(table: TableName, rows: pl.DataFrame, noises: Mapping[Place, CellNoise]) -> pa.Table:
    """Return the rows with their uncertainty, sorted; ``rows`` have the level of their iterations."""
    errors = pl.DataFrame(
        [
            (name, level, terms, float(terms * noise.variance), half_width(noise, terms))
            for (asked, name, level), noise in noises.items()
            if asked == table
            for terms in sorted({int(term) for item in LEVELS[table] for term in item.terms})
        ],
        schema={"region_type": pl.String, "level": pl.Int64, "terms": pl.Int64, "variance": pl.Float64, "width": pl.Float64},
        orient="row",
    )  # fmt: skip
    count = pl.col("count").cast(pl.Float64)
    found = (
        rows.join(errors, on=["region_type", "level", "terms"], how="left")
        .sort(*row_order())
        .select(
            *VARIABLES,
            pl.col("cell").alias(cell_column(table)),
            "count",
            count.alias("estimate"),
            pl.col("variance").sqrt().alias("standard_error"),
            (count - pl.col("width")).clip(lower_bound=0.0).alias("low"),
            (count + pl.col("width")).clip(lower_bound=0.0).alias("high"),
            "variance",
        )
    )
    # a group without a published total is not shown, so a missing row is no count of 0
    return arrow_of(found).replace_schema_metadata({SELECTED_ROWS_KEY.encode(): b"yes"})


def row_order() -> tuple[pl.Expr, ...]:
    """Return the order of rows: by region type, region, iteration and cell."""
    kind = pl.col("region_type").replace_strict(REGION_ORDER, return_dtype=pl.Int64)
    return (kind, pl.col("region"), pl.col("iteration"), pl.col("cell"))


def write_files(out: Path, rows: Mapping[TableName, pl.DataFrame]) -> tuple[Path, ...]:
    """Write the Bureau's files, one folder a table and one file a statistics level; return the paths."""
    folders = []
    for table, frame in rows.items():
        folder = out / table.lower()
        for level in LEVELS[table]:
            place = folder / level.file
            place.mkdir(parents=True, exist_ok=True)
            own = frame.filter(pl.col("file") == level.file).sort(*row_order())
            own.select(
                pl.col("region").alias("REGION_ID"),
                pl.col("region_type").alias("REGION_TYPE"),
                pl.col("iteration").alias("ITERATION_CODE"),
                pl.col("cell").alias(f"{table}_DATA_CELL"),
                pl.col("count").alias("COUNT"),
            ).write_csv(place / f"{level.file}.csv", separator="|", quote_style="never")
        folders.append(folder)
    return tuple(folders)
