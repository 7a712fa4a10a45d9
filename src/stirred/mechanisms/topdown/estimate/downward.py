"""Run the downward half of the tree estimate beside the solve: a level's parents need its estimates, not those below."""

from stirred.engine.local.crew import Crew
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate


class DownwardPass:
    """The downward pass of the tree estimate, level by level, run by the threads that solve."""

    def __init__(self, informed: TreeEstimate) -> None:
        self.informed = informed
        self.ready = Crew(self._run_level).wait_for  # waits for the linear terms of a level, or makes them

    def _run_level(self, crew: Crew, depth: int) -> None:
        one = self.informed
        lowest = depth == len(one.levels)
        if depth:
            below = one.leaves if lowest else one.levels[depth]
            gls.downward(one.algebra, one.levels[depth - 1], below, crew)
        if lowest:
            one.prepare_leaves(crew)
        else:
            one.prepare_level(depth, crew)
