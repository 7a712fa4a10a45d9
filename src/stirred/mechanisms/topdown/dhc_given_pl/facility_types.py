"""Divide an earlier product's exact sums among the facility types of each leaf, and repair bounds by type."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError, InputError
from stirred.mechanisms.topdown.counts import Sparse, sum_answers
from stirred.mechanisms.topdown.histogram import Cells, Histogram, Query
from stirred.mechanisms.topdown.rules import Constraints, HeldQuery, sum_bounds
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import WHOLE_TREE_MODES, Rule, Workload

if TYPE_CHECKING:
    from stirred.census import Census


# Divide the exact sums of an earlier product among the types of facilities that each leaf has.
#
# The earlier product counts persons by kind of quarters; the new one by type, and a kind has several types. Both the
# published sums and the numbers of facilities by leaf and type are known exactly. In a leaf whose facilities of one
# kind are all of type $k$, the published sum of the kind is that of $k$. In a leaf with a set $S$ of several types
# only the sum over $S$ is known. So a person of type $k$ is counted in a level of its own for every set $S$ that
# occurs: the sums over the levels of each $S$ are then exact in every geounit, and children add up to their parents
# set by set. Queries count the levels of $k$ together, as they are measured.

Ints = NDArray[np.int64]
MAX_TYPES = 62  # types that one number can list


def find_dividing_rule(workload: Workload, mode: str) -> Rule | None:
    """Return the rule whose facilities are sorted more finely than the earlier product, or None.

    The estimate over the whole tree has no such levels: there the rule is a bound like any other.
    """
    if not workload.given or mode in WHOLE_TREE_MODES:
        return None
    for rule in workload.rules:
        if rule.kind == "facilities":
            query = workload.query(rule.query)
            if sum(query.kept) == 1 and 1 < query.size <= MAX_TYPES and _is_finer(workload, query):
                return rule
    return None


def fit_workload(workload: Workload, mode: str, census: "Census") -> Workload:
    """Return the workload without that rule where units have no type: persons then agree by kind alone."""
    rule = find_dividing_rule(workload, mode)
    if rule is None:
        return workload
    if rule.units in census.schema.record_types and {*rule.unit_source.columns} <= {
        *census.columns(rule.units)
    }:
        return workload
    return replace(workload, rules=tuple(one for one in workload.rules if one is not rule))


def _is_finer(workload: Workload, query: Query) -> bool:
    """Return whether every answer lies in one kind of the earlier product, and a kind has several."""
    axis = query.kept.index(True)
    types, kinds = np.array(query.factors[axis]), np.array(build_given_query(workload).factors[axis])
    if types.min() < 0 or kinds.min() < 0:
        return False
    pairs = np.unique(np.stack([types, kinds], axis=1), axis=0)
    return bool(len(pairs) == query.size > kinds.max() + 1)


def build_given_query(workload: Workload) -> Query:
    """Return the marginal of the histogram that the earlier product published."""
    return workload.histogram.query("given", tuple(target for _, target in workload.given_map))


@dataclass(frozen=True, kw_only=True)
class FacilityQuery(Query):
    """The earlier product's sums, divided by set of types; sums that are always zero are the last answer."""

    axis: int
    sets: tuple[int, ...]  # by level of the axis: the types that share its sums, as the bits of a number
    sums: tuple[tuple[int, int], ...]  # by answer: the set, and the answer of the earlier product

    @property
    def size(self) -> int:
        """Return the number of answers."""
        return len(self.sums) + 1

    @cached_property
    def _place(self) -> tuple[Ints, Ints]:
        """Return the sets, and the answer of each set and earlier answer."""
        known = np.unique(np.array(self.sets, np.int64))
        table = np.full((len(known), int(np.prod(self.shape))), len(self.sums), np.int64)
        for answer, (own, earlier) in enumerate(self.sums):
            table[np.searchsorted(known, own), earlier] = answer
        return known, table

    def of(self, cells: Cells) -> Ints:
        """Return the answer that each cell is counted in."""
        level = np.unravel_index(cells, tuple(len(factor) for factor in self.factors))[self.axis]
        return self.answer(np.array(self.sets, np.int64)[level], Query.of(self, cells))

    def answer(self, sets: Ints, earlier: Ints) -> Ints:
        """Return the answer of a set's part of an earlier answer."""
        known, table = self._place
        return table[np.searchsorted(known, sets), earlier]

    def arrange_answers(self, answers: Ints) -> Ints:
        """Return the same sums by the answers of the earlier product."""
        result = np.zeros((len(answers), int(np.prod(self.shape))), np.int64)
        for answer, (_, earlier) in enumerate(self.sums):
            result[:, earlier] += answers[:, answer]
        return result


@dataclass(frozen=True, slots=True)
class FacilityPatterns:
    """What some leaves have: sets of types, non-zero sums, and how many leaves contradict the sums."""

    sets: frozenset[int] = frozenset()
    sums: frozenset[tuple[int, int]] = frozenset()
    misfits: int = 0

    @staticmethod
    def join(parts: Iterable["FacilityPatterns"]) -> "FacilityPatterns":
        """Return the patterns of all leaves together."""
        found = tuple(parts)
        none: frozenset[int] = frozenset()
        return FacilityPatterns(
            none.union(*(one.sets for one in found)),
            frozenset().union(*(one.sums for one in found)),
            sum(one.misfits for one in found),
        )


@dataclass(frozen=True, kw_only=True)
class FacilityTypes:
    """A workload whose axis of types has a level more for every set of several types and each type in it."""

    base: Workload
    rule: Rule
    found: FacilityPatterns = field(default_factory=FacilityPatterns)

    @cached_property
    def query(self) -> Query:
        """Return the query of the rule: persons by type."""
        return self.base.query(self.rule.query)

    @cached_property
    def earlier(self) -> Query:
        """Return the query that the earlier product published."""
        return build_given_query(self.base)

    @cached_property
    def axis(self) -> int:
        """Return the number of the axis of types."""
        return self.query.kept.index(True)

    @cached_property
    def _types(self) -> Ints:
        """Return the type of each level."""
        return np.array(self.query.factors[self.axis], np.int64)

    @cached_property
    def _kinds(self) -> Ints:
        """Return the kind of each level."""
        return np.array(self.earlier.factors[self.axis], np.int64)

    @cached_property
    def kind_of(self) -> Ints:
        """Return the kind of each type."""
        result = np.zeros(self.query.size, np.int64)
        result[self._types] = self._kinds
        return result

    def masks(self, units: Ints) -> Ints:
        """Return leaves × kinds: the types of each kind that have a facility, as bits."""
        result = np.zeros((len(units), int(self._kinds.max()) + 1), np.int64)
        for answer, kind in enumerate(self.kind_of.tolist()):
            result[:, kind] |= (units[:, answer] > 0).astype(np.int64) << answer
        return result

    def patterns(self, units: Ints, leaf: Ints, number: Ints, count: Ints) -> FacilityPatterns:
        """Return the patterns of leaves, from their facilities and the earlier product's counts."""
        masks = self.masks(units)
        several = np.unique(masks[masks & (masks - 1) != 0])
        kind = np.array(np.unravel_index(number, self.earlier.shape)[self.axis], np.int64)
        held = np.zeros(masks.shape, np.int64)
        np.add.at(held, (leaf, kind), count)
        least, most = np.zeros(masks.shape, np.int64), np.zeros(masks.shape, np.int64)
        for answer, own in enumerate(self.kind_of.tolist()):
            least[:, own] += units[:, answer] * (self.rule.lower[answer] if self.rule.lower else 0)
            most[:, own] += units[:, answer] * self.rule.largest
        pairs = np.unique(np.stack([masks[leaf, kind], number], axis=1)[count > 0], axis=0)
        misfits = int(((held < least) | (held > most)).any(axis=1).sum())
        sums = frozenset((own, earlier) for own, earlier in pairs.tolist())
        return FacilityPatterns(frozenset(several.tolist()), sums, misfits)

    def with_patterns(self, found: FacilityPatterns) -> "FacilityTypes":
        """Return the same with the patterns that occur; raise if the facilities contradict them."""
        if found.misfits:
            raise InputError(
                f"the given product does not fit the facilities of {found.misfits} areas of level {self.rule.level}",
                why="it has persons of a kind there that has no facility, or fewer of them than facilities",
                fix=f"--given a packet of workload {self.base.given} made from the same census",
            )
        return replace(self, found=found)

    @cached_property
    def _extra(self) -> tuple[tuple[int, int], ...]:
        """Return set and level of each level after those of the workload."""
        return tuple(
            (own, level)
            for own in sorted(self.found.sets)
            for level, answer in enumerate(self._types.tolist())
            if own >> answer & 1
        )

    @cached_property
    def _stands(self) -> Ints:
        """Return the level of the workload that each level stands for."""
        return np.array([*range(len(self._types)), *(level for _, level in self._extra)], np.int64)

    @cached_property
    def workload(self) -> Workload:
        """Return the workload on the longer axis; what is measured is the same."""
        own = self.base.histogram.axes[self.axis]
        again = self._stands[len(self._types) :].tolist()
        recodes = {
            name: (*groups, *(groups[level] for level in again)) for name, groups in own.recodes.items()
        }
        # a zero is declared for the level it stands for
        rules = tuple(
            replace(
                rule,
                cells=tuple(
                    (name, self._all(levels) if name == own.name else levels) for name, levels in rule.cells
                ),
            )
            for rule in self.base.rules
        )
        axis = replace(own, size=len(self._stands), labels=(), recodes=recodes)
        axes = (*self.base.histogram.axes[: self.axis], axis, *self.base.histogram.axes[self.axis + 1 :])
        queries = tuple(replace(query, factors=self._extend_query(query)) for query in self.base.queries)
        return replace(self.base, histogram=Histogram(axes=axes), queries=queries, rules=rules)

    def _all(self, levels: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(np.flatnonzero(np.isin(self._stands, levels)).tolist())

    def _extend_query(self, query: Query) -> tuple[tuple[int, ...], ...]:
        factors = list(query.factors)
        factors[self.axis] = tuple(factors[self.axis][level] for level in self._stands.tolist())
        return tuple(factors)

    @cached_property
    def exact_query(self) -> FacilityQuery:
        """Return the query of the exact sums."""
        alone = [1 << answer for answer in self._types.tolist()]
        return FacilityQuery(
            name=self.earlier.name, factors=self._extend_query(self.earlier), kept=self.earlier.kept,
            parts=self.earlier.parts, axis=self.axis, sets=(*alone, *(own for own, _ in self._extra)),
            sums=tuple(sorted(self.found.sums)),
        )  # fmt: skip

    def exact(self, units: Ints, leaf: Ints, number: Ints, count: Ints) -> Ints:
        """Return the exact sums of leaves (leaves × answers), from the earlier product's counts."""
        kind = np.unravel_index(number, self.earlier.shape)[self.axis]
        result = np.zeros((len(units), self.exact_query.size), np.int64)
        np.add.at(result, (leaf, self.exact_query.answer(self.masks(units)[leaf, kind], number)), count)
        return result

    def hold_sums(self, name: str, exact: Ints, spine: Tree, *, first: int = 0) -> HeldQuery:
        """Return the exact sums of leaves and of the levels above as a held query."""
        return sum_bounds(name, self.exact_query, exact, exact, spine, len(spine.levels) - 1, first=first)

    def extend_leaves(self, leaves: Sparse, units: Ints) -> Sparse:
        """Return the workload's histograms of leaves on the longer axis."""
        levels = list(self.base.histogram.coordinates(leaves.cells))
        own = levels[self.axis]
        mask = self.masks(units)[leaves.nodes, self._kinds[own]]
        inside = (mask & (mask - 1) != 0) & (mask >> self._types[own] & 1 == 1)
        sets = np.array(sorted(self.found.sets), np.int64)
        place = np.zeros((len(sets), len(self._types)), np.int64)
        for i, (one, level) in enumerate(self._extra):
            place[np.searchsorted(sets, one), level] = len(self._types) + i
        moved = own.copy()
        moved[inside] = place[np.searchsorted(sets, mask[inside]), own[inside]]
        levels[self.axis] = moved
        return self._renumber(leaves, levels, self.workload.histogram)

    def shorten_leaves(self, leaves: Sparse) -> Sparse:
        """Return histograms on the longer axis as those of the workload, which are published."""
        levels = list(self.workload.histogram.coordinates(leaves.cells))
        levels[self.axis] = self._stands[levels[self.axis]]
        return self._renumber(leaves, levels, self.base.histogram)

    def _renumber(self, leaves: Sparse, levels: list[Ints], histogram: Histogram) -> Sparse:
        cells = np.ravel_multi_index(tuple(levels), histogram.shape).astype(np.int64)
        return Sparse.of(leaves.nodes, cells, leaves.counts, len(leaves.first) - 1, histogram.cells)


# Meet the bounds by type in leaves that have several types of one kind: exchanges among siblings, then moves.
#
# The sums over the types of a set are exact, whatever the solve did; how they are shared among the types is an
# estimate, and a facility has at least one resident. Where a type has too few (or too many), two siblings that have
# the same types exchange persons: no sum of their parent changes. Where no sibling can, a person of the leaf itself
# changes type and stays in its exact sum, with sex and age as they were unless that type may not have them; sums of
# the geounits above then follow from the leaves. Only published sums, numbers of facilities and the solved integers
# are read. Without noise there is nothing to repair.


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
