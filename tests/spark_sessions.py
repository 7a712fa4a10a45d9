"""Spark for tests: one session at a time in a process, each kind started once, all that it writes in one folder.

A test says which kind it needs with ``@pytest.mark.spark("local")``: "own" (none runs; the test starts one itself),
"local" (two threads and their Python workers in one Java process) or "cluster" (two executors, each a Java process of
its own with its own Python workers, under a master). ``conftest.py`` brings the tests in that order into one process.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stirred.engine import Spark

KINDS = ("own", "local", "cluster")
MASTERS = {"local": "local[2]", "cluster": "local-cluster[2,1,1024]"}
# Java does not optimise what runs for seconds (half the time), nor verify the classes of Spark (a tenth)
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
EVENTS = 600_000  # milliseconds that the thread of events may need, beside whatever else runs
TESTS = Path(__file__).resolve().parent


class Sessions:
    """The one session that runs, and the folder of everything Spark writes: events, logs, scratch."""

    def __init__(self) -> None:
        self.kind = "own"
        self.session: Any = None
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """A home for Spark: its programs by reference, its output for real."""
        if self._folder is None:
            import pyspark

            self._folder = Path(tempfile.mkdtemp(prefix="stirred-tests-spark-"))
            for part in Path(pyspark.__file__).parent.iterdir():
                if part.name in {"bin", "jars", "sbin", "python"}:
                    (self._folder / part.name).symlink_to(part)
            for name in ("events", "local", "work", "scratch"):
                (self._folder / name).mkdir()
            os.environ["SPARK_HOME"] = str(self._folder)
            os.environ["SPARK_LOCAL_DIRS"] = str(self._folder / "local")
        return self._folder

    @property
    def config(self) -> dict[str, str]:
        """The settings of a session for tests; executors find the kernels of the tests."""
        return {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": f"file:{self.folder}/events",
            "spark.eventLog.compress": "false",
            "spark.local.dir": f"{self.folder}/local",
            "spark.sql.warehouse.dir": f"{self.folder}/warehouse",
            "spark.executorEnv.PYTHONPATH": str(TESTS),
            "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
            "spark.log.level": "ERROR",
            # each plan runs once, on few rows: Java is not written and compiled for it
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.driver.extraJavaOptions": QUICK,
            "spark.executor.extraJavaOptions": QUICK,
            # both executors are there from the start, and one that was killed is given up at once
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.shuffle.io.maxRetries": "1",
            "spark.shuffle.io.retryWait": "1s",
        }

    def use(self, kind: str) -> None:
        """Let a session of that kind run, and no other."""
        if kind == self.kind:
            return
        self.stop()
        self.kind = kind
        if kind != "own":
            from stirred.engine.spark.session import start_session

            self.session = start_session(MASTERS[kind], self.config)

    def settled(self) -> None:
        """Wait until a cluster has both of its executors, also after one was killed."""
        if self.kind != "cluster":
            return
        context = self.session.sparkContext._jsc.sc()
        for _ in range(6000):  # whoever is busy has the time to start them
            if context.getExecutorMemoryStatus().size() == 3:  # the driver is one of them
                return
            time.sleep(0.2)
        raise AssertionError("the cluster does not have two executors")

    def engine(self, probe: Callable[[int], object] | None = None) -> Spark:
        """An engine with counters of its own in the session that runs."""
        self.settled()
        return Spark(self.session, scratch=self.folder / "scratch", probe=probe)

    def written(self) -> list[Path]:
        """Every file that Spark wrote about its work: events, all of them, and the logs of executors."""
        # events are written by a thread of their own, which may be late on a busy machine
        self.session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(EVENTS)
        return [
            p for name in ("events", "work") for p in sorted((self.folder / name).rglob("*")) if p.is_file()
        ]

    def stop(self) -> None:
        """Stop what runs."""
        if self.session is not None:
            self.session.stop()
        self.session, self.kind = None, "own"

    def clean(self) -> None:
        """Stop what runs and remove what it wrote."""
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            for name in ("SPARK_HOME", "SPARK_LOCAL_DIRS"):
                os.environ.pop(name, None)
        self._folder = None


SESSIONS = Sessions()
