"""The tree from the root down to the shards' tops, held by one process, and its part of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import Informed, algebra_of, noisy_levels
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.agreement import agreement_name
from stirred.mechanisms.topdown.rules.checks import misfits, require
from stirred.mechanisms.topdown.rules.constraints import (
    Constraints,
    HeldQuery,
    bounding,
    bounds,
    depth_of,
    structural,
    summed,
)
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.run import digest
from stirred.mechanisms.topdown.run.subtrees.grove import Division
from stirred.mechanisms.topdown.tree.counts import Sparse, stacked
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.rule import Rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Survey = Sequence[Mapping[str, NDArray[Any]]]  # of every shard, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Upper:
    """Levels 0 to the shards' tops are complete; below them are only geounits that are measured for one above."""

    plan: Division
    spine: Tree
    truth: list[Sparse]
    allotment: Allotment
    constraints: Constraints
    place: tuple[Ints, ...]  # numbers in the whole tree
    offsets: Ints  # shards × levels: where each shard's geounits begin in the whole tree
    input_digest: bytes

    @staticmethod
    def of(plan: Division, tops: Tree, survey: Survey, key: Key, record: Record) -> "Upper":
        """Build it from the messages of the shards; raises an error if a constraint cannot hold."""
        sizes = np.stack([shard["sizes"] for shard in survey])
        sizes = np.concatenate([np.zeros((len(sizes), plan.depth), np.int64), sizes], axis=1)
        offsets = np.concatenate([np.zeros((1, sizes.shape[1]), np.int64), np.cumsum(sizes, axis=0)[:-1]])
        spine, place = _spine(plan, tops, survey, offsets)
        truth = _truth(plan, spine, survey)
        constraints = _constraints(plan, spine, truth, survey, record)
        allotment = Allotment.of(spine, plan.workload, bypass=plan.bypass)
        broken, clash = misfits(constraints, truth, range(plan.depth + 1))
        broken = broken + sum(shard["broken"] for shard in survey)
        clash = clash + sum(shard["clash"] for shard in survey)
        require(constraints, plan.workload, plan.levels, truth[0], broken, clash)
        found = [shard["digest"].tobytes() for shard in survey]
        for depth in range(plan.depth - 1, -1, -1):
            found = digest.nodes(key, spine, constraints, depth, found)
        names = [held.name for held in constraints.held]
        return Upper(
            plan=plan, spine=spine, truth=truth, allotment=allotment, constraints=constraints, place=place,
            offsets=offsets, input_digest=digest.whole(key, plan.levels, names, found),
        )  # fmt: skip

    def measurements(self, key: Key | None, emphasis: int) -> Measurements:
        """The measurements of its geounits."""
        return Measurements(self.allotment, self.truth, key, emphasis, self.place)

    def informed(self, measurements: Measurements, risen: Sequence[Mapping[str, Floats]]) -> Informed:
        """The estimate over the whole tree, down to the shards' tops: theirs from below, the rest from here."""
        depth = self.plan.depth
        algebra = algebra_of(measurements, self.constraints)
        levels = noisy_levels(algebra, measurements, self.constraints, range(depth))
        none = np.zeros(0, np.int64)
        tops = gls.Level(self.spine.parent[depth], none, np.empty(0), np.empty(0))
        tops.b, tops.C = np.stack([top["b"] for top in risen]), np.stack([top["C"] for top in risen])
        leaves = gls.Leaves(none, [])
        below = tops
        for level in reversed(levels):
            gls.upward(algebra, level, below)
            below = level
        below.e = below.b
        levels.append(tops)
        for i in range(depth):
            gls.downward(algebra, levels[i], levels[i + 1])
        result = Informed(algebra, measurements, levels, leaves)
        result.prepare()
        return result


def _spine(plan: Division, tops: Tree, survey: Survey, offsets: Ints) -> tuple[Tree, tuple[Ints, ...]]:
    """The tree with the geounits below the cut that represent others, and their numbers in the whole tree."""
    place = [np.arange(len(codes)) for codes in tops.codes]
    parents, codes = list(tops.parent), list(tops.codes)
    shown: list[dict[tuple[int, int], int]] = [{} for _ in plan.levels]
    shown[plan.depth] = {(number, 0): number for number in range(len(survey))}
    for d in range(plan.depth + 1, len(plan.levels)):
        numbers: list[int] = []
        parent: list[int] = []
        for shard, told in enumerate(survey):
            for _, node, above in told["below"][told["below"][:, 0] == d].tolist():
                shown[d][shard, node] = len(numbers)
                numbers.append(int(offsets[shard, d]) + node)
                parent.append(shown[d - 1][shard, above])
        parents.append(np.array(parent, np.int64))
        place.append(np.array(numbers, np.int64))
        codes.append(pl.Series([""] * len(numbers), dtype=pl.String))
    return Tree(plan.levels, tuple(codes), tuple(parents)), tuple(place)


def _truth(plan: Division, spine: Tree, survey: Survey) -> list[Sparse]:
    """The histograms of all geounits that are here."""
    size = plan.workload.histogram.cells
    levels = [stacked([(told["cells"], told["counts"]) for told in survey])]
    for d in range(plan.depth, 0, -1):
        levels.append(levels[-1].up(spine.parent[d], spine.size(d - 1), size))
    levels.reverse()
    for d in range(plan.depth + 1, len(plan.levels)):
        entries: list[tuple[Ints, Ints]] = []
        for told in survey:
            ends = np.cumsum(told["below_sizes"])
            for i in np.flatnonzero(told["below"][:, 0] == d):
                part = slice(ends[i] - told["below_sizes"][i], ends[i])
                entries.append((told["below_cells"][part], told["below_counts"][part]))
        levels.append(stacked(entries))
    return levels


def _constraints(
    plan: Division, spine: Tree, truth: list[Sparse], survey: Survey, record: Record
) -> Constraints:
    """Rules of upper levels from the histograms here; those of lower ones from the shards' sums."""
    at = 0

    def told(name: str, size: int, depth: int) -> HeldQuery:
        nonlocal at
        query = plan.given if plan.given is not None and name == agreement_name(plan.workload) else None
        query = query or plan.workload.query(next(r.query for r in bounding(plan.workload) if r.name == name))
        low, high = (
            np.stack([shard["bounds"][at + i * size : at + (i + 1) * size] for shard in survey])
            for i in range(2)
        )
        at += 2 * size
        held = summed(name, query, low, high, spine, plan.depth)
        below = (np.zeros((0, size), np.int64),) * (depth - plan.depth)
        return HeldQuery(name, query, (*held.low, *below), (*held.high, *below))

    def units(rule: Rule) -> Ints:
        raise AssertionError(f"{rule.kind} rules are counted at the leaves")

    held: list[HeldQuery] = []
    if plan.given is not None:
        held.append(told(agreement_name(plan.workload), plan.given.size, plan.last))
    for rule in bounding(plan.workload):
        depth, query = depth_of(rule, spine), plan.workload.query(rule.query)
        if depth > plan.depth:
            if rule.kind in {"exact", "facilities"}:
                record.told(rule, plan.workload, spine.levels[depth])
            held.append(told(rule.name, query.size, depth))
        else:
            low, high = bounds(rule, plan.workload, spine, truth, record, units)
            held.append(summed(rule.name, query, low, high, spine, depth))
    exact: NDArray[np.bool_] = np.all([shard["exact"] for shard in survey], axis=0)
    return Constraints(
        tuple(held), structural(plan.workload), record, plan.workload.histogram,
        tuple(
            bool(exact[i]) if len(one.low) - 1 > plan.depth else bool((one.low[-1] == one.high[-1]).all())
            for i, one in enumerate(held)
        ),
    )  # fmt: skip
