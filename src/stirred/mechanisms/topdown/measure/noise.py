r"""Measure with discrete Gaussian noise, $\sigma^2 = 1/\rho^2_{query}$, keyed by geounit, query and cell.

Changing one record moves two cells of a marginal by one, so its squared sensitivity is 2 and $\rho^2 = 2/(2\sigma^2)$.
The noise of one cell is the draw of that number in the stream of its level and query: drawing the few cells a support
needs gives the same values as drawing them all, and a run that is repeated draws the same noise again.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import exp

import numpy as np
from numpy.typing import NDArray

from stirred.chance import DiscreteGaussian, Key, Stream
from stirred.compiled import compile_kernel
from stirred.errors import InputError
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.workload.histogram import Query

Ints = NDArray[np.int64]
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
