"""Round fractional histograms to integers that keep every sum (controlled rounding)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.histogram import Histogram
from stirred.mechanisms.topdown.solve.networks import solve_flow
from stirred.mechanisms.topdown.solve.parent import ParentProblem

# Round fractional histograms to integers that keep every sum (controlled rounding).
#
# Each cell is rounded down or up; the children still add up to the parent in every cell, and every child's total and
# every held sum stay within one of their fractional values, so integer bounds that held before hold after. Child →
# held
# group → child total is nested and crosses the parent's cells once: a network, hence the linear relaxation is
# integral
# (Cox 1987) and minimum-cost flow is exact. The cost is the L1 distance, totals first.
#
# Ties are broken by rule: arcs are numbered child by child, cell by cell within a child, then groups, then totals; of
# two
# ways of equal cost the search of ``flow`` takes the one it reaches first in that order. The result does not depend
# on
# threads, on what else is rounded, or on which machine of the same kind is used.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
# a sum this near to an integer is meant to be that integer; see proof.md for why a rounding still exists
SNAP_DISTANCE = 2e-4
TOTAL_WEIGHT = (
    64.0  # totals before cells: more than any one exchange of cells can gain on a path of that length
)


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
    allowed: NDArray[np.bool_],
    groups: NDArray[np.int32],
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
    x: Floats, parent: Ints, child: Ints, cell: Ints, column_of: Ints, groups: NDArray[np.int32], low: Floats,
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


# Round where more than groups and totals is wanted: aimed sums inside the groups, or groups that are all exact.
#
# cell → aimed sum → held group → total of the child: aimed sums are rounded to a neighbouring whole number, the
# nearer one
# if possible, inside the held groups, whose bounds and totals are kept as in ``rounding``. The layers are nested, so
# the
# problem is still a network.

AIM_WEIGHT = 8.0  # aimed sums before cells, after totals


def build_nested_network(
    x: Floats,
    parent: Ints,
    problem: ParentProblem,
    groups: NDArray[np.int32],
    low: Floats,
    high: Floats,
    *,
    total_low: Floats | None = None,
    total_high: Floats | None = None,
    snap: float = SNAP_DISTANCE,
) -> Network:
    """Build the network for C children and n cells, with aimed sums inside the ``groups``.

    An aimed sum is one of the problem's ``aims`` inside one of ``groups``.
    """
    C, n = x.shape
    allowed, aims = problem.allowed, groups if problem.aims is None else problem.aims
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


def round_by_group(
    x: Floats, counts: Ints, allowed: NDArray[np.bool_], partition: NDArray[np.int32], exact: Floats
) -> Ints:
    """Round each exact group separately, as a small transport problem between cells and children."""
    values = np.zeros(x.shape, np.int64)
    for group in range(exact.shape[1]):
        columns = np.flatnonzero(partition == group)
        rows = np.flatnonzero(exact[:, group] > 0)
        if not len(rows):
            continue
        part = np.ix_(rows, columns)
        one = exact[rows, group][:, None]
        zero = np.zeros(len(columns), np.int32)
        for wide in (False, True):
            net = build_network(x[part], counts[columns], allowed[part], zero, one, one, wide=wide)
            found = round_network(net) if (net.capacity >= 0).all() else None
            if found is not None:
                break
        if found is None:
            raise InfeasibleError(
                "the children's exact sums do not add up to their parent's cells",
                why="the exact sums of the levels contradict each other",
                fix="check the constraints of the two levels, and report this if they agree",
            )
        values[part] = found
    return values


# Round with the query sets of the 2020 production.
#
# Every cell is rounded down or up, and the sums of nested queries come as near as they can to the rounded sums of the
# fractions f: $\min \sum_q \lVert A_q b - \mathrm{round}(A_q f) \rVert_1 + \sum_i (1 - 2 f_i) b_i$ with $b_i \in \{0,
# 1\}$.
# For persons the queries are hhgq, hhgq × hispanic, hhgq × hispanic × cenrace and all axes; for units there is the
# second
# sum alone. The total comes first where a level has two passes, and is one of the queries where it has one. The sets
# are
# nested and cross the parent's cells once, so this is a network with convex costs.

SET_AXES = ("hhgq", "hispanic", "cenrace")  # each set has one axis more than the one before
FIRST_PASS_WEIGHT = 2.0**20  # the weight of a pass before the others


def list_sets(histogram: Histogram, cells: Ints) -> list[Ints]:
    """Return the group of each cell in every set, finest first; none without these axes."""
    names = [axis.name for axis in histogram.axes]
    known = [name for name in SET_AXES if name in names]
    return [histogram.query("", tuple(known[:size])).of(cells) for size in range(len(known), 0, -1)]


def build_set_network(
    x: Floats,
    parent: Ints,
    allowed: NDArray[np.bool_],
    sets: Sequence[Ints],
    partition: NDArray[np.int32],
    low: Floats,
    high: Floats,
    *,
    total_low: Floats | None = None,
    total_high: Floats | None = None,
    first: bool = False,
) -> Network | None:
    """Build the network for C children; None where the sets are not nested in ``partition``.

    ``first`` puts the total before all other sums, as a pass of its own does.
    """
    C, n = x.shape
    floor = np.floor(x + 1e-9).astype(np.int64)
    fraction = np.where(allowed, np.clip(x - floor, 0.0, 1.0), 0.0)
    labels = [np.unique(one, return_inverse=True)[1].ravel() for one in sets]
    layers = [*labels, partition.astype(np.int64), np.zeros(n, np.int64)]
    weights = [*([1.0] * len(labels)), 0.0, FIRST_PASS_WEIGHT if first else 1.0]
    sizes = [int(layer.max(initial=0)) + 1 for layer in layers]
    sizes[-2] = low.shape[1]
    start = np.cumsum([n, *(C * size for size in sizes)])
    sink = int(start[-1])
    child, cell = np.nonzero(allowed)
    left: Ints = parent.astype(np.int64) - floor.sum(axis=0)
    supply = np.zeros(sink + 1, np.int64)
    supply[:n] = left
    tail, head = [cell], [start[0] + child * sizes[0] + layers[0][cell]]
    own = 1.0 - 2.0 * fraction[child, cell]
    if labels:  # all axes: each cell near to its own rounded fraction
        own += np.where(np.rint(fraction[child, cell]) > 0, -1.0, 1.0)
    capacity, cost = [np.ones(len(cell), np.int64)], [own]
    for i, (layer, size, weight) in enumerate(zip(layers, sizes, weights, strict=True)):
        up = np.zeros(size, np.int64)
        if i + 1 < len(layers):
            up[layer] = layers[i + 1]
            if (up[layer] != layers[i + 1]).any():
                return None
        room, near, floors = (_sum_groups(values, layer, size) for values in (allowed, fraction, floor))
        least, most = np.zeros((C, size), np.int64), np.rint(room).astype(np.int64)
        lowest, highest = (low, high) if i == len(layers) - 2 else (None, None)
        if i == len(layers) - 1:
            lowest, highest = (None if one is None else one[:, None] for one in (total_low, total_high))
        if lowest is not None:
            least = np.maximum(least, lowest - floors).astype(np.int64)
        if highest is not None:
            most = np.minimum(most, highest - floors).astype(np.int64)
        # Lower bounds are moved into the supplies; the rest costs −1 up to the rounded sum and +1 above it.
        nodes = start[i] + np.arange(C * size)
        above = np.full(C * size, sink)
        if i + 1 < len(layers):
            above = (start[i + 1] + np.arange(C)[:, None] * sizes[i + 1] + up[None]).ravel()
        np.subtract.at(supply, nodes, least.ravel())
        np.add.at(supply, above, least.ravel())
        below = np.clip(np.rint(near).astype(np.int64) - least, 0, np.maximum(most - least, 0))
        for part, price in ((below, -weight), (most - least - below, weight)):
            tail.append(nodes)
            head.append(above)
            capacity.append(part.ravel())
            cost.append(np.full(C * size, price))
    supply[sink] -= int(supply.sum())
    potential = np.zeros(sink + 1)
    _set_greedy_potentials(potential, cell, cost[0], left)
    return Network(
        np.concatenate(tail), np.concatenate(head), np.concatenate(capacity), np.concatenate(cost), supply, potential,
        child, cell, floor,
    )  # fmt: skip


def _sum_groups(values: NDArray[np.generic], layer: Ints, size: int) -> Floats:
    """Return sums of the cells of each group, by child."""
    result = np.zeros((len(values), size))
    np.add.at(result.T, layer, values.astype(float).T)
    return result
