"""Sex by age: the finest cells of a group, and the three coarser sets of ages that a group may get."""

from dataclasses import dataclass
from functools import cache

import numpy as np
import polars as pl
from numpy.typing import NDArray

Ints = NDArray[np.int64]
MAX_AGE = 115
AGE4 = (18, 45, 65)
AGE9 = (5, 18, 25, 35, 45, 55, 65, 75)
AGE23 = (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
AGE_EDGES = ((), AGE4, AGE9, AGE23)  # by the level of detail: 0 is the total alone


def age_classes(detail: int) -> list[tuple[int, int]]:
    """Return the first and last age of every class.

    >>> age_classes(1)
    [(0, 17), (18, 44), (45, 64), (65, 115)]
    """
    edges = AGE_EDGES[detail]
    return list(zip((0, *edges), (*(edge - 1 for edge in edges), MAX_AGE), strict=True))


def count_cells(detail: int) -> int:
    """Return how many cells a group has: 1, 8, 18 or 46.

    >>> [count_cells(detail) for detail in range(4)]
    [1, 8, 18, 46]
    """
    return 2 * len(age_classes(detail)) if detail else 1


@cache
def map_to_coarser(detail: int) -> Ints:
    """Return the cell of a level of detail that each of the 46 finest cells lies in.

    >>> map_to_coarser(1)[[0, 3, 4, 23]].tolist()
    [0, 0, 1, 4]
    """
    place = np.searchsorted(AGE_EDGES[detail], [first for first, _ in age_classes(3)], side="right")
    return np.concatenate([place, place + len(age_classes(detail))]).astype(np.int64)


@dataclass(frozen=True)
class SexByAge:
    """The 46 cells of sex by 23 ages; a record with another sex or age has none, and is in no table."""

    sex: str
    sexes: tuple[str, ...]
    age: str

    @property
    def number(self) -> int:
        """Return the number of cells, 46."""
        return count_cells(3)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of sex and age."""
        return (self.sex, self.age)

    def expression(self) -> pl.Expr:
        """Return the number of a record's cell, null where it has none."""
        sex = pl.col(self.sex).cast(pl.String)
        first = pl.when(sex == self.sexes[0]).then(0).when(sex == self.sexes[1]).then(len(AGE23) + 1)
        age = pl.col(self.age).cast(pl.Float64, strict=False)
        place = pl.sum_horizontal([(age >= edge).cast(pl.Int64) for edge in AGE23])
        return first + pl.when(age.is_between(0, MAX_AGE)).then(place)
