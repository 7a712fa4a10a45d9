"""All data sets of a few households and the persons in them: tables, universes and distances, by enumeration.

A data set is a multiset of households. A household is its own values and the multiset of its persons; with one record
type there are no persons. Distances are those of the joint file, which a person's row and its household's row make up:

- households: those that differ in their own values or in any of their persons, as one file of whole households;
- persons: households of the two data sets are put side by side so that the fewest rows differ (a household may come or
  go). Where the household's values differ, all its rows differ. Under Hamming a row that changes in place counts once; a
  row that moves to another household counts twice where the link is kept, and once where it is free. Under the symmetric
  difference each row that is in one of the two only counts once.

Every household has a person, so that no unit counts as a person. The numbers of households and of persons in one of them
are bounded; the domain that the library is told states the second bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

Ints = NDArray[np.int64]
Where = tuple[tuple[str, tuple[str, ...]], ...]
Levels = tuple[tuple[str, tuple[str, ...]], ...]  # variables with their levels

HOUSEHOLD, PERSON = "household", "person"
NEVER = -1  # an infinite distance


@dataclass(frozen=True)
class Count:
    """A table of counts of one record type by some variables, of records with certain values."""

    kind: str
    by: tuple[str, ...] = ()
    where: Where = ()


@dataclass(frozen=True)
class Reach:
    """Whether a table reaches a number, or another table, cell by cell."""

    table: Count
    than: "int | Count" = 1


@dataclass(frozen=True)
class Whole:
    """Households with all their persons, by some of the household's variables: what a swap of places keeps."""

    by: tuple[str, ...] = ()


Kept = frozenset[Count | Reach | Whole]  # what is published exactly


@dataclass(frozen=True)
class Distance:
    """Hamming where ``change``, else the symmetric difference; ``free``: a move counts once; ``near``: neighbours only."""

    unit: str
    change: bool = True
    free: bool = False
    near: bool = False


@dataclass(frozen=True)
class Home:
    """A household: its values by name, and its persons in a fixed order."""

    values: tuple[tuple[str, str], ...]
    persons: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Town:
    """A domain whose data sets of up to ``most`` households are enumerated.

    ``kind`` names the record type of the households (a file of persons alone has the kind person and no ``people``).
    ``maps``: a variable that is a function of another, the same in all data sets. ``spine``: places, coarse to fine.
    ``size``: a variable that counts the persons of a household.
    """

    name: str
    homes: Levels
    people: Levels | None = None
    kind: str = HOUSEHOLD
    spine: tuple[str, ...] = ()
    maps: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = ()  # of, determines, value by value
    size: str = ""
    largest: int = 2
    most: int = 3
    _kept: dict[Any, Any] = field(default_factory=dict, hash=False, compare=False, repr=False)

    @cached_property
    def kinds(self) -> tuple[Home, ...]:
        """Every household that there may be."""
        found = []
        for values in product(*(levels for _, levels in self.homes)):
            at = dict(zip((name for name, _ in self.homes), values, strict=True))
            if any(dict(by)[at[of]] != at[determined] for of, determined, by in self.maps):
                continue
            found += [
                Home(tuple(at.items()), persons)
                for persons in self._inside()
                if not self.size or at[self.size] == str(len(persons))
            ]
        return tuple(found)

    def _inside(self) -> list[tuple[tuple[str, ...], ...]]:
        if self.people is None:
            return [()]
        each = sorted(product(*(levels for _, levels in self.people)))
        return [
            chosen for n in range(1, self.largest + 1) for chosen in combinations_with_replacement(each, n)
        ]

    @cached_property
    def data(self) -> tuple[tuple[int, ...], ...]:
        """Every data set, as the numbers of its households' kinds."""
        return tuple(
            chosen
            for n in range(self.most + 1)
            for chosen in combinations_with_replacement(range(len(self.kinds)), n)
        )

    @cached_property
    def counts(self) -> Ints:
        found = np.zeros((len(self.data), len(self.kinds)), np.int64)
        for place, data in enumerate(self.data):
            np.add.at(found[place], list(data), 1)
        return found

    def rows(self, kind: str, home: Home) -> list[dict[str, str]]:
        """The records of a type in a household; a person's row carries the values of the household."""
        at = dict(home.values)
        if kind == self.kind:
            return [at]
        if self.people is None or kind != PERSON:
            return []
        names = [name for name, _ in self.people]
        return [{**at, **dict(zip(names, person, strict=True))} for person in home.persons]

    def table(self, table: Count) -> Ints:
        """The cells of a table for every data set."""
        cells: dict[tuple[str, ...], Ints] = {}
        for number, home in enumerate(self.kinds):
            for row in self.rows(table.kind, home):
                if all(row[name] in values for name, values in table.where):
                    key = tuple(row[name] for name in table.by)
                    cells.setdefault(key, np.zeros(len(self.kinds), np.int64))[number] += 1
        if not cells:
            return np.zeros((len(self.data), 1), np.int64)
        return self.counts @ np.stack([cells[key] for key in sorted(cells)], axis=1)

    def statistic(self, kept: Count | Reach | Whole) -> Ints:
        """What is published exactly, for every data set."""
        if isinstance(kept, Count):
            return self.table(kept)
        if isinstance(kept, Whole):
            looks = [(tuple(dict(home.values)[n] for n in kept.by), home.persons) for home in self.kinds]
            return self.counts @ np.array(
                [[one == look for look in sorted({*looks})] for one in looks], np.int64
            )
        if isinstance(kept.than, int):
            return (self.table(kept.table) >= kept.than).astype(np.int64)
        cells = sorted({*self._cells(kept.table), *self._cells(kept.than)})
        return (self._on(kept.table, cells) >= self._on(kept.than, cells)).astype(np.int64)

    def _cells(self, table: Count) -> list[tuple[str, ...]]:
        rows = [row for home in self.kinds for row in self.rows(table.kind, home)]
        inside = [row for row in rows if all(row[name] in values for name, values in table.where)]
        return sorted({tuple(row[name] for name in table.by) for row in inside})

    def _on(self, table: Count, cells: Sequence[tuple[str, ...]]) -> Ints:
        found = np.zeros((len(self.data), len(cells)), np.int64)
        mine = self._cells(table)
        if mine:
            found[:, [cells.index(cell) for cell in mine]] = self.table(table)
        return found

    def universes(self, kept: Kept) -> Ints:
        """The number of each data set's universe."""
        if kept not in self._kept:
            parts = [self.statistic(one) for one in sorted(kept, key=repr)]
            every = np.concatenate([np.zeros((len(self.data), 1), np.int64), *parts], axis=1)
            self._kept[kept] = np.unique(every, axis=0, return_inverse=True)[1].reshape(-1)
        found: Ints = self._kept[kept]
        return found

    @cached_property
    def persons(self) -> Ints:
        """The number of persons of every data set."""
        return self.counts @ np.array([len(home.persons) for home in self.kinds], np.int64)

    def distances(self, distance: Distance) -> Ints:
        """The distance of every two data sets; −1 where it is infinite."""
        asked = ("distance", distance)
        if asked not in self._kept:
            self._kept[asked] = self._distances(distance)
        found: Ints = self._kept[asked]
        return found

    def _distances(self, distance: Distance) -> Ints:
        found = self._matched(distance)
        if distance.change:
            total = self.counts.sum(axis=1) if distance.unit == self.kind else self.persons
            found[total[:, None] != total[None, :]] = NEVER
        if distance.near:
            found[found > 1] = NEVER
        return found

    def _matched(self, distance: Distance) -> Ints:
        """The smallest sum over all ways to put the households of two data sets side by side."""
        none, cost = len(self.kinds), self._costs(distance)
        slots = np.full((len(self.data), self.most), none, np.int64)
        for place, data in enumerate(self.data):
            slots[place, : len(data)] = data
        best: Ints | None = None
        for order in permutations(range(self.most)):
            total = np.zeros((len(self.data), len(self.data)), np.int64)
            for mine, theirs in enumerate(order):
                total += cost[slots[:, mine][:, None], slots[:, theirs][None, :]]
            best = total if best is None else np.minimum(best, total)
        assert best is not None
        # every cost was counted twice, so that a move that counts once is a whole number
        return best // 2

    def _costs(self, distance: Distance) -> Ints:
        """Twice what one household in the place of another costs; the last place is no household."""
        kinds = [*self.kinds, None]
        return np.array(
            [[_cost(one, other, distance, self.kind) for other in kinds] for one in kinds], np.int64
        )

    def steps(self, kept: Kept, distance: Distance) -> Ints:
        """How far apart two data sets of one universe are, by the shortest path inside it; −1 where none leads there.

        The distances are metrics, so that only for neighbours a path is shorter than the distance itself.
        """
        asked = ("steps", kept, distance)
        if asked not in self._kept:
            label = self.universes(kept)
            direct = self.distances(distance)
            inside = np.where(label[:, None] == label[None, :], direct, NEVER)
            if distance.near:
                found = shortest_path(
                    (inside == 1).astype(np.int8), method="D", directed=False, unweighted=True
                )
                inside = np.where(np.isinf(found), NEVER, found).astype(np.int64)
            self._kept[asked] = inside
        found_steps: Ints = self._kept[asked]
        return found_steps

    def smallest(self, kept: Kept, distance: Distance, views: Sequence[Count] = ()) -> int | None:
        """The smallest distance in any universe between data sets that differ in one of the views; None where none do.

        A release whose law is a function of the views cannot tell others apart. Without views all data sets differ.
        """
        label = self.universes(kept)
        shown = self.universes(frozenset(views)) if views else np.arange(len(self.data))
        apart = self.distances(distance)
        asked = (label[:, None] == label[None, :]) & (shown[:, None] != shown[None, :]) & (apart > 0)
        return int(apart[asked].min()) if asked.any() else None

    def written(self, place: int) -> str:
        """One data set in words."""
        homes = [self.kinds[kind] for kind in self.data[place]]
        return (
            "; ".join(
                ",".join(f"{n}={v}" for n, v in home.values)
                + ("" if self.people is None else "[" + " ".join("".join(p) for p in home.persons) + "]")
                for home in homes
            )
            or "nobody"
        )


def _cost(one: Home | None, other: Home | None, distance: Distance, kind: str) -> int:
    """Twice what one household in the place of the other costs."""
    if one == other:
        return 0
    if distance.unit == kind:
        # Hamming: both or none is absent in a best arrangement of equally many households
        return 2 if distance.change or one is None or other is None else 4
    if one is None or other is None:
        alone = one or other
        assert alone is not None
        rows = len(alone.persons)
        return rows if distance.change and distance.free else 2 * rows
    p, q = len(one.persons), len(other.persons)
    same = _common(one.persons, other.persons) if one.values == other.values else 0
    if not distance.change:
        return 2 * (p + q - 2 * same)
    return 2 * (min(p, q) - same) + abs(p - q) * (1 if distance.free else 2)


def _common(one: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]) -> int:
    return sum(min(one.count(person), other.count(person)) for person in {*one})
