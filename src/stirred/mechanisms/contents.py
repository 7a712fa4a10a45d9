"""What a release says, whoever wrote its files: SHA-256 of the Arrow data in the published order.

Two engines write different Parquet files (row groups, encodings, dictionaries) of the same rows. The digest sees column
names, types without dictionaries, and values in order; not how they were cut into batches.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from stirred.engine.plain import plain, plain_schema
from stirred.mechanisms.base import Release

ROWS = 1 << 16


def digest(data: pa.Table | pads.Dataset) -> str:
    """The digest of one table or set of records.

    >>> one = pa.table({"a": pa.array(["x", "y", None]).dictionary_encode()})
    >>> digest(one) == digest(pa.concat_tables([one.slice(0, 1), one.slice(1)]))
    True
    """
    schema = plain_schema(data.schema)
    columns = [hashlib.sha256(f"{field.name}\n{field.type}\n".encode()) for field in schema]
    for table in _batches(data):
        for column, told in zip(table.columns, columns, strict=True):
            for chunk in column.chunks:
                _tell(chunk, told)
    return hashlib.sha256(b"".join(told.digest() for told in columns)).hexdigest()


def contents(release: Release) -> dict[str, str]:
    """The digest of every record type and table of a release."""
    return {
        name: digest(data) for name, data in sorted([*release.microdata.items(), *release.tables.items()])
    }


def _batches(data: pa.Table | pads.Dataset) -> Iterator[pa.Table]:
    # one at a time and in order: a scan that reads ahead may hold the whole file
    source = data.to_batches() if isinstance(data, pa.Table) else data.scanner(batch_readahead=1).to_batches()
    for batch in source:
        yield plain(batch)


def _tell(array: pa.Array, told: "hashlib._Hash") -> None:
    """Feed values row by row, so that the cuts between batches leave no trace."""
    for start in range(0, len(array), ROWS):
        part = array.slice(start, ROWS)
        there = np.asarray(pc.is_valid(part).to_numpy(zero_copy_only=False), np.uint8)
        if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
            # each value with its length before it
            for value in part.cast(pa.binary()).to_pylist():
                told.update(b"\xff" if value is None else len(value).to_bytes(8, "little") + value)
            continue
        if pa.types.is_boolean(part.type):
            part = part.cast(pa.uint8())
        values = pc.fill_null(part, pa.scalar(0, part.type)) if part.null_count else part
        numbers = values.to_numpy(zero_copy_only=False)
        rows = np.empty((len(part), 1 + numbers.dtype.itemsize), np.uint8)
        rows[:, 0] = there
        rows[:, 1:] = np.ascontiguousarray(numbers).view(np.uint8).reshape(len(part), -1)
        told.update(rows.tobytes())
