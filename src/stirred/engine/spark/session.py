"""Start or adapt a Spark session with the settings that Stirred needs, or explain what is missing.

SQL settings are changed in a session of our own; the user's session is not changed.
"""

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stirred.children import ask_program
from stirred.engine.plain import ROWS_PER_BATCH
from stirred.errors import InputError, MissingExtraError, StirredError

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
    from pyspark import SparkContext
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
    session = builder.getOrCreate()
    _silence_server(session.sparkContext._accumulatorServer)
    return session


def _silence_server(server: Any) -> None:
    """Let pyspark's server of accumulators end without a traceback when Java ends before Python."""
    loud = server.handle_error

    def handled(request: object, address: object) -> None:
        if not isinstance(sys.exception(), EOFError | OSError):
            loud(request, address)

    server.handle_error = handled


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
