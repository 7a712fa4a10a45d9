"""Flows and parts on one machine: batches are streamed, and parts are stored on disk until they are needed."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from stirred.arrow import pads
from stirred.engine.base import BatchKernel, Flow, PartKernel, Read, Steps
from stirred.engine.local.released import ReleasedFile
from stirred.engine.local.sealed import EncryptedWriter, SealedFiles
from stirred.engine.local.threads import map_in_order
from stirred.engine.scratch import ScratchFolder
from stirred.errors import InputError
from stirred.file_names import path_in

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
