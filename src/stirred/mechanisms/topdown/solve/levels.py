"""Compute each child's integers from its parent's, level by level from the top."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from stirred.engine import Progress
from stirred.engine.threads import BranchingTasks
from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.measure import Allotment, Targets
from stirred.mechanisms.topdown.rules import MAX_NAMED, Constraints, HeldQuery
from stirred.mechanisms.topdown.solve import crossing
from stirred.mechanisms.topdown.solve.batch import (
    MAX_GENERIC_CELLS,
    MAX_VIOLATION,
    Family,
    LevelArrays,
    LevelSolver,
    Triples,
    assemble_problem,
    build_family_arrays,
    compact,
    find_kept,
    find_prior,
    join_results,
)
from stirred.mechanisms.topdown.solve.parent import (
    CROWDED_SUMS_PER_CHILD,
    MIN_LARGE_CELLS,
    SUMS,
    Certificate,
    HeldSums,
    ParentProblem,
    Solution,
    SolveGuide,
    build_problem,
    hold_more,
    list_sums,
    solve,
)
from stirred.mechanisms.topdown.solve.root import round_root, solve_root
from stirred.mechanisms.topdown.solve.rounding import FREE, aim_at, is_exact, round_children

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]
MAX_SMALL_ANSWERS = 1_000  # answers of a query whose sums the rounding of a large root keeps
NO_START = np.zeros((0, 0))


@dataclass(frozen=True, slots=True)
class Estimator:
    """All data that a parent needs; pure, so parents can be solved in any order and on any thread."""

    allotment: Allotment
    constraints: Constraints
    targets: Targets
    weights: dict[tuple[int, int], dict[str, float]]  # (start, level) → 1/variance by query
    tolerance: float = 5e-3
    guide: SolveGuide | None = None

    @staticmethod
    def of(targets: Targets, constraints: Constraints, *, guide: SolveGuide | None = None) -> "Estimator":
        """Build the estimator that weighs queries as the measurements of its targets do."""
        measurements = targets.measurements
        allotment = measurements.allotment
        weights = {pair: measurements.solve_weights(*pair) for pair in allotment.rho}
        return Estimator(allotment, constraints, targets, weights, guide=guide)

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
        families, partition, low, high = self._hold_root_sums(cells)
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
        start = self._find_fine_start(0, node, cells, groups, weights)
        solution = solve_root(
            linear, groups, weights[0], exact, sums, families, start=start[0] if len(start) else None
        )
        certificate.add(solution)
        if len(cells) >= MIN_LARGE_CELLS:
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

    def has_arrays(self) -> bool:
        """Return whether parents are solved from the arrays of their level."""
        return True

    def batchable(self, depth: int) -> bool:
        """Return whether a level is solved in batches: one pass, and no sums but those of its rules."""
        return self._list_first_pass(depth) == frozenset() and not (
            self._holds_product(depth) or (self.guide is not None and self.guide.adds(depth) == SUMS)
        )

    def parent(
        self, depth: int, family: Family, shared: LevelArrays | None, certificate: Certificate
    ) -> Triples:
        """Return nodes, cells and counts of the children of one parent, a family of its own."""
        cells, counts = family.above.at(0)
        first, last = self.allotment.spine.first_child[depth - 1][family.first : family.first + 2]
        children = np.arange(first, last)
        if len(children) == 1:
            return np.full(len(cells), first), cells, counts
        allowed = self.constraints.find_allowed(depth, children, cells)
        live = np.flatnonzero(allowed.any(axis=1))
        children, allowed = children[live], allowed[live]
        if not allowed.any(axis=0).all():
            raise self._infeasible_error(depth, children, "no child may have a cell that its parent has")
        try:
            values = self.children(depth, family, shared, children, allowed, certificate)
        except InfeasibleError as error:
            raise self._infeasible_error(depth, children, error.why) from error
        self._check(depth, children, cells, values)
        row, column = np.nonzero(values)
        return children[row], cells[column], values[row, column]

    def children(
        self,
        depth: int,
        family: Family,
        shared: LevelArrays | None,
        children: Ints,
        allowed: NDArray[np.bool_],
        certificate: Certificate,
    ) -> Ints:
        """Solve and round; return the integers of each child on the parent's cells.

        The network is given more room if needed; where the sums that are held cross, an integer programme rounds.
        """
        assert shared is not None
        level = build_family_arrays(self, depth, shared, family)
        problem = self.problem(depth, level, children, allowed)
        solution = self._solve(problem)
        certificate.add(solution)
        kept = aim_at(find_kept(level, problem, level.counts), problem.aims)
        values = np.empty(solution.x.shape, np.int64)
        if round_children(solution.x, problem.allowed, kept, level.nested, values):
            return values
        if is_exact(kept):
            raise InfeasibleError(
                "the children's exact sums do not add up to their parent's cells",
                why="the exact sums of the levels contradict each other",
                fix="check the constraints of the two levels, and report this if they agree",
            )
        return crossing.round_with_rows(solution.x, level.counts, problem.allowed, list_sums(problem))

    def problem(
        self, depth: int, level: LevelArrays, children: Ints, allowed: NDArray[np.bool_]
    ) -> ParentProblem:
        """Return the least-squares problem of one parent, whose level's arrays have no other."""
        queries, cells = self.allotment.workload.queries, level.cells[level.place]
        first = self._list_first_pass(depth)
        rest = frozenset(query.name for query in queries) - first
        linear = self.targets.linear(depth, children, cells, rest if first else None)
        problem = assemble_problem(
            level, 0, children, np.ascontiguousarray(allowed), np.ascontiguousarray(linear),
            not linear.flags.c_contiguous, find_prior(self, depth, level),
        )  # fmt: skip
        problem = problem._replace(groups=np.stack([compact(row) for row in problem.groups]))
        if first:
            # Classic: the queries of the first pass alone, then the others with the first pass's answers fixed.
            later = problem.weights * np.array([query.name in rest for query in queries])
            pinned = self._solve_first_pass(depth, children, cells, problem, first)
            return hold_more(problem._replace(weights=later), (pinned,))
        groups, weights = problem.groups[: len(queries)], problem.weights[problem.classes, : len(queries)]
        start = self._find_fine_start(depth, children, cells, groups, weights)
        problem = problem._replace(start=start, crowded=self._holds_product(depth))
        if self.guide is not None and self.guide.adds(depth) == SUMS:
            problem = self.guide.hold_sums(depth, children, cells, problem)
        return problem

    def _list_first_pass(self, depth: int) -> frozenset[str]:
        """Return the queries that are fitted before the others; none in a level of one pass."""
        passes = self.allotment.workload.passes.get(self.allotment.spine.levels[depth], ())
        if isinstance(self.targets, TreeEstimate) or len(passes) < 2 or "*" in passes[0]:
            return frozenset()
        return frozenset(passes[0])

    def _solve_first_pass(
        self, depth: int, children: Ints, cells: Ints, whole: ParentProblem, first: frozenset[str]
    ) -> HeldSums:
        """Solve totals first, by the first pass alone, on the coarsest cells that it and the constraints tell apart."""
        asked = [row for row, query in enumerate(self.allotment.workload.queries) if query.name in first]
        pattern = np.concatenate([whole.allowed, whole.held, whole.groups[asked]]).T
        _, representative, block = np.unique(pattern, axis=0, return_index=True, return_inverse=True)
        sums = np.bincount(block.ravel(), whole.parent, minlength=len(representative)).astype(np.float64)
        problem = build_problem(
            sums,
            self.targets.linear(depth, children, cells[representative], first),
            whole.allowed[:, representative],
            whole.groups[:, representative],
            whole.weights * np.array([query.name in first for query in self.allotment.workload.queries]),
            whole.classes,
        )._replace(held=np.ascontiguousarray(whole.held[:, representative]), low=whole.low, high=whole.high)
        totals = self._solve(problem).x.sum(axis=1, keepdims=True)
        return HeldSums(np.zeros(len(cells), np.int32), totals, totals)

    def _find_fine_start(
        self, depth: int, nodes: Ints, cells: Ints, groups: Groups, weights: Floats
    ) -> Floats:
        """Return a start at the fine queries' answers for very many cells, else one of no length."""
        if len(cells) < MIN_LARGE_CELLS and not self._holds_product(depth):
            return NO_START
        inside = groups >= 0
        # Fine: every cell it counts is a group of its own, and it counts nearly all.
        fine = [
            int(row.max()) + 1 == int(own.sum()) and own.mean() > 0.9
            for row, own in zip(groups, inside, strict=True)
        ]
        total = weights @ np.array(fine, float)
        if not (total > 0).all():
            return NO_START
        queries = self.allotment.workload.queries
        only = frozenset(query.name for query, own in zip(queries, fine, strict=True) if own)
        result: Floats = self.targets.linear(depth, nodes, cells, only) / total[:, None]
        return np.ascontiguousarray(result)

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
        """Return the optimum; a general solver takes over where sums that cross are not held."""
        solution = solve(problem, tolerance=self.tolerance)
        stuck = solution.distance > 2 * self.tolerance and problem.linear.size <= MAX_GENERIC_CELLS
        if not problem.crowded and (solution.violation > MAX_VIOLATION or stuck):
            solution = crossing.solve_piqp(problem)
        return solution

    def _groups(self, cells: Ints) -> tuple[list[str], Groups]:
        queries = self.allotment.workload.queries
        return [q.name for q in queries], np.stack([compact(q.of(cells)) for q in queries])

    def _weights(self, depth: int, nodes: Ints, names: Sequence[str]) -> Floats:
        level, node = self.allotment.find_holders(depth, nodes)
        rows = []
        for d, i in zip(level, node, strict=True):
            own = self.weights[int(self.allotment.start[d][i]), int(d)]
            rows.append([own.get(name, 0.0) for name in names])
        return np.array(rows)

    def _hold_root_sums(self, cells: Ints) -> tuple[tuple[HeldSums, ...], Groups, Floats, Floats]:
        """Return the held sums of the root for its solve, and the partition that its rounding keeps."""
        families: list[HeldSums] = []
        partition, low, high = np.zeros(len(cells), np.int32), np.full((1, 1), -FREE), np.full((1, 1), FREE)
        for held in self.constraints.solve_queries:
            if held.whole:
                continue
            numbers, place = np.unique(held.query.of(cells), return_inverse=True)
            inside = numbers >= 0
            partition = place.ravel().astype(np.int32)
            low, high = np.full((1, len(numbers)), -FREE), np.full((1, len(numbers)), FREE)
            low[:, inside], high[:, inside] = (
                held.low[0][:1, numbers[inside]],
                held.high[0][:1, numbers[inside]],
            )
            families.append(HeldSums(partition, low, high))
        return tuple(families), partition, low, high

    def _check(self, depth: int, nodes: Ints, cells: Ints, values: Ints) -> None:
        """Check every bound again on the integers; a failure is an error."""
        if (values < 0).any():
            raise self._infeasible_error(depth, nodes, "a rounded cell is negative")
        for held in self.constraints.solve_queries:
            if depth >= len(held.low):
                continue
            index = held.query.of(cells)
            sums = np.zeros((len(nodes), held.query.size), np.int64)
            inside = np.flatnonzero(index >= 0)
            np.add.at(sums.T, index[inside], values[:, inside].T)
            wrong = ((sums < held.low[depth][nodes]) | (sums > held.high[depth][nodes])).any(axis=1)
            if wrong.any():
                why = f"constraint {held.name!r} does not hold after rounding"
                raise self._infeasible_error(depth, nodes[wrong], why)

    def _infeasible_error(self, depth: int, nodes: Ints, why: str) -> InfeasibleError:
        """Return the error that names areas of one parent, whose codes are public."""
        spine = self.allotment.spine
        areas = ", ".join(str(code) for code in spine.codes[depth].gather(nodes[:MAX_NAMED]))
        above = (
            f", in {spine.codes[depth - 1][int(spine.parent[depth][nodes[0]])]}"
            if depth and len(nodes)
            else ""
        )
        more = " and others" if len(nodes) > MAX_NAMED else ""
        return InfeasibleError(
            f"areas of level {spine.levels[depth]} ({areas}{more}{above}) cannot meet every constraint",
            why=why,
            fix="constraints on crossing marginals may have no solution below a given parent; relax one of them",
        )


# Solve the levels of a tree from the top, not one after the other: the children of a family are parents at once.
#
# A large parent takes as long as hundreds of small ones further down, which threads solve meanwhile. What a family's
# result is does not depend on the others, and levels are joined in the order of the spine.

Step = tuple[
    int, Family | None
]  # a depth and its parents; without parents the level is prepared, or the root solved
AFTER_ALL_FAMILIES = 1 << 62  # after every family of a level
Solved = tuple[Sparse, Certificate] | tuple[Triples, Certificate] | None


class Cascade:
    """Solves the levels of a tree that are not known yet, down to ``last``.

    ``ready`` returns when the linear terms of a level are there, and may make them; ``finished`` is told each level when
    it is complete.
    """

    def __init__(
        self,
        estimator: Estimator,
        levels: Sequence[Sparse],
        last: int,
        *,
        workers: int,
        ready: Callable[[int], None],
        finished: Callable[[int, Sparse, Certificate], None],
        progress: Progress | None = None,
    ) -> None:
        self.estimator, self.last, self.workers = estimator, last, workers
        self.ready, self.finished, self.progress = ready, finished, progress
        self.levels = list(levels)
        self.spine = estimator.allotment.spine
        self.certificates = [Certificate(name) for name in self.spine.levels]
        self.pieces: list[list[Triples]] = [[] for _ in self.spine.levels]
        self.done = np.zeros(len(self.spine.levels), np.int64)
        self.solvers: dict[int, LevelSolver] = {}
        self.prepared = max(0, len(self.levels) - 1)
        self.locks = [Lock() for _ in self.spine.levels]

    def solver(self, depth: int) -> LevelSolver:
        """Return the solver of a level, which is laid out once."""
        with self.locks[depth]:
            if depth not in self.solvers:
                self.solvers[depth] = LevelSolver(self.estimator, depth)
            return self.solvers[depth]

    def step(self, task: Step) -> Solved:
        """Solve a family or the root, or prepare the linear terms and the layout of a level."""
        depth, family = task
        if family is not None:
            self.ready(depth)
            return self.solver(depth).solve(family)
        if depth:
            self.ready(depth)
            for level in range(depth, min(depth + 1, self.last) + 1):
                self.solver(level)
            return None
        self.ready(0)
        return self.estimator.root()

    def run(self) -> list[Sparse]:
        """Return every level, those known first."""
        known = len(self.levels)
        tasks: BranchingTasks[Step, Solved] = BranchingTasks(self.step, self.workers)
        self._prepare(tasks, known + 2)
        if not known:
            self._report_progress(0, 0, 1)
            tasks.add((0, 0), (0, None))
        elif known <= self.last:
            self._add(tasks, known, Family(0, self.levels[-1]))
        for (depth, family), found in tasks:
            if found is None:
                continue
            result, certificate = found
            below = self._keep_result(depth, family, result, certificate)
            if depth < self.last:
                self._add(tasks, depth + 1, below)
        for depth in range(len(self.levels), self.last + 1):  # a census without areas has no parents
            self._complete(depth, join_results([], 0, self.spine.size(depth)))
        return self.levels

    def _add(self, tasks: BranchingTasks[Step, Solved], depth: int, parents: Family) -> None:
        """Add parents to solve; upper levels come first, and in a level the largest parents."""
        if not self.done[depth]:
            self._report_progress(depth, 0, self.spine.size(depth - 1))
        self._prepare(tasks, depth + 2)
        for part in self.solver(depth).split_families(parents, self.workers):
            tasks.add((depth, -len(part.above.cells)), (depth, part))

    def _prepare(self, tasks: BranchingTasks[Step, Solved], depth: int) -> None:
        """Prepare the levels down to ``depth``: not earlier, or a thread would do so while the largest parent waits."""
        for level in range(self.prepared + 1, min(depth, self.last) + 1):
            tasks.add((level - 1, AFTER_ALL_FAMILIES), (level, None))
        self.prepared = max(self.prepared, depth)

    def _keep_result(
        self, depth: int, family: Family | None, result: Sparse | Triples, certificate: Certificate
    ) -> Family:
        """Keep what was solved; the histograms of the children are returned as parents of the next level."""
        if isinstance(result, Sparse):
            self.certificates[0] = certificate
            self._complete(0, result)
            self._report_progress(0, 1, 1)
            return Family(0, result)
        assert family is not None
        self.certificates[depth].join(certificate)
        self.pieces[depth].append(result)
        self.done[depth] += len(family.parents)
        parents = self.spine.size(depth - 1)
        self._report_progress(depth, int(self.done[depth]), parents)
        if self.done[depth] == parents:
            self._complete(depth, join_results(self.pieces[depth], 0, self.spine.size(depth)))
            self.pieces[depth].clear()
        first_child = self.spine.first_child[depth - 1]
        first, last = int(first_child[family.first]), int(first_child[family.parents.stop])
        if depth == self.last:
            return Family(first, Sparse(np.zeros(1, np.int64), *result[1:]))
        return Family(first, join_results([result], first, last - first))

    def _report_progress(self, depth: int, done: int, total: int) -> None:
        if self.progress is not None:
            self.progress(self.spine.levels[depth], done, total)

    def _complete(self, depth: int, level: Sparse) -> None:
        self.levels.append(level)
        self.finished(depth, level, self.certificates[depth])
