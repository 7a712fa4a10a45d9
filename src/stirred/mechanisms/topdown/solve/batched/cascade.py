"""Solve the levels of a tree from the top, not one after the other: the children of a family are parents at once.

A large parent takes as long as hundreds of small ones further down, which threads solve meanwhile. What a family's
result is does not depend on the others, and levels are joined in the order of the spine.
"""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Protocol

import numpy as np

from stirred.engine import Progress
from stirred.engine.local.threads import BranchingTasks
from stirred.mechanisms.topdown.solve.batched.batch import (
    Family,
    LevelSolver,
    ParentSolver,
    Triples,
    join_results,
)
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse

Step = tuple[
    int, Family | None
]  # a depth and its parents; without parents the level is prepared, or the root solved
AFTER_ALL_FAMILIES = 1 << 62  # after every family of a level
Solved = tuple[Sparse, Certificate] | tuple[Triples, Certificate] | None


class TreeSolver(ParentSolver, Protocol):
    """An estimator that also solves the root."""

    def root(self) -> tuple[Sparse, Certificate]: ...


class Cascade:
    """Solves the levels of a tree that are not known yet, down to ``last``.

    ``ready`` returns when the linear terms of a level are there, and may make them; ``finished`` is told each level when
    it is complete.
    """

    def __init__(
        self,
        estimator: TreeSolver,
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
