"""The tree from the root down to the cut, held by one process, and its part of a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine
from stirred.engine.local.threads import begun
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.downward import DownwardPass
from stirred.mechanisms.topdown.estimate.informed import Informed, algebra_of, noisy_levels
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.agreement import Earlier, agreement, agreement_name, counted_before
from stirred.mechanisms.topdown.rules.checks import compiled_rules, equalities, misfits, require
from stirred.mechanisms.topdown.rules.constraints import (
    Constraints,
    HeldQuery,
    bounding,
    bounds,
    depth_of,
    structural,
    summed,
)
from stirred.mechanisms.topdown.rules.divided import DividedTypes, dividing
from stirred.mechanisms.topdown.rules.record import Record, units_at
from stirred.mechanisms.topdown.run import digest
from stirred.mechanisms.topdown.run.levels import at_once, threads
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees
from stirred.mechanisms.topdown.run.subtrees.grove import Division
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree.counts import Sparse, counted, ordinary, placed, stacked, upward
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.tree.leaves import leaf_table
from stirred.mechanisms.topdown.tree.splits import QUARTERS, split, with_entities
from stirred.mechanisms.topdown.workload.rule import Rule, occupied
from stirred.mechanisms.topdown.workload.workload import quarters_rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CountedUnits = Callable[[pl.Series], Ints]
Survey = Sequence[Mapping[str, NDArray[Any]]]  # of every subtree, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class Above:
    """Levels 0 to ``depth`` are complete; below them are only geounits that are measured for one above.

    Where nothing lies below, ``depth`` is that of the leaves.
    """

    depth: int
    height: int  # the number of published levels
    spine: Tree  # the tree that is measured
    published: Tree  # the census's own, down to the cut
    truth: list[Sparse]
    allotment: Allotment
    constraints: Constraints
    equal: NDArray[np.bool_]  # held × levels: which constraints are equalities everywhere at a level
    offsets: Ints  # subtrees × levels: where each subtree's geounits begin in the whole tree
    input_digest: bytes
    place: tuple[Ints, ...] | None = None  # numbers in the whole tree; None: they are those here
    types: DividedTypes | None = (
        None  # where the sums of an earlier product are divided among types of facilities
    )

    @staticmethod
    def told(subtrees: Subtrees, survey: Survey, key: Key, record: Record) -> "Above":
        """Build it from the messages of the subtrees; raises an error if a constraint cannot hold."""
        division = subtrees.division
        sizes = np.stack([shard["sizes"] for shard in survey])
        sizes = np.concatenate([np.zeros((len(sizes), division.depth), np.int64), sizes], axis=1)
        offsets = np.concatenate([np.zeros((1, sizes.shape[1]), np.int64), np.cumsum(sizes, axis=0)[:-1]])
        spine, place = _spine(division, subtrees.tops, survey, offsets)
        truth = _truth(division, spine, survey)
        constraints, equal = _constraints(division, spine, truth, survey, record)
        allotment = Allotment.of(spine, division.workload, bypass=division.bypass)
        broken, clash = misfits(constraints, truth, range(division.depth + 1))
        broken = broken + sum(shard["broken"] for shard in survey)
        clash = clash + sum(shard["clash"] for shard in survey)
        require(constraints, division.workload, division.levels, truth[0], broken, clash)
        found = [shard["digest"].tobytes() for shard in survey]
        for depth in range(division.depth - 1, -1, -1):
            found = digest.nodes(key, spine, constraints, depth, found)
        names = [held.name for held in constraints.held]
        return Above(
            depth=division.depth,
            height=len(division.spine) + int(division.root is not None),
            spine=spine,
            published=subtrees.published,
            truth=truth,
            allotment=allotment,
            constraints=constraints,
            equal=equal,
            offsets=offsets,
            input_digest=digest.whole(key, division.levels, names, found),
            place=place,
            types=division.types,
        )

    def informed(
        self,
        measurements: Measurements,
        engine: Engine,
        risen: Sequence[Mapping[str, Floats]] | None,
        *,
        complete: bool,
    ) -> tuple[Informed, Callable[[int], None]]:
        """The estimate over the whole tree, down to the cut, and a function that waits for that of a level.

        ``risen`` are the estimates from below the cut, if any; ``complete`` asks for all levels before the first solve.
        """
        if risen is None:
            if complete or threads(engine) == 1:
                return Informed.of(measurements, self.constraints, engine), at_once
            whole = Informed.risen(measurements, self.constraints, engine)
            return whole, DownwardPass(whole).ready
        algebra = algebra_of(measurements, self.constraints)
        levels = noisy_levels(algebra, measurements, self.constraints, range(self.depth))
        none = np.zeros(0, np.int64)
        tops = gls.Level(self.spine.parent[self.depth], none, np.empty(0), np.empty(0))
        tops.b, tops.C = np.stack([top["b"] for top in risen]), np.stack([top["C"] for top in risen])
        gls.estimate(algebra, levels, tops, engine)
        result = Informed(algebra, measurements, [*levels, tops], gls.Leaves(none, []))
        result.prepare(engine)
        return result, at_once

    def released(self, levels: list[Sparse]) -> list[Sparse]:
        """The same histograms in the published geography and axes; above the cut both trees have the same geounits."""
        if self.depth < len(self.spine.levels) - 1:
            return levels
        if self.types is None and self.published is self.spine:
            return levels
        workload = self.allotment.workload if self.types is None else self.types.base
        leaves, cells = (
            levels[-1] if self.types is None else self.types.shorter(levels[-1]),
            workload.histogram.cells,
        )
        return upward(self.published, ordinary(self.published, self.spine, leaves, cells), cells)


def _with_quarters(task: Task, leaves: pl.DataFrame, units: Mapping[str, CountedUnits]) -> pl.DataFrame:
    """The leaves with the types of group quarters that they have, where a rule makes these counts an invariant."""
    rule = quarters_rule(task.workload)
    if rule is None:
        return leaves
    counts = units[rule.name](leaves[task.census.schema.spine[-1]])
    bits = np.zeros(len(counts), np.int64)
    for answer in occupied(rule):
        bits |= (counts[:, answer] > 0).astype(np.int64) << answer
    return leaves.with_columns(pl.Series(QUARTERS, bits, pl.Int64))


def _counted_units(task: Task, record: Record) -> dict[str, CountedUnits]:
    """For each rule that bounds by units a function from codes of leaves to the units there, whose count is begun."""
    census, workload, leaf = task.census, task.workload, task.census.schema.spine[-1]

    def of(rule: Rule) -> CountedUnits:
        found = cache(
            begun(partial(record.counted_units, census, rule, workload, leaf), threads(task.engine))
        )
        return lambda codes: units_at(found(), workload.query(rule.query).size, leaf, codes)

    return {rule.name: of(rule) for rule in bounding(workload) if rule.kind == "facilities"}


def whole(task: Task) -> Above:
    """The tree of a census with its histograms and constraints; raises an error if a constraint cannot hold."""
    census, workload, settings = task.census, task.workload, task.settings
    record = Record()
    # Records and units are counted while the tree is made.
    records = begun(lambda: counted(task.census, task.workload), threads(task.engine))
    by_code = _counted_units(task, record)
    geography = leaf_table(census, workload)
    spine = published = Tree.of(geography, census.schema.spine, root=workload.levels[0])
    if settings.spine:
        if settings.spine.quarters:
            geography = _with_quarters(task, geography, by_code)
        beside = [name for name in settings.spine.entities if name not in census.schema.spine]
        geography = with_entities(census, geography, beside)
        geography, levels, workload = split(settings.spine, geography, census.schema.spine, workload)
        spine = Tree.of(geography, levels, root=workload.levels[0])
    units = {name: cache(partial(count, spine.codes[-1])) for name, count in by_code.items()}
    truth = placed(records(), workload, spine, census.schema.spine[-1])
    earlier, types = None, None
    if workload.given and task.given is not None:
        rule = dividing(workload, task.mode)
        if rule is None:
            earlier = agreement(census, workload, spine, task.given)
        else:
            facilities = units[rule.name]()
            counts = counted_before(census, Earlier.of(workload, task.given), spine)
            types = DividedTypes(base=workload, rule=rule)
            types = types.with_patterns(types.patterns(facilities, *counts))
            workload = types.workload
            truth = upward(spine, types.longer(truth[-1], facilities), workload.histogram.cells)
            earlier = types.held(agreement_name(workload), types.exact(facilities, *counts), spine)
    allotment = Allotment.of(spine, workload, bypass=settings.bypass)
    late = "" if types is None else types.rule.name
    constraints = compiled_rules(census, workload, spine, truth, earlier, units, late=late)
    constraints.record.used.update(record.used)
    return Above(
        depth=len(spine.levels) - 1,
        height=len(published.levels),
        spine=spine,
        published=published,
        truth=truth,
        allotment=allotment,
        constraints=constraints,
        equal=equalities(constraints, len(spine.levels), range(len(spine.levels))),
        offsets=np.zeros((0, len(spine.levels)), np.int64),
        input_digest=input_digest(digest.reader(task.key), spine, truth[-1], constraints),
        types=types,
    )


def input_digest(reader: Key, spine: Tree, leaves: Sparse, constraints: Constraints) -> bytes:
    """A keyed digest of all that is read: records by leaf, the tree above them with its codes, the bounds that hold."""
    names = [held.name for held in constraints.held]
    return digest.whole(reader, spine.levels, names, digest.climbed(reader, spine, constraints, leaves))


def _spine(division: Division, tops: Tree, survey: Survey, offsets: Ints) -> tuple[Tree, tuple[Ints, ...]]:
    """The tree with the geounits below the cut that represent others, and their numbers in the whole tree."""
    place = [np.arange(len(codes)) for codes in tops.codes]
    parents, codes = list(tops.parent), list(tops.codes)
    shown: list[dict[tuple[int, int], int]] = [{} for _ in division.levels]
    shown[division.depth] = {(number, 0): number for number in range(len(survey))}
    for d in range(division.depth + 1, len(division.levels)):
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
    return Tree(division.levels, tuple(codes), tuple(parents)), tuple(place)


def _truth(division: Division, spine: Tree, survey: Survey) -> list[Sparse]:
    """The histograms of all geounits that are here."""
    size = division.workload.histogram.cells
    levels = [stacked([(told["cells"], told["counts"]) for told in survey])]
    for d in range(division.depth, 0, -1):
        levels.append(levels[-1].up(spine.parent[d], spine.size(d - 1), size))
    levels.reverse()
    for d in range(division.depth + 1, len(division.levels)):
        entries: list[tuple[Ints, Ints]] = []
        for told in survey:
            ends = np.cumsum(told["below_sizes"])
            for i in np.flatnonzero(told["below"][:, 0] == d):
                part = slice(ends[i] - told["below_sizes"][i], ends[i])
                entries.append((told["below_cells"][part], told["below_counts"][part]))
        levels.append(stacked(entries))
    return levels


def _constraints(
    division: Division, spine: Tree, truth: list[Sparse], survey: Survey, record: Record
) -> tuple[Constraints, NDArray[np.bool_]]:
    """Rules of upper levels from the histograms here; those of lower ones from the subtrees' sums."""
    at = 0

    def told(name: str, size: int, depth: int) -> HeldQuery:
        nonlocal at
        query = (
            division.given
            if division.given is not None and name == agreement_name(division.workload)
            else None
        )
        query = query or division.workload.query(
            next(r.query for r in bounding(division.workload) if r.name == name)
        )
        low, high = (
            np.stack([shard["bounds"][at + i * size : at + (i + 1) * size] for shard in survey])
            for i in range(2)
        )
        at += 2 * size
        held = summed(name, query, low, high, spine, division.depth)
        below = (np.zeros((0, size), np.int64),) * (depth - division.depth)
        late = division.types is not None and name == division.types.rule.name
        return HeldQuery(name, query, (*held.low, *below), (*held.high, *below), late)

    def units(rule: Rule) -> Ints:
        raise AssertionError(f"{rule.kind} rules are counted at the leaves")

    held: list[HeldQuery] = []
    if division.given is not None:
        held.append(told(agreement_name(division.workload), division.given.size, division.last))
    for rule in bounding(division.workload):
        depth, query = depth_of(rule, spine), division.workload.query(rule.query)
        if depth > division.depth:
            if rule.kind in {"exact", "facilities"}:
                record.told(rule, division.workload, spine.levels[depth])
            held.append(told(rule.name, query.size, depth))
        else:
            low, high = bounds(rule, division.workload, spine, truth, record, units)
            held.append(summed(rule.name, query, low, high, spine, depth))
    for rule in (rule for rule in division.workload.rules if rule.kind == "parts"):
        record.told(rule, division.workload, rule.level)  # parts lie in subtrees, which take bounds from them
    result = Constraints(tuple(held), structural(division.workload), record, division.workload.histogram)
    equal = equalities(result, len(division.levels), range(division.depth + 1))
    equal &= np.all([shard["equal"] for shard in survey], axis=0)
    exact = tuple(bool(equal[i, len(one.low) - 1]) for i, one in enumerate(held))
    return replace(result, exact=exact), equal
