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
        frame = frame_of(table.select([*self.by, *([self.weight] if self.weight else [])]))
        frame = frame.with_columns(pl.Series(SUM, self.keys.of(table)))
        sums = [pl.len().cast(pl.Int64).alias(COUNT), pl.col(SUM).sum() % self.keys.modulus]
        if self.weight:
            # in millionths, as whole numbers: a sum of floats would depend on the batches
            millionths = (pl.col(self.weight).cast(pl.Float64) * 1e6).round().cast(pl.Int64)
            sums.append(millionths.sum().alias(WEIGHT))
        found = frame.group_by(list(self.by)).agg(sums) if self.by else frame.select(sums)
        return plain(arrow_of(found))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """The columns of what a batch gives."""
        return self(before.empty_table()).schema


def counted(flow: Flow, cells: KeyedCells) -> pl.DataFrame:
    """All cells that have records, sorted: the variables, the count, the cell key, and the weight where asked for."""
    parts = frame_of(flow.map(cells, cells.schema(flow.schema)).gathered())
    sums = [pl.col(COUNT).sum(), pl.col(SUM).sum() % cells.keys.modulus]
    if cells.weight:
        sums.append(pl.col(WEIGHT).sum())
    if not cells.by:
        return parts.select(sums)
    return parts.group_by(list(cells.by)).agg(sums).sort(list(cells.by), nulls_last=False)
