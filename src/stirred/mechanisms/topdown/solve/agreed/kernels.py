"""The compiled parts of the dual method: the best histograms for given prices, and products with its curvature.

``rows[q, j]`` is the row that cell j counts in for query q, -1 where the query drops it; a row has one price per child.
Cells and children run in a fixed order, so the same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled

Floats = NDArray[np.float64]
Index = NDArray[np.int32]


@compiled
def primal(
    price: Floats, centre: Floats, inverse: Floats, rows: Index, parent: Floats, allowed: NDArray[np.bool_], X: Floats
) -> None:  # fmt: skip
    """X = the minimum of ½ d (x − centre)² + price · x over x ≥ 0, with Σ_c x = parent where that has a length."""
    C, n = X.shape
    Q = rows.shape[0]
    v = np.empty(C)
    live = np.zeros(C, np.bool_)
    for j in range(n):
        for c in range(C):
            live[c] = allowed[c, j]
            if live[c]:
                cost = 0.0
                for q in range(Q):
                    r = rows[q, j]
                    if r >= 0:
                        cost += price[c, r]
                v[c] = centre[c, j] - cost * inverse[c, j]
        if len(parent) == 0:
            for c in range(C):
                X[c, j] = v[c] if live[c] and v[c] > 0.0 else 0.0
            continue
        # Michelot's projection: the multiplier of the parent's count, over fewer and fewer positive children.
        shift, before = 0.0, C + 1
        while True:
            value, slope, count = 0.0, 0.0, 0
            for c in range(C):
                if live[c] and (before > C or v[c] - shift * inverse[c, j] > 0.0):
                    value += v[c]
                    slope += inverse[c, j]
                    count += 1
            if count == 0 or count >= before:
                break
            before = count
            shift = (value - parent[j]) / slope
        for c in range(C):
            x = v[c] - shift * inverse[c, j]
            X[c, j] = x if live[c] and x > 0.0 else 0.0


@compiled
def row_sums(X: Floats, rows: Index, out: Floats) -> None:
    """out = the sums of X by row."""
    out[:] = 0.0
    for c in range(X.shape[0]):
        for q in range(rows.shape[0]):
            for j in range(X.shape[1]):
                r = rows[q, j]
                if r >= 0 and X[c, j] != 0.0:
                    out[c, r] += X[c, j]


@compiled
def active(X: Floats, inverse: Floats, tied: bool) -> tuple[Index, Index, NDArray[np.int64], Floats, Floats]:
    """The positive cells by cell, then child: cell numbers, children, where each begins, 1/d, and what ties children."""
    C, n = X.shape
    total = 0
    for j in range(n):
        for c in range(C):
            total += X[c, j] > 0.0
    cell, child = np.empty(total, np.int32), np.empty(total, np.int32)
    first, slack = np.zeros(n + 1, np.int64), np.empty(total)
    tie = np.zeros(n)
    k = 0
    for j in range(n):
        s = 0.0
        for c in range(C):
            if X[c, j] > 0.0:
                cell[k], child[k], slack[k] = j, c, inverse[c, j]
                s += inverse[c, j]
                k += 1
        if tied and s > 0.0:
            tie[j] = 1.0 / s
        first[j + 1] = k
    return cell, child, first, slack, tie


@compiled
def curvature(
    P: Floats, rows: Index, child: Index, first: NDArray[np.int64], slack: Floats, tie: Floats, soft: Floats, out: Floats
) -> None:  # fmt: skip
    """out = (B V B' + soft) P on the positive cells."""
    Q, n = rows.shape
    for c in range(P.shape[0]):
        for r in range(P.shape[1]):
            out[c, r] = soft[c, r] * P[c, r]
    size = 1
    for j in range(n):
        size = max(size, first[j + 1] - first[j])
    a = np.empty(size)
    for j in range(n):
        begin, end = first[j], first[j + 1]
        if begin == end:
            continue
        mean = 0.0
        for k in range(begin, end):
            s = 0.0
            for q in range(Q):
                r = rows[q, j]
                if r >= 0:
                    s += P[child[k], r]
            a[k - begin] = s * slack[k]
            mean += a[k - begin]
        mean *= tie[j]
        for k in range(begin, end):
            s = a[k - begin] - mean * slack[k]
            for q in range(Q):
                r = rows[q, j]
                if r >= 0:
                    out[child[k], r] += s


@compiled
def diagonal(
    rows: Index, child: Index, first: NDArray[np.int64], slack: Floats, tie: Floats, soft: Floats, out: Floats
) -> None:
    """out = the diagonal of the same matrix."""
    Q, n = rows.shape
    for c in range(soft.shape[0]):
        for r in range(soft.shape[1]):
            out[c, r] = soft[c, r]
    for j in range(n):
        for k in range(first[j], first[j + 1]):
            s = slack[k] * (1.0 - slack[k] * tie[j])
            for q in range(Q):
                r = rows[q, j]
                if r >= 0:
                    out[child[k], r] += s


@compiled
def coarse_block(
    rows: Index, small: NDArray[np.int64], child: Index, first: NDArray[np.int64], slack: Floats, tie: Floats, soft: Floats,
    out: Floats,
) -> None:  # fmt: skip
    """out[c] = the part of the matrix for the rows of each child that ``small`` numbers (-1: others), children untied."""
    Q, n = rows.shape
    out[:] = 0.0
    for c in range(soft.shape[0]):
        for r in range(soft.shape[1]):
            if small[r] >= 0:
                out[c, small[r], small[r]] = soft[c, r]
    inside = np.empty(Q, np.int64)
    for j in range(n):
        if first[j] == first[j + 1]:
            continue
        count = 0
        for q in range(Q):
            r = rows[q, j]
            if r >= 0 and small[r] >= 0:
                inside[count] = small[r]
                count += 1
        for k in range(first[j], first[j + 1]):
            s = slack[k] * (1.0 - slack[k] * tie[j])
            for a in range(count):
                for b in range(count):
                    out[child[k], inside[a], inside[b]] += s


@compiled
def factor(blocks: Floats) -> None:
    """The Cholesky factors of symmetric matrices, in place, with 1 / diagonal on it; the order of sums never changes."""
    m = blocks.shape[1]
    for c in range(blocks.shape[0]):
        for i in range(m):
            for j in range(i):
                s = blocks[c, i, j]
                for k in range(j):
                    s -= blocks[c, i, k] * blocks[c, j, k]
                blocks[c, i, j] = s * blocks[c, j, j]
            s = blocks[c, i, i]
            least = 1e-12 * s
            for k in range(i):
                s -= blocks[c, i, k] * blocks[c, i, k]
            blocks[c, i, i] = 1.0 / np.sqrt(max(s, least))


@compiled
def backward(blocks: Floats, R: Floats, small: NDArray[np.int64], Z: Floats) -> None:
    """Z = the solution of the factored systems for the rows that ``small`` numbers; other rows are left as they are."""
    m = blocks.shape[1]
    v = np.empty(m)
    for c in range(blocks.shape[0]):
        for r in range(len(small)):
            if small[r] >= 0:
                v[small[r]] = R[c, r]
        for i in range(m):
            s = v[i]
            for k in range(i):
                s -= blocks[c, i, k] * v[k]
            v[i] = s * blocks[c, i, i]
        for i in range(m - 1, -1, -1):
            v[i] *= blocks[c, i, i]
            for k in range(i):
                v[k] -= blocks[c, i, k] * v[i]
        for r in range(len(small)):
            if small[r] >= 0:
                Z[c, r] = v[small[r]]
