r"""The marginal algebra: precision and covariance of a node's histogram as a few small matrices.

Axes that every query keeps whole or sums whole are *symmetric*; the others are crossed into one *matrix* axis of K
levels. Then $\sum_q w_q A_q'A_q = \sum_f P_f \otimes \Pi_f$, where f says for each symmetric axis whether it is the
mean ($J/n$) or the deviation ($I - J/n$), and each $P_f$ is K×K. Sums, inverses and products stay inside, so the
covariance of 2,016 cells is four 16×16 matrices.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.histogram import Histogram, Query

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_MATRIX_LEVELS = (
    64  # levels of the matrix axis beyond which the closed form is too slow (its cost is cubic)
)


@dataclass(frozen=True, kw_only=True)
class Algebra:
    """The split of a histogram into its matrix axis and its symmetric axes, for a set of queries.

    >>> from stirred.mechanisms.topdown.workload import Workload
    >>> w = Workload.preset("pl94-persons")
    >>> a = Algebra.of(w.histogram, w.queries, ("hhgq", "votingage"))
    >>> a.K, a.S, a.parts
    (16, 126, 4)
    """

    histogram: Histogram
    queries: tuple[Query, ...]
    matrix: tuple[int, ...]
    symmetric: tuple[int, ...]

    @classmethod
    def of(cls, histogram: Histogram, queries: Sequence[Query], asymmetric: Sequence[str] = ()) -> "Algebra":
        """Build the algebra; ``list_asymmetric_axes`` names axes that only constraints distinguish levels of."""
        matrix: list[int] = []
        symmetric: list[int] = []
        for i, axis in enumerate(histogram.axes):
            plain = all(query.factors[i] in (tuple(range(axis.size)), (0,) * axis.size) for query in queries)
            (symmetric if plain and axis.name not in asymmetric else matrix).append(i)
        return cls(
            histogram=histogram, queries=tuple(queries), matrix=tuple(matrix), symmetric=tuple(symmetric)
        )

    @property
    def K(self) -> int:  # noqa: N802
        """Return the number of levels of the matrix axis."""
        return prod(self.histogram.shape[i] for i in self.matrix)

    @property
    def S(self) -> int:  # noqa: N802
        """Return the number of cells of all symmetric axes together."""
        return prod(self.histogram.shape[i] for i in self.symmetric)

    @property
    def parts(self) -> int:
        """Return the number of components f: two to the number of symmetric axes."""
        return 1 << len(self.symmetric)

    @property
    def fits(self) -> bool:
        """Return whether the closed form is practical for this histogram."""
        return self.K <= MAX_MATRIX_LEVELS and self.K * self.S <= 1 << 16

    @cached_property
    def layout(self) -> Ints:
        """Return the histogram's cell at (k, s)."""
        cells = np.arange(self.histogram.cells).reshape(self.histogram.shape)
        return np.ascontiguousarray(cells.transpose(*self.matrix, *self.symmetric).reshape(self.K, self.S))

    @cached_property
    def position(self) -> Ints:
        """Return k·S + s of each cell."""
        result = np.empty(self.histogram.cells, np.int64)
        result[self.layout.ravel()] = np.arange(self.histogram.cells)
        return result

    @cached_property
    def kept_groups(self) -> tuple[Ints, Ints]:
        """Return, for each set T of kept symmetric axes, s → cell of the smaller table, and its size."""
        shape = [self.histogram.shape[i] for i in self.symmetric]
        levels = np.unravel_index(np.arange(self.S), shape) if shape else ()
        groups = np.zeros((self.parts, self.S), np.int64)
        sizes = np.ones(self.parts, np.int64)
        for T in range(self.parts):
            for bit, size in enumerate(shape):
                if T >> bit & 1:
                    groups[T] = groups[T] * size + levels[bit]
                    sizes[T] *= size
        return groups, sizes

    def find_kept_axes(self, query: Query) -> int:
        """Return the set of symmetric axes that the query keeps, as bits."""
        return sum(1 << bit for bit, i in enumerate(self.symmetric) if query.kept[i])

    @cached_property
    def recodes(self) -> tuple[Ints, ...]:
        """Return, for each query, k → its group on the matrix axis (-1: dropped)."""
        return tuple(self.recode(query) for query in self.queries)

    def recode(self, query: Query) -> Ints:
        """Return k → group of the query's factor on the matrix axis, in order of first use."""
        shape = [self.histogram.shape[i] for i in self.matrix]
        if not shape:
            return np.zeros(1, np.int64)
        levels = np.unravel_index(np.arange(self.K), shape)
        index = np.zeros(self.K, np.int64)
        dropped = np.zeros(self.K, bool)
        for j, i in enumerate(self.matrix):
            factor = np.array(query.factors[i])[levels[j]]
            index = index * (max(query.factors[i]) + 1) + np.maximum(factor, 0)
            dropped |= factor < 0
        index[dropped] = -1
        return index

    @cached_property
    def answers(self) -> tuple[Ints, ...]:
        """Return, for each query, the number of its answer at (group, kept cell)."""
        result = []
        groups, sizes = self.kept_groups
        for query, recode in zip(self.queries, self.recodes, strict=True):
            T = self.find_kept_axes(query)
            table = np.full((int(recode.max()) + 1, int(sizes[T])), -1, np.int64)
            index = query.of(self.layout.ravel()).reshape(self.K, self.S)
            for k in range(self.K):
                if recode[k] >= 0:
                    table[recode[k], groups[T]] = index[k]
            result.append(table)
        return tuple(result)

    @cached_property
    def _touch_cache(self) -> dict[bytes, tuple[tuple[Ints, Ints], ...]]:
        return {}

    def find_touched(self, act: Ints) -> tuple[tuple[Ints, Ints], ...]:
        """Return, for each query, the answers that rows ``act`` count in, and the one of each cell."""
        if (known := self._touch_cache.get(act.tobytes())) is not None:
            return known
        groups, _ = self.kept_groups
        found = []
        for query, recode, table in zip(self.queries, self.recodes, self.answers, strict=True):
            own, inside = table[:, groups[self.find_kept_axes(query)]], recode[act] >= 0
            numbers = np.unique(table[recode[act][inside]])
            number = np.full(query.size, -1, np.int64)
            number[numbers] = np.arange(len(numbers))
            place = np.full((len(act), self.S), -1, np.int64)
            place[inside] = number[own[recode[act][inside]]]
            found.append((numbers, place))
        self._touch_cache[act.tobytes()] = tuple(found)
        return tuple(found)

    def information(self, weights: Mapping[str, float]) -> Floats:
        """$P_f = \\sum_q w_q m_{qf} R_q'R_q$ with m = 1 on kept axes, n or 0 on summed ones (f mean or deviation)."""
        P = np.zeros((self.parts, self.K, self.K))
        for query, recode in zip(self.queries, self.recodes, strict=True):
            weight = float(weights.get(query.name, 0.0))
            if weight == 0.0:
                continue
            same = ((recode[:, None] == recode[None, :]) & (recode >= 0)[:, None]).astype(float)
            for f in range(self.parts):
                P[f] += weight * self.multiplicity(self.find_kept_axes(query), f) * same
        return P

    def multiplicity(self, T: int, f: int) -> float:
        """Return how often component f counts in a query that keeps the axes T."""
        result = 1.0
        for bit, i in enumerate(self.symmetric):
            if not T >> bit & 1:
                result *= 0.0 if f >> bit & 1 else self.histogram.shape[i]
        return result

    def spread(self, G: Floats) -> Floats:
        """From components f to sets T of kept axes: $D_T = \\sum_{f \\supseteq T} (-1)^{|f \\setminus T|} G_f$."""
        D = np.zeros_like(G)
        for T in range(self.parts):
            for f in range(self.parts):
                if f & T == T:
                    D[..., T, :, :] += (-1.0) ** (f ^ T).bit_count() * G[..., f, :, :]
        return D

    def apply(self, G: Floats, x: Floats, out: Floats | None = None) -> Floats:
        """$(\\sum_f G_f \\otimes \\Pi_f) x$ for nodes along the first axis: G (N or 1, F, A, K), x (N, K, S)."""
        groups, sizes = self.kept_groups
        D = np.ascontiguousarray(self.spread(G))
        out = np.empty((len(x), G.shape[2], self.S)) if out is None else out
        _apply_components(D, np.ascontiguousarray(x), groups, sizes, out)
        return out

    def require_fit(self) -> None:
        """Refuse a workload whose matrix axis is too long for the closed form."""
        if not self.fits:
            raise InputError(
                f"the closed-form estimate needs a matrix axis of at most {MAX_MATRIX_LEVELS} levels",
                why=f"the queries of this workload make one of {self.K}",
                fix='mode = "workload" or "classic", or queries that keep or sum whole axes',
            )


@compile_kernel
def _apply_components(D: Floats, x: Floats, groups: Ints, sizes: Ints, out: Floats) -> None:
    N, K, S = x.shape
    F, A = D.shape[1], D.shape[2]
    mean, row = np.empty((K, S)), np.empty(S)
    for node in range(N):
        d = D[node if D.shape[0] > 1 else 0]
        out[node] = 0.0
        for T in range(F):
            size = sizes[T]
            share = size / S
            for k in range(K):
                for t in range(size):
                    mean[k, t] = 0.0
                for s in range(S):
                    mean[k, groups[T, s]] += x[node, k, s]
                for t in range(size):
                    mean[k, t] *= share
            for a in range(A):
                for t in range(size):
                    row[t] = 0.0
                for k in range(K):
                    g = d[T, a, k]
                    if g != 0.0:
                        for t in range(size):
                            row[t] += g * mean[k, t]
                for s in range(S):
                    out[node, a, s] += row[groups[T, s]]
