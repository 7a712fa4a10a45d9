"""Solve many parents of a level in one call of compiled code, and the levels of a tree from the top down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.engine import Progress
from stirred.engine.threads import BranchingTasks
from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.measure import Allotment, ClassicTargets, Targets
from stirred.mechanisms.topdown.rules import Constraints
from stirred.mechanisms.topdown.solve.descent import (
    NEVER_COUNT,
    descend,
    lay_back,
    lay_out,
    merge_queries,
    nest_queries,
)
from stirred.mechanisms.topdown.solve.networks import (
    DONE,
    LEAVES,
    OWN,
    TRY_AGAIN,
    UPPER,
    LevelArrays,
    Terms,
    build_families,
    find_classes,
    find_live,
    gather_terms,
    is_covered,
    pairwise_sum,
    round_batch,
    sort_part,
)
from stirred.mechanisms.topdown.solve.parent import (
    WEIGHTS,
    Certificate,
    LeafPrior,
    SolveGuide,
    add_prior,
    build_no_prior,
    update_multipliers,
)

# Solve parents in compiled code: what ``problem.solve`` does for one parent, for a batch of them, bit for bit.
#
# Sums run in the order of the NumPy path, which stays as the oracle and solves every parent that is refused here
# (``TRY_AGAIN``): because no child may hold a cell, or the solver is stuck.

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


# Solve many parents of a level in one call of compiled code, which holds no lock: threads take batches of parents.
#
# What parents of a level share is laid out once (``LevelSolver``); a batch is limited by the cells of its children,
# and
# so is the memory of every thread. A parent that the kernel refuses is solved by ``Estimator.parent``, from which no
# result differs; so are all parents of a small tree, for which nothing is compiled.

Triples = tuple[Ints, Ints, Ints]
MAX_BATCH_CELLS = 1 << 17  # of all children in a batch: some megabytes
PARENTS_PER_CHUNK = 16  # parents that the general path solves at a time
# geounits from which the kernels are worth compiling: 25 seconds, once, against 2 ms for each parent
MIN_COMPILED_GEOUNITS = 5_000
MIN_BATCHES = 32  # batches of a level at least, where it has so many parents
MAX_TABLED_CELLS = (
    1 << 14
)  # cells of a histogram up to which queries are looked up in tables of all of them, made once


class ParentSolver(Protocol):
    """Protocol of a run's estimator: its data, and its general path, which solves one parent."""

    @property
    def allotment(self) -> Allotment: ...
    @property
    def constraints(self) -> Constraints: ...
    @property
    def targets(self) -> Targets: ...
    @property
    def weights(self) -> dict[tuple[int, int], dict[str, float]]: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def geounits(self) -> int: ...
    @property
    def guide(self) -> SolveGuide | None: ...
    def batchable(self, depth: int) -> bool: ...
    def parent(
        self, depth: int, parent: int, cells: Ints, counts: Ints, certificate: Certificate
    ) -> Triples: ...


@dataclass(frozen=True, slots=True)
class Family:
    """Neighbouring parents, the first of that number, with their histograms (numbered from 0): solved in one call."""

    first: int
    above: Sparse

    @property
    def parents(self) -> range:
        """Return the numbers of the parents."""
        return range(self.first, self.first + len(self.above.first) - 1)

    def part(self, begin: int, end: int) -> "Family":
        """Return the parents from ``begin`` to ``end``, counted from the first."""
        ends = self.above.first[begin : end + 1]
        entries = slice(int(ends[0]), int(ends[-1]))
        return Family(
            self.first + begin, Sparse(ends - ends[0], self.above.cells[entries], self.above.counts[entries])
        )


class LevelSolver:
    """Solves the parents of a level: in compiled batches, or by the general path one by one."""

    def __init__(self, estimator: ParentSolver, depth: int) -> None:
        self.estimator, self.depth = estimator, depth
        spine = estimator.allotment.spine
        many = max(estimator.geounits, sum(map(len, spine.codes))) >= MIN_COMPILED_GEOUNITS
        self.shared = build_shared_arrays(estimator, depth) if many and estimator.batchable(depth) else None

    def solve(self, family: Family) -> tuple[Triples, Certificate]:
        """Solve some parents; return nodes, cells and counts of the children, and the certificate."""
        parents = np.flatnonzero(np.diff(family.above.first) > 0)
        if self.shared is not None:
            arrays = build_family_arrays(self.estimator, self.depth, self.shared, family)
            terms = find_terms(self.estimator, self.depth, arrays.cells)
            return solve_parents(self.estimator, self.depth, family, arrays, terms, parents)
        certificate = Certificate(self.estimator.allotment.spine.levels[self.depth])
        pieces = [self._solve_alone(family, int(p), certificate) for p in parents]
        return concatenate(pieces), certificate

    def _solve_alone(self, family: Family, p: int, certificate: Certificate) -> Triples:
        cells, counts = family.above.at(p)
        return self.estimator.parent(self.depth, family.first + p, cells, counts, certificate)

    def split_families(self, whole: Family, workers: int) -> list[Family]:
        """Split parents into neighbouring parts: limited in size, and enough for the threads.

        The largest come first, because a large one that starts last would leave the other threads without work.
        """
        spine, parents = self.estimator.allotment.spine, len(whole.parents)
        if not parents:
            return []
        # A part of the level gets its share of the tasks that the level is divided into.
        wanted = max(1, -(-MIN_BATCHES * parents // spine.size(self.depth - 1))) if workers > 1 else 1
        children = np.diff(spine.first_child[self.depth - 1][whole.first : whole.first + parents + 1])
        size = np.diff(whole.above.first) * children
        limit = max(1, min(MAX_BATCH_CELLS, int(size.sum()) // wanted))
        if self.shared is None:  # as many parents in each
            size, limit = np.ones_like(size), max(1, min(PARENTS_PER_CHUNK, parents // wanted))
        number = (np.cumsum(size) - size) // limit
        cut = np.r_[0, np.flatnonzero(np.diff(number)) + 1, parents]
        largest = np.argsort(-np.add.reduceat(size, cut[:-1]), kind="stable")
        return [whole.part(int(cut[i]), int(cut[i + 1])) for i in largest.tolist()]


def build_shared_arrays(estimator: ParentSolver, depth: int) -> LevelArrays:
    """Return the arrays of a level that do not depend on the histograms above it."""
    allotment, held = estimator.allotment, estimator.constraints.solve_queries
    spine, queries = allotment.spine, allotment.workload.queries
    nodes = np.arange(spine.size(depth))
    holder, number = allotment.find_holders(depth, nodes)
    start = np.full(len(nodes), -1, np.int64)
    for d in np.unique(holder):
        start[holder == d] = allotment.start[d][number[holder == d]]
    pairs, classes = np.unique(np.stack([start, holder], axis=1), axis=0, return_inverse=True)
    known = [[estimator.weights[int(a), int(d)].get(q.name, 0.0) for q in queries] for a, d in pairs]
    here = [one for one in held if depth < len(one.low)]
    sizes = [one.query.size for one in here]
    none = np.zeros((len(nodes), 0), np.int64)
    nothing, no_groups = np.zeros(0, np.int64), np.zeros((0, 0), np.int32)
    whole = LevelArrays(
        above=nothing,
        place=nothing,
        cells=nothing,
        counts=nothing,
        first_child=make_writable(spine.first_child[depth - 1]),
        queries=no_groups,
        weights=np.array(known, float).reshape(len(pairs), len(queries)),
        classes=make_writable(classes.ravel()),
        held=no_groups,
        begin=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        low=np.concatenate([none, *(one.low[depth] for one in here)], axis=1).astype(np.int64),
        high=np.concatenate([none, *(one.high[depth] for one in here)], axis=1).astype(np.int64),
        whole=np.array([one.whole for one in here], bool),
        nested=sum(not one.whole for one in here) <= 1,
        tolerance=estimator.tolerance,
    )
    size = allotment.workload.histogram.cells
    return add_cells(estimator, depth, whole, np.arange(size)) if size <= MAX_TABLED_CELLS else whole


def add_cells(estimator: ParentSolver, depth: int, level: LevelArrays, cells: Ints) -> LevelArrays:
    """Return the arrays with the groups of these cells in queries and held sums."""
    here = [one for one in estimator.constraints.solve_queries if depth < len(one.low)]
    nothing = np.zeros(len(cells), np.int32)
    return level._replace(
        cells=make_writable(cells),
        queries=np.stack([compact(q.of(cells)) for q in estimator.allotment.workload.queries]),
        held=np.stack([nothing, *(one.query.of(cells).astype(np.int32) for one in here)])[1:],
    )


def build_family_arrays(
    estimator: ParentSolver, depth: int, shared: LevelArrays, family: Family
) -> LevelArrays:
    """Return the arrays of some parents of a level, which are numbered from 0."""
    place = family.above.cells
    if not len(shared.cells):  # of a large histogram only the cells that occur here
        cells, place = np.unique(place, return_inverse=True)
        shared = add_cells(estimator, depth, shared, cells)
    return shared._replace(
        above=make_writable(family.above.first),
        place=make_writable(place.ravel()),
        counts=make_writable(family.above.counts),
        first_child=shared.first_child[family.first : family.parents.stop + 1],
    )


def make_writable(array: Ints) -> Ints:
    """Return the array in the type compiled code knows; a read-only one would be compiled for again."""
    return np.require(array, np.int64, ["C", "W"])


def find_terms(estimator: ParentSolver, depth: int, cells: Ints) -> Terms:
    """Return where the linear terms of a level lie."""
    targets = estimator.targets
    none, no_rows, nowhere = np.zeros(0), np.zeros((0, 0)), np.zeros(0, np.int64)
    rows = np.full((1, 1), -1, np.int64)
    if type(targets) is not TreeEstimate:
        return Terms(OWN, no_rows, nowhere, none, nowhere, rows, nowhere, 1)
    algebra = targets.algebra
    position = algebra.position[cells]
    if depth < len(targets.upper):
        upper = targets.upper[depth]  # a census without areas has none here
        table = upper.reshape(len(upper), int(np.prod(upper.shape[1:])))
        return Terms(UPPER, np.ascontiguousarray(table), position, none, nowhere, rows, nowhere, 1)
    return Terms(
        LEAVES,
        no_rows,
        position,
        targets.flat,
        make_writable(targets.offset),
        targets.rows,
        make_writable(targets.pattern),
        algebra.S,
    )


def solve_parents(
    estimator: ParentSolver, depth: int, family: Family, level: LevelArrays, terms: Terms, parents: Ints
) -> tuple[Triples, Certificate]:
    """Solve those of a family's parents that have records; return their children."""
    drawn, first, by_column = np.zeros(0), np.zeros(len(parents) + 1, np.int64), np.ones(len(parents), bool)
    if terms.kind == OWN:
        drawn, first, by_column = _draw_terms(estimator, depth, level, parents)
    elif terms.kind == UPPER:
        by_column[:] = False
    prior = build_no_prior()
    if estimator.guide is not None and estimator.guide.adds(depth) == WEIGHTS:
        prior = estimator.guide.leaves(level.cells)
        by_column[:] = False  # what is added to lies row by row
    found, begin, status, numbers = solve_batch(level, terms, parents, drawn, first, by_column, prior)
    node, cell, count, ends = round_batch(level, parents, found, begin, status)
    numbers = numbers[status == DONE]  # the others are counted when they are solved
    certificate = Certificate(estimator.allotment.spine.levels[depth])
    certificate.parents = int(numbers[:, 0].sum())
    certificate.distance = float(numbers[:, 1].max(initial=0.0))
    certificate.violation = float(numbers[:, 2].max(initial=0.0))
    certificate.iterations = int(numbers[:, 3].sum())
    certificate.multipliers = int(numbers[:, 4].sum())
    again = np.flatnonzero(status == TRY_AGAIN)
    if not len(again):
        return (node, cell, count), certificate
    pieces: list[Triples] = []
    at = 0
    for i in again.tolist():
        end = int(ends[i])
        pieces.append((node[at:end], cell[at:end], count[at:end]))
        cells, counts = family.above.at(int(parents[i]))
        number = family.first + int(parents[i])
        pieces.append(estimator.parent(depth, number, cells, counts, certificate))
        at = end
    pieces.append((node[at:], cell[at:], count[at:]))
    return concatenate(pieces), certificate


def _draw_terms(
    estimator: ParentSolver, depth: int, level: LevelArrays, parents: Ints
) -> tuple[Floats, Ints, Bools]:
    """Return linear terms that are drawn or computed for each parent."""
    several = np.flatnonzero(np.diff(level.first_child)[parents] > 1)
    parts = []
    for p in parents[several].tolist():
        place = level.place[level.above[p] : level.above[p + 1]]
        parts.append((find_live(level, p)[0], level.cells[place]))
    if isinstance(estimator.targets, ClassicTargets):
        found = estimator.targets.together(depth, parts)
    else:
        found = [estimator.targets.linear(depth, *part) for part in parts]
    by_column, sizes = np.zeros(len(parents), bool), np.zeros(len(parents) + 1, np.int64)
    by_column[several] = [not one.flags.c_contiguous for one in found]
    sizes[several + 1] = [one.size for one in found]
    return np.concatenate([np.zeros(0), *(one.ravel() for one in found)]), np.cumsum(sizes), by_column


def concatenate(pieces: Sequence[Triples]) -> Triples:
    """Join triples one after the other."""
    none = np.zeros(0, np.int64)
    node, cell, count = (np.concatenate([none, *(one[k] for one in pieces)]) for k in range(3))
    return node, cell, count


def join_results(results: Sequence[Triples], first: int, nodes: int) -> Sparse:
    """Return the histograms of neighbouring nodes from ``first`` on; triples are in order already."""
    ordered = sorted((one for one in results if len(one[0])), key=lambda one: int(one[0][0]))
    node, cell, count = concatenate(ordered)
    return Sparse(np.searchsorted(node, np.arange(first, first + nodes + 1)), cell, count)


def compact(index: Ints) -> Groups:
    """Return group numbers as small integers, -1 kept."""
    numbers, place = np.unique(index, return_inverse=True)
    shift = int(len(numbers) > 0 and numbers[0] < 0)
    return (place.ravel() - shift).astype(np.int32)


# Solve the levels of a tree from the top, not one after the other: the children of a family are parents at once.
#
# A large parent takes as long as hundreds of small ones further down, which threads solve meanwhile. What a family's
# result is does not depend on the others, and levels are joined in the order of the spine.

Step = tuple[
    int, Family | None
]  # a depth and its parents; without parents the level is prepared, or the root solved
AFTER_ALL_FAMILIES = 1 << 62  # after every family of a level
Solved = tuple[Sparse, Certificate] | tuple[Triples, Certificate] | None


class TreeSolver(ParentSolver, Protocol):
    """An estimator that also solves the root."""

    def root(self) -> tuple[Sparse, Certificate]: ...


class Cascade:
    """Solves the levels of a tree that are not known yet, down to ``last``.

    ``ready`` returns when the linear terms of a level are there, and may make them; ``finished`` is told each level when
    it is complete.
    """

    def __init__(
        self,
        estimator: TreeSolver,
        levels: Sequence[Sparse],
        last: int,
        *,
        workers: int,
        ready: Callable[[int], None],
        finished: Callable[[int, Sparse, Certificate], None],
        progress: Progress | None = None,
    ) -> None:
        self.estimator, self.last, self.workers = estimator, last, workers
        self.ready, self.finished, self.progress = ready, finished, progress
        self.levels = list(levels)
        self.spine = estimator.allotment.spine
        self.certificates = [Certificate(name) for name in self.spine.levels]
        self.pieces: list[list[Triples]] = [[] for _ in self.spine.levels]
        self.done = np.zeros(len(self.spine.levels), np.int64)
        self.solvers: dict[int, LevelSolver] = {}
        self.prepared = max(0, len(self.levels) - 1)
        self.locks = [Lock() for _ in self.spine.levels]

    def solver(self, depth: int) -> LevelSolver:
        """Return the solver of a level, which is laid out once."""
        with self.locks[depth]:
            if depth not in self.solvers:
                self.solvers[depth] = LevelSolver(self.estimator, depth)
            return self.solvers[depth]

    def step(self, task: Step) -> Solved:
        """Solve a family or the root, or prepare the linear terms and the layout of a level."""
        depth, family = task
        if family is not None:
            self.ready(depth)
            return self.solver(depth).solve(family)
        if depth:
            self.ready(depth)
            for level in range(depth, min(depth + 1, self.last) + 1):
                self.solver(level)
            return None
        self.ready(0)
        return self.estimator.root()

    def run(self) -> list[Sparse]:
        """Return every level, those known first."""
        known = len(self.levels)
        tasks: BranchingTasks[Step, Solved] = BranchingTasks(self.step, self.workers)
        self._prepare(tasks, known + 2)
        if not known:
            self._report_progress(0, 0, 1)
            tasks.add((0, 0), (0, None))
        elif known <= self.last:
            self._add(tasks, known, Family(0, self.levels[-1]))
        for (depth, family), found in tasks:
            if found is None:
                continue
            result, certificate = found
            below = self._keep_result(depth, family, result, certificate)
            if depth < self.last:
                self._add(tasks, depth + 1, below)
        for depth in range(len(self.levels), self.last + 1):  # a census without areas has no parents
            self._complete(depth, join_results([], 0, self.spine.size(depth)))
        return self.levels

    def _add(self, tasks: BranchingTasks[Step, Solved], depth: int, parents: Family) -> None:
        """Add parents to solve; upper levels come first, and in a level the largest parents."""
        if not self.done[depth]:
            self._report_progress(depth, 0, self.spine.size(depth - 1))
        self._prepare(tasks, depth + 2)
        for part in self.solver(depth).split_families(parents, self.workers):
            tasks.add((depth, -len(part.above.cells)), (depth, part))

    def _prepare(self, tasks: BranchingTasks[Step, Solved], depth: int) -> None:
        """Prepare the levels down to ``depth``: not earlier, or a thread would do so while the largest parent waits."""
        for level in range(self.prepared + 1, min(depth, self.last) + 1):
            tasks.add((level - 1, AFTER_ALL_FAMILIES), (level, None))
        self.prepared = max(self.prepared, depth)

    def _keep_result(
        self, depth: int, family: Family | None, result: Sparse | Triples, certificate: Certificate
    ) -> Family:
        """Keep what was solved; the histograms of the children are returned as parents of the next level."""
        if isinstance(result, Sparse):
            self.certificates[0] = certificate
            self._complete(0, result)
            self._report_progress(0, 1, 1)
            return Family(0, result)
        assert family is not None
        self.certificates[depth].join(certificate)
        self.pieces[depth].append(result)
        self.done[depth] += len(family.parents)
        parents = self.spine.size(depth - 1)
        self._report_progress(depth, int(self.done[depth]), parents)
        if self.done[depth] == parents:
            self._complete(depth, join_results(self.pieces[depth], 0, self.spine.size(depth)))
            self.pieces[depth].clear()
        first_child = self.spine.first_child[depth - 1]
        first, last = int(first_child[family.first]), int(first_child[family.parents.stop])
        if depth == self.last:
            return Family(first, Sparse(np.zeros(1, np.int64), *result[1:]))
        return Family(first, join_results([result], first, last - first))

    def _report_progress(self, depth: int, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(self.spine.levels[depth], done, total)

    def _complete(self, depth: int, level: Sparse) -> None:
        self.levels.append(level)
        self.finished(depth, level, self.certificates[depth])
