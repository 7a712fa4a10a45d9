"""What an operator is told of a cluster: an open network, versions that differ, faults of Spark in words of ours."""

import errno
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from stirred.engine.choice import choose_engine
from stirred.engine.spark import faults, reading, session, tasks
from stirred.errors import ClusterError, InputError, PrivacyError

CLOSED = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true"}
FAR = ("spark://head:7077", "yarn", "k8s://https://head:6443")


@pytest.mark.parametrize("master", FAR)
def test_a_far_master_needs_authentication_and_encryption(master: str) -> None:
    open_ = {"spark.master": master}
    assert session.list_open_settings(open_) == ["spark.authenticate", "spark.network.crypto.enabled"]
    with pytest.raises(PrivacyError, match="the network of this cluster is open") as told:
        session.require_closed_network(open_)
    assert "--accept-open-network" in told.value.fix
    for name in CLOSED:  # each of the two alone is not enough
        with pytest.raises(PrivacyError, match="is not true"):
            session.require_closed_network(open_ | CLOSED | {name: "false"})
    assert session.require_closed_network(open_ | CLOSED) == ""
    tls = {"spark.authenticate": "true", "spark.ssl.rpc.enabled": "True"}
    assert session.require_closed_network(open_ | tls) == ""


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local-cluster[2,1,1024]"])
def test_one_machine_needs_nothing(master: str) -> None:
    assert session.require_closed_network({"spark.master": master}) == ""


def test_a_reason_is_kept_only_where_it_is_needed_and_says_something() -> None:
    reason = "the cluster has\na network of its own"
    assert (
        session.require_closed_network({"spark.master": "yarn"}, reason)
        == "the cluster has a network of its own"
    )
    assert session.require_closed_network({"spark.master": "yarn"} | CLOSED, reason) == ""
    for empty in ("yes", "  . . .  ", "12345678", "a reason\x1b[2J with control"):
        with pytest.raises(InputError, match="says nothing"):
            session.require_closed_network({"spark.master": "yarn"}, empty)


def test_the_local_engine_takes_no_notice() -> None:
    assert choose_engine("local", accept_open_network="not needed here").name == "local"


SAID = {
    "Job aborted due to stage failure: Total size of serialized results of 9 tasks (1100.0 MiB) is bigger than "
    "spark.driver.maxResultSize (1024.0 MiB)": "the results of a step are too large for the driver",
    "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11": (
        "driver and executors run different versions of Python"
    ),
    "ModuleNotFoundError: No module named 'stirred.engine'": "a Python package is missing on an executor",
    'java.io.IOException: Cannot run program "/opt/env/bin/python3": error=2': (
        "an executor has no Python where Spark looks for it"
    ),
    "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: Command exited with code 137": (
        "executors were killed more often than Spark tries again"
    ),
    "Container killed by YARN for exceeding physical memory limits. 5.1 GB of 5 GB": "an executor ran out of memory",
    # YARN's own words, where the system ended a container
    "ExecutorLostFailure (executor 38 exited caused by one of the running tasks) Reason: Container from a bad node: "
    "container_1_01_000072 on host: node7. Exit status: 137. Diagnostics: Container killed on request. Exit code is 137": (
        "executors were killed more often than Spark tries again"
    ),
    "The executor with id 32 exited with exit code 137(SIGKILL, possible container OOM)": (
        "executors were killed more often than Spark tries again"
    ),
    "java.lang.OutOfMemoryError: Java heap space": "an executor ran out of memory",
    "io.netty.util.internal.OutOfDirectMemoryError: failed to allocate 4194304 byte(s) of direct memory": (
        "an executor ran out of memory"
    ),
    "org.apache.arrow.memory.OutOfMemoryException: Failure allocating buffer.": "an executor ran out of memory",
    "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited with code 52": (
        "an executor ran out of memory"
    ),
    "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)": (
        "a Python process of an executor ended in the middle of its work"
    ),
    "java.io.IOException: No space left on device": "a disk of the cluster is full",
    "ExecutorLostFailure (executor 1 exited unrelated to the running tasks) Reason: worker lost": (
        "the cluster lost its executors more often than Spark tries again"
    ),
    "All masters are unresponsive! Giving up.": "the cluster's master does not answer, or ended this application",
    "Answer from Java side is empty": "Spark's own process on the driver ended",
}


@pytest.mark.parametrize("words", SAID)
def test_a_fault_has_its_own_words_and_shows_no_value(words: str) -> None:
    told = faults.translate_error(OSError(f"{words} at row 977531"))
    assert isinstance(told, ClusterError)
    assert told.what == SAID[words]
    assert "977531" not in str(told)
    assert told.why
    assert told.fix


@pytest.mark.parametrize(
    ("words", "setting"),
    [
        ("java.lang.OutOfMemoryError: Java heap space", "spark.executor.memory)"),
        ("Reason: Command exited with code 52", "spark.executor.memory)"),
        ("MemoryError", "spark.executor.memoryOverhead)"),
        ("Container killed by YARN for exceeding physical memory limits.", "spark.executor.memoryOverhead)"),
    ],
)
def test_the_memory_that_is_lacking_is_named(words: str, setting: str) -> None:
    told = faults.translate_error(OSError(words))
    assert told.what == "an executor ran out of memory"
    assert setting in told.fix


IN_A_TASK = {
    MemoryError("977531"): "an executor ran out of memory",
    pa.ArrowMemoryError("malloc of size 977531 failed"): "an executor ran out of memory",
    OSError(errno.ENOMEM, "977531"): "an executor ran out of memory",
    OSError(errno.ENOSPC, "977531"): "a disk of the cluster is full",
    PermissionError(errno.EACCES, "977531"): "a program of the cluster may not read or write a file",
    ModuleNotFoundError("977531", name="scipy.stats"): "a Python package is missing on an executor",
    ImportError("libgomp.so.977531"): "a Python package cannot be loaded on an executor",
    OSError(errno.EIO, "977531"): tasks.TASK_FAILED,
    KeyError("977531"): tasks.TASK_FAILED,
}


@pytest.mark.parametrize("raised", IN_A_TASK, ids=repr)
def test_what_a_task_lacks_is_told_as_if_spark_had_said_it(raised: Exception) -> None:
    """An error inside a task reaches the driver by its class alone, and that class may be want of memory."""

    def lack(_: object) -> Iterator[pa.RecordBatch]:
        raise raised

    with pytest.raises(RuntimeError) as sent:
        list(tasks.guard_task(lack)([]))
    told = faults.translate_error(sent.value)
    assert isinstance(told, ClusterError)
    assert told.what == IN_A_TASK[raised]
    assert "977531" not in f"{sent.value}{told}"
    assert told.fix


def test_every_fault_is_tried() -> None:
    reached = {faults.translate_error(OSError(words)).what for words in SAID}
    untried = {fault.what for fault in faults.FAULTS} - reached
    assert untried == {
        "a Python package cannot be loaded on an executor",
        "a program of the cluster may not read or write a file",
    }
    assert faults.translate_error(OSError("ImportError: libgomp.so.1")).what in untried
    assert faults.translate_error(OSError("java.io.IOException: Permission denied")).what in untried


def test_the_probe_tells_versions_and_what_cannot_be_loaded() -> None:
    _, told = faults.make_probe(faults.COMPARED)(0)
    assert told == faults.list_driver_versions()
    assert faults.make_probe(["no_such_package"])(0)[1]["no_such_package"] == (
        "not to be loaded (ModuleNotFoundError)"
    )


def test_the_probe_needs_no_stirred_where_it_runs() -> None:
    from pyspark import cloudpickle

    code = "import pickle, sys; sys.modules['stirred'] = None; print(pickle.load(sys.stdin.buffer)(0)[1]['stirred'])"
    sent = cloudpickle.dumps(faults.make_probe(faults.COMPARED))
    done = subprocess.run([sys.executable, "-c", code], input=sent, check=False, capture_output=True)
    assert done.stdout.decode().strip() == "not to be loaded (ModuleNotFoundError)", done.stderr


def test_a_context_of_threads_is_not_asked() -> None:
    class Session:
        class sparkContext:  # noqa: N801 — Spark's
            master = "local[4]"

    faults.require_same_versions(Session(), lambda _: pytest.fail("a job was run"))  # nothing of it is used


def test_messages_in_scratch_are_noise_without_their_key() -> None:
    table = pa.table({"name": ["a rather rare surname"] * 50})
    key = bytes(range(32))
    sealed = list(tasks.pack_messages(table, 0, 0, key))
    plain = list(tasks.pack_messages(table, 0, 0))
    stored = b"".join(body.as_py() for batch in sealed for body in batch.column(2))
    assert b"a rather rare surname" in b"".join(b.as_py() for batch in plain for b in batch.column(2))
    assert b"a rather rare surname" not in stored
    assert b"name" not in stored
    (read,) = tasks.ReadMessages(table.schema, key)(sealed)
    assert read == table
    (again,) = tasks.pack_messages(table, 0, 0, key)
    assert (
        again.column(2)[0].as_py() != sealed[0].column(2)[0].as_py()
    )  # no part of a key stream is used twice
    assert "key" not in repr(tasks.ReadMessages(table.schema, key))
    (other,) = pickle.loads(pickle.dumps(tasks.ReadMessages(table.schema, key)))(sealed)
    assert other == table


def test_a_row_is_as_wide_as_its_columns() -> None:
    schema = pa.schema(
        [("a", pa.uint16()), ("b", pa.large_string()), ("c", pa.float64()), ("d", pa.date32())]
    )
    assert reading.row_width(schema) == 2 + 16 + 8 + 4
