"""The shapes of all strata: sizes, types and margins, as the bounds use them. All are functions of the invariants."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.mechanisms.swapping.budget.claim import StratumTable, write_margins
from stirred.mechanisms.swapping.budget.more_types import MAX_RECORDS_WITH_MARGINS
from stirred.mechanisms.swapping.draw.partitions import rank_margins, unrank_margins
from stirred.mechanisms.swapping.draw.strata import MANY_TYPES, StratumCodes, Types
from stirred.mechanisms.swapping.records.columns import Column

MAX_RECORDS_COUNTED = 20_000_000  # records in small strata whose margins are counted
RANK_COLUMNS = ("hold_rank", "swap_rank")  # of the margins, as margins_of_rank reads them
NO_RANK, UNKNOWN_RANK = -1, -2  # no margins are counted for the stratum; not for this side
NUMBER_COLUMNS = ("n", "hold_types", "swap_types", "hold_larger", "swap_larger", "strata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The strata by what the bounds use: one row for each distinct shape, and its number of strata."""

    n: NDArray[np.int64]
    hold_types: NDArray[np.int64]
    swap_types: NDArray[np.int64]
    hold_larger: NDArray[np.int64]
    swap_larger: NDArray[np.int64]
    strata: NDArray[np.int64]
    margins: NDArray[np.object_]  # all margins of small strata with three and more types on both sides

    @staticmethod
    def merge_rows(rows: pl.DataFrame) -> "Shapes":
        """Join rows of shapes in one table with a row for each distinct shape."""
        many = (pl.col("hold_types") >= MANY_TYPES) & (pl.col("swap_types") >= MANY_TYPES)
        if not rows.filter(many & (pl.col("n") > MAX_RECORDS_WITH_MARGINS)).is_empty():
            # a large stratum decides, and only Theorem B is known for it
            rows = rows.with_columns(margins=pl.lit(""))
        by = [name for name in rows.columns if name != "strata"]
        distinct = rows.group_by(by).agg(pl.col("strata").sum()).sort(by)
        numbers = {name: distinct[name].to_numpy().astype(np.int64) for name in NUMBER_COLUMNS}
        return Shapes(**numbers, margins=np.array(distinct["margins"].to_list(), np.object_))

    @staticmethod
    def join_parts(parts: Iterable["Shapes"]) -> "Shapes":
        """Join the shapes of several parts in one table."""
        found = list(parts)
        if len(found) == 1:
            return found[0]
        kinds = {**dict.fromkeys(NUMBER_COLUMNS, pl.Int64), "margins": pl.String}
        rows = {name: [entry for part in found for entry in getattr(part, name)] for name in kinds}
        return Shapes.merge_rows(pl.DataFrame(rows, schema=kinds))

    @property
    def table(self) -> StratumTable:
        """Return one stratum of each shape, for the bounds."""
        return StratumTable.columns(
            self.n,
            self.hold_types,
            self.swap_types,
            self.hold_larger,
            self.swap_larger,
            margins=self.margins,
        )

    @property
    def b(self) -> int:
        """Return the size of the largest stratum with two distinct records (the paper's b), or 0."""
        alive = (self.n >= 2) & ((self.hold_types >= 2) | (self.swap_types >= 2))
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def largest_differing(self) -> int:
        """Return the size of the largest stratum with two hold and two swap types, or 0."""
        alive = (self.hold_types >= 2) & (self.swap_types >= 2)
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def fingerprint(self) -> str:
        """Return a digest of the shapes, equal for censuses whose bounds come from the same numbers.

        All of them are functions of the invariants, which are published, so the digest reveals nothing new.
        """
        columns = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()

    def count_by_size(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the sizes that occur and the number of strata of each size."""
        sizes, places = np.unique(self.n, return_inverse=True)
        counts = np.zeros(sizes.size, np.int64)
        np.add.at(counts, places.ravel(), self.strata)
        return sizes, counts


def count_shapes(strata: StratumCodes, hold: Sequence[Column] | None, swap: Sequence[Column]) -> Shapes:
    """Count the shapes of all strata; without ``hold`` every two records are assumed to differ in what is held."""
    sizes = strata.sizes.astype(np.int64)
    moved = strata.types(swap)
    if hold is None:
        held = Types(types=np.where(sizes >= 2, MANY_TYPES, 1).astype(np.uint8), first_counts=strata.sizes)
    else:
        held = strata.types(hold)
    # with more than two types margins are not used, so they do not distinguish shapes
    rows = pl.DataFrame(
        {
            "n": sizes,
            "hold_types": held.types.astype(np.int64),
            "swap_types": moved.types.astype(np.int64),
            "hold_larger": np.where(held.types == 2, _larger_margin(held, sizes), 0),
            "swap_larger": np.where(moved.types == 2, _larger_margin(moved, sizes), 0),
            **_rank_many_types(strata, hold, swap, (held.types >= MANY_TYPES) & (moved.types >= MANY_TYPES)),
        }
    )
    distinct = rows.group_by(rows.columns).agg(pl.len().cast(pl.Int64).alias("strata"))
    texts = [_write_ranks(n, *ranks) for n, *ranks in distinct.select("n", *RANK_COLUMNS).iter_rows()]
    return Shapes.merge_rows(
        distinct.select(*NUMBER_COLUMNS[:-1], pl.Series("margins", texts, pl.String), "strata")
    )


def _rank_many_types(
    strata: StratumCodes, hold: Sequence[Column] | None, swap: Sequence[Column], many: NDArray[np.bool_]
) -> dict[str, NDArray[np.int32]]:
    """Rank the margins of strata with three or more types if all of these are small; else leave them out."""
    sizes = strata.sizes.astype(np.int64)
    found = {name: np.full(sizes.size, NO_RANK, np.int32) for name in RANK_COLUMNS}
    if (
        many.any()
        and sizes[many].max() <= MAX_RECORDS_WITH_MARGINS
        and sizes[many].sum() <= MAX_RECORDS_COUNTED
    ):
        for ranks, columns in zip(found.values(), (hold, swap), strict=True):
            ranks[many] = UNKNOWN_RANK if columns is None else rank_margins(strata, columns, many)
    return found


def _write_ranks(n: int, hold: int, swap: int) -> str:
    if swap == NO_RANK:
        return ""
    return write_margins(None if hold == UNKNOWN_RANK else unrank_margins(n, hold), unrank_margins(n, swap))


def _larger_margin(types: Types, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    first = types.first_counts.astype(np.int64)
    larger: NDArray[np.int64] = np.maximum(first, sizes - first)
    return larger
