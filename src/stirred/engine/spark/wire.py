"""Move rows between Spark's tasks as Arrow messages of a few megabytes, in rows of part, flow and message.

Spark has no unsigned integers, dictionaries or nanoseconds, and converts every column to rows and back around a
shuffle. An Arrow message keeps the declared types and is moved unchanged. Each part also gets one row without a
message, its mark, so that a part without records is visible and every task can read which parts it has.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred.errors import InputError, StirredError

WIRE_SCHEMA = pa.schema([("part", pa.int32()), ("flow", pa.int32()), ("message", pa.binary())])
WIRE_SPARK_SCHEMA = "part int, flow int, message binary"  # the same as a Spark schema
MARK_FLOW = -1  # the flow number of a mark
MESSAGE_BYTES = 1 << 22  # approximate bytes of a message
HELD_BYTES = 1 << 26  # bytes collected before they are divided into parts


def pack_messages(table: pa.Table, part: int, flow: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table as messages.

    >>> [row.num_rows for row in pack_messages(pa.table({"a": [1, 2]}), 0, 0)]
    [1]
    """
    if not table.num_rows:
        return
    rows = max(1, MESSAGE_BYTES * table.num_rows // max(table.nbytes, 1))
    for batch in table.to_batches(max_chunksize=rows):
        if batch.num_rows:
            yield pack_wire([part], [flow], [batch.serialize().to_pybytes()])


def pack_wire(parts: list[int], flows: list[int], bodies: list[bytes | None]) -> pa.RecordBatch:
    """Return a batch of messages."""
    columns = [pa.array(parts, pa.int32()), pa.array(flows, pa.int32()), pa.array(bodies, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=WIRE_SCHEMA)


def make_mark(part: int) -> pa.RecordBatch:
    """Return the mark of a part: the row that shows that the part exists."""
    return pack_wire([part], [MARK_FLOW], [None])


def divide_rows(tables: Iterable[pa.Table], by: str, parts: int, flow: int) -> Iterator[pa.RecordBatch]:
    """Divide rows into messages for the parts named in column ``by``; small batches are first joined to larger ones."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(each.nbytes for each in held) >= HELD_BYTES:
            yield from _divide_table(pa.concat_tables(held), by, parts, flow)
            held.clear()
    if held:
        yield from _divide_table(pa.concat_tables(held), by, parts, flow)


def _divide_table(table: pa.Table, by: str, parts: int, flow: int) -> Iterator[pa.RecordBatch]:
    column = table.column(by)
    if column.null_count:
        raise InputError(
            f"column {by} names no part for {column.null_count} rows",
            why="every row must belong to one part",
            fix="give every row the number of its part",
        )
    number = column.to_numpy()
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(parts + 1))
    if edges[0] != 0 or edges[-1] != table.num_rows:
        raise InputError(
            f"column {by} names parts that do not exist",
            why=f"there are {parts} parts",
            fix=f"number them 0 to {parts - 1}",
        )
    taken = table.take(pa.array(order)).combine_chunks()
    for part in np.flatnonzero(np.diff(edges)).tolist():
        yield from pack_messages(taken.slice(edges[part], edges[part + 1] - edges[part]), part, flow)


def unpack_tables(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield the tables of one flow, message by message."""
    for batch in batches:
        for body in batch.column(2):
            if body.is_valid:
                yield pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(body.as_py()), schema)])


def read_parts(
    batches: Iterable[pa.RecordBatch], schemas: tuple[pa.Schema, ...]
) -> Iterator[tuple[int, tuple[pa.Table, ...]]]:
    """Yield the parts of a task with one table per flow; raise where a part without its mark was split."""
    found: dict[int, list[list[pa.RecordBatch]]] = {}
    marked: set[int] = set()
    for batch in batches:
        numbers, flows, bodies = batch.columns
        for part, flow, body in zip(numbers.to_pylist(), flows.to_pylist(), bodies, strict=True):
            tables = found.setdefault(part, [[] for _ in schemas])
            if flow == MARK_FLOW:
                marked.add(part)
            else:
                # a copy starts at an aligned address, as compiled kernels expect
                tables[flow].append(pa.ipc.read_record_batch(pa.py_buffer(body.as_py()), schemas[flow]))
    if marked != set(found):
        raise StirredError(
            "Spark split a part in two",
            why="the rows of one part arrived in two tasks",
            fix="this is a fault of Stirred: please report it, with the version of Spark",
        )
    for part in sorted(found):
        pieces = found.pop(part)
        yield (
            part,
            tuple(pa.Table.from_batches(some, schema) for some, schema in zip(pieces, schemas, strict=True)),
        )


def join_messages(wired: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows of gathered messages, in the order of the parts."""
    if wired.num_rows:
        wired = wired.take(pc.sort_indices(wired.column("part")))  # equal parts stay in their order
    return pa.concat_tables([schema.empty_table(), *unpack_tables(wired.to_batches(), schema)])
