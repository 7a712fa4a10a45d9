r"""A parent's children, or the root, of a product that agrees with an earlier one: fit, certificate, integers.

The measured queries with few answers come first, as the production system's outer passes have it: they count ``FIRST_WEIGHT_FACTOR``
times as much as measured, so that the many near-empty cells, which non-negativity can only lift, do not move them. Below a
parent their best linear estimates take the place of their noisy answers, and the fewest answers count most. The earlier
product's sums are exact. A cell of few persons says next to nothing about its children, so what the earlier
product says is added to the measurements of cells: the shares of the exact group that the cell belongs to, with the
variance of a binomial. It is published, so it costs nothing. Noise and budget are what the workload says.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.measure.linear import Targets
from stirred.mechanisms.topdown.rules.constraints import HeldQuery
from stirred.mechanisms.topdown.rules.divided import FacilityQuery
from stirred.mechanisms.topdown.solve.agreed import exchange, kernels
from stirred.mechanisms.topdown.solve.agreed.collect import QueryRows
from stirred.mechanisms.topdown.solve.agreed.dual import solve_dual
from stirred.mechanisms.topdown.solve.agreed.linear import estimate_linearly
from stirred.mechanisms.topdown.solve.agreed.system import PricedRows
from stirred.mechanisms.topdown.solve.problem import Solution
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.workload.histogram import Query

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_FIRST_ANSWERS = 1_000  # answers of a query that comes first
FIRST_WEIGHT_FACTOR = 30.0
FIRST_WEIGHT_ANSWERS, FIRST_WEIGHT_POWER = (
    12.0,
    1.5,
)  # below a parent (12 / answers) ** 1.5 times as much, never less
MIN_SURE_DEVIATIONS = 3.0  # where an answer is on average so many standard deviations of its noise
MAX_SWEEPS = 40
MAX_EXCHANGES = 400  # exchanges of one pair of children in one group and sweep
TOLERANCE_PERSONS = 1e-3  # persons


@dataclass(frozen=True, slots=True)
class GivenSumsParent:
    """One parent: its children's nodes, the cells that may be positive, and what is exact in every child."""

    depth: int
    nodes: Ints
    cells: Ints
    counts: Ints  # of the parent; length 0 at the root
    allowed: NDArray[np.bool_]
    held: HeldQuery
    queries: tuple[Query, ...]
    weights: Floats  # children × queries
    above: Floats | None = (
        None  # 1 × queries: the weights of a root that is estimated together with its children
    )

    def rows(self, targets: Targets) -> PricedRows:
        """Collect the rows of all queries; a group of one cell is part of the cell itself."""
        C, n = len(self.nodes), len(self.cells)
        noisy = targets.measurements.key is not None
        # Where the parent is measured and not yet known, its rows and cells are a last column beside the children's.
        weights = self.weights if self.above is None else np.concatenate([self.weights, self.above])
        d, linear = np.zeros((n, len(weights))), np.zeros((n, len(weights)))
        few, many = QueryRows(n), QueryRows(n)
        for number in sorted(range(len(self.queries)), key=lambda number: -self.queries[number].size):
            query, weight = self.queries[number], weights[:, number]
            if not weight.any():
                continue
            numbers, first, place, count = np.unique(
                query.of(self.cells), return_index=True, return_inverse=True, return_counts=True
            )
            real = numbers >= 0
            here = np.zeros((len(numbers), len(weights)))
            here[real] = self._sum_answers(targets, self.cells[first[real]], query)
            ahead, rows = (
                (self._weigh_query(query, weight, noisy=noisy), few)
                if query.size <= MAX_FIRST_ANSWERS
                else (1.0, many)
            )
            alone = real & (count == 1)
            d[first[alone]] += weight * ahead
            linear[first[alone]] += here[alone] * ahead
            rows.add(place, first, count, real & ~alone, here, weight, ahead)
        groups, place = np.unique(self.held.query.of(self.cells), return_inverse=True)
        exact = self.held.low[self.depth][self.nodes][:, groups].astype(float).T
        if len(self.counts) and noisy:  # exact measurements need no help
            precise, mean = self._compute_shares(exact[place])
            d += precise
            linear += precise * mean
        if not noisy and isinstance(self.held.query, FacilityQuery):
            # Exact answers of leaves are exact sums by set of types as well; noisy ones say next to nothing about these.
            d += 1.0
            linear[:, :C] += self._read_known_counts(targets.measurements.truth[self.depth]).T
        # Cells that no fine query counts have only a very weak pull to zero of their own.
        np.maximum(d, 1e-3 * float(weights.max()), out=d)
        members, kind = few.kinds()
        lines = [few.number + place.astype(np.int32), *(many.list_rows_of_cells(few.number + len(groups)))]
        none = np.zeros((len(groups), len(weights)))
        first_target, first_soft = few.sums(len(weights))
        last_target, last_soft = many.sums(len(weights))
        target = np.concatenate([first_target, none, last_target])
        times = few.weigh_rows()
        soft = np.concatenate([first_soft / times[:, None], none, last_soft])
        target[few.number : few.number + len(groups), :C] = exact
        parent, give = self.counts.astype(float), np.zeros(len(self.counts))
        lump, pulled = np.zeros(len(target)), np.zeros(len(target))
        if self.above is not None:
            parent, give = linear[:, C] / d[:, C], 1.0 / d[:, C]
            measured = soft[:, C] > 0.0
            lump[measured] = 1.0 / soft[measured].sum(axis=1)
            pulled = target[:, :C].sum(axis=1) - target[:, C]
        allowed = self.allowed.T
        found = PricedRows(
            kind=kind,
            members=members,
            lines=np.ascontiguousarray(np.stack(lines, axis=1)),
            small=few.number,
            exact=len(groups),
            centre=np.where(allowed, linear[:, :C] / d[:, :C], kernels.NEVER_CENTRE),
            inverse=np.where(allowed, 1.0 / d[:, :C], 0.0),
            target=np.ascontiguousarray(target[:, :C]),
            soft=np.ascontiguousarray(soft[:, :C]),
            parent=parent,
            give=give,
            lump=lump,
            pulled=pulled,
            ahead=np.concatenate([times / FIRST_WEIGHT_FACTOR, np.ones(len(target) - few.number)]),
        )
        if (times > FIRST_WEIGHT_FACTOR).any():
            found.target[: found.small] = estimate_linearly(found, times)
        return found

    def _weigh_query(self, query: Query, weight: Floats, *, noisy: bool) -> float:
        """Return the factor of a query's measured weight: the fewer its answers, the larger.

        Not where answers are small beside their noise, as in blocks: linear estimates know nothing of non-negativity there.
        """
        if not len(self.counts) or not noisy or not weight.all():
            return FIRST_WEIGHT_FACTOR
        mean = float(self.counts.sum()) / len(self.nodes) / query.size
        if mean < MIN_SURE_DEVIATIONS / float(np.sqrt(weight.min())):
            return FIRST_WEIGHT_FACTOR
        return float(
            FIRST_WEIGHT_FACTOR * max((FIRST_WEIGHT_ANSWERS / query.size) ** FIRST_WEIGHT_POWER, 1.0)
        )

    def _sum_answers(self, targets: Targets, cells: Ints, query: Query) -> Floats:
        """Return weighted answers of one query, cells × children, with a measured parent's last."""
        own = targets.linear(self.depth, self.nodes, cells, frozenset([query.name])).T
        if self.above is None:
            return own
        above = targets.linear(self.depth - 1, np.zeros(1, np.int64), cells, frozenset([query.name])).T
        return np.concatenate([own, above], axis=1)

    def _read_known_counts(self, truth: Sparse) -> Floats:
        """Return the counts that are measured without noise, children × cells."""
        known = np.zeros((len(self.nodes), len(self.cells)))
        for row, node in enumerate(self.nodes.tolist()):
            cells, counts = truth.at(node)
            inside = np.isin(cells, self.cells)
            known[row, np.searchsorted(self.cells, cells[inside])] = counts[inside]
        return known

    def _compute_shares(self, exact: Floats) -> tuple[Floats, Floats]:
        """Return prior means and variances: each cell spreads as its exact group, binomially."""
        share = exact / np.maximum(exact.sum(axis=1, keepdims=True), 1.0)
        spread = self.counts[:, None] * np.maximum(share * (1.0 - share), 1e-2)
        return 1.0 / np.maximum(spread, 1e-2), self.counts[:, None] * share

    def solve(self, targets: Targets) -> tuple[Ints, Solution]:
        """Return the integers of every child, and the fractional optimum with its certificate."""
        rows = self.rows(targets)
        solution = self.fit(rows)
        return self.round_counts(rows, solution.x), solution

    def fit(self, rows: PricedRows) -> Solution:
        """Return the fractional optimum, children × cells, with its certificate."""
        found = solve_dual(rows, tolerance=TOLERANCE_PERSONS)
        weakest = 1.0 / float(rows.inverse.max())
        distance = float(np.sqrt(2.0 * found.gap / weakest / len(self.nodes)))
        x = np.ascontiguousarray(found.x.T)
        return Solution(x, found.gap, found.residual, found.products, "newton", distance)

    def round_counts(self, rows: PricedRows, x: Floats) -> Ints:
        """Return integers near x, children × cells, that keep every exact sum."""
        group, coarse = rows.lines[:, 0] - rows.small, rows.members[rows.kind].T
        measured = np.ascontiguousarray(np.concatenate([coarse, rows.lines[:, 1:].T]))
        order = np.lexsort((*coarse, group)).astype(np.int64)
        begin = np.searchsorted(group[order], np.arange(rows.exact + 1)).astype(np.int64)
        exact = np.ascontiguousarray(rows.target[rows.small : rows.small + rows.exact].T.astype(np.int64))
        X = np.zeros(x.shape, np.int64)
        if len(self.counts):
            fine = exchange.round_in_turn(x, order, self.counts, begin, exact, self.allowed, X)
            if not fine:
                raise InfeasibleError(
                    "the children's exact sums do not add up to their parent's cells",
                    why="the exact sums of the levels contradict each other",
                    fix="check the constraints of the two levels, and report this if they agree",
                )
        else:
            exchange.round_systematically(x[0], order, begin, exact[0], X[0])
        # Exchanges of single persons get stuck where some sums count far more than others, so here all small ones are alike.
        weight = np.ascontiguousarray(1.0 / np.maximum((rows.soft * rows.ahead[:, None]).T, 1e-12))
        stiff = np.ascontiguousarray(1.0 / np.maximum(rows.inverse.T, 1e-12))
        off = np.empty(weight.shape)
        exchange.measure_errors(X, x, measured, off)
        exchange.exchange_persons(
            X, x, measured, weight, stiff, off, order, begin, self.allowed, MAX_SWEEPS, MAX_EXCHANGES
        )
        return X
