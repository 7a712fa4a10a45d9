"""The engine that runs on a cluster: Apache Spark hands out tasks, shuffles and retries; the kernels are the local ones."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, TypeVar

import pyarrow as pa

from stirred._support import pads
from stirred.census import Census
from stirred.engine.base import FileDigest, Flow, Read, choose_large, digest_there, same_file
from stirred.engine.local import Local
from stirred.engine.spark.counting import SparkCensus
from stirred.engine.spark.flow import SparkParts
from stirred.engine.spark.reading import read_records, read_released
from stirred.engine.spark.session import Cluster

T = TypeVar("T")
R = TypeVar("R")


class Spark(Cluster):
    """Runs kernels on Spark: in a session of the user's, or in one it starts at ``master`` and stops again.

    ``scratch`` is a folder that the executors share; tables that Spark cannot read itself are written there (default:
    the system's folder for temporary files, which is enough when all processes run on one machine). ``config`` adds
    settings to a session that is started. A master that is not this machine needs ``spark.authenticate`` and an encrypted
    network; ``accept_open_network`` is the reason for which it is used without, and stands in the receipt. ``probe``, for
    tests, is called in the executor with the number of each part.

    The same key gives the same bytes as on this machine alone: kernels depend on nothing but their arguments, so a
    task that Spark runs again, or twice, returns the same.

    >>> Spark.name
    'spark'
    """

    name: ClassVar[str] = "spark"

    def __enter__(self) -> "Spark":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def map(self, kernel: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
        """Return results in the order of the tasks; small jobs stay in this process."""
        return Local().map(kernel, tasks)

    def digest_files(self, paths: Sequence[Path]) -> list[bytes]:
        """Return the SHA-256 of plain files in their order: large ones by a task each, if the executors see the same file.

        A file that an executor cannot open, or sees with another size or time, is read here.
        """
        found: dict[int, FileDigest | None] = {}
        large = choose_large(paths)
        if large:
            names = [str(paths[place].absolute()) for place in large]
            job = self.session.range(0, len(names), 1, len(names)).rdd.map(
                lambda row: digest_there(names[row[0]])
            )
            told: list[FileDigest | None] = self.watch.run(job.collect, step="digest files")
            found = dict(zip(large, told, strict=True))
        there = {
            place: one.sha256
            for place, one in found.items()
            if one is not None and same_file(paths[place], one)
        }
        near = [place for place in range(len(paths)) if place not in there]
        here = Local().digest_files([paths[place] for place in near])
        whole = there | dict(zip(near, here, strict=True))
        return [whole[place] for place in range(len(paths))]

    def fits(self, size: int) -> bool:  # noqa: ARG002 — the protocol's
        """Return False: records stay on the cluster."""
        return False

    def exchange(self, *flows: Flow, by: str, parts: int, read: Read | None = None) -> SparkParts:  # noqa: ARG002 — others read
        """Divide rows into partitions of Spark by one shuffle and return them."""
        return SparkParts.of(self, flows, by, parts)

    def read(self, path: Path | str) -> Census:
        """Return the census of a census.toml, counted on Spark; files may be addresses (``hdfs:``, ``s3a:``)."""
        return SparkCensus.read(self, Path(path))

    def census(self, census: Census) -> Census:
        """Return the same census, counted on Spark."""
        return SparkCensus.on(self, census)

    def records(self, census: Census, record_type: str, columns: Sequence[str]) -> Flow:
        """Return a flow of records: tasks read Parquet, other formats are first written to scratch."""
        return read_records(self, census, record_type, columns)

    def stream_released(self, data: "pa.Table | pads.Dataset") -> Flow:
        """Return a flow of released records, read by tasks from their Parquet files or from copies in scratch."""
        return read_released(self, data)
