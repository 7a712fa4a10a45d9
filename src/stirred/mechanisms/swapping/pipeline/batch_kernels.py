"""Kernels over batches of the source: they encode the rows and call the same functions as a swap in memory.

Faults of records are counted, and the caller raises the error; links of another type than the identifiers are
refused at once. Kernels are pure and can be pickled: a task may run again, elsewhere, on rows in another order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred.chance import Key
from stirred.chance.words import Hasher, Words, comparable, missing, one
from stirred.engine import Local
from stirred.engine.placing import PART as PART
from stirred.mechanisms.swapping.draw.order import order_words
from stirred.mechanisms.swapping.pipeline.frame import Frame, framed
from stirred.mechanisms.swapping.pipeline.source import SwapLaw
from stirred.mechanisms.swapping.pipeline.survey import ROWS, HomeSurvey, MemberSurvey, SurveyPart, added
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Scatter, Verifier, slices
from stirred.mechanisms.swapping.records.columns import Codes, Column, of_table
from stirred.mechanisms.swapping.records.members import LinkedType
from stirred.mechanisms.swapping.records.participation import Released
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census.codebook.schema import Kinds

WORDS = pa.list_(pa.uint64())
SURVEYED = pa.schema([("rows", pa.int64()), ("empty", pa.int64()), ("sum", pa.binary()), ("prints", WORDS)])


def flat(found: Iterable[Fingerprint]) -> list[int]:
    """Fingerprints as numbers, to be sent in one field."""
    return [number for each in found for number in (each.rows, each.first, each.second)]


def prints_of(numbers: Sequence[int]) -> list[Fingerprint]:
    """The fingerprints that ``flat`` wrote."""
    return [Fingerprint(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]


def part_of(words: Words, parts: int) -> pa.Array:
    """The part of each word: parts are equally likely, and larger words never go to an earlier part.

    >>> part_of(np.array([0, 2**63, 2**64 - 1], np.uint64), 4).to_pylist()
    [0, 2, 3]
    """
    return pa.array((((words >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)).astype(np.int32))


def here() -> Local:
    """The engine inside a kernel, which is one task of many."""
    return Local(workers=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every kernel of one release needs."""

    law: SwapLaw
    roles: Roles
    kinds: "Kinds | None"  # None too where the records that may not move were left out before
    read: tuple[str, ...]
    levels: tuple[tuple[str, pa.Array], ...] = ()  # of the whole census

    def columns(self, records: pa.Table) -> dict[str, Column]:
        """Some records, encoded; identifiers are already words."""
        return of_table(records, [self.roles.identifier, *self.read])

    def frame(self, records: pa.Table) -> Frame:
        """Some records as a frame of the mechanism."""
        columns = self.columns(records)
        known: list[tuple[str, Codes]] = []
        for name, values in self.levels:
            columns[name], codes = _recoded(columns[name], values)
            known.append((name, codes))
        frame = self.law.adapted(framed(columns, self.roles, self.kinds))
        return replace(frame, levels=tuple(known))


def _recoded(column: Column, levels: pa.Array) -> tuple[Column, Codes]:
    """A column in codes of all levels that occur anywhere, and these codes; an empty level is the last."""
    if column.values is None and not levels.null_count:
        return column, levels.to_numpy(zero_copy_only=False)
    values = levels.cast(column.type) if levels.type != column.type else levels
    array = column.arrow()
    array = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    codes = pc.index_in(array, value_set=values).to_numpy(zero_copy_only=False).astype(np.int32)
    return replace(column, codes=codes, values=values, reach=None).measured(), np.arange(len(values))


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
class SurveyHomes:
    """Digest and fingerprints of a batch of records, in one row."""

    reader: Key
    work: Work
    verifier: Verifier

    def __call__(self, table: pa.Table) -> pa.Table:
        empty = table.column(self.work.roles.identifier).null_count
        if empty:
            return _surveyed(self.reader, table.num_rows, empty, [], self.verifier.number)
        columns = self.work.columns(table)
        ids = columns[self.work.roles.identifier].codes
        kept = self.verifier.reader(columns)
        survey = HomeSurvey.of(self.reader, columns, ids, self.work.read, kept)
        found = map(survey.some, slices(table.num_rows, ROWS))
        return _surveyed(self.reader, table.num_rows, 0, found, self.verifier.number)


@dataclass(frozen=True, slots=True)
class SurveyMembers:
    """Digest and fingerprint of a batch of linked records, in one row."""

    reader: Key
    kind: LinkedType
    scatter: Scatter

    def __call__(self, table: pa.Table) -> pa.Table:
        link, names = self.kind.link, self.kind.variables
        empty = table.column(link).null_count
        if empty:
            return _surveyed(self.reader, table.num_rows, empty, [], 1)
        columns = of_table(table, [link, *names])
        survey = MemberSurvey.of_columns(self.reader, columns, names, self.scatter)
        found = (
            survey.some({name: columns[name].codes[rows] for name in names}, columns[link].codes[rows])
            for rows in slices(table.num_rows, ROWS)
        )
        return _surveyed(self.reader, table.num_rows, 0, found, 1)


def _surveyed(reader: Key, rows: int, empty: int, found: Iterable[SurveyPart], number: int) -> pa.Table:
    total, prints = added(reader, found, number)
    row = {
        "rows": [rows],
        "empty": [empty],
        "sum": [total.part()],
        "prints": pa.array([flat(prints)], WORDS),
    }
    return pa.table(row, schema=SURVEYED)


@dataclass(frozen=True, slots=True)
class Levels:
    """The distinct values of some columns in a batch."""

    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        return table.select(list(self.names)).group_by(list(self.names)).aggregate([])


@dataclass(frozen=True, slots=True)
class ByValues:
    """Choose the part of each row by some of its values, and keep some columns."""

    names: tuple[str, ...]
    parts: int
    scatter: Scatter
    keep: tuple[str, ...] | None = None  # None: all

    def __call__(self, table: pa.Table) -> pa.Table:
        columns = of_table(table, self.names)
        words = self.scatter.words(columns, self.names)
        variables = ((words[name], columns[name].codes) for name in self.names)
        part = part_of(self.scatter.rows(variables, table.num_rows), self.parts)
        return (table if self.keep is None else table.select(list(self.keep))).append_column(PART, part)


@dataclass(frozen=True, slots=True)
class ByOrder:
    """Choose the part of each row by the position of its household in the published order."""

    identifier: str
    parts: int
    run: Key

    def __call__(self, table: pa.Table) -> pa.Table:
        ids = of_table(table, [self.identifier])[self.identifier].codes
        return table.append_column(PART, part_of(order_words(self.run, ids, here()), self.parts))
