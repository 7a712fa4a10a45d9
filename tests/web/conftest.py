"""A small census and a workbench for it, called without a network."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench_client import BenchClient
from small_town import write_town
from stirred.web.jobs.line import JobLine
from stirred.web.workbench import Workbench
from stirred.web.workspace.data import ChosenData

if TYPE_CHECKING:
    pass


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    """A workbench with the town, whose records nobody has asked to read."""
    write_town(tmp_path / "town")
    made = Workbench.of(tmp_path / "bench", roots=(tmp_path,), most_upload=100_000)
    made.data.choose(ChosenData(file=tmp_path / "town" / "census.toml", households=200))
    return made


@pytest.fixture
def client(bench: Workbench) -> BenchClient:
    """A browser that has the cookie."""
    return BenchClient(bench)


@dataclass
class RunningBench:
    """A real server in a process of its own."""

    folder: Path
    roots: Path
    port: int = 0
    process: subprocess.Popen[str] | None = None
    address: str = ""

    def start(self) -> str:
        words = [sys.executable, "-m", "stirred", "serve", str(self.folder)]
        self.process = subprocess.Popen(
            [*words, "--port", str(self.port), "--data", str(self.roots)], stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline() for _ in range(2)]
        self.address = lines[1].split()[1]
        self.port = int(self.address.split(":")[2].split("/")[0])
        return self.address

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self, number: int = signal.SIGKILL) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.communicate(timeout=30)
            self.process = None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningBench]:
    """A server with an empty workbench beside the town."""
    write_town(tmp_path / "town")
    made = RunningBench(tmp_path / "bench", tmp_path)
    made.start()
    yield made
    made.kill(signal.SIGTERM)
    for job in JobLine(made.folder / "jobs").all():
        if (process := job.process()) is not None:
            os.kill(process, signal.SIGTERM)
