"""Measure every geounit with discrete Gaussian noise: its budget, its answers, its linear terms."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import exp
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.chance import DiscreteGaussian, Key, Stream
from stirred.errors import BudgetError, InputError
from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.histogram import Query
from stirred.mechanisms.topdown.tree import Tree, require_order
from stirred.mechanisms.topdown.workload import Workload

# The exact part of the budget that every geounit spends on every query.
#
# Where the census lacks a level of the workload, that level's part moves to the next lower level present. A geounit
# with one child is bypassed: it has the same persons as its child, so its part moves down to the child, which is
# measured once with both. In both cases every root-to-leaf path spends exactly the total, and that is checked.

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Allotment:
    """The exact part of the budget that every geounit spends on every query.

    ``start[d][i]`` is the highest level whose part node i of level d spends (d itself unless it also represents bypassed
    ancestors), or -1 when the node is not measured; ``rho[(a, d)]`` are the parts of ρ² of such a node by query.
    """

    spine: Tree
    workload: Workload
    start: tuple[Ints, ...]
    rho: dict[tuple[int, int], dict[str, Fraction]]
    moved: tuple[tuple[str, str], ...]  # levels the census lacks → where their part went

    @staticmethod
    def of(
        spine: Tree, workload: Workload, *, bypass: bool = True, above: Sequence[NDArray[np.bool_]] = ()
    ) -> "Allotment":
        """Assign levels, move the parts of missing levels down, bypass single children, check every path.

        ``above`` is for subtrees that include their ancestors: by level, which of these have a single child in the whole
        tree.
        """
        require_order(workload.levels, spine.levels)
        depths = [spine.depth(level) for level in workload.levels]
        parts: list[dict[str, Fraction]] = [{} for _ in spine.levels]
        moved = []
        for i, level in enumerate(workload.levels):
            depth = depths[i]
            if depth is None:
                lower = [d for d in depths[i + 1 :] if d is not None]
                upper = [d for d in depths[:i] if d is not None]
                if not lower and not upper:
                    raise InputError(
                        f"the census has none of the levels of workload {workload.name}",
                        why=f"the workload has {', '.join(workload.levels)}; the census {', '.join(spine.levels)}",
                        fix="name the levels of the spine in census.toml as the workload does",
                    )
                depth = lower[0] if lower else upper[-1]
                moved.append((level, spine.levels[depth]))
            for query in workload.queries:
                part = workload.rho(level, query.name)
                if part:
                    parts[depth][query.name] = parts[depth].get(query.name, Fraction(0)) + part
        starts: list[Ints] = []
        top = np.zeros(spine.size(0), np.int64)
        for d in range(len(spine.levels)):
            last = d == len(spine.levels) - 1
            single = np.zeros(spine.size(d), bool)
            if bypass and d < len(above):
                single = above[d]
            elif bypass and not last:
                single = np.diff(spine.first_child[d]) == 1
            starts.append(np.where(single, -1, top))
            if not last:
                parent = spine.parent[d + 1]
                top = np.where(single[parent], top[parent], d + 1)
        rho: dict[tuple[int, int], dict[str, Fraction]] = {}
        for d, start in enumerate(starts):
            for a in np.unique(start[start >= 0]):
                total: dict[str, Fraction] = {}
                for depth in range(int(a), d + 1):
                    for name, part in parts[depth].items():
                        total[name] = total.get(name, Fraction(0)) + part
                if total:
                    rho[int(a), d] = total
                else:  # a level without a part, as the state above its AIAN split: not measured
                    starts[d] = np.where(starts[d] == a, -1, starts[d])
        result = Allotment(spine, workload, tuple(starts), rho, tuple(moved))
        result.check_paths()
        return result

    def check_paths(self) -> None:
        """Check that every path from the root to a leaf spends exactly the total; raise BudgetError if not."""
        depth = len(self.spine.levels)
        node = np.arange(self.spine.size(depth - 1))
        label = np.zeros(len(node), np.int64)  # which kinds of geounits a path has, from -1 to its depth each
        for d in range(depth - 1, -1, -1):
            label = label * (depth + 1) + self.start[d][node] + 1
            node = self.spine.parent[d][node]
        for path in np.unique(label).tolist():
            spent = Fraction(0)
            for d in range(depth):
                path, a = divmod(path, depth + 1)
                spent += sum(self.rho[a - 1, d].values(), Fraction(0)) if a else 0
            if spent != self.workload.rho_squared:
                raise BudgetError(
                    f"a path of the spine spends ρ² = {spent}, not {self.workload.rho_squared}",
                    why="every path from the root to a leaf spends the total ρ² of the workload",
                    fix="give every level of the workload a share, and let them sum to 1",
                )

    def list_deviations(self, depths: range) -> list[tuple[int, str, str, float, int]]:
        r"""Depth, level, query, standard deviation $\sigma = 1/\sqrt{\rho}$ of its noise, and how many geounits have it."""
        found = []
        for d in depths:
            starts, numbers = np.unique(self.start[d][self.start[d] >= 0], return_counts=True)
            for a, number in zip(starts.tolist(), numbers.tolist(), strict=True):
                for query, rho in self.rho[a, d].items():
                    found.append((d, self.spine.levels[d], query, float(1 / rho) ** 0.5, number))
        return found

    def find_holders(self, depth: int, nodes: Ints) -> tuple[Ints, Ints]:
        """Return, for each node, the level and number of the geounit whose measurement represents it."""
        level = np.full(len(nodes), depth, np.int64)
        node = nodes.copy()
        for d in range(depth, len(self.spine.levels) - 1):
            bypassed = (level == d) & (self.start[d][np.where(level == d, node, 0)] < 0)
            if not bypassed.any():
                break
            node[bypassed] = self.spine.first_child[d][node[bypassed]]
            level[bypassed] = d + 1
        return level, node


# Measure with discrete Gaussian noise, $\sigma^2 = 1/\rho^2_{query}$, keyed by geounit, query and cell.
#
# Changing one record moves two cells of a marginal by one, so its squared sensitivity is 2 and $\rho^2 = 2/(2\sigma^2)$.
# The noise of one cell is the draw of that number in the stream of its level and query: drawing the few cells a support
# needs gives the same values as drawing them all, and a run that is repeated draws the same noise again.

Floats = NDArray[np.float64]
MAX_TABLED_CELLS = 1 << 16  # cells of a histogram up to which a table of all of them is made


@lru_cache(maxsize=1024)
def _gaussian(sigma_squared: Fraction) -> DiscreteGaussian:
    return DiscreteGaussian(sigma_squared)


@lru_cache(maxsize=1024)
def variance(sigma_squared: Fraction) -> float:
    """Return the variance of the discrete Gaussian; it is below σ² when σ² is small.

    >>> variance(Fraction(4)), round(variance(Fraction(1, 4)), 6)
    (4.0, 0.215013)
    """
    s = float(sigma_squared)
    if s > 3:
        return s
    weights = [exp(-k * k / (2 * s)) for k in range(1, 60)]
    moment = 2 * sum(k * k * w for k, w in enumerate(weights, 1))
    # Below a certain σ² the noise is almost surely zero; the nominal value then keeps weights finite.
    return max(moment / (1 + 2 * sum(weights)), s * 1e-3)


@dataclass(slots=True)
class Measurements:
    """All measurements of a run, drawn when needed; ``key`` None means no noise (infinite budget)."""

    allotment: Allotment
    truth: list[Sparse]
    key: Key | None
    emphasis: int = 1  # how many times the leaves' total counts in the solve; 1 as measured
    place: tuple[Ints, ...] | None = (
        None  # the numbers in the whole tree of the nodes of a part of it, by level
    )
    _streams: dict[tuple[int, str], Stream] = field(default_factory=dict)
    _tables: dict[str, Ints] = field(default_factory=dict)  # query → the answer of every cell
    _weights: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)

    def weights(self, start: int, depth: int) -> dict[str, float]:
        """Return 1/variance by query of a geounit that also spends the parts of levels from ``start``."""
        known = self._weights.get((start, depth))
        if known is None:
            rho = self.allotment.rho[start, depth]
            known = self._weights[start, depth] = {n: 1.0 / variance(1 / part) for n, part in rho.items()}
        return dict(known)

    def solve_weights(self, start: int, depth: int) -> dict[str, float]:
        """Return the weights of the solve: as measured, but with the emphasis on leaf totals."""
        weights = self.weights(start, depth)
        if depth == len(self.allotment.spine.levels) - 1:
            for query in self.allotment.workload.queries:
                if query.size == 1 and query.name in weights:
                    weights[query.name] *= self.emphasis
        return weights

    def noise(self, depth: int, start: int, query: Query, nodes: Ints, numbers: Ints) -> Ints:
        """Draw the noise of the given answers (nodes × numbers) of geounits of one level and class.

        A cell's draw is number · size + answer in the stream of its level and query, with the geounit's number in the
        *whole* tree: no two geounits ever share a draw, wherever they are measured.
        """
        if self.key is None:
            return np.zeros((len(nodes), len(numbers)), np.int64)
        law, stream = self._open_stream(self.key, depth, start, query)
        count = len(nodes) * len(numbers)
        nodes = self.numbers(depth, nodes)
        whole = (
            len(numbers) == query.size
            and len(numbers) > 0
            and numbers[0] == 0
            and numbers[-1] == query.size - 1
        )
        if whole and len(nodes) > 0 and nodes[-1] - nodes[0] == len(nodes) - 1:
            drawn = law.draw_range(stream, int(nodes[0]) * query.size, count)
        else:
            firsts = (nodes * query.size).view(np.uint64)
            drawn = law.at_rows(stream, firsts, numbers.astype(np.uint64))
        return drawn.reshape(len(nodes), len(numbers))

    def draw_single_noise(self, depth: int, start: int, query: Query, ids: Ints) -> Ints:
        """Draw the noise of single answers, each numbered geounit · size + its own number."""
        if self.key is None:
            return np.zeros(len(ids), np.int64)
        law, stream = self._open_stream(self.key, depth, start, query)
        return law.at_positions(stream, ids.astype(np.uint64))

    def numbers(self, depth: int, nodes: Ints) -> Ints:
        """Return the numbers of geounits in the whole tree."""
        return nodes if self.place is None else self.place[depth][nodes]

    def _open_stream(self, key: Key, depth: int, start: int, query: Query) -> tuple[DiscreteGaussian, Stream]:
        """Return the law of a query's noise at a level, and its stream."""
        name = (depth, query.name)
        if name not in self._streams:
            self._streams[name] = key.stream("noise", self.allotment.spine.levels[depth], query.name)
        return _gaussian(1 / self.allotment.rho[start, depth][query.name]), self._streams[name]

    def exact(self, depth: int, query: Query, nodes: Ints, numbers: Ints) -> Ints:
        """Return the exact answers (nodes × numbers); ``numbers`` must be ascending."""
        result = np.zeros((len(nodes), len(numbers)), np.int64)
        self._add_exact(depth, query, nodes, numbers, result)
        return result

    def answers(self, depth: int, start: int, query: Query, nodes: Ints, numbers: Ints) -> Ints:
        """Return noisy answers: exact ones plus noise."""
        result = self.noise(depth, start, query, nodes, numbers)
        self._add_exact(depth, query, nodes, numbers, result)
        return result

    def _add_exact(self, depth: int, query: Query, nodes: Ints, numbers: Ints, result: Ints) -> None:
        """Add the exact answers."""
        data, size = self.truth[depth], self.allotment.workload.histogram.cells
        if size <= MAX_TABLED_CELLS:
            if query.name not in self._tables:
                self._tables[query.name] = query.of(np.arange(size))
            column = np.full(query.size + 1, -1, np.int64)  # the last is for cells that are not counted
            column[numbers] = np.arange(len(numbers))
            _add_counts(data.first, data.cells, data.counts, nodes, column[self._tables[query.name]], result)
            return
        lengths = data.first[nodes + 1] - data.first[nodes]
        row = np.repeat(np.arange(len(nodes)), lengths)
        entry = np.repeat(data.first[nodes] - np.r_[0, np.cumsum(lengths)[:-1]], lengths) + np.arange(
            lengths.sum()
        )
        index = query.of(data.cells[entry])
        place = np.searchsorted(numbers, index)
        place[place == len(numbers)] = 0
        hit = (index >= 0) & (len(numbers) > 0)
        if len(numbers):
            hit &= numbers[place] == index
        np.add.at(result, (row[hit], place[hit]), data.counts[entry[hit]])

    def table(self, query: Query) -> Ints:
        """Return the answer that every cell of the histogram counts in."""
        if query.name not in self._tables:
            self._tables[query.name] = query.of(np.arange(self.allotment.workload.histogram.cells))
        return self._tables[query.name]

    @property
    def every_leaf(self) -> bool:
        """Return whether every cell of every leaf is measured, at least by the detailed query."""
        depth = len(self.allotment.spine.levels) - 1
        workload = self.allotment.workload
        return all(
            workload.histogram.cells in [query.size for query in workload.queries if query.name in parts]
            for (_, d), parts in self.allotment.rho.items()
            if d == depth
        )

    def require_every_leaf(self) -> None:
        """Raise an error unless every cell of a leaf is measured, as the closed form needs."""
        if not self.every_leaf:
            raise InputError(
                "mode gls needs the detailed query at the lowest level",
                why="the estimate of a leaf starts from its detailed counts",
                fix="give it a share there, or use mode classic",
            )


@compile_kernel
def _add_counts(first: Ints, cells: Ints, counts: Ints, nodes: Ints, column: Ints, out: Ints) -> None:
    """Add the counts of each node's cells to the columns that count them (-1: none does)."""
    for i in range(len(nodes)):
        for entry in range(first[nodes[i]], first[nodes[i] + 1]):
            c = column[cells[entry]]
            if c >= 0:
                out[i, c] += counts[entry]


# The linear terms of a geounit for the top-down solve, from its own measurements (mode classic).
#
# A geounit without its own measurement is represented by its children's measurements.


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
