"""Hold the tree from the root down to the cut in one process, and run its part of a workload."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine
from stirred.engine.threads import begin_call
from stirred.mechanisms.topdown.counts import (
    Sparse,
    count_records,
    place_counts,
    reorder_leaves,
    stack_histograms,
    sum_upward,
)
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import FacilityTypes, find_dividing_rule
from stirred.mechanisms.topdown.dhc_given_pl.parents import (
    EarlierProduct,
    build_agreement,
    count_earlier_records,
    name_agreement,
)
from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.estimate.whole_tree import (
    DownwardPass,
    TreeEstimate,
    measure_levels,
    require_algebra,
)
from stirred.mechanisms.topdown.measure import Allotment, Measurements
from stirred.mechanisms.topdown.rules import (
    Constraints,
    HeldQuery,
    Misfits,
    Record,
    arrange_units,
    compile_and_check,
    compute_bounds,
    find_depth,
    find_equalities,
    find_misfits,
    list_bounding_rules,
    list_structural_zeros,
    require_consistent,
    sum_bounds,
)
from stirred.mechanisms.topdown.run.subtrees.batch import Division
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees
from stirred.mechanisms.topdown.run.task import (
    Task,
    count_threads,
    digest_key,
    digest_nodes,
    digest_run,
    digest_upward,
    wait_for_nothing,
)
from stirred.mechanisms.topdown.tree import QUARTERS_COLUMN, Tree, add_entities, list_leaves, split_tree
from stirred.mechanisms.topdown.workload import Rule, find_quarters_rule, list_occupied_answers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
UnitCounter = Callable[[pl.Series], Ints]
Survey = Sequence[Mapping[str, NDArray[Any]]]  # of every subtree, in order


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperTree:
    """The tree from the root to ``depth``; below it only geounits that are measured for one above.

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
    types: FacilityTypes | None = (
        None  # where the sums of an earlier product are divided among types of facilities
    )

    @staticmethod
    def from_surveys(subtrees: Subtrees, survey: Survey, key: Key, record: Record) -> "UpperTree":
        """Build it from the messages of the subtrees; raises an error if a constraint cannot hold."""
        division = subtrees.division
        sizes = np.stack([shard["sizes"] for shard in survey])
        sizes = np.concatenate([np.zeros((len(sizes), division.depth), np.int64), sizes], axis=1)
        offsets = np.concatenate([np.zeros((1, sizes.shape[1]), np.int64), np.cumsum(sizes, axis=0)[:-1]])
        spine, place = _build_spine(division, subtrees.tops, survey, offsets)
        truth = _collect_truth(division, spine, survey)
        constraints, equal = _build_constraints(division, spine, truth, survey, record)
        allotment = Allotment.of(spine, division.workload, bypass=division.bypass)
        here = find_misfits(constraints, spine, truth, range(division.depth + 1))
        below = (Misfits.read(division.levels, shard) for shard in survey)
        require_consistent(constraints, division.workload, truth[0], [here, *below])
        found = [shard["digest"].tobytes() for shard in survey]
        for depth in range(division.depth - 1, -1, -1):
            found = digest_nodes(key, spine, constraints, depth, found)
        names = [held.name for held in constraints.held]
        return UpperTree(
            depth=division.depth,
            height=len(division.spine) + int(division.root is not None),
            spine=spine,
            published=subtrees.published,
            truth=truth,
            allotment=allotment,
            constraints=constraints,
            equal=equal,
            offsets=offsets,
            input_digest=digest_run(key, division.levels, names, found),
            place=place,
            types=division.types,
        )

    def estimate_tree(
        self,
        measurements: Measurements,
        engine: Engine,
        risen: Sequence[Mapping[str, Floats]] | None,
        *,
        complete: bool,
    ) -> tuple[TreeEstimate, Callable[[int], None]]:
        """Return the tree estimate down to the cut, and a function that waits for that of a level.

        ``risen`` are the estimates from below the cut, if any; ``complete`` asks for all levels before the first solve.
        """
        if risen is None:
            if complete or count_threads(engine) == 1:
                return TreeEstimate.of(measurements, self.constraints, engine), wait_for_nothing
            whole = TreeEstimate.estimate_upward(measurements, self.constraints, engine)
            return whole, DownwardPass(whole).ready
        algebra = require_algebra(measurements, self.constraints)
        levels = measure_levels(algebra, measurements, self.constraints, range(self.depth))
        none = np.zeros(0, np.int64)
        tops = whole_tree.Level(self.spine.parent[self.depth], none, np.empty(0), np.empty(0))
        tops.b, tops.C = np.stack([top["b"] for top in risen]), np.stack([top["C"] for top in risen])
        whole_tree.estimate_tree(algebra, levels, tops, engine)
        result = TreeEstimate(algebra, measurements, [*levels, tops], whole_tree.Leaves(none, []))
        result.prepare(engine)
        return result, wait_for_nothing

    def to_published(self, levels: list[Sparse]) -> list[Sparse]:
        """Return the same histograms in the published geography and axes."""
        if self.depth < len(self.spine.levels) - 1:
            return levels
        if self.types is None and self.published is self.spine:
            return levels
        workload = self.allotment.workload if self.types is None else self.types.base
        leaves, cells = (
            levels[-1] if self.types is None else self.types.shorten_leaves(levels[-1]),
            workload.histogram.cells,
        )
        return sum_upward(self.published, reorder_leaves(self.published, self.spine, leaves, cells), cells)


def _add_quarters(task: Task, leaves: pl.DataFrame, units: Mapping[str, UnitCounter]) -> pl.DataFrame:
    """Add the types of group quarters of each leaf, where a rule makes these counts an invariant."""
    rule = find_quarters_rule(task.workload)
    if rule is None:
        return leaves
    counts = units[rule.name](leaves[task.census.schema.spine[-1]])
    bits = np.zeros(len(counts), np.int64)
    for answer in list_occupied_answers(rule):
        bits |= (counts[:, answer] > 0).astype(np.int64) << answer
    return leaves.with_columns(pl.Series(QUARTERS_COLUMN, bits, pl.Int64))


def _count_units(task: Task, record: Record) -> dict[str, UnitCounter]:
    """Return, for each rule that bounds by units, a function from leaf codes to units there."""
    census, workload, leaf = task.census, task.workload, task.census.schema.spine[-1]

    def of(rule: Rule) -> UnitCounter:
        found = cache(
            begin_call(partial(record.count_units, census, rule, workload, leaf), count_threads(task.engine))
        )
        return lambda codes: arrange_units(found(), workload.query(rule.query).size, leaf, codes)

    return {rule.name: of(rule) for rule in list_bounding_rules(workload) if rule.kind == "facilities"}


def build_whole_tree(task: Task) -> UpperTree:
    """Build the tree of a census with histograms and constraints; raise if a constraint cannot hold."""
    census, workload, settings = task.census, task.workload, task.settings
    record = Record()
    # Records and units are counted while the tree is made.
    records = begin_call(lambda: count_records(task.census, task.workload), count_threads(task.engine))
    by_code = _count_units(task, record)
    geography = list_leaves(census, workload)
    spine = published = Tree.of(geography, census.schema.spine, root=workload.levels[0])
    if settings.spine:
        if settings.spine.quarters:
            geography = _add_quarters(task, geography, by_code)
        beside = [name for name in settings.spine.entities if name not in census.schema.spine]
        geography = add_entities(census, geography, beside)
        geography, levels, workload = split_tree(settings.spine, geography, census.schema.spine, workload)
        spine = Tree.of(geography, levels, root=workload.levels[0])
    units = {name: cache(partial(count, spine.codes[-1])) for name, count in by_code.items()}
    truth = place_counts(records(), workload, spine, census.schema.spine[-1])
    earlier, types = None, None
    if workload.given and task.given is not None:
        rule = find_dividing_rule(workload, task.mode)
        if rule is None:
            earlier = build_agreement(census, workload, spine, task.given)
        else:
            facilities = units[rule.name]()
            counts = count_earlier_records(census, EarlierProduct.of(workload, task.given), spine)
            types = FacilityTypes(base=workload, rule=rule)
            types = types.with_patterns(types.patterns(facilities, *counts))
            workload = types.workload
            truth = sum_upward(spine, types.extend_leaves(truth[-1], facilities), workload.histogram.cells)
            earlier = types.hold_sums(name_agreement(workload), types.exact(facilities, *counts), spine)
    allotment = Allotment.of(spine, workload, bypass=settings.bypass)
    late = "" if types is None else types.rule.name
    constraints = compile_and_check(census, workload, spine, truth, earlier, units, late=late)
    constraints.record.used.update(record.used)
    return UpperTree(
        depth=len(spine.levels) - 1,
        height=len(published.levels),
        spine=spine,
        published=published,
        truth=truth,
        allotment=allotment,
        constraints=constraints,
        equal=find_equalities(constraints, len(spine.levels), range(len(spine.levels))),
        offsets=np.zeros((0, len(spine.levels)), np.int64),
        input_digest=digest_input(digest_key(task.key), spine, truth[-1], constraints),
        types=types,
    )


def digest_input(reader: Key, spine: Tree, leaves: Sparse, constraints: Constraints) -> bytes:
    """Return a keyed digest of all that is read: records by leaf, the tree with its codes, bounds."""
    names = [held.name for held in constraints.held]
    return digest_run(reader, spine.levels, names, digest_upward(reader, spine, constraints, leaves))


def _build_spine(
    division: Division, tops: Tree, survey: Survey, offsets: Ints
) -> tuple[Tree, tuple[Ints, ...]]:
    """Return the tree with the geounits below the cut that represent others, and their numbers."""
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


def _collect_truth(division: Division, spine: Tree, survey: Survey) -> list[Sparse]:
    """Return the histograms of all geounits that are here."""
    size = division.workload.histogram.cells
    levels = [stack_histograms([(told["cells"], told["counts"]) for told in survey])]
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
        levels.append(stack_histograms(entries))
    return levels


def _build_constraints(
    division: Division, spine: Tree, truth: list[Sparse], survey: Survey, record: Record
) -> tuple[Constraints, NDArray[np.bool_]]:
    """Compile rules of upper levels from the histograms here, of lower ones from subtree sums."""
    at = 0

    def hold_query(name: str, size: int, depth: int) -> HeldQuery:
        nonlocal at
        query = (
            division.given
            if division.given is not None and name == name_agreement(division.workload)
            else None
        )
        query = query or division.workload.query(
            next(r.query for r in list_bounding_rules(division.workload) if r.name == name)
        )
        low, high = (
            np.stack([shard["bounds"][at + i * size : at + (i + 1) * size] for shard in survey])
            for i in range(2)
        )
        at += 2 * size
        held = sum_bounds(name, query, low, high, spine, division.depth)
        below = (np.zeros((0, size), np.int64),) * (depth - division.depth)
        late = division.types is not None and name == division.types.rule.name
        return HeldQuery(name, query, (*held.low, *below), (*held.high, *below), late)

    def units(rule: Rule) -> Ints:
        raise AssertionError(f"{rule.kind} rules are counted at the leaves")

    held: list[HeldQuery] = []
    if division.given is not None:
        held.append(hold_query(name_agreement(division.workload), division.given.size, division.last))
    for rule in list_bounding_rules(division.workload):
        depth, query = find_depth(rule, spine), division.workload.query(rule.query)
        if depth > division.depth:
            if rule.kind in {"exact", "facilities"}:
                record.record_use(rule, division.workload, spine.levels[depth])
            held.append(hold_query(rule.name, query.size, depth))
        else:
            low, high = compute_bounds(rule, division.workload, spine, truth, record, units)
            held.append(sum_bounds(rule.name, query, low, high, spine, depth))
    for rule in (rule for rule in division.workload.rules if rule.kind == "parts"):
        record.record_use(
            rule, division.workload, rule.level
        )  # parts lie in subtrees, which take bounds from them
    result = Constraints(
        tuple(held), list_structural_zeros(division.workload), record, division.workload.histogram
    )
    equal = find_equalities(result, len(division.levels), range(division.depth + 1))
    equal &= np.all([shard["equal"] for shard in survey], axis=0)
    exact = tuple(bool(equal[i, len(one.low) - 1]) for i, one in enumerate(held))
    return replace(result, exact=exact), equal
