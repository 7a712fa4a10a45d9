"""What a release says, whoever wrote its files: SHA-256 of the Arrow data in the published order.

Two engines write different Parquet files (row groups, encodings, dictionaries) of the same rows. The digest sees column
names, types without dictionaries, and values in order; not how they were cut into batches.
"""

import hashlib

import numpy as np
import pyarrow as pa

from stirred.arrow import pads, pc
from stirred.engine.plain import plain_schema, streamed
from stirred.mechanisms.release import Release


def digest(data: "pa.Table | pads.Dataset") -> str:
    """The digest of one table or set of records.

    >>> one = pa.table({"a": pa.array(["x", "y", None]).dictionary_encode()})
    >>> digest(one) == digest(pa.concat_tables([one.slice(0, 1), one.slice(1)]))
    True
    """
    columns = [_Column(field) for field in plain_schema(data.schema)]
    for table in streamed(data):
        for column, told in zip(table.columns, columns, strict=True):
            for chunk in column.chunks:
                told.add(chunk)
    return hashlib.sha256(b"".join(told.digest() for told in columns)).hexdigest()


def contents(release: Release) -> dict[str, str]:
    """The digest of every record type and table of a release."""
    return {
        name: digest(data) for name, data in sorted([*release.microdata.items(), *release.tables.items()])
    }


class _Column:
    """Three streams of bytes of one column, each without a trace of the cuts: what is there, numbers, letters."""

    def __init__(self, field: pa.Field) -> None:
        self.there = hashlib.sha256(f"{field.name}\n{field.type}\n".encode())
        self.numbers, self.letters = hashlib.sha256(), hashlib.sha256()

    def add(self, array: pa.Array) -> None:
        """Some more values."""
        there = np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False), np.uint8)
        self.there.update(there.tobytes())
        if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
            values = (
                pc.fill_null(array.cast(pa.binary()), b"") if array.null_count else array.cast(pa.binary())
            )
            lengths = pc.binary_length(values).to_numpy(zero_copy_only=False).astype(np.int64)
            self.numbers.update(lengths.tobytes())
            start = np.frombuffer(values.buffers()[1], np.int32)[values.offset] if len(values) else 0
            letters = values.buffers()[2]
            if letters is not None:
                self.letters.update(memoryview(letters)[start : start + int(lengths.sum())])
            return
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.uint8())
        if array.null_count:
            array = pc.fill_null(array, pa.scalar(0, array.type))
        self.numbers.update(np.ascontiguousarray(array.to_numpy(zero_copy_only=False)).tobytes())

    def digest(self) -> bytes:
        """All three."""
        return self.there.digest() + self.numbers.digest() + self.letters.digest()
