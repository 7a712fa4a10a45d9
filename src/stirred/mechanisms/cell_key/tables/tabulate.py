"""Count cells together with the sum of their records' keys, in one pass over the records, on any engine."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.words import Hasher, combine_chunks, is_text
from stirred.engine import Flow
from stirred.engine.plain import plain_schema, plain_type, to_plain
from stirred.errors import DataError
from stirred.frames import arrow_of, frame_of
from stirred.mechanisms.cell_key.tables.places import (
    CellPlaces,
    Ints,
    merge_sums,
    number_cells,
    scale_words,
    sum_keys,
)

if TYPE_CHECKING:
    from stirred.census import Census

COUNT, SUM, WEIGHT = "count", "__keys", "weighted"
MAX_SHORT_KEY = 10**9  # of longer keys a sum over a large cell would not fit 64 bits
CELLS_PER_ROW = 4  # where there can be more cells than this for each record, records are grouped instead


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """A key below ``modulus`` for each record, from its identifier and a secret; or a column that holds permanent keys.

    The same identifier has the same key in every table and on every engine, so that the same set of records has the same
    noise in every table.
    """

    secret: Key
    column: str  # the identifier, or the column of permanent keys
    modulus: int
    permanent: bool = False

    def of(self, table: pa.Table) -> NDArray[np.int64]:
        """Return the keys of some records."""
        column = combine_chunks(table.column(self.column))
        if self.permanent:
            return self._read_keys(column)
        names = Hasher.of(self.secret, "record").words(column)
        words = self.secret.blocks("cell-key/record", names)
        if self.modulus & (self.modulus - 1) == 0:
            return (words[:, 0] & np.uint64(self.modulus - 1)).astype(np.int64)
        return scale_words(words, self.modulus)

    def _read_keys(self, column: pa.Array) -> NDArray[np.int64]:
        if pa.types.is_floating(column.type):
            units = np.rint(column.to_numpy(zero_copy_only=False) * self.modulus)
            return np.asarray(np.nan_to_num(units).astype(np.int64) % self.modulus)
        whole = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        if self.modulus & (self.modulus - 1) == 0:  # much quicker than a remainder, and the same
            return np.asarray(whole & (self.modulus - 1))
        return np.asarray(whole % self.modulus)


def find_key_column(census: "Census", record_type: str, permanent: str | None) -> str:
    """Return the column of permanent keys, or the identifier that keys are made from."""
    record = census.schema.record(record_type)
    if permanent is not None:
        return permanent
    if not record.id:
        raise DataError(
            f"{record_type} records have no identifier",
            why="a record's key is made from it, so that the same record has the same key in every table",
            fix=f'name it in census.toml: id = "…" under [record.{record_type}], or name a column of keys: record_key',
        )
    return record.id


@dataclass(frozen=True, slots=True)
class KeyedCells:
    """Counts and sums of keys of a batch of records, by variables."""

    by: tuple[str, ...]
    keys: RecordKeys

    def __call__(self, table: pa.Table) -> pa.Table:
        quick = self._count_by_place(table)
        if quick is not None:
            return quick
        frame = frame_of(table.select(list(self.by))).with_columns(pl.Series(SUM, self.keys.of(table)))
        sums = [pl.len().cast(pl.Int64).alias(COUNT), key_sum(self.keys.modulus)]
        found = frame.group_by(list(self.by)).agg(sums) if self.by else frame.select(sums)
        return to_plain(arrow_of(found))

    def _count_by_place(self, table: pa.Table) -> pa.Table | None:
        """Count with a table of all combinations, or return None where there are many more of them than records."""
        if not self.by or not table.num_rows:
            return None
        found = number_cells(
            [combine_chunks(table.column(name)) for name in self.by], CELLS_PER_ROW * table.num_rows
        )
        if found is None:
            return None
        return to_plain(self._fill_cells(found, sum_keys(found, self.keys.of(table), self.keys.modulus)))

    def merge(self, parts: pa.Table) -> pl.DataFrame | None:
        """Return all cells of some batches, sorted, or None where there are too many combinations."""
        if not self.by or not parts.num_rows:
            return None
        columns = [combine_chunks(parts.column(name)) for name in self.by]
        found = number_cells(columns, CELLS_PER_ROW * parts.num_rows, in_order=True)
        if found is None:
            return None
        counts, sums = (combine_chunks(parts.column(name)).to_numpy() for name in (COUNT, SUM))
        return frame_of(self._fill_cells(found, merge_sums(found, counts, sums, self.keys.modulus)))

    def _fill_cells(self, found: CellPlaces, cells: tuple[Ints, Ints, Ints]) -> pa.Table:
        full, counts, sums = cells
        values = dict(zip(self.by, found.columns(full), strict=True))
        return pa.table({**values, COUNT: pa.array(counts), SUM: pa.array(sums)})

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the columns of the table that a batch gives."""
        own = [before.field(name) for name in self.by]
        if not all(_is_simple(plain_type(field.type)) for field in own):
            return self(before.empty_table()).schema
        return plain_schema(pa.schema([*own, *(pa.field(name, pa.int64()) for name in (COUNT, SUM))]))


def key_sum(modulus: int) -> pl.Expr:
    """Return the expression for the sum of keys modulo a number; long keys are added in two parts."""
    if modulus <= MAX_SHORT_KEY:
        return pl.col(SUM).sum() % modulus
    upper, lower = (pl.col(SUM) // MAX_SHORT_KEY).sum(), (pl.col(SUM) % MAX_SHORT_KEY).sum()
    return ((upper % (modulus // MAX_SHORT_KEY)) * MAX_SHORT_KEY + lower) % modulus


def _is_simple(kind: pa.DataType) -> bool:
    """Return whether a type stays the same after conversion through polars."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)) or (
        is_text(kind)
    )


def count_keyed_cells(flow: Flow, cells: KeyedCells) -> pl.DataFrame:
    """Return all cells that have records, sorted: the variables, the count and the cell key."""
    gathered = flow.map(cells, cells.schema(flow.schema)).gather()
    quick = cells.merge(gathered)
    if quick is not None:
        return quick
    parts = frame_of(gathered)
    sums = [pl.col(COUNT).sum(), key_sum(cells.keys.modulus)]
    if not cells.by:
        return parts.select(sums)
    return parts.group_by(list(cells.by)).agg(sums).sort(list(cells.by), nulls_last=False)
