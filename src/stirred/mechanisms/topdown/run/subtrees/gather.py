"""Cut the tree into subtrees and bring the census's records into parts that hold whole subtrees."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import pads
from stirred.census.geography import area_record_types, attach_levels, read_ancestors
from stirred.engine import Engine
from stirred.engine.base import Flow, Parts, Read
from stirred.errors import InputError
from stirred.mechanisms.topdown.counts import no_area_error, no_cell_error
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import FacilityTypes, find_dividing_rule
from stirred.mechanisms.topdown.dhc_given_pl.parents import EarlierProduct
from stirred.mechanisms.topdown.histogram import name_column
from stirred.mechanisms.topdown.rules import find_depth, list_bounding_rules, list_structural_zeros
from stirred.mechanisms.topdown.run.records import REPLICATE_FIELDS, list_shown_levels
from stirred.mechanisms.topdown.run.subtrees.batch import (
    AREA,
    CELL,
    COUNT,
    COUNT_SCHEMA,
    EARLIER,
    KIND,
    LEAF,
    NO_SUBTREE,
    NUMBER,
    PART,
    PATTERN_SCHEMA,
    SHARD,
    TROUBLE,
    UNITS,
    CountedRecords,
    Division,
    ListedAreas,
    PlacedAreas,
    Places,
    TypePatterns,
    assign_parts,
    to_frame,
)
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree import (
    QUARTERS_COLUMN,
    Tree,
    choose_root_name,
    extend_frame,
    find_off_spine,
    missing_code_error,
    mixed_areas_error,
    require_spine,
    split_tree,
    two_parents_error,
)
from stirred.mechanisms.topdown.workload import (
    WHOLE_TREE_MODES,
    Rule,
    SpineOptions,
    Workload,
    find_quarters_rule,
    list_occupied_answers,
)

if TYPE_CHECKING:
    from stirred.census import Census


# Divide the areas of a large census into subtrees: list the upper levels, choose the level to cut at, check the codes.
#
# This process holds the geounits from the root down to the cut, never the leaves. Its level is chosen from the
# geography alone, and no result depends on the choice.

LENGTH_COLUMN = "_length"
MISSING_CODE_LENGTH = 1000
NUMBER_TYPES = {LENGTH_COLUMN: pl.Int32, COUNT: pl.Int64}
MIN_SUBTREES = 64  # subtrees that keep every worker busy
MAX_UPPER_BYTES = 512_000_000  # bytes that this process uses for the levels above and at the cut
MAX_CUT_GEOUNITS = 1 << 14  # geounits at the cut at most


@dataclass(frozen=True, slots=True)
class AreaMerge:
    """A kernel that lists the different areas of a part, from one or more record types."""

    schema: pa.Schema

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        frame = pl.concat([to_frame(table).select(self.schema.names) for table in tables]).unique()
        return frame.to_arrow().cast(self.schema)


@dataclass(frozen=True, slots=True)
class CodePrefixes:
    """A kernel that lists the code prefixes of a part's areas with their leaves: the longest that are few.

    A length with more than ``limit_geounits`` beginnings is only marked, by a row of negative length; shorter ones follow
    from longer ones. A row of length MISSING + i counts the areas without a code of level i.
    """

    spine: tuple[str, ...]
    longest: int
    most: int

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        frame = to_frame(table).select(self.spine).unique()
        told = []
        for length in range(self.longest, 0, -1):
            heads = frame.group_by(self.spine[:length]).agg(pl.len().cast(pl.Int64).alias(COUNT))
            if heads.height <= self.most:
                told.append(heads.with_columns(pl.lit(length, pl.Int32).alias(LENGTH_COLUMN)))
                break
            told.append(pl.DataFrame({LENGTH_COLUMN: [-length], COUNT: [0]}, schema=NUMBER_TYPES))
        gaps = [(MISSING_CODE_LENGTH + i, gap) for i, gap in enumerate(frame.null_count().row(0)) if gap]
        told.append(pl.DataFrame(gaps, schema=NUMBER_TYPES, orient="row"))
        none = {name: pl.lit(None, frame.schema[name]) for name in self.spine[: self.longest]}
        full = [one.with_columns(**{n: e for n, e in none.items() if n not in one.columns}) for one in told]
        names = [*self.spine[: self.longest], LENGTH_COLUMN, COUNT]
        return pl.concat([one.select(names) for one in full]).to_arrow()

    def schema(self, areas: pa.Schema) -> pa.Schema:
        """Return the columns of the result."""
        codes = [areas.field(name) for name in self.spine[: self.longest]]
        return pa.schema([*codes, (LENGTH_COLUMN, pa.int32()), (COUNT, pa.int64())])


@dataclass(frozen=True, slots=True)
class AreaParts:
    """Every area once, in parts by the value of its codes."""

    spine: tuple[str, ...]
    schema: pa.Schema
    parts: Parts


def list_areas(
    engine: Engine, census: "Census", workload: Workload, options: SpineOptions | None, parts: int
) -> AreaParts:
    """List every area once, in parts by its codes: from the public file of areas, else from the records."""
    spine = require_spine(census)
    entities = tuple(name for name in (options.entities if options else ()) if name not in spine)
    for name in entities:
        _require_areas(census, name)
    if census.schema.geography.areas is not None:
        areas = read_ancestors(census.schema, census.folder).select(spine)
        types = census.scan(workload.record, spine).collect_schema()
        areas = attach_levels(census.schema, areas, list(entities), census.folder)
        chosen = areas.select(*(pl.col(name).cast(types[name]) for name in spine), *entities).collect()
        flows = [engine.stream_released(chosen.to_arrow())]
    else:
        flows = [
            engine.records(census, record, [*spine, *entities]) for record in area_record_types(census.schema)
        ]
    fields = [flows[0].schema.field(name) for name in spine]
    schema = pa.schema([*fields, *((name, pa.string()) for name in entities)])
    with_part = schema.append(pa.field(PART, pa.int32()))
    spread = [flow.map(ListedAreas(spine, with_part, parts), with_part) for flow in flows]
    merged = engine.exchange(*spread, by=PART, parts=parts).map(AreaMerge(schema), schema)
    return AreaParts(spine, schema, merged.keep())


def _require_areas(census: "Census", name: str) -> None:
    """Check that every leaf has an area of this geography, from the records with homes or from its own file."""
    off = find_off_spine(census, name)
    lacking = [record for record in area_record_types(census.schema) if name not in census.columns(record)]
    if not off.files and lacking:
        raise InputError(
            f"{lacking[0]} records have no column {name}",
            why="if the census does not fit in memory, every record with a home needs its area beside the spine",
            fix=f"give [geography.off_spine.{name}] its files, or every home the column",
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """The levels down to the cut, which this process holds, and the part of everything below them."""

    columns: tuple[str, ...]  # the census's levels
    root: bool  # whether several tops have a common root above them
    depth: int  # of the cut, the root counted
    heads: pl.DataFrame  # the geounits at the cut with their ancestors, in the order of the spine
    part: NDArray[np.int64]  # of each subtree: contiguous, so that the order of parts is that of the spine
    parts: int

    @property
    def shards(self) -> int:
        """Return the number of subtrees."""
        return len(self.part)

    @property
    def places(self) -> Places:
        """Return where rows go, by the code of the level that is cut at."""
        if self.depth == 0 and self.root:
            return Places(None, pa.table({}), self.parts)
        column = self.columns[self.depth - int(self.root)]
        known = self.heads.select(
            pl.col(column).cast(pl.String).alias("_code"),
            pl.Series(SHARD, np.arange(self.shards), pl.Int32),
            pl.Series(PART, self.part, pl.Int32),
        )
        return Places(column, known.to_arrow(), self.parts)

    def spine(self, root: str) -> Tree:
        """Return the tree down to the cut."""
        names = self.columns[: self.depth + 1 - int(self.root)]
        return Tree.from_sorted(
            self.heads, names, root=choose_root_name(root, self.columns) if self.root else None
        )


def choose_cut(areas: AreaParts, parts: Callable[[int], int], cells: int, deepest: int) -> Cut | None:
    """Choose the level of the cut and number the subtrees; None where the census has no areas at all.

    ``parts`` gives the number of parts for that many leaves, ``deepest`` the number of levels from the top at which
    the tree may be cut. Raises an error if codes of the upper levels are missing or have two parents.
    """
    spine = areas.spine
    kernel = CodePrefixes(spine, max(1, min(deepest, len(spine) - 1)), limit_geounits(cells))
    told = to_frame(areas.parts.map(kernel, kernel.schema(areas.schema)).gather())
    for i, level in enumerate(spine):
        missing = int(told.filter(pl.col(LENGTH_COLUMN) == MISSING_CODE_LENGTH + i)[COUNT].sum())
        if missing:
            raise missing_code_error(missing, level)
    top, crowd = _list_prefixes(told, spine[:1]), bool((told[LENGTH_COLUMN] == -1).any())
    if not top.height and not crowd:
        return None
    root = crowd or top.height > 1
    found = [pl.DataFrame({COUNT: [max(int(top[COUNT].sum()), 1)]})] if root else []
    for length in range(1, min(deepest, len(spine) - 1) + 1):
        heads = _list_prefixes(told, spine[:length])
        if (told[LENGTH_COLUMN] == -length).any() or (found and heads.height > limit_geounits(cells)):
            break
        require_unique_codes(heads, spine[:length])
        found.append(heads)
    found = found or [top]
    depth = choose_cut_level([heads.height for heads in found])
    heads = found[depth]
    weight = heads[COUNT].to_numpy()
    number = min(parts(int(weight.sum())), heads.height)
    middle = np.cumsum(weight) - weight / 2
    part = np.minimum((middle * number / weight.sum()).astype(np.int64), number - 1)
    return Cut(spine, root, depth, heads.drop(COUNT), part, number)


def limit_geounits(cells: int) -> int:
    """Return how many geounits the cut level may have; about eight numbers per cell of each are held here."""
    return max(1, min(MAX_CUT_GEOUNITS, MAX_UPPER_BYTES // (64 * min(cells, 1 << 16))))


def choose_cut_level(sizes: Sequence[int]) -> int:
    """Return the highest level with enough subtrees for all workers, or the deepest one looked at.

    >>> choose_cut_level([1, 51, 3_143]), choose_cut_level([1, 5, 250]), choose_cut_level([1, 2, 6])
    (2, 2, 2)
    """
    return next((depth for depth, size in enumerate(sizes) if size >= MIN_SUBTREES), len(sizes) - 1)


def require_unique_codes(heads: pl.DataFrame, levels: tuple[str, ...]) -> None:
    """Check that the codes of a level are different."""
    twice = heads.height - heads[levels[-1]].n_unique()
    if twice:
        raise two_parents_error(twice, levels[-1])


def _list_prefixes(told: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the different prefixes of one length, in the order of the spine."""
    own = told.filter(pl.col(LENGTH_COLUMN).is_between(len(names), MISSING_CODE_LENGTH - 1))
    return own.group_by(names).agg(pl.col(COUNT).sum()).sort(names)


# Prepare a part's areas and counts once: number the leaves in the order of their subtree, and count by leaf and cell.
#
# The result is one table: rows of kind AREA hold the codes of a leaf, the others a count of it (see ``rows``).

STRANGERS, LOST, MIXED = 0, 1, 2  # faults of rows: no cell, no area, two areas beside the spine
FIXED_FIELDS = [
    (KIND, pa.int32()),
    (SHARD, pa.int32()),
    (LEAF, pa.int32()),
    (NUMBER, pa.int64()),
    (COUNT, pa.int64()),
]


@dataclass(frozen=True, slots=True)
class Preparation:
    """A kernel that prepares a part; ``levels`` are those of the measured tree from its top column down."""

    spine: tuple[str, ...]
    levels: tuple[str, ...]
    schema: pa.Schema
    options: SpineOptions | None = None
    beside: tuple[
        tuple[str, str], ...
    ] = ()  # geographies beside the spine and the level whose areas lie in one each
    quarters: tuple[int, tuple[int, ...]] | None = (
        None  # the kind of rows that count units, and the types that shape the tree
    )

    def __call__(self, part: int, areas: pa.Table, *counts: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        frame = to_frame(areas).drop(PART)
        mixed = sum(frame.select(of, name).unique().height - frame[of].n_unique() for name, of in self.beside)
        frame = frame.unique([SHARD, *self.spine], keep="first", maintain_order=True)
        if self.quarters is not None:
            frame = self._add_quarters(frame, pl.concat([to_frame(table) for table in counts]))
        if self.options:
            frame, _, _ = extend_frame(self.options, frame, self.spine)
        frame = frame.sort(SHARD, *self.levels).with_columns(
            pl.lit(AREA, pl.Int32).alias(KIND),
            pl.int_range(pl.len(), dtype=pl.Int32).over(SHARD).alias(LEAF),
        )
        rows = pl.concat([to_frame(table) for table in counts]).group_by(KIND, SHARD, LEAF, NUMBER)
        counted = rows.agg(pl.col(COUNT).sum()).rename({LEAF: "_code"})
        strangers = counted.filter((pl.col(KIND) == CELL) & pl.col(NUMBER).is_null())[COUNT].sum()
        leaf = self.spine[-1]
        number = frame.select(SHARD, pl.col(leaf).cast(pl.String).alias("_code"), LEAF)
        found = counted.drop_nulls(NUMBER).join(number, on=[SHARD, "_code"], how="left")
        lost = found.filter((pl.col(KIND) == CELL) & pl.col(LEAF).is_null()).height
        trouble = pl.DataFrame({NUMBER: [STRANGERS, LOST, MIXED], COUNT: [strangers, lost, mixed]}).select(
            pl.lit(TROUBLE, pl.Int32).alias(KIND), pl.lit(NO_SUBTREE, pl.Int32).alias(SHARD),
            pl.lit(0, pl.Int32).alias(LEAF), pl.col(NUMBER, COUNT).cast(pl.Int64),
        )  # fmt: skip
        ready = found.drop_nulls(LEAF).select(KIND, SHARD, LEAF, NUMBER, COUNT)
        whole = pl.concat([frame, ready, trouble], how="diagonal")
        return whole.select(self.schema.names).to_arrow().cast(self.schema)

    def _add_quarters(self, frame: pl.DataFrame, counts: pl.DataFrame) -> pl.DataFrame:
        """Add the types of group quarters of each area, as the bits of a number."""
        kind, types = self.quarters or (0, ())
        found = counts.filter((pl.col(KIND) == kind) & pl.col(NUMBER).is_in(types) & (pl.col(COUNT) > 0))
        found = found.select(SHARD, pl.col(LEAF).alias("_code"), NUMBER).unique()
        bits = found.group_by(SHARD, "_code").agg(
            pl.lit(2, pl.Int64).pow(pl.col(NUMBER)).sum().alias(QUARTERS_COLUMN)
        )
        areas = frame.with_columns(pl.col(self.spine[-1]).cast(pl.String).alias("_code"))
        joined = areas.join(bits, on=[SHARD, "_code"], how="left", maintain_order="left").drop("_code")
        return joined.with_columns(pl.col(QUARTERS_COLUMN).cast(pl.Int64).fill_null(0))


def build_prepared_schema(spine: tuple[str, ...], levels: tuple[str, ...], areas: pa.Schema) -> pa.Schema:
    """Return the columns that are kept: fixed ones, the census's levels, and those of another tree."""
    fields = [areas.field(name) for name in spine]
    fields += [pa.field(name, pa.string()) for name in levels if name not in spine]
    return pa.schema([*FIXED_FIELDS, *fields])


@dataclass(frozen=True, slots=True)
class CodesBelowCut:
    """The codes of the geounits below the cut, distributed by their value so that equal ones are in one part."""

    spine: tuple[str, ...]
    above: int  # levels from the top that are checked elsewhere
    parts: int

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        areas = to_frame(table).filter(pl.col(KIND) == AREA)
        frames = [
            areas.select(self.spine[: i + 1])
            .unique()
            .select(pl.lit(i, pl.Int32).alias(KIND), pl.col(self.spine[i]).cast(pl.String).alias(LEAF))
            for i in range(self.above, len(self.spine))
        ]
        frame = pl.concat(frames)
        frame = frame.with_columns(assign_parts(frame, (LEAF,), self.parts))
        return frame.select(self.schema.names).to_arrow().cast(self.schema)

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the result."""
        return pa.schema([(PART, pa.int32()), (KIND, pa.int32()), (LEAF, pa.string())])


@dataclass(frozen=True, slots=True)
class RepeatedCodes:
    """A kernel that counts the codes of each level with two parents, among those in a part."""

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        found = (
            to_frame(table)
            .group_by(KIND)
            .agg((pl.len() - pl.col(LEAF).n_unique()).cast(pl.Int64).alias(COUNT))
        )
        return found.filter(pl.col(COUNT) > 0).select(KIND, COUNT).to_arrow().cast(self.schema)

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the result."""
        return pa.schema([(KIND, pa.int32()), (COUNT, pa.int64())])


def check_codes(engine: Engine, prepared: Parts, spine: tuple[str, ...], above: int, parts: int) -> None:
    """Check that codes below the cut are different in the whole census, not only in their subtree."""
    codes, twice = CodesBelowCut(spine, above, parts), RepeatedCodes()
    met = engine.exchange(prepared.map(codes, codes.schema).flow(), by=PART, parts=parts)
    found = met.map(twice, twice.schema).gather()
    met.drop()
    for i, level in enumerate(spine):
        count = int(to_frame(found).filter(pl.col(KIND) == i)[COUNT].sum())
        if count:
            raise two_parents_error(count, level)


def count_faults(table: pa.Table) -> NDArray[np.int64]:
    """Return how often each fault occurs in a part."""
    found = to_frame(table).filter(pl.col(KIND) == TROUBLE).sort(NUMBER)
    return found[COUNT].to_numpy()


# Bring the census's records into parts that hold whole subtrees, with the counts that the rules need.

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
