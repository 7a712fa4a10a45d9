"""The unedited path from the files of ten layouts to a verified packet, with invented records."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from layouts import LAYOUTS
from stirred.census.codebook.schema import NAMED_LIMITS, band_names
from stirred.cli.main import main

BANDS = {name for limits in NAMED_LIMITS.values() for name in band_names(limits)} | {None}


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run a command that must succeed; returns its JSON document."""
    code = main([*arguments, "--json"])
    out, errors = capsys.readouterr()
    assert code == 0, errors
    found: dict[str, Any] = json.loads(out)
    return found


def released(packet: Path) -> dict[str, set[object]]:
    """The columns of the released records and tables, with their values."""
    files = [*(packet / "public").rglob("*.parquet")]
    assert files
    found: dict[str, set[object]] = {}
    for file in files:
        for column in pl.read_parquet(file).iter_columns():
            found.setdefault(column.name, set()).update(column)
    return found


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_unedited_path_ends_with_a_verified_packet(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    layout = LAYOUTS[name]
    given = layout.write(tmp_path)
    described = command(capsys, "data", "describe", *given, "--out", "census.toml")
    document = tomllib.loads(described["toml"])
    first = next(iter(document["record"].values()))
    assert tuple(document.get("geography", {}).get("spine", ())) == layout.spine
    assert first.get("weight", "") == layout.weight
    key = first.get("household_from") or first.get("id", "")
    assert (key if isinstance(key, str) else tuple(key)) == layout.key
    made = command(capsys, "plan", "new", "--census", "census.toml", "--out", "plan.toml")
    by = {
        name for told in made["choices"] if told.startswith("tables: ") for name in re.findall(r"\w+", told)
    }
    assert not by & (layout.constant | layout.never)
    told = {
        name for told in made["choices"] if told.startswith("by bands: ") for name in re.findall(r"\w+", told)
    }
    assert told >= layout.banded
    command(capsys, "plan", "check", "plan.toml")
    command(capsys, "run", "plan.toml", "--out", "packet", "--public-only")
    command(capsys, "packet", "verify", "packet")
    columns = released(tmp_path / "packet")
    assert not set(columns) & layout.never
    assert set(columns) >= set(layout.spine)
    assert layout.banded <= set(columns)
    for name in layout.banded:
        assert columns[name] <= BANDS, name


def test_persons_of_a_survey_with_two_keys_are_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every person of the EPH lies in one household, though no column alone names it."""
    from stirred.census import read, validate
    from stirred.census.describe import describe

    monkeypatch.chdir(tmp_path)
    files = LAYOUTS["EPH"].write(tmp_path)
    (tmp_path / "census.toml").write_text(describe(files).toml(), encoding="utf-8")
    census = read(tmp_path / "census.toml")
    assert not validate(census)
    persons = pl.read_csv(files[1], separator=";")
    counted = pl.DataFrame(census.counts("person", ["AGLOMERADO"]))
    expected = persons.group_by("AGLOMERADO").len().sort("AGLOMERADO")
    assert counted["count"].to_list() == expected["len"].to_list()
    assert 'CH06 = {bands = "5-years"' in (tmp_path / "census.toml").read_text(encoding="utf-8")


def test_an_enterprise_is_no_level_of_the_geography(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stirred.census.describe import describe

    monkeypatch.chdir(tmp_path)
    found = describe(LAYOUTS["SES"].write(tmp_path))
    assert found["geography"]["spine"] == ["location"]
    assert "IDunit" in found["record"]["person"]["leave_out"]
    assert any("IDunit is left out" in guess for guess in found.guesses)


def test_codes_that_do_not_nest_are_a_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stirred.census.describe import describe

    monkeypatch.chdir(tmp_path)
    found = describe(LAYOUTS["IPUMS"].write(tmp_path))
    assert found["geography"]["spine"] == ["STATEFIP"]
    question = next(guess for guess in found.guesses if "COUNTY" in guess)
    assert "does not nest; not decided" in question


def test_areas_in_few_records_nest_by_chance_and_this_is_said() -> None:
    from stirred.census import Census

    few = {
        "hid": [1, 2, 3, 4],
        "region": ["a", "a", "b", "b"],
        "district": [1, 2, 3, 4],
        "tenure": list("orro"),
    }
    census = Census.of(few)
    assert any("too few records to tell" in guess for guess in census.guesses)


def test_a_swap_without_areas_is_refused_and_tables_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command(capsys, "data", "describe", *LAYOUTS["flat persons"].write(tmp_path), "--out", "census.toml")
    for mechanism in ("cell-key", "special-tabulations", "exact-margins"):
        made = command(
            capsys,
            "plan",
            "new",
            "--census",
            "census.toml",
            "--mechanism",
            mechanism,
            "--out",
            f"{mechanism}.toml",
        )
        assert made["choices"]
    swap = (
        "plan",
        "new",
        "--census",
        "census.toml",
        "--mechanism",
        "permutation-swapping",
        "--out",
        "swap.toml",
    )
    assert main([*swap]) != 0
    assert "--mechanism gaussian-tables" in capsys.readouterr().err
    assert not Path("swap.toml").exists()
