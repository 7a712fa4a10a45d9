r"""A parent's children, or the root, of a product that agrees with an earlier one: fit, certificate, integers.

The measured queries with few answers come first, as the production system's outer passes have it: they count ``FIRST``
times as much as measured, so that the many near-empty cells, which non-negativity can only lift, do not move them. The
earlier product's sums are exact. A cell of few persons says next to nothing about its children, so what the earlier
product says is added to the measurements of cells: the shares of the exact group that the cell belongs to, with the
variance of a binomial. It is published, so it costs nothing. Noise and budget are what the workload says.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.measure.linear import Targets
from stirred.mechanisms.topdown.rules.constraints import HeldQuery
from stirred.mechanisms.topdown.solve.agreed import exchange, kernels
from stirred.mechanisms.topdown.solve.agreed.dual import PricedRows, solve_dual
from stirred.mechanisms.topdown.solve.problem import Solution
from stirred.mechanisms.topdown.workload.histogram import Query

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEW = 1_000  # answers of a query that comes first
FIRST = 30.0
SWEEPS = 40
MOST = 400  # exchanges of one pair of children in one group and sweep
TOLERANCE = 1e-3  # persons


@dataclass(frozen=True, slots=True)
class AgreedParent:
    """One parent: its children's nodes, the cells that may be positive, and what is exact in every child."""

    depth: int
    nodes: Ints
    cells: Ints
    counts: Ints  # of the parent; length 0 at the root
    allowed: NDArray[np.bool_]
    held: HeldQuery
    queries: tuple[Query, ...]
    weights: Floats  # children × queries

    def rows(self, targets: Targets) -> PricedRows:
        """The rows of all queries; a group of one cell is part of the cell itself."""
        C, n = len(self.nodes), len(self.cells)
        d, linear = np.zeros((C, n)), np.zeros((C, n))
        index: list[NDArray[np.int32]] = []
        target, soft, small = [], [], []
        at = 0
        for number, query in enumerate(self.queries):
            weight = self.weights[:, number]
            if not weight.any():
                continue
            group = query.of(self.cells)
            here = targets.linear(self.depth, self.nodes, self.cells, frozenset([query.name]))
            first = query.size <= FEW
            factor = FIRST if first else 1.0
            numbers, place, count = np.unique(group, return_inverse=True, return_counts=True)
            alone = (count[place] == 1) & (group >= 0)
            d[:, alone] += factor * weight[:, None]
            linear[:, alone] += factor * here[:, alone]
            keep = np.flatnonzero((group >= 0) & ~alone)
            if not len(keep):
                continue
            numbers, representative, place = np.unique(group[keep], return_index=True, return_inverse=True)
            own = np.full(n, -1, np.int32)
            own[keep] = at + place
            index.append(own)
            safe = np.maximum(weight, 1e-9)[:, None]
            target.append(here[:, keep[representative]] / safe)
            soft.append(np.broadcast_to(1.0 / (safe * factor), (C, len(numbers))))
            small.append(np.full(len(numbers), first))
            at += len(numbers)
        numbers, place = np.unique(self.held.query.of(self.cells), return_inverse=True)
        index.append((at + place).astype(np.int32))
        target.append(self.held.low[self.depth][self.nodes][:, numbers].astype(float))
        soft.append(np.zeros((C, len(numbers))))
        small.append(np.ones(len(numbers), bool))
        large = np.concatenate(small)
        if len(self.counts) and targets.measurements.key is not None:  # exact measurements need no help
            precise, mean = self._shares(target[-1][:, place])
            d += precise
            linear += precise * mean
        # Cells that no fine query counts have only a very weak pull to zero of their own.
        floor = 1e-3 * float(self.weights.max())
        return PricedRows(
            index=np.stack(index),
            centre=linear / np.maximum(d, floor),
            inverse=1.0 / np.maximum(d, floor),
            target=np.ascontiguousarray(np.concatenate(target, axis=1)),
            soft=np.ascontiguousarray(np.concatenate(soft, axis=1)),
            parent=self.counts.astype(float),
            allowed=self.allowed,
            small=np.where(large, np.cumsum(large) - 1, -1),
        )

    def _shares(self, exact: Floats) -> tuple[Floats, Floats]:
        """What is known before: each cell spreads over the children as its exact group does, with a binomial's variance."""
        share = exact / np.maximum(exact.sum(axis=0), 1.0)
        spread = self.counts * np.maximum(share * (1.0 - share), 1e-2)
        return 1.0 / np.maximum(spread, 1e-2), self.counts * share

    def solve(self, targets: Targets) -> tuple[Ints, Solution]:
        """The integers of every child, and the fractional optimum with its certificate."""
        rows = self.rows(targets)
        found = solve_dual(rows, tolerance=TOLERANCE)
        weakest = 1.0 / float(rows.inverse.max())
        distance = float(np.sqrt(2.0 * found.gap / weakest / len(self.nodes)))
        solution = Solution(found.x, found.gap, found.residual, found.products, "newton", distance)
        return self._integers(rows, found.x), solution

    def _integers(self, rows: PricedRows, x: Floats) -> Ints:
        group = rows.index[-1]
        measured = np.ascontiguousarray(rows.index[:-1])
        order = np.lexsort((*_coarse(measured, rows.small), group)).astype(np.int64)
        begin = np.searchsorted(group[order], np.arange(group.min(), group.max() + 2)).astype(np.int64)
        exact = rows.target[:, group.min() :].astype(np.int64)
        X = np.zeros(x.shape, np.int64)
        if len(self.counts):
            fine = exchange.in_turn(x, order, self.counts, begin, exact, self.allowed, X)
            if not fine:
                raise InfeasibleError(
                    "the children's exact sums do not add up to their parent's cells",
                    why="the exact sums of the levels contradict each other",
                    fix="check the constraints of the two levels, and report this if they agree",
                )
        else:
            exchange.systematic(x[0], order, begin, exact[0], X[0])
        weight = 1.0 / np.maximum(rows.soft, 1e-12)
        off = np.empty(rows.target.shape)
        kernels.row_sums(X - x, measured, off)
        exchange.exchanged(
            X, x, measured, weight, 1.0 / rows.inverse, off, order, begin, self.allowed, SWEEPS, MOST
        )
        return X


def _coarse(index: NDArray[np.int32], small: Ints) -> Sequence[NDArray[np.int32]]:
    """The rows of the queries with few answers, as keys to sort cells by."""
    return [own for own in index if (small[own[own >= 0]] >= 0).all()]
