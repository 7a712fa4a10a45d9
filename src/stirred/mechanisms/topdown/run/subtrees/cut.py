"""Divide the areas of a large census into subtrees: list the upper levels, choose the level to cut at, check the codes.

This process holds the geounits from the root down to the cut, never the leaves. Its level is chosen from the
geography alone, and no result depends on the choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census.geography import area_record_types, attach_levels, read_ancestors
from stirred.engine import Engine
from stirred.engine.base import Parts
from stirred.errors import InputError
from stirred.mechanisms.topdown.run.subtrees.rows import COUNT, PART, SHARD, ListedAreas, Places, to_frame
from stirred.mechanisms.topdown.tree.geounits import (
    Tree,
    choose_root_name,
    missing_code_error,
    two_parents_error,
)
from stirred.mechanisms.topdown.tree.leaves import require_spine
from stirred.mechanisms.topdown.tree.splits import find_off_spine
from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census

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
