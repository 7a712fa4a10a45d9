r"""The memory layout of the compiled solver: the histograms of four children side by side.

Histograms of four children are interleaved (cell 0 of all four, then cell 1, …), so sums by query, which access
cells in no order, still process four numbers at a time. Arrays have one row of 4n numbers per four children; a missing
child or a cell that a child may not hold has a measurement that forces it to zero (``NEVER_COUNT``).
All sums run in a fixed order.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import add_four, compile_kernel, scale_four

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
Nesting = tuple[Longs, Longs, Longs, Ints]
Bounds = tuple[Ints, Floats, Floats, Floats, Floats]
NEVER_COUNT = 1e200


@compile_kernel
def merge_queries(groups: Ints, weights: Floats, gid: Ints, w: Floats, diagonal: Floats) -> int:
    """Merge equal queries, renumbered by first appearance; return how many remain.

    Queries that keep every cell apart become a diagonal.
    """
    Q, n = groups.shape
    top = 0
    for q in range(Q):
        for j in range(n):
            top = max(top, groups[q, j])
    name = np.empty(top + 1, np.int32)
    kept = 0
    for q in range(Q):
        name[:] = -1
        m = 0
        for j in range(n):
            g = groups[q, j]
            if g >= 0 and name[g] < 0:
                name[g] = m
                m += 1
            gid[kept, j] = name[g] if g >= 0 else -1
        if m == n:
            for k in range(len(w)):
                diagonal[k] += weights[k, q]
        elif m > 0:
            same = 0
            j = 0
            while j < n:
                if gid[same, j] == gid[kept, j]:
                    j += 1
                else:
                    same += 1
                    j = 0
            for k in range(len(w)):
                w[k, same] += weights[k, q]
            kept = max(kept, same + 1)
    return kept


@compile_kernel
def nest_queries(gid: Ints, size: Longs, source: Longs, begin: Longs, length: Longs, into: Ints) -> None:
    """Nest queries from fine to coarse: each is summed from the coarsest finer one (-1: from the cells).

    Fills in that source, where the sums of each query begin, how many numbers it sums, and into which sum each goes.
    The last sum is a bin for what a query leaves out.
    """
    Q, n = gid.shape
    for k in range(Q):
        begin[k + 1] = begin[k] + size[k]
    image = np.empty(n, np.int32)
    for k in range(Q):
        own = gid[k]
        source[k] = -1
        for f in range(k - 1, -1, -1):
            finer = gid[f]
            image[:] = -2
            refines = True
            for j in range(n):
                if finer[j] < 0:
                    refines = own[j] < 0
                elif image[finer[j]] == -2:
                    image[finer[j]] = own[j]
                else:
                    refines = image[finer[j]] == own[j]
                if not refines:
                    break
            if refines:
                source[k] = f
                break
        length[k] = size[source[k]] if source[k] >= 0 else n
        for a in range(length[k]):
            g = image[a] if source[k] >= 0 else own[a]
            into[k, a] = begin[k] + g if g >= 0 else begin[Q]


@compile_kernel
def fold(x: Floats, first: int, into: Ints, length: int, sums: Floats) -> None:
    """Add every number of x to its sum."""
    for a in range(length):
        add_four(sums, 4 * np.int64(into[a]), x, first + 4 * a)


@compile_kernel
def spread(sums: Floats, into: Ints, length: int, first: int, y: Floats) -> None:
    """Add to every number of y its sum."""
    for a in range(length):
        add_four(y, first + 4 * a, sums, 4 * np.int64(into[a]))


@compile_kernel
def scale_children(x: Floats, first: int, last: int, w: Floats, y: Floats) -> None:
    """Multiply the numbers of each child by its own weight."""
    for i in range(first, last, 4):
        scale_four(y, i, x, i, w, 0)


@compile_kernel
def multiply_hessian(
    X: Floats, queries: Nesting, weights: Floats, diagonal: Floats, sums: Floats, out: Floats
) -> None:
    """Compute out = X H: sums from fine to coarse, weighted, and back from coarse to fine."""
    source, begin, length, into = queries
    Q = len(source)
    for b in range(len(X)):
        sums[:] = 0.0
        for q in range(Q):
            if source[q] < 0:
                fold(X[b], 0, into[q], length[q], sums)
            else:
                fold(sums, 4 * begin[source[q]], into[q], length[q], sums)
        sums[4 * begin[Q] :] = 0.0
        for q in range(Q):
            scale_children(sums, 4 * begin[q], 4 * begin[q + 1], weights[b, q], sums)
        scale_children(X[b], 0, X.shape[1], diagonal[b], out[b])
        for q in range(Q - 1, -1, -1):
            if source[q] < 0:
                spread(sums, into[q], length[q], 0, out[b])
            else:
                spread(sums, into[q], length[q], 4 * begin[source[q]], sums)


@compile_kernel
def move_thresholds(T: Floats, p: Floats, tau: Floats, count: Floats, total: Floats) -> None:
    r"""Move tau to where $\sum_c \max(T_c - \tau, 0) = p$ in every cell: Newton on a convex function, from any tau.

    One step from too far right lands left of the root, and from the left the steps only go right (Michelot 1986),
    so the threshold of the last iteration is a good start.
    """
    K, size = T.shape
    count[:] = 0.0
    total[:] = 0.0
    for b in range(K):
        row = T[b]
        for i in range(size):
            above = row[i] > tau[i]
            total[i] += row[i] if above else 0.0
            count[i] += 1.0 if above else 0.0
    for i in range(0, size, 4):
        k = count[i] + count[i + 1] + count[i + 2] + count[i + 3]
        s = total[i] + total[i + 1] + total[i + 2] + total[i + 3]
        level = (s - p[i // 4]) / k if k > 0.0 else -0.5 * NEVER_COUNT
        shrinks = False
        for _ in range(4 * K + 3):
            k0 = k1 = k2 = k3 = s0 = s1 = s2 = s3 = 0.0
            for b in range(K):
                t0, t1, t2, t3 = T[b, i], T[b, i + 1], T[b, i + 2], T[b, i + 3]
                k0 += 1.0 if t0 > level else 0.0
                k1 += 1.0 if t1 > level else 0.0
                k2 += 1.0 if t2 > level else 0.0
                k3 += 1.0 if t3 > level else 0.0
                s0 += t0 if t0 > level else 0.0
                s1 += t1 if t1 > level else 0.0
                s2 += t2 if t2 > level else 0.0
                s3 += t3 if t3 > level else 0.0
            fresh = k0 + k1 + k2 + k3
            # Test for "did not shrink", not "did not change": in floating point the count can cycle.
            if fresh == 0.0 or fresh == k or (shrinks and fresh > k):
                break
            shrinks = k > 0.0
            k = fresh
            level = (s0 + s1 + s2 + s3 - p[i // 4]) / k
        tau[i] = tau[i + 1] = tau[i + 2] = tau[i + 3] = level


@compile_kernel
def clip(T: Floats, tau: Floats, X: Floats) -> None:
    """Compute X = max(T − τ, 0)."""
    for b in range(len(T)):
        t, x = T[b], X[b]
        for i in range(len(t)):
            x[i] = max(t[i] - tau[i], 0.0)


@compile_kernel
def add_pull(x: Floats, b: int, bounds: Bounds, sums: Floats, g: Floats) -> None:
    """Add to the gradient of four children the terms of the augmented Lagrangian that hold sums between bounds."""
    into, low, high, multiplier, mu = bounds
    for r in range(len(into)):
        sums[:] = 0.0
        fold(x, 0, into[r], into.shape[1], sums)
        for a in range(low.shape[2]):
            z = sums[a] + multiplier[r, b, a] / mu[r]
            sums[a] = mu[r] * (z - min(max(z, low[r, b, a]), high[r, b, a]))
        sums[low.shape[2] :] = 0.0
        spread(sums, into[r], into.shape[1], 0, g)


@compile_kernel
def find_active_sums(X: Floats, bounds: Bounds, sums: Floats, stiff: Floats) -> None:
    """Find which held sums are active at X: there the curvature is μ, elsewhere 0."""
    into, low, high, multiplier, mu = bounds
    for r in range(len(into)):
        for b in range(len(X)):
            sums[:] = 0.0
            fold(X[b], 0, into[r], into.shape[1], sums)
            for a in range(low.shape[2]):
                z = sums[a] + multiplier[r, b, a] / mu[r]
                within = low[r, b, a] < high[r, b, a] and low[r, b, a] <= z <= high[r, b, a]
                stiff[r, b, a] = 0.0 if within else mu[r]


@compile_kernel
def lay_out(A: Floats, kept: Bools, out: Floats) -> None:
    """Copy a child × cell array into the layout, where kept; the rest of ``out`` does not change."""
    for c in range(len(A)):
        for j in range(A.shape[1]):
            if kept[c, j]:
                out[c // 4, 4 * j + c % 4] = A[c, j]


@compile_kernel
def lay_back(X: Floats, A: Floats) -> None:
    """Copy the layout back to a child × cell array."""
    for c in range(len(A)):
        for j in range(A.shape[1]):
            A[c, j] = X[c // 4, 4 * j + c % 4]
