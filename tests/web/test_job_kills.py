"""Jobs of the workbench that are killed: said so, taken up, and equal byte for byte; nothing half-written has its name."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench_client import BenchClient, form_in
from slow.kills.harness import contents
from small_town import write_town
from stirred.chance import Key
from stirred.publish import load, run, verify
from stirred.web.workbench import Workbench
from stirred.web.workspace import ChosenData

MOMENTS = ("at once", "0.4 s", "1 event", "4 events", "8 events", "12 events")


def wait(found: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_an_interrupted_job_is_told_with_its_way_out(bench: Workbench, client: BenchClient) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    client.post("/run/start")
    (bench.line.job(1).folder / "started").touch()  # and nobody holds its lock
    page = client.get("/run")
    assert 'data-state="interrupted"' in page.text
    assert "was interrupted" in page.words
    assert form_in(page.text, "/run/1/resume") == {}
    assert client.post("/run/1/resume").status == 303
    assert bench.line.job(1).state == "waiting"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="it looks for processes in /proc")
def test_killed_jobs_end_as_undisturbed_ones(tmp_path: Path) -> None:
    """A run is killed at six moments, with its runner, its server or both; what it makes is what no kill would change."""
    write_town(tmp_path / "town")
    made = [_killed(tmp_path / f"bench-{n}", tmp_path, moment) for n, moment in enumerate(MOMENTS)]
    assert sum(made) >= len(MOMENTS)


def _killed(folder: Path, root: Path, moment: str) -> int:
    """Kill a run twice and let it finish under another server; return the kills that found it running."""
    bench, kills = _served(folder, root), 0
    client = BenchClient(bench)
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    client.post("/method/text", {"text": bench.history.text().replace("utility = true", "utility = false")})
    client.post("/run/start")
    job, packet = bench.line.job(1), bench.workspace.packets / "0001"
    for _ in range(2):
        bench.line.start()
        wait(lambda job=job: job.process() is not None or job.ended)  # type: ignore[misc]
        _await(moment, packet.with_name("0001.log"))
        runner = job.process()
        if runner is not None:
            os.killpg(runner, signal.SIGKILL)
            kills += 1
        bench.line.close()
        wait(lambda job=job: job.ended)  # type: ignore[misc]
        assert job.state in ("interrupted", "done")
        assert not packet.exists() or not verify(packet)
        bench = _served(folder, root)  # the server is another one as well
        client, job = BenchClient(bench), bench.line.job(1)
        if job.state == "interrupted":
            assert "was interrupted" in client.get("/run").words
            client.post("/run/1/resume")
    bench.line.start()
    wait(lambda: job.ended)
    bench.line.close()
    assert job.state == "done", job.messages()
    again = run(
        load(bench.history.path(bench.history.current)),
        folder / "again",
        key=Key.load(packet.with_name("0001.key")),
    )
    assert contents(packet) == contents(again.folder)
    assert not [path for path in folder.rglob("*.part*") if path.name != "again.part"]
    return kills


def _served(folder: Path, root: Path) -> Workbench:
    bench = Workbench.of(folder, roots=(root,))
    bench.data.choose(ChosenData(file=root / "town" / "census.toml", read=True))
    return bench


def _await(moment: str, log: Path) -> None:
    number, _, unit = moment.partition(" ")
    if unit == "s":
        time.sleep(float(number))
    elif unit.startswith("event"):
        before, end = log.stat().st_size if log.exists() else 0, time.monotonic() + 60
        while time.monotonic() < end and not log.with_suffix("").exists():  # the packet has its name already
            if log.exists() and log.read_bytes()[before:].count(b"\n") >= int(number):
                return
            time.sleep(0.002)
