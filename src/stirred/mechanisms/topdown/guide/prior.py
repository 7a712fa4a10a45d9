r"""Add the prior knowledge of a parent's leaves to its least-squares problem.

The objective gets $\sum_j (x_{bj} - m_{bj})^2 / \varphi m_{bj}$, with $m_{bj} = p_j T_b / \sum T$ the parent's own count
times the leaf's share, and $(\sum_j x_{bj} - M_b)^2$ with what totals are known better than their cells. $T_b$ is the
posterior mean of the leaf's persons: $M_b + g (y_b - M_b)$ with $g = V/(V + s^2)$, y the unbiased estimate with
variance s². A leaf of few units has small means and small variances, so non-negativity no longer lifts its many
near-empty cells at the cost of large neighbours; that is where the bias by size came from. A leaf whose unbiased
estimate is far from its prior mean is an outlier: its prior weighs less, as with Student's t.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.guide.units import CountedUnits, UnitSpread
from stirred.mechanisms.topdown.solve.problem import ParentProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FREEDOM = 4.0  # of Student's t, by which outliers weigh less
STEP = 2.5  # cells whose parent's counts differ by less than this factor share one weight
LEAST = 0.02  # no variance of a cell is below this, in persons
KEPT = 0.1  # no share is below this part of the share by units


@dataclass(frozen=True, slots=True)
class UnitPrior:
    """The knowledge of all leaves: units, spread, and the unbiased persons by kind with their variances."""

    units: CountedUnits
    scatter: UnitSpread
    persons: Floats  # leaves × answers
    variance: Floats

    @staticmethod
    def of(informed: Informed, units: CountedUnits, scatter: UnitSpread) -> "UnitPrior":
        """The unbiased persons by kind from each leaf's own measurements."""
        algebra = informed.algebra
        persons, variance = np.zeros(units.leaf.shape), np.zeros(units.leaf.shape)
        answer = units.query.of(algebra.layout[:, 0])
        for pattern in informed.leaves.patterns:
            for a in np.unique(answer[pattern.act]):
                inside = np.flatnonzero(answer[pattern.act] == a)
                persons[pattern.members, a] = gls.sums(pattern.b[:, inside])
                variance[pattern.members, a] = algebra.S * pattern.C[0][np.ix_(inside, inside)].sum()
        return UnitPrior(units, scatter, persons, variance)

    def added(self, children: Ints, cells: Ints, problem: ParentProblem) -> ParentProblem:
        """The problem with the prior of every kind of cells; each child has weights of its own."""
        answer = self.units.query.of(cells)
        groups, weights = [problem.groups], [problem.weights[problem.classes]]
        linear = problem.linear.copy()
        for a in np.unique(answer[answer >= 0]):
            here = np.flatnonzero(answer == a)
            means, variance, shares, trust = self._leaves(children, int(a), problem.parent[here])
            phi = float(self.scatter.cells[self.units.kind[a]])
            size = np.floor(np.log(np.maximum(problem.parent[here], 1.0)) / np.log(STEP))
            for one in np.unique(size):
                few = here[size == one]
                middle = float(np.exp(np.log(np.maximum(problem.parent[few], 1.0)).mean()))
                weight = np.where(shares > 0, trust / np.maximum(phi * middle * shares, LEAST), 0.0)
                _add(groups, weights, few, np.arange(len(few)), weight)
                linear[:, few] += weight[:, None] * shares[:, None] * problem.parent[few]
            # Independent cells already say that the total has variance φM; where it is known better, that is added.
            known = trust / np.maximum(variance, LEAST) - trust / np.maximum(phi * means, LEAST)
            weight = np.where(means > 0, np.maximum(known, 0.0), 0.0)
            _add(groups, weights, here, np.zeros(len(here), np.int64), weight)
            linear[:, here] += (weight * means)[:, None]
        return replace(
            problem,
            linear=np.where(problem.allowed, linear, problem.linear),
            groups=np.concatenate(groups),
            weights=np.concatenate(weights, axis=1),
            classes=np.arange(len(children), dtype=np.int32),
        )

    def _leaves(self, children: Ints, a: int, counts: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """UnitPrior means and variances of the leaves' persons of a kind, their shares, and how far they are trusted."""
        number = self.units.leaf[children, a].astype(float)
        total = float(counts.sum())
        if not number.any() or not total:
            return (np.zeros(len(children)),) * 4
        means = total * number / number.sum()
        variance = means + self.scatter.totals[self.units.kind[a]] * means**2
        noise = self.variance[children, a]
        apart = self.persons[children, a] - means
        odd = apart**2 / np.maximum(variance + noise, LEAST)
        trust = np.minimum(1.0, (FREEDOM + 1.0) / (FREEDOM + odd))
        gain = np.where(means > 0, variance / np.maximum(variance + trust * noise, LEAST), 0.0)
        shares = np.maximum(means + gain * apart, KEPT * means)
        return means, variance, shares / shares.sum(), trust


def _add(
    groups: list[NDArray[np.int32]], weights: list[Floats], here: Ints, place: Ints, weight: Floats
) -> None:
    row = np.full((1, groups[0].shape[1]), -1, np.int32)
    row[0, here] = place
    groups.append(row)
    weights.append(weight[:, None])
