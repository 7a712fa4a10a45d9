"""The engine that runs on a cluster: Apache Spark reads, shuffles, stores and retries; the kernels are the local ones."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import pyarrow as pa
import pyarrow.dataset as pads

from stirred.engine.base import Flow, Steps
from stirred.engine.local import Local
from stirred.engine.spark_flow import SparkFlow, SparkParts, table_of
from stirred.engine.spark_session import own, require_pyspark, start
from stirred.engine.spark_watch import Watch

if TYPE_CHECKING:
    from stirred.census import Census

T = TypeVar("T")
R = TypeVar("R")
PART = 96_000_000  # bytes of a part: a task holds one part and its results in Python's memory


class Spark:
    """Runs kernels on Spark: in a session of the user's, or in one it starts at ``master`` and stops again.

    ``scratch`` is a folder that the executors share; tables that Spark cannot read itself are written there (default:
    the system's folder for temporary files, which is enough when all processes run on one machine). ``config`` adds
    settings to a session that is started. ``probe``, for tests, is called in the executor with the number of each part.

    The same key gives the same bytes as on this machine alone: kernels depend on nothing but their arguments, so a
    task that Spark runs again, or twice, returns the same.

    >>> Spark.name
    'spark'
    """

    name: ClassVar[str] = "spark"

    def __init__(
        self,
        session: Any = None,
        *,
        master: str | None = None,
        scratch: Path | str | None = None,
        config: Mapping[str, str] | None = None,
        probe: Callable[[int], object] | None = None,
    ) -> None:
        require_pyspark()
        self._started = session is None
        given = start(master, config or {}) if session is None else session
        try:
            self.session = own(given)
        except BaseException:
            if self._started:
                given.stop()
            raise
        self.context = self.session.sparkContext
        self.watch = Watch(self.context)
        self.workers = self.context.accumulator(set(), _union())
        self.probe = probe
        self.gathered_rows = 0
        self.kept_tables: dict[
            tuple[object, ...], tuple[SparkFlow, Census]
        ] = {}  # what was written to scratch
        self.scratch = Path(tempfile.mkdtemp(prefix="stirred-", dir=scratch))  # mode 0700
        self._clean = weakref.finalize(self, shutil.rmtree, self.scratch, ignore_errors=True)

    def __enter__(self) -> "Spark":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Remove what was written to scratch, and stop the session if it was started here."""
        self._clean()
        self.kept_tables.clear()
        if self._started:
            self.session.stop()

    def map(self, kernel: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Results in the order of the tasks; small jobs stay in this process."""
        return Local().map(kernel, tasks)

    def fits(self, size: int) -> bool:  # noqa: ARG002 — the protocol's
        """Return False: records stay on the cluster."""
        return False

    def parts_for(self, size: int) -> int:
        """As many as keep a task small and every core busy."""
        return max(-(-size // PART), int(self.context.defaultParallelism), 2)

    def exchange(self, *flows: Flow, by: str, parts: int) -> SparkParts:
        """Partitions of Spark, by one shuffle."""
        return SparkParts.of(self, flows, by, parts)

    def read(self, path: Path | str) -> "Census":
        """The census that a census.toml describes, counted on Spark; files may be addresses (``hdfs:``, ``s3a:``)."""
        from stirred.engine.spark_census import SparkCensus

        return SparkCensus.read(self, Path(path))

    def census(self, census: "Census") -> "Census":
        """The same census, counted on Spark."""
        from stirred.engine.spark_census import SparkCensus

        return SparkCensus.on(self, census)

    def records(self, census: "Census", record_type: str, columns: Sequence[str]) -> Flow:
        """A flow of records: Parquet is read by Spark, other formats are first written to scratch."""
        from stirred.engine.spark_records import records

        return records(self, census, record_type, columns)

    def released(self, data: pa.Table | pads.Dataset) -> Flow:
        """A flow of released records, read by Spark from their Parquet files or from copies in scratch."""
        from stirred.engine.spark_read import released

        return released(self, data)

    def gather(self, wired: Any, schema: pa.Schema, steps: Steps | None = None, total: int = 0) -> pa.Table:
        """Collect the rows of a data frame of messages in this process, and count them in ``gathered_rows``."""
        table = table_of(self.watch.run(wired.toArrow, steps, total), schema)
        self.gathered_rows += table.num_rows
        return table

    @property
    def seen(self) -> set[tuple[str, int]]:
        """Which processes have run part kernels: executor and number of the Python process."""
        found: set[tuple[str, int]] = self.workers.value
        return set(found)

    def shuffled(self) -> int:
        """How many bytes were written for shuffles so far."""
        return sum(self.watch.written.values())


def _union() -> Any:
    """An accumulator that joins sets of workers."""
    from pyspark import AccumulatorParam

    class Union(AccumulatorParam[set[object]]):
        def zero(self, value: set[object]) -> set[object]:  # noqa: ARG002 — Spark's
            return set()

        def addInPlace(self, one: set[object], other: set[object]) -> set[object]:  # noqa: N802 — Spark's
            return one | other

    return Union()
