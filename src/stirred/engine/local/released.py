"""Files of released records whose bytes depend on the records alone, not on how they were divided on the way.

Whether a census is held in memory or divided into parts depends on its size and on the machine. Neither is public: the
row groups, types and encodings of a released file are the same both ways.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stirred.engine.plain import plain_schema

ROWS_PER_GROUP = 1 << 20  # rows of a row group in a released file: a number that does not depend on the data
LIST_GROUP_BYTES = 1 << 26  # bytes of a row group of lists, which only files that are deleted at the end have


def in_groups(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the same rows in row groups, so that the number of parts, which depends on the input, is not visible.

    >>> [t.num_rows for t in in_groups(iter([pa.table({"a": range(ROWS_PER_GROUP - 1)}), pa.table({"a": range(3)})]))]
    [1048576, 2]
    """
    groups = RowGroups()
    for table in tables:
        yield from groups.add(table)
    yield from groups.flush()


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
