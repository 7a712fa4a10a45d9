"""Choose the part of a row by a hash of some of its values, which is the same in every process on every machine."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance.words import Hasher, combine_chunks, find_missing
from stirred.compiled import compile_kernel

PART_COLUMN = "stirred:part"
STEP, PRIME = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x100000001B3)


@dataclass(frozen=True, slots=True)
class PlaceRows:
    """Rows with the number of their part in one more column."""

    keys: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        """The table and the numbers."""
        number = (hash_rows(table, self.keys) % np.uint64(self.parts)).astype(np.int32)
        return table.append_column(PART_COLUMN, pa.array(number))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the columns after the part number is appended."""
        return before.append(pa.field(PART_COLUMN, pa.int32()))


def hash_rows(table: pa.Table, keys: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row's values in the key columns; equal values of one type have equal hashes.

    >>> h = hash_rows(pa.table({"a": [1, 2, 1], "b": ["x", "x", "x"]}), ["a", "b"])
    >>> bool(h[0] == h[2] != h[1])
    True
    """
    state = np.zeros(table.num_rows, np.uint64)
    for name in keys:
        column = combine_chunks(table.column(name))
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.string())
        words = Hasher().words(column)
        if column.null_count:
            words = np.where(find_missing(column), STEP, words)  # so that empty values and zeros are spread
        mix_words(state, words)
    return state


@compile_kernel
def mix_words(state: NDArray[np.uint64], words: NDArray[np.uint64]) -> None:
    """Mix words into the state, as splitmix64 does."""
    for i in range(len(state)):
        z = state[i] * PRIME + words[i] + STEP
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state[i] = z ^ (z >> np.uint64(31))
