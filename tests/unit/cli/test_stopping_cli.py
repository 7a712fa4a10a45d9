"""A command that is asked to stop leaves no records behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from stirred.cli.main import main

PROGRAM = """
import os, signal, sys, types
from pathlib import Path
import pyarrow as pa
from stirred.cli import main as command, verbs
from stirred.engine import Local

def run(_):
    engine = Local(scratch=Path(sys.argv[1]))
    held = engine.exchange(engine.stream_released(pa.table({"part": [0]})), by="part", parts=1)
    assert os.listdir(sys.argv[1])
    os.kill(os.getpid(), signal.SIGTERM)
    while True:
        signal.pause()

verb = types.ModuleType("verb", "a verb")
verb.add_arguments, verb.run = lambda parser: None, run
sys.modules["verb"] = verb
verbs.GROUPS["begin"]["verb"] = ("verb", "runs until it is stopped")
sys.exit(command.main(["verb"]))
"""


def test_nothing_lies_in_scratch_after_a_scheduler_stops_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 143
    assert "stopped by SIGTERM" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device", "/confidential/4711SECRET"), "free some space"),
        (PermissionError(13, "Permission denied", "/confidential/4711SECRET"), "check the rights"),
        (OSError("strange 4711SECRET"), "look at the disk"),
        (MemoryError("4711SECRET"), "--memory"),
    ],
)
def test_the_system_refuses_in_our_words(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import stirred.cli.budget as budget

    def fails(_: object) -> int:
        raise error

    monkeypatch.delenv("STIRRED_TRACEBACK", raising=False)
    monkeypatch.setattr(budget, "run", fails)
    assert main(["budget", "--stratum", "10", "--rate", "1/2"]) == 74
    told = capsys.readouterr().err
    assert words in told
    assert "4711SECRET" not in told
    assert "unexpected" not in told


STUCK = """
import atexit, os, signal, sys, threading, types
from concurrent.futures import ThreadPoolExecutor
from stirred.cli import main as command, process, verbs

process.END_SECONDS = 0.5

def run(_):
    atexit.register(print, "removed")
    future = ThreadPoolExecutor(1).submit(threading.Event().wait, 0.2)
    future._condition.acquire()  # as a signal leaves it that comes in between: the thread cannot say that it is done
    os.kill(os.getpid(), signal.SIGTERM)

verb = types.ModuleType("verb", "a verb")
verb.add_arguments, verb.run = lambda parser: None, run
sys.modules["verb"] = verb
verbs.GROUPS["begin"]["verb"] = ("verb", "runs until it is stopped")
sys.argv[1:] = ["verb"]
command.run()
"""


def test_a_thread_that_never_ends_does_not_keep_a_command_that_is_stopped() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STUCK], check=False, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 143
    assert "stopped by SIGTERM" in done.stderr
    assert done.stdout == "removed\n", "what is registered for the end of the process is done"
