"""The engine that runs on this machine: threads over kernels that release the interpreter lock, and parts on disk."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

import pyarrow as pa

from stirred.arrow import pads
from stirred.census import Census, read
from stirred.engine.base import Flow, Read
from stirred.engine.local.flow import LocalFlow, LocalParts
from stirred.engine.local.memory import LIBRARY_BYTES, free_bytes, parse_bound
from stirred.engine.plain import ROWS_PER_BATCH, plain_schema, stream_tables, to_plain

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
