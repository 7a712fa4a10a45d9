"""TopDown's solve and rounding of one parent written plainly, with NumPy: the same sums in the same order.

The compiled kernels are the code; here are their problems once more, step by step. Only the innermost loops are shared:
``descend``, which other tests hold against PIQP, and ``solve_flow``, held against HiGHS.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.solve.crossing import sum_held
from stirred.mechanisms.topdown.solve.descent import (
    NEVER_COUNT,
    Bounds,
    Nesting,
    descend,
    lay_back,
    lay_out,
    nest_queries,
)
from stirred.mechanisms.topdown.solve.parent import (
    MAX_ADDITIONS,
    MIN_LARGE_CELLS,
    HeldSums,
    ParentProblem,
    Solution,
    list_sums,
    merge_equal_queries,
    update_multipliers,
)
from stirred.mechanisms.topdown.solve.rounding import (
    AIM_WEIGHT,
    FREE,
    SNAP_DISTANCE,
    TOTAL_WEIGHT,
    KeptSums,
    solve_flow,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
Bools = NDArray[np.bool_]


def sum_hessian_rows(groups: Groups, weights: Floats, diagonal: Floats) -> Floats:
    """Return the row sums of the Hessian, largest over classes: a diagonal that dominates it."""
    n = groups.shape[1]
    d = np.tile(diagonal[:, None], (1, n))
    for q, row in enumerate(groups):
        inside = row >= 0
        size = np.bincount(row[inside], minlength=1)
        d[:, inside] += weights[:, q, None] * size[row[inside]]
    result: Floats = d.max(axis=0)
    return result


@dataclass(frozen=True, slots=True)
class ProblemLayout:
    """A problem in the memory layout of the compiled solver."""

    linear: Floats
    queries: Nesting
    weights: Floats
    diagonal: Floats
    curvature: float  # the least one in any direction

    @staticmethod
    def out(problem: ParentProblem, gid: Groups, w: Floats, diag: Floats) -> "ProblemLayout":
        """Lay a problem out, its queries from fine to coarse."""
        C, n = problem.linear.shape
        size = gid.max(axis=1).astype(np.int64) + 1
        order = np.argsort(-size, kind="stable")
        Q, K = len(gid), (C + 3) // 4
        queries = (
            np.empty(Q, np.int64),
            np.zeros(Q + 1, np.int64),
            np.empty(Q, np.int64),
            np.empty((Q, n), np.int32),
        )
        nest_queries(gid[order], size[order], *queries)
        linear = np.full((K, 4 * n), -NEVER_COUNT)
        lay_out(problem.linear, problem.allowed, linear)
        # Padded children weigh nothing and hold nothing.
        weights, diagonal = np.zeros((4 * K, Q)), np.zeros(4 * K)
        weights[:C], diagonal[:C] = w[problem.classes][:, order], diag[problem.classes]
        by_query = np.ascontiguousarray(weights.reshape(K, 4, Q).transpose(0, 2, 1))
        return ProblemLayout(linear, queries, by_query, diagonal.reshape(K, 4), float(diag.min()))

    def descend(
        self, problem: ParentProblem, X: Floats, d: Floats, bounds: Bounds, goal: float, limit: int
    ) -> tuple[int, float]:
        """Minimise in place from X, with held sums in ``bounds``; return products with H, and the gap."""
        into, *sides, mu = bounds
        m = sides[0].shape[2]
        held = np.where(into < 0, m, into).astype(np.int32)
        laid = [np.zeros((len(into), len(self.linear), 4 * m)) for _ in sides]
        for side, out in zip(sides, laid, strict=True):
            for r in range(len(into)):
                lay_out(side[r], np.ones(side[r].shape, bool), out[r])
        start, result = np.full(self.linear.shape, -NEVER_COUNT), np.empty(self.linear.shape)
        lay_out(X, problem.allowed, start)
        spent, gap = descend(
            result, start, self.linear, problem.parent, self.queries, self.weights, self.diagonal, np.repeat(1.0 / d, 4),
            (held, laid[0], laid[1], laid[2], mu), self.curvature, goal, limit,
        )  # fmt: skip
        lay_back(result, X)
        return spent, gap


def solve_plainly(
    problem: ParentProblem, *, tolerance: float = 2e-3, limit: int = 4000, rounds: int = 60
) -> Solution:
    """The optimum to within ``tolerance`` persons, certified, as ``solve`` has it."""
    C, n = problem.linear.shape
    families = list_sums(problem)
    gid, w, diag = merge_equal_queries(problem.groups, problem.weights)
    d = sum_hessian_rows(gid, w, diag)
    weakest = float(diag.min()) if diag.min() > 0 else float(problem.weights.max())
    # Beyond some thousand cells the tolerance is per child and cell: a joint tolerance for 50,000 cells is not needed.
    goal = 0.5 * weakest * tolerance * tolerance * (C * n / 400.0 if n > MIN_LARGE_CELLS else 1.0)
    X = problem.start.copy() if len(problem.start) else _find_start(problem, d)
    laid = ProblemLayout.out(problem, gid, w, diag)
    # Work, not time, limits the largest problems, so that the result does not depend on the machine.
    limit = min(limit, max(100, int(MAX_ADDITIONS / (X.size * 2 * len(gid)))))
    crowded = problem.crowded
    nothing = (
        np.zeros((0, n), np.int32),
        np.zeros((0, C, 1)),
        np.zeros((0, C, 1)),
        np.zeros((0, C, 1)),
        np.zeros(0),
    )
    iterations, gap = laid.descend(problem, X, d, nothing, goal, 0 if crowded else limit)
    violation = measure_violation(X, families)
    method = "fista"
    if violation > 1e-6 or crowded:
        method = "fista + multipliers"
        held, low, high, mu = _stack_held([_find_binding(one, problem.parent) for one in families], C, n, d)
        multiplier = np.zeros_like(low)
        heavy = d.copy()
        for r in range(len(held)):
            inside = held[r] >= 0
            heavy[inside] += mu[r] * np.bincount(held[r][inside], minlength=1)[held[r][inside]]
        for _ in range(min(rounds, 20) if crowded else rounds):
            steps = 60 if crowded else min(limit, 1000)
            more, gap = laid.descend(problem, X, heavy, (held, low, high, multiplier, mu), goal, steps)
            iterations += more
            violation = update_multipliers(X, held, low, high, multiplier, mu)
            if violation <= 1e-4 and gap <= goal:
                break
    return Solution(
        x=X,
        gap=float(gap),
        violation=float(violation),
        iterations=int(iterations),
        method=method,
        distance=float(np.sqrt(2.0 * max(gap, 0.0) / weakest / C)) if weakest > 0 else np.inf,
    )


def measure_violation(X: Floats, held: Sequence[HeldSums]) -> float:
    """Return how far the furthest held sum is outside its bounds."""
    worst = 0.0
    for one in held:
        sums = sum_held(X, one)
        worst = max(
            worst, float((one.low - sums).max(initial=0.0)), float((sums - one.high).max(initial=0.0))
        )
    return worst


def _find_binding(held: HeldSums, parent: Floats) -> HeldSums:
    """Return only the groups whose bounds can be active: the others would slow the solver down."""
    inside = held.groups >= 0
    sums = np.bincount(held.groups[inside], parent[inside], minlength=held.low.shape[1])
    matters = np.asarray((held.low > 0).any(axis=0) | (held.high < sums).any(axis=0))
    return HeldSums(
        np.where(inside & matters[held.groups], held.groups, -1).astype(np.int32), held.low, held.high
    )


def _find_start(problem: ParentProblem, d: Floats) -> Floats:
    """Return the starting point: the measurement divided by the metric; a projection makes it feasible."""
    shares = problem.allowed / np.maximum(problem.allowed.sum(axis=0), 1)
    linear = (
        np.asfortranarray(problem.linear) if problem.by_column else problem.linear
    )  # NumPy adds as they lie
    result: Floats = shares * problem.parent + (linear - linear.mean(axis=0)) / d
    return result


def _stack_held(held: Sequence[HeldSums], C: int, n: int, d: Floats) -> tuple[Groups, Floats, Floats, Floats]:
    size = max(one.low.shape[1] for one in held)
    groups = np.full((len(held), n), -1, np.int32)
    low = np.full((len(held), C, size), -FREE)
    high = np.full((len(held), C, size), FREE)
    mu = np.empty(len(held))
    for r, one in enumerate(held):
        groups[r] = one.groups
        low[r, :, : one.low.shape[1]] = one.low
        high[r, :, : one.high.shape[1]] = one.high
        # As stiff as the data along the same direction: a few rounds are enough and conditioning stays good.
        inside = one.groups >= 0
        if not inside.any():
            mu[r] = 1.0
            continue
        mu[r] = float(np.median(d[inside])) / max(1.0, float(np.bincount(one.groups[inside]).max())) * 4.0
    return groups, low, high, mu


@dataclass(frozen=True, slots=True)
class Network:
    """The rounding problem as a flow: cells as arcs from the parent's cells to the children's groups."""

    tail: Ints
    head: Ints
    capacity: Ints
    cost: Floats
    supply: Ints
    potential: Floats
    child: Ints  # of the arcs that stand for cells
    cell: Ints
    floor: Ints


def build_network(
    x: Floats,
    parent: Ints,
    allowed: Bools,
    groups: Groups,
    low: Floats,
    high: Floats,
    *,
    total_low: Floats | None = None,
    total_high: Floats | None = None,
    column_of: Ints | None = None,
    snap: float = SNAP_DISTANCE,
    wide: bool = False,
) -> Network:
    """Build the network for C children, n cells and the partition ``groups`` into m held groups.

    Every cell belongs to a group (one group for all when nothing is held). ``low`` and ``high`` bound the groups of
    each child, ``total_low`` and ``total_high`` its total. With ``parent`` of length 1 and several cells, all cells
    share one supply: the root, whose only sum is its total. A ``is_wide`` network lets a cell move further than to its
    floor or ceiling, at the same cost per step: it exists whenever the sums agree at all.
    """
    C, n = x.shape
    m = low.shape[1]
    columns = len(parent)
    if column_of is None:
        column_of = np.arange(n) if columns == n else np.zeros(n, np.int64)
    floor = np.floor(x + 1e-9).astype(np.int64)
    fraction = np.clip(x - floor, 0.0, 1.0)
    child, cell = np.nonzero(allowed)
    if wide:
        return _build_wide(x, parent, child, cell, column_of, groups, low, high, total_low, total_high)
    left: Ints = parent.astype(np.int64).copy()
    np.subtract.at(left, column_of, floor.sum(axis=0))
    cost = 1.0 - 2.0 * fraction[child, cell]
    group_sum, group_floor = np.zeros((C, m)), np.zeros((C, m), np.int64)
    np.add.at(group_sum.T, groups, x.T)
    np.add.at(group_floor.T, groups, floor.T)
    low_group = np.maximum(np.floor(group_sum + snap), low).astype(np.int64) - group_floor
    high_group = np.minimum(np.ceil(group_sum - snap), high).astype(np.int64) - group_floor
    total, total_floor = group_sum.sum(axis=1), group_floor.sum(axis=1)
    lowest = np.floor(total + snap) if total_low is None else np.maximum(np.floor(total + snap), total_low)
    highest = np.ceil(total - snap) if total_high is None else np.minimum(np.ceil(total - snap), total_high)
    low_total = lowest.astype(np.int64) - total_floor
    high_total = highest.astype(np.int64) - total_floor
    # Nodes: columns, then (child, group), then children, then the sink.
    first_group, first_child = columns, columns + C * m
    sink = first_child + C
    supply = np.zeros(sink + 1, np.int64)
    supply[:columns] = left
    # Lower bounds are moved into the supplies; what remains has capacity high − low.
    np.add.at(supply, first_group + np.arange(C * m), -low_group.ravel())
    np.add.at(supply, first_child + np.repeat(np.arange(C), m), low_group.ravel())
    supply[first_child + np.arange(C)] -= low_total
    supply[sink] = -(left.sum() - low_total.sum())
    tail = np.concatenate([column_of[cell], first_group + np.arange(C * m), first_child + np.arange(C)])
    head = np.concatenate(
        [first_group + child * m + groups[cell], first_child + np.repeat(np.arange(C), m), np.full(C, sink)]
    )
    capacity = np.concatenate(
        [np.ones(len(cell), np.int64), (high_group - low_group).ravel(), high_total - low_total]
    )
    group_cost = _compute_step_cost(group_sum.ravel(), (low_group + group_floor).ravel())
    total_cost = TOTAL_WEIGHT * _compute_step_cost(total, low_total + total_floor)
    costs = np.concatenate([cost, group_cost, total_cost])
    potential = np.zeros(sink + 1)
    _set_greedy_potentials(potential, column_of[cell], cost, left)
    return Network(tail, head, capacity, costs, supply, potential, child, cell, floor)


def _build_wide(
    x: Floats, parent: Ints, child: Ints, cell: Ints, column_of: Ints, groups: Groups, low: Floats,
    high: Floats, total_low: Floats | None, total_high: Floats | None,
) -> Network:  # fmt: skip
    """Build the network of cells from zero to the parent's count, with costs that rise."""
    C, m = low.shape
    columns, sink = len(parent), len(parent) + C * m + C
    floor = np.floor(x + 1e-9).astype(np.int64)[child, cell]
    fraction = np.clip(x[child, cell] - floor, 0.0, 1.0)
    size = int(parent.sum())
    low_group, high_group = (np.clip(bound, 0, size).astype(np.int64) for bound in (low, high))
    least, most = (
        (np.zeros(C) if total_low is None else total_low),
        (np.full(C, size) if total_high is None else total_high),
    )
    low_total, high_total = (np.clip(bound, 0, size).astype(np.int64) for bound in (least, most))
    node = columns + child * m + groups[cell]
    supply = np.zeros(sink + 1, np.int64)
    supply[:columns] = parent
    supply[columns : columns + C * m] -= low_group.ravel()
    np.add.at(supply, columns + C * m + np.repeat(np.arange(C), m), low_group.ravel())
    supply[columns + C * m : sink] -= low_total
    supply[sink] = low_total.sum() - size
    up = np.concatenate([node, node, node])
    tail = np.concatenate(
        [np.tile(column_of[cell], 3), columns + np.arange(C * m), columns + C * m + np.arange(C)]
    )
    head = np.concatenate([up, columns + C * m + np.repeat(np.arange(C), m), np.full(C, sink)])
    whole = parent[column_of[cell]]
    capacity = np.concatenate(
        [floor, np.ones_like(floor), whole, (high_group - low_group).ravel(), high_total - low_total]
    )
    cost = np.concatenate(
        [np.full(len(floor), -1.0), 1.0 - 2.0 * fraction, np.ones(len(floor)), np.zeros(C * m + C)]
    )
    zero = np.zeros((C, x.shape[1]), np.int64)
    return Network(
        tail, head, capacity, cost, supply, np.zeros(sink + 1), np.tile(child, 3), np.tile(cell, 3), zero
    )


def round_network(net: Network) -> Ints | None:
    """Solve the flow and return the rounding; None when no rounding keeps every sum."""
    flow, balanced = solve_flow(net.tail, net.head, net.capacity, net.cost, net.supply, net.potential.copy())
    if not balanced:
        return None
    result: Ints = net.floor.copy()
    arcs = len(net.cell)
    np.add.at(result, (net.child, net.cell), flow[:arcs])
    return result


def _compute_step_cost(value: Floats, base: Ints) -> Floats:
    """Return the cost of one unit above the lower end, negative if the value is nearer to the upper end."""
    result: Floats = np.clip(1.0 - 2.0 * (value - base), -1.0, 1.0)
    return result


def _set_greedy_potentials(potential: Floats, column: Ints, cost: Floats, left: Ints) -> None:
    """Set column potentials at which each column takes its cheapest cells."""
    order = np.lexsort((cost, column))
    starts = np.searchsorted(column[order], np.arange(len(left) + 1))
    ranked = cost[order]
    for j, count in enumerate(left):
        begin, end = starts[j], starts[j + 1]
        if end == begin:
            continue
        if count <= 0:
            potential[j] = ranked[begin] - 1.0
        elif count >= end - begin:
            potential[j] = ranked[end - 1] + 1.0
        else:
            # Between the last cell taken and the first one left out; ties leave some out of balance, repaired after.
            potential[j] = 0.5 * (ranked[begin + count - 1] + ranked[begin + count])


def build_nested_network(
    x: Floats,
    parent: Ints,
    allowed: Bools,
    aims: Groups,
    groups: Groups,
    low: Floats,
    high: Floats,
    *,
    total_low: Floats | None = None,
    total_high: Floats | None = None,
    snap: float = SNAP_DISTANCE,
) -> Network:
    """Build the network for C children and n cells, with aimed sums inside the ``groups``.

    An aimed sum is one of ``aims`` inside one of ``groups``.
    """
    C, n = x.shape
    pairs, place_of = np.unique(np.stack([groups, aims], axis=1), axis=0, return_inverse=True)
    fine: Ints = place_of.ravel()
    m, k = low.shape[1], len(pairs)
    floor = np.floor(x + 1e-9).astype(np.int64)
    fraction = np.clip(x - floor, 0.0, 1.0)
    child, cell = np.nonzero(allowed)
    left: Ints = parent.astype(np.int64) - floor.sum(axis=0)
    sums = [np.zeros((C, k)), np.zeros((C, m))]
    floors = [np.zeros((C, k), np.int64), np.zeros((C, m), np.int64)]
    for layer, place in enumerate((fine, groups.astype(np.int64))):
        np.add.at(sums[layer].T, place, x.T)
        np.add.at(floors[layer].T, place, floor.T)
    total, total_floor = sums[1].sum(axis=1), floors[1].sum(axis=1)
    lows = [np.floor(sums[0] + snap), np.maximum(np.floor(sums[1] + snap), low)]
    highs = [np.ceil(sums[0] - snap), np.minimum(np.ceil(sums[1] - snap), high)]
    lows.append(
        np.floor(total + snap) if total_low is None else np.maximum(np.floor(total + snap), total_low)
    )
    highs.append(
        np.ceil(total - snap) if total_high is None else np.minimum(np.ceil(total - snap), total_high)
    )
    # Nodes: cells of the parent, then (child, aimed sum), (child, group), children, and the sink.
    start = np.cumsum([n, C * k, C * m, C])
    sink = int(start[3])
    nodes = [start[0] + np.arange(C * k), start[1] + np.arange(C * m), start[2] + np.arange(C)]
    above = [
        (start[1] + np.arange(C)[:, None] * m + pairs[None, :, 0]).ravel(),
        start[2] + np.repeat(np.arange(C), m),
        np.full(C, sink),
    ]
    supply = np.zeros(sink + 1, np.int64)
    supply[:n] = left
    weights = (AIM_WEIGHT, 1.0, TOTAL_WEIGHT)
    tail, head = [child * 0 + cell], [start[0] + child * k + fine[cell]]
    capacity, cost = [np.ones(len(cell), np.int64)], [1.0 - 2.0 * fraction[child, cell]]
    values, wholes = [*sums, total], [*floors, total_floor]
    for i in range(3):
        least = lows[i].astype(np.int64).ravel() - wholes[i].ravel()
        most = highs[i].astype(np.int64).ravel() - wholes[i].ravel()
        # Lower bounds are moved into the supplies; what remains has capacity high − low.
        np.subtract.at(supply, nodes[i], least)
        np.add.at(supply, above[i], least)
        tail.append(nodes[i])
        head.append(above[i])
        capacity.append(most - least)
        cost.append(weights[i] * _compute_step_cost(values[i].ravel(), lows[i].astype(np.int64).ravel()))
    supply[sink] -= int(supply.sum())
    potential = np.zeros(sink + 1)
    _set_greedy_potentials(potential, cell, cost[0], left)
    return Network(
        np.concatenate(tail), np.concatenate(head), np.concatenate(capacity), np.concatenate(cost), supply, potential,
        child, cell, floor,
    )  # fmt: skip


def round_plainly(x: Floats, allowed: Bools, kept: KeptSums, nested: bool, values: Ints) -> bool:
    """What ``round_children`` does."""
    low, high, supply = kept.low, kept.high, kept.supply
    if low.shape[1] > 1 and np.array_equal(low, high):
        return _round_by_group(x, allowed, kept, values)
    totals = {"total_low": kept.total_low, "total_high": kept.total_high}
    tries = [
        build_network(x, supply, allowed, kept.groups, low, high, snap=snap, wide=wide, **totals)
        for snap, wide in ((2e-4, False), (1e-2, False), (0.0, False), (0.0, nested))
    ]
    if len(kept.aims):
        tries.insert(0, build_nested_network(x, supply, allowed, kept.aims, kept.groups, low, high, **totals))
    for net in tries:
        found = round_network(net) if (net.capacity >= 0).all() else None
        if found is not None:
            values[:] = found
            return True
    return False


def _round_by_group(x: Floats, allowed: Bools, kept: KeptSums, values: Ints) -> bool:
    """Each exact group separately, as a small transport problem between cells and children."""
    values[:] = 0
    for group in range(kept.low.shape[1]):
        columns, rows = np.flatnonzero(kept.groups == group), np.flatnonzero(kept.low[:, group] > 0)
        part, one = np.ix_(rows, columns), kept.low[rows, group][:, None]
        for wide in (False, True) if len(rows) else ():
            net = build_network(
                x[part],
                kept.supply[columns],
                allowed[part],
                np.zeros(len(columns), np.int32),
                one,
                one,
                wide=wide,
            )
            found = round_network(net) if (net.capacity >= 0).all() else None
            if found is not None:
                values[part] = found
                break
        else:
            if len(rows):
                return False
    return True
