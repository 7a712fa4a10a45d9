"""Every mechanism of Stirred from a plan, from the command line and from Python: the same settings, the same release."""

import argparse
from pathlib import Path
from typing import Any

import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from contract.registry import WORKLOAD
from contract.test_contract import census
from contract.test_third_party import TOML
from stirred.census import read
from stirred.chance import Key
from stirred.cli.main import main
from stirred.cli.terminal.flags import DEST, add_flags
from stirred.errors import PrivacyError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import toml
from stirred.mechanisms.contents import contents, digest
from stirred.mechanisms.registry import OWN, find
from stirred.publish import load, run
from stirred.publish.packet import verify

SWAP: dict[str, Any] = {"match": ["state", "size"], "swap": ["county", "tract"], "rate": "1/3"}
SETTINGS: dict[str, dict[str, Any]] = {
    "permutation-swapping": SWAP | {"drop": ["tenure"]},
    # the command has two defaults of its own: the workload's mode, and no replicates
    "topdown": {"workload": "workload.toml", "mode": "gls", "replicates": 3, "emphasis": 2, "bypass": False},
    "exact-margins": {"rows": "county", "columns": "tenure", "rho_squared": "1/2"},
    "swapping-varying-rates": SWAP | {"by": "tenure", "rates": {"rent": "1/2"}},
    "swapping-imputed-stay": SWAP | {"imputed": "tenure", "levels": ["rent"]},
    "swapping-no-vacuous": SWAP | {"carry": False},
    "swapping-near-places": SWAP | {"preference": "3"},
    "swapping-unit-matching": SWAP | {"loose": ["size"], "alpha": "1/2"},
    "swapping-noisy-key": SWAP | {"noisy": "size", "change": "1/4"},
    "swapping-noisy-tables": SWAP | {"tables": [["tract", "tenure"]], "sigma_squared": "4"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = census(120)
    for name in ("household", "person"):
        pq.write_table(data.table(name), tmp_path / f"{name}.parquet")
    (tmp_path / "census.toml").write_text(TOML)
    (tmp_path / "workload.toml").write_text(WORKLOAD)
    Key.for_tests(5).save(tmp_path / "test.key")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flags(kind: type[Mechanism], values: dict[str, Any]) -> list[str]:
    """The words of a command with these settings."""
    parser = argparse.ArgumentParser()
    add_flags(parser, kind.Config)
    words: list[str] = []
    for action in parser._actions:
        value = values.get(action.dest.removeprefix(DEST))
        if isinstance(value, dict):
            words += [action.option_strings[0], *(f"{key}={item}" for key, item in value.items())]
        elif isinstance(value, list) and isinstance(value[0], list):
            words += [word for by in value for word in (action.option_strings[0], *by)]
        elif isinstance(value, list):
            words += [action.option_strings[0], *value]
        elif value is not None:
            words += [action.option_strings[0]] + ([] if isinstance(value, bool) else [str(value)])
    return words


def said(packet: Path) -> list[str]:
    """The digests of all that a packet publishes."""
    files = sorted((packet / "public").rglob("*.parquet"))
    return sorted(digest(pads.dataset(str(path))) for path in files)


@pytest.mark.parametrize("name", [item.name for item in OWN])
def test_a_plan_a_command_and_python_say_the_same(name: str, folder: Path) -> None:
    kind, values = find(name), SETTINGS[name]
    key = Key.load(folder / "test.key")
    release = kind.of(kind.Config.model_validate(values)).release(read(folder / "census.toml"), key=key)
    expected = sorted(contents(release).values())
    words = [name, "census.toml", "--out", "command", "--key", "test.key", "--json", *flags(kind, values)]
    assert main(words) == 0
    assert verify(folder / "command") == []
    assert said(folder / "command") == expected
    lines = "".join(f"{setting} = {toml(value)}\n" for setting, value in values.items())
    plan = f'title = "t"\ncensus = "census.toml"\n[[mechanism]]\nname = "{name}"\n{lines}'
    (folder / "plan.toml").write_text(plan + "[assess]\nutility = false\n")
    if name == "swapping-noisy-key":  # no finite bound is known, so no plan publishes it
        with pytest.raises(PrivacyError, match="protects nothing"):
            run(load(folder / "plan.toml"), folder / "plan", key=key)
        return
    run(load(folder / "plan.toml"), folder / "plan", key=key)
    assert verify(folder / "plan") == []
    assert said(folder / "plan") == expected
