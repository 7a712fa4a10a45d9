r"""Variances of the best linear estimate over a regular tree, in closed form, from the shares and the shape alone.

With f children under every geounit of a level, all alike, the two passes of ``estimate.gls`` have the covariances
$C = (I + VP)^{-1}V$, $V = f\,C_{child}$, upward, and $E_{child} = (1 - 1/f)\,C_{child} + E/f^2$ downward.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.tree.geounits import ALIASES, Tree
from stirred.mechanisms.topdown.tree.leaves import list_leaves
from stirred.mechanisms.topdown.workload.histogram import Query
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TreeShape:
    """The measured levels from the root down, by the workload's names, and how many areas each has."""

    levels: tuple[str, ...]
    areas: tuple[int, ...]

    @property
    def fans(self) -> tuple[float, ...]:
        """Return the mean number of children of every level but the last, at least one."""
        pairs = zip(self.areas, self.areas[1:], strict=False)
        return tuple(max(below / above, 1.0) for above, below in pairs)


def measure_shape(census: "Census", workload: Workload) -> TreeShape:
    """Count the areas of each level, which is public or an invariant; nothing else of the census is read."""
    tree = Tree.of(list_leaves(census, workload), census.schema.spine, root=workload.levels[0])
    found = [(level, depth) for level in workload.levels if (depth := tree.depth(level)) is not None]
    return TreeShape(tuple(level for level, _ in found), tuple(tree.size(depth) for _, depth in found))


@dataclass(frozen=True)
class LinearErrors:
    """The variance of every cell of a marginal at a level, as a function of ρ by level and query."""

    workload: Workload
    shape: TreeShape
    algebra: Algebra
    pairs: tuple[tuple[str, str], ...]  # level and query of each variable
    units: tuple[Floats, ...]  # the information of one unit of ρ for each pair
    known: dict[tuple[tuple[int, ...], ...], Floats] = field(default_factory=dict, repr=False, compare=False)

    @staticmethod
    def of(workload: Workload, shape: TreeShape, pairs: Sequence[tuple[str, str]]) -> "LinearErrors":
        """Build the errors for variables that are the ρ of these pairs."""
        algebra = Algebra.of(workload.histogram, workload.queries)
        algebra.require_fit()
        by_query = {query.name: algebra.information({query.name: 1.0}) for query in workload.queries}
        return LinearErrors(
            workload, shape, algebra, tuple(pairs), tuple(by_query[query] for _, query in pairs)
        )

    def covariances(self, rho: Floats) -> list["LevelCovariance"]:
        """Return the covariances of every level, from the root down."""
        levels, found = self.shape.levels, list[LevelCovariance]()
        exact = {
            rule.level for rule in self.workload.rules if rule.kind == "exact" and self._whole(rule.query)
        }
        one = np.eye(self.algebra.K)
        for depth in range(len(levels) - 1, -1, -1):
            P = np.zeros((self.algebra.parts, self.algebra.K, self.algebra.K))
            for place, (level, _) in enumerate(self.pairs):
                if level == levels[depth]:
                    P += rho[place] * self.units[place]
            V = found[-1].C * self.shape.fans[depth] if found else None
            H: Floats | None = None if V is None else _invert(one + V @ P)
            C: Floats = _invert(P) if V is None or H is None else H @ V
            C = 0.5 * (C + np.swapaxes(C, -1, -2))
            W = np.broadcast_to(one, C.shape).copy()
            own = C
            if any(name in exact for name in (levels[depth], *ALIASES.get(levels[depth], ()))):
                total = C[0].sum()
                W[0] -= np.outer(C[0].sum(axis=1), np.ones(self.algebra.K)) / (total if total > 0 else 1.0)
                own = W @ C
            found.append(LevelCovariance(C=own, free=C, H=H, W=W, E=own))
        found.reverse()
        for depth, fan in enumerate(self.shape.fans):
            below = found[depth + 1]
            below.E = (1 - 1 / fan) * below.C + found[depth].E / fan**2
        return found

    def _whole(self, name: str) -> bool:
        query = self.workload.query(name)
        return query.size == 1 and all(min(factor) == 0 for factor in query.factors)

    def variances(self, rho: Floats, tables: Sequence[tuple[str, Query]]) -> Floats:
        """Return the mean variance of a cell of each table."""
        found = {level: step.E for level, step in zip(self.shape.levels, self.covariances(rho), strict=True)}
        return np.array([max(float((found[level] * self._weights(q)).sum()), 0.0) for level, q in tables])

    def _weights(self, query: Query) -> Floats:
        """Return the weight of every covariance entry (F × K × K) in a cell's mean variance."""
        if query.factors in self.known:
            return self.known[query.factors]
        groups = self.algebra.recode(query)
        R = (groups[None, :] == np.arange(groups.max() + 1)[:, None]).astype(float)
        kept = self.algebra.find_kept_axes(query)
        factors = np.array([self._weight(kept, f) for f in range(self.algebra.parts)])
        self.known[query.factors] = np.asarray(np.multiply.outer(factors, R.T @ R / len(R)))
        return self.known[query.factors]

    def _weight(self, kept: int, f: int) -> float:
        """$t'\\Pi_f t$ for the indicator t of a cell of the kept symmetric axes."""
        weight = 1.0
        for bit, axis in enumerate(self.algebra.symmetric):
            size = self.algebra.histogram.shape[axis]
            deviation, keeps = bool(f >> bit & 1), bool(kept >> bit & 1)
            weight *= ((1 - 1 / size) if deviation else 1 / size) if keeps else (0.0 if deviation else size)
        return weight

    def gradients(self, rho: Floats, tables: Sequence[tuple[str, Query]]) -> tuple[Floats, Floats]:
        """Return variances and their derivatives by ρ (tables × pairs), by backward passes."""
        steps, levels = self.covariances(rho), self.shape.levels
        E = [np.zeros((len(tables), *step.C.shape)) for step in steps]
        for place, (level, query) in enumerate(tables):
            E[levels.index(level)][place] = self._weights(query)
        places = [levels.index(level) for level, _ in tables]
        values = np.array([float((E[d][i] * steps[d].E).sum()) for i, d in enumerate(places)])
        C = [np.zeros_like(one) for one in E]
        for depth in range(len(levels) - 1, 0, -1):
            fan = self.shape.fans[depth - 1]
            C[depth] += (1 - 1 / fan) * E[depth]
            E[depth - 1] += E[depth] / fan**2
        C[0] += E[0]
        slopes = np.zeros((len(tables), len(self.pairs)))
        for depth, step in enumerate(steps):
            back = np.swapaxes(step.W, -1, -2) @ C[depth] @ step.W
            P = -step.free @ back @ step.free
            for place, (level, _) in enumerate(self.pairs):
                if level == levels[depth]:
                    slopes[:, place] = (P * self.units[place]).sum(axis=(1, 2, 3))
            if step.H is not None:
                C[depth + 1] += self.shape.fans[depth] * (np.swapaxes(step.H, -1, -2) @ back @ step.H)
        return np.maximum(values, 0.0), slopes


def _invert(matrices: Floats) -> Floats:
    return np.linalg.inv(matrices).astype(np.float64)


@dataclass(slots=True)
class LevelCovariance:
    """The covariances of one level: with what is below it, before an exact total, and in the whole tree."""

    C: Floats
    free: Floats
    H: Floats | None  # $(I + VP)^{-1}$, none at the leaves
    W: Floats  # the projection that an exact total makes
    E: Floats


def list_tables(workload: Workload, levels: Sequence[str]) -> Mapping[tuple[str, str], Query]:
    """Return every query of the workload at every level: the tables whose accuracy is to be kept."""
    return {(level, query.name): query for level in levels for query in workload.queries}
