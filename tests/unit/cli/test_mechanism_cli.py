"""A mechanism as a command, called from a folder that is not the census's."""

import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from contract.registry import WORKLOAD
from contract.test_contract import census
from contract.test_third_party import TOML
from stirred.chance import Key
from stirred.cli.main import main
from stirred.publish import load, run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = census(120)
    (tmp_path / "census").mkdir()
    for name in ("household", "person"):
        pq.write_table(data.table(name), tmp_path / "census" / f"{name}.parquet")
    (tmp_path / "census" / "census.toml").write_text(TOML)
    (tmp_path / "census" / "town.toml").write_text(TOML)
    (tmp_path / "workload.toml").write_text(WORKLOAD)
    Key.for_tests(5).save(tmp_path / "test.key")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_paths_in_the_packet_start_at_the_census(folder: Path) -> None:
    words = ["topdown", "census", "--workload", "workload.toml", "--key", "test.key", "--json"]
    assert main([*words, "--out", "packet"]) == 0
    text = (folder / "packet/public/plan.toml").read_text()
    plan = tomllib.loads(text)
    assert plan["census"] == "census.toml"
    assert plan["mechanism"][0]["workload"] == "../workload.toml"
    assert str(folder) not in text
    (folder / "census" / "plan.toml").write_text(text)
    again = run(load(folder / "census" / "plan.toml"), folder / "again", key=Key.for_tests(5))
    mine, theirs = (
        {path.name: path.read_bytes() for path in (packet / "public").rglob("*") if path.is_file()}
        for packet in (folder / "packet", again.folder)
    )
    assert mine == theirs


def test_the_plan_names_the_file_of_the_census(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["exact-margins", "census/town.toml", "--rows", "county", "--columns", "tenure"]
    words += ["--rho-squared", "1/2", "--key", "test.key"]
    assert main([*words, "--out", "packet"]) == 0
    told = capsys.readouterr().out
    assert "kept: households by county (3 numbers)" in told
    assert tomllib.loads((folder / "packet/public/plan.toml").read_text())["census"] == "town.toml"


def test_the_promise_is_shown_where_a_run_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["swap", "census", "--match", "state", "size", "--swap", "county", "tract", "--rate", "1"]
    assert main([*words, "--check"]) == 0
    assert "household" in capsys.readouterr().out
    assert main([*words, "--out", "packet"]) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["census", "test.key", "workload.toml"]


def test_a_method_is_a_mechanism_with_its_own_flags(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert folder.is_dir()
    own = ["--hierarchy", "county", "tract", "--similar", "state", "size", "--swaprate", "1/5", "--check"]
    assert main(["swap", "census", "--method", "targeted", *own]) == 0
    first = capsys.readouterr().out
    assert main(["targeted-swapping", "census", *own]) == 0
    assert capsys.readouterr().out == first
    assert main(["swap", "census", "--method=targetted", "--check"]) == 2
    assert "did you mean targeted" in capsys.readouterr().err
