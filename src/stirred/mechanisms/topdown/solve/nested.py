r"""Round where more than groups and totals is wanted: aimed sums inside the groups, or groups that are all exact.

cell → aimed sum → held group → total of the child: aimed sums are rounded to a neighbouring whole number, the nearer one
if possible, inside the held groups, whose bounds and totals are kept as in ``rounding``. The layers are nested, so the
problem is still a network.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.solve.problem import ParentProblem
from stirred.mechanisms.topdown.solve.rounding import (
    SNAP_DISTANCE,
    TOTAL_WEIGHT,
    Network,
    _compute_step_cost,
    _set_greedy_potentials,
    build_network,
    round_network,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
