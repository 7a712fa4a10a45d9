"""What programs read: one document on standard output, and on standard error one JSON object a line."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from stirred.cli.main import main

CENSUS = """
name = "town"
[geography]
spine = ["region", "district"]
[record.household]
files = ["household.csv"]
id = "hid"
size = "size"
[record.household.variables]
size = "1..4"
tenure = {levels = ["rent", "own", "other"], label = "How the home is held", labels = {own = "owned"}}
"""
PLAN = """
title = "Homes"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["region", "size"]
swap = ["district"]
rate = "1/10"
[[table]]
name = "tenure"
by = ["district", "tenure"]
[publish]
formats = ["parquet", "csv"]
"""

ORDER = ["tenure", "hid", "size", "district", "region"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    homes = range(400)
    pl.DataFrame(
        {
            "tenure": ["own" if home % 3 else "rent" for home in homes],
            "hid": list(homes),
            "size": [home % 4 + 1 for home in homes],
            "district": [f"{'NS'[home // 200]}{home // 100}" for home in homes],
            "region": ["NS"[home // 200] for home in homes],
        }
    ).write_csv(tmp_path / "household.csv")
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_program_runs_a_plan_and_reads_all_that_it_needs(folder: Path) -> None:
    words = ["run", "plan.toml", "--out", "packet", "--json", "--progress", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "stirred", *words], capture_output=True, cwd=folder, check=True
    )
    made, told = json.loads(done.stdout), lines(done.stderr.decode())
    assert {"packet": "packet", "private": True, "internal": "packet/internal"}.items() <= made.items()
    seconds = [float(str(event["seconds"])) for event in told if event["event"] == "progress"]
    assert seconds == sorted(seconds)  # of one clock, from the check to the report
    assert "household" in made["specification"]
    assert made["epsilon"]
    assert made["files"]["spec.json"] == "packet/public/spec.json"
    assert all((folder / path).is_file() for path in made["files"].values())
    (records,), (table,) = made["data"], made["tables"]
    assert (records["mechanism"], records["record_type"]) == ("permutation-swapping", "household")
    assert (table["name"], table["record_type"]) == ("tenure", "household")
    assert (
        pl.read_csv(folder / records["csv"]).height
        == pl.read_parquet(folder / records["parquet"]).height
        == 400
    )
    assert pl.read_csv(folder / table["csv"]).height == 8  # those of the released records
    assert {check["kept"] for check in made["checks"]} == {True}
    assert all({"mechanism", "name", "finding", "accepted"} <= guard.keys() for guard in made["guards"])
    described = json.loads((folder / made["files"]["datapackage.json"]).read_text())
    homes, counted = described["resources"]
    assert (homes["path"], homes["recordType"], homes["format"]) == ("data/household.csv", "household", "csv")
    columns = {field["name"]: field for field in homes["schema"]["fields"]}
    # in the order of the file that was read; of a level that no record has, and not of places, whose levels are open
    assert list(columns) == pl.read_parquet(folder / records["parquet"]).columns == ORDER
    assert columns["tenure"] == {
        "name": "tenure",
        "type": "string",
        "title": "How the home is held",
        "categories": [{"value": "rent"}, {"value": "own", "label": "owned"}, {"value": "other"}],
        "constraints": {"required": True},
    }
    assert columns["size"]["constraints"] == {"required": True, "minimum": 1, "maximum": 4}
    assert columns["district"] == {"name": "district", "type": "string"}
    assert [field["name"] for field in counted["schema"]["fields"]] == pl.read_csv(
        folder / table["csv"]
    ).columns
    receipt = json.loads((folder / "packet/public/receipt.json").read_text())
    assert set(receipt["mechanisms"][0]["notes"]) <= set(made["notes"])
    events = [line["event"] for line in told]
    assert set(events) == {"message", "progress"}  # the message tells where the key lies
    steps = [line for line in told if line["event"] == "progress"]
    assert {"step", "state", "seconds"} <= steps[0].keys()
    assert steps[-1]["state"] == "done"


def test_every_error_is_a_document_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*words: str) -> dict[str, object]:
        assert main([*words, "--json"]) == 2
        out, err = capsys.readouterr()
        (told,) = lines(err)
        assert out == ""
        assert (told["event"], told["code"]) == ("error", 2)
        assert told["what"]
        assert told["why"]
        assert told["fix"]
        return told

    (folder / "plan.toml").write_text(PLAN.replace("tenure", "tenur"))
    assert refused("run", "plan.toml", "--out", "packet")["kind"] == "PlanError"
    assert refused("run", "nowhere.toml", "--out", "packet")["kind"] == "PlanError"
    assert "rnu" in str(refused("rnu", "plan.toml")["what"])  # no verb
    assert "--out" in str(refused("run", "plan.toml")["what"])  # a flag is missing
    assert refused("spec", "show", "no-such-thing")["fix"]
    assert refused("packet", "lookup", "census.toml", "tenure")["what"]


def test_faults_and_interruptions_are_documents(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, code in [
        (ZeroDivisionError("a value"), 70),
        (KeyboardInterrupt(), 130),
        (OSError(28, "no space"), 74),
    ]:
        monkeypatch.setattr("stirred.cli.main.respell", lambda words, e=error: (_ for _ in ()).throw(e))
        assert main(["budget", "--json"]) == code
        (told,) = lines(capsys.readouterr().err)
        assert (told["event"], told["code"]) == ("error", code)
        assert "a value" not in json.dumps(told)


def test_people_still_read_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "nowhere.toml", "--out", "packet"]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert main(["run", "plan.toml"]) == 2
    assert "fix: stirred run plan.toml --out packet/" in capsys.readouterr().err
    assert folder.is_dir()
