"""Solve many parents of a level in one call of compiled code, which holds no lock: threads take batches of parents.

What parents of a level share is laid out once (``LevelSolver``); a batch is limited by the cells of its children, and
so is the memory of every thread. A parent that the kernel refuses is solved by ``Estimator.parent``, from which no
result differs; so are all parents of a small tree, for which nothing is compiled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.linear import ClassicTargets, Targets
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.solve.batched.arrays import (
    DONE,
    LEAVES,
    OWN,
    TRY_AGAIN,
    UPPER,
    Bools,
    Floats,
    Groups,
    Ints,
    LevelArrays,
    Terms,
    find_live,
)
from stirred.mechanisms.topdown.solve.batched.networks import round_batch
from stirred.mechanisms.topdown.solve.batched.prior import build_no_prior
from stirred.mechanisms.topdown.solve.batched.solving import solve_batch
from stirred.mechanisms.topdown.solve.problem import (
    WEIGHTS,
    Certificate,
    SolveGuide,
)
from stirred.mechanisms.topdown.tree.counts import Sparse

Triples = tuple[Ints, Ints, Ints]
MAX_BATCH_CELLS = 1 << 17  # of all children in a batch: some megabytes
PARENTS_PER_CHUNK = 16  # parents that the general path solves at a time
MIN_COMPILED_GEOUNITS = 5_000  # geounits from which the kernels are worth compiling: 25 seconds, once, against 2 ms for each parent
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
