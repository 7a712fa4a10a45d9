"""Collect the rows of a parent's queries: which cells count in them, their weighted sums, their weights."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class QueryRows:
    """Rows of some queries while they are collected: their cells, weighted sums and weights."""

    def __init__(self, cells: int) -> None:
        self.number = 0
        self.cells = cells
        self.index: list[NDArray[np.int32]] = []
        self.linear: list[Floats] = []
        self.weight: list[Floats] = []
        self.times: list[Floats] = []

    def add(
        self, place: Ints, first: Ints, count: Ints, taken: NDArray[np.bool_], linear: Floats, weight: Floats,
        times: float = 1.0,
    ) -> None:  # fmt: skip
        """Add the taken groups of one query as new rows, or to rows of the same cells, ``times`` as heavy."""
        for older, sums, heavy, most in zip(self.index, self.linear, self.weight, self.times, strict=True):
            begin = int(older.max(initial=-1)) + 1 - len(sums)
            same = older[first] - begin
            size = np.bincount(older[older >= 0] - begin, minlength=len(sums))
            # A row of a finer query with as many cells, the first of them included, has the same cells if it lies inside.
            inside = np.ones(len(first), bool)
            inside[place[older - begin != same[place]]] = False
            equal = taken & inside & (same >= 0)
            equal[equal] = size[same[equal]] == count[equal]
            sums[same[equal]] += linear[equal]
            heavy[same[equal]] += weight
            most[same[equal]] = np.maximum(most[same[equal]], times)
            taken = taken & ~equal
        if not taken.any():
            return
        row = np.where(taken, self.number + np.cumsum(taken) - 1, -1)
        self.index.append(row[place].astype(np.int32))
        self.linear.append(linear[taken])
        self.weight.append(np.repeat(weight[None], int(taken.sum()), axis=0))
        self.times.append(np.full(int(taken.sum()), times))
        self.number += int(taken.sum())

    def sums(self, children: int) -> tuple[Floats, Floats]:
        """Return the targets of all rows, and 1 / weight."""
        none = np.zeros((0, children))
        weight = np.maximum(np.concatenate([none, *self.weight]), 1e-9)
        return np.concatenate([none, *self.linear]) / weight, 1.0 / weight

    def weigh_rows(self) -> Floats:
        """Return the weight factor of each row: that of its query with the fewest answers."""
        return np.concatenate([np.zeros(0), *self.times])

    def list_rows_of_cells(self, begin: int) -> list[NDArray[np.int32]]:
        """Return the rows of each cell, one array for each query, counted from ``begin``."""
        return [np.where(own >= 0, own + begin, -1).astype(np.int32) for own in self.index]

    def kinds(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return rows by kind of cell, and the kind of every cell: cells of one kind share their rows."""
        label = np.zeros(self.cells, np.int64)
        for own in self.index:
            label = np.unique(label * (self.number + 1) + own + 1, return_inverse=True)[1].ravel()
        _, first, kind = np.unique(label, return_index=True, return_inverse=True)
        members = (
            np.stack([own[first] for own in self.index], axis=1) if self.index else np.zeros((1, 0), np.int32)
        )
        return np.ascontiguousarray(members.astype(np.int32)), kind.ravel().astype(np.int32)
