"""The picklable steps that Spark's tasks run, from the batches of a partition to messages.

An error inside a task is reported by its class and place and never by its text, because the text may show a value
and Spark writes it to its logs; errors of Stirred show no values and are sent unchanged.
"""

import json
import os
import socket
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from stirred.engine.base import BatchKernel, PartKernel
from stirred.engine.local.released import ReleasedFile
from stirred.engine.spark.wire import (
    divide_rows,
    make_mark,
    pack_messages,
    pack_wire,
    read_parts,
    unpack_tables,
)
from stirred.errors import StirredError

Batches = Iterable[pa.RecordBatch]
RUN_AGAIN_FIX = (
    "see the logs of the executors, then run the same command again: it goes on from what is finished"
)
ERROR_PREFIX = "stirred-error "


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
class ReadMessages:
    """Read messages that belong to no part."""

    schema: pa.Schema

    def __call__(self, batches: Batches) -> Iterator[pa.Table]:
        """The table of each message."""
        return unpack_tables(batches, self.schema)


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
        words = {"class": "ClusterError", "what": "a task on the cluster failed", "fix": RUN_AGAIN_FIX}
        words["why"] = type(error).__name__ + place
    return ERROR_PREFIX + json.dumps(words)
