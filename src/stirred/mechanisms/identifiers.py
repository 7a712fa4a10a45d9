"""Find columns that identify records: values that hardly any two records share, and links to records left out.

How many values a held column has, and how many of them occur once, are functions of its margin, which a swap keeps
exactly: finding them before a release reveals nothing beyond the invariants. In a large file they are estimated from the
values whose fixed hash is small, which is a function of the same margin.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.census.census import Census, redact_errors
from stirred.chance.words import Hasher, one
from stirred.engine import Engine, Local
from stirred.frames import frame_of
from stirred.languages import Phrase, unit

LEVEL = 0.5  # share of records with a value of their own from which a column identifies them
FEW, FEW_LEVEL = 1_000, 0.8  # in a file of fewer records half of all ages occur once
SHARED = 5  # records to a value, on average: a column with fewer identifies small groups, such as households
MANY = 1_000  # values that a column must have to be judged by this average
FEWEST = 50  # in a smaller file nearly every column has values that occur once
WORDS = 1 << 17  # values that are counted; of a larger file only those with a small hash

FOUND = pa.schema([("column", pa.int32()), ("word", pa.uint64()), ("n", pa.int64())])


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifying:
    """A column whose values name single records, or small groups of them."""

    record_type: str
    column: str
    unique: int  # records whose value no other record has
    records: int
    values: int = 0
    links_to: str = ""  # the record type that the column names, if that is why

    @property
    def why(self) -> str:
        """The reason in words, with counts and no value."""
        if self.links_to:
            return Phrase("guard.names_linked", linked=self.links_to)
        records = unit(self.record_type, "records")
        if self.unique > level(self.records) * self.records:
            return Phrase("guard.unique", number=self.unique, all=self.records, records=records)
        return Phrase("guard.few_each", number=self.records, records=records, values=self.values)


def level(records: int) -> float:
    """The share of records with a value of their own from which a column identifies them.

    >>> level(100), level(5_000)
    (0.8, 0.5)
    """
    return LEVEL if records >= FEW else FEW_LEVEL


def identifying(
    census: Census, record_type: str, columns: Sequence[str], *, engine: Engine | None = None
) -> tuple[Identifying, ...]:
    """Which of these columns identify records, by the schema or by counts.

    >>> census = Census.of({"record": {"household": {}}}, {"household": {"hid": range(60), "rooms": [1, 2] * 30}})
    >>> [(found.column, found.unique) for found in identifying(census, "household", ["hid", "rooms"])]
    [('hid', 60)]
    """
    place = engine or Local()
    record = census.schema.record(record_type)
    kinds = census.scan(record_type).collect_schema()
    asked = [name for name in dict.fromkeys(columns) if name in kinds]
    names = {other.id: other.name for other in census.schema.records if other.id}
    links = {record.household: record.linked_to or record_type} if record.household else {}
    records = place.census(census).count(record_type)
    found = [
        Identifying(
            record_type=record_type,
            column=name,
            unique=records,
            records=records,
            links_to=links.get(name) or (names[name] if name != record.id else ""),
        )
        for name in asked
        if name in names or name in links or name == record.id
    ]
    if records < FEWEST:
        return tuple(found)
    known = {column.column for column in found}
    levels = {v.name: v.level_count for v in record.variables}
    least = min(LEVEL * records, max(records / SHARED, MANY))
    suspected = [
        name
        for name in asked
        if name not in known and (levels.get(name) or records) > least and _reach(kinds[name]) > least
    ]
    if not suspected:
        return tuple(found)
    share = min(1.0, WORDS / records)
    kernel = CountValues(tuple(suspected), np.uint64(min(share * 2.0**64, 2**64 - 1)))
    with redact_errors(record_type):
        cells = frame_of(place.records(census, record_type, suspected).map(kernel, FOUND).gathered())
    counts = cells.group_by("column", "word").agg(pl.col("n").sum()).group_by("column")
    totals = counts.agg(values=pl.len(), unique=(pl.col("n") == 1).sum())
    for number, values, unique in totals.sort("column").rows():
        column = Identifying(
            record_type=record_type,
            column=suspected[number],
            unique=min(records, round(unique / share)),
            records=records,
            values=min(records, round(values / share)),
        )
        if column.unique > level(records) * records or (
            column.values > MANY and column.values * SHARED > records
        ):
            found.append(column)
    return tuple(found)


def _reach(kind: pl.DataType) -> float:
    """How many values a column of this type can have."""
    if kind.is_integer():
        return 2.0 ** int("".join(filter(str.isdigit, str(kind))))
    return 2.0 if kind == pl.Boolean else float("inf")


@dataclass(frozen=True, slots=True)
class CountValues:
    """How often each value with a small hash occurs in a batch of records; the hash is fixed and has no key."""

    names: tuple[str, ...]
    below: np.uint64

    def __call__(self, table: pa.Table) -> pa.Table:
        parts = []
        for number, name in enumerate(self.names):
            values, counts = _counted(one(table.column(name)))
            words = _mixed(values)
            kept = words <= self.below
            parts.append(
                pa.table(
                    [
                        pa.array(np.full(int(kept.sum()), number, np.int32)),
                        pa.array(words[kept]),
                        pa.array(counts[kept]),
                    ],
                    schema=FOUND,
                )
            )
        return pa.concat_tables(parts)


def _counted(array: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """The values of a batch as words, and how often each occurs; whole numbers in a small range are counted by position."""
    if pa.types.is_integer(array.type) and not array.null_count and len(array):
        numbers = array.to_numpy(zero_copy_only=False)
        low = int(numbers.min())
        if int(numbers.max()) - low < 4 * len(array) and low < 2**62:
            counts = np.bincount(numbers.astype(np.int64, copy=False) - low)
            there = np.flatnonzero(counts)
            return (there + low).astype(np.int64).view(np.uint64), counts[there].astype(np.int64)
    cells = pc.value_counts(array)
    counts = cells.field("counts").to_numpy(zero_copy_only=False)
    return Hasher().words(cells.field("values")), counts.astype(np.int64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64, one-to-one on words: whether a value is counted does not follow its size."""
    u = np.uint64
    with np.errstate(over="ignore"):
        words = (words ^ (words >> u(30))) * u(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> u(27))) * u(0x94D049BB133111EB)
    return words ^ (words >> u(31))
