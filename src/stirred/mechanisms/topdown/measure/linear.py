"""The linear terms of a geounit for the top-down solve, from its own measurements (mode classic).

A geounit without its own measurement is represented by its children's measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.noise import MAX_TABLED_CELLS, Measurements

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Targets(Protocol):
    """Linear terms $b = \\sum_q w_q A_q' y_q$ of geounits on chosen cells, the queries limited to ``only``."""

    measurements: Measurements

    def linear(self, depth: int, nodes: Ints, cells: Ints, only: frozenset[str] | None = None) -> Floats: ...


@dataclass(slots=True)
class ClassicTargets:
    """The geounit's own measurements, drawn for the needed cells only (mode classic)."""

    measurements: Measurements

    def linear(self, depth: int, nodes: Ints, cells: Ints, only: frozenset[str] | None = None) -> Floats:
        """Return linear terms (nodes × cells)."""
        allotment = self.measurements.allotment
        whole = find_unmeasured(allotment, depth, nodes)
        if whole.any():
            rest = np.flatnonzero(~whole)
            result = np.zeros((len(nodes), len(cells)))
            result[rest] = self.linear(depth, nodes[rest], cells, only)
            for row in np.flatnonzero(whole):
                result[row] = sum_children_terms(self.measurements, depth, int(nodes[row]), cells, only)
            return result
        level, node = allotment.find_holders(depth, nodes)
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

    def together(self, depth: int, parts: Sequence[tuple[Ints, Ints]]) -> list[Floats]:
        """Return linear terms of several families of a level, with each query's noise drawn in one call."""
        measurements = self.measurements
        start, size = measurements.allotment.start[depth], measurements.allotment.workload.histogram.cells
        kinds = [int(start[nodes].min()) if len(nodes) else -1 for nodes, _ in parts]
        same = [k >= 0 and int(start[nodes].max()) == k for k, (nodes, _) in zip(kinds, parts, strict=True)]
        result = [
            np.zeros(0) if plain and size <= MAX_TABLED_CELLS else self.linear(depth, *part)
            for plain, part in zip(same, parts, strict=True)
        ]
        for kind in set(kinds):
            chosen = [
                i for i, own in enumerate(kinds) if own == kind and same[i] and size <= MAX_TABLED_CELLS
            ]
            if chosen:
                found = _linear_by_kind(measurements, depth, kind, [parts[i] for i in chosen])
                for i, own in zip(chosen, found, strict=True):
                    result[i] = own
        return result


def _linear_by_kind(
    measurements: Measurements, depth: int, start: int, parts: Sequence[tuple[Ints, Ints]]
) -> list[Floats]:
    """Return linear terms of families whose geounits are all of one kind."""
    nodes, cells = (np.concatenate([part[k] for part in parts]) for k in range(2))
    ends = np.cumsum([[0, 0], *([len(a), len(b)] for a, b in parts)], axis=0)
    numbers, data = measurements.numbers(depth, nodes), measurements.truth[depth]
    weights = measurements.weights(start, depth)
    begin = np.cumsum([0, *(len(a) * len(b) for a, b in parts)])
    out = np.zeros(begin[-1])
    for query in measurements.allotment.workload.queries:
        if query.name in weights:
            ids, exact, place, at = _list_needed(
                measurements.table(query), query.size, nodes, numbers, cells, ends,
                data.first, data.cells, data.counts,
            )  # fmt: skip
            exact += measurements.draw_single_noise(depth, start, query, ids)
            _add_weighed(exact, weights[query.name], place, at, ends, out)
    return [
        out[begin[i] : begin[i + 1]].reshape(len(own), len(cells)) for i, (own, cells) in enumerate(parts)
    ]


@compile_kernel
def _list_needed(
    table: Ints, size: int, nodes: Ints, numbers: Ints, cells: Ints, ends: Ints, first: Ints, held: Ints, counts: Ints
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Return the answers of a query that families need: draws, exact answers, cell places, family starts."""
    rank, kept = np.full(size, -1, np.int64), np.empty(size, np.int64)
    place, at = np.empty(len(cells), np.int64), np.zeros(len(ends), np.int64)
    most = 0
    for f in range(len(ends) - 1):
        most += (ends[f + 1, 0] - ends[f, 0]) * min(size, ends[f + 1, 1] - ends[f, 1])
    ids, exact = np.empty(most, np.int64), np.zeros(most, np.int64)
    for f in range(len(ends) - 1):
        m, here = 0, at[f]
        for j in range(ends[f, 1], ends[f + 1, 1]):
            answer = table[cells[j]]
            if answer >= 0 and rank[answer] < 0:
                rank[answer] = m
                kept[m] = answer
                m += 1
            place[j] = rank[answer] if answer >= 0 else -1
        for c in range(ends[f, 0], ends[f + 1, 0]):
            for r in range(m):
                ids[here + r] = numbers[c] * size + kept[r]
            for entry in range(first[nodes[c]], first[nodes[c] + 1]):
                answer = table[held[entry]]
                if answer >= 0 and rank[answer] >= 0:
                    exact[here + rank[answer]] += counts[entry]
            here += m
        at[f + 1] = here
        for r in range(m):
            rank[kept[r]] = -1
    return ids[: at[-1]].copy(), exact[: at[-1]].copy(), place, at


@compile_kernel
def _add_weighed(y: Ints, weight: float, place: Ints, at: Ints, ends: Ints, out: Floats) -> None:
    """Add the weighed answer that each cell of each child counts in."""
    k = 0
    for f in range(len(ends) - 1):
        children = ends[f + 1, 0] - ends[f, 0]
        if children == 0:
            continue
        m = (at[f + 1] - at[f]) // children
        for c in range(children):
            for j in range(ends[f, 1], ends[f + 1, 1]):
                if place[j] >= 0:
                    out[k] += weight * np.float64(y[at[f] + c * m + place[j]])
                k += 1


def find_unmeasured(allotment: Allotment, depth: int, nodes: Ints) -> NDArray[np.bool_]:
    """Return which nodes are not measured and have several children (one child represents its parent)."""
    if depth == len(allotment.spine.levels) - 1:
        return np.zeros(len(nodes), bool)
    several: NDArray[np.bool_] = np.diff(allotment.spine.first_child[depth])[nodes] > 1
    return (allotment.start[depth][nodes] < 0) & several


def sum_children_terms(
    measurements: Measurements, depth: int, node: int, cells: Ints, only: frozenset[str] | None
) -> Floats:
    """Return the linear terms of one unmeasured node: the sum of its children's noisy answers, weighted."""
    allotment = measurements.allotment
    weights = measurements.weights(*_find_class(allotment, depth, node))
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


def _find_class(allotment: Allotment, depth: int, node: int) -> tuple[int, int]:
    level, holder = allotment.find_holders(depth, np.array([node]))
    return int(allotment.start[level[0]][holder[0]]), int(level[0])


def _answers(measurements: Measurements, depth: int, node: int, name: str, numbers: Ints) -> Floats:
    allotment = measurements.allotment
    if find_unmeasured(allotment, depth, np.array([node]))[0]:
        children = np.arange(*allotment.spine.first_child[depth][node : node + 2])
        total = np.zeros(len(numbers))
        for child in children:
            total += _answers(measurements, depth + 1, int(child), name, numbers)
        return total
    level, holder = allotment.find_holders(depth, np.array([node]))
    start = int(allotment.start[level[0]][holder[0]])
    query = allotment.workload.query(name)
    noisy: Floats = measurements.answers(int(level[0]), start, query, holder, numbers)[0].astype(np.float64)
    return noisy
