"""Find numbers that are published twice: the same quantity in two products, with the same value or with two.

A quantity has two sides; a side names a published table, which of its rows count, and what the sums are by. Where two
products disagree about a sum, their users have two answers to one question. Which quantities there are, named plans say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl
import pyarrow as pa

from stirred.frames import frame_of

COUNT_COLUMN = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Sums of a published table: rows where columns have one of these values, by the columns of ``by`` in their order.

    A ``complete`` table counts released records: a cell that it does not have is 0; elsewhere it may be suppressed.
    """

    table: str
    by: tuple[str, ...]
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    complete: bool = False

    def sums(self, tables: Mapping[str, pa.Table]) -> pl.DataFrame | None:
        """Return the sums by ``by``, whose columns are numbered; None where a table or column is missing."""
        if self.table not in tables:
            return None
        frame = frame_of(tables[self.table])
        if not {*self.by, *self.where, COUNT_COLUMN} <= set(frame.columns):
            return None
        for name, values in self.where.items():
            frame = frame.filter(pl.col(name).cast(pl.String).is_in(list(values)))
        keys = [pl.col(name).cast(pl.String).alias(str(place)) for place, name in enumerate(self.by)]
        if not keys:
            return frame.select(pl.col(COUNT_COLUMN).sum()) if frame.height else None
        return frame.group_by(keys).agg(pl.col(COUNT_COLUMN).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One quantity that two tables of a release publish; ``name`` is a key of the catalog of words."""

    name: str
    first: Side
    second: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """How many numbers of a quantity stand in both tables, and how many of them differ."""

    quantity: Quantity
    compared: int
    differ: int
    largest: float  # the largest difference


def find_contradictions(
    tables: Mapping[str, pa.Table], quantities: Sequence[Quantity]
) -> tuple[Contradiction, ...]:
    """Return every quantity that two tables publish, with how many of its numbers have two values.

    >>> one = pa.table({"state": ["1", "2"], "count": [5, 6]})
    >>> two = pa.table({"state": ["1", "2"], "count": [5, 7]})
    >>> persons = Quantity(name="p", first=Side(table="a", by=("state",)), second=Side(table="b", by=("state",)))
    >>> [(found.compared, found.differ) for found in find_contradictions({"a": one, "b": two}, [persons])]
    [(2, 1)]
    """
    found = []
    for quantity in quantities:
        first, second = quantity.first.sums(tables), quantity.second.sums(tables)
        if first is None or second is None:
            continue
        keys = [name for name in first.columns if name != COUNT_COLUMN]
        both = _pair_numbers(first, second, keys, quantity)
        if both.is_empty():
            continue
        apart = (both[COUNT_COLUMN].cast(pl.Float64) - both[f"{COUNT_COLUMN}_"].cast(pl.Float64)).abs()
        found.append(
            Contradiction(
                quantity=quantity,
                compared=both.height,
                differ=int((apart > 0).sum()),
                largest=float(str(apart.max())),
            )
        )
    return tuple(found)


def _pair_numbers(
    first: pl.DataFrame, second: pl.DataFrame, keys: Sequence[str], quantity: Quantity
) -> pl.DataFrame:
    """Return the numbers that stand on both sides."""
    other = f"{COUNT_COLUMN}_"
    if not keys:
        return pl.concat([first, second.rename({COUNT_COLUMN: other})], how="horizontal")
    both = first.join(second, on=keys, how="full", suffix="_", coalesce=True)
    for name, side in ((COUNT_COLUMN, quantity.first), (other, quantity.second)):
        if side.complete:
            both = both.with_columns(pl.col(name).fill_null(0))
    return both.drop_nulls()
