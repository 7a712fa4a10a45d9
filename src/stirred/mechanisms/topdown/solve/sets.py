r"""Round with the query sets of the 2020 production.

Every cell is rounded down or up, and the sums of nested queries come as near as they can to the rounded sums of the
fractions f: $\min \sum_q \lVert A_q b - \mathrm{round}(A_q f) \rVert_1 + \sum_i (1 - 2 f_i) b_i$ with $b_i \in \{0, 1\}$.
For persons the queries are hhgq, hhgq × hispanic, hhgq × hispanic × cenrace and all axes; for units there is the second
sum alone. The total comes first where a level has two passes, and is one of the queries where it has one. The sets are
nested and cross the parent's cells once, so this is a network with convex costs.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.solve.rounding import Network, _set_greedy_potentials
from stirred.mechanisms.topdown.workload.histogram import Histogram

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
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
