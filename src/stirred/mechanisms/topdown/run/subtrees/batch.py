"""Hold neighbouring subtrees with spine, histograms, constraints and budget, equal to the whole tree's."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine.tables import hash_rows
from stirred.mechanisms.topdown.counts import Sparse
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import FacilityPatterns, FacilityTypes
from stirred.mechanisms.topdown.dhc_given_pl.parents import EarlierProduct, name_agreement
from stirred.mechanisms.topdown.histogram import HistogramAxis, Query, axis_expression, cell_expression
from stirred.mechanisms.topdown.measure import Allotment, Measurements
from stirred.mechanisms.topdown.rules import Constraints, HeldQuery, Record, compile_rules, sum_bounds
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Rule, Workload

# Kernels over batches that send rows to the part of their subtree; batches may have any order and size.
#
# Every kernel aggregates its batch and chooses the part of each row by the value of its codes, not by its position.

PART, SHARD, KIND, LEAF, NUMBER, COUNT = "_part", "_shard", "_kind", "_leaf", "_number", "_count"
AREA, CELL, EARLIER, TROUBLE, UNITS = (
    0,
    1,
    2,
    3,
    4,
)  # kinds of rows; the units of rule r are of kind UNITS + r
NO_SUBTREE = -1  # the subtree of a row whose area is not in the spine
COUNT_SCHEMA = pa.schema(
    [(PART, pa.int32()), (SHARD, pa.int32()), (KIND, pa.int32()), (LEAF, pa.string()),
     (NUMBER, pa.int64()), (COUNT, pa.int64())]
)  # fmt: skip


def to_frame(table: pa.Table) -> pl.DataFrame:
    """Return the same rows as a Polars frame."""
    return pl.DataFrame(pl.from_arrow(table))


def assign_parts(frame: pl.DataFrame, columns: tuple[str, ...], parts: int) -> pl.Series:
    """Return a part for each row by the text of its columns: the same in every process."""
    text = frame.select(pl.col(name).cast(pl.String) for name in columns).to_arrow()
    return pl.Series(PART, (hash_rows(text, columns) % np.uint64(parts)).astype(np.int32))


@dataclass(frozen=True, slots=True)
class Places:
    """The subtree and part of the areas below each node of the cut level."""

    column: str | None  # the level whose codes decide; None: there is one subtree
    known: pa.Table  # code (text), subtree, part
    parts: int

    def of(self, frame: pl.DataFrame, leaf: str) -> pl.DataFrame:
        """Add columns for subtree and part; rows of unknown areas are distributed by their leaf."""
        if self.column is None:
            return frame.with_columns(pl.lit(0, pl.Int32).alias(SHARD), pl.lit(0, pl.Int32).alias(PART))
        frame = frame.with_columns(pl.col(self.column).cast(pl.String).alias("_code"))
        joined = frame.join(to_frame(self.known), on="_code", how="left").drop("_code")
        strange = assign_parts(joined, (leaf,), self.parts)
        return joined.with_columns(
            pl.col(SHARD).fill_null(NO_SUBTREE), pl.col(PART).fill_null(pl.lit(strange))
        )


@dataclass(frozen=True, slots=True)
class ListedAreas:
    """Different areas of a batch of records, distributed over parts by their parents, with the entities beside the spine."""

    spine: tuple[str, ...]
    schema: pa.Schema
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        names = [name for name in self.schema.names if name != PART]
        frame = to_frame(table).select(names).unique()
        frame = frame.with_columns(assign_parts(frame, self.spine[:-1] or self.spine, self.parts))
        return frame.select(self.schema.names).to_arrow().cast(self.schema)


@dataclass(frozen=True, slots=True)
class PlacedAreas:
    """Areas with the subtree and part they belong to."""

    places: Places
    leaf: str
    schema: pa.Schema

    def __call__(self, table: pa.Table) -> pa.Table:
        frame = self.places.of(to_frame(table), self.leaf)
        return frame.select(self.schema.names).to_arrow().cast(self.schema)


@dataclass(frozen=True, slots=True)
class CountedRecords:
    """Records of a batch counted by leaf and cell (``what`` a rule: units by kind; an earlier product: its records)."""

    places: Places
    leaf: str
    workload: Workload
    what: Literal["cell"] | Rule | EarlierProduct = "cell"
    kind: int = CELL

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that it uses."""
        names = [self.places.column or self.leaf, self.leaf]
        if isinstance(self.what, Rule):
            names += self.what.unit_source.columns
        elif isinstance(self.what, EarlierProduct):
            names += [name for name, _, _ in self.what.columns]
        else:
            axes = self.workload.histogram.axes
            names += [n for axis in axes for n in (axis.source.columns if axis.source else (axis.name,))]
            names += [name for name, _ in self.workload.where]
        return tuple(dict.fromkeys(names))

    def __call__(self, table: pa.Table) -> pa.Table:
        frame = to_frame(table)
        if self.what == "cell":
            for name, values in self.workload.where:
                frame = frame.filter(pl.col(name).is_in(list(values)))
        frame = frame.with_columns(self._number(frame.schema).alias(NUMBER))
        if self.what != "cell":  # kinds that no query asks for, as in memory
            frame = frame.drop_nulls(NUMBER)
        keys = list(dict.fromkeys([self.places.column or self.leaf, self.leaf, NUMBER]))
        # not released_parts.cells: a column of the census may be called "count"
        counts = frame.group_by(keys).agg(pl.len().cast(pl.Int64).alias(COUNT))
        counts = self.places.of(counts, self.leaf).with_columns(
            pl.lit(self.kind, pl.Int32).alias(KIND),
            pl.col(self.leaf).cast(pl.String).alias(LEAF),
        )
        return counts.select(COUNT_SCHEMA.names).to_arrow().cast(COUNT_SCHEMA)

    def _number(self, types: pl.Schema) -> pl.Expr:
        if isinstance(self.what, EarlierProduct):
            return self.what.cell
        if isinstance(self.what, Rule):
            size = self.workload.query(self.what.query).size
            level = axis_expression(
                HistogramAxis(name="kind", size=size, source=self.what.unit_source), types
            )
            return pl.when((level >= 0) & (level < size)).then(level)
        return cell_expression(self.workload.histogram, types)


# Neighbouring subtrees with spine, histograms, constraints and budget, equal to those in the whole tree.
#
# A *subtree* lies below one geounit of the level of the cut; a *grove* is a few neighbouring subtrees that are worked
# on together. A grove includes the ancestors of its subtrees, so that depths, levels and parts of the budget are those
# of the whole tree, and its geounits keep their numbers in the whole tree for the noise (``offsets``). No result
# depends on which subtrees are in one grove.

Ints = NDArray[np.int64]
SET, SUM, MISFIT = range(3)  # what a row of patterns is
PATTERN_SCHEMA = pa.schema([("what", pa.int64()), ("own", pa.int64()), ("number", pa.int64())])
MAX_BATCH_LEAVES = 1 << 14  # of a grove, unless one subtree has more; a part of little memory has fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The settings that all subtrees have in common."""

    workload: Workload  # on the levels of the tree that is measured
    spine: tuple[str, ...]  # the census's levels, which are published
    columns: tuple[str, ...]  # the levels that are measured, without a common root
    root: str | None  # the name of that root, where there is one
    depth: int  # of the subtrees' tops, the root counted
    bypass: bool
    above: NDArray[np.bool_]  # subtrees × levels above: whether that ancestor has a single child
    given: Query | None = None
    types: FacilityTypes | None = None

    @property
    def base(self) -> Workload:
        """Return the workload whose axes are published."""
        return self.workload if self.types is None else self.types.base

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the levels of the whole tree."""
        return self.columns if self.root is None else (self.root, *self.columns)

    @property
    def last(self) -> int:
        """Return the depth of the leaves."""
        return len(self.levels) - 1

    def split_batches(self, table: pa.Table) -> "Iterator[SubtreeBatch]":
        """Yield the subtrees of a part in the order of the spine, some at a time."""
        frame = to_frame(table).filter(pl.col(SHARD) >= 0)
        sizes = frame.filter(pl.col(KIND) == AREA).group_by(SHARD).len().sort(SHARD)
        numbers, leaves = sizes[SHARD].to_numpy(), sizes["len"].to_numpy()
        first = 0
        while first < len(numbers):
            reach = int(np.searchsorted(np.cumsum(leaves[first:]), MAX_BATCH_LEAVES, side="right"))
            end = min(first + max(reach, 1), len(numbers))
            low, high = int(numbers[first]), int(numbers[end - 1])
            assert high - low == end - 1 - first, "the subtrees of a part are neighbours"
            rows = frame.filter(pl.col(SHARD).is_between(low, high))
            yield SubtreeBatch(self, low, end - first, rows)
            first = end


@dataclass(frozen=True)
class SubtreeBatch:
    """``count`` subtrees from number ``first`` on; ``rows`` are their areas and counts as prepared."""

    division: Division
    first: int
    count: int
    rows: pl.DataFrame

    @property
    def numbers(self) -> range:
        """Return the numbers of its subtrees."""
        return range(self.first, self.first + self.count)

    @cached_property
    def areas(self) -> pl.DataFrame:
        """Return its leaves in the order of the measured spine."""
        return self.rows.filter(pl.col(KIND) == AREA).sort(SHARD, LEAF)

    @cached_property
    def spine(self) -> Tree:
        """Return the ancestors of its subtrees, and all geounits below."""
        return Tree.from_sorted(self.areas, self.division.columns, root=self.division.root)

    @cached_property
    def published_tree(self) -> Tree:
        """Return the same leaves in the census's own geography."""
        if self.division.columns == self.division.spine:
            return self.spine
        return Tree.from_sorted(
            self.areas.sort(self.division.spine), self.division.spine, root=self.division.root
        )

    @cached_property
    def starts(self) -> list[Ints]:
        """Return where each subtree's geounits begin at every level, from the subtrees' tops down."""
        found = [np.arange(self.count + 1)]
        for d in range(self.division.depth, self.division.last):
            found.append(self.spine.first_child[d][found[-1]])
        return found

    @cached_property
    def allotment(self) -> Allotment:
        """Return the budget of its geounits, after checking every path from the root of the tree."""
        division = self.division
        above = [np.zeros(self.spine.size(d), bool) for d in range(division.depth)]
        node = np.arange(self.count)
        for d in range(division.depth, 0, -1):
            node = self.spine.parent[d][node]
            above[d - 1][node] = division.above[self.first : self.first + self.count, d - 1]
        return Allotment.of(self.spine, division.workload, bypass=division.bypass, above=above)

    @cached_property
    def published_leaves(self) -> Sparse:
        """Return the histograms of its leaves on the published axes."""
        node, cell, count = self.counts(CELL)
        cells = self.division.base.histogram.cells
        return Sparse.of(node, cell, count, self.spine.size(self.division.last), cells)

    @cached_property
    def leaves(self) -> Sparse:
        """Return the histograms of its leaves."""
        types = self.division.types
        return (
            self.published_leaves
            if types is None
            else types.extend_leaves(self.published_leaves, self.units(types.rule))
        )

    def within(self, leaves: Ints) -> tuple[Ints, Ints]:
        """Return the subtree of each leaf, and its number there."""
        shard = np.searchsorted(self.starts[-1], leaves, side="right") - 1
        return self.first + shard, leaves - self.starts[-1][shard]

    @cached_property
    def truth(self) -> list[Sparse]:
        """Return the census's histograms of its geounits; those above the tops are not known here."""
        division, size = self.division, self.division.workload.histogram.cells
        levels = [self.leaves]
        for d in range(division.last, division.depth, -1):
            levels.append(levels[-1].up(self.spine.parent[d], self.spine.size(d - 1), size))
        return [make_placeholder()] * division.depth + levels[::-1]

    @cached_property
    def constraints(self) -> Constraints:
        """Return the bounds that hold in its geounits."""
        division = self.division
        given: HeldQuery | None = None
        types, name, late = division.types, name_agreement(division.workload), ""
        if types is not None:
            exact = types.exact(self.units(types.rule), *self.counts(EARLIER))
            given, late = types.hold_sums(name, exact, self.spine, first=division.depth), types.rule.name
        elif division.given is not None:
            exact = self._read_dense(EARLIER, division.given.size)
            given = sum_bounds(
                name, division.given, exact, exact, self.spine, division.last, first=division.depth
            )
        return compile_rules(
            division.workload, self.spine, self.truth, Record(), self.units, given, first=division.depth, late=late
        )  # fmt: skip

    def build_constraints(self, exact: tuple[bool, ...]) -> Constraints:
        """Return the same bounds, marked with which are equalities in the whole tree."""
        return replace(self.constraints, exact=exact)

    def measurements(self, key: Key | None, offsets: Ints, emphasis: int) -> Measurements:
        """Return its measurements, with the noise at its geounits' ``offsets`` in the whole tree."""
        none = np.zeros(0, np.int64)
        place = tuple(
            none if d < self.division.depth else int(offsets[d]) + np.arange(self.spine.size(d))
            for d in range(len(self.division.levels))
        )
        return Measurements(self.allotment, self.truth, key, emphasis, place)

    def units(self, rule: Rule) -> Ints:
        """Return how many units of each kind are in each leaf."""
        number = self.division.workload.rules.index(rule)
        return self._read_dense(UNITS + number, self.division.workload.query(rule.query).size)

    def counts(self, kind: int) -> tuple[Ints, Ints, Ints]:
        """Return leaves, numbers and counts of the rows of a kind."""
        rows = self.rows.filter(pl.col(KIND) == kind)
        shard, leaf, number, count = (
            rows[name].cast(pl.Int64).to_numpy() for name in (SHARD, LEAF, NUMBER, COUNT)
        )
        return self.starts[-1][shard - self.first] + leaf, number, count

    def _read_dense(self, kind: int, size: int) -> Ints:
        node, number, count = self.counts(kind)
        result = np.zeros((self.spine.size(self.division.last), size), np.int64)
        result[node, number] = count
        return result


@dataclass(frozen=True, slots=True)
class TypePatterns:
    """A kernel that lists which sets of types, and which sums of them, occur in a part's leaves."""

    division: Division
    types: FacilityTypes

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        found = FacilityPatterns.join(
            self.types.patterns(grove.units(self.types.rule), *grove.counts(EARLIER))
            for grove in self.division.split_batches(table)
        )
        rows = [(SET, own, 0) for own in found.sets] + [(SUM, *pair) for pair in found.sums]
        columns = zip(*rows, (MISFIT, found.misfits, 0), strict=True)
        return pa.table([pa.array(column, pa.int64()) for column in columns], schema=PATTERN_SCHEMA)

    @staticmethod
    def join(table: pa.Table) -> FacilityPatterns:
        """Return the patterns of all parts together."""
        rows = list(zip(*(table[name].to_pylist() for name in PATTERN_SCHEMA.names), strict=True))
        return FacilityPatterns(
            frozenset(own for kind, own, _ in rows if kind == SET),
            frozenset((own, number) for kind, own, number in rows if kind == SUM),
            sum(count for kind, count, _ in rows if kind == MISFIT),
        )


def make_placeholder() -> Sparse:
    """Return a placeholder for a level that another process holds; reading its histograms is an error."""
    none = np.zeros(0, np.int64)
    return Sparse(np.zeros(1, np.int64), none, none)
