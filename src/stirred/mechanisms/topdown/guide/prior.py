r"""Add the prior knowledge of a parent's leaves to its least-squares problem.

The objective gets $\sum_j (x_{bj} - m_{bj})^2 / \varphi m_{bj}$, with $m_{bj} = p_j T_b / \sum T$ the parent's own count
times the leaf's share, and $(\sum_j x_{bj} - M_b)^2$ with what totals are known better than their cells. $T_b$ is the
posterior mean of the leaf's persons: $M_b + g (y_b - M_b)$ with $g = V/(V + s^2)$, y the unbiased estimate with
variance s². A leaf of few units has small means and small variances, so non-negativity no longer lifts its many
near-empty cells at the cost of large neighbours; that is where the bias by size came from. A leaf whose unbiased
estimate is far from its prior mean is an outlier: its prior weighs less, as with Student's t.
The kernel of ``solve.batched.prior`` computes all this, for one parent here and for many in a batch.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.guide.units import LeafUnits, UnitSpread
from stirred.mechanisms.topdown.solve.batched.prior import LeafPrior, add_prior
from stirred.mechanisms.topdown.solve.problem import ParentProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class UnitPrior:
    """The knowledge of all leaves: units, spread, and the unbiased persons by kind with their variances."""

    units: LeafUnits
    scatter: UnitSpread
    persons: Floats  # leaves × answers
    variance: Floats

    @staticmethod
    def of(informed: TreeEstimate, units: LeafUnits, scatter: UnitSpread) -> "UnitPrior":
        """Build it with the unbiased persons by kind from each leaf's own measurements."""
        algebra = informed.algebra
        persons, variance = np.zeros(units.leaf.shape), np.zeros(units.leaf.shape)
        answer = units.query.of(algebra.layout[:, 0])
        for pattern in informed.leaves.patterns:
            for a in np.unique(answer[pattern.act]):
                inside = np.flatnonzero(answer[pattern.act] == a)
                persons[pattern.members, a] = gls.sum_in_order(pattern.b[:, inside])
                variance[pattern.members, a] = algebra.S * pattern.C[0][np.ix_(inside, inside)].sum()
        return UnitPrior(units, scatter, persons, variance)

    def arrays(self, cells: Ints) -> LeafPrior:
        """Return the same as arrays for compiled code, with the kind of each of these cells."""
        kind = self.units.kind
        return LeafPrior(
            np.require(self.units.leaf, np.int64, ["C", "W"]),
            self.persons,
            self.variance,
            self.scatter.cells[kind],
            self.scatter.totals[kind],
            np.require(self.units.query.of(cells), np.int64, ["C", "W"]),
        )

    def add_to(self, children: Ints, cells: Ints, problem: ParentProblem) -> ParentProblem:
        """Return the problem with the prior of every kind of cells; each child has its own weights."""
        linear, groups, weights = add_prior(
            self.arrays(cells),
            children,
            np.arange(len(cells)),
            problem.parent,
            np.ascontiguousarray(problem.allowed),
            np.ascontiguousarray(problem.linear),
            np.ascontiguousarray(problem.groups),
            np.ascontiguousarray(problem.weights),
            problem.classes.astype(np.int64),
        )
        classes = np.arange(len(children), dtype=np.int32)
        return replace(problem, linear=linear, groups=groups, weights=weights, classes=classes)
