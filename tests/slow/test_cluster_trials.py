"""What an operator may meet on a standalone cluster: few and many parts, tasks that run twice, executors without memory.

What ends gives the contents of a run on one machine; what fails says what was lacking and leaves no record behind.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from slow.kills import left
from slow.kills.cluster import StandaloneCluster, run_stirred
from slow.kills.jobs import SWAP, town
from stirred.chance import Key

pytestmark = [pytest.mark.slow, pytest.mark.spark("own")]

HOUSEHOLDS = 300
FILES_AND_PARTS = [(1, 1), (40, 6)]  # by hand: 500 of both
CLUSTER_FAILED = 74  # the exit code
OF_TASKS = ("spark.default.parallelism", "spark.sql.files.minPartitionNum")


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A census with a plan, the key, and the packet that one machine makes of them."""
    folder = tmp_path_factory.mktemp("office")
    town(folder, HOUSEHOLDS, "parquet")
    (folder / "plan.toml").write_text(SWAP)
    Key.for_tests(5).save(folder / "office.key")
    done = run_stirred(*words_of(folder), "--out", str(folder / "here"))
    assert done.returncode == 0, done.stderr
    return folder


def words_of(office: Path) -> tuple[str, ...]:
    return "run", str(office / "plan.toml"), "--key", str(office / "office.key")


def require_same_contents(office: Path, packet: Path) -> None:
    compared = run_stirred("packet", "contents", str(office / "here"), str(packet))
    assert compared.returncode == 0, compared.stdout + compared.stderr


def require_nothing_readable(cluster: StandaloneCluster, place: Path) -> None:
    """Neither Spark nor the run has left what somebody who finds the disk could read."""
    assert [
        *left.on_spark(cluster.written()),
        *left.faults(place, place / "packet", place / "scratch"),
    ] == []


def read_events(folder: Path) -> Iterator[dict[str, object]]:
    """Yield what Spark says that it did."""
    for path in sorted(folder.rglob("events_*")):
        yield from map(json.loads, path.read_text().splitlines())


# ---- how many files and parts ------------------------------------------------------------------------------------------


def cut(office: Path, place: Path, files: int) -> None:
    """Write the same census with each record type in that many files."""
    text = (office / "census.toml").read_text()
    for name in tomllib.loads(text)["record"]:
        whole = pq.read_table(office / f"{name}.parquet")
        (place / name).mkdir(parents=True)
        rows = -(-whole.num_rows // files)
        for number in range(files):
            pq.write_table(whole.slice(number * rows, rows), place / name / f"{number:04}.parquet")
        text = text.replace(f'"{name}.parquet"', f'"{name}/*.parquet"')
    (place / "census.toml").write_text(text)
    (place / "plan.toml").write_text(SWAP)


@pytest.mark.parametrize(("files", "parts"), FILES_AND_PARTS)
def test_neither_files_nor_parts_change_the_contents(
    office: Path, tmp_path: Path, files: int, parts: int
) -> None:
    cut(office, tmp_path / "census", files)
    settings = dict.fromkeys(OF_TASKS, str(parts))
    with StandaloneCluster(tmp_path / "spark", settings=settings) as cluster:
        plan = str(tmp_path / "census" / "plan.toml")
        words = ("run", plan, "--key", str(office / "office.key"), "--out", str(tmp_path / "packet"))
        done = cluster.run(*words, scratch=tmp_path / "scratch")
    assert done.returncode == 0, done.stderr
    require_same_contents(office, tmp_path / "packet")


# ---- tasks that run twice, executors that come and go ------------------------------------------------------------------

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "200ms",
    "spark.default.parallelism": "4",
}


@contextmanager
def slowed(cluster: StandaloneCluster, number: int) -> Iterator[None]:
    """Let the Python processes of a worker run for one of every five seconds."""
    over = threading.Event()

    def slow() -> None:
        while not over.is_set():
            stopped = cluster.list_pythons(number)
            for signal_, seconds in ((signal.SIGSTOP, 4.0), (signal.SIGCONT, 1.0)):
                for process in stopped:
                    with suppress(ProcessLookupError):
                        os.kill(process, signal_)
                over.wait(seconds)

    thread = threading.Thread(target=slow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_a_task_that_runs_twice_changes_nothing(office: Path, tmp_path: Path) -> None:
    """Spark starts the second attempt on another host alone, so the workers have two addresses of this machine."""
    (tmp_path / "events").mkdir()
    events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{tmp_path}/events"}
    settings = {**SPECULATION, **events, "spark.eventLog.compress": "false"}
    hosts = ("127.0.0.1", "127.0.0.2")
    with StandaloneCluster(tmp_path / "spark", settings=settings, hosts=hosts) as cluster:
        with slowed(cluster, 1):
            words = (*words_of(office), "--out", str(tmp_path / "packet"))
            done = cluster.run(*words, scratch=tmp_path / "scratch")
        assert done.returncode == 0, done.stderr
        require_nothing_readable(cluster, tmp_path)
    begun = [
        event for event in read_events(tmp_path / "events") if event["Event"] == "SparkListenerTaskStart"
    ]
    twice = [event for event in begun if event["Task Info"]["Speculative"]]  # type: ignore[index]
    assert twice, f"none of {len(begun)} tasks was started twice"
    require_same_contents(office, tmp_path / "packet")


DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "10s",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.maxExecutors": "2",
}


def test_executors_that_come_and_go_change_nothing(office: Path, tmp_path: Path) -> None:
    with StandaloneCluster(tmp_path / "spark", settings=DYNAMIC) as cluster:
        words = (*words_of(office), "--out", str(tmp_path / "packet"))
        done = cluster.run(*words, scratch=tmp_path / "scratch")
    assert done.returncode == 0, done.stderr
    require_same_contents(office, tmp_path / "packet")


# ---- executors without memory ------------------------------------------------------------------------------------------

IN_EVERY_PYTHON = """
import os, signal, sys
if any("pyspark" in word for word in sys.orig_argv):
    import stirred.engine.spark.tasks as tasks
    def lack(*_):
        {what}
    tasks.read_parts = lack
"""
NO_MEMORY = 'raise MemoryError("ZQ" "7391 is a value")'  # what a library raises that is refused memory
KILLED = "os.kill(os.getpid(), signal.SIGKILL)"  # what the system does with a process that takes too much
SMALL = {"spark.testing.reservedMemory": "1000000"}  # else Spark itself refuses an executor below 450 MB


def patched(place: Path, what: str) -> dict[str, str]:
    """Settings with which every Python of an executor ends like that when it has a part before it."""
    place.mkdir()
    (place / "sitecustomize.py").write_text(IN_EVERY_PYTHON.format(what=what))
    return {"spark.executorEnv.PYTHONPATH": os.pathsep.join([str(place), *filter(None, sys.path)])}


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (NO_MEMORY, "an executor ran out of memory"),
        (KILLED, "a Python process of an executor ended in the middle of its work"),
    ],
    ids=["refused", "killed"],
)
def test_a_python_without_memory_is_told_and_leaves_no_record(
    office: Path, tmp_path: Path, what: str, told: str
) -> None:
    with StandaloneCluster(tmp_path / "spark", settings=patched(tmp_path / "site", what)) as cluster:
        words = (*words_of(office), "--out", str(tmp_path / "packet"))
        done = cluster.run(*words, scratch=tmp_path / "scratch")
        require_nothing_readable(cluster, tmp_path)
    assert done.returncode == CLUSTER_FAILED, done.stderr
    assert f"error: {told}" in done.stderr
    assert "spark.executor.memoryOverhead" in done.stderr
    assert "ZQ7391" not in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "packet").exists()


def test_executors_that_cannot_start_end_the_run(office: Path, tmp_path: Path) -> None:
    """With 64 MB Java refuses to begin; the cluster would start executors for ever."""
    settings = {**SMALL, "spark.executor.memory": "64m"}
    with StandaloneCluster(tmp_path / "spark", settings=settings) as cluster:
        words = (*words_of(office), "--out", str(tmp_path / "packet"))
        done = cluster.run(*words, scratch=tmp_path / "scratch")
        require_nothing_readable(cluster, tmp_path)
    assert done.returncode == CLUSTER_FAILED, done.stderr
    assert "the executors of this cluster end as soon as they start" in done.stderr
    assert not (tmp_path / "packet").exists()


def test_settings_that_java_refuses_are_named(office: Path, tmp_path: Path) -> None:
    settings = {"spark.executor.memory": "200m"}
    with StandaloneCluster(tmp_path / "spark", settings=settings) as cluster:
        words = (*words_of(office), "--out", str(tmp_path / "packet"))
        done = cluster.run(*words, scratch=tmp_path / "scratch")
    assert done.returncode == 2, done.stderr
    assert (
        "error: Spark did not start with these settings\n  why: Java refuses spark.executor.memory"
        in done.stderr
    )


def test_a_cluster_without_room_is_told_and_can_be_left(office: Path, tmp_path: Path) -> None:
    """No worker has 8 GB: Spark waits in silence, and would not hear a signal either."""
    with StandaloneCluster(tmp_path / "spark", settings={"spark.executor.memory": "8g"}) as cluster:
        words = [*words_of(office), "--out", str(tmp_path / "packet"), "--engine", "spark"]
        paths = os.pathsep.join(filter(None, sys.path))
        process = subprocess.Popen(
            [sys.executable, "-m", "stirred", *words, "--master", cluster.master],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **cluster.environment, "PYTHONPATH": paths},
        )
        with process:
            assert process.stderr is not None
            told = next(line for line in process.stderr if "waiting for the cluster" in line)
            assert "executors: 0 run, 0 ended" in told
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            rest = process.stderr.read()
    assert process.returncode == 128 + signal.SIGTERM, rest
    assert time.monotonic() - began < 60
    assert "Traceback" not in rest
