"""A Spark session with what a run keeps beside it: scratch files, progress, and the workers that took part."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from stirred.engine.base import Steps
from stirred.engine.scratch import ScratchFolder
from stirred.engine.spark.session import adapt_session, require_pyspark, start_session
from stirred.engine.spark.watch import ActionWatch
from stirred.engine.spark.wire import join_messages

PART_BYTES = 96_000_000  # bytes of a part: a task holds one part and its results in Python's memory


class Cluster:
    """A session of the user's, or one that is started at ``master`` and stopped again."""

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
        folder = ScratchFolder(scratch)  # before a session: without the folder none is started
        self._started = session is None
        given = start_session(master, config or {}) if session is None else session
        try:
            self.session = adapt_session(given)
        except BaseException:
            if self._started:
                given.stop()
            raise
        self.context = self.session.sparkContext
        self.watch = ActionWatch(self.context)
        self.workers = self.context.accumulator(set(), _make_accumulator())
        self.probe = probe
        self.gathered_rows = 0
        self.kept_tables: dict[tuple[object, ...], Any] = {}  # flows over what was written to scratch
        self.scratch, self._clean = folder.path, folder.remove
        self._folder = folder  # holds the lock

    def stop(self) -> None:
        """Remove what was written to scratch, and stop the session if it was started here."""
        self._clean()
        self.kept_tables.clear()
        if self._started:
            from py4j.protocol import Py4JError

            with suppress(Py4JError, OSError):  # its process may have ended before, by the same signal
                self.session.stop()

    def parts_for(self, size: int) -> int:
        """Return the number of parts that keeps a task small and every core busy."""
        return max(-(-size // PART_BYTES), int(self.context.defaultParallelism), 2)

    def gather(self, wired: Any, schema: pa.Schema, steps: Steps | None = None, total: int = 0) -> pa.Table:
        """Collect the rows of a data frame of messages in this process, and count them in ``gathered_rows``."""
        table = join_messages(self.watch.run(wired.toArrow, steps, total), schema)
        self.gathered_rows += table.num_rows
        return table

    @property
    def worker_processes(self) -> set[tuple[str, int]]:
        """Return which processes have run part kernels: executor and number of the Python process."""
        found: set[tuple[str, int]] = self.workers.value
        return set(found)

    def count_shuffled_bytes(self) -> int:
        """Return how many bytes were written for shuffles so far."""
        return sum(self.watch.written.values())


def _make_accumulator() -> Any:
    """Return an accumulator that joins sets of workers."""
    from pyspark import AccumulatorParam

    class Union(AccumulatorParam[set[object]]):
        def zero(self, value: set[object]) -> set[object]:  # noqa: ARG002 — Spark's
            return set()

        def addInPlace(self, one: set[object], other: set[object]) -> set[object]:  # noqa: N802 — Spark's
            return one | other

    return Union()
