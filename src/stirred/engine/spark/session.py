"""Start or adapt a Spark session, refuse a network that anybody could read, run actions, and report progress and retries."""

import logging
import os
import re
import shutil
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from stirred.child_processes import ask_program
from stirred.engine.base import Progress, Steps
from stirred.engine.scratch import ScratchFolder
from stirred.engine.spark.faults import (
    MAX_FAILED_STARTS,
    make_settings_error,
    make_start_error,
    require_same_versions,
    translate_errors,
)
from stirred.engine.spark.tasks import join_messages
from stirred.engine.tables import ROWS_PER_BATCH
from stirred.errors import InputError, MissingExtraError, PrivacyError, StirredError

AUTHENTICATE = "spark.authenticate"
ENCRYPTIONS = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
ACCEPT_FLAG = "--accept-open-network"


def list_open_settings(config: Mapping[str, str]) -> list[str]:
    """Return what a cluster lacks for records and derived keys to travel unread; nothing for one machine.

    >>> list_open_settings({"spark.master": "local[2]"})
    []
    >>> list_open_settings({"spark.master": "yarn", "spark.authenticate": "true"})
    ['spark.network.crypto.enabled']
    """
    if config.get("spark.master", "").startswith("local"):  # the processes of one machine
        return []
    on = {name for name in (AUTHENTICATE, *ENCRYPTIONS) if config.get(name, "").strip().lower() == "true"}
    lacking = [] if AUTHENTICATE in on else [AUTHENTICATE]
    return lacking if on & set(ENCRYPTIONS) else [*lacking, ENCRYPTIONS[0]]


def require_closed_network(config: Mapping[str, str], accepted: str = "") -> str:
    """Return the reason for which an open network is accepted, or nothing where the network is closed.

    An open network without a reason is refused: tasks carry the derived key of the run, shuffles carry records.
    """
    lacking = list_open_settings(config)
    if not lacking:
        return ""
    if accepted:
        return require_reason(accepted)
    raise PrivacyError(
        "the network of this cluster is open",
        why=f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not true: whoever reads it, or connects to it, "
        "gets the records and the key of this run",
        fix=f"set {' and '.join(lacking)} to true in spark-defaults.conf (a standalone cluster also needs "
        f'spark.authenticate.secret there), or state why the network is closed otherwise: {ACCEPT_FLAG} "REASON"',
    )


def require_reason(text: str) -> str:
    """Return a reason in one line; refuse one that says nothing."""
    words = " ".join(text.split())
    if sum(letter.isalpha() for letter in words) < 8 or not words.isprintable():  # "ok", "yes", "..."
        raise InputError(
            "the reason for an open network says nothing",
            why="it stands in receipt.json, where readers of the packet find it",
            fix=f'{ACCEPT_FLAG} "the cluster has a network of its own, without other users"',
        )
    return words


# Start or adapt a Spark session with the settings that Stirred needs, or explain what is missing.
#
# SQL settings are changed in a session of our own; the user's session is not changed.

MIN_JAVA_VERSION = 17
MIN_SPARK_VERSION = (4, 1)  # the first Spark in which a row can name its partition
INSTALL_SPARK_COMMAND = "pip install 'stirred[spark]'"
INSTALL_JAVA_COMMAND = (
    "apt-get install openjdk-17-jre-headless   (Debian), or: brew install openjdk@17   (macOS)"
)

SESSION_SETTINGS = {
    # partitions are parts: Spark may not join, split or skip them
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PropagateEmptyRelation",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_BATCH),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(1 << 26),
    # a damaged or missing file is an error
    "spark.sql.caseSensitive": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.session.timeZone": "UTC",
}


def adapt_session(session: Any) -> Any:
    """Return a new session on the same context with our settings; the given session is not changed."""
    if not hasattr(session, "_jsparkSession"):
        raise InputError(
            "this is not a classic Spark session",
            why="Spark Connect gives no access to shuffles, retries and progress",
            fix='use a session of SparkSession.builder, or Spark(master="spark://…")',
        )
    version = tuple(int(number) for number in re.findall(r"\d+", session.version)[:2])
    if version < MIN_SPARK_VERSION:
        raise StirredError(
            f"Spark {session.version} is too old",
            why="rows cannot name their partition before Spark 4.1",
            fix="use Spark 4.1 or newer on the cluster, and " + INSTALL_SPARK_COMMAND,
        )
    beside = session.newSession()
    for name, value in SESSION_SETTINGS.items():
        beside.conf.set(name, value)
    return beside


def start_session(master: str | None, config: Mapping[str, str]) -> Any:
    """Return a new session; it is an error if one runs in this process already."""
    require_pyspark()
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise InputError(
            "a Spark session runs in this process already",
            why="a process can have only one, and its settings cannot be changed",
            fix="give that session to the engine, Spark(session), or stop it first",
        )
    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("stirred")
    for name, value in {**default_settings(master), **config}.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        raise make_settings_error(str(error)) from None
    _silence_server(session.sparkContext._accumulatorServer)
    silence_gateway()
    return session


def _silence_server(server: Any) -> None:
    """Let pyspark's server of accumulators end without a traceback when Java ends before Python."""
    loud = server.handle_error

    def handle_error(request: object, address: object) -> None:
        if not isinstance(sys.exception(), EOFError | OSError):
            loud(request, address)

    server.handle_error = handle_error


def silence_gateway() -> None:
    """Drop the tracebacks that py4j logs by itself, to the root logger, when Java ends before Python.

    A signal that ends a process group ends both, in any order. The error is raised too, and gets its own message.
    """
    root = logging.getLogger()
    if _is_not_of_gateway not in root.filters:
        root.addFilter(_is_not_of_gateway)


def _is_not_of_gateway(record: logging.LogRecord) -> bool:
    return not (record.exc_info and "py4j" in Path(record.pathname).parts)


def default_settings(master: str | None) -> dict[str, str]:
    """Return the settings of a session that we start.

    >>> default_settings("spark://head:7077")["spark.ui.enabled"]
    'false'
    """
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # what Spark writes to disk between tasks holds records
        "spark.io.encryption.enabled": "true",
    }
    # kernels cost more than moving rows: no executor waits for the one that stores most of them
    chosen["spark.shuffle.reduceLocality.enabled"] = "false"
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "POLARS_MAX"):
        # one thread in a kernel: Spark runs one task for each core
        name = f"{library}_THREADS" if library == "POLARS_MAX" else f"{library}_NUM_THREADS"
        chosen[f"spark.executorEnv.{name}"] = "1"
    # the Python of a task is started with -m, in whatever folder its executor has
    chosen["spark.executorEnv.PYTHONSAFEPATH"] = "1"
    if master is None and not {"PYSPARK_GATEWAY_PORT", "SPARK_CONF_DIR"} & os.environ.keys():
        master = "local[*]"  # neither spark-submit nor a configuration names a master
    if master is not None:
        chosen["spark.master"] = master
        if master.startswith("local"):
            chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    return chosen


def require_pyspark() -> None:
    """Raise an error with the install command if pyspark, or a package it needs, is missing."""
    try:
        import pandas  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(
            f"the Spark engine needs {error.name or 'pyspark'}, which is not installed",
            why="Spark is an optional part of Stirred",
            fix=INSTALL_SPARK_COMMAND,
        ) from None


def require_java() -> None:
    """Raise an error with the install command if Java is missing or too old."""
    java = find_java()
    if java is None:
        raise MissingExtraError(
            f"the Spark engine needs Java {MIN_JAVA_VERSION} or newer and none was found",
            why="there is no java in JAVA_HOME or PATH",
            fix=INSTALL_JAVA_COMMAND,
        )
    version = read_java_version(java)
    if version < MIN_JAVA_VERSION:
        raise MissingExtraError(
            f"the Spark engine needs Java {MIN_JAVA_VERSION} or newer; the one found is "
            + (f"Java {version}" if version else "broken"),
            why="it is the first in JAVA_HOME or PATH",
            fix=INSTALL_JAVA_COMMAND + "; then set JAVA_HOME to it",
        )


def find_java() -> str | None:
    """Return the Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    if home:
        inside = Path(home) / "bin" / "java"
        return str(inside) if inside.exists() else None
    return shutil.which("java")


def read_java_version(java: str) -> int:
    """Return the version of a Java, 0 if it is unknown."""
    # the limit is for a Java that hangs, not for a busy machine
    return parse_java_version(ask_program([str(Path(java).absolute()), "-version"], seconds=300))


def parse_java_version(words: str) -> int:
    """Find the version in the output of ``java -version``.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15'), parse_java_version('java version "1.8.0_402"')
    (17, 8)
    """
    found = re.search(r'version "(?:1\.)?(\d+)', words)
    return int(found[1]) if found else 0


# Run an action on Spark: report its progress, count its retries and shuffled bytes, and translate its errors.

T = TypeVar("T")
LOG = logging.getLogger("stirred.engine")
JOB_DESCRIPTION = "spark.job.description"
PAUSE_SECONDS = 0.2  # seconds between two checks of the progress
TELL_AFTER_SECONDS = (
    3.0  # from which on an action without steps of its own is told, so that no long one is silent
)
CLUSTER_STEP, TOLD_PARTS = "cluster", 100
WAITING_SECONDS = 30.0  # seconds between two words about a cluster that has run no task
SETTLE_MILLISECONDS = 10_000  # milliseconds to wait for the last events of an action


class ActionWatch:
    """Runs actions on a Spark context and counts shuffled bytes and retries."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.written: dict[tuple[int, int], int] = {}  # shuffle bytes by stage and attempt
        self.retried = 0
        self.work = ""  # what Spark's own pages name: a mechanism, or a part of the packet
        self.progress: Progress | None = None  # told of long actions that have no steps of their own

    def run(
        self, action: Callable[[], T], steps: Steps | None = None, total: int = 0, *, step: str = ""
    ) -> T:
        """Run the action; ``steps`` is called with the finished parts and ``total``, and may stop it by raising.

        ``step`` is what Spark's own pages and its log of events say of the jobs; it names code, never a value.
        """
        from py4j.protocol import Py4JError

        tag = f"stirred-{uuid.uuid4().hex}"
        with translate_errors():
            try:
                if steps is None and self.progress is None:
                    return self._run_tagged(action, tag, step)
                told, number = (self._tell_late(), TOLD_PARTS) if steps is None else (steps, total)
                watch = self._watch_steps(tag, told, number)
                result = self._run_watched(lambda: self._run_tagged(action, tag, step), tag, watch)
                told(number, number)
                return result
            finally:
                # Spark deletes information on old stages, which are not counted; or its process has ended
                with suppress(Py4JError, OSError):
                    self._count_retries(tag)

    def run_first(self, action: Callable[[], T]) -> T:
        """Run the first action of a context, and tell what it waits for while no executor runs a task.

        It is an error where executors only start and end.
        """
        began, told = time.monotonic(), 0.0

        def watch() -> None:
            nonlocal told
            waited = time.monotonic() - began
            running, ended = self.count_executors()
            if ended >= MAX_FAILED_STARTS:
                raise make_start_error(ended)
            if waited - told >= WAITING_SECONDS:
                told = waited
                LOG.warning(
                    "waiting for the cluster, which has run no task for %d seconds (executors: %d run, %d ended): "
                    "it is busy, or no worker has the memory and the cores that are asked for an executor "
                    "(spark.executor.memory, spark.executor.cores), or executors end as they start, or do not reach this "
                    "machine: see their logs",
                    waited,
                    running,
                    ended,
                )

        tag = f"stirred-{uuid.uuid4().hex}"
        with translate_errors():
            return self._run_watched(lambda: self._run_tagged(action, tag, "compare versions"), tag, watch)

    def count_executors(self) -> tuple[int, int]:
        """Return how many executors run and how many have ended; the driver is none."""
        listed = self.context._jsc.sc().statusStore().executorList(False)
        each = [listed.apply(i) for i in range(listed.size())]
        active = [bool(one.isActive()) for one in each if one.id() != "driver"]
        return sum(active), len(active) - sum(active)

    def _tell_late(self) -> Steps:
        """Return steps that are told only when an action takes long."""
        began, said = time.monotonic(), list[int]()

        def tell(done: int, total: int) -> None:
            late = time.monotonic() - began >= TELL_AFTER_SECONDS and done < total
            if self.progress is not None and (late or said):
                said.append(done)
                self.progress(CLUSTER_STEP, done, total)

        return tell

    def _run_tagged(self, action: Callable[[], T], tag: str, step: str) -> T:
        from py4j.protocol import Py4JError

        self.context.addJobTag(tag)
        before = self.context.getLocalProperty(JOB_DESCRIPTION)
        self.context.setJobDescription(": ".join(filter(None, ("stirred", self.work, step))))
        try:
            return action()
        finally:
            with suppress(Py4JError, OSError):  # what stopped the action is told, not what came of it
                self.context.removeJobTag(tag)
                self.context.setLocalProperty(JOB_DESCRIPTION, before)

    def _watch_steps(self, tag: str, steps: Steps, total: int) -> Callable[[], None]:
        """Return what calls ``steps`` whenever more parts are finished than before."""
        last = -1

        def watch() -> None:
            nonlocal last
            done = min(self._count_done(tag, total), total - 1)
            if done > last:
                steps(done, total)
                last = done

        return watch

    def _run_watched(self, action: Callable[[], T], tag: str, watch: Callable[[], None]) -> T:
        """Run the action in a thread, and ``watch`` beside it, again and again; what that raises ends the action."""
        from py4j.protocol import Py4JError
        from pyspark import InheritableThread

        results: list[T] = []
        raised: list[BaseException] = []

        class ActionThread(InheritableThread):
            def run(self) -> None:
                try:
                    super().run()  # which asks Java too, before the action does
                except BaseException as error:
                    raised.append(error)

        thread = ActionThread(target=lambda: results.append(action()), daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(PAUSE_SECONDS)
                if thread.is_alive():
                    watch()
        except BaseException:
            with suppress(Py4JError, OSError):  # a signal may have ended Spark's process too
                while thread.is_alive():  # a job may be about to start
                    self.context.cancelJobsWithTag(tag)
                    thread.join(PAUSE_SECONDS)
            raise
        if raised:
            raise raised[0]
        return results[0]

    def _count_done(self, tag: str, total: int) -> int:
        spark = self.context._jsc.sc()
        tasks = finished = 0
        for job in spark.statusTracker().getJobIdsForTag(tag):
            data = spark.statusStore().job(job)
            tasks += data.numTasks()
            finished += data.numCompletedTasks() + data.numSkippedTasks()
        return total * finished // tasks if tasks else 0

    def _count_retries(self, tag: str) -> None:
        spark = self.context._jsc.sc()
        if spark.isStopped():
            return
        spark.listenerBus().waitUntilEmpty(SETTLE_MILLISECONDS)
        store = spark.statusStore()
        failed = 0
        for job in spark.statusTracker().getJobIdsForTag(tag):
            stages = store.job(job).stageIds()
            for stage in [stages.apply(i) for i in range(stages.size())]:
                for data in self._list_attempts(store, stage):
                    place = (stage, data.attemptId())
                    if place not in self.written:
                        self.written[place] = data.shuffleWriteBytes()
                        failed += data.numFailedTasks() + data.numKilledTasks()
        if failed:
            self.retried += failed
            LOG.info(
                "Spark ran %d tasks again after they failed or were lost; their output is the same", failed
            )

    def _list_attempts(self, store: Any, stage: int) -> Iterator[Any]:
        """Yield every attempt of a stage; Spark starts another one when an executor is lost with its shuffled data."""
        last = store.lastStageAttempt(stage)
        empty, none = self.context._jvm.java.util.ArrayList(), self._no_quantiles()
        for attempt in range(last.attemptId()):
            yield store.stageAttempt(stage, attempt, False, empty, False, none)._1()
        yield last

    def _no_quantiles(self) -> Any:
        return self.context._gateway.new_array(self.context._jvm.double, 0)


# A Spark session with what a run keeps beside it: scratch files, progress, and the workers that took part.

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
        accept_open_network: str = "",
        probe: Callable[[int], object] | None = None,
    ) -> None:
        require_pyspark()
        folder = ScratchFolder(scratch)  # before a session: without the folder none is started
        self._started = session is None
        given = start_session(master, config or {}) if session is None else session
        try:
            self.session = adapt_session(given)
            context = self.session.sparkContext
            # the reason for which the network is open; nothing where it is closed
            self.open_network = require_closed_network(dict(context.getConf().getAll()), accept_open_network)
            self.watch = ActionWatch(context)
            require_same_versions(self.session, self.watch.run_first)
        except BaseException:
            if self._started:
                given.stop()
            raise
        self.context = self.session.sparkContext
        self.workers = self.context.accumulator(set(), _make_accumulator())
        self.probe = probe
        self.gathered_rows = self.gathered_bytes = 0
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

    def name_work(self, work: str, progress: Progress | None = None) -> None:
        """Say what the next jobs are for (the name of a mechanism, never a value), and who is told of long ones."""
        self.watch.work, self.watch.progress = work, progress

    def gather(
        self, wired: Any, schema: pa.Schema, steps: Steps | None = None, total: int = 0, *, step: str = ""
    ) -> pa.Table:
        """Collect the rows of a data frame of messages in this process, and count them and their bytes."""
        table = join_messages(self.watch.run(wired.toArrow, steps, total, step=step), schema)
        self.count_gathered(table)
        return table

    def count_gathered(self, table: pa.Table | pa.RecordBatch) -> None:
        """Count rows that this process was sent, and the bytes of their values, lists included."""
        self.gathered_rows += table.num_rows
        self.gathered_bytes += table.nbytes

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
