"""The linear terms of a geounit for the top-down solve, from its own measurements (mode classic).

A geounit without its own measurement is represented by its children's measurements.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.noise import Measurements

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Targets(Protocol):
    """Linear terms $b = \\sum_q w_q A_q' y_q$ of geounits on chosen cells, the queries limited to ``only``."""

    measurements: Measurements

    def linear(self, depth: int, nodes: Ints, cells: Ints, only: frozenset[str] | None = None) -> Floats: ...


@dataclass(slots=True)
class Raw:
    """Classic: the geounit's own measurements, drawn for the needed cells only."""

    measurements: Measurements

    def linear(self, depth: int, nodes: Ints, cells: Ints, only: frozenset[str] | None = None) -> Floats:
        """Nodes × cells."""
        allotment = self.measurements.allotment
        whole = split(allotment, depth, nodes)
        if whole.any():
            rest = np.flatnonzero(~whole)
            result = np.zeros((len(nodes), len(cells)))
            result[rest] = self.linear(depth, nodes[rest], cells, only)
            for row in np.flatnonzero(whole):
                result[row] = summed(self.measurements, depth, int(nodes[row]), cells, only)
            return result
        level, node = allotment.holder(depth, nodes)
        result = np.zeros((len(nodes), len(cells)))
        for d in np.unique(level):
            for start in np.unique(allotment.start[d][node[level == d]]):
                rows = np.flatnonzero(
                    (level == d) & (allotment.start[d][np.where(level == d, node, 0)] == start)
                )
                weights = self.measurements.weights(int(start), int(d))
                for query in allotment.workload.queries:
                    if query.name not in weights or (only is not None and query.name not in only):
                        continue
                    index = query.of(cells)
                    inside = np.flatnonzero(index >= 0)
                    numbers, place = np.unique(index[inside], return_inverse=True)
                    y = self.measurements.answers(int(d), int(start), query, node[rows], numbers)
                    result[np.ix_(rows, inside)] += weights[query.name] * y[:, place]
        return result


def split(allotment: Allotment, depth: int, nodes: Ints) -> NDArray[np.bool_]:
    """Which of the nodes are not measured and have several children (with one child, that child represents them)."""
    if depth == len(allotment.spine.levels) - 1:
        return np.zeros(len(nodes), bool)
    several: NDArray[np.bool_] = np.diff(allotment.spine.first_child[depth])[nodes] > 1
    return (allotment.start[depth][nodes] < 0) & several


def summed(
    measurements: Measurements, depth: int, node: int, cells: Ints, only: frozenset[str] | None
) -> Floats:
    """Linear terms of one such node: the sum of its children's noisy answers, with the weights the solve gives it."""
    allotment = measurements.allotment
    weights = measurements.weights(*_class(allotment, depth, node))
    children = np.arange(*allotment.spine.first_child[depth][node : node + 2])
    result = np.zeros(len(cells))
    for query in allotment.workload.queries:
        if query.name not in weights or (only is not None and query.name not in only):
            continue
        index = query.of(cells)
        inside = np.flatnonzero(index >= 0)
        numbers, place = np.unique(index[inside], return_inverse=True)
        y = np.zeros(len(numbers))
        for child in children:
            y += _answers(measurements, depth + 1, int(child), query.name, numbers)
        result[inside] += weights[query.name] * y[place]
    return result


def _class(allotment: Allotment, depth: int, node: int) -> tuple[int, int]:
    level, holder = allotment.holder(depth, np.array([node]))
    return int(allotment.start[level[0]][holder[0]]), int(level[0])


def _answers(measurements: Measurements, depth: int, node: int, name: str, numbers: Ints) -> Floats:
    allotment = measurements.allotment
    if split(allotment, depth, np.array([node]))[0]:
        children = np.arange(*allotment.spine.first_child[depth][node : node + 2])
        total = np.zeros(len(numbers))
        for child in children:
            total += _answers(measurements, depth + 1, int(child), name, numbers)
        return total
    level, holder = allotment.holder(depth, np.array([node]))
    start = int(allotment.start[level[0]][holder[0]])
    query = allotment.workload.query(name)
    noisy: Floats = measurements.answers(int(level[0]), start, query, holder, numbers)[0].astype(np.float64)
    return noisy
