"""Define the picklable steps that Spark's tasks run, and the messages in which rows move between them."""

import errno
import json
import os
import socket
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from stirred.engine.base import BatchKernel, PartKernel
from stirred.engine.tables import ROWS_PER_BATCH, ReleasedFile
from stirred.errors import ClusterError, InputError, StirredError

# Move rows between Spark's tasks as Arrow messages of a few megabytes, in rows of part, flow and message.
#
# Spark has no unsigned integers, dictionaries or nanoseconds, and converts every column to rows and back around a
# shuffle. An Arrow message keeps the declared types and is moved unchanged. Each part also gets one row without a
# message, its mark, so that a part without records is visible and every task can read which parts it has.

WIRE_SCHEMA = pa.schema([("part", pa.int32()), ("flow", pa.int32()), ("message", pa.binary())])
WIRE_SPARK_SCHEMA = "part int, flow int, message binary"  # the same as a Spark schema
MARK_FLOW = -1  # the flow number of a mark
MESSAGE_BYTES = 1 << 22  # approximate bytes of a message
NONCE_BYTES = 16  # of a sealed message
HELD_BYTES = 1 << 26  # bytes collected before they are divided into parts


def pack_messages(
    table: pa.Table, part: int, flow: int, key: bytes | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table as messages, encrypted where a key is given.

    >>> [row.num_rows for row in pack_messages(pa.table({"a": [1, 2]}), 0, 0)]
    [1]
    """
    if not table.num_rows:
        return
    rows = max(1, MESSAGE_BYTES * table.num_rows // max(table.nbytes, 1))
    for batch in table.to_batches(max_chunksize=rows):
        if batch.num_rows:
            body = batch.serialize().to_pybytes()
            yield pack_wire([part], [flow], [body if key is None else seal_message(key, body)])


def seal_message(key: bytes, body: bytes) -> bytes:
    """Return a message encrypted with AES-256 in counter mode, behind the 16 bytes with which its counter begins.

    >>> open_message(bytes(32), seal_message(bytes(32), b"a record"))
    b'a record'
    """
    start = os.urandom(NONCE_BYTES)
    return start + Cipher(algorithms.AES256(key), modes.CTR(start)).encryptor().update(body)


def open_message(key: bytes, sealed: bytes) -> bytes:
    """Return the message that was sealed with this key."""
    start, body = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    return Cipher(algorithms.AES256(key), modes.CTR(start)).decryptor().update(body)


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


def unpack_tables(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, key: bytes | None = None
) -> Iterator[pa.Table]:
    """Yield the tables of one flow, message by message."""
    for batch in batches:
        for body in batch.column(2):
            if body.is_valid:
                message = body.as_py() if key is None else open_message(key, body.as_py())
                yield pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(message), schema)])


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


# The picklable steps that Spark's tasks run, from the batches of a partition to messages.
#
# An error inside a task is reported by its class and place and never by its text, because the text may show a value
# and Spark writes it to its logs; errors of Stirred show no values and are sent unchanged.

Batches = Iterable[pa.RecordBatch]
RUN_AGAIN_FIX = (
    "see the logs of the executors, then run the same command again: it goes on from what is finished"
)
ERROR_PREFIX = "stirred-error "
TASK_FAILED = "a task on the cluster failed"
CAUSES = {
    errno.ENOMEM: "Cannot allocate memory",
    errno.ENOSPC: "No space left on device",
    errno.EDQUOT: "No space left on device",
    errno.EACCES: "Permission denied",
    errno.EPERM: "Permission denied",
}


class TableSource(Protocol):
    """The source of the tables of a flow, inside a task."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]: ...


@dataclass(frozen=True, slots=True)
class ReadBatches:
    """Read batches from columns of Spark."""

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Each batch as a table."""
        for batch in batches:
            yield pa.Table.from_batches([batch])


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Some row groups of a Parquet file of this size: those from ``first`` up to ``end``."""

    path: str
    size: int
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class ReadSlices:
    """Read columns of Parquet files here, where the batch has the number of a slice; Spark would convert every value."""

    slices: tuple[FileSlice, ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The rows of the slices, some at a time."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.read(self.slices[number])

    def read(self, piece: FileSlice) -> Iterator[pa.Table]:
        """Yield the rows of one slice."""
        with ExitStack() as opened:
            try:
                file = opened.enter_context(Path(piece.path).open("rb"))
                if os.fstat(file.fileno()).st_size != piece.size:
                    raise FileNotFoundError  # another file has this name here
            except OSError as error:
                lacks = name_cause(error)
                raise ClusterError(
                    "an executor cannot read a file that the driver reads",
                    why=lacks or "it is not there under the same path, or another file is",
                    fix="keep the files where the driver and every executor see them under one path",
                ) from None
            source = opened.enter_context(pq.ParquetFile(file, pre_buffer=False))
            groups, columns = range(piece.first, piece.end), list(self.columns)
            for batch in source.iter_batches(ROWS_PER_BATCH, row_groups=groups, columns=columns):
                yield pa.Table.from_batches([batch]).select(columns)  # which come in the order of the file


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """Read messages that belong to no part; ``key`` opens those that were sealed."""

    schema: pa.Schema
    key: bytes | None = field(default=None, repr=False)

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The table of each message."""
        return unpack_tables(batches, self.schema, self.key)


@dataclass(frozen=True, slots=True)
class MapTask:
    """Run batch kernels on the tables of a source, and convert the result to the declared types."""

    source: TableSource
    kernels: tuple[BatchKernel, ...]
    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """Every table after all kernels."""
        for table in self.source(batches):
            for kernel in self.kernels:
                table = kernel(table)
            yield table.cast(self.schema)


@dataclass(frozen=True, slots=True)
class PartTask:
    """Run part kernels on parts; ``probe`` is first called with the part, and ``seen`` records which process ran it."""

    schemas: tuple[pa.Schema, ...]
    kernels: tuple[tuple[PartKernel, pa.Schema], ...]
    probe: Callable[[int], object] | None = None
    seen: Any = field(default=None, compare=False)  # an accumulator

    def parts(self, batches: Batches) -> Iterator[tuple[int, tuple[pa.Table, ...]]]:
        """Number and tables of each part after all kernels."""
        for part, tables in read_parts(batches, self.schemas):
            if self.seen is not None and self.kernels:
                self.seen.add({(f"{socket.gethostname()}/{os.getppid()}", os.getpid())})
            if self.probe is not None:
                self.probe(part)
            for kernel, schema in self.kernels:
                tables = (kernel(part, *tables).cast(schema),)
            yield part, tables

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The single table of each part."""
        for _, (table,) in self.parts(batches):
            yield table


@dataclass(frozen=True, slots=True)
class ShuffleTask:
    """Send a flow to its parts."""

    tables: TableSource
    by: str
    number: int
    flow: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of the wire."""
        return divide_rows(self.tables(batches), self.by, self.number, self.flow)


@dataclass(frozen=True, slots=True)
class SendTask:
    """Send a flow to the driver."""

    tables: TableSource

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of the wire."""
        for table in self.tables(batches):
            yield from pack_messages(table, 0, 0)


@dataclass(frozen=True, slots=True)
class CacheTask:
    """Run the kernels of parts, to keep the results where they are or send them to the driver."""

    parted: PartTask

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows of the wire, each part with its mark."""
        for part, tables in self.parted.parts(batches):
            yield make_mark(part)
            for flow, table in enumerate(tables):
                yield from pack_messages(table, part, flow)


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Write each part to a file; a task that runs twice replaces a file by an identical one."""

    parted: PartTask
    folder: str
    digits: int
    ascending: tuple[str, ...] = ()

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """A mark for each part whose file is written."""
        folder = Path(self.folder)
        for part, (table,) in self.parted.parts(batches):
            if table.num_rows:
                attempt = folder / f".{uuid.uuid4().hex}"
                with closing(ReleasedFile(attempt, table.schema, self.ascending)) as file:
                    file.add(table)
                attempt.replace(folder / f"part-{part:0{self.digits}d}.parquet")
            yield pack_wire([part], [int(table.num_rows > 0)], [None])


def guard_task(
    task: Callable[[Batches], Iterator[pa.RecordBatch]],
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Wrap a task so that its errors show no value of a record."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        try:
            yield from task(batches)
        except Exception as error:
            raise RuntimeError(write_error_line(error)) from None

    return run


def write_error_line(error: BaseException) -> str:
    """Describe an error in one line that is safe to log.

    >>> write_error_line(ValueError("a value")).startswith("stirred-error ")
    True
    """
    if isinstance(error, StirredError):
        words = {"class": type(error).__name__, "what": error.what, "why": error.why, "fix": error.fix}
    else:
        frames = traceback.extract_tb(error.__traceback__)
        last = [frame for frame in frames if "site-packages" not in frame.filename][-1:]
        place = "".join(f" in {Path(frame.filename).name}, line {frame.lineno}" for frame in last)
        words = {"class": "ClusterError", "what": TASK_FAILED, "fix": RUN_AGAIN_FIX}
        words["why"] = type(error).__name__ + place
        words["cause"] = name_cause(error)
    return ERROR_PREFIX + json.dumps(words)


def name_cause(error: BaseException) -> str:
    """Return what the machine of a task lacks, as Spark would call it, or nothing; the error's own words may show a value.

    >>> name_cause(MemoryError("a value")), name_cause(KeyError("a value"))
    ('MemoryError', '')
    """
    if isinstance(error, MemoryError):
        return "MemoryError"
    if isinstance(error, ImportError):
        return f"ModuleNotFoundError: No module named {error.name!r}" if error.name else "ImportError"
    return CAUSES.get(error.errno or 0, "") if isinstance(error, OSError) else ""
