"""Run on this machine: threads over kernels that release the interpreter lock, and parts on disk."""

import ctypes
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from stirred._support import pads, path_in
from stirred.census import Census, read
from stirred.engine.base import (
    BatchKernel,
    Flow,
    PartKernel,
    PartRows,
    PiecewiseKernel,
    Read,
    Steps,
    digest_plain,
)
from stirred.engine.scratch import EncryptedWriter, ScratchFolder, SealedFiles
from stirred.engine.tables import ROWS_PER_BATCH, ReleasedFile, plain_schema, stream_tables, to_plain
from stirred.engine.threads import Room, map_in_order
from stirred.errors import InputError

# Read amounts of memory, and find how much memory is free.

LIBRARY_BYTES = 600_000_000  # bytes that the libraries use before the first record is read
BYTES_BY_UNIT = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}


def parse_bytes(words: str | int) -> int:
    """Read a number of bytes such as "8 GB".

    >>> parse_bytes("8 GB"), parse_bytes("512MiB")
    (8000000000, 536870912)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", str(words))
    if found is None or found[2].lower() not in BYTES_BY_UNIT:
        raise InputError(
            f"{words!r} is not an amount of memory",
            why="it is not a number with a unit",
            fix='memory = "8 GB"',
        )
    return int(float(found[1]) * BYTES_BY_UNIT[found[2].lower()])


def parse_bound(words: str | int) -> int:
    """Read an amount of memory, and refuse one in which nothing could run."""
    size = parse_bytes(words)
    if size < 2 * LIBRARY_BYTES:
        raise InputError(
            f"{words} of memory are too few",
            why=f"the libraries alone take {LIBRARY_BYTES // 10**6} MB",
            fix='memory = "2 GB" or more',
        )
    return size


def free_bytes() -> int:
    """Return three quarters of the memory that is free now, within the limit of a container where there is one."""
    free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        line = next(line for line in meminfo.read_text().splitlines() if line.startswith("MemAvailable"))
        free = int(line.split()[1]) * 1024
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.exists() and limit.read_text().strip().isdigit():
        free = min(free, int(limit.read_text()))
    return free * 3 // 4


# Flows and parts on one machine: batches are streamed, and parts are stored on disk until they are needed.

if sys.platform != "win32":
    import resource

OTHER_OPEN_FILES = 256  # open files other than those of parts


@dataclass(frozen=True, slots=True)
class LocalFlow:
    """Batches from an iterator that can be started again; ``kernels`` run on each, in threads."""

    batches: Callable[[], Iterator[pa.Table]]
    schema: pa.Schema
    workers: int
    kernels: tuple[BatchKernel, ...] = ()

    def map(self, kernel: BatchKernel, schema: pa.Schema) -> "LocalFlow":
        """Return the flow with one more kernel on every batch."""
        return LocalFlow(self.batches, schema, self.workers, (*self.kernels, kernel))

    def run(self, read: Read | None = None) -> Iterator[pa.Table]:
        """Return every batch after all kernels."""
        return map_in_order(self._run_kernels, self._report_rows(read), self.workers)

    def _report_rows(self, read: Read | None) -> Iterator[pa.Table]:
        for table in self.batches():
            yield table
            rows = table.num_rows
            del table  # it may be a slice of a part, which is held as long
            if read is not None:
                read(rows)

    def _run_kernels(self, table: pa.Table) -> pa.Table:
        for kernel in self.kernels:
            table = kernel(table)
        return table.cast(self.schema)

    def gather(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables([self.schema.empty_table(), *self.run()])


class PartStore:
    """A private folder with an encrypted file for each part and flow, removed when it is no longer used."""

    def __init__(self, scratch: Path | None) -> None:
        self.scratch = ScratchFolder(scratch)
        self.files = SealedFiles()
        self.rows: Counter[tuple[int, int]] = Counter()  # of each flow and part
        self.bytes: Counter[tuple[int, int]] = Counter()  # the same in memory, where nothing is compressed
        self.drop = self.scratch.remove

    @contextmanager
    def drop_on_error(self) -> Iterator[None]:
        """Delete the records on disk when an error occurs inside the block: a kept traceback would keep the files alive."""
        try:
            yield
        except BaseException:
            self.drop()
            raise

    def place(self, flow: int, part: int) -> Path:
        """Return the file of one part of one flow."""
        return self.scratch.path / f"{flow}-{part}.sealed"

    def fill(self, flow: int, batches: Iterator[pa.Table], schema: pa.Schema, by: str, parts: int) -> None:
        """Divide every batch by the column that names the part, and append the pieces to their files."""
        writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}
        sinks: dict[int, EncryptedWriter] = {}
        _allow_files(parts)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            for table in batches:
                number = table.column(by).to_numpy()
                if number.size and not (number.min() >= 0 and number.max() < parts):
                    raise InputError(
                        f"rows name a part outside 0 to {parts - 1}",
                        why="every row must belong to a part that exists",
                        fix=f"number the parts 0 to {parts - 1}",
                    )
                if parts <= 1 << 16:
                    number = number.astype(np.uint16)  # narrow numbers are sorted by their digits
                order = np.argsort(number, kind="stable")
                edges = np.searchsorted(number[order], np.arange(parts + 1))
                taken = table.take(pa.array(order)).combine_chunks()
                for part in np.flatnonzero(np.diff(edges)).tolist():
                    if part not in writers:
                        sinks[part] = self.files.writer(self.place(flow, part))
                        writers[part] = pa.ipc.new_stream(
                            pa.PythonFile(sinks[part], "w"), schema, options=options
                        )
                    piece = taken.slice(edges[part], edges[part + 1] - edges[part])
                    writers[part].write_table(piece)
                    self._count(flow, part, piece)
        finally:
            for part, writer in writers.items():
                writer.close()
                sinks[part].close()

    def put(self, flow: int, part: int, pieces: Iterable[pa.Table]) -> None:
        """Write one whole part; a part without rows has no file."""
        with ExitStack() as opened:
            writer: pa.ipc.RecordBatchStreamWriter | None = None
            for piece in pieces:
                if not piece.num_rows:
                    continue
                if writer is None:
                    sink = opened.enter_context(self.files.writer(self.place(flow, part)))
                    writer = opened.enter_context(pa.ipc.new_stream(pa.PythonFile(sink, "w"), piece.schema))
                writer.write_table(piece, max_chunksize=ROWS_PER_BATCH)
                self._count(flow, part, piece)

    def _count(self, flow: int, part: int, piece: pa.Table) -> None:
        self.rows[flow, part] += piece.num_rows
        self.bytes[flow, part] += piece.nbytes

    def read(self, flow: int, part: int) -> Iterator[pa.Table]:
        """Yield the rows of one part as they were written, some at a time."""
        path = self.place(flow, part)
        if not path.exists():
            return
        with self.files.reader(path) as source, pa.ipc.open_stream(pa.PythonFile(source, "r")) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def get(self, flow: int, part: int, schema: pa.Schema) -> PartRows:
        """Return the rows of one part, to be read."""
        return PartRows(schema, self.rows[flow, part], partial(self.read, flow, part))


def read_whole(rows: PartRows) -> pa.Table:
    """Return all rows of a part of a flow."""
    return pa.concat_tables([rows.schema.empty_table(), *rows.read()])


def _allow_files(number: int) -> None:
    """Raise the limit of open files to one for each part: with many workers and little memory the default is too low."""
    if sys.platform == "win32":  # this system has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + OTHER_OPEN_FILES
    if now != resource.RLIM_INFINITY and now < wanted:
        allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


def slice_table(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the rows of a table in batches; nothing is copied."""
    for start in range(0, table.num_rows, ROWS_PER_BATCH):
        yield table.slice(start, ROWS_PER_BATCH)


COPIES = 4  # times that a kernel holds its part: as it is read, as it works on it, and as it returns it


LARGE_PART_BYTES = 1 << 24  # bytes of a part after which free memory is returned


def return_free_memory() -> None:
    """Return free memory to the system: allocators keep it, beside what they take for the next part."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # of glibc alone
        trim(0)


@dataclass(frozen=True, slots=True)
class MadePart:
    """What a kernel returned of one part: a table, or pieces, the first of which is there."""

    part: int
    table: pa.Table | None
    pieces: Iterator[pa.Table]
    bytes: int  # that it holds until it is taken

    @staticmethod
    def of(part: int, table: pa.Table) -> "MadePart":
        """Return a part that is a table."""
        return MadePart(part, table, slice_table(table), table.nbytes)


@dataclass(frozen=True, slots=True)
class LocalParts:
    """Parts in a store, with kernels that run when asked for: at most ``workers`` at once, and as many results wait.

    As many run and wait as stay within ``room`` bytes; a part that is larger than that runs alone.
    """

    store: PartStore
    schemas: tuple[pa.Schema, ...]  # the schemas of what is in the store
    number: int
    workers: int
    room: int
    scratch: Path | None
    kernels: tuple[tuple[PartKernel, pa.Schema], ...] = field(default=())

    @staticmethod
    def of(
        flows: Sequence[Flow],
        by: str,
        parts: int,
        workers: int,
        room: int,
        scratch: Path | None,
        read: Read | None = None,
    ) -> "LocalParts":
        """Exchange flows and return their parts."""
        store = PartStore(scratch)
        with store.drop_on_error():
            for i, flow in enumerate(flows):
                assert isinstance(flow, LocalFlow)
                store.fill(i, flow.run(read), flow.schema, by, parts)
        return LocalParts(store, tuple(flow.schema for flow in flows), parts, workers, room, scratch)

    def map(self, kernel: PartKernel, schema: pa.Schema) -> "LocalParts":
        """Return the parts with one more kernel on every part."""
        return replace(self, kernels=(*self.kernels, (kernel, schema)))

    def read(self, part: int) -> tuple[PartRows, ...]:
        """Return the rows of one part, flow by flow, before all kernels."""
        return tuple(self.store.get(i, part, schema) for i, schema in enumerate(self.schemas))

    @property
    def piecewise(self) -> PiecewiseKernel | None:
        """Return the only kernel where it reads and returns a part in pieces."""
        kernel = self.kernels[0][0] if len(self.kernels) == 1 else None
        return kernel if isinstance(kernel, PiecewiseKernel) else None

    def make(self, part: int) -> MadePart:
        """Return one part after all kernels."""
        kernel = self.piecewise
        if kernel is None:
            return MadePart.of(part, self.one(part))
        pieces = kernel.run_pieces(part, *self.read(part))
        first = [piece for piece in [next(pieces, None)] if piece is not None]
        cast = (piece.cast(self.schema) for piece in chain(first, pieces))
        return MadePart(part, None, cast, self.weigh(part))

    def one(self, part: int) -> pa.Table:
        """Return the only table of one part."""
        found = tuple(read_whole(rows) for rows in self.read(part))
        for kernel, schema in self.kernels:
            found = (kernel(part, *found).cast(schema),)
        (table,) = found
        return table

    def weigh(self, part: int) -> int:
        """Return how many bytes one part takes while kernels run on it."""
        if self.piecewise is not None:
            return self.piecewise.weigh(*self.read(part))
        return COPIES * sum(self.store.bytes[i, part] for i in range(len(self.schemas)))

    def run(self, steps: Steps | None) -> Iterator[MadePart]:
        """Yield every part in order."""
        room: Room[int, MadePart] = Room(self.room, self.weigh, lambda made: made.bytes)
        found = map_in_order(self.make, range(self.number), self.workers, ahead=self.workers, room=room)
        for made in found:
            done = made.part + 1
            yield made
            del made  # before the next part begins
            if self.weigh(done - 1) > LARGE_PART_BYTES:
                return_free_memory()
            if steps is not None:
                steps(done, self.number)

    def run_pieces(self, steps: Steps | None) -> Iterator[pa.Table]:
        """Yield the rows of every part in order, some at a time."""
        for made in self.run(steps):
            yield from made.pieces
            del made

    def run_tables(self, steps: Steps | None) -> Iterator[pa.Table]:
        """Yield every part in order as one table."""
        for made in self.run(steps):
            yield (
                pa.concat_tables([self.schema.empty_table(), *made.pieces])
                if made.table is None
                else made.table
            )

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of a part after all kernels."""
        if self.kernels:
            return self.kernels[-1][1]
        (schema,) = self.schemas
        return schema

    def keep(self, steps: Steps | None = None) -> "LocalParts":
        """Return the same parts in a store of their own."""
        if not self.kernels:
            return self
        store = PartStore(self.scratch)
        with store.drop_on_error():
            for made in self.run(steps):
                store.put(0, made.part, made.pieces)
                del made
        return replace(self, store=store, schemas=(self.schema,), kernels=())

    def flow(self) -> LocalFlow:
        """Return the rows of all parts."""
        return LocalFlow(lambda: self.run_pieces(None), self.schema, self.workers)

    def gather(self, steps: Steps | None = None) -> pa.Table:
        """Return all rows in the order of the parts."""
        return pa.concat_tables([self.schema.empty_table(), *self.run_tables(steps)])

    def write(
        self, folder: Path, name: str, steps: Steps | None = None, *, ascending: Sequence[str] = ()
    ) -> "pads.Dataset":
        """Write one Parquet file, complete or not at all."""
        path = path_in(folder, name, ".parquet")
        temporary = path_in(folder, name, ".parquet.part")
        try:
            with closing(ReleasedFile(temporary, self.schema, ascending)) as file:
                for piece in self.run_pieces(steps):
                    file.add(piece)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return pads.dataset(path)

    def stream(self, folder: Path, name: str, steps: Steps | None = None) -> Iterator[pa.Table]:  # noqa: ARG002 — nothing is stored
        """Return the rows of one part after the other."""
        return self.run_tables(steps)

    def drop(self) -> None:
        """Remove the files."""
        self.store.drop()


# The engine that runs on this machine: threads over kernels that release the interpreter lock, and parts on disk.

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Runs kernels on this machine; results never depend on the number of workers nor on the memory.

    ``memory`` bounds what a run may hold ("8 GB"; by default most of what is free); a job that would hold more is divided
    into parts that are stored in ``scratch`` (by default the system's folder for temporary files).

    >>> list(Local(workers=2).map(len, ["a", "bb"]))
    [1, 2]
    """

    name: ClassVar[str] = "local"
    workers: int = os.cpu_count() or 1
    memory: str | int | None = None
    scratch: Path | None = None

    def __post_init__(self) -> None:
        if self.memory is not None:
            parse_bound(self.memory)

    def map(self, kernel: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Yield results in the order of the tasks, the first of which begin while later ones are made."""
        if self.workers == 1 or (isinstance(tasks, Sized) and len(tasks) < 2):
            yield from map(kernel, tasks)
            return
        pool = ThreadPoolExecutor(self.workers)
        try:
            yield from pool.map(kernel, tasks)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # as in_order: the garbage collector may be here

    def digest_files(self, paths: Sequence[Path]) -> list[bytes]:
        """Return the SHA-256 of plain files in their order; hashing releases the interpreter lock."""
        return list(self.map(digest_plain, paths))

    @property
    def bound_bytes(self) -> int | None:
        """Return how many bytes records may take where a bound was set, else None."""
        return None if self.memory is None else self.memory_bytes

    @property
    def memory_bytes(self) -> int:
        """Return how many bytes records may take."""
        whole = parse_bound(self.memory) if self.memory is not None else free_bytes()
        return max(whole - LIBRARY_BYTES, LIBRARY_BYTES // 4)

    def fits(self, size: int) -> bool:
        """Return whether that many bytes stay within the bound."""
        return size <= self.memory_bytes

    def parts_for(self, size: int) -> int:
        """Return the number of parts so small that every worker can hold one and its results four times."""
        return max(1, -(-4 * self.workers * size // self.memory_bytes))

    def read(self, path: str | Path) -> Census:
        """Return the census that a census.toml describes."""
        return read(path)

    def census(self, census: Census) -> Census:
        """Return the census itself, which already counts on this machine by streaming."""
        return census

    def records(self, census: Census, record_type: str, columns: Sequence[str]) -> Flow:
        """Return a flow of records as they stream from their files."""
        names = list(columns)

        def batches() -> Iterator[pa.Table]:
            for batch in census.batches(record_type, names, rows=ROWS_PER_BATCH):
                yield to_plain(batch)

        kinds = next((b.schema for b in census.batches(record_type, names, rows=1)), None)
        schema = kinds if kinds is not None else census.table(record_type, names).schema
        return LocalFlow(batches, plain_schema(schema), self.workers)

    def stream_released(self, data: "pa.Table | pads.Dataset") -> Flow:
        """Return a flow of released records as they stream from their file."""
        return LocalFlow(lambda: stream_tables(data), plain_schema(data.schema), self.workers)

    def exchange(self, *flows: Flow, by: str, parts: int, read: Read | None = None) -> LocalParts:
        """Divide rows into parts on disk and return them."""
        return LocalParts.of(flows, by, parts, self.workers, self.memory_bytes, self.scratch, read)
