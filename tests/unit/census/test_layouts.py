"""The unedited path from the files of ten layouts to a verified packet, with invented records."""

import re
from pathlib import Path

import polars as pl
import pytest

from door.packets import Packet, adversary_lines, command, make_packet, path_line
from door.page import PAGE, RENEW
from layouts import LAYOUTS
from stirred.census.schema import MAX_SINGLE_SHARE, NAMED_LIMITS, band_names
from stirred.cli.main import main

LINES = PAGE.read_text(encoding="utf-8").splitlines()

BANDS = {name for limits in NAMED_LIMITS.values() for name in band_names(limits)} | {None}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_unedited_path_ends_with_a_verified_packet(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    packet = make_packet(layout, tmp_path)
    first = next(iter(packet.document["record"].values()))
    assert tuple(packet.document.get("geography", {}).get("spine", ())) == layout.spine
    assert first.get("weight", "") == layout.weight
    key = first.get("household_from") or first.get("id", "")
    assert (key if isinstance(key, str) else tuple(key)) == layout.key

    assert not named(packet, "tables: ") & (layout.constant | layout.never)
    assert named(packet, "by bands: ") >= layout.banded
    assert not set(packet.released) & layout.never
    assert set(packet.released) >= {*layout.spine, *layout.banded}
    for column in layout.banded:
        assert packet.released[column] <= BANDS, column

    assert packet.singled
    for one in packet.singled:
        assert one.alone <= MAX_SINGLE_SHARE, one
    for line in (path_line(name, layout, packet), *adversary_lines(name, packet)):
        assert line in LINES, RENEW


def named(packet: Packet, start: str) -> set[str]:
    """The words of the choices that begin so."""
    told = [choice for choice in packet.planned["choices"] if choice.startswith(start)]
    return {word for choice in told for word in re.findall(r"\w+", choice)}


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
    command("data", "describe", *LAYOUTS["flat persons"].write(tmp_path), "--out", "census.toml")
    for mechanism in ("cell-key", "special-tabulations", "exact-margins"):
        made = command(
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
