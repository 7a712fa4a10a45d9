"""The cells of a table that are listed without looking at the records: areas that have any, times listed levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.chance import DiscreteGaussian, Key
from stirred.errors import DataError, InputError
from stirred.mechanisms.released import MEASURE_COLUMNS

if TYPE_CHECKING:
    from stirred.census import Census

Ints = NDArray[np.int64]
MAX_CELLS = 100_000_000
Z95 = 1.959963984540054
MAX_EXACT_DEVIATION = 10_000  # standard deviation from which on an interval is that of the normal law


@dataclass(frozen=True, slots=True)
class ListedCells:
    """All cells of a table with their true counts, the empty ones too; confidential."""

    by: tuple[str, ...]
    frame: pl.DataFrame  # by, count

    @staticmethod
    def of(counts: pl.DataFrame, by: Sequence[str], record: str, census: "Census") -> "ListedCells":
        """Complete the counts of occupied cells; a record without a listed level is refused."""
        areas = [name for name in by if name in census.schema.spine]
        frame = counts.select(areas).unique().sort(areas) if areas else pl.DataFrame({"__one": [0]})
        number = frame.height
        for name in (name for name in by if name not in areas):
            levels = pl.Series(name, list_levels(census, record, name)).cast(counts.schema[name])
            outside = int(
                counts.filter(~counts[name].is_in(levels.to_list()).fill_null(False))["count"].sum()
            )
            if outside:
                raise DataError(
                    f"{outside} {record} records have no listed level of {name}",
                    why="the value is missing, or the schema does not list it",
                    fix=f"edit the records, or complete the levels of {name} in census.toml",
                )
            number *= len(levels)
            if number > MAX_CELLS:
                raise InputError(
                    f"the table of {', '.join(by)} has more than {MAX_CELLS:,} cells",
                    why="every combination of levels gets noise, the empty ones too",
                    fix="publish fewer variables in one table, or coarser areas",
                )
            frame = frame.join(levels.to_frame(), how="cross", maintain_order="left_right")
        found = frame.join(counts, on=list(by), how="left", nulls_equal=True, maintain_order="left")
        return ListedCells(tuple(by), found.select(*by, pl.col("count").fill_null(0).cast(pl.Int64)))

    def add_noise(self, sigma_squared: Fraction, key: Key) -> pl.DataFrame:
        """Return the counts with noise."""
        noise = DiscreteGaussian(sigma_squared).draw(key.stream("noise", *self.by), self.frame.height)
        return self.frame.with_columns(pl.col("count") + pl.Series(noise))


def list_levels(census: "Census", record: str, name: str) -> tuple[str, ...]:
    """Return the listed levels of a variable, which must not be read from the records."""
    linked = census.schema.record(record).linked_to
    for kind in (record, linked):
        levels = census.domain.levels(kind, name) if kind else None
        if levels is not None:
            return levels
    raise InputError(
        f"the levels of {name} are open",
        why="every level has cells with noise, so that the levels shown must not depend on the records",
        fix=f"declare the levels of {name} in census.toml, or count by levels of the geography",
    )


def sum_cells(
    release: Sequence[pl.DataFrame], variances: Sequence[Fraction], by: Sequence[str]
) -> pl.DataFrame | None:
    """Return counts by some variables from the table with the least variance, or None without one."""
    best: tuple[float, pl.DataFrame] | None = None
    for frame, variance in zip(release, variances, strict=True):
        if not {*by} <= {*frame.columns} - {*MEASURE_COLUMNS}:
            continue
        found = (
            frame.group_by(list(by)).agg(pl.col("count").sum(), cells=pl.len())
            if by
            else frame.select(pl.col("count").sum(), cells=pl.len())
        )
        found = found.with_columns(variance=pl.col("cells") * float(variance))
        worst = float(found["variance"].max() or 0)  # type: ignore[arg-type]
        if best is None or worst < best[0]:
            best = (worst, found)
    return None if best is None else best[1]


def half_width(variance: float, cells: int) -> float:
    """Return half the width of a 95 % interval: exact for one cell, normal for a sum of several.

    >>> half_width(1.0, 1), half_width(0.05, 1)
    (2.0, 0.0)
    """
    if cells != 1 or variance > MAX_EXACT_DEVIATION**2:
        return float(ceil(Z95 * variance**0.5))
    steps = np.arange(ceil(12 * variance**0.5) + 2)
    chances = np.exp(-(steps.astype(float) ** 2) / (2 * variance)) * np.where(steps > 0, 2, 1)
    return float(steps[np.searchsorted(np.cumsum(chances) / chances.sum(), 0.95)])
