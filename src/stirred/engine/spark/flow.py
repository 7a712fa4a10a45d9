"""Flows and parts on Spark, with one task for each partition and one shuffle for each exchange."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stirred._support import pads, path_in
from stirred.engine.base import BatchKernel, Flow, PartKernel, Steps
from stirred.engine.spark.faults import translate_errors
from stirred.engine.spark.session import Cluster
from stirred.engine.spark.tasks import (
    MARK_FLOW,
    WIRE_SPARK_SCHEMA,
    CacheTask,
    MapTask,
    PartTask,
    SendTask,
    ShuffleTask,
    TableSource,
    WriteTask,
    guard_task,
)
from stirred.errors import InputError

ROWS_PER_READ = 1 << 11  # read at a time


@dataclass(frozen=True, slots=True)
class SparkFlow:
    """The partitions of a data frame, through ``source`` and ``kernels``."""

    engine: Cluster
    frame: Any
    source: TableSource
    schema: pa.Schema
    kernels: tuple[BatchKernel, ...] = ()
    rows: int | None = None  # how many rows are read, where that is known without a job

    def map(self, kernel: BatchKernel, schema: pa.Schema) -> "SparkFlow":
        """Return the flow with one more kernel on every batch."""
        return replace(self, schema=schema, kernels=(*self.kernels, kernel))

    @property
    def tables(self) -> TableSource:
        """Return the step that a task runs on its batches."""
        return MapTask(self.source, self.kernels, self.schema)

    def gather(self) -> pa.Table:
        """Return all rows, in the order of Spark's partitions."""
        return self.engine.gather(
            self._send(), self.schema, step=describe_step("gather", self.kernels or (self.source,))
        )

    def stream(self) -> Iterator[pa.Table]:
        """Yield the rows message by message; they are never held all at once."""
        with translate_errors():
            for row in self._send().toLocalIterator():
                batch = pa.ipc.read_record_batch(pa.py_buffer(row["message"]), self.schema)
                self.engine.count_gathered(batch)
                yield pa.Table.from_batches([batch])

    def _send(self) -> Any:
        return self.frame.mapInArrow(guard_task(SendTask(self.tables)), WIRE_SPARK_SCHEMA)


@dataclass(frozen=True, slots=True)
class SparkParts:
    """Messages in partitions by part number, with kernels that run when rows are asked for."""

    engine: Cluster
    frame: Any
    schemas: tuple[pa.Schema, ...]
    number: int
    kernels: tuple[tuple[PartKernel, pa.Schema], ...] = field(default=())
    held: bool = False

    @staticmethod
    def of(engine: Cluster, flows: Sequence[Flow], by: str, parts: int) -> "SparkParts":
        """Exchange flows in one shuffle and return their parts."""
        from pyspark.sql import functions as sf

        session = engine.session
        numbers = sf.col("id").cast("int"), sf.lit(MARK_FLOW), sf.lit(None).cast("binary")
        wired = session.range(0, parts, 1, 1).select(
            numbers[0].alias("part"), numbers[1].alias("flow"), numbers[2].alias("message")
        )
        for i, flow in enumerate(flows):
            if not isinstance(flow, SparkFlow):
                raise InputError(
                    "this flow is not Spark's",
                    why="flows of two engines cannot be exchanged together",
                    fix="make every flow of an exchange with one engine",
                )
            task = ShuffleTask(flow.tables, by, parts, i)
            wired = wired.union(flow.frame.mapInArrow(guard_task(task), WIRE_SPARK_SCHEMA))
        return SparkParts(
            engine, wired.repartitionById(parts, sf.col("part")), tuple(f.schema for f in flows), parts
        )

    def map(self, kernel: PartKernel, schema: pa.Schema) -> "SparkParts":
        """Return the parts with one more kernel on every part."""
        kernels = (*self.kernels, (kernel, schema))
        return SparkParts(self.engine, self.frame, self.schemas, self.number, kernels, self.held)

    @property
    def part_task(self) -> PartTask:
        """Return the step that a task runs on its parts."""
        return PartTask(self.schemas, self.kernels, self.engine.probe, self.engine.workers)

    @property
    def schemas_after(self) -> tuple[pa.Schema, ...]:
        """Return the columns of each table of a part after all kernels."""
        return (self.kernels[-1][1],) if self.kernels else self.schemas

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the only table of a part."""
        (schema,) = self.schemas_after
        return schema

    def keep(self, steps: Steps | None = None) -> "SparkParts":
        """Keep the parts on the disks of the executors; a lost part is computed again.

        Parts that are not kept are shuffled again whenever their rows are asked for.
        """
        from pyspark import StorageLevel

        if self.held and not self.kernels:
            return self
        frame = self.frame.mapInArrow(guard_task(CacheTask(self.part_task)), WIRE_SPARK_SCHEMA)
        frame.persist(StorageLevel.DISK_ONLY)
        step = describe_step("keep", [kernel for kernel, _ in self.kernels])
        self.engine.watch.run(frame.count, steps, self.number, step=step)
        return SparkParts(self.engine, frame, self.schemas_after, self.number, held=True)

    def flow(self) -> SparkFlow:
        """Return the rows of all parts."""
        return SparkFlow(self.engine, self.frame, self.part_task, self.schema)

    def gather(self, steps: Steps | None = None) -> pa.Table:
        """Return all rows in the order of the parts."""
        held = self.frame.mapInArrow(guard_task(CacheTask(self.part_task)), WIRE_SPARK_SCHEMA)
        step = describe_step("gather", [kernel for kernel, _ in self.kernels])
        return self.engine.gather(held, self.schema, steps, self.number, step=step)

    def write(
        self, folder: Path, name: str, steps: Steps | None = None, *, ascending: Sequence[str] = ()
    ) -> "pads.Dataset":
        """Write a folder of Parquet files in the order of the parts, complete or not at all.

        The executors write the files, as the local engine would write them, so they must share ``folder``.
        """
        path, temporary = path_in(folder, name, ".parquet"), path_in(folder, name, ".parquet.part")
        whole = path_in(folder, name, ".parquet.whole")
        for begun in (temporary, whole):
            shutil.rmtree(begun, ignore_errors=True)
            begun.mkdir(parents=True)
        try:
            task = WriteTask(
                self.part_task, str(temporary.resolve()), len(str(self.number)), tuple(ascending)
            )
            marks = self.frame.mapInArrow(guard_task(task), WIRE_SPARK_SCHEMA).select("part", "flow")
            step = describe_step("write", [kernel for kernel, _ in self.kernels])
            sent = self.engine.watch.run(marks.toArrow, steps, self.number, step=step)
            self.engine.count_gathered(sent)
            with_rows = sent.column("flow")
            files = sorted(temporary.glob("part-*.parquet"))
            if len(files) != (pc.sum(with_rows).as_py() or 0):
                raise InputError(
                    "the executors wrote their files where this process cannot see them",
                    why="the output folder is not shared between the machines of the cluster",
                    fix="write to a folder that all machines share",
                )
            if not files:
                pq.write_table(self.schema.empty_table(), temporary / "part-0.parquet")
            # a second attempt of a task may still be writing: what it writes stays in the temporary folder
            for file in temporary.glob("part-*.parquet"):
                file.rename(whole / file.name)
            _remove_path(path)
            whole.rename(path)
        finally:
            shutil.rmtree(whole, ignore_errors=True)
            shutil.rmtree(temporary, ignore_errors=True)
        return pads.dataset(sorted(str(file) for file in path.glob("*.parquet")), schema=self.schema)

    def stream(self, folder: Path, name: str, steps: Steps | None = None) -> Iterator[pa.Table]:
        """Yield the rows part by part, from files that the executors write and that are deleted at the end."""
        data = self.write(folder, name, steps)
        try:
            # Rows may hold long lists, so they are not read ahead.
            for batch in data.to_batches(batch_size=ROWS_PER_READ, batch_readahead=1, fragment_readahead=1):
                yield pa.Table.from_batches([batch])
        finally:
            _remove_path(path_in(folder, name, ".parquet"))

    def drop(self) -> None:
        """Delete the parts from the disks of the executors."""
        if self.held:
            self.frame.unpersist(blocking=True)


def describe_step(action: str, kernels: Sequence[object]) -> str:
    """Name what a job does by the code that it runs, from the last kernel back; no value stands in it.

    >>> describe_step("gather", [len])
    'gather len'
    """
    names = [getattr(kernel, "__name__", type(kernel).__name__) for kernel in kernels]
    return " ".join([action, " of ".join(reversed(names))]).strip()


def _remove_path(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
