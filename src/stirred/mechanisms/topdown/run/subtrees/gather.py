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
from stirred.mechanisms.topdown.rules.agreement import EarlierProduct
from stirred.mechanisms.topdown.rules.constraints import (
    find_depth,
    list_bounding_rules,
    list_structural_zeros,
)
from stirred.mechanisms.topdown.rules.divided import FacilityTypes, find_dividing_rule
from stirred.mechanisms.topdown.run.output import REPLICATE_FIELDS, list_shown_levels
from stirred.mechanisms.topdown.run.subtrees.cut import AreaParts, Cut, choose_cut, list_areas
from stirred.mechanisms.topdown.run.subtrees.grove import PATTERN_SCHEMA, Division, TypePatterns
from stirred.mechanisms.topdown.run.subtrees.prepare import (
    Preparation,
    build_prepared_schema,
    check_codes,
)
from stirred.mechanisms.topdown.run.subtrees.rows import (
    COUNT_SCHEMA,
    EARLIER,
    PART,
    SHARD,
    UNITS,
    CountedRecords,
    PlacedAreas,
)
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree.counts import no_area_error, no_cell_error
from stirred.mechanisms.topdown.tree.geounits import Tree, choose_root_name
from stirred.mechanisms.topdown.tree.splits import mixed_areas_error, split_tree
from stirred.mechanisms.topdown.workload.histogram import name_column
from stirred.mechanisms.topdown.workload.rule import Rule, list_occupied_answers
from stirred.mechanisms.topdown.workload.workload import WHOLE_TREE_MODES, Workload, find_quarters_rule

if TYPE_CHECKING:
    from stirred.census import Census

RECORDS_PER_LEAF = 100  # records, about, when parts are cut
MIN_PARTS = 8  # parts, so that several workers can be busy
MAX_AREA_PARTS = (
    32  # parts of the areas alone, which are small: each of them reports nearly every geounit above the cut
)
BYTES_PER_RECORD = 100  # bytes for each record while it is counted
BYTES_PER_CELL = (
    20  # bytes for each cell of a leaf: four numbers where it is active, and its share of the levels above
)
BYTES_PER_LEAF = 500  # bytes for each leaf besides
MAX_DENSE_CELLS = 1 << 16  # cells beyond which only those that occur are held


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtrees:
    """The prepared parts, and the upper tree as this process holds it."""

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
        """Return the same subtrees with other counts."""
        return replace(self, parts=parts, schema=schema)

    def row_schema(self, *, bureau: bool, counted: bool = False) -> pa.Schema:
        """Return the columns of released records; ``counted``: of replicates, one row per cell."""
        workload = self.division.workload
        names = dict(workload.columns) if bureau else {}
        axes = [name_column(axis, names)[0] for axis in workload.histogram.axes]
        hidden = 0
        if self.division.root is None:
            hidden = len(self.published.levels) - len(list_shown_levels(self.published))
        fields = [self.areas.field(name) for name in self.division.spine[hidden:]]
        schema = pa.schema([*fields, *((name, pa.int16()) for name in axes)])
        return schema if not counted else pa.schema([*schema, *REPLICATE_FIELDS])

    def refuse(self, troubles: Sequence[NDArray[np.int64]], workload: Workload) -> None:
        """Raise an error for records without a cell or area, counted over all parts."""
        strangers, lost, mixed = np.sum(troubles, axis=0).tolist()
        if mixed:
            raise mixed_areas_error(*self.beside[0])
        if strangers:
            raise no_cell_error(strangers, workload)
        if lost:
            raise no_area_error(lost)


def gather(task: Task) -> Subtrees | None:
    """Bring every record to its subtree; None where there is no area, or only one."""
    engine, census, workload = task.engine, task.census, task.workload
    spine, options = census.schema.spine, task.settings.spine or None
    records = engine.census(census).count(workload.record)
    few = max(engine.parts_for(count_bytes(records, 0, workload, task.mode)), MIN_PARTS)
    areas = list_areas(engine, census, workload, options, min(few, MAX_AREA_PARTS))
    try:
        of = {off.name: off.of for off in census.schema.geography.off_spine}
        beside = tuple(
            (name, of[name]) for name in (options.entities if options else ()) if name not in spine
        )
        deepest = min(
            [options.count_common_levels(spine) if options else len(spine) - 1]
            + [spine.index(level) + 1 for _, level in beside if level in spine]
        )

        def parts(leaves: int) -> int:
            # by public numbers alone: the number of released files must not reveal the number of records
            return max(
                engine.parts_for(count_bytes(leaves * RECORDS_PER_LEAF, leaves, workload, task.mode)),
                MIN_PARTS,
            )

        found = choose_cut(
            areas, parts, workload.histogram.cells if task.mode in WHOLE_TREE_MODES else 64, deepest
        )
        if found is None or found.depth == len(spine) - 1 + int(found.root):
            return None
        columns, measured = spine, workload
        if options:
            empty = pl.DataFrame(schema=dict.fromkeys((*spine, *(name for name, _ in beside)), pl.String))
            _, columns, measured = split_tree(options, empty, spine, workload)
        root = choose_root_name(measured.levels[0], columns) if found.root else None
        tops = found.spine(measured.levels[0])
        single = [np.diff(tops.first_child[d]) == 1 for d in range(found.depth)]
        above = np.zeros((found.shards, found.depth), bool)
        node = np.arange(found.shards)
        for d in range(found.depth, 0, -1):
            node = tops.parent[d][node]
            above[:, d - 1] = single[d - 1][node]
        earlier = EarlierProduct.of(workload, task.given) if workload.given and task.given else None
        division = Division(
            workload=measured, spine=spine, columns=columns, root=root, depth=found.depth,
            bypass=task.settings.bypass, above=above, given=None if earlier is None else earlier.query,
        )  # fmt: skip
        for rule in list_bounding_rules(measured):
            find_depth(rule, Tree(division.levels, (), ()))
        list_structural_zeros(measured)
        schema = build_prepared_schema(spine, columns, areas.schema)
        flows = _build_flows(engine, census, division, areas, found, earlier)
        shaping = find_quarters_rule(measured) if options and options.quarters else None
        quarters = (
            None
            if shaping is None
            else (UNITS + measured.rules.index(shaping), list_occupied_answers(shaping))
        )
        kernel = Preparation(spine, columns, schema, options, beside, quarters)
        met = engine.exchange(*flows, by=PART, parts=found.parts, read=_report_reading(task, records))
        prepared = met.map(kernel, schema).keep(task.steps("sort"))
    finally:
        areas.parts.drop()
    try:
        division = add_facility_types(
            division, prepared, find_dividing_rule(measured, task.mode) if earlier else None
        )
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


def _report_reading(task: Task, records: int) -> Read:
    """Return a function that reports how many of the records, and units beside them, were read."""
    units = {rule.units for rule in task.workload.rules if rule.kind == "facilities"}
    total = records + sum(task.engine.census(task.census).count(name) for name in units)
    done = 0

    def read(rows: int) -> None:
        nonlocal done
        done += rows
        task.report_progress("tabulate", min(done, total), total)

    return read


def add_facility_types(division: Division, prepared: Parts, rule: Rule | None) -> Division:
    """Return the division with the sets of types of all parts, where a rule divides earlier sums."""
    if rule is None:
        return division
    types = FacilityTypes(base=division.workload, rule=rule)
    found = prepared.map(TypePatterns(division, types), PATTERN_SCHEMA).gather()
    types = types.with_patterns(TypePatterns.join(found))
    return replace(division, workload=types.workload, given=types.exact_query, types=types)


def _build_flows(
    engine: Engine,
    census: "Census",
    division: Division,
    areas: AreaParts,
    found: Cut,
    earlier: EarlierProduct | None,
) -> list[Flow]:
    """Return the flows of areas, records by cell, units by kind for each rule, and the earlier product."""
    places, leaf = found.places, division.spine[-1]
    with_place = areas.schema.append(pa.field(SHARD, pa.int32())).append(pa.field(PART, pa.int32()))
    flows = [areas.parts.flow().map(PlacedAreas(places, leaf, with_place), with_place)]
    cells = CountedRecords(places, leaf, division.workload)
    flows.append(engine.records(census, division.workload.record, cells.columns).map(cells, COUNT_SCHEMA))
    for number, rule in enumerate(division.workload.rules):
        if rule.kind == "facilities":
            units = CountedRecords(places, leaf, division.workload, rule, UNITS + number)
            flows.append(engine.records(census, rule.units, units.columns).map(units, COUNT_SCHEMA))
    if earlier is not None:
        before = CountedRecords(places, leaf, division.workload, earlier, EARLIER)
        flows.append(engine.stream_released(pads.dataset(earlier.path)).map(before, COUNT_SCHEMA))
    return flows


def estimate_bytes(census: "Census", workload: Workload, mode: str) -> int:
    """Return the peak bytes of a run in memory, libraries aside; the leaves are estimated."""
    homes = next((record.name for record in census.schema.records if not record.linked_to), workload.record)
    leaf = census.schema.spine[-1:]
    leaves = 0
    if leaf:
        counted = census.scan(homes, list(leaf)).select(pl.col(leaf[0]).approx_n_unique())
        leaves = int(counted.collect(engine="streaming").item())
    return count_bytes(census.count(workload.record), leaves, workload, mode)


def count_bytes(records: int, leaves: int, workload: Workload, mode: str) -> int:
    """Return the same bytes from exact counts.

    >>> count_bytes(1_100_000, 25_000, Workload.preset("pl94-persons"), "gls")
    1130500000
    """
    cells = min(workload.histogram.cells, MAX_DENSE_CELLS) if mode in WHOLE_TREE_MODES else 0
    return records * BYTES_PER_RECORD + leaves * (BYTES_PER_LEAF + BYTES_PER_CELL * cells)
