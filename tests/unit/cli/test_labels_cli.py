"""Labels of the codebook are accepted where codes are: in lookup, in flags and in plans."""

import json
from pathlib import Path

import polars as pl
import pytest

from stirred.cli.main import main
from stirred.publish import parse
from stirred.publish.packet.lookup import LABELS, encode_cell, label_cell, write_labels

CENSUS = """name = "town"
largest_household = 9
[geography]
spine = ["state", "county"]
[record.household]
files = ["household.csv"]
id = "id"
size = "size"
[record.household.variables]
size = {type = "integer", range = "1..9"}
tenure = {levels = [1, 3], labels = {1 = "owned", 3 = "rented"}}
"""
SWAP = ["--match", "state", "size", "--swap", "county", "--rate", "1/5"]
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "swapping-varying-rates"
match = ["state", "size"]
swap = ["county"]
rate = "1/5"
by = "tenure"
rates = {Rented = "1/10"}
"""


@pytest.fixture
def town(tmp_path: Path) -> Path:
    rows = [f"{i},s,c{i % 3},{1 + i % 2},{1 + 2 * (i % 2)}" for i in range(40)]
    (tmp_path / "household.csv").write_text("\n".join(["id,state,county,size,tenure", *rows]) + "\n")
    (tmp_path / "census.toml").write_text(CENSUS)
    return tmp_path


def test_flags_and_plans_take_labels(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for level in ("rented", "3"):
        rates = ["--by", "tenure", "--rates", f"{level}=1/10"]
        words = ["swapping-varying-rates", str(town), *SWAP, *rates, "--check", "--json"]
        assert main(words) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1]
    settings = parse(PLAN, folder=town).mechanisms[0].parameters()
    assert settings["rates"] == {"3": "1/10"}
    away = parse(PLAN, folder=town / "elsewhere").mechanisms[0].parameters()
    assert away["rates"] == {"Rented": "1/10"}


def test_lookup_takes_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public = tmp_path / "public"
    (public / "tables").mkdir(parents=True)
    (public / "receipt.json").write_text(json.dumps({"private": True}))
    frame = pl.DataFrame({"tenure": [1, 3], "count": [7, 19432]})
    frame.write_parquet(public / "tables" / "homes.parquet")
    (public / LABELS).write_text(json.dumps({"household": {"tenure": {"1": "owned", "3": "rented"}}}))
    for level in ("rented", "RENTED", "3"):
        assert main(["lookup", str(tmp_path), "--where", f"tenure={level}"]) == 0
        said = capsys.readouterr().out
        assert "homes: tenure = rented" in said
        assert "Quote 19,432" in said
    assert main(["lookup", str(tmp_path), "--where", "tenure=sold"]) == 2
    assert "no tenure sold" in capsys.readouterr().err
    assert main(["lookup", str(tmp_path), "--where", "tenure=rentd"]) == 2
    assert "did you mean tenure=rented?" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1, "b": {"tenure": 2}}', "{"])
def test_damaged_labels_are_no_labels(tmp_path: Path, text: str) -> None:
    (tmp_path / LABELS).write_text(text)
    assert encode_cell(tmp_path, {"tenure": "rented"}) == {"tenure": "rented"}
    assert label_cell(tmp_path, {"tenure": "3"}) == {"tenure": "3"}


def test_record_types_that_disagree_have_no_label(tmp_path: Path) -> None:
    document = {"a": {"sex": {"1": "male", "2": "female"}}, "b": {"sex": {"1": "female", "2": "female"}}}
    (tmp_path / LABELS).write_text(json.dumps(document))
    assert label_cell(tmp_path, {"sex": "1"}) == {"sex": "1"}
    assert label_cell(tmp_path, {"sex": "2"}) == {"sex": "female"}


def test_a_packet_without_labels_has_no_file(tmp_path: Path) -> None:
    from stirred.census.schema import Schema

    write_labels(tmp_path, Schema(name="town", records=()))
    assert not (tmp_path / LABELS).exists()
