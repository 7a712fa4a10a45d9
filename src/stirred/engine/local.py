"""Run on this machine: threads over kernels that release the interpreter lock, and parts on disk."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from stirred._support import pads, path_in
from stirred.census import Census, read
from stirred.engine.base import BatchKernel, Flow, PartKernel, Read, Steps
from stirred.engine.digests import digest_plain
from stirred.engine.scratch import EncryptedWriter, ScratchFolder, SealedFiles
from stirred.engine.tables import ROWS_PER_BATCH, ReleasedFile, plain_schema, stream_tables, to_plain
from stirred.engine.threads import map_in_order
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
            if read is not None:
                read(table.num_rows)

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
                    writers[part].write_table(taken.slice(edges[part], edges[part + 1] - edges[part]))
        finally:
            for part, writer in writers.items():
                writer.close()
                sinks[part].close()

    def put(self, flow: int, part: int, table: pa.Table) -> None:
        """Write one whole part."""
        with (
            self.files.writer(self.place(flow, part)) as sink,
            pa.ipc.new_stream(pa.PythonFile(sink, "w"), table.schema) as writer,
        ):
            writer.write_table(table)

    def get(self, flow: int, part: int, schema: pa.Schema) -> pa.Table:
        """Read one whole part."""
        path = self.place(flow, part)
        if not path.exists():
            return schema.empty_table()
        with self.files.reader(path) as source, pa.ipc.open_stream(pa.PythonFile(source, "r")) as reader:
            return reader.read_all()


def _allow_files(number: int) -> None:
    """Raise the limit of open files to one for each part: with many workers and little memory the default is too low."""
    if sys.platform == "win32":  # this system has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number + OTHER_OPEN_FILES
    if now != resource.RLIM_INFINITY and now < wanted:
        allowed = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


@dataclass(frozen=True, slots=True)
class LocalParts:
    """Parts in a store, with kernels that run when asked for: at most ``workers`` at once, and as many results wait."""

    store: PartStore
    schemas: tuple[pa.Schema, ...]  # the schemas of what is in the store
    number: int
    workers: int
    scratch: Path | None
    kernels: tuple[tuple[PartKernel, pa.Schema], ...] = field(default=())

    @staticmethod
    def of(
        flows: Sequence[Flow],
        by: str,
        parts: int,
        workers: int,
        scratch: Path | None,
        read: Read | None = None,
    ) -> "LocalParts":
        """Exchange flows and return their parts."""
        store = PartStore(scratch)
        with store.drop_on_error():
            for i, flow in enumerate(flows):
                assert isinstance(flow, LocalFlow)
                store.fill(i, flow.run(read), flow.schema, by, parts)
        return LocalParts(store, tuple(flow.schema for flow in flows), parts, workers, scratch)

    def map(self, kernel: PartKernel, schema: pa.Schema) -> "LocalParts":
        """Return the parts with one more kernel on every part."""
        kernels = (*self.kernels, (kernel, schema))
        return LocalParts(self.store, self.schemas, self.number, self.workers, self.scratch, kernels)

    def tables(self, part: int) -> tuple[pa.Table, ...]:
        """Return one part after all kernels."""
        found = tuple(self.store.get(i, part, schema) for i, schema in enumerate(self.schemas))
        for kernel, schema in self.kernels:
            found = (kernel(part, *found).cast(schema),)
        return found

    def one(self, part: int) -> pa.Table:
        """Return the only table of one part."""
        (table,) = self.tables(part)
        return table

    def run(self, steps: Steps | None) -> Iterator[pa.Table]:
        """Yield every part in order."""
        found = map_in_order(self.one, range(self.number), self.workers, ahead=self.workers)
        for done, table in enumerate(found, 1):
            yield table
            if steps is not None:
                steps(done, self.number)

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
            for part, table in enumerate(self.run(steps)):
                if table.num_rows:
                    store.put(0, part, table)
        return LocalParts(store, (self.schema,), self.number, self.workers, self.scratch)

    def flow(self) -> LocalFlow:
        """Return the rows of all parts."""
        return LocalFlow(lambda: self.run(None), self.schema, self.workers)

    def gather(self, steps: Steps | None = None) -> pa.Table:
        """Return all rows in the order of the parts."""
        return pa.concat_tables([self.schema.empty_table(), *self.run(steps)])

    def write(
        self, folder: Path, name: str, steps: Steps | None = None, *, ascending: Sequence[str] = ()
    ) -> "pads.Dataset":
        """Write one Parquet file, complete or not at all."""
        path = path_in(folder, name, ".parquet")
        temporary = path_in(folder, name, ".parquet.part")
        try:
            with closing(ReleasedFile(temporary, self.schema, ascending)) as file:
                for table in self.run(steps):
                    file.add(table)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        return pads.dataset(path)

    def stream(self, folder: Path, name: str, steps: Steps | None = None) -> Iterator[pa.Table]:  # noqa: ARG002 — nothing is stored
        """Return the rows of one part after the other."""
        return self.run(steps)

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
        return LocalParts.of(flows, by, parts, self.workers, self.scratch, read)
