"""Signals, limits and a damaged state: the documented exit code, one message, nothing readable, and a run that goes on."""

import contextlib
import os
import re
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import stirred
from small_census import CENSUS, households
from stirred.chance import Key
from stirred.cli import process
from stirred.cli.main import main
from stirred.engine import Local
from stirred.engine.spark.faults import translate_error
from stirred.publish.run import execute

PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state"]
swap = ["county"]
rate = "1/3"
[[table]]
name = "county-tenure"
by = ["county", "tenure"]
[assess]
utility = false
"""
HEEDED = ("SIGTERM", "SIGHUP", "SIGXCPU", "SIGINT")


@pytest.fixture(autouse=True)
def untouched() -> Iterator[None]:
    """What a command changes in its process is as before."""
    before = {name: signal.getsignal(getattr(signal, name)) for name in HEEDED}
    hook = sys.unraisablehook
    yield
    for name, handler in before.items():
        signal.signal(getattr(signal, name), handler)
    sys.unraisablehook = hook


def written(folder: Path) -> Path:
    (folder / "census.toml").write_text(CENSUS)
    (folder / "household.csv").write_text(households(60))
    (folder / "plan.toml").write_text(PLAN)
    Key.for_tests(3).save(folder / "k")
    (folder / "scratch").mkdir()
    return folder


@pytest.fixture
def town(tmp_path: Path) -> Path:
    return written(tmp_path)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that was stopped, and a copy of what it left."""
    folder = written(tmp_path_factory.mktemp("stopped"))
    with pytest.MonkeyPatch.context() as patched:
        interrupted(folder, patched, signal.SIGTERM)
    shutil.copytree(folder / "packet.part", folder / "left")
    return folder


def run(town: Path, out: str = "packet") -> int:
    flags = ["--key", str(town / "k"), "--scratch", str(town / "scratch")]
    return main(["run", str(town / "plan.toml"), "--out", str(town / out), *flags])


def interrupted(town: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> int:
    """Send a signal when the mechanism has finished; its scratch is in use."""

    def sent(content: Any, *_: object, **__: object) -> None:
        table = content.releases[0].microdata["household"].to_table().append_column("part", [[0] * 60])
        held = Local(scratch=town / "scratch")
        held = held.exchange(held.stream_released(table), by="part", parts=1)
        assert list((town / "scratch").iterdir())
        os.kill(os.getpid(), number)
        signal.sigtimedwait([], 1)
        raise AssertionError

    before = signal.getsignal(number)
    # these tests may have been started with nohup, or by a script with &: a run respects what they ignore
    if before is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(execute, "write_packet", sent)
            return run(town)
    finally:
        signal.signal(number, before)


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def complaint(said: str) -> str:
    """What was said after the lines of the steps, without a traceback and without an unexpected error."""
    assert "Traceback" not in said
    assert "unexpected" not in said
    assert "fix: " in said
    return re.sub(r"^ *[\d.]+ s  .*\n", "", said, flags=re.MULTILINE)


@pytest.mark.parametrize("name", HEEDED)
def test_a_signal_is_told_and_the_run_goes_on(
    name: str, town: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    number = getattr(signal, name)
    assert interrupted(town, monkeypatch, number) == 128 + number
    told = complaint(capsys.readouterr().err)
    assert told.startswith("interrupted" if name == "SIGINT" else f"stopped by {name}")
    assert "run the same command again" in told
    assert not list((town / "scratch").iterdir())
    assert (town / "packet.part" / "state" / "data.json").exists()
    assert not (town / "packet.lock").exists()
    assert run(town) == 0


def test_a_signal_that_comes_while_an_object_is_cleaned_up_is_not_lost(
    town: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Closing:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 1)

    def closing(*_: object, **__: object) -> None:
        Closing()
        signal.sigtimedwait([], 1)
        raise AssertionError

    monkeypatch.setattr(execute, "write_packet", closing)
    assert run(town) == 143
    assert complaint(capsys.readouterr().err).startswith("stopped by SIGTERM")


def test_an_error_on_the_way_out_does_not_hide_the_signal(
    town: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Java, which the same signal has ended, is asked to stop."""

    def lost(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            signal.sigtimedwait([], 1)
        except process.StoppedBySignal as stopped:
            raise KeyError("x") from stopped

    monkeypatch.setattr(execute, "write_packet", lost)
    assert run(town) == 143
    assert complaint(capsys.readouterr().err).startswith("stopped by SIGTERM")


def test_a_cluster_that_fails_leaves_a_run_that_goes_on(
    town: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise translate_error(ConnectionRefusedError("the value 7391"))

    (town / "k").unlink()  # the run makes its key
    with monkeypatch.context() as patched:
        patched.setattr(execute, "write_packet", fails)
        assert run(town) == 74
    assert "7391" not in complaint(capsys.readouterr().err)
    assert (town / "packet.part" / "state" / "data.json").exists()
    assert run(town) == 0


def test_what_nohup_decided_is_left() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process.install_handlers()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


@contextmanager
def limited(kind: int, number: int) -> Iterator[None]:
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (number, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)


def test_a_limit_on_the_size_of_files(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(town, "whole") == 0
    with limited(resource.RLIMIT_FSIZE, 4096):
        assert run(town) == 74
    assert "ulimit -f" in complaint(capsys.readouterr().err)
    assert run(town) == 0
    assert files(town / "packet") == files(town / "whole")


@contextmanager
def few_files(free: int) -> Iterator[None]:
    """Only that many more files can be opened."""
    most = 1 + free + max(int(path.name) for path in Path("/dev/fd").iterdir() if path.name.isdigit())
    held: list[int] = []
    with limited(resource.RLIMIT_NOFILE, most):
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(free):
            os.close(held.pop())
        try:
            yield
        finally:
            for one in held:
                os.close(one)


def test_a_limit_on_open_files(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(town, "whole") == 0
    with few_files(3):
        assert run(town) == 74
    assert "ulimit -n" in complaint(capsys.readouterr().err)
    assert run(town) == 0


def test_too_few_addresses_for_the_libraries(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10**9, resource.RLIM_INFINITY))
    assert main(["run", "plan.toml", "--out", "packet"]) == 2
    assert "ulimit -v unlimited" in complaint(capsys.readouterr().err)


def test_a_panic_of_a_library_shows_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class PanicException(BaseException):
        pass

    def fails(_: object) -> int:
        raise PanicException('Os { code: 24, kind: Uncategorized, message: "Too many open files" }')

    monkeypatch.delenv("STIRRED_TRACEBACK", raising=False)
    monkeypatch.setattr("stirred.cli.budget.run", fails)
    assert main(["budget", "--stratum", "10", "--rate", "1/2"]) == 74
    assert "ulimit -n" in complaint(capsys.readouterr().err)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def folder(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.mkdir()


def file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"something")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("run", cut),
        ("run", emptied),
        ("run", folder),
        ("state/data.json", emptied),
        ("state/data.json", folder),
        ("state/data.json.seal", emptied),
        ("state", file),
        ("public/data/household.parquet", cut),
    ],
)
def test_a_damaged_state_is_refused_with_the_way_out(
    name: str,
    change: Callable[[Path], None],
    stopped: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    part = stopped / "packet.part"
    shutil.rmtree(part)
    shutil.copytree(stopped / "left", part)
    change(part / name)
    before = files(part)
    assert run(stopped) == 2
    assert "delete the folder" in complaint(capsys.readouterr().err)
    assert files(part) == before


def test_every_exit_code_is_documented() -> None:
    page = Path(stirred.__file__).parents[2] / "docs" / "reference" / "exit-codes.md"
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {int(code): text for code, text in rows} == process.ERROR_CODES
