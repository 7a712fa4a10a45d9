"""Check every invariant, bound, structural zero and parent sum again on the released integers.

Parts of the tree can be checked separately: each process checks the levels it holds, and the results are joined.

The set of areas is not checked here: released records are counted by the number of a leaf, so they cannot be
outside the tree, and the tree is declared where it is read (``areas``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown.constraints import Constraints, answers
from stirred.mechanisms.topdown.spine import Spine
from stirred.mechanisms.topdown.tabulate import Sparse
from stirred.mechanisms.topdown.workload import Workload


@dataclass(slots=True)
class Findings:
    """What was found in a part of the tree: for every constraint whether it is kept and how many numbers it fixes."""

    kept: list[bool]
    numbers: list[int]
    possible: bool = True  # no released record is in a cell that is empty in any census
    agree: bool = True  # children add up to parents, and no count is negative
    entries: int = 0

    @staticmethod
    def of(constraints: Constraints, spine: Spine, levels: Sequence[Sparse], depths: range) -> "Findings":
        """Check these levels, and the parent sums of all but the root."""
        found = Findings([True] * len(constraints.held), [0] * len(constraints.held))
        for i, held in enumerate(constraints.held):
            depth = len(held.low) - 1
            if depth in depths:
                value = answers(levels[depth], held.query)
                found.kept[i] = bool(((value >= held.low[depth]) & (value <= held.high[depth])).all())
                found.numbers[i] = value.size
        size = constraints.histogram.cells
        for d in depths:
            found.agree &= bool((levels[d].counts >= 0).all())
            if d == 0:
                continue
            up = levels[d].up(spine.parent[d], spine.size(d - 1), size)
            for name in ("first", "cells", "counts"):
                found.agree &= np.array_equal(getattr(up, name), getattr(levels[d - 1], name))
        last = len(spine.levels) - 1
        if last in depths:
            found.possible = bool(constraints.possible(np.unique(levels[last].cells)).all())
            found.entries = len(levels[last].cells)
        return found

    def join(self, other: "Findings") -> None:
        """Add another part of the tree."""
        self.kept = [a and b for a, b in zip(self.kept, other.kept, strict=True)]
        self.numbers = [a + b for a, b in zip(self.numbers, other.numbers, strict=True)]
        self.possible &= other.possible
        self.agree &= other.agree
        self.entries += other.entries

    def checks(self, workload: Workload, constraints: Constraints) -> tuple[Check, ...]:
        """The findings as checks with words."""
        name = workload.name
        checks = [
            Check(invariant=f"{name}: {held.name}", kept=kept, numbers=numbers)
            for held, kept, numbers in zip(constraints.held, self.kept, self.numbers, strict=True)
        ]
        if constraints.zeros:
            zeros = len(constraints.zeros)
            checks.append(Check(invariant=f"{name}: structural zeros", kept=self.possible, numbers=zeros))
        agree = Check(invariant=f"{name}: children add up to parents", kept=self.agree, numbers=self.entries)
        return (*checks, agree)
