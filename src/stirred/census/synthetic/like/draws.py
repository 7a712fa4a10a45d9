"""Draw the values of a stand-in: from public tables where there are some, else from uneven shares that differ by area."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census.codebook.schema import VariableSchema

SHARE_LOG_SD = 0.6  # standard deviation of the logarithm of a level's share between areas
OPEN_LEVELS = 20  # values of a variable whose codebook lists none
ROWS_PER_DRAW = 1 << 16  # records drawn together
MEAN_HOUSEHOLD_PERSONS = 2.4  # persons of a household, where nothing is known


def list_values(variable: VariableSchema, number: int | None = None) -> pl.Series:
    """Return the values a variable may take: its levels, or made-up ones where the codebook lists none.

    >>> list_values(VariableSchema(name="tenure", kind="category", levels=("own", "rent"))).to_list()
    ['own', 'rent']
    """
    levels = variable.all_levels
    if levels is not None and number is None:
        return pl.Series(variable.name, list(levels))
    count = number or OPEN_LEVELS
    if variable.kind == "integer":
        return pl.Series(variable.name, range(count))
    if variable.kind == "number":
        return pl.Series(variable.name, [round(10 * 1.3**k, 2) for k in range(count)])
    return pl.Series(variable.name, [f"{variable.name}-{k + 1}" for k in range(count)])


def level_shares(variable: VariableSchema, number: int, *, persons: bool) -> NDArray[np.float64]:
    """Return the share of each level before areas differ: sizes as households have them, else fewer and fewer."""
    levels = variable.all_levels
    if persons and levels is not None and all(isinstance(level, int) for level in levels):
        sizes = [max(int(level), 0) for level in levels]
        weights = [
            math.exp(s * math.log(MEAN_HOUSEHOLD_PERSONS) - math.lgamma(s + 1)) if s else 0.0 for s in sizes
        ]
        if sum(weights):
            return np.array(weights) / sum(weights)
    steps = np.arange(1, number + 1, dtype=np.float64)
    falling = 1.0 - 0.8 * (steps - 1) / number if isinstance(levels, range) else steps**-0.8
    return np.asarray(falling / falling.sum(), np.float64)


def draw_by_area(
    base: NDArray[np.float64], area: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a level for each record; every area has shares of its own around the common ones."""
    areas = int(area.max(initial=0)) + 1
    own = base * np.exp(rng.normal(0, SHARE_LOG_SD, (areas, base.size)))
    edges = np.cumsum(own / own.sum(axis=1, keepdims=True), axis=1)
    found = np.empty(area.size, np.int64)
    for start in range(0, area.size, ROWS_PER_DRAW):
        some = slice(start, start + ROWS_PER_DRAW)
        drawn = rng.random(area[some].size)[:, None]
        found[some] = (edges[area[some]] < drawn).sum(axis=1)
    return np.minimum(found, base.size - 1)


@dataclass(frozen=True, slots=True)
class PublicTable:
    """A published table of counts: some variables and a column ``count``."""

    cells: pl.DataFrame

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variables of the table."""
        return tuple(name for name in self.cells.columns if name != "count")

    def draw(
        self, name: str, known: pl.DataFrame, given: Sequence[str], rng: np.random.Generator
    ) -> tuple[pl.Series, NDArray[np.bool_]]:
        """Return a value of one variable per record given the other columns, and which records have one."""
        keys = [pl.col(key).cast(pl.String) for key in given]
        cells = (
            self.cells.group_by(*given, name)
            .agg(pl.col("count").sum())
            .filter(pl.col("count") > 0)
            .with_columns(pl.concat_str([pl.lit(""), *keys], separator="\x1f").alias("\x00group"))
            .sort("\x00group", name)
        )
        edges = cells["count"].cast(pl.Float64).cum_sum().to_numpy()
        groups = (
            cells.with_columns(pl.Series("\x00edge", edges))
            .group_by("\x00group")
            .agg(stop=pl.col("\x00edge").max(), amount=pl.col("count").sum().cast(pl.Float64))
        )
        asked = known.select(pl.concat_str([pl.lit(""), *keys], separator="\x1f").alias("\x00group"))
        met = asked.join(groups, on="\x00group", how="left", maintain_order="left")
        there = met["stop"].is_not_null().to_numpy()
        start = (met["stop"] - met["amount"]).fill_null(0).to_numpy()
        drawn = start + rng.random(known.height) * met["amount"].fill_null(0).to_numpy()
        place = np.minimum(np.searchsorted(edges, drawn, side="right"), max(cells.height - 1, 0))
        return cells[name][place.astype(np.int64)], there
