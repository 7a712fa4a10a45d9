"""Kernels over batches of the source: they digest records, compute fingerprints and choose the part of each record.

Faults of records are counted, and the caller raises the error; links of another type than the identifiers are
refused at once.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred.chance import Key
from stirred.chance.words import Hasher, Words, comparable, missing, one, row_words
from stirred.engine.placing import PART as PART
from stirred.mechanisms.swapping.draw.selection import ROWS
from stirred.mechanisms.swapping.pipeline.part_checks import Looker, Scatter, flat
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint
from stirred.mechanisms.swapping.records.columns import of_table
from stirred.mechanisms.swapping.records.digest import hashers
from stirred.mechanisms.swapping.records.participation import Released
from stirred.mechanisms.swapping.values import Hasher, Words, comparable, missing, one, row_words

NUMBERS = pa.list_(pa.uint64())
SURVEYED = pa.schema([("rows", pa.int64()), ("empty", pa.int64()), ("sum", pa.binary()), ("prints", NUMBERS)])


def part_of(words: Words, parts: int) -> pa.Array:
    """The part of each word: parts are equally likely, and larger words never go to an earlier part.

    >>> part_of(np.array([0, 2**63, 2**64 - 1], np.uint64), 4).to_pylist()
    [0, 2, 3]
    """
    return pa.array((((words >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)).astype(np.int32))


def first_words(run: Key, ids: Words) -> Words:
    """The word by which records are sorted for publication."""
    found = np.empty(ids.size, np.uint64)
    for start in range(0, ids.size, ROWS):
        found[start : start + ROWS] = run.blocks("order", ids[start : start + ROWS])[:, 0]
    return found


def words_of(table: pa.Table, name: str) -> Words:
    """A column that holds words."""
    return np.asarray(one(table.column(name)).to_numpy(zero_copy_only=False))


@dataclass(frozen=True, slots=True)
class Named:
    """Convert identifiers or links to words under their own name; empty ones stay empty, other columns are unchanged."""

    identifier: str
    names: tuple[str, ...]
    kind: pa.DataType  # of the identifiers, where these are links
    only: Released | None = None  # where records that take no part are left out

    def __call__(self, table: pa.Table) -> pa.Table:
        if self.only is not None:
            column = of_table(table, [self.only.column])[self.only.column]
            table = table.filter(pa.array(self.only.places(column)))
        array = comparable(one(table.column(self.identifier)), self.kind, name=self.identifier)
        words = pa.array(Hasher().words(array), mask=missing(array) if array.null_count else None)
        rest = [table.column(name) for name in self.names]
        return pa.table([words, *rest], names=[self.identifier, *self.names])


@dataclass(frozen=True, slots=True)
class Survey:
    """Digest and fingerprints of a batch, in one row."""

    reader: Key
    identifier: str
    names: tuple[str, ...]
    looker: Looker
    held: int | None  # the margin of all held variables; None for linked records

    def __call__(self, table: pa.Table) -> pa.Table:
        empty = table.column(self.identifier).null_count
        ids = np.empty(0, np.uint64) if empty else words_of(table, self.identifier)
        total = self.reader.multiset()
        found: list[Fingerprint] = []
        if not empty:
            if table.num_rows:
                total.update([ids, *row_words(table, self.names, hashers(self.reader))])
            if self.held is None:
                found = [self.looker.linked(table, self.names, ids)]
            else:
                found = [*self.looker.prints(table), self.looker.owners(table, ids, self.held)]
        row = {
            "rows": [table.num_rows],
            "empty": [empty],
            "sum": [total.part()],
            "prints": pa.array([flat(found)], NUMBERS),
        }
        return pa.table(row, schema=SURVEYED)


@dataclass(frozen=True, slots=True)
class Levels:
    """The distinct values of some columns in a batch."""

    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        return table.select(list(self.names)).group_by(list(self.names)).aggregate([])


@dataclass(frozen=True, slots=True)
class Only:
    """Some columns of a batch."""

    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        return table.select(list(self.names))


@dataclass(frozen=True, slots=True)
class ByValues:
    """Choose the part of each row by some of its values."""

    names: tuple[str, ...]
    parts: int
    scatter: Scatter

    def __call__(self, table: pa.Table) -> pa.Table:
        columns = self.scatter.columns(table, self.names)
        words = self.scatter.rows(columns, self.names, table.num_rows)
        return table.append_column(PART, part_of(words, self.parts))


@dataclass(frozen=True, slots=True)
class ByOrder:
    """Choose the part of each row by the position of its household in the published order."""

    identifier: str
    parts: int
    run: Key

    def __call__(self, table: pa.Table) -> pa.Table:
        words = first_words(self.run, words_of(table, self.identifier))
        return table.append_column(PART, part_of(words, self.parts))


@dataclass(frozen=True, slots=True)
class OnlyOf:
    """Keep linked records whose household is released; those with an empty link are kept, because the survey counts them."""

    identifier: str
    link: str

    def __call__(self, part: int, homes: pa.Table, people: pa.Table) -> pa.Table:
        del part
        links = people.column(self.link)
        there = pc.or_(pc.is_in(links, value_set=one(homes.column(self.identifier))), pc.is_null(links))
        return people.filter(there).drop_columns([PART])
