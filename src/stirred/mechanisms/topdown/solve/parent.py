"""Solve one parent's children: the best non-negative histograms that add up to it, with a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.solve.descent import (
    NEVER_COUNT,
    descend,
    lay_back,
    lay_out,
    merge_queries,
    nest_queries,
)
from stirred.mechanisms.topdown.solve.rounding import FREE, pairwise_sum, sort_part

# The prior knowledge of a parent's leaves as linear terms, queries and weights.
#
# With M the prior mean of a leaf's persons of a kind and V its variance, their sum gets the weight t / V, where t is the
# trust: less where y, the unbiased estimate with variance s², is far from M. Why it is so stands in ``prior``.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]
DEGREES_OF_FREEDOM = 4.0  # of Student's t, by which outliers weigh less
SCATTER_FACTOR = 4.0  # κ: the variance of a leaf's persons is at least so many times their mean
MIN_VARIANCE_PERSONS = 0.02  # no variance is below this, in persons
SPREAD_WEIGHT = 1_000.0  # of the whole tree's β in that of one parent; a leaf's is at most 1/β²
SPREAD_BOUNDS = 0.0025, 10.0  # of one parent's β


class LeafPrior(NamedTuple):
    """Prior knowledge of all leaves, by kind of their units, and the kind of each cell."""

    units: Ints  # leaves × kinds
    persons: Floats  # leaves × kinds: unbiased estimates
    variance: Floats  # leaves × kinds: of these estimates
    totals: Floats  # β by kind in the whole tree: their variance beyond κM is so many times M²
    kind: Ints  # of each cell, -1 outside


def build_no_prior() -> LeafPrior:
    """Return a prior that knows nothing of any cell."""
    none = np.zeros(0)
    table = np.zeros((0, 0))
    return LeafPrior(np.zeros((0, 0), np.int64), table, table, none, np.zeros(0, np.int64))


@compile_kernel
def estimate_spread(prior: LeafPrior, children: Ints, kind: int, total: float, units: int) -> float:
    """Return β of one parent's leaves, from their noisy numbers and that of the whole tree.

    Where homes stand empty in some blocks of a block group, all its blocks are drawn less to their prior means.
    """
    over, under = SPREAD_WEIGHT * prior.totals[kind], SPREAD_WEIGHT
    for c in range(len(children)):
        own = prior.units[children[c], kind]
        if own == 0 or own == units:
            continue
        mean, noise = total * np.float64(own) / np.float64(units), prior.variance[children[c], kind]
        apart = prior.persons[children[c], kind] - mean
        weight = mean / (noise + mean + prior.totals[kind] * (mean * mean))
        over += weight * weight * (apart * apart - noise - mean)
        under += weight * weight * (mean * mean)
    return float(min(max(over / under, SPREAD_BOUNDS[0]), SPREAD_BOUNDS[1]))


@compile_kernel
def add_prior(
    prior: LeafPrior, children: Ints, place: Ints, parent: Floats, allowed: Bools, linear: Floats, groups: Groups,
    weights: Floats, classes: Ints,
) -> tuple[Floats, Groups, Floats]:  # fmt: skip
    """Return linear terms, queries and each child's weights, with the persons of each kind at the end.

    ``place`` says where in ``prior.kind`` the parent's cells are.
    """
    C, n = linear.shape
    Q, kinds = len(groups), prior.units.shape[1]
    kind, row, total, rows = np.empty(n, np.int64), np.full(kinds, -1, np.int64), np.zeros(kinds), Q
    for j in range(n):
        a = prior.kind[place[j]]
        kind[j] = a
        if a >= 0:
            total[a] += parent[j]
            row[a] = 0
    for a in range(kinds):  # in the order of kinds, whatever the order of cells
        if row[a] == 0:
            row[a] = rows
            rows += 1
    terms, queries, own = linear.copy(), np.full((rows, n), -1, np.int32), np.zeros((C, rows))
    queries[:Q] = groups
    for j in range(n):
        if kind[j] >= 0:
            queries[row[kind[j]], j] = 0
    for c in range(C):
        for q in range(Q):
            own[c, q] = weights[classes[c], q]
    for a in range(kinds):
        units = 0
        for c in range(C):
            units += prior.units[children[c], a]
        if row[a] < 0 or units == 0:
            continue
        spread = estimate_spread(prior, children, a, total[a], units)
        for c in range(C):
            mean = total[a] * np.float64(prior.units[children[c], a]) / np.float64(units)
            if mean <= 0.0:
                continue
            variance = max(SCATTER_FACTOR * mean + spread * (mean * mean), MIN_VARIANCE_PERSONS)
            apart = prior.persons[children[c], a] - mean
            odd = apart * apart / (variance + prior.variance[children[c], a])
            trust = min(1.0, (DEGREES_OF_FREEDOM + 1.0) / (DEGREES_OF_FREEDOM + odd))
            own[c, row[a]] = trust / variance
            for j in range(n):
                if kind[j] == a and allowed[c, j]:
                    terms[c, j] += own[c, row[a]] * mean
    return terms, queries, own


# Solve one parent's children: the best non-negative histograms that add up to it, with a certificate of optimality.
#
# The problem is reduced to the parent's positive cells (elsewhere every child is zero), queries that coincide there are
# merged, and ``descend`` does the rest. Sums of cells that must lie between bounds (a fixed total, persons by
# facilities) enter by an augmented Lagrangian. This is the only solver of parents: a batch calls it for each of its
# parents, and a parent that is solved by itself is a batch of one. What it cannot hold goes to ``crossing``.

MIN_LARGE_CELLS = 4_000  # cells
MAX_ADDITIONS = 8e9  # additions of one parent
MAX_STEPS, MAX_HELD_STEPS, MAX_ROUNDS = (
    4_000,
    1_000,
    60,
)  # products with H, of a round with multipliers; such rounds
MAX_CROWDED_STEPS, MAX_CROWDED_ROUNDS = 60, 20
NOTHING, WEIGHTS, SUMS = "nothing", "weights", "sums"  # that a guide adds to a problem
CROWDED_SUMS_PER_CHILD = (
    64  # with this many held sums per child the unconstrained optimum is not a useful start
)


@dataclass(frozen=True, slots=True)
class HeldSums:
    """Sums of cells that must lie between bounds in each child: a partition of the cells and its limits."""

    groups: Groups  # cell → group, -1 outside
    low: Floats  # child × group
    high: Floats


class ParentProblem(NamedTuple):
    """Children of one parent on the parent's positive cells, in the arrays that compiled code takes.

    ``linear`` is $b_c = \\sum_q w_q A_q' y_{cq}$; ``groups`` has one row per query with the answer each cell counts in;
    ``weights`` one row per weight class (children whose geounits spend differently), ``classes`` the class of each child.
    """

    parent: Floats
    linear: Floats
    allowed: Bools
    groups: Groups
    weights: Floats
    classes: Ints
    held: Groups  # families of held sums × cells: the sum that each cell counts in, -1 outside
    low: Floats  # families × children × sums; free where a family has fewer
    high: Floats
    start: Floats  # where the search begins; of no length: at the measurement
    aims: Groups  # a partition of the cells whose sums the rounding keeps where it can; of no length: none
    by_column: bool  # whether the linear terms of a cell are added as those of a column
    crowded: bool  # so many sums are held that the solve need only be as exact as the rounding after it


def build_problem(
    parent: Floats,
    linear: Floats,
    allowed: Bools,
    groups: Groups,
    weights: Floats,
    classes: NDArray[np.integer],
    held: Sequence[HeldSums] = (),
) -> ParentProblem:
    """Return the problem of a parent, with its sums held."""
    sums, low, high = stack_sums(held, *linear.shape)
    return ParentProblem(
        parent=np.require(parent, np.float64, ["C", "W"]),
        linear=np.require(linear, np.float64, ["C", "W"]),
        allowed=np.require(allowed, np.bool_, ["C", "W"]),
        groups=np.require(groups, np.int32, ["C", "W"]),
        weights=np.require(weights, np.float64, ["C", "W"]),
        classes=np.require(classes, np.int64, ["C", "W"]),
        held=sums,
        low=low,
        high=high,
        start=np.zeros((0, 0)),
        aims=np.zeros(0, np.int32),
        by_column=not linear.flags.c_contiguous,
        crowded=False,
    )


def stack_sums(held: Sequence[HeldSums], children: int, cells: int) -> tuple[Groups, Floats, Floats]:
    """Return families of held sums as three arrays: groups, lower and upper bounds."""
    size = max((one.low.shape[1] for one in held), default=1)
    groups = np.full((len(held), cells), -1, np.int32)
    low, high = np.full((len(held), children, size), -FREE), np.full((len(held), children, size), FREE)
    for r, one in enumerate(held):
        groups[r] = one.groups
        low[r, :, : one.low.shape[1]], high[r, :, : one.low.shape[1]] = one.low, one.high
    return groups, low, high


def list_sums(problem: ParentProblem) -> tuple[HeldSums, ...]:
    """Return the families of held sums of a problem one by one."""
    sizes = [int(groups.max(initial=-1)) + 1 for groups in problem.held]
    families = zip(problem.held, problem.low, problem.high, sizes, strict=True)
    return tuple(HeldSums(groups, low[:, :size], high[:, :size]) for groups, low, high, size in families)


def hold_more(problem: ParentProblem, held: Sequence[HeldSums]) -> ParentProblem:
    """Return the problem with more sums held."""
    groups, low, high = stack_sums((*list_sums(problem), *held), *problem.linear.shape)
    return problem._replace(held=groups, low=low, high=high)


class SolveGuide(Protocol):
    """Protocol of what a solve knows besides measurements: sums held first, or a prior of the children."""

    def adds(self, depth: int) -> str:
        """Return what the guide adds to a level: NOTHING, WEIGHTS (more queries of the same kind) or SUMS."""
        ...

    def hold_sums(self, depth: int, children: Ints, cells: Ints, problem: ParentProblem) -> ParentProblem:
        """Return the problem with the SUMS of its level held."""
        ...

    def leaves(self, cells: Ints) -> LeafPrior:
        """Return the added WEIGHTS as arrays for compiled code, with the kind of each of the cells."""
        ...

    def root(self, cells: Ints, total: float | None) -> tuple[Groups, Floats] | None: ...


@dataclass(frozen=True, slots=True)
class Solution:
    """Fractional histograms with the certified gap, the largest violation of a held sum, and how it was found."""

    x: Floats
    gap: float
    violation: float
    iterations: int
    method: str = "fista"
    distance: float = field(default=0.0)  # a bound on the root mean square distance to the optimum per child


def merge_equal_queries(groups: Groups, weights: Floats) -> tuple[Groups, Floats, Floats]:
    """Merge queries that are the same on these cells; those that keep every cell become a diagonal.

    >>> g, w, d = merge_equal_queries(np.array([[0, 0], [1, 1], [0, 1]], np.int32), np.array([[1.0, 2.0, 4.0]]))
    >>> g.tolist(), w.tolist(), d.tolist()
    ([[0, 0]], [[3.0]], [4.0])
    """
    gid, w, diagonal = np.full(groups.shape, -1, np.int32), np.zeros(weights.shape), np.zeros(len(weights))
    kept = merge_queries(np.ascontiguousarray(groups), np.ascontiguousarray(weights), gid, w, diagonal)
    if not kept:
        return np.full((1, groups.shape[1]), -1, np.int32), np.zeros((len(weights), 1)), diagonal
    return gid[:kept], w[:, :kept], diagonal


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
    """Return the starting point: the measurement divided by the metric; a projection makes it feasible.

    ``by_column`` says in which order the linear terms of a cell are added.
    """
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
                if groups[r, j] >= 0:
                    sums[groups[r, j]] += X[c, j]
            for a in range(low.shape[2]):
                furthest = max(furthest, low[r, c, a] - sums[a], sums[a] - high[r, c, a])
    return furthest


@compile_kernel
def find_binding(groups: Groups, low: Floats, high: Floats, parent: Floats) -> Groups:
    """Return only the groups whose bounds can be active: the others would slow the solver down."""
    R, C, m = low.shape
    result = np.empty(groups.shape, np.int32)
    sums, matters = np.empty(m), np.empty(m, np.bool_)
    for r in range(R):
        for a in range(m):
            sums[a], matters[a] = 0.0, False
        for j in range(groups.shape[1]):
            if groups[r, j] >= 0:
                sums[groups[r, j]] += parent[j]
        for c in range(C):
            for a in range(m):
                matters[a] |= low[r, c, a] > 0.0 or high[r, c, a] < sums[a]
        for j in range(groups.shape[1]):
            result[r, j] = groups[r, j] if groups[r, j] >= 0 and matters[groups[r, j]] else -1
    return result


@compile_kernel
def compute_penalties(held: Groups, m: int, d: Floats) -> tuple[Floats, Floats]:
    """Return the penalty of each family of held sums, and the metric with all of them.

    A penalty is as stiff as the data along the same direction: a few rounds are enough and conditioning stays good.
    """
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
def update_multipliers(
    X: Floats, held: NDArray[np.int32], low: Floats, high: Floats, multiplier: Floats, mu: Floats
) -> float:
    """Update the multipliers of the held sums by one step; return the largest violation."""
    C, n = X.shape
    worst = 0.0
    m = low.shape[2]
    s = np.zeros(m)
    for r in range(held.shape[0]):
        for c in range(C):
            s[:] = 0.0
            for j in range(n):
                if held[r, j] >= 0:
                    s[held[r, j]] += X[c, j]
            for a in range(m):
                worst = max(worst, low[r, c, a] - s[a], s[a] - high[r, c, a])
                z = s[a] + multiplier[r, c, a] / mu[r]
                nearest = min(max(z, low[r, c, a]), high[r, c, a])
                multiplier[r, c, a] = mu[r] * (z - nearest)
    return worst


@compile_kernel
def solve_problem(
    problem: ParentProblem, tolerance: float, most: int
) -> tuple[Floats, float, float, int, bool, float]:
    """Return the optimum to within ``tolerance`` persons, certified, after at most ``most`` products with H.

    Comes back with the gap, the largest violation of a held sum, the products, whether multipliers held a sum, and the
    bound on the distance per child. The tolerance is Euclidean over all cells and children.
    """
    parent, linear, allowed, groups = problem.parent, problem.linear, problem.allowed, problem.groups
    weights, classes, crowded = problem.weights, problem.classes, problem.crowded
    C, n = linear.shape
    gid, w, diag = np.full(groups.shape, -1, np.int32), np.zeros(weights.shape), np.zeros(len(weights))
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
    # Beyond some thousand cells the tolerance is per child and cell: a joint tolerance for 50,000 cells is not needed.
    goal = 0.5 * weakest * tolerance * tolerance * (C * n / 400.0 if n > MIN_LARGE_CELLS else 1.0)
    begun = len(problem.start) > 0
    X = problem.start.copy() if begun else find_start(linear, allowed, parent, d, problem.by_column)
    # The layout of ``descend``: queries from fine to coarse, four children side by side; padded children weigh nothing.
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
    # Work, not time, limits the largest problems, so that the result does not depend on the machine.
    limit = min(most, max(100, int(MAX_ADDITIONS / (C * n * 2 * Q))))
    # Round -1 holds nothing; where a sum is then outside its bounds, the others hold it by multipliers.
    violation, spent, gap, multipliers = 0.0, 0, 0.0, False
    bound, lows, highs = np.zeros((0, n), np.int32), np.zeros((0, C, 1)), np.zeros((0, C, 1))
    multiplier, mu, heavy = np.zeros((0, C, 1)), np.zeros(0), d
    for around in range(-1, MAX_CROWDED_ROUNDS if crowded else MAX_ROUNDS):
        steps = limit
        if around < 0 and crowded:
            steps = 0
        elif around >= 0:
            steps = MAX_CROWDED_STEPS if crowded else min(limit, MAX_HELD_STEPS)
        if around == 0:
            if violation <= 1e-6 and not crowded:
                break
            multipliers = True
            bound, lows, highs = (
                find_binding(problem.held, problem.low, problem.high, parent),
                problem.low,
                problem.high,
            )
            multiplier = np.zeros(lows.shape)
            mu, heavy = compute_penalties(bound, lows.shape[2], d)
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
        more, gap = descend(
            result, T, B, parent, queries, by_query, diagonal, inverse, bounds, curvature, goal, steps
        )
        lay_back(result, X)
        spent += more
        if around < 0:
            violation = measure_violation(X, problem.held, problem.low, problem.high)
        else:
            violation = update_multipliers(X, bound, lows, highs, multiplier, mu)
            if violation <= 1e-4 and gap <= goal:
                break
    distance = np.sqrt(2.0 * max(gap, 0.0) / weakest / C) if weakest > 0 else np.inf
    return X, gap, violation, spent, multipliers, distance


def solve(problem: ParentProblem, *, tolerance: float = 2e-3, limit: int = MAX_STEPS) -> Solution:
    """Return the optimum of one parent to within ``tolerance`` persons, certified."""
    x, gap, violation, spent, multipliers, distance = solve_problem(problem, tolerance, limit)
    return Solution(x, gap, violation, spent, "fista + multipliers" if multipliers else "fista", distance)


@dataclass(slots=True)
class Certificate:
    """The solves of one level: the worst certified distance, the worst violation, how often each method ran."""

    level: str
    parents: int = 0
    distance: float = 0.0
    violation: float = 0.0
    iterations: int = 0
    multipliers: int = 0
    generic: int = 0

    def add(self, solution: Solution) -> None:
        """Count one parent."""
        self.parents += 1
        self.distance = max(self.distance, solution.distance)
        self.violation = max(self.violation, solution.violation)
        self.iterations += solution.iterations
        self.multipliers += solution.method.endswith("multipliers")
        self.generic += solution.method == "piqp"

    def join(self, other: "Certificate") -> None:
        """Add another part of the same level."""
        self.parents += other.parents
        self.distance = max(self.distance, other.distance)
        self.violation = max(self.violation, other.violation)
        self.iterations += other.iterations
        self.multipliers += other.multipliers
        self.generic += other.generic
