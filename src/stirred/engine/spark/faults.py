"""Say what failed on a cluster and what to do: versions that differ, missing packages, memory, lost executors."""

import json
import platform
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from stirred import errors
from stirred.engine.spark.tasks import ERROR_PREFIX, RUN_AGAIN_FIX, TASK_FAILED
from stirred.errors import ClusterError, InputError, StirredError

# Translate errors of Spark. What Java says is searched and never shown: it may repeat what a task read.

MEMORY_FIX = (
    "give each executor more memory beside Java's (spark.executor.memoryOverhead) or fewer cores, then run the same command "
    "again: it goes on from what is finished"
)
JAVA_MEMORY_FIX = (
    "give Java of each executor more memory (spark.executor.memory) or fewer cores, then run the same command "
    "again: it goes on from what is finished"
)
INSTALL_FIX = (
    "install the same stirred[spark] on the driver and on every executor (PYSPARK_PYTHON names their Python)"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What Spark's words tell: a pattern, and the error in our words; ``{0}`` is the pattern's first group."""

    pattern: str
    what: str
    why: str
    fix: str = RUN_AGAIN_FIX


EXIT = r"[Ee]xit(?:ed with)? (?:code|status)(?::| is)?"  # how Spark, YARN and Kubernetes begin: exit code 137

# the first that is found counts: an executor that is lost for want of memory is told as such
FAULTS = (
    Fault(
        r"spark\.driver\.maxResultSize",
        "the results of a step are too large for the driver",
        "they exceed spark.driver.maxResultSize",
        "set spark.driver.maxResultSize higher, such as 4g (and spark.driver.memory above it), then run the same command "
        "again: it goes on from what is finished",
    ),
    Fault(
        r"PYTHON_VERSION_MISMATCH\D*(\d+\.\d+)",
        "driver and executors run different versions of Python",
        "an executor has Python {0}",
        INSTALL_FIX,
    ),
    Fault(
        r"(?:ModuleNotFoundError: No module named|ImportError: cannot import name) '([\w.]+)'",
        "a Python package is missing on an executor",
        "{0} cannot be imported there",
        INSTALL_FIX,
    ),
    Fault(
        r"\b(?:ImportError|ModuleNotFoundError)\b",
        "a Python package cannot be loaded on an executor",
        "a library is missing there, or there is too little memory to load it (spark.executor.pyspark.memory)",
        INSTALL_FIX + "; leave spark.executor.pyspark.memory unset",
    ),
    Fault(
        r'Cannot run program "[^"\n]*python',
        "an executor has no Python where Spark looks for it",
        "PYSPARK_PYTHON, or spark.pyspark.python, names a program that is not there",
        "set spark.pyspark.python to a Python that every machine has under the same path",
    ),
    Fault(
        rf"OutOf(?:Direct)?Memory(?:Error|Exception)|{EXIT} 52\b",
        "an executor ran out of memory",
        "its Java found no memory left",
        JAVA_MEMORY_FIX,
    ),
    Fault(
        r"MemoryError|exceeding (?:physical |virtual )?memory limits|OOMKilled|Cannot allocate memory",
        "an executor ran out of memory",
        "its Python, or Java and Python together, found no memory left",
        MEMORY_FIX,
    ),
    Fault(
        rf"{EXIT} (137|143)\b",
        "executors were killed more often than Spark tries again",
        "exit code {0}: the system or the manager of the cluster stopped them, mostly for want of memory",
        MEMORY_FIX,
    ),
    Fault(
        r"Python worker exited unexpectedly",
        "a Python process of an executor ended in the middle of its work",
        "mostly the system stopped it for want of memory",
        MEMORY_FIX,
    ),
    Fault(
        r"No space left on device",
        "a disk of the cluster is full",
        "an executor, or the driver, could not write what it keeps between tasks",
        "free room where spark.local.dir and --scratch are, then run the same command again",
    ),
    Fault(
        r"AccessDeniedException|Permission denied",
        "a program of the cluster may not read or write a file",
        "the executors run as another user than the driver, who alone may read what lies in scratch",
        "let driver and executors run as the same user",
    ),
    Fault(
        r"ExecutorLostFailure|[Ee]xecutor \S+ (?:was )?lost|[Ww]orker lost|FetchFailed|Stage cancelled because"
        r"|max(?:imum)? number of executor failures",
        "the cluster lost its executors more often than Spark tries again",
        "machines or their executors ended in the middle of the work",
        RUN_AGAIN_FIX,
    ),
    Fault(
        r"All masters are unresponsive|Master removed our application|Could not parse Master URL",
        "the cluster's master does not answer, or ended this application",
        "it is not at the address of --master, or it lost all of its workers",
        "see that the master and its workers run, then run the same command again",
    ),
    Fault(
        r"SparkContext was shut down|stopped SparkContext|Answer from Java side is empty|Connection refused"
        r"|Error while sending or receiving",
        "Spark's own process on the driver ended",
        "it was stopped, or found no memory left (spark.driver.memory)",
        "give the driver more memory, then run the same command again: it goes on from what is finished",
    ),
)


MAX_FAILED_STARTS = 10  # executors that may end before any of them has run a task


def make_start_error(ended: int) -> ClusterError:
    """Return the error for a cluster whose executors end before they run a task.

    >>> make_start_error(10).what
    'the executors of this cluster end as soon as they start'
    """
    return ClusterError(
        "the executors of this cluster end as soon as they start",
        why=f"{ended} of them ended, and none has run a task: they have too little memory (spark.executor.memory), or an "
        "option or a secret that they cannot use",
        fix="see the logs of the executors, correct the settings of the cluster, then run the same command again",
    )


def make_settings_error(told: str) -> StirredError:
    """Return the error for a Spark that did not start; of its words only the names of settings are shown.

    >>> print(make_settings_error("java.lang.IllegalArgumentException: too little: spark.executor.memory").why)
    Java refuses spark.executor.memory
    """
    named = sorted(set(re.findall(r"(?<![\w.])spark\.[a-z]\w*(?:\.\w+)+", told)))
    return find_fault(told) or InputError(
        "Spark did not start with these settings",
        why=f"Java refuses {' and '.join(named)}"
        if named
        else "Java refuses one of them, or has no memory or port for it",
        fix="correct the settings (spark-defaults.conf, --conf), then run the same command again",
    )


UNKNOWN_FAULTS = ("Spark stopped the job", TASK_FAILED)  # the cluster works, and a step of ours may not


@contextmanager
def translate_errors() -> Iterator[None]:
    """Translate an error of Spark inside the block to one of Stirred, which shows no value."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise translate_error(error) from None


def translate_error(error: BaseException) -> StirredError:
    """Translate an error of Spark: one of Stirred is restored as it was raised in a task, known faults get their fix.

    >>> print(translate_error(ValueError('x RuntimeError: stirred-error {"class": "InputError", "what": "no column a"}')))
    no column a
    >>> print(translate_error(ValueError("Total size … is bigger than spark.driver.maxResultSize")).what)
    the results of a step are too large for the driver
    """
    told = str(error)
    ours = re.search(re.escape(ERROR_PREFIX) + r"(\{.*\})", told)
    if ours:
        words = json.loads(ours[1])
        lacking = find_fault(words.get("cause", ""))
        if lacking:
            return lacking
        kind = getattr(errors, words["class"], StirredError)
        made: StirredError = kind(words["what"], why=words.get("why", ""), fix=words.get("fix", ""))
        return made
    known = find_fault(told)
    if known:
        return known
    name = type(error).__name__
    condition = getattr(error, "getCondition", lambda: None)()
    return ClusterError(
        UNKNOWN_FAULTS[0], why=f"{name} ({condition})" if condition else name, fix=RUN_AGAIN_FIX
    )


def find_fault(told: str) -> ClusterError | None:
    """Return the first fault whose pattern is found in what Spark says, as an error in our words.

    >>> find_fault("") is None
    True
    """
    for fault in FAULTS:
        found = re.search(fault.pattern, told)
        if found:
            return ClusterError(fault.what, why=fault.why.format(*found.groups()), fix=fault.fix)
    return None


# The first task of a session: the versions of every executor, before a record is read.

Told = tuple[str, dict[str, str]]  # a host and its versions
COMPARED = ("stirred", "pyarrow")
COMPARED_MARK = "_stirred_compared"  # on a context whose executors were compared


def list_driver_versions() -> dict[str, str]:
    """Return the versions that decide whether an executor computes what the driver would.

    >>> sorted(list_driver_versions())
    ['Python', 'pyarrow', 'stirred']
    """
    return {"Python": platform.python_version()} | {name: version(name) for name in COMPARED}


def make_probe(names: Iterable[str]) -> Callable[[object], Told]:
    """Return a function that tells host and versions where it runs; it is sent whole, so that it needs no package there."""
    wanted = tuple(names)

    def probe(_number: object) -> tuple[str, dict[str, str]]:
        import importlib
        import importlib.metadata
        import platform
        import socket

        found = {"Python": platform.python_version()}
        for name in wanted:
            try:
                importlib.import_module(name)
                found[name] = importlib.metadata.version(name)
            except Exception as error:
                found[name] = f"not to be loaded ({type(error).__name__})"
        return socket.gethostname(), found

    return probe


def require_same_versions(session: Any, run: Callable[[Callable[[], list[Told]]], list[Told]]) -> None:
    """Compare the versions of driver and executors by one small job for each context; name the first difference.

    A context of threads of this process has no executor to compare. ``run`` runs the job, and ends it if it waits in vain.
    """
    context = session.sparkContext
    if str(context.master).startswith("local") and not str(context.master).startswith("local-cluster"):
        return
    if getattr(context, COMPARED_MARK, False):
        return
    tasks = max(int(context.defaultParallelism), 2)
    # not parallelize, which leaves a socket open where Spark encrypts
    told = run(lambda: session.range(0, tasks, 1, tasks).rdd.map(make_probe(COMPARED)).collect())
    compare_versions(list_driver_versions(), told)
    setattr(context, COMPARED_MARK, True)


def compare_versions(own: dict[str, str], told: Iterable[Told]) -> None:
    """Raise an error that names where a version differs from the driver's.

    >>> compare_versions({"Python": "3.11.2"}, [("node7", {"Python": "3.11.9"})])
    Traceback (most recent call last):
    ...
    stirred.errors.ClusterError: driver and executors have different versions
      why: Python is 3.11.2 on the driver, 3.11.9 on node7
      fix: install the same stirred[spark] on the driver and on every executor (PYSPARK_PYTHON names their Python)
    """
    differences = sorted(
        {
            f"{name} is {here} on the driver, {there[name]} on {host}"
            for host, there in told
            for name, here in own.items()
            if there[name] != here
        }
    )
    if differences:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise ClusterError(
            "driver and executors have different versions", why=differences[0] + more, fix=INSTALL_FIX
        )
