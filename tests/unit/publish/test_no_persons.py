"""A census whose person file has a header and no row: released with empty tables of persons, not with an error."""

import json
from pathlib import Path

import polars as pl
import pytest

from stirred.cli.main import main

CENSUS = """name = "vacant"
[geography]
spine = ["region", "district"]
[record.household]
files = ["h.csv"]
id = "hid"
size = "size"
[record.household.variables]
size = "0..9"
tenure = ["own", "rent"]
[record.person]
files = ["p.csv"]
id = "pid"
household = "hid"
[record.person.variables]
sex = ["f", "m"]
age = "0..99"
"""


def test_a_person_file_without_rows_gives_empty_tables_of_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    homes = [f"{i + 1},r{i % 3},d{i % 3}{i // 3 % 4},{('own', 'rent')[i % 2]},0" for i in range(90)]
    Path("h.csv").write_text("\n".join(["hid,region,district,tenure,size", *homes, ""]))
    Path("p.csv").write_text("hid,pid,sex,age\n")
    Path("census.toml").write_text(CENSUS)
    assert main(["plan", "new", "--census", "census.toml", "--out", "plan.toml"]) == 0
    capsys.readouterr()
    assert main(["run", "plan.toml", "--out", "packet", "--json"]) == 0, capsys.readouterr().err
    json.loads(capsys.readouterr().out)
    assert main(["packet", "verify", "packet"]) == 0
    files = {file.name: pl.read_parquet(file).height for file in Path("packet/public").rglob("*.parquet")}
    assert any("person" in name for name in files)
    assert {number for name, number in files.items() if name.startswith("person")} == {0}
    assert files["household.parquet"] == 90
