"""Solve parents in compiled code: what ``problem.solve`` does for one parent, for a batch of them, bit for bit.

Sums run in the order of the NumPy path, which stays as the oracle and solves every parent that is refused here
(``TRY_AGAIN``): because no child may hold a cell, or the solver is stuck.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.mechanisms.topdown.solve.batched.arrays import (
    DONE,
    TRY_AGAIN,
    LevelArrays,
    Terms,
    build_families,
    find_classes,
    find_live,
    gather_terms,
    is_covered,
)
from stirred.mechanisms.topdown.solve.batched.networks import pairwise_sum, sort_part
from stirred.mechanisms.topdown.solve.batched.prior import LeafPrior, add_prior
from stirred.mechanisms.topdown.solve.descend import descend
from stirred.mechanisms.topdown.solve.layout import (
    NEVER_COUNT,
    lay_back,
    lay_out,
    merge_queries,
    nest_queries,
)
from stirred.mechanisms.topdown.solve.problem import update_multipliers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]
MAX_ADDITIONS = 8e9  # as in ``problem``
MAX_GENERIC_CELLS = 20_000  # as in ``levels``
MIN_LARGE_CELLS = 4_000
MAX_ROUNDS = 60


@compile_kernel
def sum_hessian_rows(gid: Groups, Q: int, w: Floats, diagonal: Floats) -> Floats:
    """Return the row sums of the Hessian, largest over classes; of ``gid`` the first Q rows count."""
    n = gid.shape[1]
    own, result = np.empty((len(w), n)), np.empty(n)
    for k in range(len(w)):
        for j in range(n):
            own[k, j] = diagonal[k]
    size = np.zeros(n + 1, np.int64)
    for q in range(Q):
        for j in range(n):
            size[j] = 0
        for j in range(n):
            if gid[q, j] >= 0:
                size[gid[q, j]] += 1
        for k in range(len(w)):
            for j in range(n):
                if gid[q, j] >= 0:
                    own[k, j] += w[k, q] * np.float64(size[gid[q, j]])
    for j in range(n):
        result[j] = own[0, j]
        for k in range(1, len(w)):
            result[j] = max(result[j], own[k, j])
    return result


@compile_kernel
def find_start(linear: Floats, allowed: Bools, parent: Floats, d: Floats, by_column: bool) -> Floats:
    """Return the starting point; ``by_column`` says that NumPy added the linear terms column by column."""
    C, n = linear.shape
    X = np.empty((C, n))
    column = np.empty(C)
    for j in range(n):
        may = 0
        for c in range(C):
            may += allowed[c, j]
            column[c] = linear[c, j]
        if by_column or n == 1:
            mean = pairwise_sum(column, C) / C
        else:
            mean = 0.0
            for c in range(C):
                mean += column[c]
            mean /= C
        for c in range(C):
            share = 1.0 / max(may, 1) if allowed[c, j] else 0.0
            X[c, j] = share * parent[j] + (linear[c, j] - mean) / d[j]
    return X


@compile_kernel
def lay_bounds(side: Floats, out: Floats) -> None:
    """Lay out bounds of the held sums, four children side by side."""
    for r in range(side.shape[0]):
        for c in range(side.shape[1]):
            for a in range(side.shape[2]):
                out[r, c // 4, 4 * a + c % 4] = side[r, c, a]


@compile_kernel
def measure_violation(X: Floats, groups: Groups, low: Floats, high: Floats) -> float:
    """Return how far the furthest held sum is outside its bounds."""
    C, n = X.shape
    furthest = 0.0
    sums = np.empty(low.shape[2])
    for r in range(len(groups)):
        for c in range(C):
            for a in range(len(sums)):
                sums[a] = 0.0
            for j in range(n):
                sums[groups[r, j]] += X[c, j]
            for a in range(low.shape[2]):
                furthest = max(furthest, low[r, c, a] - sums[a], sums[a] - high[r, c, a])
    return furthest


@compile_kernel
def find_binding(groups: Groups, low: Floats, high: Floats, parent: Floats) -> Groups:
    """Return only the groups whose bounds can be active, as in ``parent``."""
    R, C, m = low.shape
    result = np.empty(groups.shape, np.int32)
    sums, matters = np.empty(m), np.empty(m, np.bool_)
    for r in range(R):
        for a in range(m):
            sums[a], matters[a] = 0.0, False
        for j in range(groups.shape[1]):
            sums[groups[r, j]] += parent[j]
        for c in range(C):
            for a in range(m):
                matters[a] |= low[r, c, a] > 0.0 or high[r, c, a] < sums[a]
        for j in range(groups.shape[1]):
            result[r, j] = groups[r, j] if matters[groups[r, j]] else -1
    return result


@compile_kernel
def compute_penalties(held: Groups, m: int, d: Floats) -> tuple[Floats, Floats]:
    """Return the penalty of each family of held sums, and the metric with all of them."""
    R, n = held.shape
    mu, heavy = np.empty(R), d.copy()
    size, inside = np.empty(m, np.int64), np.empty(n)
    for r in range(R):
        for a in range(m):
            size[a] = 0
        k = np.int64(0)  # a literal would be compiled for again
        for j in range(n):
            if held[r, j] >= 0:
                size[held[r, j]] += 1
                inside[k] = d[j]
                k += 1
        if k == 0:
            mu[r] = 1.0
            continue
        sort_part(inside, np.int64(0), k)
        median = inside[k // 2] if k % 2 else (inside[k // 2 - 1] + inside[k // 2]) / 2.0
        largest = 1
        for a in range(m):
            largest = max(largest, size[a])
        mu[r] = median / np.float64(largest) * 4.0
        for j in range(n):
            if held[r, j] >= 0:
                heavy[j] += mu[r] * np.float64(size[held[r, j]])
    return mu, heavy


@compile_kernel
def sort_queries(gid: Groups, Q: int) -> tuple[Ints, Ints]:
    """Return numbers of queries by falling size, equal ones in order, and their sizes."""
    size, order, ordered = np.empty(Q, np.int64), np.empty(Q, np.int64), np.empty(Q, np.int64)
    for q in range(Q):
        size[q] = 0
        for j in range(gid.shape[1]):
            size[q] = max(size[q], np.int64(gid[q, j]) + 1)
        k = q
        while k > 0 and size[order[k - 1]] < size[q]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = q
    for q in range(Q):
        ordered[q] = size[order[q]]
    return order, ordered


@compile_kernel
def solve_batch(
    level: LevelArrays, terms: Terms, parents: Ints, own: Floats, at: Ints, by_column: Bools, prior: LeafPrior
) -> tuple[Floats, Ints, Ints, Floats]:
    """Solve all parents; return histograms of live children, starts, statuses and certificates.

    ``own`` are linear terms of their own (from ``at`` on), ``by_column`` in which order they were added;
    ``prior`` is added to every parent, unless it is of no cell.
    """
    begin, status, numbers = (
        np.zeros(len(parents) + 1, np.int64),
        np.full(len(parents), DONE),
        np.zeros((len(parents), 5)),
    )
    for i in range(len(parents)):
        cells = level.above[parents[i] + 1] - level.above[parents[i]]
        children = level.first_child[parents[i] + 1] - level.first_child[parents[i]]
        begin[i + 1] = begin[i] + (0 if children == 1 else cells * children)
    found = np.empty(begin[-1])
    tolerance = level.tolerance
    for i in range(len(parents)):
        first, last = level.above[parents[i]], level.above[parents[i] + 1]
        n = last - first
        if begin[i + 1] == begin[i]:
            continue
        place = level.place[first:last]
        children, allowed = find_live(level, parents[i])
        C = len(children)
        if n >= MIN_LARGE_CELLS or not is_covered(allowed):
            status[i] = TRY_AGAIN
            continue
        parent = np.empty(n)
        for j in range(n):
            parent[j] = level.counts[first + j]
        linear = np.empty((C, n))
        gather_terms(terms, children, place, own[at[i] : at[i + 1]], linear)
        weights, classes = find_classes(level, children)
        held, _, low, high = build_families(level, children, place)
        groups = np.empty((len(level.queries), n), np.int32)
        for q in range(len(level.queries)):
            for j in range(n):
                groups[q, j] = level.queries[q, place[j]]
        if len(prior.kind) > 0:
            linear, groups, weights = add_prior(
                prior, children, place, parent, allowed, linear, groups, weights, classes
            )
            classes = np.arange(C)  # each child has weights of its own
        gid, w = np.full(groups.shape, -1, np.int32), np.zeros(weights.shape)
        diag = np.zeros(len(weights))
        kept = merge_queries(groups, weights, gid, w, diag)
        Q = max(kept, 1)
        if kept == 0:
            for j in range(n):
                gid[0, j] = -1
            for k in range(len(w)):
                w[k, 0] = 0.0
        d = sum_hessian_rows(gid, Q, w, diag)
        curvature, heaviest = diag[0], weights[0, 0]
        for k in range(len(diag)):
            curvature = min(curvature, diag[k])
            for q in range(weights.shape[1]):
                heaviest = max(heaviest, weights[k, q])
        weakest = curvature if curvature > 0 else heaviest
        goal = 0.5 * weakest * tolerance * tolerance * 1.0
        X = find_start(linear, allowed, parent, d, by_column[i])
        # The layout of ``problem.Laid``: queries from fine to coarse, four children side by side.
        order, size = sort_queries(gid, Q)
        K = (C + 3) // 4
        queries = (
            np.empty(Q, np.int64),
            np.zeros(Q + 1, np.int64),
            np.empty(Q, np.int64),
            np.empty((Q, n), np.int32),
        )
        fine = np.empty((Q, n), np.int32)
        for q in range(Q):
            for j in range(n):
                fine[q, j] = gid[order[q], j]
        nest_queries(fine, size, queries[0], queries[1], queries[2], queries[3])
        B = np.full((K, 4 * n), -NEVER_COUNT)
        lay_out(linear, allowed, B)
        by_query, diagonal = np.zeros((K, Q, 4)), np.zeros((K, 4))
        for c in range(C):
            diagonal[c // 4, c % 4] = diag[classes[c]]
            for q in range(Q):
                by_query[c // 4, q, c % 4] = w[classes[c], order[q]]
        limit = min(4000, max(100, int(MAX_ADDITIONS / (C * n * 2 * Q))))
        # Round -1 holds nothing; where a sum is then outside its bounds, the others hold it by multipliers.
        violation, spent, gap, multipliers = 0.0, 0, 0.0, False
        bound, lows, highs = np.zeros((0, n), np.int32), np.zeros((0, C, 1)), np.zeros((0, C, 1))
        multiplier, mu, heavy = np.zeros((0, C, 1)), np.zeros(0), d
        for around in range(-1, MAX_ROUNDS):
            if around == 0:
                if violation <= 1e-6:
                    break
                multipliers = True
                bound, lows, highs, multiplier = (
                    find_binding(held, low, high, parent),
                    low,
                    high,
                    np.zeros(low.shape),
                )
                mu, heavy = compute_penalties(bound, low.shape[2], d)
            R, m = len(bound), lows.shape[2]
            into, inverse = np.empty((R, n), np.int32), np.empty(4 * n)
            for j in range(n):
                for r in range(R):
                    into[r, j] = bound[r, j] if bound[r, j] >= 0 else m
                for k in range(4):
                    inverse[4 * j + k] = 1.0 / heavy[j]
            sides = np.zeros((R, K, 4 * m)), np.zeros((R, K, 4 * m)), np.zeros((R, K, 4 * m))
            lay_bounds(lows, sides[0])
            lay_bounds(highs, sides[1])
            lay_bounds(multiplier, sides[2])
            T, result = np.full(B.shape, -NEVER_COUNT), np.empty(B.shape)
            lay_out(X, allowed, T)
            bounds = (into, sides[0], sides[1], sides[2], mu)
            steps = limit if around < 0 else min(limit, 1000)
            more, gap = descend(
                result, T, B, parent, queries, by_query, diagonal, inverse, bounds, curvature, goal, steps
            )
            lay_back(result, X)
            spent += more
            if around < 0:
                violation = measure_violation(X, held, low, high)
            else:
                violation = update_multipliers(X, bound, low, high, multiplier, mu)
                if violation <= 1e-4 and gap <= goal:
                    break
        distance = np.sqrt(2.0 * max(gap, 0.0) / weakest / C) if weakest > 0 else np.inf
        if violation > 5e-3 or (distance > 2 * tolerance and C * n <= MAX_GENERIC_CELLS):
            status[i] = TRY_AGAIN
            continue
        numbers[i, 0], numbers[i, 1], numbers[i, 2] = 1.0, distance, violation
        numbers[i, 3], numbers[i, 4] = spent, 1.0 if multipliers else 0.0
        for c in range(C):
            for j in range(n):
                found[begin[i] + c * n + j] = X[c, j]
    return found, begin, status, numbers
