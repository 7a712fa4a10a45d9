"""Count cells together with the sum of their records' keys, in one pass over the records, on any engine."""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.words import Hasher, one
from stirred.engine import Flow
from stirred.engine.plain import plain
from stirred.frames import arrow_of, frame_of

COUNT, SUM, WEIGHT = "count", "__keys", "weighted"
EXACT = 1 << 53  # sums below this are exact in floats


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
        """The keys of some records."""
        column = one(table.column(self.column))
        if self.permanent:
            return self._given(column)
        names = Hasher.of(self.secret, "record").words(column)
        words = self.secret.blocks("cell-key/record", names)[:, 0]
        if self.modulus & (self.modulus - 1) == 0:
            return (words % np.uint64(self.modulus)).astype(np.int64)
        # the upper 53 bits as a fraction: a key differs from uniform by less than modulus / 2^53
        return np.floor((words >> np.uint64(11)).astype(np.float64) * 2.0**-53 * self.modulus).astype(
            np.int64
        )

    def _given(self, column: pa.Array) -> NDArray[np.int64]:
        if pa.types.is_floating(column.type):
            units = np.rint(column.to_numpy(zero_copy_only=False) * self.modulus)
            return np.asarray(np.nan_to_num(units).astype(np.int64) % self.modulus)
        return np.asarray(column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) % self.modulus)


@dataclass(frozen=True, slots=True)
class KeyedCells:
    """Counts and sums of keys of a batch of records, by variables."""

    by: tuple[str, ...]
    keys: RecordKeys
    weight: str = ""

    def __call__(self, table: pa.Table) -> pa.Table:
        quick = None if self.weight else self._by_place(table)
        if quick is not None:
            return quick
        frame = frame_of(table.select([*self.by, *([self.weight] if self.weight else [])]))
        frame = frame.with_columns(pl.Series(SUM, self.keys.of(table)))
        sums = [pl.len().cast(pl.Int64).alias(COUNT), pl.col(SUM).sum() % self.keys.modulus]
        if self.weight:
            # in millionths, as whole numbers: a sum of floats would depend on the batches
            millionths = (pl.col(self.weight).cast(pl.Float64) * 1e6).round().cast(pl.Int64)
            sums.append(millionths.sum().alias(WEIGHT))
        found = frame.group_by(list(self.by)).agg(sums) if self.by else frame.select(sums)
        return plain(arrow_of(found))

    def _by_place(self, table: pa.Table) -> pa.Table | None:
        """The same with a table of all combinations, where there are not many more of them than records."""
        if not self.by or not table.num_rows or self.keys.modulus * table.num_rows >= EXACT:
            return None
        number, room = np.zeros(table.num_rows, np.int64), 1
        digits: list[tuple[pa.Array, int]] = []  # the values of each variable, and how many they are
        for name in self.by:
            codes, values = _coded(one(table.column(name)), 4 * table.num_rows)
            room *= len(values)
            if room > 4 * table.num_rows:
                return None
            number = number * len(values) + codes
            digits.append((values, len(values)))
        counts = np.bincount(number, minlength=room)
        sums = np.bincount(number, self.keys.of(table), minlength=room)  # floats, exact below 2⁵³
        cells = np.flatnonzero(counts)
        found = {COUNT: pa.array(counts[cells], pa.int64())}
        found[SUM] = pa.array(sums[cells].astype(np.int64) % self.keys.modulus)
        rest = cells
        for name, (values, size) in zip(reversed(self.by), reversed(digits), strict=True):
            found[name] = values.take(pa.array(rest % size))
            rest = rest // size
        return plain(pa.table({name: found[name] for name in (*self.by, COUNT, SUM)}))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """The columns of what a batch gives."""
        return self(before.empty_table()).schema


def _coded(column: pa.Array, most: int) -> tuple[NDArray[np.int64], pa.Array]:
    """Each value as a position in a list of values: a range of whole numbers, or those that occur."""
    if pa.types.is_integer(column.type) and not column.null_count:
        numbers = column.to_numpy(zero_copy_only=False)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < most:
            return numbers.astype(np.int64) - low, pa.array(range(low, high + 1), column.type)
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    if coded.indices.null_count:
        coded = column.cast(column.type.value_type).dictionary_encode("encode")
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary


def counted(flow: Flow, cells: KeyedCells) -> pl.DataFrame:
    """All cells that have records, sorted: the variables, the count, the cell key, and the weight where asked for."""
    parts = frame_of(flow.map(cells, cells.schema(flow.schema)).gathered())
    sums = [pl.col(COUNT).sum(), pl.col(SUM).sum() % cells.keys.modulus]
    if cells.weight:
        sums.append(pl.col(WEIGHT).sum())
    if not cells.by:
        return parts.select(sums)
    return parts.group_by(list(cells.by)).agg(sums).sort(list(cells.by), nulls_last=False)
