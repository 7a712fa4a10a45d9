"""Solve many parents of a level in one call of compiled code, which holds no lock: threads take batches of parents.

The arrays of a level are made once (``LevelArrays``); a batch is limited by the cells of its children, and so is the
memory of every thread. A parent that the kernel refuses is solved by ``Estimator.parent``, from which no result differs; so
are all parents of a small tree, for which nothing is compiled.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.linear import Targets
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
    live,
)
from stirred.mechanisms.topdown.solve.batched.networks import round_batch
from stirred.mechanisms.topdown.solve.batched.solving import solve_batch
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse

Triples = tuple[Ints, Ints, Ints]
CELLS = 1 << 17  # of all children in a batch: some megabytes
CHUNK = 16  # parents that the general path solves at a time
MANY = 5_000  # geounits from which the kernels are worth compiling: 25 seconds, once, against 2 ms for each parent
TASKS = 32  # batches of a level at least, where it has so many parents


class ParentSolver(Protocol):
    """The estimator of a run: what it knows, and its general path, which solves one parent."""

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
    def batchable(self, depth: int) -> bool: ...
    def parent(self, depth: int, parent: int, above: Sparse, certificate: Certificate) -> Triples: ...


def tasks(
    estimator: ParentSolver, depth: int, above: Sparse, parents: Ints
) -> tuple[list[Ints], Callable[[Ints], tuple[Triples, Certificate]]]:
    """The parents of a level in batches, and what solves one: compiled code, or the general path parent by parent."""
    spine = estimator.allotment.spine
    many = sum(map(len, spine.codes)) >= MANY
    if many and len(parents) and estimator.batchable(depth):
        arrays = level_arrays(estimator, depth, above)
        terms = terms_of(estimator, depth, arrays.cells)
        return batches(arrays, parents), lambda part: solve_parents(
            estimator, depth, above, arrays, terms, part
        )

    def one_by_one(part: Ints) -> tuple[Triples, Certificate]:
        own = Certificate(spine.levels[depth])
        return together([estimator.parent(depth, int(p), above, own) for p in part]), own

    chunk = max(1, min(CHUNK, len(parents) // TASKS))
    return [parents[i : i + chunk] for i in range(0, len(parents), chunk)], one_by_one


def level_arrays(estimator: ParentSolver, depth: int, above: Sparse) -> LevelArrays:
    """The arrays of a level."""
    allotment, held = estimator.allotment, estimator.constraints.held
    spine, queries = allotment.spine, allotment.workload.queries
    cells, place = np.unique(above.cells, return_inverse=True)
    nodes = np.arange(spine.size(depth))
    holder, number = allotment.holder(depth, nodes)
    start = np.full(len(nodes), -1, np.int64)
    for d in np.unique(holder):
        start[holder == d] = allotment.start[d][number[holder == d]]
    pairs, classes = np.unique(np.stack([start, holder], axis=1), axis=0, return_inverse=True)
    known = [[estimator.weights[int(a), int(d)].get(q.name, 0.0) for q in queries] for a, d in pairs]
    here = [one for one in held if depth < len(one.low)]
    sizes = [one.query.size for one in here]
    none = np.zeros((len(nodes), 0), np.int64)
    return LevelArrays(
        above=own(above.first),
        place=own(place.ravel()),
        cells=own(cells),
        counts=own(above.counts),
        first_child=own(spine.first_child[depth - 1]),
        queries=np.stack([compact(q.of(cells)) for q in queries]),
        weights=np.array(known, float).reshape(len(pairs), len(queries)),
        classes=own(classes.ravel()),
        held=np.stack([np.zeros(len(cells), np.int32), *(h.query.of(cells).astype(np.int32) for h in here)])[
            1:
        ],
        begin=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        low=np.concatenate([none, *(one.low[depth] for one in here)], axis=1).astype(np.int64),
        high=np.concatenate([none, *(one.high[depth] for one in here)], axis=1).astype(np.int64),
        whole=np.array([one.whole for one in here], bool),
        nested=sum(not one.whole for one in here) <= 1,
        tolerance=estimator.tolerance,
    )


def own(array: Ints) -> Ints:
    """The array as compiled code knows it: one that is read-only, as those of Arrow are, would be compiled for again."""
    return np.require(array, np.int64, ["C", "W"])


def terms_of(estimator: ParentSolver, depth: int, cells: Ints) -> Terms:
    """Where the linear terms of a level lie."""
    targets = estimator.targets
    none, no_rows, nowhere = np.zeros(0), np.zeros((0, 0)), np.zeros(0, np.int64)
    rows = np.full((1, 1), -1, np.int64)
    if type(targets) is not Informed:
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
        own(targets.offset),
        targets.rows,
        own(targets.pattern),
        algebra.S,
    )


def batches(level: LevelArrays, parents: Ints) -> list[Ints]:
    """As many parents in a batch as have CELLS cells with all their children, and enough batches for threads.

    The largest come first, because a large one that starts last would leave the other threads without work.
    """
    if not len(parents):
        return []
    size = (level.above[parents + 1] - level.above[parents]) * np.diff(level.first_child)[parents]
    limit = max(1, min(CELLS, int(size.sum()) // TASKS))
    number = (np.cumsum(size) - size) // limit
    cut = np.flatnonzero(np.diff(number)) + 1
    largest = np.argsort(-np.add.reduceat(size, np.r_[0, cut]), kind="stable")
    found = np.split(parents, cut)
    return [found[i] for i in largest.tolist()]


def solve_parents(
    estimator: ParentSolver, depth: int, above: Sparse, level: LevelArrays, terms: Terms, parents: Ints
) -> tuple[Triples, Certificate]:
    """Nodes, cells and counts of the children of some parents, in order, and the certificate of their solves."""
    drawn, first, by_column = np.zeros(0), np.zeros(len(parents) + 1, np.int64), np.ones(len(parents), bool)
    if terms.kind == OWN:
        drawn, first, by_column = _drawn(estimator, depth, level, parents)
    elif terms.kind == UPPER:
        by_column[:] = False
    found, begin, status, numbers = solve_batch(level, terms, parents, drawn, first, by_column)
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
        pieces.append(estimator.parent(depth, int(parents[i]), above, certificate))
        at = end
    pieces.append((node[at:], cell[at:], count[at:]))
    return together(pieces), certificate


def _drawn(
    estimator: ParentSolver, depth: int, level: LevelArrays, parents: Ints
) -> tuple[Floats, Ints, Bools]:
    """Linear terms that are drawn or computed for each parent, one after the other."""
    terms, at, by_column = [np.zeros(0)], [0], []
    for p in parents.tolist():
        place = level.place[level.above[p] : level.above[p + 1]]
        first, last = int(level.first_child[p]), int(level.first_child[p + 1])
        by_column.append(False)
        at.append(at[-1])
        if last - first == 1:
            continue
        children, _ = live(level, p)
        linear = estimator.targets.linear(depth, children, level.cells[place])
        by_column[-1] = not linear.flags.c_contiguous
        terms.append(linear.ravel())
        at[-1] += linear.size
    return np.concatenate(terms), np.array(at), np.array(by_column, bool)


def together(pieces: Sequence[Triples]) -> Triples:
    """Triples one after the other."""
    none = np.zeros(0, np.int64)
    node, cell, count = (np.concatenate([none, *(one[k] for one in pieces)]) for k in range(3))
    return node, cell, count


def joined(results: Sequence[Triples], nodes: int) -> Sparse:
    """The histograms of a level: within each batch, triples are in order already."""
    ordered = sorted((one for one in results if len(one[0])), key=lambda one: int(one[0][0]))
    node, cell, count = together(ordered)
    return Sparse(np.searchsorted(node, np.arange(nodes + 1)), cell, count)


def compact(index: Ints) -> Groups:
    """Group numbers as small integers, -1 kept."""
    numbers, place = np.unique(index, return_inverse=True)
    shift = int(len(numbers) > 0 and numbers[0] < 0)
    return (place.ravel() - shift).astype(np.int32)
