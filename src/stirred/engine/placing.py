"""Choose the part of a row by a hash of some of its values, which is the same in every process on every machine."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.compiled import compiled

PART = "stirred:part"
EMPTY = np.uint64(0x9E3779B97F4A7C15)  # stands for a missing value
FNV, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)


@dataclass(frozen=True, slots=True)
class Placed:
    """Rows with the number of their part in one more column."""

    keys: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        """The table and the numbers."""
        number = (hashed(table, self.keys) % np.uint64(self.parts)).astype(np.int32)
        return table.append_column(PART, pa.array(number))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """The columns after."""
        return before.append(pa.field(PART, pa.int32()))


def hashed(table: pa.Table, keys: Sequence[str]) -> NDArray[np.uint64]:
    """A 64-bit hash of each row's values in the key columns; equal values of one type have equal hashes.

    >>> h = hashed(pa.table({"a": [1, 2, 1], "b": ["x", "x", "x"]}), ["a", "b"])
    >>> bool(h[0] == h[2] != h[1])
    True
    """
    state = np.zeros(table.num_rows, np.uint64)
    for name in keys:
        column = table.column(name)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
            column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
        mix(state, words_of(column))
    return state


def words_of(column: pa.Array) -> NDArray[np.uint64]:
    """A word for each value: the number itself, or the FNV-1a hash of its text."""
    valid = pc.is_valid(column).to_numpy(zero_copy_only=False)
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind):
        column = column.cast(pa.large_binary())
        _, offsets, body = column.buffers()
        ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        text = np.frombuffer(body, np.uint8) if body is not None and body.size else np.zeros(1, np.uint8)
        words = of_text(ends, text)
    else:
        if pa.types.is_floating(kind):
            column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 is 0.0
            column = pc.if_else(pc.is_nan(column), float("nan"), column).view(
                pa.int64()
            )  # and all NaN are equal
        elif pa.types.is_boolean(kind):
            column = column.cast(pa.int8())
        elif pa.types.is_temporal(kind):
            column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        filled = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        words = filled.astype(np.int64).view(np.uint64) if filled.dtype != np.uint64 else filled
    return np.where(valid, words, EMPTY)


@compiled
def of_text(ends: NDArray[np.int64], text: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The FNV-1a hash of each text."""
    out = np.empty(len(ends) - 1, np.uint64)
    for i in range(len(out)):
        state = FNV
        for j in range(ends[i], ends[i + 1]):
            state = (state ^ np.uint64(text[j])) * PRIME
        out[i] = state
    return out


@compiled
def mix(state: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Mix words into the state, as splitmix64 does."""
    for i in range(len(state)):
        z = state[i] * PRIME + words[i] + EMPTY
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state[i] = z ^ (z >> np.uint64(31))
