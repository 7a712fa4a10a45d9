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
from stirred.chance.words import Hasher, Words, cast_links, combine_chunks, find_missing
from stirred.engine import Local
from stirred.engine.placing import PART_COLUMN as PART_COLUMN
from stirred.mechanisms.swapping.draw.order import draw_order_words
from stirred.mechanisms.swapping.pipeline.frame import Frame, make_frame
from stirred.mechanisms.swapping.pipeline.source import SwapLaw
from stirred.mechanisms.swapping.pipeline.survey import (
    ROWS_PER_DIGEST,
    HomeSurvey,
    MemberSurvey,
    SurveyPart,
    add_parts,
)
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Scatter, Verifier, slice_rows
from stirred.mechanisms.swapping.records.columns import Codes, Column, encode_table
from stirred.mechanisms.swapping.records.members import LinkedType
from stirred.mechanisms.swapping.records.participation import ReleaseRule
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census.codebook.schema import Kinds

WORD_LIST = pa.list_(pa.uint64())
SURVEY_SCHEMA = pa.schema(
    [("rows", pa.int64()), ("empty", pa.int64()), ("sum", pa.binary()), ("prints", WORD_LIST)]
)


def flatten_prints(found: Iterable[Fingerprint]) -> list[int]:
    """Flatten fingerprints into numbers that are sent in one field."""
    return [number for each in found for number in (each.rows, each.first, each.second)]


def read_prints(numbers: Sequence[int]) -> list[Fingerprint]:
    """Read the fingerprints that ``flatten_prints`` wrote."""
    return [Fingerprint(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]


def assign_parts(words: Words, parts: int) -> pa.Array:
    """Return the part of each word; parts are equally likely, and larger words go to later parts.

    >>> assign_parts(np.array([0, 2**63, 2**64 - 1], np.uint64), 4).to_pylist()
    [0, 2, 3]
    """
    return pa.array((((words >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)).astype(np.int32))


def local_engine() -> Local:
    """Return the engine inside a kernel, which is one task of many."""
    return Local(workers=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every kernel of one release needs: the law, the roles and the columns to read."""

    law: SwapLaw
    roles: Roles
    kinds: "Kinds | None"  # None too where the records that may not move were left out before
    read: tuple[str, ...]
    levels: tuple[tuple[str, pa.Array], ...] = ()  # of the whole census

    def columns(self, records: pa.Table) -> dict[str, Column]:
        """Encode some records, whose identifiers are already words."""
        return encode_table(records, [self.roles.identifier, *self.read])

    def frame(self, records: pa.Table) -> Frame:
        """Make a frame of some records, prepared by the law."""
        columns = self.columns(records)
        known: list[tuple[str, Codes]] = []
        for name, values in self.levels:
            columns[name], codes = _recode_column(columns[name], values)
            known.append((name, codes))
        frame = self.law.prepare_frame(make_frame(columns, self.roles, self.kinds))
        return replace(frame, levels=tuple(known))


def _recode_column(column: Column, levels: pa.Array) -> tuple[Column, Codes]:
    """Recode a column with all levels that occur anywhere; return it and these codes, an empty level last."""
    if column.values is None and not levels.null_count:
        return column, levels.to_numpy(zero_copy_only=False)
    values = levels.cast(column.type) if levels.type != column.type else levels
    array = column.arrow()
    array = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    codes = pc.index_in(array, value_set=values).to_numpy(zero_copy_only=False).astype(np.int32)
    return replace(column, codes=codes, values=values, reach=None).store_reach(), np.arange(len(values))


@dataclass(frozen=True, slots=True)
class IdentifierWords:
    """Convert identifiers or links to words under their own name; empty ones stay empty, other columns are unchanged."""

    identifier: str
    names: tuple[str, ...]
    kind: pa.DataType  # of the identifiers, where these are links
    only: ReleaseRule | None = None  # where records that take no part are left out

    def __call__(self, table: pa.Table) -> pa.Table:
        if self.only is not None:
            column = encode_table(table, [self.only.column])[self.only.column]
            table = table.filter(pa.array(self.only.find_released(column)))
        array = cast_links(combine_chunks(table.column(self.identifier)), self.kind, name=self.identifier)
        words = pa.array(Hasher().words(array), mask=find_missing(array) if array.null_count else None)
        rest = [table.column(name) for name in self.names]
        return pa.table([words, *rest], names=[self.identifier, *self.names])


@dataclass(frozen=True, slots=True)
class SurveyHomes:
    """Digest a batch of records and take its fingerprints, in one row."""

    reader: Key
    work: Work
    verifier: Verifier

    def __call__(self, table: pa.Table) -> pa.Table:
        empty = table.column(self.work.roles.identifier).null_count
        if empty:
            return _write_survey(self.reader, table.num_rows, empty, [], self.verifier.number)
        columns = self.work.columns(table)
        ids = columns[self.work.roles.identifier].codes
        kept = self.verifier.reader(columns)
        survey = HomeSurvey.of(self.reader, columns, ids, self.work.read, kept)
        found = map(survey.digest_slice, slice_rows(table.num_rows, ROWS_PER_DIGEST))
        return _write_survey(self.reader, table.num_rows, 0, found, self.verifier.number)


@dataclass(frozen=True, slots=True)
class SurveyMembers:
    """Digest a batch of linked records and take its fingerprint, in one row."""

    reader: Key
    kind: LinkedType
    scatter: Scatter

    def __call__(self, table: pa.Table) -> pa.Table:
        link, names = self.kind.link, self.kind.variables
        empty = table.column(link).null_count
        if empty:
            return _write_survey(self.reader, table.num_rows, empty, [], 1)
        columns = encode_table(table, [link, *names])
        survey = MemberSurvey.of_columns(self.reader, columns, names, self.scatter)
        found = (
            survey.digest_slice(
                {name: columns[name].codes[rows] for name in names}, columns[link].codes[rows]
            )
            for rows in slice_rows(table.num_rows, ROWS_PER_DIGEST)
        )
        return _write_survey(self.reader, table.num_rows, 0, found, 1)


def _write_survey(reader: Key, rows: int, empty: int, found: Iterable[SurveyPart], number: int) -> pa.Table:
    total, prints = add_parts(reader, found, number)
    row = {
        "rows": [rows],
        "empty": [empty],
        "sum": [total.part()],
        "prints": pa.array([flatten_prints(prints)], WORD_LIST),
    }
    return pa.table(row, schema=SURVEY_SCHEMA)


@dataclass(frozen=True, slots=True)
class DistinctLevels:
    """Find the distinct values of some columns in a batch."""

    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        return table.select(list(self.names)).group_by(list(self.names)).aggregate([])


@dataclass(frozen=True, slots=True)
class PartByValues:
    """Choose the part of each row by some of its values, and keep some columns."""

    names: tuple[str, ...]
    parts: int
    scatter: Scatter
    keep: tuple[str, ...] | None = None  # None: all

    def __call__(self, table: pa.Table) -> pa.Table:
        columns = encode_table(table, self.names)
        words = self.scatter.words(columns, self.names)
        variables = ((words[name], columns[name].codes) for name in self.names)
        part = assign_parts(self.scatter.rows(variables, table.num_rows), self.parts)
        return (table if self.keep is None else table.select(list(self.keep))).append_column(
            PART_COLUMN, part
        )


@dataclass(frozen=True, slots=True)
class PartByOrder:
    """Choose the part of each row by the position of its household in the published order."""

    identifier: str
    parts: int
    run: Key

    def __call__(self, table: pa.Table) -> pa.Table:
        ids = encode_table(table, [self.identifier])[self.identifier].codes
        return table.append_column(
            PART_COLUMN, assign_parts(draw_order_words(self.run, ids, local_engine()), self.parts)
        )
