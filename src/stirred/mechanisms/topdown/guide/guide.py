"""What the mode guided adds to the top-down solve: sums held above the leaves, prior knowledge at the leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.guide.passes import (
    Sums,
    aims_of,
    clear,
    crossed,
    first_queries,
    fitted,
    rounded_sums,
)
from stirred.mechanisms.topdown.guide.prior import UnitPrior
from stirred.mechanisms.topdown.guide.units import CountedUnits, UnitSpread, moments
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.solve.batched.prior import LeafPrior, no_prior
from stirred.mechanisms.topdown.solve.problem import NOTHING, SUMS, WEIGHTS, ParentProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Guidance:
    """The sums of every level above the leaves that are fitted first, and the prior of the leaves if there is one."""

    informed: Informed
    sums: Mapping[int, tuple[Sums, ...]]
    prior: UnitPrior | None
    last: int

    @staticmethod
    def of(informed: Informed, constraints: Constraints, scatter: UnitSpread | None = None) -> "Guidance":
        """From the tree estimate; ``scatter`` is that of the whole tree where only a part of it is here."""
        last = len(informed.measurements.allotment.spine.levels) - 1
        sums = {
            depth: tuple(Sums.of(informed, depth, query) for query in first_queries(informed, depth))
            for depth, level in enumerate(informed.levels)
            if len(level.e)
        }
        units = units_of(informed, constraints)
        prior = None
        if units is not None and len(informed.leaves.parent):
            prior = UnitPrior.of(informed, units, scatter or UnitSpread.of(moments(informed, units)))
        return Guidance(informed, sums, prior, last)

    def adds(self, depth: int) -> str:
        """What it adds to the parents of a level."""
        if depth == self.last:
            return NOTHING if self.prior is None else WEIGHTS
        return SUMS if self.sums.get(depth) else NOTHING

    def shaped(self, depth: int, children: Ints, cells: Ints, problem: ParentProblem) -> ParentProblem:
        """The problem of a parent with its sums held, or with the prior of its leaves."""
        if depth == self.last:
            return problem if self.prior is None else self.prior.added(children, cells, problem)
        sums = self.sums.get(depth)
        if not sums or problem.crowded or not clear(sums, children, cells, problem):
            return problem
        held = fitted(sums, children, cells, problem)
        return replace(problem, held=(*problem.held, *held), aims=aims_of(held))

    def leaves(self, cells: Ints) -> LeafPrior:
        """The prior of the leaves for compiled code."""
        return no_prior() if self.prior is None else self.prior.arrays(cells)

    def root(self, cells: Ints, total: float | None) -> tuple[NDArray[np.int32], Floats] | None:
        """The partition of the root's cells and the whole sums that are held there; None where nothing is."""
        sums = self.sums.get(0, ())
        for pair in combinations(sums, 2):  # the first two that share no axis
            both = crossed(self.informed, pair, cells, total)
            if both is not None:
                return both
        if not sums:
            return None
        one = sums[0]
        number = one.query.of(cells)
        if (number < 0).any():
            return None
        possible = np.bincount(number, minlength=one.query.size) > 0
        return number.astype(np.int32), rounded_sums(one.value[0], total, possible)


def units_of(informed: Informed, constraints: Constraints) -> CountedUnits | None:
    """The units of the leaves, where the workload counts them."""
    allotment = informed.measurements.allotment
    return CountedUnits.of(allotment.workload, constraints, len(allotment.spine.levels) - 1)


def told_moments(informed: Informed, constraints: Constraints) -> Ints:
    """The moments of the leaves here, zeros where no units are counted."""
    units = units_of(informed, constraints)
    return np.zeros((2, 4), np.int64) if units is None else moments(informed, units)
