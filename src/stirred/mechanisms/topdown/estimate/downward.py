"""Run the downward half of the tree estimate beside the solve: a level's parents need its estimates, not those below."""

from concurrent.futures import ThreadPoolExecutor

from stirred.engine import Engine
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import Informed


class DownwardPass:
    """The estimates and linear terms of every level, one after the other from the root down, in a thread of their own."""

    def __init__(self, informed: Informed, engine: Engine) -> None:
        self.informed, self.engine = informed, engine
        pool = ThreadPoolExecutor(1)
        self._steps = [pool.submit(self._fall, depth) for depth in range(len(informed.levels) + 1)]
        pool.shutdown(wait=False)  # what is submitted still runs

    def ready(self, depth: int) -> None:
        """Wait for the linear terms of a level; an error in their computation is raised here."""
        self._steps[depth].result()

    def _fall(self, depth: int) -> None:
        one = self.informed
        lowest = depth == len(one.levels)
        if depth:
            below = one.leaves if lowest else one.levels[depth]
            gls.downward(one.algebra, one.levels[depth - 1], below, self.engine)
        if lowest:
            one.prepare_leaves(self.engine)
        else:
            one.prepare_level(depth, self.engine)
