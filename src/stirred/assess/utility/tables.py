"""Compare two tables of counts cell by cell, with errors by geography and size."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.assess.utility.metrics import Array, all_metrics
from stirred.errors import InputError

# The Bureau's population-size classes for areas, and the classes of a cell's own count.
AREA_BINS = (0, 1_000, 5_000, 10_000, 50_000, 100_000)
CELL_BINS = (0, 10, 100)
BLOCK_BINS = (0, 1, 10, 50, 100, 250, 500, 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePair:
    """A reference and a protected table aligned on the same cells (absent cells count zero).

    >>> a = pa.table({"county": ["a", "b"], "count": [3, 4]})
    >>> b = pa.table({"county": ["b", "c"], "count": [5, 1]})
    >>> TablePair.align(a, b, by=["county"]).frame.rows()
    [('a', 3, 0), ('b', 4, 5), ('c', 0, 1)]
    """

    by: tuple[str, ...]
    frame: pl.DataFrame  # by…, reference, protected; sorted by the by-columns

    @staticmethod
    def align(reference: pa.Table, protected: pa.Table, *, by: Sequence[str]) -> "TablePair":
        """Join both tables on all cells, with zeros where a side has no row."""
        keys = list(by)
        for table, side in ((reference, "reference"), (protected, "protected")):
            missing = [name for name in [*keys, "count"] if name not in table.column_names]
            if missing:
                raise InputError(
                    f"the {side} table cannot be compared",
                    why=f"it has no column {', '.join(missing)}",
                    fix="give both tables the classifying columns and a column named count",
                )
        left = _counts(reference, keys, "reference")
        right = _counts(protected, keys, "protected")
        joined = (
            left.join(right, on=keys, how="full", coalesce=True, nulls_equal=True)
            if keys
            else pl.concat([left, right], how="horizontal")
        )
        return TablePair(
            by=tuple(keys), frame=joined.fill_null(0).sort(keys) if keys else joined.fill_null(0)
        )

    def arrays(self) -> tuple[Array, Array]:
        """Return reference and protected counts as floats, in the frame's order."""
        return _floats(self.frame, "reference"), _floats(self.frame, "protected")

    def sum_over(self, by: Sequence[str]) -> "TablePair":
        """Return the margin of both tables over fewer variables."""
        keys = [name for name in self.by if name in set(by)]
        if not keys:
            return TablePair(by=(), frame=self.frame.select(pl.col("reference", "protected").sum()))
        frame = self.frame.group_by(keys).agg(pl.col("reference", "protected").sum()).sort(keys)
        return TablePair(by=tuple(keys), frame=frame)

    def drop_empty(self) -> "TablePair":
        """Return the cells that hold a record on at least one side.

        >>> zero = pa.table({"county": ["a", "b"], "count": [0, 4]})
        >>> TablePair.align(zero, zero, by=["county"]).occupied().frame.rows()
        [('b', 4, 4)]
        """
        held = (pl.col("reference") != 0) | (pl.col("protected") != 0)
        return TablePair(by=self.by, frame=self.frame.filter(held)) if self.by else self

    def align_with(self, others: Sequence["TablePair"]) -> "TablePair":
        """Return this pair on all cells of others; a cell that it lacks is empty on both sides."""
        keys = list(self.by)
        if not keys:
            return self
        cells = pl.concat([other.frame.select(keys) for other in (self, *others)]).unique()
        whole = cells.join(self.frame, on=keys, how="left", nulls_equal=True)
        counts = pl.col("reference", "protected").fill_null(0)
        return TablePair(by=self.by, frame=whole.with_columns(counts).sort(keys))

    @property
    def exact(self) -> bool:
        """Return whether the two tables agree in every cell."""
        return bool((self.frame["reference"] == self.frame["protected"]).all())


def _counts(table: pa.Table, keys: list[str], name: str) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(table.select([*keys, "count"])))
    frame = frame.with_columns(pl.col(keys).cast(pl.String)) if keys else frame
    if not keys:
        return frame.select(pl.col("count").sum().alias(name))
    return frame.group_by(keys).agg(pl.col("count").sum().alias(name))


def _floats(frame: pl.DataFrame, name: str) -> Array:
    return frame[name].to_numpy().astype(np.float64)


def bin_labels(edges: Sequence[int]) -> list[str]:
    """Return the names of the size classes.

    >>> bin_labels((0, 10, 100))
    ['0–9', '10–99', '100+']
    """
    last = f"{edges[-1]:,}+"
    names = [str(a) if b == a + 1 else f"{a:,}–{b - 1:,}" for a, b in pairwise(edges)]
    return [*names, last]


def measure_errors(
    pair: TablePair,
    *,
    table: str,
    level: str = "",
    area: Sequence[str] = (),
    edges: Sequence[int] = CELL_BINS,
) -> pl.DataFrame:
    """Return the metrics of one table: of all cells, and by size class of the area or of the cell.

    Columns: table, level, size, metric, value, cells, left_out; the class comes from the *reference*, so this frame
    is computed from confidential data and stays internal.

    >>> a = pa.table({"g": ["a", "b"], "count": [3, 400]}); b = pa.table({"g": ["a", "b"], "count": [4, 398]})
    >>> measure_errors(TablePair.align(a, b, by=["g"]), table="t").filter(pl.col("metric") == "MAE")["value"].to_list()
    [1.5, 1.0, 2.0]
    """
    labels = bin_labels(edges)
    size = pl.col("reference").sum().over(list(area)) if area else pl.col("reference")
    sizes = pair.frame.select(size.alias("size"))["size"].to_numpy()
    classes = np.searchsorted(np.asarray(edges[1:]), sizes, side="right")
    reference, protected = pair.arrays()
    groups = [("all", np.ones(len(sizes), dtype=np.bool_))]
    groups += [(label, classes == index) for index, label in enumerate(labels)]
    rows = [
        (table, level, label, metric.name, metric.value, metric.cells, metric.left_out)
        for label, chosen in groups
        for metric in all_metrics(reference[chosen], protected[chosen])
    ]
    return pl.DataFrame(rows, schema=METRIC_SCHEMA, orient="row")


METRIC_SCHEMA: dict[str, type[pl.DataType]] = {
    "table": pl.String,
    "level": pl.String,
    "size": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "cells": pl.Int64,
    "left_out": pl.Int64,
}
