"""A run that is killed while it deletes leaves no half of anything that the next run would take for a forgery."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from small_census import CENSUS, households
from stirred.chance import Key, seals
from stirred.cli.options import load_key
from stirred.engine.scratch import (
    LOCK_FILE,
    SCRATCH_PREFIX,
    STALE_SECONDS,
    UNNAMED_PREFIX,
    ScratchFolder,
    remove_stale,
)
from stirred.errors import InputError
from stirred.mechanisms.topdown.run.task import Checkpoint
from stirred.publish import load, run
from stirred.publish.composition import promise

KEY = Key.for_tests(3)
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state"]
swap = ["county"]
rate = "1/3"
[publish]
microdata = false
[[table]]
name = "county-tenure"
by = ["county", "tenure"]
"""


@pytest.fixture
def town(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "household.csv").write_text(households(60))
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


@contextmanager
def killed_deleting(monkeypatch: pytest.MonkeyPatch, first: str, *others: str) -> Iterator[None]:
    """In a folder that has these files, one is deleted, and then the process ends."""
    real: Callable[..., None] = os.unlink

    def last(path: str | Path, **named: int) -> None:
        if Path(path).name in (first, *others):
            place = Path(path).with_name(first) if not named else first
            real(place, **named)
            raise KeyboardInterrupt
        real(path, **named)

    monkeypatch.setattr(os, "unlink", last)
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        monkeypatch.undo()
    pytest.fail("nothing of that name was deleted")


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize(
    "names", [("household.parquet",), ("data.json", "data.json.seal", "run")], ids=["records", "state"]
)
def test_a_run_that_is_killed_while_it_deletes_is_taken_up(
    names: tuple[str, ...], town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(load(town / "plan.toml"), town / "whole", key=KEY)
    with killed_deleting(monkeypatch, *names):
        run(load(town / "plan.toml"), town / "packet", key=KEY)
    assert (town / "packet.part").exists()
    assert files(run(load(town / "plan.toml"), town / "packet", key=KEY).folder) == files(whole.folder)
    assert not (town / "packet.part").exists()


def checkpoint(folder: Path) -> Checkpoint:
    return Checkpoint(folder / "levels", "a run", KEY)


def test_finished_levels_are_deleted_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = checkpoint(tmp_path)
    levels.begin()
    kept = levels.open_folder()
    assert kept is not None
    kept.keep("level-1.parquet", b"numbers")
    with killed_deleting(monkeypatch, "level-1.parquet", "level-1.parquet.seal", "run"):
        levels.finish()
    again = checkpoint(tmp_path)
    again.begin()
    assert again.load(1) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["levels"]


def test_half_an_identity_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cut(path: Path, content: bytes) -> None:
        path.write_bytes(content[:3])
        raise KeyboardInterrupt

    monkeypatch.setattr(seals, "_write_whole", cut)
    with pytest.raises(KeyboardInterrupt):
        checkpoint(tmp_path).begin()
    monkeypatch.undo()
    checkpoint(tmp_path).begin()


def test_a_plan_whose_promise_was_being_stated_leaves_nothing_for_ever(
    town: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it leaves has the name by which the next run knows it."""
    monkeypatch.setattr(tempfile, "tempdir", str(town))
    plan = load(town / "plan.toml")
    seen: list[set[str]] = []

    def looked(*_: object) -> None:
        seen.append({path.name for path in town.iterdir() if path.is_dir()})

    monkeypatch.setattr(type(plan.mechanisms[0]), "refuse", looked)
    promise(plan, plan.checked_census())
    ((left,),) = seen
    assert left.startswith(SCRATCH_PREFIX)
    assert not [path for path in town.iterdir() if path.is_dir()]


def test_the_lock_of_scratch_is_deleted_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its lock a folder that still has files would be stale for ever."""
    folder = ScratchFolder(tmp_path)
    for number in range(20):
        (folder.path / f"{number}.sealed").write_bytes(b"noise")
    with killed_deleting(monkeypatch, LOCK_FILE):
        folder.remove()
    (rest,) = tmp_path.iterdir()
    assert not list(rest.iterdir())
    long_ago = rest.stat().st_mtime - STALE_SECONDS - 1
    os.utime(rest, (long_ago, long_ago))
    remove_stale(tmp_path)
    assert not list(tmp_path.iterdir())


def test_scratch_of_a_process_that_was_killed_before_it_had_a_lock(tmp_path: Path) -> None:
    old, new = tmp_path / f"{UNNAMED_PREFIX}old", tmp_path / f"{UNNAMED_PREFIX}new"
    for folder in (old, new):
        folder.mkdir()
        (folder / LOCK_FILE).touch()
    long_ago = old.stat().st_mtime - STALE_SECONDS - 1
    os.utime(old, (long_ago, long_ago))
    assert remove_stale(tmp_path) == 1
    assert [path.name for path in tmp_path.iterdir()] == [new.name]
    assert SCRATCH_PREFIX != UNNAMED_PREFIX


def test_an_empty_key_is_that_of_a_run_that_had_not_begun(tmp_path: Path) -> None:
    place = tmp_path / "packet.key"
    place.touch(mode=0o600)
    load_key(tmp_path / "packet", None)
    assert place.stat().st_size
    (tmp_path / "other.part").mkdir()
    (tmp_path / "other.key").touch(mode=0o600)
    with pytest.raises(InputError):
        load_key(tmp_path / "other", None)
