"""Compute each child's integers from its parent's, level by level from the top."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stirred.engine import Engine, Progress
from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.measure import Allotment, Targets
from stirred.mechanisms.topdown.rules import Constraints, HeldQuery
from stirred.mechanisms.topdown.solve import batch, generic
from stirred.mechanisms.topdown.solve.parent import (
    CROWDED_SUMS_PER_CHILD,
    FREE,
    SUMS,
    Certificate,
    HeldSums,
    ParentProblem,
    Solution,
    SolveGuide,
    solve,
)
from stirred.mechanisms.topdown.solve.root import round_root, solve_root
from stirred.mechanisms.topdown.solve.rounding import (
    build_nested_network,
    build_network,
    build_set_network,
    list_sets,
    round_by_group,
    round_network,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MAX_SMALL_ANSWERS = 1_000  # answers of a query whose sums the rounding of a large root keeps
MIN_FINE_START_CELLS = 4_000  # cells from which the start of a solve matters
MAX_GENERIC_CELLS = 20_000  # beyond this the interior-point method is the slower one


@dataclass(frozen=True, slots=True)
class Estimator:
    """All data that a parent needs; pure, so parents can be solved in any order and on any thread."""

    allotment: Allotment
    constraints: Constraints
    targets: Targets
    weights: dict[tuple[int, int], dict[str, float]]  # (start, level) → 1/variance by query
    tolerance: float = 5e-3
    solver: str = "fast"  # or "piqp": the generic path, for comparison
    guide: SolveGuide | None = None
    rounder: str = "own"  # or "production": with the query sets of 2020
    geounits: int = 0  # of the whole tree, where only a part of it is here

    @staticmethod
    def of(
        targets: Targets,
        constraints: Constraints,
        *,
        solver: str = "fast",
        guide: SolveGuide | None = None,
        rounder: str = "own",
        geounits: int = 0,
    ) -> "Estimator":
        """Build the estimator that weighs queries as the measurements of its targets do."""
        measurements = targets.measurements
        allotment = measurements.allotment
        weights = {pair: measurements.solve_weights(*pair) for pair in allotment.rho}
        return Estimator(
            allotment, constraints, targets, weights, solver=solver, guide=guide, rounder=rounder, geounits=geounits
        )  # fmt: skip

    def root(self) -> tuple[Sparse, Certificate]:
        """Return the histogram of the root, with its certificate."""
        spine, workload = self.allotment.spine, self.allotment.workload
        node = np.zeros(1, np.int64)
        if not spine.size(0):  # a census without areas has no records
            nobody = Sparse.of(node[:0], node[:0], node[:0], 0, workload.histogram.cells)
            return nobody, Certificate(spine.levels[0])
        cells = np.arange(workload.histogram.cells)
        possible = self.constraints.possible(cells) & self.constraints.find_allowed(0, node, cells)[0]
        cells = cells[possible]
        names, groups = self._groups(cells)
        weights = self._weights(0, node, names)
        linear = self.targets.linear(0, node, cells)[0]
        exact, sums = np.zeros(len(cells), np.int32), np.full(1, np.nan)
        for held in self.constraints.solve_queries:
            if held.whole and (held.low[0] == held.high[0]).all():
                sums = held.low[0][0].astype(float)
        families, partition, low, high, _, _ = self._hold_sums(0, node, cells)
        for family in families:
            if (family.low == family.high).all():
                # An exact partition of the root: every part is its own simplex; other rules are not changed.
                exact, sums = family.groups, family.low[0]
                families = tuple(other for other in families if other is not family)
                if families:
                    partition, low, high = families[-1].groups, families[-1].low, families[-1].high
                break
        else:
            first = None
            if self.guide is not None:
                first = self.guide.root(cells, None if np.isnan(sums[0]) else float(sums[0]))
            exact, sums = (exact, sums) if first is None else first
        certificate = Certificate(spine.levels[0])
        if not len(cells):
            return Sparse.of(node[:0], node[:0], node[:0], 1, workload.histogram.cells), certificate
        start = self._find_fine_start(0, node, cells, names, groups, weights)
        solution = solve_root(
            linear, groups, weights[0], exact, sums, families, start=None if start is None else start[0]
        )
        certificate.add(solution)
        if len(cells) >= MIN_FINE_START_CELLS:
            # Most fractions are far below one half: keep the small queries' sums, or rounding would distort them.
            partition = self._cross_small_queries(cells)
            low, high = (
                np.full((1, int(partition.max()) + 1), -FREE),
                np.full((1, int(partition.max()) + 1), FREE),
            )
        try:
            values = round_root(solution.x, exact, sums, partition, low, high)
        except InfeasibleError:
            if self.guide is None:
                raise
            return replace(self, guide=None).root()  # few records: the sums held first contradict a rule
        self._check(0, node, cells, values[None])
        return Sparse.of(
            np.zeros(len(cells), np.int64), cells, values, 1, workload.histogram.cells
        ), certificate

    def level(
        self, depth: int, above: Sparse, engine: Engine, progress: Progress | None = None
    ) -> tuple[Sparse, Certificate]:
        """Return the histograms of a level, given those of the level above."""
        spine = self.allotment.spine
        certificate = Certificate(spine.levels[depth])
        solver = batch.LevelSolver(self, depth)
        tasks = solver.split_families(batch.Family(0, above), 2)
        results: list[batch.Triples] = []
        for done, (triples, own) in enumerate(engine.map(solver.solve, tasks), 1):
            certificate.join(own)
            results.append(triples)
            if progress is not None:
                progress(spine.levels[depth], done, len(tasks))
        return batch.join_results(results, 0, spine.size(depth)), certificate

    def batchable(self, depth: int) -> bool:
        """Return whether compiled code solves a level: one pass, and no earlier product held."""
        passes = self.allotment.workload.passes.get(self.allotment.spine.levels[depth], ())
        one = isinstance(self.targets, TreeEstimate) or len(passes) < 2 or "*" in passes[0]
        plain = (self.guide is None or self.guide.adds(depth) != SUMS) and self.rounder == "own"
        return self.solver == "fast" and plain and one and not self._holds_product(depth)

    def parent(
        self, depth: int, parent: int, cells: Ints, counts: Ints, certificate: Certificate
    ) -> tuple[Ints, Ints, Ints]:
        """Return nodes, cells and counts of the children of one parent."""
        spine = self.allotment.spine
        first, last = spine.first_child[depth - 1][parent : parent + 2]
        children = np.arange(first, last)
        if len(children) == 1:
            return np.full(len(cells), first), cells, counts
        allowed = self.constraints.find_allowed(depth, children, cells)
        live = np.flatnonzero(allowed.any(axis=1))
        children, allowed = children[live], allowed[live]
        if not allowed.any(axis=0).all():
            raise self._infeasible_error(depth, "no child may have a cell that its parent has")
        values = self.children(depth, children, cells, counts, allowed, certificate)
        row, column = np.nonzero(values)
        return children[row], cells[column], values[row, column]

    def children(
        self,
        depth: int,
        children: Ints,
        cells: Ints,
        counts: Ints,
        allowed: NDArray[np.bool_],
        certificate: Certificate,
    ) -> Ints:
        """Solve and round; return the integers of each child on the parent's cells."""
        problem, low, high, partition, total_low, total_high = self.problem(
            depth, children, cells, counts, allowed
        )
        solution = self._solve(problem)
        certificate.add(solution)
        if low.shape[1] > 1 and np.array_equal(low, high):
            values = round_by_group(solution.x, counts, allowed, partition, low)
            self._check(depth, children, cells, values)
            return values
        values = self._round(
            depth, problem, solution.x, counts, cells, partition, low, high, total_low, total_high
        )
        self._check(depth, children, cells, values)
        return values

    def _round(
        self, depth: int, problem: ParentProblem, x: Floats, counts: Ints, cells: Ints, partition: NDArray[np.int32],
        low: Floats, high: Floats, total_low: Floats | None, total_high: Floats | None,
    ) -> Ints:  # fmt: skip
        """Round by the network, with more room if needed, or an integer programme if sums cross."""
        if self.rounder == "production":
            workload = self.allotment.workload
            one = build_set_network(
                x, counts, problem.allowed, list_sets(workload.histogram, cells), partition, low, high, total_low=total_low,
                total_high=total_high, first=len(workload.passes.get(self.allotment.spine.levels[depth], ())) > 1,
            )  # fmt: skip
            found = round_network(one) if one is not None and (one.capacity >= 0).all() else None
            if found is not None:
                return found
        if problem.aims is not None:
            net = build_nested_network(
                x, counts, problem, partition, low, high, total_low=total_low, total_high=total_high
            )
            aimed = round_network(net) if (net.capacity >= 0).all() else None
            if aimed is not None:
                return aimed
        inner = sum(not held.whole for held in self._list_constraints(depth)) <= 1
        for snap, wide in ((2e-4, False), (1e-2, False), (0.0, False), (0.0, inner)):
            net = build_network(
                x, counts, problem.allowed, partition, low, high,
                total_low=total_low, total_high=total_high, snap=snap, wide=wide,
            )  # fmt: skip
            found = round_network(net) if (net.capacity >= 0).all() else None
            if found is not None:
                return found
        return generic.round_with_rows(x, counts, problem.allowed, problem.held)

    def problem(
        self, depth: int, children: Ints, cells: Ints, counts: Ints, allowed: NDArray[np.bool_]
    ) -> tuple[ParentProblem, Floats, Floats, NDArray[np.int32], Floats | None, Floats | None]:
        """Return the least-squares problem of one parent and what its rounding must keep."""
        level = self.allotment.spine.levels[depth]
        names, groups = self._groups(cells)
        weights, classes = self._classes(depth, children, names)
        families, partition, low, high, total_low, total_high = self._hold_sums(depth, children, cells)
        parent = counts.astype(float)
        passes = self.allotment.workload.passes.get(level, ())
        first = frozenset(passes[0]) if len(passes) > 1 else frozenset()
        if isinstance(self.targets, TreeEstimate) or not first or "*" in first:
            linear = self.targets.linear(depth, children, cells)
            start = self._find_fine_start(depth, children, cells, names, groups, weights[classes])
            problem = ParentProblem(
                parent, linear, allowed, groups, weights, classes, families, start, self._holds_product(depth)
            )
            if self.guide is not None:
                problem = self.guide.shape_problem(depth, children, cells, problem)
            return problem, low, high, partition, total_low, total_high
        # Classic: the queries of the first pass alone, then the others with the first pass's answers fixed.
        pinned = self._solve_first_pass(
            depth, children, cells, parent, allowed, first, families, names, groups, weights, classes
        )
        rest = frozenset(names) - first
        linear = self.targets.linear(depth, children, cells, rest)
        later = weights * np.array([name in rest for name in names])
        problem = ParentProblem(parent, linear, allowed, groups, later, classes, (*families, pinned))
        return problem, low, high, partition, total_low, total_high

    def _solve_first_pass(
        self, depth: int, children: Ints, cells: Ints, parent: Floats, allowed: NDArray[np.bool_],
        first: frozenset[str], families: tuple[HeldSums, ...], names: Sequence[str], groups: NDArray[np.int32],
        weights: Floats, classes: NDArray[np.int32],
    ) -> HeldSums:  # fmt: skip
        """Solve totals first: on the coarsest cells that the constraints distinguish, with only the first pass's queries."""
        pattern = np.concatenate([allowed, *(held.groups[None] for held in families)]).T
        _, representative, block = np.unique(pattern, axis=0, return_index=True, return_inverse=True)
        block = block.ravel()
        m = len(representative)
        sums: Floats = np.bincount(block, parent, minlength=m).astype(np.float64)
        linear = self.targets.linear(depth, children, cells[representative], first)
        keep = weights * np.array([name in first for name in names])
        small = tuple(HeldSums(held.groups[representative], held.low, held.high) for held in families)
        problem = ParentProblem(
            sums, linear, allowed[:, representative], groups[:, representative], keep, classes, small
        )
        solution = self._solve(problem)
        totals = solution.x.sum(axis=1, keepdims=True)
        return HeldSums(np.zeros(len(cells), np.int32), totals, totals)

    def _find_fine_start(
        self, depth: int, nodes: Ints, cells: Ints, names: Sequence[str], groups: NDArray[np.int32], weights: Floats
    ) -> Floats | None:  # fmt: skip
        """Return a start at the fine queries' answers for very many cells, else None."""
        if len(cells) < MIN_FINE_START_CELLS and not self._holds_product(depth):
            return None
        inside = groups >= 0
        # Fine: every cell it counts is a group of its own, and it counts nearly all.
        fine = [
            int(row.max()) + 1 == int(own.sum()) and own.mean() > 0.9
            for row, own in zip(groups, inside, strict=True)
        ]
        total = weights @ np.array(fine, float)
        if not (total > 0).all():
            return None
        only = frozenset(name for name, own in zip(names, fine, strict=True) if own)
        result: Floats = self.targets.linear(depth, nodes, cells, only) / total[:, None]
        return result

    def _cross_small_queries(self, cells: Ints) -> NDArray[np.int32]:
        """Return the common refinement of all small queries, as a group for each cell."""
        label = np.zeros(len(cells), np.int64)
        for query in self.allotment.workload.queries:
            if 1 < query.size <= MAX_SMALL_ANSWERS:
                label = np.unique(label * (query.size + 1) + query.of(cells) + 1, return_inverse=True)[
                    1
                ].ravel()
        return label.astype(np.int32)

    def _holds_product(self, depth: int) -> bool:
        """Return whether a whole earlier product is held."""
        return any(held.query.size > CROWDED_SUMS_PER_CHILD for held in self._list_constraints(depth))

    def _list_constraints(self, depth: int) -> list[HeldQuery]:
        """Return the constraints that apply at this level."""
        return [held for held in self.constraints.solve_queries if depth < len(held.low)]

    def _solve(self, problem: ParentProblem) -> Solution:
        if self.solver == "piqp":
            return generic.solve_piqp(problem)
        solution = solve(problem, tolerance=self.tolerance)
        stuck = solution.distance > 2 * self.tolerance and problem.linear.size <= MAX_GENERIC_CELLS
        if not problem.crowded and (solution.violation > 5e-3 or stuck):
            solution = generic.solve_piqp(problem)
        return solution

    def _groups(self, cells: Ints) -> tuple[list[str], NDArray[np.int32]]:
        queries = self.allotment.workload.queries
        return [q.name for q in queries], np.stack([batch.compact(q.of(cells)) for q in queries])

    def _weights(self, depth: int, nodes: Ints, names: Sequence[str]) -> Floats:
        level, node = self.allotment.find_holders(depth, nodes)
        rows = []
        for d, i in zip(level, node, strict=True):
            own = self.weights[int(self.allotment.start[d][i]), int(d)]
            rows.append([own.get(name, 0.0) for name in names])
        return np.array(rows)

    def _classes(self, depth: int, nodes: Ints, names: Sequence[str]) -> tuple[Floats, NDArray[np.int32]]:
        level, node = self.allotment.find_holders(depth, nodes)
        starts = np.array([self.allotment.start[d][i] for d, i in zip(level, node, strict=True)])
        unique, inverse = np.unique(np.stack([starts, level], axis=1), axis=0, return_inverse=True)
        table = [[self.weights[int(a), int(d)].get(name, 0.0) for name in names] for a, d in unique]
        return np.array(table), inverse.ravel().astype(np.int32)

    def _hold_sums(
        self, depth: int, nodes: Ints, cells: Ints
    ) -> tuple[tuple[HeldSums, ...], NDArray[np.int32], Floats, Floats, Floats | None, Floats | None]:
        """Return the held sums for the solve, and the partition and totals that rounding keeps."""
        families: list[HeldSums] = []
        partition = np.zeros(len(cells), np.int32)
        low, high = np.full((len(nodes), 1), -FREE), np.full((len(nodes), 1), FREE)
        total_low = total_high = None
        for held in self.constraints.solve_queries:
            if depth >= len(held.low):
                continue
            groups = held.query.of(cells)
            numbers, compact = np.unique(groups, return_inverse=True)
            lows, highs = held.low[depth][nodes].astype(float), held.high[depth][nodes].astype(float)
            if held.whole:
                total_low, total_high = lows[:, 0], highs[:, 0]
                if depth > 0:
                    families.append(HeldSums(np.zeros(len(cells), np.int32), lows, highs))
                continue
            inside = numbers >= 0
            own_low, own_high = (
                np.full((len(nodes), len(numbers)), -FREE),
                np.full((len(nodes), len(numbers)), FREE),
            )
            own_low[:, inside], own_high[:, inside] = lows[:, numbers[inside]], highs[:, numbers[inside]]
            families.append(HeldSums(compact.astype(np.int32), own_low, own_high))
            partition, low, high = compact.astype(np.int32), own_low, own_high
        return tuple(families), partition, low, high, total_low, total_high

    def _check(self, depth: int, nodes: Ints, cells: Ints, values: Ints) -> None:
        """Check every bound again on the integers; a failure is an error."""
        if (values < 0).any():
            raise self._infeasible_error(depth, "a rounded cell is negative")
        for held in self.constraints.solve_queries:
            if depth >= len(held.low):
                continue
            index = held.query.of(cells)
            sums = np.zeros((len(nodes), held.query.size), np.int64)
            inside = np.flatnonzero(index >= 0)
            np.add.at(sums.T, index[inside], values[:, inside].T)
            if ((sums < held.low[depth][nodes]) | (sums > held.high[depth][nodes])).any():
                raise self._infeasible_error(depth, f"constraint {held.name!r} does not hold after rounding")

    def _infeasible_error(self, depth: int, why: str) -> InfeasibleError:
        return InfeasibleError(
            f"a parent of level {self.allotment.spine.levels[depth]} has no children that meet every constraint",
            why=why,
            fix="constraints on crossing marginals may have no solution below a given parent; relax one of them",
        )
