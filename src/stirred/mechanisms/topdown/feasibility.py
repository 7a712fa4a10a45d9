"""Check before solving that the census satisfies every constraint, and that the constraints do not contradict each other.

A census that satisfies every constraint shows that the problem has a solution. Violations are counted by geounit,
so that parts of the tree can be checked separately and their counts added.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.constraints import Constraints, Held, answers
from stirred.mechanisms.topdown.tabulate import Sparse
from stirred.mechanisms.topdown.workload import Workload

Ints = NDArray[np.int64]


def misfits(constraints: Constraints, truth: Sequence[Sparse], depths: Iterable[int]) -> tuple[Ints, Ints]:
    """How many geounits break each constraint (held × level) and each pair of them (held × held × level)."""
    held = constraints.held
    broken = np.zeros((len(held), len(truth)), np.int64)
    clash = np.zeros((len(held), len(held), len(truth)), np.int64)
    for depth in depths:
        for i, one in enumerate(held):
            if depth >= len(one.low):
                continue
            value = answers(truth[depth], one.query)
            broken[i, depth] = ((value < one.low[depth]) | (value > one.high[depth])).any(axis=1).sum()
            for j, other in enumerate(held):
                if depth < len(other.low):
                    clash[i, j, depth] = _clash(one, other, depth)
    return broken, clash


def require(
    constraints: Constraints, workload: Workload, levels: Sequence[str], root: Sparse, broken: Ints, clash: Ints
) -> None:  # fmt: skip
    """Raise for the first constraint that cannot hold; ``root`` is the histogram of all records."""
    for rule in (rule for rule in workload.rules if rule.kind == "zero"):
        one = Constraints((), (rule.cells,), constraints.record, constraints.histogram)
        outside = int(root.counts[~one.possible(root.cells)].sum())
        if outside:
            raise InfeasibleError(
                f"constraint {rule.name!r} does not hold in the census",
                why=f"{outside} {workload.record} records are in cells that it declares empty",
                fix="edit the records, or drop the rule",
            )
    rules = {rule.name for rule in workload.rules}
    held = constraints.held
    for i, depth in np.argwhere(broken):
        if held[i].name not in rules:
            continue  # an earlier product: its own run shows that it is possible, and the census need not agree with it
        raise InfeasibleError(
            f"constraint {held[i].name!r} does not hold in the census",
            why=f"{broken[i, depth]} geounits of level {levels[depth]} are outside its bounds, so no data set"
            " can meet it together with the exact counts",
            fix="edit the records, or relax the rule",
        )
    for i, j, depth in np.argwhere(clash):
        raise InfeasibleError(
            f"constraints {held[i].name!r} and {held[j].name!r} cannot both hold",
            why=f"they exclude each other in {clash[i, j, depth]} geounits of level {levels[depth]}",
            fix="relax one of them",
        )


def _clash(one: Held, other: Held, depth: int) -> int:
    if one.query == other.query:
        return int((one.low[depth] > other.high[depth]).any(axis=1).sum())
    if other.whole and not one.whole:
        return int((one.low[depth].sum(axis=1) > other.high[depth][:, 0]).sum())
    return 0
