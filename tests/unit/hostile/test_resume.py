"""An interrupted run is taken up only as it was left, by one process at a time, on the files it began with."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from small_census import CENSUS, households
from stirred.chance import Key
from stirred.cli.main import main
from stirred.errors import ForgedStateError, InputError, PrivacyError
from stirred.publish import load, run, verify
from stirred.publish.run import execute
from stirred.publish.run.part import hold_lock

KEY = Key.for_tests(3)
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state"]
swap = ["county"]
rate = "1/3"
[publish]
formats = ["parquet", "csv"]
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


@pytest.fixture
def part(town: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that was interrupted when its mechanism had finished."""

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(execute, "write_packet", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(load(town / "plan.toml"), town / "packet", key=KEY)
    return town / "packet.part"


def again(town: Path) -> Path:
    return run(load(town / "plan.toml"), town / "packet", key=KEY).folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_what_was_left_is_taken_up(part: Path, town: Path) -> None:
    whole = run(load(town / "plan.toml"), town / "whole", key=KEY)
    assert files(again(town)) == files(whole.folder)
    assert not part.exists()
    assert not list(town.glob("*.lock"))


def edited(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def counted(path: Path) -> None:
    told = json.loads(path.read_text())
    told["checks"][0]["numbers"] += 1
    path.write_text(json.dumps(told))


def linked(path: Path) -> None:
    moved = path.with_name("moved")
    path.rename(moved)
    path.symlink_to(moved)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("public/data/household.parquet", edited),
        ("public/data/household.parquet", flipped),
        ("public/data/household.parquet", Path.unlink),
        ("public/data/household.parquet", linked),
        ("state/data.json", counted),
        ("state/data.json", flipped),
        ("state/data.json", cut),
        ("state/data.json", linked),
        ("state/data.json.seal", flipped),
        ("state/data.json.seal", cut),
    ],
)
def test_a_changed_state_is_refused_and_left_for_a_person(
    name: str, change: Callable[[Path], None], part: Path, town: Path
) -> None:
    change(part / name)
    with pytest.raises(ForgedStateError, match="was changed"):
        again(town)
    assert part.exists()
    assert not (town / "packet").exists()


@pytest.mark.parametrize("place", ["public", "public/data", "public/data/more", "."])
def test_files_that_somebody_dropped_are_not_sealed(place: str, part: Path, town: Path) -> None:
    (part / place).mkdir(exist_ok=True)
    shutil.copy(town / "household.csv", part / place / "raw.csv")
    (part / place / "link").symlink_to(town / "household.csv")
    packet = again(town)
    assert not [path for path in packet.rglob("*") if path.name in ("raw.csv", "link")]
    assert not verify(packet)


def test_a_census_that_changed_is_noticed_by_its_content(part: Path, town: Path) -> None:
    path = town / "household.csv"
    before = path.stat()
    path.write_text(path.read_text().replace(",o\n", ",r\n", 1))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    with pytest.raises(PrivacyError, match="of something else"):
        again(town)


def test_a_schema_that_changed_is_noticed(part: Path, town: Path) -> None:
    (town / "census.toml").write_text(CENSUS.replace("1..9", "1..8"))
    with pytest.raises(PrivacyError, match="of something else"):
        again(town)


def test_a_census_that_changes_during_the_run_is_noticed(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = execute.write_packet

    def changing(*given: Any, **named: Any) -> None:
        write(*given, **named)
        path = town / "household.csv"
        path.write_text(path.read_text().replace(",o\n", ",r\n", 1))

    monkeypatch.setattr(execute, "write_packet", changing)
    with pytest.raises(PrivacyError, match="changed during the run"):
        again(town)
    assert {path.name for path in town.iterdir()} == {"census.toml", "household.csv", "plan.toml"}


def test_one_run_for_one_output(town: Path) -> None:
    code = "import sys; from pathlib import Path; from stirred.publish.run.part import hold_lock\n"
    code += "with hold_lock(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(town / "packet")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(InputError, match=f"process {other.pid}"):
        again(town)
    assert main(["run", str(town / "plan.toml"), "--out", str(town / "packet")]) != 0
    assert not (town / "packet.key").exists()
    other.communicate()
    again(town)


def test_a_lock_that_a_killed_run_left_is_taken(town: Path) -> None:
    (town / "packet.lock").write_text("process 1 on elsewhere")
    with hold_lock(town / "packet"):
        assert str(os.getpid()) in (town / "packet.lock").read_text()
    assert not (town / "packet.lock").exists()


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_what_is_internal_is_closed_whatever_the_mask(mask: int, town: Path) -> None:
    before = os.umask(mask)
    try:
        command = ["run", str(town / "plan.toml"), "--out", str(town / "packet")]
        assert main(command) == 0
    finally:
        os.umask(before)

    def mode(name: str) -> int:
        return stat.S_IMODE((town / name).stat().st_mode)

    assert mode("packet/internal") == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in (town / "packet" / "internal").iterdir()} == {0o600}
    assert mode("packet/public") == 0o777 & ~mask
    assert mode("packet") == 0o777 & ~mask
    assert mode("packet/public/data/household.parquet") == 0o666 & ~mask
    assert mode("packet.log") == 0o600
    assert mode("packet.key") == 0o600
