"""Estimate the memory of a run from counts alone, to decide whether it runs in memory or by subtrees."""

from typing import TYPE_CHECKING

import polars as pl

from stirred.mechanisms.topdown.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census

RECORD = 100  # bytes for each record while it is counted
CELL = 20  # bytes for each cell of a leaf: four numbers where it is active, and its share of the levels above
LEAF = 500  # bytes for each leaf besides
LARGEST = 1 << 16  # cells beyond which only those that occur are held


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
    cells = min(workload.histogram.cells, LARGEST) if mode == "gls" else 0
    return records * RECORD + leaves * (LEAF + CELL * cells)
