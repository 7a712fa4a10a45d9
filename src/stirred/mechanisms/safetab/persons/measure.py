"""Measure the groups of one region type and level: the first look, then a total or cells, each count with its noise.

Groups without records that would be suppressed are never drawn: how many of them survive, which ones and with which noise
is drawn instead, with the law that drawing all of them would give (proof.md, Lemma 4).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.mechanisms.safetab.groups import GroupCounts, GroupSet
from stirred.mechanisms.safetab.noise import CellNoise
from stirred.mechanisms.safetab.persons.ages import count_cells, map_to_coarser

Ints = NDArray[np.int64]
FINEST_CELLS = 46


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The noise of a group set: of the first look, of what follows it, and of groups that get a total without a look."""

    first: CellNoise
    second: CellNoise
    whole: CellNoise
    thresholds: tuple[int, ...]
    cut: int | None = None  # totals up to this one are not shown; None: all are shown

    @property
    def sparse(self) -> bool:
        """Return whether nearly all groups without records vanish, so that they need no draw each."""
        return self.cut is not None and self.cut >= 0 and self.thresholds[0] > 0


@dataclass(frozen=True, slots=True)
class MeasuredGroups:
    """The published part of a group set: totals of groups, rising, and cells of groups by detail."""

    totals: Ints
    total_counts: Ints
    looked: NDArray[
        np.bool_
    ]  # whether a total followed a first look, with the smaller part of the budget for it
    cells: dict[int, tuple[Ints, Ints]]  # by level of detail: the groups, and one row of counts for each


def measure_groups(
    item: GroupSet, counts: GroupCounts, detailed: Ints, stages: Stages, key: Key
) -> MeasuredGroups:
    """Run both stages; ``detailed`` are the numbers of iterations that get a total without a first look."""
    name = (item.kind.name, item.level)
    groups, true = counts.totals()
    if not stages.sparse:
        dense = np.zeros(item.number, np.int64)
        dense[groups] = true
        groups, true = np.arange(item.number, dtype=np.int64), dense
    alone = np.isin(groups % max(item.iterations, 1), detailed)
    numbers = groups.astype(np.uint64)
    plain = true[alone] + stages.whole.at(key, ("whole", *name), numbers[alone])
    seen = true[~alone] + stages.first.at(key, ("first", *name), numbers[~alone])
    detail = np.searchsorted(stages.thresholds, seen, side="right")
    low = groups[~alone][detail == 0]
    totals = true[~alone][detail == 0] + stages.second.at(key, ("total", *name), low.astype(np.uint64))
    chosen = {level: groups[~alone][detail == level] for level in (1, 2, 3)}
    if stages.sparse:
        low, totals, chosen = _add_empty(item, groups, low, totals, chosen, stages, key)
    merged = np.concatenate([groups[alone], low])
    figures = np.concatenate([plain, totals])
    looked = np.concatenate([np.zeros(len(plain), bool), np.ones(len(totals), bool)])
    kept = np.ones(len(merged), bool) if stages.cut is None else figures > stages.cut
    order = np.argsort(merged[kept], kind="stable")
    cells = {
        level: (np.sort(some), _measure_cells(np.sort(some), counts, level, stages, key, name))
        for level, some in chosen.items()
        if len(some)
    }
    return MeasuredGroups(merged[kept][order], figures[kept][order], looked[kept][order], cells)


def _add_empty(
    item: GroupSet,
    groups: Ints,
    low: Ints,
    totals: Ints,
    chosen: dict[int, Ints],
    stages: Stages,
    key: Key,
) -> tuple[Ints, Ints, dict[int, Ints]]:
    """Add the groups without records that pass the first look, and those whose total is above the cut."""
    name, empty = (item.kind.name, item.level), item.number - len(groups)
    passing, seen = stages.first.above(key, ("first empty", *name), empty, stages.thresholds[0] - 1)
    detail = np.searchsorted(stages.thresholds, seen, side="right")
    number = absent_numbers(groups, passing)
    chosen = {level: np.concatenate([some, number[detail == level]]) for level, some in chosen.items()}
    cut = -1 if stages.cut is None else stages.cut
    places, noise = stages.second.above(key, ("total empty", *name), empty - len(passing), cut)
    left = absent_numbers(groups, absent_numbers(passing, places))
    return np.concatenate([low, left]), np.concatenate([totals, noise]), chosen


def absent_numbers(present: Ints, places: Ints) -> Ints:
    """Return the numbers at some places of the rising list of all numbers that are not present.

    >>> absent_numbers(np.array([1, 2, 5]), np.array([0, 1, 2, 3]))
    array([0, 3, 4, 6])
    """
    before = present - np.arange(len(present))
    return places + np.searchsorted(before, places, side="right")


def _measure_cells(
    groups: Ints, counts: GroupCounts, level: int, stages: Stages, key: Key, name: tuple[str, int]
) -> Ints:
    """Return one row of cells for each group: the counts, with noise on every cell."""
    width = count_cells(level)
    rows = np.zeros((len(groups), width), np.int64)
    owner, cell = np.divmod(counts.keys, counts.cells)
    place = np.searchsorted(groups, owner)
    inside = place < len(groups)
    inside[inside] = groups[place[inside]] == owner[inside]
    np.add.at(rows, (place[inside], map_to_coarser(level)[cell[inside]]), counts.counts[inside])
    numbers = (groups[:, None] * FINEST_CELLS + np.arange(width)[None, :]).astype(np.uint64).ravel()
    return rows + stages.second.at(key, ("cells", *name), numbers).reshape(rows.shape)
