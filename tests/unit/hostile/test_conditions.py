"""A machine that does not do as asked: each case ends with one clear error, not with 0, and leaves nothing behind."""

import itertools
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from small_census import CENSUS, households
from stirred import Plan
from stirred.chance import Key
from stirred.cli.main import main
from stirred.publish import load, run, verify
from stirred.publish.run import execute

KEY = Key.for_tests(3)
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
"""
INPUTS = {"census.toml", "household.csv", "household.parquet", "plan.toml"}


@pytest.fixture
def town(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "household.csv").write_text(households(600))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def ordered(town: Path, out: Path | None = None) -> list[str]:
    return ["run", str(town / "plan.toml"), "--out", str(out or town / "packet")]


def complaint(said: str) -> str:
    """The one error of a command: what, why and fix, and no trace of the program."""
    assert said.count("error: ") == 1, said
    assert "\n  why: " in said
    assert "\n  fix: " in said
    assert "Traceback" not in said
    return said[said.index("error: ") :]


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - INPUTS


def test_too_little_memory_for_the_libraries(town: Path) -> None:
    """A real bound of the system on what a process may reserve."""

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1_200_000_000, 1_200_000_000))

    words = [sys.executable, "-m", "stirred", *ordered(town)]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=bound, check=False)
    assert done.returncode == 2
    assert "ulimit -v unlimited" in complaint(done.stderr)
    assert left(town) == set()


def test_memory_that_ends_during_a_run(
    town: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as once:
        once.setattr(execute, "write_packet", exhausted)
        code = main(ordered(town))
    assert code == 74
    complaint(capsys.readouterr().err)
    assert not (town / "packet").exists()
    assert main(ordered(town)) == 0  # the same command goes on
    assert verify(town / "packet") == []
    assert left(town) == {"packet", "packet.key", "packet.log"}


@pytest.fixture
def closed_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder to which nothing can be written: a disk that is read-only, or closed by its mode where we are no root."""
    place = tmp_path / "closed"
    place.mkdir()
    mount = shutil.which("mount")
    if os.geteuid():
        place.chmod(0o500)
        yield place
        place.chmod(0o700)
        return
    options = [str(mount), "-t", "tmpfs", "-o", "ro", "tmpfs", str(place)]
    if mount is None or subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("no rights to mount a read-only disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_folder_that_is_read_only(
    town: Path, closed_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = town.parent / f"{town.name}.key"
    KEY.save(key)
    for more in ([], ["--key", str(key)]):
        assert main([*ordered(town, closed_disk / "packet"), *more]) in (2, 74)
        complaint(capsys.readouterr().err)
    assert list(closed_disk.iterdir()) == []
    assert left(town) == {"closed"}


@pytest.mark.parametrize("name", ["household.csv", "household.parquet"])
@pytest.mark.parametrize("share", [0, 0.5])
def test_a_file_that_is_cut_after_it_was_checked(
    name: str, share: float, town: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if name.endswith(".parquet"):
        pl.read_csv(town / "household.csv").write_parquet(town / name)
        (town / "household.csv").unlink()
        (town / "census.toml").write_text(CENSUS.replace("household.csv", name))
    checked: Callable[..., Any] = Plan.checked_census

    def cut(*given: Any, **named: Any) -> Any:
        found = checked(*given, **named)
        os.truncate(town / name, int((town / name).stat().st_size * share))
        return found

    monkeypatch.setattr(Plan, "checked_census", cut)
    assert main(ordered(town)) in (1, 2)
    complaint(capsys.readouterr().err)
    assert not (town / "packet").exists()
    assert left(town) <= {"packet.key", "packet.log"}  # as after every refusal of a run that had begun
    assert not (town / "packet.part").exists()


def test_a_clock_that_jumps_changes_no_byte(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def files(folder: Path) -> dict[str, bytes]:
        return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    whole = run(load(town / "plan.toml"), town / "whole", key=KEY)
    chance, real = random.Random(39), time.time
    asked = itertools.count()

    def jumping() -> float:
        next(asked)
        return chance.choice((0.0, 1.0, real() - 1e8, real(), real() + 1e8, 4e9))

    monkeypatch.setattr(time, "time", jumping)
    made = run(load(town / "plan.toml"), town / "packet", key=KEY)
    monkeypatch.undo()
    assert files(made.folder) == files(whole.folder)
    assert verify(made.folder) == []
    assert left(town) == {"whole", "packet"}


@pytest.mark.slow
def test_two_runs_into_one_folder(town: Path) -> None:
    """Two commands at once: one makes the packet, the other is told which process does."""
    KEY.save(town / "office.key")
    words = [sys.executable, "-m", "stirred", *ordered(town), "--key", str(town / "office.key")]
    both = [subprocess.Popen(words, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [one.communicate(timeout=120)[1] for one in both]
    codes = [one.returncode for one in both]
    assert sorted(codes)[0] == 0
    assert sorted(codes)[1] == 2
    complaint(said[codes.index(2)])
    assert verify(town / "packet") == []
    assert left(town) == {"packet", "packet.log", "office.key"}
