"""How rows travel between Spark's tasks: Arrow messages of at most a few megabytes, in rows of part, flow and message.

Spark knows no unsigned integers, no dictionaries and no nanoseconds, and turns every column into rows and back around
a shuffle. An Arrow message keeps every type as it was declared and is moved as it is. Each part also gets one row
without a message, its mark, so that a part without records is seen and every task reads from its rows which part it has.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from stirred.errors import InputError, StirredError

WIRE = pa.schema([("part", pa.int32()), ("flow", pa.int32()), ("message", pa.binary())])
WIRE_WORDS = "part int, flow int, message binary"  # the same in Spark's words
MARK = -1  # the flow of a row that only says that the part is there
MESSAGE = 1 << 22  # bytes of a message, about
HELD = 1 << 26  # bytes held before they are cut into parts


def messages(table: pa.Table, part: int, flow: int) -> Iterator[pa.RecordBatch]:
    """The rows of a table as rows of the wire.

    >>> [row.num_rows for row in messages(pa.table({"a": [1, 2]}), 0, 0)]
    [1]
    """
    if not table.num_rows:
        return
    rows = max(1, MESSAGE * table.num_rows // max(table.nbytes, 1))
    for batch in table.to_batches(max_chunksize=rows):
        if batch.num_rows:
            yield wire([part], [flow], [batch.serialize().to_pybytes()])


def wire(parts: list[int], flows: list[int], bodies: list[bytes | None]) -> pa.RecordBatch:
    """A batch of rows of the wire."""
    columns = [pa.array(parts, pa.int32()), pa.array(flows, pa.int32()), pa.array(bodies, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=WIRE)


def mark(part: int) -> pa.RecordBatch:
    """The row that says that the part is there."""
    return wire([part], [MARK], [None])


def cut(tables: Iterable[pa.Table], by: str, parts: int, flow: int) -> Iterator[pa.RecordBatch]:
    """Rows of the wire for the parts named in column ``by``; small batches are held until cutting them is worth it."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(each.nbytes for each in held) >= HELD:
            yield from _cut(pa.concat_tables(held), by, parts, flow)
            held.clear()
    if held:
        yield from _cut(pa.concat_tables(held), by, parts, flow)


def _cut(table: pa.Table, by: str, parts: int, flow: int) -> Iterator[pa.RecordBatch]:
    column = table.column(by)
    if column.null_count:
        raise InputError(f"column {by} names no part for {column.null_count} rows", fix="number every row")
    number = column.to_numpy()
    order = np.argsort(number, kind="stable")
    edges = np.searchsorted(number[order], np.arange(parts + 1))
    if edges[0] != 0 or edges[-1] != table.num_rows:
        raise InputError(f"column {by} names parts that are not there", fix=f"number them 0 to {parts - 1}")
    taken = table.take(pa.array(order)).combine_chunks()
    for part in np.flatnonzero(np.diff(edges)).tolist():
        yield from messages(taken.slice(edges[part], edges[part + 1] - edges[part]), part, flow)


def unpacked(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The tables of one flow, message by message."""
    for batch in batches:
        for body in batch.column(2):
            if body.is_valid:
                yield pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(body.as_py()), schema)])


def parts_in(
    batches: Iterable[pa.RecordBatch], schemas: tuple[pa.Schema, ...]
) -> Iterator[tuple[int, tuple[pa.Table, ...]]]:
    """The parts of a task with a table for each flow; a part that comes without its mark was torn, which is an error."""
    found: dict[int, list[list[pa.RecordBatch]]] = {}
    marked: set[int] = set()
    for batch in batches:
        numbers, flows, bodies = batch.columns
        for part, flow, body in zip(numbers.to_pylist(), flows.to_pylist(), bodies, strict=True):
            tables = found.setdefault(part, [[] for _ in schemas])
            if flow == MARK:
                marked.add(part)
            else:
                # bytes of their own start at an aligned address, as compiled kernels expect
                tables[flow].append(pa.ipc.read_record_batch(pa.py_buffer(body.as_py()), schemas[flow]))
    if marked != set(found):
        raise StirredError("Spark tore a part in two", why="its rows came without their mark")
    for part in sorted(found):
        pieces = found.pop(part)
        yield (
            part,
            tuple(pa.Table.from_batches(some, schema) for some, schema in zip(pieces, schemas, strict=True)),
        )
