"""Read encoded values as 64-bit words, and digest all that a run reads; both are the same on every engine and file layout.

Rows go into a keyed multiset digest as words (values.py); the names of the columns are sealed with the sums.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.multiset import MultisetDigest
from stirred.chance.words import Hasher, Words, is_text, pack_null_bits
from stirred.mechanisms.swapping.records.columns import Codes, Column
from stirred.mechanisms.swapping.records.packing import Digit

Hashers = tuple[Hasher, ...]


def make_hashers(key: Key) -> Hashers:
    """Return the two hashers whose words together represent a text."""
    return Hasher.of(key, "text", "first"), Hasher.of(key, "text", "second")


@dataclass(frozen=True, slots=True)
class CodeWords:
    """The words of one variable by its codes: from tables, or the code plus ``low`` if the codes are numbers."""

    tables: tuple[Words, ...]
    low: int = 0
    empty: int = -1  # the code of the empty value; -1: there is none
    nothing: int = 0  # the word of the empty value

    @staticmethod
    def of(column: Column, both: Hashers, *, nothing: int = 0) -> "CodeWords":
        """Return the words of a column, whose empty value is the last."""
        if column.values is None:
            return CodeWords(())
        empty = len(column.values) - 1 if column.values.null_count else -1
        return CodeWords(_hash_values(column.values, empty, both, nothing), 0, empty, nothing)

    @staticmethod
    def of_digit(digit: Digit, both: Hashers, *, holds_empty: bool, nothing: int = 0) -> "CodeWords":
        """Return the words of a packed variable, whose empty value is the last digit."""
        empty = digit.span - 1 if holds_empty else -1
        if digit.values is None:
            return CodeWords((), digit.low, empty, nothing)
        return CodeWords(_hash_values(digit.values, empty, both, nothing), 0, empty, nothing)

    def find_empty(self, codes: Codes) -> NDArray[np.bool_] | None:
        """Return which values are empty, or None if none can be."""
        if self.empty < 0:
            return None
        found: NDArray[np.bool_] = codes == codes.dtype.type(self.empty)
        return found

    def of_codes(self, codes: Codes) -> list[Codes]:
        """Return the words of some codes: two of a text under two hashers, one of anything else."""
        if self.tables:
            return [table[codes] for table in self.tables]
        if self.empty < 0 and not self.low:
            return [codes]
        words = codes.astype(np.uint64, copy=False) + np.uint64(self.low % 2**64)
        gone = self.find_empty(codes)
        if gone is not None:
            words[gone] = np.uint64(self.nothing)
        return [words]


def _hash_values(values: pa.Array, empty: int, both: Hashers, nothing: int) -> tuple[Words, ...]:
    used = both if is_text(values.type) else both[:1]
    found = []
    for hasher in used:
        table = hasher.words(values)
        if empty >= 0:
            table = np.append(table[:empty], np.uint64(nothing))
        found.append(table)
    return tuple(found)


def digest_words(variables: Iterable[tuple[CodeWords, Codes]], rows: int) -> list[Codes]:
    """Return the words of several variables, with the bits of the empty ones at the end."""
    found: list[Codes] = []
    gone: list[NDArray[np.bool_] | None] = []
    for words, codes in variables:
        found += words.of_codes(codes)
        gone.append(words.find_empty(codes))
    return found + list(pack_null_bits(gone, rows))


@dataclass(frozen=True, slots=True)
class RecordDigest:
    """The digest sum of one record type, with the names of its columns."""

    record_type: str
    names: tuple[str, ...]
    total: MultisetDigest

    def parts(self) -> tuple[bytes, ...]:
        """Return the parts that are sealed: the names of the columns and the sum."""
        names = (self.record_type, *self.names)
        return (str(len(names)).encode(), *(name.encode() for name in names), self.total.value())


def merge_digests(
    key: Key, parts: Iterable[tuple[bytes, int]], kinds: Sequence[pa.DataType]
) -> MultisetDigest:
    """Add the digests (sum, number of rows) of several processes under one key; ``kinds`` are the types of the values."""
    # the words of a row: its identifier, one for each value, two for a text, and the bits of empty values
    width = 1 + sum(2 if is_text(kind) else 1 for kind in kinds) + len(range(0, max(len(kinds), 1), 64))
    whole = key.multiset()
    for amount, rows in parts:
        whole.merge_part(amount, rows=rows, width=width)
    return whole


def seal_digest(key: Key, homes: RecordDigest, along: Sequence[RecordDigest]) -> bytes:
    """Return the digest of all that a run reads."""
    return key.digest(*homes.parts(), *(part for group in along for part in group.parts()))
