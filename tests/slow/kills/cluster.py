"""A standalone Spark cluster on this machine, whose workers can be killed with their executors."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
    "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
    # a worker that was killed is given up at once
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "1s",
}


class StandaloneCluster:
    """A master and two workers with one executor each; all that they write lies in one folder.

    They know each other by a secret and encrypt what they send, unless ``closed`` is false. ``hosts`` are the addresses of
    the workers: Spark starts a task a second time only on another host than the first.
    """

    def __init__(
        self,
        home: Path,
        *,
        closed: bool = True,
        settings: Mapping[str, str] | None = None,
        hosts: Sequence[str] = ("127.0.0.1", "127.0.0.1"),
    ) -> None:
        import pyspark

        self.home, self.hosts = home, hosts
        secret = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(16),
            "spark.network.crypto.enabled": "true",
        }
        self.settings = {**SETTINGS, **(secret if closed else {}), **(settings or {})}
        self.spark = Path(pyspark.__file__).parent
        self.processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.master = f"spark://127.0.0.1:{free.getsockname()[1]}"

    @property
    def environment(self) -> dict[str, str]:
        """What driver and workers share."""
        return {
            "SPARK_HOME": str(self.spark),
            "SPARK_CONF_DIR": str(self.home / "conf"),
            "SPARK_LOCAL_DIRS": str(self.home / "local"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_SCALA_VERSION": "2.13",  # a worker would look for it in folders of a build
        }

    def __enter__(self) -> "StandaloneCluster":
        for name in ("conf", "local", "work", "logs"):
            (self.home / name).mkdir(parents=True)
        lines = [f"{name} {value}\n" for name, value in self.settings.items()]
        (self.home / "conf" / "spark-defaults.conf").write_text("".join(lines))
        self._start("master.Master", "--host", "127.0.0.1", "--port", self.master.rpartition(":")[2])
        self._wait("127.0.0.1", int(self.master.rpartition(":")[2]))
        for host in self.hosts:
            self.worker(host)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def worker(self, host: str = "127.0.0.1") -> None:
        """Start a worker."""
        place = ("--work-dir", str(self.home / "work"), "--host", host)
        self._start("worker.Worker", "--cores", "1", "--memory", "1g", *place, self.master)

    def lose(self, number: int) -> None:
        """Kill a worker and its executor; another worker takes its place."""
        process = self.processes.pop(1 + number)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.worker()

    def run(self, *words: str, scratch: Path) -> "subprocess.CompletedProcess[str]":
        """Run ``stirred`` with the cluster as its engine, as a process of its own; ``scratch`` is made."""
        scratch.mkdir(exist_ok=True)
        there = ("--engine", "spark", "--master", self.master, "--scratch", str(scratch))
        return run_stirred(*words, *there, environment=self.environment)

    def list_pythons(self, number: int) -> list[int]:
        """Return the processes of Python that a worker's executors have started."""
        parents = dict(_list_parents())
        found = {self.processes[1 + number].pid}
        while more := {child for child, parent in parents.items() if parent in found} - found:
            found |= more
        return [child for child in sorted(found) if b"pyspark.daemon" in _read_command(child)]

    def written(self) -> list[Path]:
        """Everything that Spark keeps on disk between tasks, and its logs."""
        # os.walk passes over folders that Spark removes meanwhile
        places = [os.walk(self.home / name) for name in ("local", "work", "logs")]
        return [Path(folder, name) for place in places for folder, _, names in place for name in names]

    def _start(self, kind: str, *words: str) -> None:
        java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
        command = [str(shutil.which(str(java))), *QUICK.split(), "-Xmx256m", "-cp", f"{self.spark}/jars/*"]
        command += [f"org.apache.spark.deploy.{kind}", "--webui-port", "0", *words]
        log = (self.home / "logs" / f"{len(self.processes)}-{time.monotonic_ns()}").open("wb")
        with log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **self.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self.processes.append(process)

    @staticmethod
    def _wait(host: str, port: int) -> None:
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex((host, port)) == 0:
                    return
            time.sleep(0.2)
        raise AssertionError("the master did not start")


def run_stirred(
    *words: str, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run ``stirred`` as a process of its own."""
    paths = os.pathsep.join(filter(None, sys.path))
    return subprocess.run(
        [sys.executable, "-m", "stirred", *words],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **(environment or {}), "PYTHONPATH": paths},
    )


def _list_parents() -> Iterator[tuple[int, int]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            yield int(path.parent.name), int(path.read_text().rpartition(")")[2].split()[1])


def _read_command(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""
