"""The shapes of all strata: sizes, types and margins, as the bounds use them. All are functions of the invariants."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.mechanisms.swapping.budget.claim import StratumTable, margins_text
from stirred.mechanisms.swapping.budget.more_types import UP_TO
from stirred.mechanisms.swapping.draw.partitions import margin_ranks, margins_of_rank
from stirred.mechanisms.swapping.draw.strata import MANY, StratumCodes, Types
from stirred.mechanisms.swapping.records.columns import Column

COUNTED = 20_000_000  # records in small strata whose margins are counted
RANKS = ("hold_rank", "swap_rank")  # of the margins, as margins_of_rank reads them
NONE, UNKNOWN = -1, -2  # no margins are counted for the stratum; not for this side
NUMBERS = ("n", "hold_types", "swap_types", "hold_larger", "swap_larger", "strata")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """The strata by what the bounds use: one row per distinct shape, and the number of strata that have it."""

    n: NDArray[np.int64]
    hold_types: NDArray[np.int64]
    swap_types: NDArray[np.int64]
    hold_larger: NDArray[np.int64]
    swap_larger: NDArray[np.int64]
    strata: NDArray[np.int64]
    margins: NDArray[np.object_]  # all margins of small strata with three and more types on both sides

    @staticmethod
    def merged(rows: pl.DataFrame) -> "Shapes":
        """Join rows of shapes in one table with a row for each distinct shape."""
        many = (pl.col("hold_types") >= MANY) & (pl.col("swap_types") >= MANY)
        if not rows.filter(many & (pl.col("n") > UP_TO)).is_empty():
            # a large stratum decides, and only Theorem B is known for it
            rows = rows.with_columns(margins=pl.lit(""))
        by = [name for name in rows.columns if name != "strata"]
        distinct = rows.group_by(by).agg(pl.col("strata").sum()).sort(by)
        numbers = {name: distinct[name].to_numpy().astype(np.int64) for name in NUMBERS}
        return Shapes(**numbers, margins=np.array(distinct["margins"].to_list(), np.object_))

    @staticmethod
    def joined(parts: Iterable["Shapes"]) -> "Shapes":
        """The shapes of several parts as one table."""
        found = list(parts)
        if len(found) == 1:
            return found[0]
        kinds = {**dict.fromkeys(NUMBERS, pl.Int64), "margins": pl.String}
        rows = {name: [entry for part in found for entry in getattr(part, name)] for name in kinds}
        return Shapes.merged(pl.DataFrame(rows, schema=kinds))

    @property
    def table(self) -> StratumTable:
        """One stratum of each shape, for the bounds."""
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
        """The largest stratum that holds two distinct records (the paper's b); 0 if none does."""
        alive = (self.n >= 2) & ((self.hold_types >= 2) | (self.swap_types >= 2))
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def differing(self) -> int:
        """The largest stratum in which two data sets of one universe can differ: two hold and two swap types."""
        alive = (self.hold_types >= 2) & (self.swap_types >= 2)
        return int(self.n[alive].max()) if alive.any() else 0

    @property
    def fingerprint(self) -> str:
        """A digest of the shapes: equal for censuses whose bounds are computed from the same numbers.

        All of them are functions of the invariants, which are published, so the digest reveals nothing new.
        """
        columns = {field.name: getattr(self, field.name).tolist() for field in fields(self)}
        return hashlib.sha256(json.dumps(columns, sort_keys=True).encode()).hexdigest()

    def by_size(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The sizes that occur, and how many strata have each."""
        sizes, places = np.unique(self.n, return_inverse=True)
        counts = np.zeros(sizes.size, np.int64)
        np.add.at(counts, places.ravel(), self.strata)
        return sizes, counts


def shapes(strata: StratumCodes, hold: Sequence[Column] | None, swap: Sequence[Column]) -> Shapes:
    """Count the shapes of all strata; without ``hold`` every two records are assumed to differ in what is held."""
    sizes = strata.sizes.astype(np.int64)
    moved = strata.types(swap)
    if hold is None:
        held = Types(types=np.where(sizes >= 2, MANY, 1).astype(np.uint8), first_counts=strata.sizes)
    else:
        held = strata.types(hold)
    # with more than two types margins are not used, so they do not distinguish shapes
    rows = pl.DataFrame(
        {
            "n": sizes,
            "hold_types": held.types.astype(np.int64),
            "swap_types": moved.types.astype(np.int64),
            "hold_larger": np.where(held.types == 2, _larger(held, sizes), 0),
            "swap_larger": np.where(moved.types == 2, _larger(moved, sizes), 0),
            **_margins(strata, hold, swap, (held.types >= MANY) & (moved.types >= MANY)),
        }
    )
    distinct = rows.group_by(rows.columns).agg(pl.len().cast(pl.Int64).alias("strata"))
    texts = [_text(n, *ranks) for n, *ranks in distinct.select("n", *RANKS).iter_rows()]
    return Shapes.merged(distinct.select(*NUMBERS[:-1], pl.Series("margins", texts, pl.String), "strata"))


def _margins(
    strata: StratumCodes, hold: Sequence[Column] | None, swap: Sequence[Column], many: NDArray[np.bool_]
) -> dict[str, NDArray[np.int32]]:
    """Ranks of the margins of strata with three and more types, if all of these are small; otherwise they have no effect."""
    sizes = strata.sizes.astype(np.int64)
    found = {name: np.full(sizes.size, NONE, np.int32) for name in RANKS}
    if many.any() and sizes[many].max() <= UP_TO and sizes[many].sum() <= COUNTED:
        for ranks, columns in zip(found.values(), (hold, swap), strict=True):
            ranks[many] = UNKNOWN if columns is None else margin_ranks(strata, columns, many)
    return found


def _text(n: int, hold: int, swap: int) -> str:
    if swap == NONE:
        return ""
    return margins_text(None if hold == UNKNOWN else margins_of_rank(n, hold), margins_of_rank(n, swap))


def _larger(types: Types, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    first = types.first_counts.astype(np.int64)
    larger: NDArray[np.int64] = np.maximum(first, sizes - first)
    return larger
