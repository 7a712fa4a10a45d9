"""stirred data: describe and check as a person and as a program use them."""

import json
import tomllib
from pathlib import Path

import polars as pl
import pyreadstat
import pytest

from stirred.census import check, read
from stirred.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pl.DataFrame(
        {
            "household_id": [11, 12, 13],
            "state": ["01", "01", "02"],
            "county": ["01001", "01003", "02001"],
            "size": [1, 2, 1],
            "tenure": ["own", "rent", "own"],
        }
    ).write_parquet(tmp_path / "households.parquet")
    pl.DataFrame({"household_id": [11, 12, 12, 13], "age": [44, 31, 2, 77]}).write_csv(
        tmp_path / "persons.csv"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["data", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_describe_tells_no_level_and_no_count(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "describe", "households.parquet", "persons.csv")
    assert code == 0
    document = tomllib.loads(out)
    assert document["geography"]["spine"] == ["state", "county"]
    assert document["record"]["household"]["id"] == "household_id"
    assert document["record"]["household"]["size"] == "size"
    assert document["record"]["person"]["household"] == "household_id"
    for hidden in ("own", "rent", "01001", "77", "3 records", "levels", "range"):
        # the range of ages is public, and no record decides it
        assert hidden not in out.replace('range = "0..120"', "")


def test_describe_confidential_gives_a_census_that_checks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("describe", "households.parquet", "persons.csv", "--confidential", "--out", "census.toml")
    assert run(capsys, *words)[0] == 0
    census = read("census.toml")
    household = census.schema.record("household")
    assert household.variable("tenure").levels == ("own", "rent")
    assert census.schema.record("person").variable("age").kind in ("category", "integer")
    assert not check("census.toml")
    code, out, _ = run(capsys, "check", "census.toml")
    assert (code, out) == (0, "no problems in 3 household records, 4 person records\n")
    code, _, err = run(capsys, *words)
    assert code == 2
    assert "not overwritten" in err


def test_describe_as_json_is_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "describe", "households.parquet", "--json", "--confidential")
    document = json.loads(out)
    assert code == 0
    assert document["confidential"] is True
    assert document["census"]["record"]["household"]["variables"]["tenure"]["levels"] == ["own", "rent"]
    assert tomllib.loads(document["toml"])["record"]["household"]["files"] == ["households.parquet"]


def test_describe_from_another_folder_names_files_from_there(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "plans").mkdir()
    run(capsys, "describe", "households.parquet", "--out", "plans/census.toml")
    assert read("plans/census.toml").count("household") == 3


def test_describe_takes_labels_from_the_files_own_codebook(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pl.DataFrame({"id": [1.0, 2.0], "sex": [1.0, 1.0]})
    labels = {"sex": {1: "male", 2: "female"}}
    pyreadstat.write_sav(frame.to_pandas(), folder / "people.sav", variable_value_labels=labels)
    code, out, _ = run(capsys, "describe", "people.sav")
    assert code == 0
    # level 2 occurs in no record: it comes from the codebook
    assert tomllib.loads(out)["record"]["person"]["variables"]["sex"]["levels"] == [1, 2]


def test_check_lists_problems_and_exits_with_one(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "census.toml").write_text(
        """
        [record.household]
        files = ["households.parquet"]
        id = "household_id"
        size = "size"
        variables.tenure = ["own"]
        [record.person]
        files = ["persons.csv"]
        household = "household_id"
        variables.age = "0..50"
        """
    )
    code, out, _ = run(capsys, "check", ".", "--json")
    assert code == 1
    report = json.loads(out)
    assert report["ok"] is False
    assert report["checked"] == {"household": 3, "person": 4}
    assert {(p["column"], p["count"]) for p in report["problems"]} == {("tenure", 1), ("age", 1)}
    code, out, _ = run(capsys, "check", "census.toml")
    assert code == 1
    assert "values outside the listed levels" in out
    assert "77" not in out


def test_a_wrong_schema_exits_with_two(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "census.toml").write_text("geografy = 3\n")
    code, out, err = run(capsys, "check", "census.toml")
    assert (code, out) == (2, "")
    assert "did you mean geography?" in err


def test_synth_calls_the_preset_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import stirred.census.synthetic as synthetic

    asked: dict[str, object] = {}

    def write_preset(preset: str, out: Path, **options: object) -> dict[str, object]:
        asked.update(preset=preset, out=out, **options)
        return {"households": 12_345}

    monkeypatch.setattr(synthetic, "write_preset", write_preset, raising=False)
    words = ("synth", "demo", "--out", "demo", "--households", "10", "--seed", "3")
    code, out, _ = run(capsys, *words, "--json")
    assert (code, json.loads(out)) == (0, {"households": 12_345})
    assert (asked["preset"], asked["out"], asked["households"], asked["seed"]) == (
        "demo",
        Path("demo"),
        10,
        3,
    )
    assert "12,345" in run(capsys, *words)[1]


def test_a_stand_in_is_made_from_a_codebook(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "census.toml").write_text(
        '[geography]\nspine = ["region", "district"]\n[record.household]\nfiles = ["absent.csv"]\nid = "hid"\n'
        '[record.household.variables]\nroof = ["tin", "grass"]\n'
    )
    like = ["data", "synth", "--like", str(tmp_path / "census.toml"), "--households", "50", "--out"]
    assert main([*like, str(tmp_path / "out"), "--areas", "region=2", "district=4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == {"household": 50}
    assert main(["data", "check", str(tmp_path / "out" / "census.toml")]) == 0
    assert main([*like, str(tmp_path / "other"), "--areas", "region"]) == 2
    assert main(["data", "synth", "demo", *like[2:], str(tmp_path / "other")]) == 2
    assert not (tmp_path / "other").exists()
