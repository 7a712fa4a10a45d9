"""Integers near fractional histograms: every exact sum and every parent's count kept, the measured sums as near as can be.

A first rounding gives each cell's persons, one by one, to the child that is furthest behind its fractional sums so far.
Then persons of two cells of one exact group are exchanged between two children (at the root: moved between two cells)
as long as that brings the sums nearer, in the same weights as the fractional fit: no exchange changes an exact sum.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Index = NDArray[np.int32]


@compile_kernel
def round_in_turn(
    F: Floats, order: Ints, parent: Ints, begin: Ints, exact: Ints, allowed: NDArray[np.bool_], X: Ints
) -> bool:
    """Give each cell's persons to the child furthest behind, then correct every exact group."""
    C = F.shape[0]
    behind = np.zeros(C)
    given = np.zeros(C, np.int64)
    fine = True
    for g in range(len(begin) - 1):
        behind[:] = 0.0
        given[:] = 0
        for k in range(begin[g], begin[g + 1]):
            j = order[k]
            left = parent[j]
            for c in range(C):
                behind[c] += F[c, j]
                sure = min(max(int(np.floor(F[c, j])) - 1, 0), left)
                X[c, j] = sure
                behind[c] -= sure
                given[c] += sure
                left -= sure
            for _ in range(left):
                best = -1
                for c in range(C):
                    if allowed[c, j] and (best < 0 or behind[c] > behind[best]):
                        best = c
                X[best, j] += 1
                behind[best] -= 1.0
                given[best] += 1
        for c in range(C):
            while given[c] > exact[c, g]:
                moved = False
                for other in range(C):
                    if given[other] >= exact[other, g]:
                        continue
                    for k in range(begin[g], begin[g + 1]):
                        j = order[k]
                        if X[c, j] > 0 and allowed[other, j]:
                            X[c, j] -= 1
                            X[other, j] += 1
                            given[c] -= 1
                            given[other] += 1
                            moved = True
                            break
                    if moved:
                        break
                if not moved:
                    fine = False
                    break
    return fine


@compile_kernel
def round_systematically(F: Floats, order: Ints, begin: Ints, exact: Ints, X: Ints) -> None:
    """Round the root: running sums, group by group, stay within one of their fractional sums."""
    for g in range(len(begin) - 1):
        total, before, last = 0.0, 0, -1
        for k in range(begin[g], begin[g + 1]):
            j = order[k]
            total += F[j]
            now = min(int(np.floor(total + 0.5)), exact[g])
            X[j] = now - before
            before = now
            if F[j] > 0.0 or last < 0:
                last = j
        X[last] += exact[g] - before


@compile_kernel
def measure_errors(X: Ints, F: Floats, rows: Index, off: Floats) -> None:
    """Compute by how much the sums of the integers differ from those of the fractions."""
    off[:] = 0.0
    for c in range(X.shape[0]):
        for q in range(rows.shape[0]):
            for j in range(X.shape[1]):
                if rows[q, j] >= 0:
                    off[c, rows[q, j]] += X[c, j] - F[c, j]


@compile_kernel
def compute_slope(
    c: int, j: int, off: Floats, rows: Index, weight: Floats, stiff: Floats, X: Ints, F: Floats
) -> float:
    """Return half the slope of the distance when cell j of child c grows."""
    s: float = stiff[c, j] * (X[c, j] - F[c, j])
    for q in range(rows.shape[0]):
        r = rows[q, j]
        if r >= 0:
            s += weight[c, r] * off[c, r]
    return s


@compile_kernel
def compute_bend(c: int, i: int, j: int, rows: Index, weight: Floats, stiff: Floats) -> float:
    """Return the curvature of moving one person of child c from cell i to cell j."""
    s: float = stiff[c, i] + stiff[c, j]
    for q in range(rows.shape[0]):
        a, b = rows[q, i], rows[q, j]
        if a != b:
            if a >= 0:
                s += weight[c, a]
            if b >= 0:
                s += weight[c, b]
    return s


@compile_kernel
def move_person(c: int, i: int, j: int, rows: Index, off: Floats, X: Ints) -> None:
    """Move one person of child c from cell i to cell j."""
    X[c, i] -= 1
    X[c, j] += 1
    for q in range(rows.shape[0]):
        if rows[q, i] >= 0:
            off[c, rows[q, i]] -= 1.0
        if rows[q, j] >= 0:
            off[c, rows[q, j]] += 1.0


@compile_kernel
def exchange_persons(
    X: Ints, F: Floats, rows: Index, weight: Floats, stiff: Floats, off: Floats, order: Ints, begin: Ints,
    allowed: NDArray[np.bool_], sweeps: int, most: int,
) -> int:  # fmt: skip
    """Exchange persons in place while it reduces the distance; return the number of exchanges."""
    C = X.shape[0]
    done = 0
    for sweep in range(sweeps):
        before = done
        for g in range(len(begin) - 1):
            for c in range(C):
                other = (c + 1 + sweep % max(C - 1, 1)) % C
                for _ in range(most):
                    take, give, low, high = -1, -1, np.inf, -np.inf
                    for k in range(begin[g], begin[g + 1]):
                        j = order[k]
                        if C == 1:
                            h = compute_slope(c, j, off, rows, weight, stiff, X, F)
                            into, out = True, X[c, j] > 0
                        else:
                            into = X[other, j] > 0 and allowed[c, j]
                            out = X[c, j] > 0 and allowed[other, j]
                            if not (into or out):
                                continue
                            h = compute_slope(c, j, off, rows, weight, stiff, X, F)
                            h -= compute_slope(other, j, off, rows, weight, stiff, X, F)
                        if into and h < low:
                            take, low = j, h
                        if out and h > high:
                            give, high = j, h
                    if take < 0 or give < 0 or take == give:
                        break
                    cost = compute_bend(c, give, take, rows, weight, stiff)
                    if C > 1:
                        cost += compute_bend(other, take, give, rows, weight, stiff)
                    if 2.0 * (high - low) <= cost * (1.0 + 1e-9):
                        break
                    move_person(c, give, take, rows, off, X)
                    if C > 1:
                        move_person(other, take, give, rows, off, X)
                    done += 1
        if done == before and sweep >= C - 2:
            break
    return done
