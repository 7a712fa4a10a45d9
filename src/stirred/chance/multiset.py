"""A keyed digest of a table's rows that does not depend on their order, computed batch by batch in one pass.

Each row is folded by CBC-MAC under AES-256 (fixed number of columns, hence a pseudorandom function of the row); the
16-byte results are added modulo 2^128 (MSet-Add-Hash, Clarke et al. 2003); the sum, the number of rows and of columns
go through HMAC. The collision argument is in proof.md.
"""

import hmac
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.cipher import BLOCK_BYTES, CHUNK_BYTES, BlockCipher
from stirred.chance.names import encode_name
from stirred.compiled import compile_kernel
from stirred.errors import InputError

Column = NDArray[np.integer[Any]] | NDArray[np.bool_]
_ROWS_PER_CHUNK: Final = CHUNK_BYTES // BLOCK_BYTES
_MODULUS: Final = 1 << 128


class MultisetDigest:
    """Feed columns of integers with :meth:`update`; :meth:`value` is the digest of all rows so far.

    >>> from stirred.chance.key import Key
    >>> a, b = Key.for_tests(1).multiset(), Key.for_tests(1).multiset()
    >>> a.update([np.array([1, 2, 2]), np.array([7, 8, 8])])
    >>> b.update([np.array([2]), np.array([8])]); b.update([np.array([2, 1]), np.array([8, 7])])
    >>> a.value() == b.value()
    True
    """

    __slots__ = ("_key", "_sum", "_width", "rows")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sum = 0
        self._width: int | None = None
        self.rows = 0

    def __repr__(self) -> str:
        return f"MultisetDigest(rows={self.rows})"

    def update(self, columns: Sequence[Column]) -> None:
        """Add a batch of rows: one array per column, all of one length, always the same number of columns."""
        self._add([_column_words(column) for column in columns])

    def _add(self, words: list[NDArray[np.uint64]]) -> None:
        if not words or len({len(word) for word in words}) != 1:
            raise InputError(
                "a batch of rows needs columns of one length",
                why=f"{len(words)} columns were given, of different lengths or none at all",
                fix="give columns of one length",
            )
        if self._width not in (None, len(words)):
            raise InputError(
                "batches of one table have the same columns",
                why=f"the first batch has {self._width} columns, this one {len(words)}",
                fix="give every batch the same columns",
            )
        self._width = len(words)
        cipher = BlockCipher(hmac.digest(self._key, b"rows of " + self._encode_shape(len(words)), "sha256"))
        nothing = np.zeros(1, dtype=np.uint64)
        n = len(words[0])
        state = np.empty((min(n, _ROWS_PER_CHUNK), 2), dtype=np.uint64)
        for start in range(0, n, _ROWS_PER_CHUNK):
            stop = min(n, start + _ROWS_PER_CHUNK)
            part = state[: stop - start]
            part[:] = 0
            for i in range(0, len(words), 2):
                second = words[i + 1][start:stop] if i + 1 < len(words) else nothing
                _fold_words(part, words[i][start:stop], second)
                cipher.encrypt(part)
            high, low = _add_rows(part)
            self._sum = (self._sum + (int(high) << 64) + int(low)) % _MODULUS
        self.rows += n

    def merge(self, other: "MultisetDigest") -> None:
        """Add the rows another worker has digested under the same key."""
        if other._width is None:
            return
        if self._width not in (None, other._width) or not hmac.compare_digest(self._key, other._key):
            raise InputError(
                "only digests of one table under one key are merged",
                why="their columns or their keys differ",
                fix="merge digests that were made from the same columns with the same key",
            )
        self._width = other._width
        self._sum = (self._sum + other._sum) % _MODULUS
        self.rows += other.rows

    def part(self) -> bytes:
        """Return the sum so far, for :meth:`merge_part` in another process; without the key it reveals nothing."""
        return self._sum.to_bytes(16, "big")

    def merge_part(self, part: bytes, *, rows: int, width: int) -> None:
        """Add the sum of a worker that digested this many rows of ``width`` words under the same key.

        >>> from stirred.chance.key import Key
        >>> here, there = Key.for_tests(1).multiset(), Key.for_tests(1).multiset()
        >>> there.update([np.array([4, 5])])
        >>> here.merge_part(there.part(), rows=2, width=1)
        >>> here.value() == there.value()
        True
        """
        other = MultisetDigest(self._key)
        other._sum, other._width, other.rows = int.from_bytes(part, "big"), width if rows else None, rows
        self.merge(other)

    def value(self) -> bytes:
        """Return the 32-byte digest of the rows so far."""
        message = (
            self._sum.to_bytes(16, "big")
            + self.rows.to_bytes(16, "big")
            + self._encode_shape(self._width or 0)
        )
        return hmac.digest(self._key, b"value" + message, "sha256")

    def _encode_shape(self, width: int) -> bytes:
        return encode_name((width,))


def _column_words(column: Column) -> NDArray[np.uint64]:
    array = np.asarray(column)
    if array.ndim != 1 or array.dtype.kind not in "iub":
        raise InputError(
            "the digest of rows takes one-dimensional columns of integers",
            why=f"a column of {array.ndim} dimensions and type {array.dtype} was given",
            fix="give integer codes, and digest their labels separately",
        )
    if array.dtype == np.uint64:
        return np.asarray(array)
    return np.asarray(array.astype(np.int64, copy=False).view(np.uint64))


@compile_kernel
def _fold_words(state: NDArray[np.uint64], first: NDArray[np.uint64], second: NDArray[np.uint64]) -> None:
    paired = len(second) == len(first)
    for i in range(len(state)):
        state[i, 0] ^= first[i]
        if paired:
            state[i, 1] ^= second[i]


@compile_kernel
def _add_rows(state: NDArray[np.uint64]) -> tuple[np.uint64, np.uint64]:
    high, low = np.uint64(0), np.uint64(0)
    for i in range(len(state)):
        word = state[i, 0]
        low += word
        if low < word:
            high += np.uint64(1)
        high += state[i, 1]
    return high, low
