"""Solve one parent's children: the best non-negative histograms that add up to it, with a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.solve.descent import (
    NEVER_COUNT,
    Bounds,
    Nesting,
    descend,
    lay_back,
    lay_out,
    merge_queries,
    nest_queries,
)
from stirred.mechanisms.topdown.solve.networks import pairwise_sum

# The prior knowledge of a parent's leaves as linear terms, queries and weights: one kernel, for batches and alone.
#
# With M the prior mean of a leaf's persons of a kind, $V = M + \beta M^2$ its variance, y the unbiased estimate with
# variance s² and t the trust, T is $M + V / (V + t s^2) (y - M)$, and no less than a part of M. The leaf's share p of
# all T gives the cell with the parent's count x the mean $p x$ and the variance $\varphi p x$. Cells of about the
# same
# count share one weight, because each weight is one more query of the solve. Why it is so stands in ``guide.prior``.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]
DEGREES_OF_FREEDOM = 4.0  # of Student's t, by which outliers weigh less
WEIGHT_STEP_FACTOR = 2.5  # cells whose parent's counts differ by less than this factor share one weight
MIN_VARIANCE_PERSONS = 0.02  # no variance of a cell is below this, in persons
MIN_SHARE_RATIO = 0.1  # no share is below this part of the share by units


class LeafPrior(NamedTuple):
    """Prior knowledge of all leaves, by kind of their units, and the kind of each cell."""

    units: Ints  # leaves × kinds
    persons: Floats  # leaves × kinds: unbiased estimates
    variance: Floats  # leaves × kinds: of these estimates
    cells: Floats  # φ by kind: the variance of a cell is so many times its mean
    totals: (
        Floats  # β by kind: the variance of a leaf's persons beyond their mean is so many times its square
    )
    kind: Ints  # of each cell, -1 outside


def build_no_prior() -> LeafPrior:
    """Return a prior that knows nothing of any cell."""
    none = np.zeros(0)
    table = np.zeros((0, 0))
    return LeafPrior(np.zeros((0, 0), np.int64), table, table, none, none, np.zeros(0, np.int64))


@compile_kernel
def compute_leaf_shares(prior: LeafPrior, children: Ints, a: int, total: float) -> Floats:
    """Return prior means, variances, shares and trust of the leaves' persons of a kind."""
    C = len(children)
    found, units = np.zeros((4, C)), 0
    means, variances, shares, trust = found[0], found[1], found[2], found[3]
    for c in range(C):
        units += prior.units[children[c], a]
    if units == 0 or total == 0.0:
        return found
    for c in range(C):
        mean = total * np.float64(prior.units[children[c], a]) / np.float64(units)
        variance, noise = mean + prior.totals[a] * (mean * mean), prior.variance[children[c], a]
        apart = prior.persons[children[c], a] - mean
        odd = apart * apart / max(variance + noise, MIN_VARIANCE_PERSONS)
        means[c], variances[c], trust[c] = (
            mean,
            variance,
            min(1.0, (DEGREES_OF_FREEDOM + 1.0) / (DEGREES_OF_FREEDOM + odd)),
        )
        gain = variance / max(variance + trust[c] * noise, MIN_VARIANCE_PERSONS) if mean > 0.0 else 0.0
        shares[c] = max(mean + gain * apart, MIN_SHARE_RATIO * mean)
    whole = pairwise_sum(shares, C)
    for c in range(C):
        shares[c] /= whole
    return found


@compile_kernel
def add_prior(
    prior: LeafPrior, children: Ints, place: Ints, parent: Floats, allowed: Bools, linear: Floats, groups: Groups,
    weights: Floats, classes: Ints,
) -> tuple[Floats, Groups, Floats]:  # fmt: skip
    """Return linear terms, queries and each child's weights, with those of the prior at the end.

    ``place`` says where in ``prior.kind`` the parent's cells are.
    """
    C, n = linear.shape
    Q, kinds = len(groups), prior.units.shape[1]
    size, kind, logarithm, top = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n), 0
    for j in range(n):
        kind[j], logarithm[j] = prior.kind[place[j]], np.log(max(parent[j], 1.0))
        size[j] = np.int64(np.floor(logarithm[j] / np.log(WEIGHT_STEP_FACTOR)))
        top = max(top, size[j])
    # Queries of the prior: for each kind that occurs its cells by size, then its total.
    row = np.full((kinds, top + 2), -1, np.int64)
    for j in range(n):
        if kind[j] >= 0:
            row[kind[j], size[j]] = row[kind[j], top + 1] = 0
    rows = Q
    for a in range(kinds):
        for s in range(top + 2):
            if row[a, s] == 0:
                row[a, s] = rows
                rows += 1
    terms, queries, own = np.empty((C, n)), np.empty((rows, n), np.int32), np.zeros((C, rows))
    for q in range(rows):
        for j in range(n):
            queries[q, j] = groups[q, j] if q < Q else -1
    for c in range(C):
        for q in range(Q):
            own[c, q] = weights[classes[c], q]
        for j in range(n):
            terms[c, j] = linear[c, j]
    few, at = np.empty(n), np.empty(n, np.int64)
    for a in range(kinds):
        if row[a, top + 1] < 0:
            continue
        total = 0.0
        for j in range(n):
            if kind[j] == a:
                total += parent[j]
        phi, known = prior.cells[a], compute_leaf_shares(prior, children, a, total)
        means, variances, shares, trust = known[0], known[1], known[2], known[3]
        for s in range(top + 1):
            q = row[a, s]
            if q < 0:
                continue
            many = 0
            for j in range(n):
                if kind[j] == a and size[j] == s:
                    few[many], at[many], queries[q, j] = logarithm[j], j, many
                    many += 1
            middle = np.exp(pairwise_sum(few, many) / many)
            for c in range(C):
                if shares[c] > 0.0:
                    own[c, q] = trust[c] / max(phi * middle * shares[c], MIN_VARIANCE_PERSONS)
                    for k in range(many):
                        if allowed[c, at[k]]:
                            terms[c, at[k]] += own[c, q] * shares[c] * parent[at[k]]
        q = row[a, top + 1]
        for j in range(n):
            if kind[j] == a:
                queries[q, j] = 0
        for c in range(C):
            if means[c] > 0.0:
                # Independent cells already say that the total has variance φM; where it is known better, that is added.
                own[c, q] = max(
                    trust[c] / max(variances[c], MIN_VARIANCE_PERSONS)
                    - trust[c] / max(phi * means[c], MIN_VARIANCE_PERSONS),
                    0.0,
                )
                for j in range(n):
                    if kind[j] == a and allowed[c, j]:
                        terms[c, j] += own[c, q] * means[c]
    return terms, queries, own


# Solve one parent's children: the best non-negative histograms that add up to it, with a certificate of optimality.
#
# The problem is reduced to the parent's positive cells (elsewhere every child is zero), queries that coincide there
# are
# merged, and the compiled solver of ``descend`` does the rest. Sums of cells that must lie between bounds (a fixed
# total, persons by facilities) enter by an augmented Lagrangian; ``generic`` holds the slow, independent path.

FREE = 1e300
MIN_LARGE_CELLS = 4_000  # cells
MAX_ADDITIONS = 8e9  # additions of one parent
NOTHING, WEIGHTS, SUMS = "nothing", "weights", "sums"  # that a guide adds to a problem
CROWDED_SUMS_PER_CHILD = (
    64  # with this many held sums per child the unconstrained optimum is not a useful start
)


@dataclass(frozen=True, slots=True)
class HeldSums:
    """Sums of cells that must lie between bounds in each child: a partition of the cells and its limits."""

    groups: NDArray[np.int32]  # cell → group, -1 outside
    low: Floats  # child × group
    high: Floats


@dataclass(frozen=True, slots=True)
class ParentProblem:
    """Children of one parent, on the parent's positive cells.

    ``linear`` is $b_c = \\sum_q w_q A_q' y_{cq}$; ``groups`` has one row per query with the answer each cell counts in;
    ``weights`` one row per weight class (children whose geounits spend differently), ``classes`` the class of each child.
    """

    parent: Floats
    linear: Floats
    allowed: NDArray[np.bool_]
    groups: NDArray[np.int32]
    weights: Floats
    classes: NDArray[np.int32]
    held: tuple[HeldSums, ...] = ()
    start: Floats | None = None
    crowded: bool = (
        False  # so many sums are held that the solve need only be as exact as the rounding after it
    )
    aims: NDArray[np.int32] | None = (
        None  # a partition of the cells whose sums the rounding keeps where it can
    )


class SolveGuide(Protocol):
    """Protocol of what a solve knows besides measurements: sums held first, or a prior of the children."""

    def adds(self, depth: int) -> str:
        """Return what the guide adds to a level: NOTHING, WEIGHTS (more queries of the same kind) or SUMS."""
        ...

    def shape_problem(
        self, depth: int, children: NDArray[np.int64], cells: NDArray[np.int64], problem: ParentProblem
    ) -> ParentProblem: ...

    def leaves(self, cells: NDArray[np.int64]) -> LeafPrior:
        """Return the added WEIGHTS as arrays for compiled code, with the kind of each of the cells."""
        ...

    def root(
        self, cells: NDArray[np.int64], total: float | None
    ) -> tuple[NDArray[np.int32], Floats] | None: ...


@dataclass(frozen=True, slots=True)
class Solution:
    """Fractional histograms with the certified gap, the largest violation of a held sum, and how it was found."""

    x: Floats
    gap: float
    violation: float
    iterations: int
    method: str = "fista"
    distance: float = field(default=0.0)  # a bound on the root mean square distance to the optimum per child


def merge_equal_queries(
    groups: NDArray[np.int32], weights: Floats
) -> tuple[NDArray[np.int32], Floats, Floats]:
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


def sum_hessian_rows(groups: NDArray[np.int32], weights: Floats, diagonal: Floats) -> Floats:
    """Return the row sums of the Hessian, largest over classes: a diagonal that dominates it."""
    n = groups.shape[1]
    d = np.tile(diagonal[:, None], (1, n))
    for q, row in enumerate(groups):
        inside = row >= 0
        size = np.bincount(row[inside], minlength=1)
        d[:, inside] += weights[:, q, None] * size[row[inside]]
    result: Floats = d.max(axis=0)
    return result


@dataclass(frozen=True, slots=True)
class ProblemLayout:
    """A problem in the memory layout of the compiled solver."""

    linear: Floats
    queries: Nesting
    weights: Floats
    diagonal: Floats
    curvature: float  # the least one in any direction

    @staticmethod
    def out(problem: ParentProblem, gid: NDArray[np.int32], w: Floats, diag: Floats) -> "ProblemLayout":
        """Lay a problem out, its queries from fine to coarse."""
        C, n = problem.linear.shape
        size = gid.max(axis=1).astype(np.int64) + 1
        order = np.argsort(-size, kind="stable")
        Q, K = len(gid), (C + 3) // 4
        queries = (
            np.empty(Q, np.int64),
            np.zeros(Q + 1, np.int64),
            np.empty(Q, np.int64),
            np.empty((Q, n), np.int32),
        )
        nest_queries(gid[order], size[order], *queries)
        linear = np.full((K, 4 * n), -NEVER_COUNT)
        lay_out(problem.linear, problem.allowed, linear)
        # Padded children weigh nothing and hold nothing.
        weights, diagonal = np.zeros((4 * K, Q)), np.zeros(4 * K)
        weights[:C], diagonal[:C] = w[problem.classes][:, order], diag[problem.classes]
        by_query = np.ascontiguousarray(weights.reshape(K, 4, Q).transpose(0, 2, 1))
        return ProblemLayout(linear, queries, by_query, diagonal.reshape(K, 4), float(diag.min()))

    def descend(
        self, problem: ParentProblem, X: Floats, d: Floats, bounds: Bounds, goal: float, limit: int
    ) -> tuple[int, float]:
        """Minimise in place from X, with held sums in ``bounds``; return products with H, and the gap."""
        into, *sides, mu = bounds
        m = sides[0].shape[2]
        held = np.where(into < 0, m, into).astype(np.int32)
        laid = [np.zeros((len(into), len(self.linear), 4 * m)) for _ in sides]
        for side, out in zip(sides, laid, strict=True):
            for r in range(len(into)):
                lay_out(side[r], np.ones(side[r].shape, bool), out[r])
        start, result = np.full(self.linear.shape, -NEVER_COUNT), np.empty(self.linear.shape)
        lay_out(X, problem.allowed, start)
        spent, gap = descend(
            result, start, self.linear, problem.parent, self.queries, self.weights, self.diagonal, np.repeat(1.0 / d, 4),
            (held, laid[0], laid[1], laid[2], mu), self.curvature, goal, limit,
        )  # fmt: skip
        lay_back(result, X)
        return spent, gap


def solve(
    problem: ParentProblem, *, tolerance: float = 2e-3, limit: int = 4000, rounds: int = 60
) -> Solution:
    """Return the optimum to within ``tolerance`` persons, certified.

    The distance is Euclidean over all cells and children.
    """
    C, n = problem.linear.shape
    gid, w, diag = merge_equal_queries(problem.groups, problem.weights)
    d = sum_hessian_rows(gid, w, diag)
    weakest = float(diag.min()) if diag.min() > 0 else float(problem.weights.max())
    # Beyond some thousand cells the tolerance is per child and cell: a joint tolerance for 50,000 cells is not needed.
    goal = 0.5 * weakest * tolerance * tolerance * (C * n / 400.0 if n > MIN_LARGE_CELLS else 1.0)
    X = _find_start(problem, d) if problem.start is None else problem.start.copy()
    laid = ProblemLayout.out(problem, gid, w, diag)
    # Work, not time, limits the largest problems, so that the result does not depend on the machine.
    limit = min(limit, max(100, int(MAX_ADDITIONS / (X.size * 2 * len(gid)))))
    crowded = problem.crowded
    nothing = (
        np.zeros((0, n), np.int32),
        np.zeros((0, C, 1)),
        np.zeros((0, C, 1)),
        np.zeros((0, C, 1)),
        np.zeros(0),
    )
    iterations, gap = laid.descend(problem, X, d, nothing, goal, 0 if crowded else limit)
    violation = measure_violation(X, problem.held)
    method = "fista"
    if violation > 1e-6 or crowded:
        method = "fista + multipliers"
        held, low, high, mu = _stack_held(
            [_find_binding(one, problem.parent) for one in problem.held], C, n, d
        )
        multiplier = np.zeros_like(low)
        heavy = d.copy()
        for r in range(len(held)):
            inside = held[r] >= 0
            heavy[inside] += mu[r] * np.bincount(held[r][inside], minlength=1)[held[r][inside]]
        for _ in range(min(rounds, 20) if crowded else rounds):
            steps = 60 if crowded else min(limit, 1000)
            more, gap = laid.descend(problem, X, heavy, (held, low, high, multiplier, mu), goal, steps)
            iterations += more
            violation = update_multipliers(X, held, low, high, multiplier, mu)
            if violation <= 1e-4 and gap <= goal:
                break
    return Solution(
        x=X,
        gap=float(gap),
        violation=float(violation),
        iterations=int(iterations),
        method=method,
        distance=float(np.sqrt(2.0 * max(gap, 0.0) / weakest / C)) if weakest > 0 else np.inf,
    )


def measure_violation(X: Floats, held: Sequence[HeldSums]) -> float:
    """Return how far the furthest held sum is outside its bounds."""
    worst = 0.0
    for one in held:
        sums = sum_held(X, one)
        worst = max(
            worst, float((one.low - sums).max(initial=0.0)), float((sums - one.high).max(initial=0.0))
        )
    return worst


def sum_held(X: Floats, held: HeldSums) -> Floats:
    """Return the held sums of each child."""
    sums = np.zeros(held.low.shape)
    inside = np.flatnonzero(held.groups >= 0)
    for j in inside:
        sums[:, held.groups[j]] += X[:, j]
    return sums


def _find_binding(held: HeldSums, parent: Floats) -> HeldSums:
    """Return only the groups whose bounds can be active: the others would slow the solver down."""
    inside = held.groups >= 0
    sums = np.bincount(held.groups[inside], parent[inside], minlength=held.low.shape[1])
    matters = np.asarray((held.low > 0).any(axis=0) | (held.high < sums).any(axis=0))
    return HeldSums(
        np.where(inside & matters[held.groups], held.groups, -1).astype(np.int32), held.low, held.high
    )


def _find_start(problem: ParentProblem, d: Floats) -> Floats:
    """Return the starting point: the measurement divided by the metric; a projection makes it feasible."""
    shares = problem.allowed / np.maximum(problem.allowed.sum(axis=0), 1)
    result: Floats = shares * problem.parent + (problem.linear - problem.linear.mean(axis=0)) / d
    return result


def _stack_held(
    held: Sequence[HeldSums], C: int, n: int, d: Floats
) -> tuple[NDArray[np.int32], Floats, Floats, Floats]:
    size = max(one.low.shape[1] for one in held)
    groups = np.full((len(held), n), -1, np.int32)
    low = np.full((len(held), C, size), -FREE)
    high = np.full((len(held), C, size), FREE)
    mu = np.empty(len(held))
    for r, one in enumerate(held):
        groups[r] = one.groups
        low[r, :, : one.low.shape[1]] = one.low
        high[r, :, : one.high.shape[1]] = one.high
        # As stiff as the data along the same direction: a few rounds are enough and conditioning stays good.
        inside = one.groups >= 0
        if not inside.any():
            mu[r] = 1.0
            continue
        mu[r] = float(np.median(d[inside])) / max(1.0, float(np.bincount(one.groups[inside]).max())) * 4.0
    return groups, low, high, mu


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
