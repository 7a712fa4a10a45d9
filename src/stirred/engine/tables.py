"""Give tables the form in which rows are exchanged between tasks, placed in parts, and released."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred._support import pads
from stirred.chance.words import Hasher, combine_chunks, find_missing
from stirred.kernels import compile_kernel

# Remove dictionaries from tables before rows are exchanged, because two batches may number the same text differently.

ROWS_PER_BATCH = 1 << 18  # rows of a batch


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values are exchanged.

    >>> plain_type(pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return kind


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which rows are exchanged: no dictionaries, no metadata."""
    return pa.schema([pa.field(field.name, plain_type(field.type)) for field in schema])


def to_plain(data: pa.Table | pa.RecordBatch) -> pa.Table:
    """Return the same values without dictionaries and metadata.

    >>> to_plain(pa.table({"a": pa.array(["x", "y"]).dictionary_encode()})).schema.field("a").type
    DataType(string)
    """
    table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
    return table.cast(plain_schema(table.schema))


def stream_tables(data: "pa.Table | pads.Dataset") -> Iterator[pa.Table]:
    """Yield released records in their order, in batches without dictionaries; Parquet files one row group at a time.

    >>> [batch.num_rows for batch in stream_tables(pa.table({"a": [1, 2]}))]
    [2]
    """
    for batch in _read_batches(data):
        for start in range(0, batch.num_rows, ROWS_PER_BATCH):
            yield to_plain(batch.slice(start, ROWS_PER_BATCH))


def _read_batches(data: "pa.Table | pads.Dataset") -> Iterator[pa.RecordBatch]:
    if isinstance(data, pa.Table) or not (
        isinstance(data, pads.FileSystemDataset) and isinstance(data.format, pads.ParquetFileFormat)
    ):
        yield from data.to_batches()
        return
    for name in data.files:  # a scan of the data set reads ahead until it holds all of it
        with pq.ParquetFile(name, filesystem=data.filesystem, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=ROWS_PER_BATCH)


# Choose the part of a row by a hash of some of its values, which is the same in every process on every machine.

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


def hash_rows(
    table: pa.Table, keys: Sequence[str], start: NDArray[np.uint64] | None = None
) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row's values in the key columns; equal values of one type have equal hashes.

    ``start`` has a hash of each row to go on from.

    >>> h = hash_rows(pa.table({"a": [1, 2, 1], "b": ["x", "x", "x"]}), ["a", "b"])
    >>> bool(h[0] == h[2] != h[1])
    True
    """
    state = np.zeros(table.num_rows, np.uint64) if start is None else start.copy()
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


# Files of released records whose bytes depend on the records alone, not on how they were divided on the way.
#
# Whether a census is held in memory or divided into parts depends on its size and on the machine. Neither is public:
# the row groups, types and encodings of a released file are the same both ways.

ROWS_PER_GROUP = 1 << 20  # rows of a row group in a released file: a number that does not depend on the data
LIST_GROUP_BYTES = 1 << 26  # bytes of a row group of lists, which only files that are deleted at the end have


class RowGroups:
    """Rows that wait until a row group is complete, of so many rows or, where ``most`` is given, of so many bytes."""

    def __init__(self, most: int | None = None) -> None:
        self.waiting: list[pa.Table] = []
        self.rows = 0
        self.most = most

    def add(self, table: pa.Table) -> Iterator[pa.Table]:
        """Yield every row group that these rows complete."""
        self.waiting.append(table)
        self.rows += table.num_rows
        if self.most is not None and sum(one.nbytes for one in self.waiting) >= self.most:
            yield from self.flush()
            self.waiting, self.rows = [], 0
        if self.rows >= ROWS_PER_GROUP:
            whole = pa.concat_tables(self.waiting)
            for start in range(0, self.rows - self.rows % ROWS_PER_GROUP, ROWS_PER_GROUP):
                yield whole.slice(start, ROWS_PER_GROUP).combine_chunks()
            self.rows %= ROWS_PER_GROUP
            self.waiting = [whole.slice(whole.num_rows - self.rows).combine_chunks()]

    def flush(self) -> Iterator[pa.Table]:
        """Yield the last row group, where rows are left."""
        if self.rows:
            yield pa.concat_tables(self.waiting).combine_chunks()


class ReleasedFile:
    """A Parquet file of released records; ``ascending`` names columns of growing numbers, whose steps are stored."""

    def __init__(self, path: Path, schema: pa.Schema, ascending: Sequence[str] = ()) -> None:
        self.schema = plain_schema(schema).with_metadata(schema.metadata)
        lists = any(pa.types.is_list(field.type) for field in schema)
        self.groups = RowGroups(LIST_GROUP_BYTES if lists else None)
        steps = [name for name in schema.names if name in ascending]
        self.writer = pq.ParquetWriter(
            path,
            self.schema,
            compression="snappy",
            use_dictionary=[name for name in schema.names if name not in steps],
            column_encoding=dict.fromkeys(steps, "DELTA_BINARY_PACKED") or None,
        )

    def add(self, table: pa.Table) -> None:
        """Write the row groups that these rows complete."""
        for group in self.groups.add(table):
            self._write(group)

    def close(self) -> None:
        """Write the rows that are left, and the footer."""
        for group in self.groups.flush():
            self._write(group)
        self.writer.close()

    def _write(self, group: pa.Table) -> None:
        plain = group.to_reader().cast(self.schema).read_all()  # Table.cast loads pyarrow.compute, 60 ms
        self.writer.write_table(plain, row_group_size=ROWS_PER_GROUP)


def write_released(table: pa.Table, path: Path) -> None:
    """Write a released table."""
    with closing(ReleasedFile(path, table.schema)) as file:
        file.add(table)
