"""A full disk and missing folders: one message, a documented exit code, and nothing that a person must delete."""

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import stirred as st
from faulty.doors import Desk
from faulty.sound import Files
from stirred.cli.main import main
from stirred.publish.packet import Packet

VERBS = ("swap", "run")


def desk(folder: Path, out: Path | None = None) -> Desk:
    """The sound census, and a folder for what is made of it."""
    for name in ("office", "out"):
        (folder / name).mkdir()
    return Desk(Files.sound(folder / "office"), out or folder / "out")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("verb", VERBS)
def test_a_run_that_found_the_disk_full_goes_on_when_there_is_room(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = desk(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "household.parquet")

    with monkeypatch.context() as patched:
        patched.setattr(pq.ParquetWriter, "write_table", full)
        stopped = place.tried(verb)
    assert stopped.code == 74
    assert "No space left on device" in stopped.said
    assert "\n  fix: free some space" in stopped.said
    assert "Traceback" not in stopped.said
    assert place.tried(verb).code == 0
    assert names(place.out) == {"packet", "packet.key", "packet.log"}
    (tmp_path / "again").mkdir()
    again = Desk(place.files, tmp_path / "again", place.out / "packet.key")
    assert again.tried(verb).code == 0
    assert Packet(again.packet).contents() == Packet(place.packet).contents()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 24 KB, where the system lets us have one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = shutil.which("mount")
    options = [str(mount), "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(disk)]
    if mount is None or subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("no rights to mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("verb", VERBS)
def test_a_disk_that_is_really_full(verb: str, tmp_path: Path, small_disk: Path) -> None:
    place = desk(tmp_path, small_disk)
    stopped = place.tried(verb)
    assert (stopped.code, "No space left on device" in stopped.said) == (74, True)
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    assert place.tried(verb).code == 0
    assert names(small_disk) == {"packet", "packet.key", "packet.log"}


def test_a_name_that_the_system_finds_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", "a" * 300 + "/census.toml"]) == 74
    assert (
        "\n  fix: give the files and folders that the command names shorter names" in capsys.readouterr().err
    )


def test_half_a_key_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fdopen", full)
    with pytest.raises(OSError, match="No space left"):
        st.Key.for_tests(1).save(tmp_path / "k")
    assert not names(tmp_path)


MISSING = {
    "the folder of the packet": ("swap", "--out", "nowhere/packet"),
    "the folder of the plan's packet": ("run", "--out", "nowhere/packet"),
    "the folder of the key": ("swap", "--out", "out/packet", "--key", "nowhere/k"),
    "the folder of the plan's key": ("run", "--out", "out/packet", "--key", "nowhere/k"),
    "the census": ("swap", "nowhere/census.toml", "--out", "out/packet"),
    "the plan": ("run", "nowhere/plan.toml", "--out", "out/packet"),
    "the census of a check": ("data", "check", "nowhere/census.toml"),
    "a folder in place of a plan": ("run", "office", "--out", "out/packet"),
}


@pytest.mark.parametrize("words", MISSING.values(), ids=MISSING)
def test_what_is_missing_is_named_and_nothing_is_made(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from faulty.sound import SWAP

    place = desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    verb, *rest = words
    if rest[0].startswith("--"):
        rest = [f"office/{'census' if verb == 'swap' else 'plan'}.toml", *rest]
    before = place.listing()
    assert main([verb, *rest, *(SWAP if verb == "swap" else ())]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert "\n  why: " in said
    assert "\n  fix: " in said
    assert place.listing() == before
    assert names(tmp_path) == {"office", "out"}


def test_the_module_gives_the_same_message_and_exit_code(tmp_path: Path) -> None:
    place = desk(tmp_path)
    place.files.put("household", "krov", "X7391")
    done = subprocess.run(
        [sys.executable, "-m", "stirred", "data", "check", "census.toml"],
        cwd=place.files.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "outside the listed levels" in " ".join(done.stdout.split())
    assert "7391" not in done.stdout + done.stderr
    assert all(
        re.fullmatch(r" *[0-9.]+ s  [a-z ]+( \d+ %)?", line) for line in done.stderr.splitlines()
    )  # progress
