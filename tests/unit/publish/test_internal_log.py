"""Who was swapped with whom: in the internal part of a packet alone, also where a run was interrupted."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stirred.census import read
from stirred.chance import Key
from stirred.errors import ForgedStateError
from stirred.mechanisms.swap import swap_log
from stirred.publish import load, run, verify
from stirred.publish.run import execute

KEY = Key.for_tests(17)
MARK = "HIDDENHOME"
CENSUS = """[geography]
spine = ["state", "county"]
[record.household]
files = ["household.csv"]
id = "hid"
"""
TARGETED = """name = "targeted-swapping"
hierarchy = ["county"]
similar = [["state", "size"]]
swaprate = "1/3"
"""
LIKE_2010 = """name = "swapping-2010"
swap = ["county"]
equal = ["size"]
rate = "1/3"
"""


def written(folder: Path, mechanism: str, more: str = "") -> Path:
    rows = [
        f"{MARK}{i:04d},s{i % 2},c{i % 2}{i // 6 % 3},{i % 3 + 1},{'own' if i % 5 else 'rent'}"
        for i in range(120)
    ]
    (folder / "census.toml").write_text(CENSUS)
    (folder / "household.csv").write_text("\n".join(["hid,state,county,size,tenure", *rows]) + "\n")
    (folder / "plan.toml").write_text(
        f'title = "t"\ncensus = "census.toml"\n[[mechanism]]\n{mechanism}without_guarantee = "a test"\n'
        f'[publish]\nformats = ["parquet", "csv"]\n{more}[[table]]\nname = "t"\nby = ["county", "tenure"]\n'
    )
    return folder / "plan.toml"


def shown(folder: Path) -> str:
    """All that is in the files of a folder, Parquet decoded too."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        found.append(path.read_bytes().decode("latin-1"))
        if path.suffix == ".parquet":
            found.append(str(pq.read_table(path).to_pydict()))
    return "\n".join(found)


@pytest.mark.parametrize("mechanism", [TARGETED, LIKE_2010], ids=["targeted", "2010"])
def test_the_log_lies_in_the_internal_part_alone(mechanism: str, tmp_path: Path) -> None:
    plan = load(written(tmp_path, mechanism))
    packet = run(plan, tmp_path / "packet", key=KEY).folder
    swaps = pq.read_table(packet / "internal/data/swaps.parquet")
    log = swap_log(plan.mechanisms[0], read(tmp_path / "census.toml"), key=KEY)  # type: ignore[arg-type]
    assert swaps.num_rows == log.moved > 30
    assert swaps.to_pylist() == log.pairs.to_pylist()
    figures = pq.read_table(packet / "internal/data/figures.parquet").to_pylist()
    assert {"figure": "households moved", "of": "", "number": log.moved} in figures
    assert MARK not in shown(packet / "public")
    assert "swaps" not in {path.stem for path in (packet / "public").rglob("*")}
    verify(packet)


def test_without_the_internal_part_no_log_is_written(tmp_path: Path) -> None:
    plan = load(written(tmp_path, TARGETED))
    packet = run(plan, tmp_path / "packet", key=KEY, internal=False).folder
    assert not (packet / "internal").exists()
    assert MARK not in shown(packet)


def test_the_log_needs_no_internal_report(tmp_path: Path) -> None:
    plan = load(written(tmp_path, TARGETED, "[assess]\nutility = false\n"))
    inside = run(plan, tmp_path / "packet", key=KEY).folder / "internal"
    assert (inside / "data/swaps.parquet").exists()
    assert not (inside / "report.html").exists()
    assert inside.stat().st_mode & 0o777 == 0o700


def test_an_interrupted_run_keeps_the_log_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load(written(tmp_path, TARGETED))
    whole = run(plan, tmp_path / "whole", key=KEY).folder

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(execute, "write_packet", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(plan, tmp_path / "packet", key=KEY)
    left = tmp_path / "packet.part"
    kept = list((left / "state").glob("*.internal"))
    assert len(kept) == 2
    assert MARK not in shown(left)
    taken_up = run(plan, tmp_path / "packet", key=KEY).folder
    for name in ("swaps", "figures"):
        file = f"internal/data/{name}.parquet"
        assert (taken_up / file).read_bytes() == (whole / file).read_bytes()


def test_a_changed_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = load(written(tmp_path, TARGETED))
    with monkeypatch.context() as once:
        once.setattr(execute, "write_packet", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(plan, tmp_path / "packet", key=KEY)
    kept = next((tmp_path / "packet.part/state").glob("*swaps.internal"))
    kept.write_bytes(kept.read_bytes()[:-1] + b"\0")
    with pytest.raises(ForgedStateError):
        run(plan, tmp_path / "packet", key=KEY)


def test_the_log_is_for_its_owner_alone(tmp_path: Path) -> None:
    plan = load(written(tmp_path, TARGETED))
    inside = run(plan, tmp_path / "packet", key=KEY).folder / "internal"
    files = [path for path in inside.rglob("*") if path.is_file()]
    assert {"swaps.parquet", "figures.parquet"} <= {path.name for path in files}
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert inside.stat().st_mode & 0o777 == 0o700
