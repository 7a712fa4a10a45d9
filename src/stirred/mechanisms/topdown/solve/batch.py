"""Solve many parents of a level in one call of compiled code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.measure import Allotment, ClassicTargets, Targets
from stirred.mechanisms.topdown.rules import Constraints
from stirred.mechanisms.topdown.solve.parent import (
    MAX_STEPS,
    MIN_LARGE_CELLS,
    WEIGHTS,
    Certificate,
    LeafPrior,
    ParentProblem,
    SolveGuide,
    add_prior,
    build_no_prior,
    solve_problem,
)
from stirred.mechanisms.topdown.solve.rounding import FREE, KeptSums, round_children

# The arrays that all parents of a level share, and how compiled code looks things up in them.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]
OWN, UPPER, LEAVES = (
    0,
    1,
    2,
)  # where linear terms come from: arrays of the batch, a level of the estimate, its leaves


class LevelArrays(NamedTuple):
    """Arrays that all parents of a level share; cells are numbered among those of the level above."""

    above: Ints  # where each parent's cells begin
    place: Ints  # number of each cell
    cells: Ints  # the histogram's cells by number
    counts: Ints
    first_child: Ints
    queries: Groups  # queries × cells: the answer each cell counts in, -1 outside
    weights: Floats  # classes × queries
    classes: Ints  # of each child
    held: Groups  # held queries × cells
    begin: Ints  # where the columns of each held query begin in low and high
    low: Ints  # children × answers of all held queries
    high: Ints
    whole: Bools  # which of them are totals
    nested: bool  # at most one is not
    tolerance: float


class Terms(NamedTuple):
    """Linear terms of the children: in a level of the estimate (by cell), in its leaves (active rows), or own arrays."""

    kind: int
    level: Floats  # nodes × positions
    position: Ints  # of each cell: in the level, or the row of the matrix axis times S plus the column
    flat: Floats
    offset: Ints
    rows: Ints
    pattern: Ints
    S: int


@compile_kernel
def gather_terms(terms: Terms, children: Ints, place: Ints, own: Floats, out: Floats) -> None:
    """Gather the linear terms of children on the parent's cells, as ``TreeEstimate.linear`` does."""
    kind, position, table, rows = terms.kind, terms.position, terms.level, terms.rows
    pattern, flat, offset, S = terms.pattern, terms.flat, terms.offset, terms.S
    for c in range(len(children)):
        node = children[c]
        for j in range(len(place)):
            if kind == OWN:
                out[c, j] = own[c * len(place) + j]
                continue
            at = position[place[j]]
            if kind == UPPER:
                out[c, j] = table[node, at]
            else:
                row = rows[pattern[node], at // S]
                out[c, j] = flat[offset[node] + row * S + at % S] if row >= 0 else 0.0


@compile_kernel
def find_live(level: LevelArrays, parent: int) -> tuple[Ints, Bools]:
    """Return the children that may hold any cell of their parent, and which cells they may hold."""
    held, begin, high = level.held, level.begin, level.high
    place = level.place[level.above[parent] : level.above[parent + 1]]
    first, last = level.first_child[parent], level.first_child[parent + 1]
    n = len(place)
    allowed, children = np.empty((last - first, n), np.bool_), np.empty(last - first, np.int64)
    size = 0
    for child in range(first, last):
        some = False
        for j in range(n):
            may = True
            for r in range(len(held)):
                g = held[r, place[j]]
                if g >= 0 and high[child, begin[r] + g] <= 0:
                    may = False
            allowed[size, j] = may
            some = some or may
        if some:
            children[size] = child
            size += 1
    return children[:size], allowed[:size]


@compile_kernel
def is_covered(allowed: Bools) -> bool:
    """Return whether some child may hold each cell."""
    for j in range(allowed.shape[1]):
        some = False
        for c in range(allowed.shape[0]):
            some = some or allowed[c, j]
        if not some:
            return False
    return True


@compile_kernel
def find_classes(level: LevelArrays, children: Ints) -> tuple[Floats, Ints]:
    """Return the weights of the classes that these children have, and the class of each."""
    number = np.full(len(level.weights), -1, np.int64)
    classes, kinds = np.empty(len(children), np.int64), 0
    for c in range(len(children)):
        k = level.classes[children[c]]
        if number[k] < 0:
            number[k] = kinds
            kinds += 1
        classes[c] = number[k]
    weights = np.empty((kinds, level.weights.shape[1]))
    for k in range(len(number)):
        if number[k] >= 0:
            for q in range(weights.shape[1]):
                weights[number[k], q] = level.weights[k, q]
    return weights, classes


@compile_kernel
def build_families(level: LevelArrays, children: Ints, place: Ints) -> tuple[Groups, Floats, Floats]:
    """Return held sums on the parent's cells: groups in order (cells outside first), and bounds."""
    held, begin, whole = level.held, level.begin, level.whole
    R, n, C = len(held), len(place), len(children)
    groups = np.zeros((R, n), np.int32)
    number = np.full((R, level.low.shape[1] + 1), -1, np.int64)  # by answer, those outside at 0
    most = 1
    for r in range(R):
        if whole[r]:
            continue
        for j in range(n):
            number[r, held[r, place[j]] + 1] = 0
        size = 0
        for g in range(number.shape[1]):
            if number[r, g] == 0:
                number[r, g] = size
                size += 1
        for j in range(n):
            groups[r, j] = number[r, held[r, place[j]] + 1]
        most = max(most, size)
    low, high = np.full((R, C, most), -FREE), np.full((R, C, most), FREE)
    for r in range(R):
        if whole[r]:
            number[r, 1] = 0
        for g in range(1, number.shape[1]):
            if number[r, g] >= 0:
                for c in range(C):
                    low[r, c, number[r, g]] = level.low[children[c], begin[r] + g - 1]
                    high[r, c, number[r, g]] = level.high[children[c], begin[r] + g - 1]
    return groups, low, high


@compile_kernel
def meets_bounds(level: LevelArrays, children: Ints, place: Ints, values: Ints) -> bool:
    """Return whether the integers meet every bound."""
    held, begin, low, high = level.held, level.begin, level.low, level.high
    sums = np.empty(low.shape[1], np.int64)
    for c in range(len(children)):
        for a in range(len(sums)):
            sums[a] = 0
        for j in range(len(place)):
            if values[c, j] < 0:
                return False
            for r in range(len(held)):
                g = held[r, place[j]]
                if g >= 0:
                    sums[begin[r] + g] += values[c, j]
        for a in range(len(sums)):
            if sums[a] < low[children[c], a] or sums[a] > high[children[c], a]:
                return False
    return True


# Solve and round a batch of parents: the same kernels as for one parent, from arrays of the level.
#
# A parent is refused (``TRY_AGAIN``) where no child may hold a cell, where it is so large that its start matters, or
# where the solver or the rounding is stuck. It is then solved by itself.

DONE, TRY_AGAIN = 0, 1  # whether the children of a parent were found
MAX_VIOLATION = 5e-3  # persons by which a held sum may be off
MAX_GENERIC_CELLS = 20_000  # beyond this the interior-point method is the slower one


@compile_kernel
def assemble_problem(
    level: LevelArrays, parent: int, children: Ints, allowed: Bools, linear: Floats, by_column: bool, prior: LeafPrior
) -> ParentProblem:  # fmt: skip
    """Return the problem of a parent with these children and linear terms; ``prior`` is added, unless it is of no cell."""
    first, last = level.above[parent], level.above[parent + 1]
    n, place = last - first, level.place[first:last]
    counts, groups = np.empty(n), np.empty((len(level.queries), n), np.int32)
    for j in range(n):
        counts[j] = level.counts[first + j]
        for q in range(len(level.queries)):
            groups[q, j] = level.queries[q, place[j]]
    weights, classes = find_classes(level, children)
    held, low, high = build_families(level, children, place)
    if len(prior.kind) > 0:
        linear, groups, weights = add_prior(
            prior, children, place, counts, allowed, linear, groups, weights, classes
        )
        classes, by_column = np.arange(len(children)), False  # each child has weights of its own
    start, aims = np.zeros((0, 0)), np.zeros(0, np.int32)
    return ParentProblem(
        counts, linear, allowed, groups, weights, classes, held, low, high, start, aims, by_column, False
    )


@compile_kernel
def find_kept(level: LevelArrays, problem: ParentProblem, counts: Ints) -> KeptSums:
    """Return what the rounding keeps: totals, and the last of the level's other families of held sums."""
    C, n = problem.linear.shape
    groups, m, last = np.zeros(n, np.int32), 1, -1
    total_low, total_high = np.full(C, -FREE), np.full(C, FREE)
    for r in range(len(level.whole)):
        if level.whole[r]:
            for c in range(C):
                total_low[c], total_high[c] = problem.low[r, c, 0], problem.high[r, c, 0]
        else:
            last = r
    if last >= 0:
        for j in range(n):
            groups[j] = problem.held[last, j]
            m = max(m, groups[j] + 1)
    low, high = np.full((C, m), -FREE), np.full((C, m), FREE)
    if last >= 0:
        for c in range(C):
            for g in range(m):
                low[c, g], high[c, g] = problem.low[last, c, g], problem.high[last, c, g]
    none = np.zeros(0, np.int32)
    return KeptSums(counts, np.arange(n), groups, low, high, total_low, total_high, none, none)


@compile_kernel
def solve_batch(
    level: LevelArrays, terms: Terms, parents: Ints, own: Floats, at: Ints, by_column: Bools, prior: LeafPrior
) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
    """Solve and round all parents; return nodes, cells and counts of the children.

    Then come where each parent's end, statuses and certificates. ``own`` are linear terms of their own (from ``at`` on),
    ``by_column`` in which order they are added.
    """
    room, size = 0, 0
    for p in parents:
        room += (level.above[p + 1] - level.above[p]) * (level.first_child[p + 1] - level.first_child[p])
    node, cell, count = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    ends, status = np.empty(len(parents), np.int64), np.full(len(parents), DONE)
    numbers = np.zeros((len(parents), 5))
    for i in range(len(parents)):
        p = parents[i]
        first, last = level.above[p], level.above[p + 1]
        place, counts, n = level.place[first:last], level.counts[first:last], last - first
        ends[i] = size
        if level.first_child[p + 1] - level.first_child[p] == 1:
            for j in range(n):
                node[size], cell[size], count[size] = level.first_child[p], level.cells[place[j]], counts[j]
                size += 1
            ends[i] = size
            continue
        children, allowed = find_live(level, p)
        C = len(children)
        if n >= MIN_LARGE_CELLS or not is_covered(allowed):
            status[i] = TRY_AGAIN
            continue
        linear = np.empty((C, n))
        gather_terms(terms, children, place, own[at[i] : at[i + 1]], linear)
        problem = assemble_problem(level, p, children, allowed, linear, by_column[i], prior)
        x, _, violation, spent, multipliers, distance = solve_problem(
            problem,
            level.tolerance,
            np.int64(MAX_STEPS),  # type: ignore[arg-type]  # a literal would be compiled for again
        )
        values = np.empty((C, n), np.int64)
        if (
            violation > MAX_VIOLATION
            or (distance > 2 * level.tolerance and C * n <= MAX_GENERIC_CELLS)
            or not round_children(x, allowed, find_kept(level, problem, counts), level.nested, values)
            or not meets_bounds(level, children, place, values)
        ):
            status[i] = TRY_AGAIN
            continue
        numbers[i, 0], numbers[i, 1], numbers[i, 2] = 1.0, distance, violation
        numbers[i, 3], numbers[i, 4] = spent, 1.0 if multipliers else 0.0
        for c in range(C):
            for j in range(n):
                if values[c, j] != 0:
                    node[size], cell[size], count[size] = children[c], level.cells[place[j]], values[c, j]
                    size += 1
        ends[i] = size
    return node[:size].copy(), cell[:size].copy(), count[:size].copy(), ends, status, numbers


# Threads take batches of parents, whose compiled code holds no lock.
#
# What parents of a level share is laid out once (``LevelSolver``); a batch is limited by the cells of its children, and
# so is the memory of every thread.

Triples = tuple[Ints, Ints, Ints]
MAX_BATCH_CELLS = 1 << 17  # of all children in a batch: some megabytes
PARENTS_PER_CHUNK = 16  # parents that are solved one by one in a task
MIN_BATCHES = 32  # batches of a level at least, where it has so many parents
MAX_TABLED_CELLS = (
    1 << 14
)  # cells of a histogram up to which queries are looked up in tables of all of them, made once


class ParentSolver(Protocol):
    """Protocol of a run's estimator: its data, and how it solves a parent by itself."""

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
    def guide(self) -> SolveGuide | None: ...
    def has_arrays(self) -> bool: ...
    def batchable(self, depth: int) -> bool: ...
    def parent(
        self, depth: int, family: "Family", shared: "LevelArrays | None", certificate: Certificate
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
    """Solves the parents of a level: in batches, or one by one where they need more than one pass or other sums."""

    def __init__(self, estimator: ParentSolver, depth: int) -> None:
        self.estimator, self.depth = estimator, depth
        self.shared = build_shared_arrays(estimator, depth) if estimator.has_arrays() else None
        self.in_batches = self.shared is not None and estimator.batchable(depth)

    def solve(self, family: Family) -> tuple[Triples, Certificate]:
        """Solve some parents; return nodes, cells and counts of the children, and the certificate."""
        parents = np.flatnonzero(np.diff(family.above.first) > 0)
        certificate = Certificate(self.estimator.allotment.spine.levels[self.depth])
        if not self.in_batches or self.shared is None:
            pieces = [self._solve_alone(family, p, certificate) for p in parents.tolist()]
            return concatenate(pieces), certificate
        *found, ends, status, numbers = self._solve_batch(self.shared, family, parents)
        numbers = numbers[status == DONE]  # the others are counted when they are solved
        certificate.parents = int(numbers[:, 0].sum())
        certificate.distance = float(numbers[:, 1].max(initial=0.0))
        certificate.violation = float(numbers[:, 2].max(initial=0.0))
        certificate.iterations = int(numbers[:, 3].sum())
        certificate.multipliers = int(numbers[:, 4].sum())
        node, cell, count = found
        pieces, at = [], 0
        for i in np.flatnonzero(status == TRY_AGAIN).tolist():
            end = int(ends[i])
            pieces.append((node[at:end], cell[at:end], count[at:end]))
            pieces.append(self._solve_alone(family, int(parents[i]), certificate))
            at = end
        pieces.append((node[at:], cell[at:], count[at:]))
        return concatenate(pieces), certificate

    def _solve_batch(
        self, shared: LevelArrays, family: Family, parents: Ints
    ) -> tuple[Ints, Ints, Ints, Ints, Ints, Floats]:
        """Call the kernel for those of a family's parents that have records."""
        estimator, depth = self.estimator, self.depth
        level = build_family_arrays(estimator, depth, shared, family)
        terms = find_terms(estimator, depth, level.cells)
        drawn, first, by_column = (
            np.zeros(0),
            np.zeros(len(parents) + 1, np.int64),
            np.ones(len(parents), bool),
        )
        if terms.kind == OWN:
            drawn, first, by_column = _draw_terms(estimator, depth, level, parents)
        elif terms.kind == UPPER:
            by_column[:] = False
        return solve_batch(
            level, terms, parents, drawn, first, by_column, find_prior(estimator, depth, level)
        )

    def _solve_alone(self, family: Family, p: int, certificate: Certificate) -> Triples:
        return self.estimator.parent(self.depth, family.part(p, p + 1), self.shared, certificate)

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
        if not self.in_batches:  # as many parents in each
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


def find_prior(estimator: ParentSolver, depth: int, level: LevelArrays) -> LeafPrior:
    """Return the prior of a level's nodes on its cells, if the estimator has one."""
    guide = estimator.guide
    return (
        guide.leaves(level.cells) if guide is not None and guide.adds(depth) == WEIGHTS else build_no_prior()
    )


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
