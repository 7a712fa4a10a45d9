r"""Round fractional histograms to integers that keep every sum (controlled rounding).

Each cell is rounded down or up; the children still add up to the parent in every cell, and every child's total and
every held sum stay within one of their fractional values, so integer bounds that held before hold after. Child → held
group → child total is nested and crosses the parent's cells once: a network, hence the linear relaxation is integral
(Cox 1987) and minimum-cost flow is exact. The cost is the L1 distance, totals first.

Ties are broken by rule: arcs are numbered child by child, cell by cell within a child, then groups, then totals; of two
ways of equal cost the search of ``flow`` takes the one it reaches first in that order. The result does not depend on
threads, on what else is rounded, or on which machine of the same kind is used.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.solve.flow import solve_flow

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SNAP_DISTANCE = 2e-4  # a sum this near to an integer is meant to be that integer; see proof.md for why a rounding still exists
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
