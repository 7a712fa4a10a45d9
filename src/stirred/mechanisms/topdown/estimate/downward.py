"""Run the downward half of the tree estimate beside the solve: a level's parents need its estimates, not those below."""

from stirred.engine.local.crew import Crew
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import Informed


class DownwardPass:
    """The estimates and linear terms of every level, one after the other from the root down, by the threads that solve."""

    def __init__(self, informed: Informed) -> None:
        self.informed = informed
        self.ready = Crew(self._fall).ready  # waits for the linear terms of a level, or makes them

    def _fall(self, crew: Crew, depth: int) -> None:
        one = self.informed
        lowest = depth == len(one.levels)
        if depth:
            below = one.leaves if lowest else one.levels[depth]
            gls.downward(one.algebra, one.levels[depth - 1], below, crew)
        if lowest:
            one.prepare_leaves(crew)
        else:
            one.prepare_level(depth, crew)
