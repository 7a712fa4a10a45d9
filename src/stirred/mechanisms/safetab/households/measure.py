"""Measure the groups that SafeTab-P published: counts at their statistics level, noise on every cell, then the sums."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.languages import Phrase
from stirred.mechanisms.release import Check
from stirred.mechanisms.safetab.groups import GroupCounts, GroupSet
from stirred.mechanisms.safetab.households.cells import (
    LEVELS,
    StatisticsLevel,
    TableName,
    TypeAndTenure,
    find_levels,
)
from stirred.mechanisms.safetab.households.presets import Place
from stirred.mechanisms.safetab.households.totals import GroupTotals
from stirred.mechanisms.safetab.noise import CellNoise

Ints = NDArray[np.int64]
CELLS_PER_GROUP = (
    9  # more than any cell number of T3 or T4: the place of a count in its noise is group · 9 + cell
)
GROUPS_PER_BLOCK = 1 << 18  # groups held as dense counts at once
VARIABLES = ("region_type", "region", "iteration")
ROW_SCHEMA = pl.Schema(
    {
        "region_type": pl.String(),
        "region": pl.String(),
        "iteration": pl.String(),
        "level": pl.Int64(),
        "cell": pl.Int64(),
        "count": pl.Int64(),
        "terms": pl.Int64(),
        "file": pl.String(),
    }
)


@dataclass(frozen=True)
class PublishedGroups:
    """The groups of one region type and level that SafeTab-P published, rising, with their totals."""

    item: GroupSet
    groups: Ints
    totals: Ints


@dataclass(frozen=True)
class Measurement:
    """One table at one region type and level: its thresholds, its noise, and whether negative counts are cut to 0."""

    table: TableName
    thresholds: tuple[int, ...]
    noise: CellNoise
    clamp: bool = False

    def rows(
        self, published: PublishedGroups, counts: GroupCounts, cells: TypeAndTenure, key: Key
    ) -> Iterator[pl.DataFrame]:
        """Yield the published rows, block by block, with their counts and how many cells each adds."""
        label = (self.table, published.item.kind.name, str(published.item.level))
        for start in range(0, len(published.groups), GROUPS_PER_BLOCK):
            groups = published.groups[start : start + GROUPS_PER_BLOCK]
            source = cells.counts(self.table, dense_counts(groups, counts))
            reached = find_levels(published.totals[start : start + GROUPS_PER_BLOCK], self.thresholds)
            for number, level in enumerate(LEVELS[self.table]):
                chosen = np.flatnonzero(reached == number)
                if len(chosen):
                    noisy = self.add_noise(level, groups[chosen], source[chosen], key, label)
                    yield self._frame(published.item, level, groups[chosen], noisy)

    def add_noise(
        self, level: StatisticsLevel, groups: Ints, source: Ints, key: Key, label: tuple[str, ...]
    ) -> Ints:
        """Return the cells of these groups as they are published: noise, cut, then sums."""
        measured = source @ level.counting_matrix.T
        places = groups[:, None] * CELLS_PER_GROUP + np.array(list(level.cells), np.int64)
        noise = self.noise.at(key, label, places.ravel().astype(np.uint64)).reshape(measured.shape)
        found = measured + noise
        if self.clamp:
            found = np.maximum(found, 0)  # before the sums, which stay sums
        return found @ level.adding_matrix.T

    def _frame(self, item: GroupSet, level: StatisticsLevel, groups: Ints, noisy: Ints) -> pl.DataFrame:
        cells, rows = len(level.published_cells), len(groups)
        place = np.repeat(groups, cells)
        regions, iterations = (
            pl.Series(item.regions, dtype=pl.String),
            pl.Series(item.mapping.codes, dtype=pl.String),
        )
        return pl.DataFrame(
            {
                "region_type": pl.repeat(item.kind.name, rows * cells, eager=True, dtype=pl.String),
                "region": regions.gather(place // item.iterations),
                "iteration": iterations.gather(place % item.iterations),
                "level": pl.repeat(item.level, rows * cells, eager=True, dtype=pl.Int64),
                "cell": np.tile(np.array(level.published_cells, np.int64), rows),
                "count": noisy.ravel(),
                "terms": np.tile(level.terms, rows),
                "file": pl.repeat(level.file, rows * cells, eager=True, dtype=pl.String),
            },
            schema=ROW_SCHEMA,
        )


def measure_rows(
    groups: Sequence[PublishedGroups],
    counts: Sequence[GroupCounts],
    cells: TypeAndTenure,
    measurements: Mapping[Place, Measurement],
    key: Key,
) -> dict[TableName, pl.DataFrame]:
    """Return the published rows of each table that the census has the column for."""
    tables: tuple[tuple[TableName, str], ...] = (("T3", cells.type), ("T4", cells.tenure))
    found: dict[TableName, pl.DataFrame] = {}
    for table, column in tables:
        if not column:
            continue
        frames = [pl.DataFrame(schema=ROW_SCHEMA)]
        for item, own in zip(groups, counts, strict=True):
            made = measurements.get((table, item.item.kind.name, item.item.level))
            if made is not None:
                frames += made.rows(item, own, cells, key)
        found[table] = pl.concat(frames)
    return found


def check_rows(rows: Mapping[TableName, pl.DataFrame], totals: GroupTotals) -> tuple[Check, ...]:
    """Check that only groups of the totals are published, each in one file, and that sums are sums."""
    groups = totals.frame.select(VARIABLES)
    found = []
    for table, frame in rows.items():
        own = frame.select(*VARIABLES, "file").unique()
        once = own.height == own.select(VARIABLES).unique().height
        known = own.join(groups, on=list(VARIABLES), how="anti").is_empty()
        measured = frame.filter(pl.col("terms") == 1)
        parts = measured.group_by(*VARIABLES).agg(pl.col("count").sum().alias("sum"))
        whole = frame.filter(pl.col("cell") == 0).join(parts, on=list(VARIABLES), how="left")
        adds = bool((whole["count"] == whole["sum"]).all())
        told = Phrase("safetab_h.check.groups", table=table), Phrase("safetab_h.check.sums", table=table)
        found.append(Check(invariant=told[0], kept=once and known, numbers=own.height))
        found.append(Check(invariant=told[1], kept=adds, numbers=whole.height))
    return tuple(found)


def dense_counts(groups: Ints, counts: GroupCounts) -> Ints:
    """Return the counts of these groups, rising, by cell; leave counts of other groups out."""
    found = np.zeros((len(groups), counts.cells), np.int64)
    first, last = np.searchsorted(counts.keys // counts.cells, [groups[0], groups[-1] + 1])
    keys = counts.keys[first:last]
    owner, cell = np.divmod(keys, counts.cells)
    place = np.searchsorted(groups, owner)
    known = groups[place] == owner
    found[place[known], cell[known]] = counts.counts[first:last][known]
    return found
