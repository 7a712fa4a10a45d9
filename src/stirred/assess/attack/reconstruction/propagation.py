"""Bounds of every cell that follow from the published numbers one at a time, in exact integers."""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel

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
