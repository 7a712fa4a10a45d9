"""Convert Arrow columns to 64-bit words: equal values give equal words in any batch, integer width or dictionary."""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.errors import InputError


def arrow_words(batch: pa.RecordBatch | pa.Table, key: bytes) -> list[NDArray[np.uint64]]:
    """One column of words per number, two per text (a keyed 128-bit digest), and at the end one bit per null.

    >>> batch = pa.record_batch({"a": [1, None], "b": ["x", "y"]})
    >>> [len(column) for column in arrow_words(batch, bytes(32))]
    [2, 2, 2, 2]
    """
    words: list[NDArray[np.uint64]] = []
    missing: list[NDArray[np.uint64]] = []
    for i, name in enumerate(batch.schema.names):
        column = batch.column(i)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if i % 64 == 0:
            missing.append(np.zeros(len(column), dtype=np.uint64))
        if column.null_count:
            gone = column.is_null().to_numpy(zero_copy_only=False)
            missing[-1] |= gone.astype(np.uint64) << np.uint64(i % 64)
        words += _column_words(column, name, key)
    return words + missing


def _column_words(column: pa.Array, name: str, key: bytes) -> list[NDArray[np.uint64]]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        if not _is_text(kind.value_type):
            return _column_words(column.dictionary_decode(), name, key)
        return _text_words(column, key)
    if _is_text(kind):
        return _text_words(column.dictionary_encode(), key)
    if pa.types.is_null(kind):
        return [np.zeros(len(column), dtype=np.uint64)]
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        column = pc.cast(column, pa.int32() if pa.types.is_date32(kind) else pa.int64())
    if column.null_count:
        column = column.fill_null(False if pa.types.is_boolean(kind) else 0)
    values = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind == "f":
        return [np.asarray(values.astype(np.float64) + 0.0).view(np.uint64)]  # + 0.0 turns −0 into 0
    if values.dtype.kind not in "iub":
        raise InputError(
            f"column {name} cannot be digested", why=f"its type is {kind}", fix="cast it to text"
        )
    if values.dtype == np.uint64:
        return [values]
    return [np.asarray(values.astype(np.int64).view(np.uint64))]


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_binary(kind)
        or types.is_large_binary(kind)
    )


def _text_words(column: pa.Array, key: bytes) -> list[NDArray[np.uint64]]:
    """Convert text by a keyed 128-bit digest of each distinct value, so that dictionary codes do not matter."""
    digests = b"".join(_text_digest(value, key) for value in column.dictionary.to_pylist())
    pairs = np.zeros((len(column.dictionary) + 1, 2), dtype=np.uint64)  # the last row stands for null
    pairs[:-1] = np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)
    codes = column.indices.cast(pa.int64())
    if codes.null_count:
        codes = codes.fill_null(len(column.dictionary))
    chosen = pairs[codes.to_numpy(zero_copy_only=False)]
    return [np.ascontiguousarray(chosen[:, 0]), np.ascontiguousarray(chosen[:, 1])]


def _text_digest(value: str | bytes | None, key: bytes) -> bytes:
    if value is None:
        return bytes(16)
    data = value.encode() if isinstance(value, str) else value
    return hashlib.blake2b(data, key=key, digest_size=16).digest()
