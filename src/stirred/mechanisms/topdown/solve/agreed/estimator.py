"""The estimator of a product that agrees with an earlier one in every geounit."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.measure.linear import Raw
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.solve.agreed.parent import TOLERANCE, AgreedParent
from stirred.mechanisms.topdown.solve.agreed.system import PricedRows
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate, Solution
from stirred.mechanisms.topdown.tree.counts import Sparse

Ints = NDArray[np.int64]
MOST = 20_000_000  # cells of all children that are estimated together with the root


def agreeing(estimator: Estimator) -> Estimator:
    """The same with Newton's method, where the only sums that are held are those of an earlier product."""
    given = estimator.allotment.workload.given
    fits = given and estimator.solver == "fast" and isinstance(estimator.targets, Raw)
    if not fits or not _agrees(estimator.constraints):
        return estimator
    return AgreedEstimator(*(getattr(estimator, own.name) for own in fields(estimator)))


def _agrees(constraints: Constraints) -> bool:
    """Whether exactly one query is held, exact everywhere, and counts every cell."""
    if len(constraints.solved) != 1:
        return False
    held = constraints.solved[0]
    exact = all(a is b or np.array_equal(a, b) for a, b in zip(held.low, held.high, strict=True))
    return exact and all(min(factor) >= 0 for factor in held.query.factors)


@dataclass(frozen=True, slots=True)
class AgreedEstimator(Estimator):
    """Parents as Newton problems with exact sums; see ``agreed.parent``."""

    def batchable(self, depth: int) -> bool:  # noqa: ARG002
        """No: every parent is a problem of its own."""
        return False

    def root(self) -> tuple[Sparse, Certificate]:
        """The histogram of the root."""
        spine, histogram = self.allotment.spine, self.allotment.workload.histogram
        if not spine.size(0):
            return Estimator.root(self)
        node, cells = np.zeros(1, np.int64), np.arange(histogram.cells)
        cells = cells[self.constraints.possible(cells) & self.constraints.allowed(0, node, cells)[0]]
        certificate = Certificate(spine.levels[0])
        if not len(cells):
            return Sparse.of(node[:0], node[:0], node[:0], 1, histogram.cells), certificate
        problem = self._problem(0, node, cells, node[:0], np.ones((1, len(cells)), bool))
        rows = problem.rows(self.targets)
        solution = self._together(problem, rows)
        certificate.add(solution)
        values = problem.integers(rows, solution.x.sum(axis=0, keepdims=True))
        self._check(0, node, cells, values)
        keep = np.flatnonzero(values[0])
        zeros = np.zeros(len(keep), np.int64)
        return Sparse.of(zeros, cells[keep], values[0][keep], 1, histogram.cells), certificate

    def _together(self, root: AgreedParent, rows: PricedRows) -> Solution:
        """The root with its children, where it has several: what they may not have says much about its cells."""
        spine = self.allotment.spine
        below = np.arange(*spine.first_child[0][:2]) if len(spine.levels) > 1 else np.zeros(0, np.int64)
        size = len(root.cells) * len(below)
        if len(below) < 2 or size > MOST or self.targets.measurements.key is None:
            return root.fitted(rows)
        allowed = self.constraints.allowed(1, below, root.cells)
        joint = replace(self._problem(1, below, root.cells, root.counts, allowed), above=root.weights)
        found = joint.fitted(joint.rows(self.targets))
        if found.violation <= TOLERANCE:
            return found
        alone = root.fitted(rows)  # with many cells and children the search may not end
        return alone if alone.violation < found.violation else found

    def _problem(
        self, depth: int, nodes: Ints, cells: Ints, counts: Ints, allowed: NDArray[np.bool_]
    ) -> AgreedParent:
        queries = self.allotment.workload.queries
        weights = self._weights(depth, nodes, [query.name for query in queries])
        return AgreedParent(
            depth, nodes, cells, counts, allowed, self.constraints.solved[0], queries, weights
        )

    def children(
        self, depth: int, children: Ints, cells: Ints, counts: Ints, allowed: NDArray[np.bool_], certificate: Certificate
    ) -> Ints:  # fmt: skip
        """Solve and round; the integers of each child on the parent's cells."""
        if len(counts) and len(children) == 1:
            return counts[None]
        problem = self._problem(depth, children, cells, counts, allowed)
        values, solution = problem.solve(self.targets)
        certificate.add(solution)
        self._check(depth, children, cells, values)
        return values
