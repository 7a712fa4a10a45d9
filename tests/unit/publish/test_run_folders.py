"""A plan whose records come as folders of files, as Spark writes them: the same packet, also when it was interrupted."""

from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

import small_census
from small_census import households
from stirred.chance import Key
from stirred.engine import Local
from stirred.engine.local import LocalParts
from stirred.mechanisms.swap import PermutationSwapping
from stirred.publish import load, run, verify
from stirred.publish.plan import TablePlan

PLAN = """title = "folders"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county"]
rate = "1/20"
[[table]]
name = "tenure-by-county"
by = ["county", "tenure"]
"""
CENSUS = small_census.CENSUS.replace("household.csv", "FILE")
ROWS = households(60)


class Parted(Local):
    """This machine, where nothing fits."""

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return 3


def in_a_folder(
    self: LocalParts, folder: Path, name: str, _steps: object = None, **_: object
) -> pads.Dataset:
    """As executors write, one of which was stopped halfway."""
    path = folder / f"{name}.parquet"
    path.mkdir()
    for part in range(self.number):
        pq.write_table(self.one(part), path / f"part-{part}.parquet")
    (path / ".half").write_bytes(b"PAR1")
    return pads.dataset(sorted(str(file) for file in path.glob("*.parquet")))


def test_a_packet_holds_the_files_and_nothing_of_how_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "household.csv").write_text(ROWS)
    # a name from the root, as on a shared file system
    (tmp_path / "census.toml").write_text(CENSUS.replace("FILE", str(tmp_path / "household.csv")))
    (tmp_path / "plan.toml").write_text(PLAN)
    plan, key = load(tmp_path / "plan.toml"), Key.for_tests(5)
    here = run(plan, tmp_path / "here", key=key, engine=Local())
    monkeypatch.setattr(LocalParts, "write", in_a_folder)

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(TablePlan, "tabulate", stopped)
        with pytest.raises(KeyboardInterrupt):
            run(plan, tmp_path / "there", key=key, engine=Parted())
    monkeypatch.setattr(PermutationSwapping, "release", stopped)  # not run again
    there = run(plan, tmp_path / "there", key=key, engine=Parted())
    assert not verify(there.folder)
    assert here.contents() == there.contents()
    data = there.folder / "public" / "data"
    assert [path.name for path in data.iterdir()] == ["household.parquet"]
    assert sorted(path.name for path in (data / "household.parquet").iterdir()) == [
        f"part-{i:05d}.parquet" for i in range(3)
    ]
