"""Prepare a part's areas and counts once: number the leaves in the order of their subtree, and count by leaf and cell.

The result is one table: rows of kind AREA hold the codes of a leaf, the others a count of it (see ``rows``).
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.engine import Engine
from stirred.engine.base import Parts
from stirred.mechanisms.topdown.run.subtrees.rows import (
    AREA,
    CELL,
    COUNT,
    KIND,
    LEAF,
    NO_SUBTREE,
    NUMBER,
    PART,
    SHARD,
    TROUBLE,
    assign_parts,
    to_frame,
)
from stirred.mechanisms.topdown.tree.geounits import two_parents_error
from stirred.mechanisms.topdown.tree.splits import QUARTERS_COLUMN, extend_frame
from stirred.mechanisms.topdown.workload.options import SpineOptions

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
