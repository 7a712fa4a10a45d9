"""A small census and a workbench for it, called without a network."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bench_client import BenchClient
from bench_server import RunningBench
from small_town import write_town
from stirred.web.jobs import JobQueue
from stirred.web.workbench import Workbench
from stirred.web.workspace import ChosenData

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


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RunningBench]:
    """A server with an empty workbench beside the town."""
    write_town(tmp_path / "town")
    made = RunningBench(tmp_path / "bench", tmp_path)
    made.start()
    yield made
    made.kill(signal.SIGTERM)
    for job in JobQueue(made.folder / "jobs").all():
        if (process := job.process()) is not None:
            os.kill(process, signal.SIGTERM)
