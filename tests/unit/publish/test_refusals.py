"""Plan, command, Python and demo refuse before a key, a folder or a file exists."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from small_census import CENSUS, households
from stirred.census import read
from stirred.chance import Key
from stirred.cli.main import main
from stirred.errors import StirredError
from stirred.mechanisms.release import Check, Release
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.topdown import TopDown
from stirred.publish import load, run, save

PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county"]
rate = "1/20"
{setting}
{more}
"""
ROWS = households(40)
TABLE = '[[table]]\nname = "t"\nby = {by}\n'
# name → (more of the mechanism, more of the plan, words of the refusal)
PLANS = {
    "an unknown variable": ("", TABLE.format(by='["tenur"]'), "unknown variable tenur"),
    "an unknown record type": ("", TABLE.format(by='["county"]') + 'record_type = "person"\n', "person"),
    "a table of a dropped variable": (
        'drop = ["tenure"]',
        TABLE.format(by='["county", "tenure"]'),
        "what is not released",
    ),
    "a question about a dropped variable": (
        'drop = ["tenure"]',
        '[assess]\nrelations = [["county", "tenure"]]\n',
        "which is not released",
    ),
    "a question about nothing": ("", '[assess]\ndistricts = ["parish"]\n', "which is not released"),
    "areas of no level": ("", '[assess]\nimprobable = "parish"\n', "improbable areas of parish"),
    "a table that neither mechanism has": (
        'drop = ["tenure"]',
        TABLE.format(by='["size", "tenure"]') + '[[mechanism]]\nname = "exact-margins"\nrows = "county"\n'
        'columns = "tenure"\nrho_squared = "1/2"\n',
        "what is not released",
    ),
    "a limit that is too low": ("", '[budget]\nlimit = "1/10"\n', "more than its limit"),
    "a variable both matched and held back": ('drop = ["sise"]', "", "sise"),
    "an own table of an unknown variable": ('tables = [["tenur"]]', "", "tenur"),
    "an unknown key": ('hodl = ["tenure"]', "", "did you mean hold"),
    "two tables of one name": ("", 2 * TABLE.format(by='["county"]'), "the same name"),
    "a second mechanism that protects nothing": (
        "",
        '[[mechanism]]\nname = "swapping-noisy-key"\nmatch = ["state", "size"]\nswap = ["county"]\n'
        'rate = "1/20"\nnoisy = "size"\nchange = "1/4"\n',
        "protects nothing",
    ),
    "a mechanism that needs persons": ("", '[[mechanism]]\nname = "topdown"\n', "record type person"),
    "no earlier packet": ("", '[[mechanism]]\nname = "topdown"\nworkload = "dhc"\n', "continues"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "household.csv").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def listed(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_refused(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting, more, words = PLANS[name]
    (folder / "plan.toml").write_text(PLAN.format(setting=setting, more=more))
    before = listed(folder)
    assert main(["run", "plan.toml", "--out", "packet"]) == 2
    told = capsys.readouterr().err
    assert words in told
    assert "why:" in told
    assert "fix:" in told
    assert listed(folder) == before
    with pytest.raises(StirredError):
        run(load(folder / "plan.toml"), folder / "packet", key=Key.for_tests(1))
    assert listed(folder) == before


SWAP = ["swap", "census.toml", "--match", "state", "size", "--swap", "county"]
COMMANDS = {
    "no place": ([*SWAP, "--rate", "1/20"], "no place for the packet"),
    "a rate that protects nothing": ([*SWAP, "--rate", "1", "--out", "packet"], "protects nothing"),
    "a rate that is no number": ([*SWAP, "--rate", "x", "--out", "packet"], "exact number"),
    "an unknown variable": (
        [*SWAP[:-1], "parish", "--rate", "1/20", "--out", "packet"],
        "parish",
    ),
    "a folder that is not there": ([*SWAP, "--rate", "1/20", "--out", "no/packet"], "cannot write beside"),
    "a packet that is there": ([*SWAP, "--rate", "1/20", "--out", "there"], "never overwritten"),
    "a file in the way": ([*SWAP, "--rate", "1/20", "--out", "file"], "is in the way"),
    "a key in the packet": (
        [*SWAP, "--rate", "1/20", "--out", "packet", "--key", "packet/k.key"],
        "would lie in the packet",
    ),
    "a key in no folder": (
        [*SWAP, "--rate", "1/20", "--out", "packet", "--key", "no/k.key"],
        "its folder does not exist",
    ),
    "a damaged key": ([*SWAP, "--rate", "1/20", "--out", "packet", "--key", "census.toml"], "key"),
    "an interrupted run without its key": (
        [*SWAP, "--rate", "1/20", "--out", "begun"],
        "a key that is not there",
    ),
    "an unknown census": (["swap", "no.toml", *SWAP[2:], "--rate", "1/20", "--out", "packet"], "no.toml"),
    "no finite bound": (
        [
            "swapping-noisy-key",
            *SWAP[1:],
            "--rate",
            "1/20",
            "--noisy",
            "size",
            "--change",
            "1/4",
            "--out",
            "packet",
        ],
        "protects nothing",
    ),
    "no noise": (["topdown", "census.toml", "--rho-squared", "inf", "--out", "packet"], "error:"),
    "the demo on a file": (["demo", "--out", "file.part"], "cannot be written"),
    "the demo below a file": (["demo", "--out", "file.part/demo"], "cannot be written"),
    "the demo without its key": (["demo", "--out", "demo"], "a key that is not there"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_refused(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, expected = COMMANDS[name]
    (folder / "there").mkdir()
    (folder / "file.part").write_text("")
    (folder / "begun.part" / "state").mkdir(parents=True)
    (folder / "begun.part" / "run").write_text("of an interrupted run")
    (folder / "demo" / "swap-5.part").mkdir(parents=True)
    before = listed(folder)
    assert main(words) == 2
    assert expected in capsys.readouterr().err
    assert listed(folder) == before


def released(folder: Path) -> Release:
    psa = PermutationSwapping(match=["state", "size"], swap=["county"], rate="1/20")
    return psa.release(read(folder / "census.toml"), key=Key.for_tests(1))


def otherwise_set(release: Release) -> Release:
    """A release whose settings do not make its parameters."""
    return replace(release, settings=release.parameters, parameters={**release.parameters, "rate": "1/19"})


PYTHON: dict[str, tuple[Callable[[Path], object], str]] = {
    "a packet that is there": (lambda folder: save(released(folder), folder), "never overwritten"),
    "a folder that is not there": (
        lambda folder: save(released(folder), folder / "no" / "packet"),
        "cannot write beside",
    ),
    "an invariant that is not kept": (
        lambda folder: save(
            replace(released(folder), checks=(Check(invariant="x", kept=False, numbers=1),)), folder / "p"
        ),
        "was not kept",
    ),
    "no schema": (lambda folder: save(replace(released(folder), schema=None), folder / "p"), "variables are"),
    "an unknown mechanism": (
        lambda folder: save(replace(released(folder), mechanism="mine"), folder / "p"),
        "no mechanism 'mine'",
    ),
    "settings that no plan has": (
        lambda folder: save(otherwise_set(released(folder)), folder / "p"),
        "no plan describes this release",
    ),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_is_refused(name: str, folder: Path) -> None:
    action, words = PYTHON[name]
    before = listed(folder)
    with pytest.raises(StirredError, match=words) as caught:
        action(folder)
    assert caught.value.why
    assert caught.value.fix
    assert listed(folder) == before


def test_a_noiseless_release_is_not_saved(tmp_path: Path) -> None:
    from stirred.census.synthetic import write_preset

    write_preset("demo", tmp_path / "census", households=60)
    census = read(tmp_path / "census" / "census.toml")
    release = TopDown(workload="small", rho_squared="inf", replicates=0).release(census, key=Key.for_tests(1))
    with pytest.raises(StirredError, match="protects nothing"):
        save(release, tmp_path / "packet")
    assert [path.name for path in tmp_path.iterdir()] == ["census"]
