"""One workload run in memory, with everything that a test of the estimate looks at."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Engine
from stirred.mechanisms.topdown import Workload
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.rules import Constraints
from stirred.mechanisms.topdown.run import release
from stirred.mechanisms.topdown.run.release import Estimation, estimate_run
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.run.upper_tree import build_whole_tree
from stirred.mechanisms.topdown.tree import Tree


@dataclass(frozen=True)
class Outcome:
    """A task and what was estimated."""

    task: Task
    estimation: Estimation

    @property
    def spine(self) -> Tree:
        return self.estimation.above.spine

    @property
    def levels(self) -> list[Sparse]:
        return self.estimation.levels

    @property
    def constraints(self) -> Constraints:
        return self.estimation.above.constraints

    @property
    def measurements(self) -> Measurements:
        return self.estimation.targets.measurements

    @property
    def informed(self) -> TreeEstimate:
        assert isinstance(self.estimation.targets, TreeEstimate)
        return self.estimation.targets

    def replicates(self, count: int) -> list[Sparse]:
        """The leaf histograms of runs on the release."""
        return [one.levels[-1] for one in self.again(count)]

    def again(self, count: int) -> Iterator[Estimation]:
        for _, one in release.run_replicates(replace(self.task, replicates=count), self.estimation):
            yield one

    def unbiased(self) -> pa.Table:
        """The unbiased estimates of every geounit."""
        informed, workload = self.informed, self.task.workload
        cover = whole_tree.covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
        rows = [
            rows
            for depth in range(len(informed.levels))
            for rows in whole_tree.tabulate_level(workload, self.spine, informed, depth, cover[depth])
        ]
        marginals = whole_tree.list_marginals(workload)
        leaves = whole_tree.tabulate_leaves(workload, self.spine, informed, cover[-1], marginals)
        return pa.concat_tables([*rows, *leaves])


def run(
    census: Census, workload: Workload, settings: Settings, *, key: Key, engine: Engine, **more: Any
) -> Outcome:
    """Count, measure, estimate and solve in this process."""
    task = Task(census=census, workload=workload, settings=settings, key=key, engine=engine, **more)
    above = build_whole_tree(task)
    noise = None if settings.noiseless else key.bind("input", above.input_digest)
    return Outcome(task, estimate_run(task, above, None, noise))
