"""Check the constraints against the census before anything is solved, and again on the released integers.

A census that satisfies every constraint shows that the problem has a solution. Violations are counted by geounit,
so that parts of the tree can be checked separately and their counts added; so are the findings on released integers.

The set of areas is not checked: released records are counted by the number of a leaf, so they cannot be outside the
tree, and the tree is declared where it is read (``tree.leaves``).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.languages import Phrase
from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown.rules.constraints import Constraints, HeldQuery, compile_rules
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.tree.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.rule import Rule
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census

Ints = NDArray[np.int64]
BREACHES = ("fewer records than it asks for", "more records than it allows")
KEPT_PHRASES = {
    "state population": "topdown.kept.population",
    "persons by facilities": "topdown.kept.facilities",
    "residents by type of facility": "topdown.kept.residents",
    "housing units by block": "topdown.kept.units",
}  # the names that presets give what they keep, as keys of the catalog


def compile_and_check(
    census: "Census",
    workload: Workload,
    spine: Tree,
    truth: list[Sparse],
    given: HeldQuery | None = None,
    counted: Mapping[str, Callable[[], Ints]] | None = None,
    *,
    late: str = "",
) -> Constraints:
    """Compile the bounds in every geounit, and check them against the census and each other.

    ``counted`` are the units of rules by name, where somebody else counts and records them; the rule ``late`` is met
    after the solve.
    """
    record = Record()

    def units(rule: Rule) -> Ints:
        if counted is not None and rule.name in counted:
            return counted[rule.name]()
        return record.units(census, rule, workload, spine.levels[-1], spine.codes[-1])

    result = compile_rules(workload, spine, truth, record, units, given, late=late)
    record.tree(census)
    require_consistent(
        result, workload, spine.levels, truth[0], *count_misfits(result, truth, range(len(spine.levels)))
    )
    return result


def count_misfits(
    constraints: Constraints, truth: Sequence[Sparse], depths: Iterable[int]
) -> tuple[Ints, Ints]:
    """Count geounits that break each constraint (held × level × BREACHES) and each pair of them."""
    held = constraints.held
    broken = np.zeros((len(held), len(truth), len(BREACHES)), np.int64)
    clash = np.zeros((len(held), len(held), len(truth)), np.int64)
    for depth in depths:
        for i, one in enumerate(held):
            if depth >= len(one.low):
                continue
            value = sum_answers(truth[depth], one.query)
            broken[i, depth, 0] = (value < one.low[depth]).any(axis=1).sum()
            broken[i, depth, 1] = (value > one.high[depth]).any(axis=1).sum()
            for j, other in enumerate(held):
                if depth < len(other.low):
                    clash[i, j, depth] = _count_clashes(one, other, depth)
    return broken, clash


def find_equalities(constraints: Constraints, levels: int, depths: Iterable[int]) -> NDArray[np.bool_]:
    """Return whether each constraint is an equality in all geounits of each level (held × level)."""
    found = np.ones((len(constraints.held), levels), bool)
    for depth in depths:
        for i, held in enumerate(constraints.held):
            if depth < len(held.low):
                found[i, depth] = bool((held.low[depth] == held.high[depth]).all())
    return found


def require_consistent(
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
    for i in np.flatnonzero(broken.any(axis=(1, 2))):
        if held[i].name not in rules:
            continue  # an earlier product: its own run shows that it is possible, and the census need not agree with it
        depth = np.flatnonzero(broken[i].any(axis=1))[-1]  # the levels above only add up what is wrong below
        told = [
            f"{number} {'geounit' if number == 1 else 'geounits'} with {words}"
            for number, words in zip(broken[i, depth], BREACHES, strict=True)
            if number
        ]
        raise InfeasibleError(
            f"constraint {held[i].name!r} does not hold in the census",
            why=f"level {levels[depth]}, the lowest at fault, has {' and '.join(told)}, so no data set"
            " can meet it together with the exact counts",
            fix=f"edit the records of these areas of level {levels[depth]}, or relax the rule",
        )
    for i, j in np.argwhere(clash.any(axis=2)):
        depth = np.flatnonzero(clash[i, j])[-1]
        raise InfeasibleError(
            f"constraints {held[i].name!r} and {held[j].name!r} cannot both hold",
            why=f"they exclude each other in {clash[i, j, depth]} geounits of level {levels[depth]}",
            fix="relax one of them",
        )


def _count_clashes(one: HeldQuery, other: HeldQuery, depth: int) -> int:
    if one.query == other.query:
        return int((one.low[depth] > other.high[depth]).any(axis=1).sum())
    if other.whole and not one.whole:
        return int((one.low[depth].sum(axis=1) > other.high[depth][:, 0]).sum())
    return 0


@dataclass(slots=True)
class Findings:
    """Results of checks in a part of the tree: whether each constraint is kept, and the numbers it fixes."""

    kept: list[bool]
    numbers: list[int]
    possible: bool = True  # no released record is in a cell that is empty in any census
    agree: bool = True  # children add up to parents, and no count is negative
    entries: int = 0

    @staticmethod
    def of(constraints: Constraints, spine: Tree, levels: Sequence[Sparse], depths: range) -> "Findings":
        """Check these levels, and the parent sums of all but the root."""
        found = Findings([True] * len(constraints.held), [0] * len(constraints.held))
        for i, held in enumerate(constraints.held):
            depth = len(held.low) - 1
            if depth in depths:
                value = sum_answers(levels[depth], held.query)
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
        """Return the findings as checks with words."""
        name = workload.name
        checks = [
            Check(invariant=_describe_constraint(name, held.name), kept=kept, numbers=numbers)
            for held, kept, numbers in zip(constraints.held, self.kept, self.numbers, strict=True)
        ]
        if constraints.zeros:
            zeros = len(constraints.zeros)
            checks.append(
                Check(invariant=Phrase("topdown.check.zeros", name=name), kept=self.possible, numbers=zeros)
            )
        agree = Check(
            invariant=Phrase("topdown.check.adds_up", name=name), kept=self.agree, numbers=self.entries
        )
        return (*checks, agree)


def _describe_constraint(name: str, constraint: str) -> str:
    """Describe in words what a workload keeps; the presets' names are known in every language."""
    known = KEPT_PHRASES.get(constraint)
    return Phrase(known, name=name) if known else f"{name}: {constraint}"
