"""Bring the census's records into parts that hold whole subtrees, with the counts that the rules need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.arrow import pads
from stirred.engine import Engine
from stirred.engine.base import Flow, Parts, Read
from stirred.mechanisms.topdown.rules.agreement import Earlier
from stirred.mechanisms.topdown.rules.constraints import bounding, depth_of, structural
from stirred.mechanisms.topdown.rules.divided import DividedTypes, dividing
from stirred.mechanisms.topdown.run.output import REPLICATE, shown
from stirred.mechanisms.topdown.run.subtrees.cut import Cut, Listed, cut, listed
from stirred.mechanisms.topdown.run.subtrees.grove import PATTERNS, Division, TypePatterns
from stirred.mechanisms.topdown.run.subtrees.prepare import (
    Preparation,
    check_codes,
    prepared_schema,
)
from stirred.mechanisms.topdown.run.subtrees.rows import (
    COUNTS,
    EARLIER,
    PART,
    SHARD,
    UNITS,
    CountedRecords,
    PlacedAreas,
)
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree.counts import no_area, no_cell
from stirred.mechanisms.topdown.tree.geounits import Tree, root_name
from stirred.mechanisms.topdown.tree.splits import mixed_areas, split
from stirred.mechanisms.topdown.workload.histogram import column
from stirred.mechanisms.topdown.workload.rule import Rule, occupied
from stirred.mechanisms.topdown.workload.workload import TREE, Workload, quarters_rule

if TYPE_CHECKING:
    from stirred.census import Census

PER_LEAF = 100  # records, about, when parts are cut
FEWEST = 8  # parts, so that several workers can be busy
MOST = (
    32  # parts of the areas alone, which are small: each of them reports nearly every geounit above the cut
)
RECORD = 100  # bytes for each record while it is counted
CELL = 20  # bytes for each cell of a leaf: four numbers where it is active, and its share of the levels above
LEAF = 500  # bytes for each leaf besides
LARGEST = 1 << 16  # cells beyond which only those that occur are held


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtrees:
    """The prepared parts, and what this process knows about the tree."""

    division: Division
    parts: Parts
    tops: Tree  # the tree that is measured, down to the subtrees' tops
    published: Tree  # the same under the names that are published
    schema: pa.Schema  # of the parts
    areas: pa.Schema
    beside: tuple[
        tuple[str, str], ...
    ]  # geographies beside the spine, and the level whose areas lie in one each

    def with_parts(self, parts: Parts, schema: pa.Schema) -> "Subtrees":
        """The same subtrees with other counts."""
        return replace(self, parts=parts, schema=schema)

    def row_schema(self, *, bureau: bool, counted: bool = False) -> pa.Schema:
        """The columns of released records; ``counted`` of replicates, which have one row for each cell."""
        workload = self.division.workload
        names = dict(workload.columns) if bureau else {}
        axes = [column(axis, names)[0] for axis in workload.histogram.axes]
        hidden = 0
        if self.division.root is None:
            hidden = len(self.published.levels) - len(shown(self.published))
        fields = [self.areas.field(name) for name in self.division.spine[hidden:]]
        schema = pa.schema([*fields, *((name, pa.int16()) for name in axes)])
        return schema if not counted else pa.schema([*schema, *REPLICATE])

    def refuse(self, troubles: Sequence[NDArray[np.int64]], workload: Workload) -> None:
        """Raise an error for records without a cell or area, counted over all parts."""
        strangers, lost, mixed = np.sum(troubles, axis=0).tolist()
        if mixed:
            raise mixed_areas(*self.beside[0])
        if strangers:
            raise no_cell(strangers, workload)
        if lost:
            raise no_area(lost)


def gather(task: Task) -> Subtrees | None:
    """Bring every record to its subtree; None where there is no area, or only one."""
    engine, census, workload = task.engine, task.census, task.workload
    spine, options = census.schema.spine, task.settings.spine or None
    records = engine.census(census).count(workload.record)
    few = max(engine.parts_for(needed(records, 0, workload, task.mode)), FEWEST)
    areas = listed(engine, census, workload, options, min(few, MOST))
    try:
        of = {off.name: off.of for off in census.schema.geography.off_spine}
        beside = tuple(
            (name, of[name]) for name in (options.entities if options else ()) if name not in spine
        )
        deepest = min(
            [options.common(spine) if options else len(spine) - 1]
            + [spine.index(level) + 1 for _, level in beside if level in spine]
        )

        def parts(leaves: int) -> int:
            # by public numbers alone: the number of released files must not reveal the number of records
            return max(engine.parts_for(needed(leaves * PER_LEAF, leaves, workload, task.mode)), FEWEST)

        found = cut(areas, parts, workload.histogram.cells if task.mode in TREE else 64, deepest)
        if found is None or found.depth == len(spine) - 1 + int(found.root):
            return None
        columns, measured = spine, workload
        if options:
            empty = pl.DataFrame(schema=dict.fromkeys((*spine, *(name for name, _ in beside)), pl.String))
            _, columns, measured = split(options, empty, spine, workload)
        root = root_name(measured.levels[0], columns) if found.root else None
        tops = found.spine(measured.levels[0])
        single = [np.diff(tops.first_child[d]) == 1 for d in range(found.depth)]
        above = np.zeros((found.shards, found.depth), bool)
        node = np.arange(found.shards)
        for d in range(found.depth, 0, -1):
            node = tops.parent[d][node]
            above[:, d - 1] = single[d - 1][node]
        earlier = Earlier.of(workload, task.given) if workload.given and task.given else None
        division = Division(
            workload=measured, spine=spine, columns=columns, root=root, depth=found.depth,
            bypass=task.settings.bypass, above=above, given=None if earlier is None else earlier.query,
        )  # fmt: skip
        for rule in bounding(measured):
            depth_of(rule, Tree(division.levels, (), ()))
        structural(measured)
        schema = prepared_schema(spine, columns, areas.schema)
        flows = _flows(engine, census, division, areas, found, earlier)
        shaping = quarters_rule(measured) if options and options.quarters else None
        quarters = None if shaping is None else (UNITS + measured.rules.index(shaping), occupied(shaping))
        kernel = Preparation(spine, columns, schema, options, beside, quarters)
        met = engine.exchange(*flows, by=PART, parts=found.parts, read=_read(task, records))
        prepared = met.map(kernel, schema).kept(task.steps("sort"))
    finally:
        areas.parts.drop()
    try:
        division = with_types(division, prepared, dividing(measured, task.mode) if earlier else None)
        check_codes(engine, prepared, spine, found.depth + 1 - int(found.root), found.parts)
    except BaseException:
        prepared.drop()  # nothing of the census stays on disk
        raise
    published = found.spine(workload.levels[0])
    return Subtrees(
        division=division,
        parts=prepared,
        tops=tops,
        published=published,
        schema=schema,
        areas=areas.schema,
        beside=beside,
    )


def _read(task: Task, records: int) -> Read:
    """Say how many of the records were read, units beside them included."""
    units = {rule.units for rule in task.workload.rules if rule.kind == "facilities"}
    total = records + sum(task.engine.census(task.census).count(name) for name in units)
    done = 0

    def read(rows: int) -> None:
        nonlocal done
        done += rows
        task.say("tabulate", min(done, total), total)

    return read


def with_types(division: Division, prepared: Parts, rule: Rule | None) -> Division:
    """The division with the sets of types that occur in any part, where a rule divides the earlier product's sums."""
    if rule is None:
        return division
    types = DividedTypes(base=division.workload, rule=rule)
    found = prepared.map(TypePatterns(division, types), PATTERNS).gathered()
    types = types.with_patterns(TypePatterns.joined(found))
    return replace(division, workload=types.workload, given=types.given, types=types)


def _flows(
    engine: Engine, census: "Census", division: Division, areas: Listed, found: Cut, earlier: Earlier | None
) -> list[Flow]:
    """Areas, records by cell, units by kind for every rule that counts them, and the earlier product."""
    places, leaf = found.places, division.spine[-1]
    with_place = areas.schema.append(pa.field(SHARD, pa.int32())).append(pa.field(PART, pa.int32()))
    flows = [areas.parts.flow().map(PlacedAreas(places, leaf, with_place), with_place)]
    cells = CountedRecords(places, leaf, division.workload)
    flows.append(engine.records(census, division.workload.record, cells.columns).map(cells, COUNTS))
    for number, rule in enumerate(division.workload.rules):
        if rule.kind == "facilities":
            units = CountedRecords(places, leaf, division.workload, rule, UNITS + number)
            flows.append(engine.records(census, rule.units, units.columns).map(units, COUNTS))
    if earlier is not None:
        before = CountedRecords(places, leaf, division.workload, earlier, EARLIER)
        flows.append(engine.released(pads.dataset(earlier.path)).map(before, COUNTS))
    return flows


def estimated(census: "Census", workload: Workload, mode: str) -> int:
    """Bytes that a run in memory holds at its peak, libraries aside; the leaves are counted roughly."""
    homes = next((record.name for record in census.schema.records if not record.linked_to), workload.record)
    leaf = census.schema.spine[-1:]
    leaves = 0
    if leaf:
        counted = census.scan(homes, list(leaf)).select(pl.col(leaf[0]).approx_n_unique())
        leaves = int(counted.collect(engine="streaming").item())
    return needed(census.count(workload.record), leaves, workload, mode)


def needed(records: int, leaves: int, workload: Workload, mode: str) -> int:
    """The same from exact counts.

    >>> needed(1_100_000, 25_000, Workload.preset("pl94-persons"), "gls")
    1130500000
    """
    cells = min(workload.histogram.cells, LARGEST) if mode in TREE else 0
    return records * RECORD + leaves * (LEAF + CELL * cells)
