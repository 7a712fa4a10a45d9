"""Digest all values that a run reads; the digest is the same on every engine and for every file layout.

Rows go into a keyed multiset digest as words (values.py); the names of the columns are sealed with the sums.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.multiset import MultisetDigest
from stirred.mechanisms.swapping.records.columns import Codes, Column
from stirred.mechanisms.swapping.values import Hasher, Words, is_text, missing, null_bits

Hashers = tuple[Hasher, Hasher]


def hashers(key: Key) -> Hashers:
    """The two hashers whose words together represent a text."""
    return Hasher.of(key, "text", "first"), Hasher.of(key, "text", "second")


def value_tables(values: pa.Array, both: Hashers) -> tuple[Words, ...]:
    """The words of each listed value, and of the empty one at the end; codes are positions in this table."""
    nothing = np.zeros(1, np.uint64)
    used = both if is_text(values.type) else both[:1]
    return tuple(np.concatenate([hasher.words(values), nothing]) for hasher in used)


@dataclass(frozen=True, slots=True)
class Looked:
    """A column whose words are looked up by its codes."""

    codes: Codes
    tables: tuple[Words, ...]  # none: the codes are the values
    empty: int  # the code of the empty value; -1: there is none

    @staticmethod
    def of(column: Column, both: Hashers) -> "Looked":
        """Look up the values of a column."""
        if column.values is None:
            return Looked(column.codes, (), -1)
        empty = int(np.flatnonzero(missing(column.values))[0]) if column.values.null_count else -1
        return Looked(column.codes, value_tables(column.values, both), empty)

    def words(self, rows: slice) -> tuple[list[Codes], NDArray[np.bool_] | None]:
        """The words of some rows, and which of them are empty."""
        codes = self.codes[rows]
        found = [table[codes] for table in self.tables] or [codes]
        return found, codes == self.empty if self.empty >= 0 else None


def looked_up(columns: Sequence[Looked], rows: slice) -> list[Codes]:
    """The words of some rows of several columns, with the bits of the empty ones at the end."""
    found: list[Codes] = []
    gone: list[NDArray[np.bool_] | None] = []
    for column in columns:
        words, empty = column.words(rows)
        found += words
        gone.append(empty)
    return found + list(null_bits(gone, rows.stop - rows.start))


def merged_sums(key: Key, parts: Iterable[tuple[bytes, int]], *, width: int) -> MultisetDigest:
    """Add the digests (sum, number of rows) of several workers under the same key."""
    whole = key.multiset()
    for amount, rows in parts:
        whole.merge_part(amount, rows=rows, width=width)
    return whole


@dataclass(frozen=True, slots=True)
class Digested:
    """The digest sum of one record type, with the names of its columns."""

    record_type: str
    names: tuple[str, ...]
    total: MultisetDigest

    def parts(self) -> tuple[bytes, ...]:
        """What is sealed."""
        names = (self.record_type, *self.names)
        return (str(len(names)).encode(), *(name.encode() for name in names), self.total.value())


def sealed(key: Key, homes: Digested, along: Sequence[Digested]) -> bytes:
    """The digest of all that a run reads."""
    return key.digest(*homes.parts(), *(part for group in along for part in group.parts()))
