"""Jobs: one at a time, cancelled and taken up, and found again by another server."""

import fcntl
import html
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench_client import BenchClient, form_in
from small_town import write_town
from stirred.cli.output import log_progress
from stirred.publish import verify
from stirred.publish.packet import Packet
from stirred.web.jobs import JobQueue, steps_of_job
from stirred.web.workbench import Workbench

ENDLESS = ("data", "synth", "demo", "--households", "90000000", "--out", "big")


def wait(found: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def started(bench: Workbench) -> Iterator[Workbench]:
    bench.line.start()
    yield bench
    for job in bench.line.all():
        bench.line.cancel(job.number)
    wait(lambda: all(job.ended for job in bench.line.all()))
    bench.line.close()


def test_one_job_runs_and_others_wait(started: Workbench) -> None:
    first = started.line.add("synth", ENDLESS)
    second = started.line.add("synth", ("--version",))
    wait(lambda: first.state == "running" and first.process() is not None)
    assert second.state == "waiting"
    # another server on the same folder finds the job and does not start it again
    other = JobQueue(started.workspace.jobs)
    assert [job.state for job in other.all()] == ["running", "waiting"]
    other.cancel(first.number)
    wait(lambda: first.ended and second.ended)
    assert (first.state, second.state) == ("cancelled", "done")
    assert second.output().strip()


def test_a_job_is_cancelled_before_its_process_is_known(bench: Workbench) -> None:
    job = bench.line.add("synth", ENDLESS)
    (job.folder / "started").touch()
    with (job.folder / "lock").open("w") as lock:  # as a process that has only begun
        fcntl.flock(lock, fcntl.LOCK_EX)
        bench.line.cancel(job.number)
        assert job.state == "running"
        words = [sys.executable, "-m", "stirred.web.runner", str(job.folder)]
        subprocess.run(words, check=True, timeout=60)
    assert job.state == "cancelled"
    bench.line.resume(job.number)
    assert job.state == "waiting"
    assert not (job.folder / "cancel").exists()


def test_a_run_is_made_again_by_the_command_that_is_shown(started: Workbench, client: BenchClient) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    text = started.history.text().replace(
        "utility = true", "utility = false"
    )  # the report takes most of the time
    client.post("/method/text", {"text": text})
    client.post("/run/start")
    job = started.line.job(1)
    wait(lambda: job.ended)
    assert job.state == "done", job.messages()
    page = client.get("/packet/1")
    assert "Every file is as it was sealed." in page.words
    shown = "stirred run plans/0002.toml --out again --key packets/0001.key"
    assert shown in page.words
    folder = started.workspace.folder
    command = [sys.executable, "-m", *shown.split()]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    first, again = Packet(folder / "packets/0001"), Packet(folder / "again")
    assert not verify(again.folder)
    sums = [(packet.public / "checksums.txt").read_bytes() for packet in (first, again)]
    assert sums[0] == sums[1]
    assert 'src="/look/1/report/public"' in client.get("/look/1").text
    assert "Who is protected?" in client.get("/look/1/report/public").words
    archive = client.get("/packet/1/download/public").body
    assert archive[:2] == b"PK"
    assert b"public/receipt.json" in archive
    assert b".key" not in archive
    compared = client.get("/compare?side=1&side=whatif-state")
    assert "compared with whatif-state, part by part" in compared.words
    assert "/run/1/cancel" not in client.get("/run").text


@pytest.mark.skipif(not Path("/proc").exists(), reason="it looks for the child of a process in /proc")
def test_an_interrupted_job_is_found(bench: Workbench) -> None:
    job = bench.line.add("synth", ENDLESS)
    bench.line.start()
    wait(lambda: job.process() is not None)
    runner = job.process()
    assert runner is not None
    children = Path(f"/proc/{runner}/task/{runner}/children")
    wait(lambda: bool(children.read_text().split()))
    child = int(children.read_text().split()[0])
    bench.line.close()
    os.kill(runner, signal.SIGKILL)
    os.kill(child, signal.SIGKILL)
    wait(lambda: job.state == "interrupted")
    bench.line.resume(job.number)
    assert job.state == "waiting"
    bench.line.cancel(job.number)
    assert job.state == "cancelled"


def test_steps_have_percentages_where_a_command_tells_them(bench: Workbench, client: BenchClient) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    run, drawn = bench.line.add("run", ("run",)), bench.line.add("frontier", ("frontier",))
    with log_progress(bench.workspace.packets / "0001.log", lambda *_: None) as say:
        say("read", 0, 4)
        say("read", 4, 4)
        say("swap", 0, 4)
    log = bench.workspace.packets / "0001.log"
    log.write_text(
        log.read_text() + '{"step": "swap", "state": "under way", "percent": 25, "seconds_left": 52}\n{"st'
    )
    (drawn.folder / "stderr").write_text(
        "   0.0 s  releases\n  12.0 s  releases 66 %, about 6 s left\nerror: a table 5 %\n"
    )
    steps = steps_of_job(run, bench.workspace.packets, running=True)
    assert [(step.name, step.done, step.percent) for step in steps] == [
        ("read", True, None),
        ("swap", False, 25),
    ]
    assert [step.left for step in steps] == ["", "about 50 s left"]
    (step,) = steps_of_job(drawn, log.parent, running=True)
    assert (step.percent, step.left) == (66, "about 6 s left")
    assert all(step.done for step in steps_of_job(run, log.parent, running=False))
    for job in (run, drawn):
        (job.folder / "started").touch()
    with (run.folder / "lock").open("w") as lock:  # as the process of the job holds it
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "swap 25%" in client.get("/run/jobs").words
        assert 'max="100" value="25"' in client.get("/run/jobs").text


@pytest.mark.slow
def test_all_that_is_shown_runs(started: Workbench, client: BenchClient, tmp_path: Path) -> None:
    """Every command in one copy of the workbench, and every Python in another."""
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    client.post("/data/read", {"read": "yes"})
    client.post("/run/start")
    form = form_in(client.get("/promise").text, "/promise?part=0")
    client.post("/promise?part=0", {**form, "s.rate": "1/4"})
    client.post("/run/start")
    wait(lambda: all(job.ended for job in started.line.all()))
    screens = ("/", "/data", "/promise", "/method", "/run", "/look/2", "/compare?side=2&side=3", "/packet/2")
    pages = {path: client.get(path).text for path in (*screens, "/history")}
    copies = {name: tmp_path / name for name in ("command", "python")}
    for name, folder in copies.items():
        shutil.copytree(started.workspace.folder, folder)
        done: set[str] = set()
        for path, page in pages.items():
            texts = re.findall(rf'class="{name}"[^>]*><code>(.*?)</code>', page, re.S)
            assert texts, (name, path)
            for text in map(html.unescape, texts):
                if text in done or "serve" in text:
                    continue  # a server does not end
                done.add(text)
                words = [sys.executable, "-c", text] if name == "python" else shlex.split(text)
                if words[0] == "stirred":
                    words = [sys.executable, "-m", *words]
                ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
                assert ended.returncode == int(words[0] == "diff"), (path, text, ended.stderr)
        for part in ("public", "internal"):
            sums = [folder / packet / part / "checksums.txt" for packet in ("packets/0002", "again")]
            assert sums[0].read_bytes() == sums[1].read_bytes()


@pytest.mark.slow
def test_a_packet_is_assessed_and_a_frontier_drawn(started: Workbench, client: BenchClient) -> None:
    client.post("/promise/start", {"mechanism": "permutation-swapping"})
    started.data.change(read=True)
    client.post("/run/start")
    wait(lambda: started.line.job(1).ended)
    look = form_in(client.get("/look/1").text, "/look/1/assess")
    assert (look["known"], look["secret"]) == (["size"], ["tenure"])
    assert client.post("/look/1/assess", look).status == 422  # nobody said that the result is internal
    assert client.post("/look/1/assess", {**look, "internal": "on", "known": "--publish"}).status == 422
    assert client.post("/look/1/assess", {**look, "internal": "on"}).status == 303
    frontier = form_in(client.get("/compare").text, "/compare/frontier")
    assert client.post("/compare/frontier", {**frontier, "rates": "1/20 1/2"}).status == 303
    assert client.post("/compare/frontier", {**frontier, "rates": "1/20", "secret": "block"}).status == 303
    wait(lambda: all(job.ended for job in started.line.all()))
    assert [job.state for job in started.line.all()] == ["done", "done", "done", "failed"]
    page = client.get("/look/1")
    assert 'src="/reports/2"' in page.text
    assert "What attacks find" in client.get("/reports/2").words
    assert "Risk against error" in client.get("/reports/3").words
    compared = client.get("/compare")
    assert 'href="/reports/3"' in compared.text
    assert "no release of this family has both a risk and an error" in compared.words


@pytest.mark.slow
def test_files_are_uploaded_described_and_corrected(tmp_path: Path) -> None:
    write_town(tmp_path / "town")
    bench = Workbench.of(tmp_path / "bench")
    client, mark = BenchClient(bench), b"--xx\r\ncontent-disposition: form-data; name="
    parts = [mark + b'"csrf"\r\n\r\n' + bench.session.csrf.encode() + b"\r\n"]
    for name in ("household.csv", "person.csv"):
        head = mark + f'"files"; filename="{name}"\r\n\r\n'.encode()
        parts.append(head + (tmp_path / "town" / name).read_bytes() + b"\r\n")
    kind = "multipart/form-data; boundary=xx"
    assert client.send("POST", "/data/upload", body=[*parts, b"--xx--\r\n"], kind=kind).status == 303
    bench.line.start()
    client.post("/data/describe")
    wait(lambda: bench.line.job(1).ended)
    bench.line.close()
    text = form_in(client.get("/data").text, "/data/codebook")["text"][0]
    assert "# each code lies in one code of the level before" in text
    wrong = client.post("/data/codebook", {"text": text.replace("name = ", "nmae = ", 1)})
    assert wrong.status == 422
    assert "did you mean name?" in wrong.words
    better = text.replace('tenure = {type = "text"}', 'tenure = {levels = ["owned", "rented"]}')
    assert client.post("/data/codebook", {"text": better}).status == 303
    assert (bench.workspace.own_census / "census.0001.toml").read_text() == text
    assert bench.require_data().schema.record("household").variable("tenure").level_count == 2
    assert not bench.require_data().read
