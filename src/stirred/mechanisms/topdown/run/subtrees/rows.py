"""Kernels over batches that send rows to the part of their subtree; batches may have any order and size.

Every kernel aggregates its batch and chooses the part of each row by the value of its codes, not by its position.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.engine.placing import hash_rows
from stirred.mechanisms.topdown.rules.agreement import EarlierProduct
from stirred.mechanisms.topdown.workload.histogram import HistogramAxis, axis_expression, cell_expression
from stirred.mechanisms.topdown.workload.rule import Rule
from stirred.mechanisms.topdown.workload.workload import Workload

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
