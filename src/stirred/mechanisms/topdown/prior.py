"""Add to the solve what mode guided knows: sums fitted first, and counts of units as a prior for persons."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.estimate.whole_tree import LEAVES_PER_CHUNK, TreeEstimate
from stirred.mechanisms.topdown.histogram import Query
from stirred.mechanisms.topdown.rules import Constraints
from stirred.mechanisms.topdown.solve.parent import (
    NOTHING,
    SUMS,
    WEIGHTS,
    HeldSums,
    LeafPrior,
    ParentProblem,
    build_no_prior,
    build_problem,
    hold_more,
    list_sums,
    solve,
)
from stirred.mechanisms.topdown.solve.root import solve_root
from stirred.mechanisms.topdown.solve.rounding import FREE, SNAP_DISTANCE, keep_sums, round_network
from stirred.mechanisms.topdown.workload import Workload

# Units of every leaf as prior knowledge of its persons, with a spread that is estimated from the noisy data.
#
# Counts of units by kind are invariants, so whatever is computed from them and from noisy answers is post-processing.
# Persons of kind a (households, a type of group quarters) in leaf b of parent p have the prior mean
# $M_b = P_a n_b / N_p$, with $P_a$ the parent's persons and $n_b / N_p$ the leaf's share of its units, and the
# variance $\kappa M_b + \beta M_b^2$. The spread β comes from second moments: the squared difference of a noisy count
# from its prior mean, less the known variance of the noise. It is estimated for the whole tree without outliers, and from
# there for each parent with all its leaves (``estimate_spread``): homes stand empty in some block groups and not in others.
#
# Who the persons are has no prior. Drawing the cells of a leaf to the mix of its parent makes the mean error of a
# group smaller and erases enclaves, however the strength is chosen: what tells a small enclave from noise is the
# noisy answer alone, so less error on average is paid for by those who live apart.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
HOMES, QUARTERS = 0, 1  # units that may be empty, and units that always hold somebody
# What is taken for β before anything is seen, and how much that weighs: 2 / weight is its variance.
PRIOR_MOMENTS = np.array([[0.02, 5_000.0], [1.0, 2.0]])
SPREAD_LIMITS = (0.0025, 4.0)  # of β
OUTLIER_VARIANCES = 16.0  # a squared difference of so many variances is an outlier and is dropped
MOMENTS_PER_UNIT = (
    1 << 16
)  # moments are whole multiples of 1/FINE, so that their sum is the same in any order


@dataclass(frozen=True, slots=True)
class LeafUnits:
    """The numbers of units of every leaf, by answer of the query that sorts them."""

    query: Query
    leaf: Ints  # leaves × answers
    kind: Ints  # answer → HOMES or QUARTERS

    @staticmethod
    def of(workload: Workload, constraints: Constraints, last: int) -> "LeafUnits | None":
        """Return the units that a rule about facilities counts, or None where there is no such rule."""
        for rule in workload.rules:
            if rule.kind != "facilities" or not last:
                continue
            held = next(one for one in constraints.held if one.name == rule.name)
            lower = np.array(rule.lower or (0,) * held.query.size)
            # Bounds above the leaves may be tighter than their units allow (``tighten_bounds``), those of leaves are not.
            return LeafUnits(
                held.query, held.high[last] // rule.largest, np.where(lower > 0, QUARTERS, HOMES)
            )
        return None

    def sum_above(self, parent: Ints, parents: int) -> Ints:
        """Return the units of the leaves' parents (parents × answers), which are numbered from 0."""
        result = np.zeros((parents, self.leaf.shape[1]), np.int64)
        np.add.at(result, parent, self.leaf)
        return result


@dataclass(frozen=True, slots=True)
class UnitSpread:
    """The spread β of leaves' persons around their prior means, by kind."""

    totals: Floats

    @staticmethod
    def of(moments: Ints) -> "UnitSpread":
        """Estimate the spread from summed moments (kinds × 2); without data, return the prior values.

        >>> UnitSpread.of(np.zeros((2, 2), np.int64)).totals.tolist()
        [0.02, 1.0]
        """
        seen, (value, weight) = moments / MOMENTS_PER_UNIT, PRIOR_MOMENTS.T
        return UnitSpread(np.clip((seen[:, 0] + value * weight) / (seen[:, 1] + weight), *SPREAD_LIMITS))

    def arrays(self) -> dict[str, Floats]:
        """Return the numbers by name."""
        return {"scatter": self.totals}


def sum_moments(informed: TreeEstimate, units: LeafUnits) -> Ints:
    """Sum numerator and denominator of β by kind over the leaves, as whole multiples of a unit."""
    algebra, leaves = informed.algebra, informed.leaves
    result = np.zeros((2, 2), np.int64)
    if not informed.levels:
        return result
    level = informed.levels[-1]
    answer, above_units = units.query.of(algebra.layout[:, 0]), units.sum_above(leaves.parent, len(level.b))
    for pattern in leaves.patterns:
        for a in np.unique(answer[pattern.act]):
            inside = np.flatnonzero(answer[pattern.act] == a)
            rows = pattern.act[inside]
            spread = algebra.S * float(pattern.C[0][np.ix_(inside, inside)].sum())
            for at in range(0, len(pattern.members), LEAVES_PER_CHUNK):
                part = slice(at, at + LEAVES_PER_CHUNK)
                members, b = pattern.members[part], pattern.b[part][:, inside]
                parent = leaves.parent[members]
                share = units.leaf[members, a] / np.maximum(above_units[parent, a], 1)
                # A leaf that has all units of its parent differs from it by the noise alone.
                part_of = (share > 0) & (share < 1)
                above = level.b[parent[part_of]][:, rows]
                result[units.kind[a]] += _sum_total_moments(
                    whole_tree.sum_in_order(b[part_of]),
                    share[part_of] * whole_tree.sum_in_order(above),
                    spread,
                )
    return result


def _sum_total_moments(total: Floats, mean: Floats, spread: float) -> Ints:
    """Return the two sums for β: squared differences beyond the mean regressed on squared means."""
    squared = (total - mean) ** 2
    used = (mean > 0) & (squared <= OUTLIER_VARIANCES * (spread + mean + 0.05 * mean**2))
    weight = np.where(used, mean**2 / (spread + np.abs(mean) + 0.02 * mean**2) ** 2, 0.0)
    return np.array([_round_moments(weight * (squared - spread - mean)), _round_moments(weight * mean**2)])


def _round_moments(values: Floats) -> int:
    return int(np.rint(MOMENTS_PER_UNIT * whole_tree.sum_in_order(values)).astype(np.int64).sum())


# Fit some sums of the children first, then the cells with these sums held.
#
# Non-negativity lifts near-empty cells, and where a marginal has many of them its sum is lifted too: that bias enters
# at
# the root and stays in every level below. The sums themselves are far from zero, so they are fitted without it, to
# their
# best linear unbiased estimates $\hat s_c$ with the variances of the estimate upward,
# $\min \sum_c (s_{cg} - \hat s_{cg})^2 / v_{cg}$ with $\sum_c s_c$ the parent's own sums and every rule kept.

MIN_VARIANCE = 1e-6  # variances below this are rounding: the sum follows from an invariant
MAX_VARIANCE_RATIO = (
    0.1  # sums are held where their variance is below this part of that of their cells together
)


def list_first_queries(informed: TreeEstimate, depth: int) -> tuple[Query, ...]:
    """Return the queries of the first of several passes that the workload lists for a level."""
    allotment = informed.measurements.allotment
    passes = allotment.workload.passes.get(allotment.spine.levels[depth], ())
    if len(passes) < 2 or "*" in passes[0]:
        return ()
    found = tuple(allotment.workload.query(name) for name in passes[0])
    return tuple(query for query in found if query.size > 1)  # a total is fitted well among the cells


def list_coarser(informed: TreeEstimate, query: Query) -> tuple[Query, ...]:
    """Return the marginals of a query, down to the total; their errors are smaller than those of its sums."""
    histogram = informed.measurements.allotment.workload.histogram
    return tuple(
        histogram.query(" × ".join(parts) or "total", parts)
        for size in range(len(query.parts))
        for parts in combinations(query.parts, size)
    )


@dataclass(frozen=True, slots=True)
class QuerySums:
    """The unbiased sums of a query in every geounit of a level, and their variances (both nodes × answers)."""

    query: Query
    value: Floats
    variance: Floats
    marginals: tuple["QuerySums", ...] = ()

    @staticmethod
    def of(informed: TreeEstimate, depth: int, query: Query, *, alone: bool = False) -> "QuerySums":
        """Compute the sums from the tree estimate, with all marginals of the query, or ``alone``."""
        algebra, level = informed.algebra, informed.levels[depth]
        index = query.of(algebra.layout.ravel())
        value = np.zeros((len(level.e), query.size))
        flat = level.e.reshape(len(level.e), index.size)
        for g in range(query.size):
            value[:, g] = whole_tree.sum_in_order(np.ascontiguousarray(flat[:, index == g]))
        recode = algebra.recode(query)
        by_group = whole_tree.variances(algebra, level.C, recode, algebra.find_kept_axes(query))
        group = np.zeros(query.size, np.int64)
        square = index.reshape(algebra.K, algebra.S)
        for k in range(algebra.K):
            if recode[k] >= 0:
                group[square[k]] = recode[k]
        marginals = () if alone else list_coarser(informed, query)
        below = tuple(QuerySums.of(informed, depth, one, alone=True) for one in marginals)
        return QuerySums(query, value, by_group[:, group], below)


def is_clear(sums: tuple[QuerySums, ...], children: Ints, cells: Ints, problem: ParentProblem) -> bool:
    """Return whether the tree knows these sums much better than the fit of the cells; uses public numbers.

    The tree estimate does not know which cells are empty; the parent does. Where few cells are left, their own
    measurements with non-negativity say more about a sum than the tree, and holding it would add error.
    """
    whole = problem.groups.max(axis=1) + 1 == len(cells)
    sharpest = float(problem.weights[:, whole].sum(axis=1).max(initial=0.0))
    for one in sums:
        number = one.query.of(cells)
        count = np.bincount(number[number >= 0], minlength=one.query.size)
        if (one.variance[children][:, count > 0] * sharpest > MAX_VARIANCE_RATIO * count[count > 0]).any():
            return False
    return True


def fit_sums(
    sums: tuple[QuerySums, ...], children: Ints, cells: Ints, problem: ParentProblem
) -> tuple[HeldSums, ...]:
    """Fit the sums of a parent's children on the coarsest cells that sums and rules distinguish."""
    numbers = [one.query.of(cells) for one in sums]
    pattern = np.concatenate([problem.allowed, problem.held, *(n[None] for n in numbers)])
    _, first, block = np.unique(pattern.T, axis=0, return_index=True, return_inverse=True)
    block = block.ravel()
    rows, weights, linear = [], [], np.zeros((len(children), len(first)))
    for one in (part for own in sums for part in (own, *own.marginals)):
        number = one.query.of(cells)[first]
        for g in np.unique(number[number >= 0]):
            inside = number == g
            weight = 1.0 / np.maximum(one.variance[children, g], MIN_VARIANCE)
            rows.append(np.where(inside, 0, -1).astype(np.int32))
            weights.append(weight)
            linear[:, inside] += (weight * one.value[children, g])[:, None]
    coarse = build_problem(
        np.bincount(block, problem.parent, minlength=len(first)).astype(np.float64),
        linear,
        problem.allowed[:, first],
        np.stack(rows),
        np.stack(weights, axis=1),
        np.arange(len(children)),
        tuple(HeldSums(held.groups[first], held.low, held.high) for held in list_sums(problem)),
    )
    x = solve(coarse).x
    found = []
    for number in numbers:
        numbered, place = np.unique(number, return_inverse=True)
        groups = np.where(number >= 0, place.ravel(), -1).astype(np.int32)
        value = np.zeros((len(children), len(numbered)))
        np.add.at(value.T, place.ravel()[first], x.T)
        found.append(HeldSums(groups, value, value))
    return tuple(found)


def cross_partitions(held: tuple[HeldSums, ...]) -> NDArray[np.int32]:
    """Return the partition of the cells that all these sums distinguish."""
    stacked = np.stack([one.groups for one in held], axis=1)
    return np.unique(stacked, axis=0, return_inverse=True)[1].ravel().astype(np.int32)


def round_sums(value: Floats, total: float | None, possible: NDArray[np.bool_]) -> Floats:
    """Round the sums of the root by largest remainders, so that they add up to its total.

    >>> round_sums(np.array([1.4, 2.3, -0.7]), 3.0, np.array([True, True, True])).tolist()
    [1.0, 2.0, 0.0]
    """
    value = np.where(possible, np.maximum(value, 0.0), 0.0)
    total = float(np.rint(value.sum())) if total is None else total
    value = (
        value * (total / value.sum()) if value.sum() > 0 else np.where(possible, total / possible.sum(), 0.0)
    )
    floor = np.floor(value + 1e-9)
    order = np.argsort(-(value - floor), kind="stable")
    floor[order[: int(total - floor.sum())]] += 1.0
    return floor


def cross_sums(
    informed: TreeEstimate, sums: tuple[QuerySums, QuerySums], cells: Ints, total: float | None
) -> tuple[NDArray[np.int32], Floats] | None:
    """Cross two queries on the root's cells; return the cells and whole sums that keep both queries' sums.

    The tree knows the sums of each query well and those of both together badly, so the latter come from a fit of the
    cells that holds the former. None where the queries share an axis or leave cells out.
    """
    both = [one.query for one in sums]
    numbers = [query.of(cells) for query in both]
    shared = any(both[0].counts_for(i) and both[1].counts_for(i) for i in range(len(both[0].factors)))
    if shared or any((number < 0).any() for number in numbers):
        return None
    possible = [
        np.bincount(number, minlength=query.size) > 0 for number, query in zip(numbers, both, strict=True)
    ]
    first = round_sums(sums[0].value[0], total, possible[0])
    second = round_sums(sums[1].value[0], float(first.sum()), possible[1])
    measurements, node = informed.measurements, np.zeros(1, np.int64)
    level, place = measurements.allotment.find_holders(0, node)
    weights = measurements.solve_weights(
        int(measurements.allotment.start[int(level[0])][int(place[0])]), int(level[0])
    )
    queries = [query for query in measurements.allotment.workload.queries if query.name in weights]
    held = HeldSums(numbers[1].astype(np.int32), second[None], second[None])
    x = solve_root(
        informed.linear(0, node, cells)[0],
        np.stack([np.unique(query.of(cells), return_inverse=True)[1].ravel() for query in queries]).astype(np.int32),
        np.array([weights[query.name] for query in queries]),
        numbers[0].astype(np.int32), first, (held,),
    ).x[0]  # fmt: skip
    joint = numbers[1] * both[0].size + numbers[0]
    shape, size = (both[1].size, both[0].size), both[0].size * both[1].size
    table = np.zeros(size)
    np.add.at(table, joint, x)
    exists = np.bincount(joint, minlength=size).reshape(shape) > 0
    free = np.full((shape[0], 1), FREE)
    one = np.zeros(shape[1], np.int32)
    kept = keep_sums(first.astype(np.int64), one, -free, free, total_low=second, total_high=second)
    found = np.empty(shape, np.int64)
    if not round_network(table.reshape(shape), exists, kept, False, SNAP_DISTANCE, False, found):
        return None
    return joint.astype(np.int32), found.ravel().astype(np.float64)


# Add the prior knowledge of a parent's leaves to its least-squares problem.
#
# The objective gets $(\sum_j x_{bj} - M_b)^2 / V_b$ for the persons of each kind, and a leaf whose unbiased estimate is
# far from its prior mean is an outlier: its prior weighs less, as with Student's t. The variance is
# $V_b = \kappa M_b + \beta_p M_b^2$ with a κ well above what blocks show, so that crowded and mostly vacant blocks are
# little drawn. The kernel ``add_prior`` of ``solve.parent`` computes all this.


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
                persons[pattern.members, a] = whole_tree.sum_in_order(pattern.b[:, inside])
                variance[pattern.members, a] = algebra.S * pattern.C[0][np.ix_(inside, inside)].sum()
        return UnitPrior(units, scatter, persons, variance)

    def arrays(self, cells: Ints) -> LeafPrior:
        """Return the same as arrays for compiled code, with the kind of each of these cells."""
        kind = self.units.kind
        return LeafPrior(
            np.require(self.units.leaf, np.int64, ["C", "W"]),
            self.persons,
            self.variance,
            self.scatter.totals[kind],
            np.require(self.units.query.of(cells), np.int64, ["C", "W"]),
        )


# What the mode guided adds to the top-down solve: sums held above the leaves, prior knowledge at the leaves.


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

    def hold_sums(self, depth: int, children: Ints, cells: Ints, problem: ParentProblem) -> ParentProblem:
        """Return the problem of a parent with its sums held, where the tree knows them much better than the cells."""
        sums = self.sums.get(depth)
        if not sums or problem.crowded or not is_clear(sums, children, cells, problem):
            return problem
        held = fit_sums(sums, children, cells, problem)
        return hold_more(problem, held)._replace(aims=cross_partitions(held))

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
    return np.zeros((2, 2), np.int64) if units is None else sum_moments(informed, units)
