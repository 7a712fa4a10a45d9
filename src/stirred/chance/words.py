"""Convert values to 64-bit words: equal values give equal words in any batch, part, dictionary or engine.

Whole numbers are their own words. Text goes through SipHash-2-4 (Aumasson and Bernstein 2012), compiled, straight from
Arrow's buffers: with a secret key where words must not be guessed, with a fixed one where they only name a record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import pc
from stirred.chance.keys import Key
from stirred.errors import DataError
from stirred.kernels import compile_kernel

Words = NDArray[np.uint64]


@compile_kernel
def _sip_round(
    v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    u = np.uint64
    v0 = v0 + v1
    v1 = ((v1 << u(13)) | (v1 >> u(51))) ^ v0
    v0 = (v0 << u(32)) | (v0 >> u(32))
    v2 = v2 + v3
    v3 = ((v3 << u(16)) | (v3 >> u(48))) ^ v2
    v0 = v0 + v3
    v3 = ((v3 << u(21)) | (v3 >> u(43))) ^ v0
    v2 = v2 + v1
    v1 = ((v1 << u(17)) | (v1 >> u(47))) ^ v2
    v2 = (v2 << u(32)) | (v2 >> u(32))
    return v0, v1, v2, v3


@compile_kernel
def hash_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], first: np.uint64, second: np.uint64, out: Words
) -> None:
    """Fill ``out`` with SipHash-2-4 of each text between two offsets, under the key (first, second)."""
    u = np.uint64
    for i in range(out.size):
        start, stop = offsets[i], offsets[i + 1]
        v0, v1 = first ^ u(0x736F6D6570736575), second ^ u(0x646F72616E646F6D)
        v2, v3 = first ^ u(0x6C7967656E657261), second ^ u(0x7465646279746573)
        at = start
        while at + 8 <= stop:
            word = u(0)
            for k in range(8):
                word |= u(data[at + k]) << u(8 * k)
            v3 ^= word
            v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
            v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
            v0 ^= word
            at += 8
        word = u(stop - start) << u(56)
        for k in range(stop - at):
            word |= u(data[at + k]) << u(8 * k)
        v3 ^= word
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        v0 ^= word
        v2 ^= u(0xFF)
        for _ in range(4):
            v0, v1, v2, v3 = _sip_round(v0, v1, v2, v3)
        out[i] = v0 ^ v1 ^ v2 ^ v3


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of a type are hashed."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
    )


@dataclass(frozen=True, slots=True)
class Hasher:
    """Two words of a key under which text is hashed.

    >>> Hasher().text(pa.array(["a", "b", "a"])).tolist().count(Hasher().text(pa.array(["a"]))[0])
    2
    """

    first: int = 0
    second: int = 0

    @staticmethod
    def of(key: Key, *name: str) -> "Hasher":
        """Return a hasher whose words only the holder of a key can compute."""
        secret = key.digest(b"values", *(part.encode() for part in name))
        return Hasher(int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:16], "little"))

    def text(self, array: pa.Array) -> Words:
        """Return the word of each text; of an empty value, that of the empty text."""
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        array = array.cast(pa.large_binary()) if not pa.types.is_string_view(array.type) else array
        if pa.types.is_string_view(array.type):
            array = array.cast(pa.large_string()).cast(pa.large_binary())
        if array.null_count:
            array = array.fill_null(b"")
        _, offsets, data = array.buffers()
        found: Words = np.empty(len(array), np.uint64)
        if len(array):
            places = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
            letters = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
            hash_texts(letters, places, np.uint64(self.first), np.uint64(self.second), found)
        return found

    def words(self, array: pa.Array) -> Words:
        """Return the word of each value; of an empty one 0."""
        kind = array.type
        if is_text(kind):
            found = self.text(array)
            if array.null_count:
                found[find_missing(array)] = 0
            return found
        if pa.types.is_dictionary(kind):
            return self.words(array.cast(kind.value_type))
        return number_words(array)


def number_words(array: pa.Array) -> Words:
    """Return numbers, truth values, dates and floats as words; empty values are 0, all NaN share one word.

    >>> [hex(word) for word in number_words(pa.array([-0.0, float("nan"), None]))]
    ['0x0', '0x7ff8000000000000', '0x0']
    """
    kind = array.type
    if pa.types.is_null(kind):
        return np.zeros(len(array), np.uint64)
    if pa.types.is_temporal(kind):
        array = pc.cast(array, pa.int32() if kind.bit_width == 32 else pa.int64())
    if array.null_count:
        array = array.fill_null(False if pa.types.is_boolean(kind) else 0)
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        reals = values.astype(np.float64) + 0.0  # turns −0 into 0
        reals[np.isnan(reals)] = np.nan  # there are many bit patterns for NaN, and all of them are one value
        return np.asarray(reals.view(np.uint64))
    if values.dtype.kind not in "iub":
        raise DataError(
            f"values of type {kind} cannot be compared",
            why="Stirred has no rule that compares them",
            fix="cast the column to text",
        )
    if values.dtype == np.uint64:
        return np.asarray(values)
    return np.asarray(values.astype(np.int64, copy=False).view(np.uint64))


def find_missing(array: pa.Array) -> NDArray[np.bool_]:
    """Return which values are empty."""
    return np.asarray(array.is_null().to_numpy(zero_copy_only=False))


def combine_chunks(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    # text beyond 2 GB stays in chunks: its offsets must be wider
    return whole if isinstance(whole, pa.Array) else combine_chunks(column.cast(pa.large_string()))


def identifier_words(column: pa.Array | pa.ChunkedArray, *, name: str) -> Words:
    """Return identifiers as words: whole numbers as they are, anything else by its value.

    >>> identifier_words(pa.array([7, 9]), name="id")
    array([7, 9], dtype=uint64)
    """
    array = combine_chunks(column)
    if array.null_count:
        raise DataError(
            f"{name} is empty in some records",
            why="an identifier names one record",
            fix="fill the identifier in these records",
        )
    return Hasher().words(array)


def cast_links(array: pa.Array, kind: pa.DataType, *, name: str) -> pa.Array:
    """Return links in the type of the identifiers they name, which another file may store differently."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if array.type == kind or (is_text(array.type) and is_text(kind)):
        return array
    try:
        return array.cast(kind)
    except pa.ArrowInvalid:  # its message shows the value
        raise DataError(
            f"{name} cannot be compared with the identifiers it names",
            why=f"it holds {'texts' if is_text(array.type) else 'values'} that are none of type {kind}",
            fix="give both columns one type",
        ) from None


def pack_null_bits(arrays: Sequence[NDArray[np.bool_] | None], rows: int) -> list[Words]:
    """Return one bit for each column that may be empty, in as many words as needed."""
    found = [np.zeros(rows, np.uint64) for _ in range(0, max(len(arrays), 1), 64)]
    for i, gone in enumerate(arrays):
        if gone is not None:
            found[i // 64] |= gone.astype(np.uint64) << np.uint64(i % 64)
    return found
