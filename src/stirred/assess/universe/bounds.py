"""Bound the cells of a table whose margins are known: propagation, Fréchet, Dobra–Fienberg, linear programmes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from stirred.errors import InputError
from stirred.kernels import compile_kernel

# Bounds of every cell that follow from the published numbers one at a time, in exact integers.

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]


def find_candidates(members: Codes, counts: Counts) -> Counts:
    """Return the cells that no published zero excludes.

    >>> members = np.array([[0, 0, 1, 1], [2, 3, 2, 3]], dtype=np.int32)
    >>> find_candidates(members, np.array([0, 5, 2, 3])).tolist()
    [2, 3]
    """
    kept = np.arange(members.shape[1], dtype=np.int64)
    for table in members:
        row = table[kept]
        kept = kept[(row < 0) | (counts[row] > 0)]
    return kept


def propagate_bounds(members: Codes, counts: Counts) -> tuple[Counts, Counts, bool]:
    """Return the least and the most records of each cell, and whether the published numbers can be met.

    >>> members = np.array([[0, 0, 1, 1], [2, 3, 2, 3]], dtype=np.int32)
    >>> low, high, possible = propagate_bounds(members, np.array([4, 1, 5, 0]))
    >>> low.tolist(), high.tolist(), possible
    ([4, 0, 1, 0], [4, 0, 1, 0], True)
    """
    many = members.shape[1]
    low = np.zeros(many, dtype=np.int64)
    high = np.full(many, int(counts.max(initial=0)), dtype=np.int64)
    possible = tighten_bounds(np.ascontiguousarray(members), counts, low, high)
    return low, high, bool(possible)


@compile_kernel
def tighten_bounds(members: Codes, counts: Counts, low: Counts, high: Counts) -> bool:
    """Narrow ``low`` and ``high`` in place until nothing changes; False where the numbers cannot be met."""
    tables, cells = members.shape
    changed = True
    while changed:
        changed = False
        least = np.zeros(counts.size, dtype=np.int64)
        most = np.zeros(counts.size, dtype=np.int64)
        for table in range(tables):
            for cell in range(cells):
                row = members[table, cell]
                if row >= 0:
                    least[row] += low[cell]
                    most[row] += high[cell]
        for row in range(counts.size):
            if least[row] > counts[row] or most[row] < counts[row]:
                return False
        for table in range(tables):
            for cell in range(cells):
                row = members[table, cell]
                if row < 0:
                    continue
                above = counts[row] - least[row] + low[cell]
                below = counts[row] - most[row] + high[cell]
                if above < high[cell]:
                    if above < low[cell]:
                        return False
                    for other in range(tables):
                        if members[other, cell] >= 0:
                            most[members[other, cell]] -= high[cell] - above
                    high[cell] = above
                    changed = True
                if below > low[cell]:
                    if below > high[cell]:
                        return False
                    for other in range(tables):
                        if members[other, cell] >= 0:
                            least[members[other, cell]] += below - low[cell]
                    low[cell] = below
                    changed = True
    return True


# What margins imply about cells: bounds of Fréchet, of Dobra and Fienberg, and linear programmes for all other tables.
#
# Tables are given by the variables they show. If they are *decomposable* (in some order each shares with those
# before it only variables that stand together in one of them), a cell lies between
# $\max(0, \sum_C n_C - \sum_S n_S)$ and $\min_C n_C$ over the tables C and what they share, S (Dobra and Fienberg
# 2000). For two tables these are the bounds of Fréchet.

Integers = NDArray[np.int64]
Shown = frozenset[str]
MAX_CELLS = 3000  # of a table whose bounds are found by linear programmes


def keep_maximal(tables: Sequence[Shown]) -> list[Shown]:
    """Return the tables that no other one contains.

    >>> [sorted(table) for table in keep_maximal([frozenset("a"), frozenset("ab"), frozenset("c")])]
    [['a', 'b'], ['c']]
    """
    kept: list[Shown] = []
    for table in sorted({*tables}, key=lambda shown: (-len(shown), sorted(shown))):
        if not any(table <= other for other in kept):
            kept.append(table)
    return sorted(kept, key=sorted)


def find_separators(tables: Sequence[Shown]) -> list[Shown] | None:
    """Return what each table shares with those before it, in a decomposable order; None if there is none.

    >>> find_separators([frozenset("ab"), frozenset("bc"), frozenset("ca")]) is None
    True
    >>> [sorted(shared) for shared in find_separators([frozenset("ab"), frozenset("bc"), frozenset("cd")])]
    [['b'], ['c']]
    """
    left, taken, found = keep_maximal(tables), list[Shown](), list[Shown]()
    if not left:
        return []
    # a spanning tree of largest overlaps joins the tables; they are decomposable if it keeps each variable connected
    taken.append(left.pop(0))
    while left:
        table, near = max(((t, u) for t in left for u in taken), key=lambda pair: len(pair[0] & pair[1]))
        before = frozenset[str]().union(*taken)
        if table & before != table & near:
            return None
        found.append(table & near)
        taken.append(table)
        left.remove(table)
    return found


def observed_bounds(cells: pl.DataFrame, tables: Sequence[Shown], shared: Sequence[Shown]) -> pl.DataFrame:
    """Return ``low`` and ``high`` of the cells that occur, from decomposable tables.

    ``cells`` has the variables of the tables and ``count``, one row for each combination that occurs.
    """
    total = pl.lit(0, pl.Int64)
    high = pl.lit(None, pl.Int64)
    for sign, group in ((1, tables), (-1, shared)):
        for shown in group:
            margin = (pl.col("count").sum().over(sorted(shown)) if shown else pl.col("count").sum()).cast(
                pl.Int64
            )
            total = total + sign * margin
            if sign == 1:
                high = pl.min_horizontal(high, margin)
    return cells.with_columns(pl.max_horizontal(pl.lit(0, pl.Int64), total).alias("low"), high.alias("high"))


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBounds:
    """The smallest and largest value of every cell of a table that agree with its margins, and how they were found."""

    low: Integers
    high: Integers
    method: str  # "decomposable" (closed form) or "linear programme" (rounded to whole numbers: valid, perhaps not attained)


def cell_bounds(table: ArrayLike, margins: Sequence[Sequence[int]]) -> CellBounds:
    """Return the bounds of all cells of a table of which these margins (lists of axes) are known.

    >>> found = cell_bounds([[3, 1], [0, 2]], [[0], [1]])
    >>> found.low.tolist(), found.high.tolist()
    ([[1, 1], [0, 0]], [[3, 3], [2, 2]])
    """
    counts = np.asarray(table, np.int64)
    tables = keep_maximal([frozenset(f"{axis:03}" for axis in axes) for axes in margins])
    shared = find_separators(tables)
    if shared is not None:
        total, high = np.zeros(counts.shape, np.int64), np.full(counts.shape, counts.sum())
        for sign, group in ((1, tables), (-1, shared)):
            for shown in group:
                margin = _margin(counts, shown)
                total += sign * margin
                if sign == 1:
                    high = np.minimum(high, margin)
        return CellBounds(low=np.maximum(total, 0), high=high, method="decomposable")
    return _solve_programmes(counts, tables)


def _margin(counts: Integers, shown: Shown) -> Integers:
    """Return the margin of each cell, in the shape of the table."""
    others = tuple(axis for axis in range(counts.ndim) if f"{axis:03}" not in shown)
    result: Integers = counts.sum(axis=others, keepdims=True)
    return np.broadcast_to(result, counts.shape)


def _solve_programmes(counts: Integers, tables: Sequence[Shown]) -> CellBounds:
    from scipy.optimize import linprog

    if counts.size > MAX_CELLS:
        raise InputError(
            f"the bounds of {counts.size:,} cells are too many linear programmes",
            why=f"the margins are not decomposable, and at most {MAX_CELLS:,} cells are weighed",
            fix="ask about a smaller table, or about margins that are decomposable",
        )
    place = np.arange(counts.size).reshape(counts.shape)
    lines: list[Integers] = []
    for shown in tables:
        others = tuple(axis for axis in range(counts.ndim) if f"{axis:03}" not in shown)
        along = np.moveaxis(place, others, range(-len(others), 0)).reshape(-1, _size(counts, others))
        lines += list(along)
    matrix = np.zeros((len(lines), counts.size))
    for number, line in enumerate(lines):
        matrix[number, line] = 1
    known = matrix @ counts.ravel().astype(np.float64)
    low, high = np.zeros(counts.size, np.int64), np.zeros(counts.size, np.int64)
    upper = np.min([_margin(counts, shown).ravel() for shown in tables], axis=0)
    for cell in range(counts.size):
        if upper[cell] == 0:
            continue
        aim = np.zeros(counts.size)
        aim[cell] = 1
        least = linprog(aim, A_eq=matrix, b_eq=known, method="highs")
        most = linprog(-aim, A_eq=matrix, b_eq=known, method="highs")
        # without an answer of the solver the weaker bound stands
        low[cell] = 0 if least.fun is None else max(0, int(np.ceil(least.fun - 1e-6)))
        bound = upper[cell] if most.fun is None else np.floor(-most.fun + 1e-6)
        high[cell] = min(int(upper[cell]), int(bound))
    return CellBounds(
        low=low.reshape(counts.shape), high=high.reshape(counts.shape), method="linear programme"
    )


def _size(counts: Integers, axes: Sequence[int]) -> int:
    return int(np.prod([counts.shape[axis] for axis in axes], dtype=np.int64))
