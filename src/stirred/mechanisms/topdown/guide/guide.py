"""What the mode guided adds to the top-down solve: sums held above the leaves, prior knowledge at the leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.guide.passes import (
    QuerySums,
    cross_partitions,
    cross_sums,
    fit_sums,
    is_clear,
    list_first_queries,
    round_sums,
)
from stirred.mechanisms.topdown.guide.prior import UnitPrior
from stirred.mechanisms.topdown.guide.units import LeafUnits, UnitSpread, sum_moments
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.solve.batched.prior import LeafPrior, build_no_prior
from stirred.mechanisms.topdown.solve.problem import NOTHING, SUMS, WEIGHTS, ParentProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Guidance:
    """The sums of every level above the leaves that are fitted first, and the prior of the leaves, if any."""

    informed: TreeEstimate
    sums: Mapping[int, tuple[QuerySums, ...]]
    prior: UnitPrior | None
    last: int

    @staticmethod
    def of(informed: TreeEstimate, constraints: Constraints, scatter: UnitSpread | None = None) -> "Guidance":
        """Build it from the tree estimate; ``scatter`` is that of the whole tree if only a part is here."""
        last = len(informed.measurements.allotment.spine.levels) - 1
        sums = {
            depth: tuple(
                QuerySums.of(informed, depth, query) for query in list_first_queries(informed, depth)
            )
            for depth, level in enumerate(informed.levels)
            if len(level.e)
        }
        units = find_units(informed, constraints)
        prior = None
        if units is not None and len(informed.leaves.parent):
            prior = UnitPrior.of(informed, units, scatter or UnitSpread.of(sum_moments(informed, units)))
        return Guidance(informed, sums, prior, last)

    def adds(self, depth: int) -> str:
        """Return what is added to the parents of a level."""
        if depth == self.last:
            return NOTHING if self.prior is None else WEIGHTS
        return SUMS if self.sums.get(depth) else NOTHING

    def shape_problem(self, depth: int, children: Ints, cells: Ints, problem: ParentProblem) -> ParentProblem:
        """Return the problem of a parent with its sums held, or with the prior of its leaves."""
        if depth == self.last:
            return problem if self.prior is None else self.prior.add_to(children, cells, problem)
        sums = self.sums.get(depth)
        if not sums or problem.crowded or not is_clear(sums, children, cells, problem):
            return problem
        held = fit_sums(sums, children, cells, problem)
        return replace(problem, held=(*problem.held, *held), aims=cross_partitions(held))

    def leaves(self, cells: Ints) -> LeafPrior:
        """Return the prior of the leaves as arrays for compiled code."""
        return build_no_prior() if self.prior is None else self.prior.arrays(cells)

    def root(self, cells: Ints, total: float | None) -> tuple[NDArray[np.int32], Floats] | None:
        """Return the partition of the root's cells and the whole sums held there, or None."""
        sums = self.sums.get(0, ())
        for pair in combinations(sums, 2):  # the first two that share no axis
            both = cross_sums(self.informed, pair, cells, total)
            if both is not None:
                return both
        if not sums:
            return None
        one = sums[0]
        number = one.query.of(cells)
        if (number < 0).any():
            return None
        possible = np.bincount(number, minlength=one.query.size) > 0
        return number.astype(np.int32), round_sums(one.value[0], total, possible)


def find_units(informed: TreeEstimate, constraints: Constraints) -> LeafUnits | None:
    """Return the units of the leaves, or None where the workload does not count them."""
    allotment = informed.measurements.allotment
    return LeafUnits.of(allotment.workload, constraints, len(allotment.spine.levels) - 1)


def sum_leaf_moments(informed: TreeEstimate, constraints: Constraints) -> Ints:
    """Return the moments of the leaves here, zeros where no units are counted."""
    units = find_units(informed, constraints)
    return np.zeros((2, 4), np.int64) if units is None else sum_moments(informed, units)
