"""The estimator of a product that agrees with an earlier one in every geounit."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.measure.linear import ClassicTargets
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.solve.agreed.parent import TOLERANCE_PERSONS, GivenSumsParent
from stirred.mechanisms.topdown.solve.agreed.system import PricedRows
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate, Solution
from stirred.mechanisms.topdown.tree.counts import Sparse

Ints = NDArray[np.int64]
MAX_ROOT_CELLS = 20_000_000  # cells of all children that are estimated together with the root


def choose_estimator(estimator: Estimator) -> Estimator:
    """Return the estimator with Newton's method, if the only held sums are those of an earlier product."""
    given = estimator.allotment.workload.given
    fits = given and estimator.solver == "fast" and isinstance(estimator.targets, ClassicTargets)
    if not fits or not _holds_one_product(estimator.constraints):
        return estimator
    return GivenSumsEstimator(*(getattr(estimator, own.name) for own in fields(estimator)))


def _holds_one_product(constraints: Constraints) -> bool:
    """Return whether exactly one query is held, exact everywhere, and counts every cell."""
    if len(constraints.solve_queries) != 1:
        return False
    held = constraints.solve_queries[0]
    exact = all(a is b or np.array_equal(a, b) for a, b in zip(held.low, held.high, strict=True))
    return exact and all(min(factor) >= 0 for factor in held.query.factors)


@dataclass(frozen=True, slots=True)
class GivenSumsEstimator(Estimator):
    """Estimator that solves each parent as a Newton problem with exact sums."""

    def batchable(self, depth: int) -> bool:  # noqa: ARG002
        """Return False: every parent is a problem of its own."""
        return False

    def root(self) -> tuple[Sparse, Certificate]:
        """Return the histogram of the root."""
        spine, histogram = self.allotment.spine, self.allotment.workload.histogram
        if not spine.size(0):
            return Estimator.root(self)
        node, cells = np.zeros(1, np.int64), np.arange(histogram.cells)
        cells = cells[self.constraints.possible(cells) & self.constraints.find_allowed(0, node, cells)[0]]
        certificate = Certificate(spine.levels[0])
        if not len(cells):
            return Sparse.of(node[:0], node[:0], node[:0], 1, histogram.cells), certificate
        problem = self._build_problem(0, node, cells, node[:0], np.ones((1, len(cells)), bool))
        rows = problem.rows(self.targets)
        solution = self._solve_with_children(problem, rows)
        certificate.add(solution)
        values = problem.round_counts(rows, solution.x.sum(axis=0, keepdims=True))
        self._check(0, node, cells, values)
        keep = np.flatnonzero(values[0])
        zeros = np.zeros(len(keep), np.int64)
        return Sparse.of(zeros, cells[keep], values[0][keep], 1, histogram.cells), certificate

    def _solve_with_children(self, root: GivenSumsParent, rows: PricedRows) -> Solution:
        """Solve the root with its children, if it has several: their zeros inform its cells."""
        spine = self.allotment.spine
        below = np.arange(*spine.first_child[0][:2]) if len(spine.levels) > 1 else np.zeros(0, np.int64)
        size = len(root.cells) * len(below)
        if len(below) < 2 or size > MAX_ROOT_CELLS or self.targets.measurements.key is None:
            return root.fit(rows)
        allowed = self.constraints.find_allowed(1, below, root.cells)
        joint = replace(self._build_problem(1, below, root.cells, root.counts, allowed), above=root.weights)
        found = joint.fit(joint.rows(self.targets))
        if found.violation <= TOLERANCE_PERSONS:
            return found
        alone = root.fit(rows)  # with many cells and children the search may not end
        return alone if alone.violation < found.violation else found

    def _build_problem(
        self, depth: int, nodes: Ints, cells: Ints, counts: Ints, allowed: NDArray[np.bool_]
    ) -> GivenSumsParent:
        queries = self.allotment.workload.queries
        weights = self._weights(depth, nodes, [query.name for query in queries])
        return GivenSumsParent(
            depth, nodes, cells, counts, allowed, self.constraints.solve_queries[0], queries, weights
        )

    def children(
        self, depth: int, children: Ints, cells: Ints, counts: Ints, allowed: NDArray[np.bool_], certificate: Certificate
    ) -> Ints:  # fmt: skip
        """Solve and round; return the integers of each child on the parent's cells."""
        if len(counts) and len(children) == 1:
            return counts[None]
        problem = self._build_problem(depth, children, cells, counts, allowed)
        values, solution = problem.solve(self.targets)
        certificate.add(solution)
        self._check(depth, children, cells, values)
        return values
