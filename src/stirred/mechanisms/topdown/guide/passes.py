r"""Fit some sums of the children first, then the cells with these sums held.

Non-negativity lifts near-empty cells, and where a marginal has many of them its sum is lifted too: that bias enters at
the root and stays in every level below. The sums themselves are far from zero, so they are fitted without it, to their
best linear unbiased estimates $\hat s_c$ with the variances of the estimate upward,
$\min \sum_c (s_{cg} - \hat s_{cg})^2 / v_{cg}$ with $\sum_c s_c$ the parent's own sums and every rule kept.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.solve.problem import FREE, HeldSums, ParentProblem, solve
from stirred.mechanisms.topdown.solve.root import solve_root
from stirred.mechanisms.topdown.solve.rounding import build_network
from stirred.mechanisms.topdown.solve.rounding import round_network as whole_numbers
from stirred.mechanisms.topdown.workload.histogram import Query

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
            value[:, g] = gls.sum_in_order(np.ascontiguousarray(flat[:, index == g]))
        recode = algebra.recode(query)
        by_group = gls.variances(algebra, level.C, recode, algebra.find_kept_axes(query))
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
    pattern = np.concatenate(
        [problem.allowed, *(held.groups[None] for held in problem.held), *(n[None] for n in numbers)]
    )
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
    coarse = ParentProblem(
        np.bincount(block, problem.parent, minlength=len(first)).astype(np.float64),
        linear,
        problem.allowed[:, first],
        np.stack(rows),
        np.stack(weights, axis=1),
        np.arange(len(children), dtype=np.int32),
        tuple(HeldSums(held.groups[first], held.low, held.high) for held in problem.held),
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
    net = build_network(
        table.reshape(shape), first.astype(np.int64), exists, np.zeros(shape[1], np.int32), -free, free,
        total_low=second, total_high=second,
    )  # fmt: skip
    found = whole_numbers(net) if (net.capacity >= 0).all() else None
    return None if found is None else (joint.astype(np.int32), found.ravel().astype(np.float64))
