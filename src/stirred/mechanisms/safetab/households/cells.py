r"""The cells of T3 (household type) and T4 (tenure) at every statistics level, and the sums that are published with them.

The level of a group is the number of thresholds that its published total reaches. At a level every household of a group
falls into exactly one cell, so that it changes one count of the group by 1 (SafeTab-H documentation, Section 4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
TableName = Literal["T3", "T4"]
TYPES, TENURES = 5, 4  # codes 1 to 5 of a household's type, 1 to 4 of its tenure; 0: none of these


@dataclass(frozen=True)
class StatisticsLevel:
    """One level: the file it is published in, the cell of each source code, and the sums of these cells."""

    file: str
    cells: Mapping[int, tuple[int, ...]]  # measured cell → the source codes that it counts
    sums: Mapping[int, tuple[int, ...]]  # cell of a sum → the measured cells that it adds

    @cached_property
    def published_cells(self) -> tuple[int, ...]:
        """Return all published cells, rising."""
        return tuple(sorted((*self.cells, *self.sums)))

    @cached_property
    def counting_matrix(self) -> Ints:
        """Return a 0/1 matrix: one row per measured cell, one column per source code that it counts."""
        codes = 1 + max(code for source in self.cells.values() for code in source)
        return np.array(
            [[code in source for code in range(codes)] for source in self.cells.values()], np.int64
        )

    @cached_property
    def adding_matrix(self) -> Ints:
        """Return a 0/1 matrix: one row per published cell, one column per measured cell that it adds."""
        measured = tuple(self.cells)
        parts = {cell: (cell,) for cell in measured} | dict(self.sums)
        return np.array(
            [[part in parts[cell] for part in measured] for cell in self.published_cells], np.int64
        )

    @cached_property
    def terms(self) -> Ints:
        """Return how many measured cells each published one adds, hence the factor of its variance."""
        return np.asarray(self.adding_matrix.sum(axis=1), np.int64)


T3 = (
    StatisticsLevel("T03001", {0: (1, 2, 3, 4, 5)}, {}),
    StatisticsLevel("T03002", {1: (1, 2, 3), 6: (4, 5)}, {0: (1, 6)}),
    StatisticsLevel(
        "T03003",
        {2: (1,), 3: (2, 3), 7: (4,), 8: (5,)},
        {0: (2, 3, 7, 8), 1: (2, 3), 6: (7, 8)},
    ),
    StatisticsLevel(
        "T03004",
        {2: (1,), 4: (2,), 5: (3,), 7: (4,), 8: (5,)},
        {0: (2, 4, 5, 7, 8), 1: (2, 4, 5), 3: (4, 5), 6: (7, 8)},
    ),
)
T4 = (
    StatisticsLevel("T04001", {0: (1, 2, 3, 4)}, {}),
    StatisticsLevel("T04002", {1: (1,), 2: (2,), 3: (3, 4)}, {0: (1, 2, 3)}),
)
LEVELS: Mapping[TableName, tuple[StatisticsLevel, ...]] = {"T3": T3, "T4": T4}
LABELS: Mapping[TableName, Mapping[int, str]] = {
    "T3": {
        0: "all households",
        1: "family households",
        2: "married couple families",
        3: "other families",
        4: "male householder, no spouse",
        5: "female householder, no spouse",
        6: "nonfamily households",
        7: "householder living alone",
        8: "householder not living alone",
    },
    "T4": {
        0: "all households",
        1: "owned with a mortgage",
        2: "owned free and clear",
        3: "rented or no rent paid",
    },
}


def find_levels(totals: Ints, thresholds: tuple[int, ...]) -> Ints:
    """Return the number of thresholds that each published total reaches.

    >>> find_levels(np.array([-3, 10, 25, 99]), (10, 20, 30)).tolist()
    [0, 1, 2, 3]
    """
    return np.searchsorted(np.array(thresholds, np.int64), totals, side="right").astype(np.int64)


@dataclass(frozen=True, slots=True)
class TypeAndTenure:
    """A household's type and tenure as one number, type · 5 + tenure; a table that is not made has an empty column.

    ``types`` and ``tenures`` name the source code of each level of the census; without them a level is its own code. A value
    that has no code is 0, and a household without either is in no universe.
    """

    type: str
    tenure: str
    types: tuple[tuple[str, int], ...] = ()
    tenures: tuple[tuple[str, int], ...] = ()

    @property
    def number(self) -> int:
        """Return how many joint numbers there are."""
        return (TYPES + 1) * (TENURES + 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that it reads."""
        return tuple(filter(None, (self.type, self.tenure)))

    def expression(self) -> pl.Expr:
        """Return the joint number, null for a household in no universe."""
        kind, tenure = (
            _encode_column(self.type, self.types, TYPES),
            _encode_column(self.tenure, self.tenures, TENURES),
        )
        joint = kind * (TENURES + 1) + tenure
        return pl.when(joint > 0).then(joint)

    def counts(self, table: TableName, joint: Ints) -> Ints:
        """Return counts by type (T3) or by tenure (T4) from counts by joint number, one row a group."""
        cube = joint.reshape(-1, TYPES + 1, TENURES + 1)
        return np.asarray(cube.sum(axis=2 if table == "T3" else 1), np.int64)


def _encode_column(column: str, levels: tuple[tuple[str, int], ...], most: int) -> pl.Expr:
    if not column:
        return pl.lit(0, dtype=pl.Int64)
    text = pl.col(column).cast(pl.String)
    if levels:
        named = dict(levels)
        return text.replace_strict(
            list(named), list(named.values()), default=0, return_dtype=pl.Int64
        ).fill_null(0)
    code = text.cast(pl.Int64, strict=False)
    return pl.when(code.is_between(1, most)).then(code).otherwise(0)
