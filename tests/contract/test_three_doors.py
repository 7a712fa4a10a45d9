"""Every mechanism of Stirred from a plan, from the command line and from Python: the same settings, the same packet."""

import argparse
import json
import runpy
import shutil
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from contract.registry import LISTS, TOTALS, WORKLOAD
from contract.test_contract import census
from contract.test_third_party import TOML
from stirred.census import read
from stirred.chance import Key
from stirred.cli.main import main
from stirred.cli.mechanism import DEST_PREFIX, add_flags
from stirred.errors import PrivacyError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import digest
from stirred.mechanisms.registry import OWN_REGISTRATIONS, find_mechanism
from stirred.mechanisms.release import MEASURE_COLUMNS
from stirred.publish import Packet, load, run, save, verify
from stirred.publish.plan.description import plan_of

SWAP: dict[str, Any] = {"match": ["state", "size"], "swap": ["county", "tract"], "rate": "1/3"}
SETTINGS: dict[str, dict[str, Any]] = {
    "permutation-swapping": SWAP | {"drop": ["tenure"]},
    "stirring": SWAP | {"loss": "6", "law": "auto", "shuffle_first": "tenure", "shuffle_levels": ["rent"]},
    "topdown": {"workload": "workload.toml", "mode": "gls", "replicates": 3, "emphasis": 2, "bypass": False},
    "special-tabulations": {
        "tables": [["county", "tenure"]],
        "rounding": "fives",
        "without_guarantee": "a test",
    },
    "gaussian-tables": {
        "tables": [["county"], ["tract"]],
        "rho_squared": "1/2",
        "shares": ["3/4", "1/4"],
    },
    "exact-margins": {"rows": "county", "columns": "tenure", "rho_squared": "1/2"},
    "safetab-p": {
        "preset": "",
        "codes": "lists",
        "races": ["tenure"],
        "ethnicity": "",
        "sexes": ["f", "m"],
        "suppression": "9/10",
        "budget": {"STATE-1": "1", "COUNTY-1": "1"},
        "thresholds": {"STATE-1": "20,40,10000", "COUNTY-1": "20,40,10000"},
    },
    "swapping-varying-rates": SWAP | {"by": "tenure", "rates": {"rent": "1/2"}},
    "swapping-imputed-stay": SWAP | {"imputed": "tenure", "levels": ["rent"]},
    "swapping-no-vacuous": SWAP | {"carry": False},
    "swapping-near-places": SWAP | {"preference": "3"},
    "swapping-unit-matching": SWAP | {"loose": ["size"], "alpha": "1/2"},
    "swapping-noisy-key": SWAP | {"noisy": "size", "change": "1/4"},
    "cell-key": {"tables": [["county", "tenure"]], "D": 3, "V": "2", "without_guarantee": "a test"},
    "targeted-swapping": {
        "hierarchy": ["county", "tract"],
        "similar": [["state", "size", "tenure"], ["state", "size"]],
        "swaprate": "1/3",
        "risk_variables": ["age", "sex"],
        "without_guarantee": "a test",
    },
    "swapping-2010": {
        "swap": ["county", "tract"],
        "rate": "1/3",
        "equal": ["size"],
        "race": ["tenure"],
        "unique": ["tenure"],
        "prefer": ["near", "selected"],
        "without_guarantee": "a test",
    },
    # a mark after + : the same mechanism with other settings
    "permutation-swapping+tables": SWAP | {"microdata": False, "tables": [["county", "tenure"], ["size"]]},
    "permutation-swapping+both": SWAP
    | {"tables": [["county", "tenure"]], "carry": False, "hold": ["tenure"]},
    "topdown+classic": {"workload": "workload.toml", "mode": "classic", "replicates": 0, "keep_nmf": True},
    "swapping-varying-rates+rarity": SWAP | {"rarity": ["tract", "size"], "rare": "1/2", "counts_up_to": 250},
    "swapping-noisy-tables": SWAP | {"tables": [["tract", "tenure"]], "sigma_squared": "4"},
    "phsafe": {"tau": {"PH1_num": 2}, "rho_squared": "1", "states": ["0"]},
    "safetab-h": {
        "totals": "totals/t1.txt",
        "codes": "totals/codes",
        "preset": "",
        "races": ["sex"],
        "ethnicity": "",
        "householder": "sex",
        "householders": ["f"],
        "household_type": "size",
        "types": {"1": "4", "2": "1", "3": "5"},
        "tenures": {"own": "2", "rent": "3"},
        "budget": {"STATE-1": "1", "COUNTY-1": "1"},
        "thresholds": {"STATE-1": "10,20,30", "COUNTY-1": "10,20,30"},
    },
}
PUBLISHED = [name for name in SETTINGS if name != "swapping-noisy-key"]  # of which no finite bound is known


def test_every_mechanism_is_here() -> None:
    assert {item.name for item in OWN_REGISTRATIONS} <= set(SETTINGS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A folder for each mechanism, which its tests share."""

    @cache
    def make(name: str) -> Path:
        place, data = tmp_path_factory.mktemp("doors"), census(120)
        for record_type in ("household", "person"):
            pq.write_table(data.table(record_type), place / f"{record_type}.parquet")
        (place / "census.toml").write_text(TOML)
        (place / "workload.toml").write_text(WORKLOAD)
        shutil.copytree(LISTS, place / "lists")
        shutil.copytree(TOTALS, place / "totals")
        Key.for_tests(5).save(place / "test.key")
        return place

    return make


@pytest.fixture
def folder(name: str, folders: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(folders(name))
    return folders(name)


def flags(kind: type[Mechanism], values: dict[str, Any]) -> list[str]:
    """The words of a command with these settings."""
    parser = argparse.ArgumentParser()
    add_flags(parser, kind.Config)
    words: list[str] = []
    for action in parser._actions:
        value = values.get(action.dest.removeprefix(DEST_PREFIX))
        if isinstance(value, dict):
            words += [action.option_strings[0], *(f"{key}={item}" for key, item in value.items())]
        elif isinstance(value, list) and isinstance(value[0], list):
            words += [word for by in value for word in (action.option_strings[0], *by)]
        elif isinstance(value, list):
            words += [action.option_strings[0], *value]
        elif value is not None:
            words += [action.option_strings[0]] + ([] if isinstance(value, bool) else [str(value)])
    return words


def files(packet: Path) -> dict[str, bytes]:
    """Every file of a packet."""
    found = sorted(path for path in packet.rglob("*") if path.is_file())
    return {path.relative_to(packet).as_posix(): path.read_bytes() for path in found}


def said(packet: Path) -> dict[str, str]:
    """What the records and tables of a packet say, whoever wrote the files."""
    found = sorted((packet / "public").rglob("*.parquet"))
    return {path.relative_to(packet).as_posix(): digest(pads.dataset(str(path))) for path in found}


def kind_of(name: str) -> type[Mechanism]:
    return find_mechanism(name.partition("+")[0])


def command(name: str, kind: type[Mechanism]) -> int:
    """Run the command of a mechanism, which writes the packet ``command``, unless a test before has run it."""
    if Path("command").exists():
        return 0
    words = [kind.name, "census.toml", "--out", "command", "--key", "test.key", "--json"]
    return main([*words, *flags(kind, SETTINGS[name])])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_plan_a_command_and_python_give_the_same_packet(name: str, folder: Path) -> None:
    """No file may differ; only records that Python held in memory are cut into other row groups, with the same rows."""
    kind = kind_of(name)
    key, data = Key.load(folder / "test.key"), read(folder / "census.toml")
    mechanism = kind.of(kind.Config.model_validate(SETTINGS[name]))
    plan = plan_of(mechanism, folder)
    (folder / "plan.toml").write_text(plan.text)
    (folder / "work").mkdir()
    on_disk = mechanism.release(data, key=key, out=folder / "work")
    if name == "swapping-noisy-key":  # no finite bound is known
        before = {path.name for path in folder.iterdir()}
        for refused in (
            lambda: run(load(folder / "plan.toml"), folder / "plan", key=key),
            lambda: save(on_disk, folder / "python"),
        ):
            with pytest.raises(PrivacyError, match="protects nothing"):
                refused()
        assert command(name, kind) == 2
        assert {path.name for path in folder.iterdir()} == before
        return
    run(load(folder / "plan.toml"), folder / "plan", key=key)
    assert command(name, kind) == 0
    save(on_disk, folder / "python")
    expected = files(folder / "plan")
    assert {"public/plan.toml", "public/redo.py", "public/receipt.json", "public/spec.json"} <= set(expected)
    for door in ("command", "python"):
        assert verify(folder / door) == []
        assert sorted(files(folder / door)) == sorted(expected)
        different = [path for path, data in files(folder / door).items() if data != expected[path]]
        assert not different
    if on_disk.files:  # what a mechanism writes itself needs a folder
        return
    save(mechanism.release(data, key=key), folder / "memory")
    assert verify(folder / "memory") == []
    assert said(folder / "memory") == said(folder / "plan")
    other = [path for path, data in files(folder / "memory").items() if data != expected.get(path)]
    assert all(path.endswith((".parquet", "checksums.txt")) for path in other)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_settings_make_the_mechanism_again(name: str, folder: Path) -> None:
    kind = kind_of(name)
    mechanism = kind.of(kind.Config.model_validate(SETTINGS[name]))
    again = plan_of(mechanism, folder).mechanisms[0]
    assert type(again) is type(mechanism)
    assert again.parameters() == mechanism.parameters()
    stated = mechanism.settings()
    assert set(stated) == set(kind.Config.model_fields)
    for setting, value in SETTINGS[name].items():
        assert stated[setting] == value


def check_receipt(kind: type[Mechanism], settings: dict[str, Any], packet: Packet) -> None:
    """The receipt names all settings and what was spent."""
    entry = json.loads((packet.public / "receipt.json").read_text())["mechanisms"][0]
    assert set(entry["settings"]) == set(kind.Config.model_fields)
    for setting, value in settings.items():
        assert entry["settings"][setting] == value
    assert entry["ledger"]
    assert all(line["by"] and line["on"] and line["budget"] for line in entry["ledger"])


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_packet_of_a_command_has_a_receipt_and_is_assessed_looked_up_redone_and_compared(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = kind_of(name)
    assert command(name, kind) == 0
    packet = Packet(folder / "command")
    words = ["assess", "command", "--truth", "census.toml", "--out", "metrics.csv", "--json"]
    assert main(words) == 0
    for table, record_type in packet.tables().items():
        assert record_type == kind.of(kind.Config.model_validate(SETTINGS[name])).record_type
        row = packet.read_tables()[table].to_pylist()[0]
        cell = [f"{key}={value}" for key, value in row.items() if key not in MEASURE_COLUMNS]
        assert main(["lookup", "command", "--where", *cell, "--json"]) == 0
    words = ["redo.py", str(folder), str(folder / "test.key"), str(folder / "again")]
    monkeypatch.setattr(sys, "argv", words)
    runpy.run_path(str(packet.public / "redo.py"), run_name="__main__")
    assert files(folder / "again") == files(folder / "command")
    assert main(["packet", "compare", "command", "again", "--out", "both.html"]) == 0
    assert main(["packet", "contents", "command", "again"]) == 0
    capsys.readouterr()
    check_receipt(kind, SETTINGS[name], packet)
