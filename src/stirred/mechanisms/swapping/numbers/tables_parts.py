"""Tables of a swapped file that does not fit in memory: whole strata meet (one exchange by match variables)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import polars as pl
import pyarrow as pa

from stirred.engine.placing import PART
from stirred.mechanisms.released_parts import TAKES, UNIT, Records, arrow_of, cells_schema, frame_of
from stirred.mechanisms.swapping.numbers.uncertainty import finished, parted


@dataclass(frozen=True, slots=True)
class Moments:
    """Counts and moments of the strata of one part."""

    by: tuple[str, ...]
    match: tuple[str, ...]
    swap: tuple[str, ...]
    rate: Fraction

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        frame = frame_of(table)
        kinds = "__kind" in frame.columns
        units = frame.filter(pl.col(TAKES) & (pl.col("__kind") == 0) if kinds else pl.col(TAKES))
        counted = frame.filter(pl.col("__kind") == 1) if kinds else frame
        units = units.select(UNIT, *dict.fromkeys([*self.match, *self.swap]))
        counted = counted.select(UNIT, *self.by)
        return arrow_of(
            parted(units, counted, by=self.by, match=self.match, swap=self.swap, rate=self.rate).select(
                *self.by, "count", "estimate", "variance"
            )
        )


def uncertain(
    records: Records,
    by: Sequence[str],
    *,
    match: Sequence[str],
    swap: Sequence[str],
    rate: Fraction,
) -> pl.DataFrame:
    """The table of a swapped file with the uncertainty of every cell."""
    keys = tuple(by)
    strata = tuple(dict.fromkeys([*match, *swap]))
    parts = records.parts(len(strata) + len(keys) + 3)
    flow = records.met(keys, strata, tuple(match), parts)
    kernel = Moments(keys, tuple(match), tuple(swap), rate)
    schema = cells_schema(flow.schema, keys, ("count", "estimate", "variance"))
    found = records.engine.exchange(flow, by=PART, parts=parts).map(kernel, schema).gathered()
    return finished([frame_of(found)], list(keys))


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many strata of each size one part has."""

    match: tuple[str, ...]

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        units = frame_of(table).filter(pl.col(TAKES))
        size = pl.len().cast(pl.Int64).alias("__size")
        sizes = units.group_by(list(self.match)).agg(size) if self.match else units.select(size)
        sizes = sizes.select(size=pl.col("__size")).filter(pl.col("size") > 0)
        return arrow_of(sizes.group_by("size").agg(strata=pl.len().cast(pl.Int64)))


def strata(records: Records, match: Sequence[str]) -> pl.DataFrame:
    """How many strata of each size the records that take part make, sorted by size."""
    parts = records.parts(len(match) + 2)
    flow = records.chosen(records.record_type, list(match), match, parts)
    schema = pa.schema([("size", pa.int64()), ("strata", pa.int64())])
    found = records.engine.exchange(flow, by=PART, parts=parts).map(Sizes(tuple(match)), schema).gathered()
    return frame_of(found).group_by("size").agg(pl.col("strata").sum()).sort("size")
