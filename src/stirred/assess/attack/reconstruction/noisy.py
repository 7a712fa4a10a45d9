r"""Reconstruct from numbers that no file of records has: least absolute deviation within known bounds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, coo_array, csr_array, eye_array

from stirred.assess.attack.reconstruction.programme import Status, solve

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NearestHistogram:
    """The histogram over ``cells`` whose tables deviate least in sum; ``status`` is solved only if that is proved."""

    status: Status
    cells: Counts
    histogram: Counts | None = None
    deviation: int = 0


def find_nearest(
    members: Codes,
    counts: Counts,
    *,
    bound: int | None = None,
    zeros_kept: bool = True,
    seconds: float = 10.0,
) -> NearestHistogram:
    r"""Minimise $\sum_i |(A x)_i - c_i|$ over histograms with $|(A x)_i - c_i| \le$ ``bound``.

    >>> members = np.array([[0, 0, 1, 1], [2, 3, 2, 3]], dtype=np.int32)  # rows and columns of a 2 × 2 table
    >>> found = find_nearest(members, np.array([3, 1, 4, 1]), bound=1)
    >>> found.deviation
    1
    """
    kept = np.arange(members.shape[1], dtype=np.int64)
    for table in members:
        row = table[kept]
        zero = (counts[row] <= 0) & zeros_kept
        none = zero if bound is None else zero | (counts[row] + bound <= 0)
        kept = kept[(row < 0) | ~none]
    own = members[:, kept]
    table, cell = np.nonzero(own >= 0)
    rows = np.flatnonzero(
        np.isin(np.arange(counts.size), members)
    )  # a number without cells deviates all the same
    row = np.searchsorted(rows, own[table, cell])
    shape = (rows.size, kept.size)
    matrix = csr_array(coo_array((np.ones(row.size), (row, cell)), shape=shape))
    published = counts[rows].astype(np.float64)
    most = float(np.abs(counts).max(initial=0) + (bound or 0)) * (1 if bound is not None else 2)
    apart = np.full(2 * rows.size, most + 1 if bound is None else float(bound))
    if zeros_kept:
        apart = np.where(np.tile(published == 0, 2), 0.0, apart)
    steps = eye_array(rows.size, format="csr")
    whole = csr_array(block_array([[matrix, steps, -steps]]))
    cost = np.concatenate([np.zeros(kept.size), np.ones(2 * rows.size)])
    high = np.concatenate([np.full(kept.size, most), apart])
    integral = np.concatenate([np.ones(kept.size), np.zeros(2 * rows.size)]).astype(np.int_)
    status, point, _ = solve(cost, whole, published, published, high=high, integral=integral, seconds=seconds)
    if point is None:
        return NearestHistogram(status=status, cells=kept)
    found = np.rint(point[: kept.size]).astype(np.int64)
    off = np.abs(matrix @ found - counts[rows])
    if bound is not None and off.max(initial=0) > bound:
        return NearestHistogram(status="unknown", cells=kept)
    return NearestHistogram(status=status, cells=kept, histogram=found, deviation=int(off.sum()))
