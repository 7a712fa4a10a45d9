"""Meet the bounds by type in leaves that have several types of one kind: exchanges among siblings, then moves.

The sums over the types of a set are exact, whatever the solve did; how they are shared among the types is an estimate,
and a facility has at least one resident. Where a type has too few (or too many), two siblings that have the same types
exchange persons: no sum of their parent changes. Where no sibling can, a person of the leaf itself changes type and stays
in its exact sum, with sex and age as they were unless that type may not have them; sums of the geounits above then follow
from the leaves. Only published sums, numbers of facilities and the solved integers are read. Without noise there is
nothing to repair.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.rules.divided import FacilityTypes
from stirred.mechanisms.topdown.tree.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.histogram import Query

Ints = NDArray[np.int64]


def repair_leaves(
    types: FacilityTypes | None, constraints: Constraints, spine: Tree, levels: list[Sparse], first: int = 0
) -> tuple[list[Sparse], tuple[int, int]]:
    """Return the levels from ``first`` down with leaves within all bounds, and the exchanges and moves."""
    if types is None or not len(levels[-1].cells):
        return levels, (0, 0)
    work = Repair(types, constraints, spine.parent[-1])
    leaves = work.run(levels[-1])
    if not work.moved:
        return [*levels[:-1], leaves], (work.exchanged, 0)
    # the sums of a set keep their values at every level; what changes above is how its types share them
    size = types.workload.histogram.cells
    found = [leaves]
    for d in range(len(levels) - 1, first, -1):
        found.append(found[-1].up(spine.parent[d], spine.size(d - 1), size))
    return [*levels[:first], *found[::-1]], (work.exchanged, work.moved)


@dataclass(slots=True)
class Repair:
    """Changes of the leaves of a tree until bounds by type hold; ``parent`` is the parent of each leaf."""

    types: FacilityTypes
    constraints: Constraints
    parent: Ints
    exchanged: int = 0
    moved: int = 0

    def run(self, leaves: Sparse) -> Sparse:
        """Return the leaves, changed to be within all bounds by type."""
        held = next(one for one in self.constraints.held if one.late)
        found = sum_answers(leaves, held.query)
        wrong = np.flatnonzero(((found < held.low[-1]) | (found > held.high[-1])).any(axis=1))
        near = np.flatnonzero(np.isin(self.parent, self.parent[wrong]))
        work = {
            leaf: _Leaf(self.types, *leaves.at(leaf), found[leaf], held.low[-1][leaf], held.high[-1][leaf])
            for leaf in near.tolist()
        }
        for leaf in wrong.tolist():
            siblings = [one for one in work if one != leaf and self.parent[one] == self.parent[leaf]]
            self._mend(work[leaf], [work[one] for one in siblings])
        if not len(wrong):
            return leaves
        stay = ~np.isin(leaves.nodes, near)
        node = [np.full(len(own.cells), leaf) for leaf, own in work.items()]
        return Sparse.of(
            np.concatenate([leaves.nodes[stay], *node]),
            np.concatenate([leaves.cells[stay], *(own.cells for own in work.values())]),
            np.concatenate([leaves.counts[stay], *(own.counts for own in work.values())]),
            len(leaves.first) - 1,
            self.types.workload.histogram.cells,
        )

    def _mend(self, leaf: "_Leaf", siblings: list["_Leaf"]) -> None:
        while (pair := leaf.wrong()) is not None:
            able = pair[0] != pair[1]
            if able and any(_exchange(leaf, other, *pair) for other in siblings):
                self.exchanged += 1
            elif able and self._move(leaf, *pair):
                self.moved += 1
            else:
                raise InfeasibleError(
                    f"an area of level {self.types.rule.level} cannot meet constraint {self.types.rule.name!r}",
                    why="a type needs a resident there, and structural zeros forbid everyone to change to it",
                    fix="relax the structural zeros of the types, or the rule",
                )

    def _move(self, leaf: "_Leaf", out: int, into: int) -> bool:
        """Change the type of a person of the leaf within its exact sum, with as little other change as can be."""
        for search in (self._alike, self._others):
            found = [
                (-int(leaf.counts[at]), int(leaf.cells[at]), target)
                for at in leaf.of(out).tolist()
                for target in search(leaf, int(leaf.cells[at]), into)[:1].tolist()
            ]
            if found:
                _, cell, target = min(found)
                leaf.change(cell, target)
                return True
        return False

    def _alike(self, leaf: "_Leaf", cell: int, into: int) -> Ints:
        """Return the possible cells of a type that differ from another cell in the type alone."""
        return self._open(leaf, cell, into, [np.array([level]) for level in self._levels(cell)])

    def _others(self, leaf: "_Leaf", cell: int, into: int) -> Ints:
        """Return all cells of a type in the exact sum of another cell, the nearest first."""
        factors = self.types.exact_query.factors
        same = [
            np.flatnonzero(np.array(factor) == factor[level])
            for factor, level in zip(factors, self._levels(cell), strict=True)
        ]
        cells = self._open(leaf, cell, into, same)
        histogram, own = self.types.workload.histogram, self._levels(cell)
        off = [np.abs(levels - own[i]) for i, levels in enumerate(histogram.coordinates(cells))]
        del off[self.types.axis]
        return cells[np.lexsort((cells, np.sum(off, axis=0)))] if len(cells) else cells

    def _open(self, leaf: "_Leaf", cell: int, into: int, choice: list[Ints]) -> Ints:
        axis, histogram = self.types.axis, self.types.workload.histogram
        choice[axis] = np.flatnonzero(np.array(leaf.query.factors[axis]) == into)
        levels = np.array(list(product(*choice)), np.int64).reshape(-1, len(choice)).T
        cells: Ints = np.asarray(np.ravel_multi_index(tuple(levels), histogram.shape), np.int64).reshape(-1)
        given = self.types.exact_query
        cells = cells[given.of(cells) == given.of(np.array([cell]))[0]]
        return cells[self.constraints.possible(cells)]

    def _levels(self, cell: int) -> list[int]:
        return [int(one[0]) for one in self.types.workload.histogram.coordinates(np.array([cell]))]


@dataclass(slots=True)
class _Leaf:
    """A leaf under repair: its persons by cell, and the numbers and bounds of its types."""

    types: FacilityTypes
    cells: Ints
    counts: Ints
    numbers: Ints
    low: Ints
    high: Ints

    @property
    def query(self) -> Query:
        """Return the query of persons by type."""
        return self.types.workload.query(self.types.rule.query)

    def of(self, kind: int) -> Ints:
        """Return where the persons of a type are."""
        return np.flatnonzero((self.query.of(self.cells) == kind) & (self.counts > 0))

    def wrong(self) -> tuple[int, int] | None:
        """Return a type that a person should leave and one to enter; None if all bounds are met."""
        few, many = np.flatnonzero(self.numbers < self.low), np.flatnonzero(self.numbers > self.high)
        if not len(few) and not len(many):
            return None
        kind = self.types.kind_of
        one = int(few[0]) if len(few) else int(many[0])
        room = self.numbers - self.low if len(few) else self.high - self.numbers
        # a type outside its own upper bound is the first to give
        rank = np.where(self.numbers > self.high, room.max() + room, room) if len(few) else room
        others = np.flatnonzero((kind == kind[one]) & (room > 0) & (self.high > 0))
        if not len(others):
            return one, one  # nobody can change
        other = int(others[np.argmax(rank[others])])
        return (other, one) if len(few) else (one, other)

    def change(self, out: int, into: int) -> None:
        """Move one person from one cell to another."""
        cells = np.concatenate([self.cells, [out, into]])
        self.cells, place = np.unique(cells, return_inverse=True)
        counts = np.zeros(len(self.cells), np.int64)
        np.add.at(counts, place.ravel(), np.concatenate([self.counts, [-1, 1]]))
        self.counts = counts
        np.add.at(self.numbers, self.query.of(np.array([out, into])), [-1, 1])


def _exchange(leaf: _Leaf, other: _Leaf, out: int, into: int) -> bool:
    """Exchange a person of type ``out`` for a sibling's of type ``fill`` in one exact sum; the nearest two."""
    if other.numbers[into] <= other.low[into] or other.numbers[out] >= other.high[out]:
        return False
    types = leaf.types
    mine, theirs = leaf.cells[leaf.of(out)], other.cells[other.of(into)]
    if not len(mine) or not len(theirs):
        return False
    same = types.exact_query.of(mine)[:, None] == types.exact_query.of(theirs)[None, :]
    if not same.any():
        return False
    off = np.zeros(same.shape, np.int64)
    histogram = types.workload.histogram
    pairs = zip(histogram.coordinates(mine), histogram.coordinates(theirs), strict=True)
    for axis, (a, b) in enumerate(pairs):
        if axis != types.axis:
            off += np.abs(a[:, None] - b[None, :])
    i, j = divmod(int(np.argmin(np.where(same, off, np.iinfo(np.int64).max))), len(theirs))
    leaf.change(int(mine[i]), int(theirs[j]))
    other.change(int(theirs[j]), int(mine[i]))
    return True
