"""Families of releases: their members, one small frontier, and packets assessed together by the command line."""

import json
import os
from pathlib import Path

import pytest

from modes import open_to_others
from stirred.census.synthetic import write_preset
from stirred.cli.main import main
from stirred.errors import InputError
from stirred.publish import parse
from stirred.publish.frontier import build_family, require_tables

PLAN = """title = "t"
census = "census/census.toml"
[[mechanism]]
name = "permutation-swapping"
label = "PSA"
match = ["state", "size"]
swap = ["county", "tract", "block_group", "block"]
rate = "1/20"
[[mechanism]]
name = "cell-key"
label = "chain"
given = "PSA"
record = "person"
tables = [["block", "race"]]
[[mechanism]]
name = "cell-key"
record = "person"
tables = [["block", "race"]]
without_guarantee = "a test"
[[mechanism]]
name = "topdown"
workload = "small"
rho_squared = "1"
[[table]]
name = "race-by-block"
record_type = "person"
by = ["block", "race"]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("frontier")
    write_preset("demo", made / "census", households=150)
    return made


def test_every_mechanism_is_a_member_at_every_rate_or_budget(folder: Path) -> None:
    found = build_family(parse(PLAN, folder=folder), rates=["1/10", "1/2"], rho_squared=["2", "3"])
    assert [member.name for member in found] == [
        "PSA, rate 1/10",
        "PSA, rate 1/2",
        "chain, rate 1/10",
        "chain, rate 1/2",
        "cell-key",
        "topdown, rho_squared 2",
        "topdown, rho_squared 3",
    ]
    chain = found[3].plan
    assert [step.label for step in chain.steps] == ["PSA", "chain"]
    assert "1/2" in str(chain.steps[0].config.model_dump()["rate"])
    assert chain.tables[0].source == 1  # the table counts the last release of a chain
    assert not chain.microdata  # the swapped records are not published beside the perturbed tables
    assert found[0].plan.microdata


def test_without_values_a_member_keeps_its_own(folder: Path) -> None:
    assert [member.setting for member in build_family(parse(PLAN, folder=folder))] == [
        "rate 1/20",
        "rate 1/20",
        "",
        "rho_squared 1",
    ]


def test_a_family_needs_tables(folder: Path) -> None:
    text = PLAN[: PLAN.index("[[table]]")]
    with pytest.raises(InputError, match="no \\[\\[table\\]\\]"):
        require_tables(parse(text, folder=folder))


def test_a_frontier_and_its_packets_side_by_side(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swap, table = PLAN.index("[[mechanism]]"), PLAN.index("[[table]]")
    alone = PLAN.index('[[mechanism]]\nname = "cell-key"\nrecord')
    text = PLAN[: PLAN.index('[[mechanism]]\nname = "cell-key"\nlabel', swap)] + PLAN[alone:table]
    text = text[: text.index('[[mechanism]]\nname = "topdown"')] + PLAN[table:]
    (folder / "plan.toml").write_text(text)
    words = ["frontier", str(folder / "plan.toml"), "--areas", "2", "--json"]
    before = os.umask(0o022)
    try:
        assert main([*words, "--out", str(folder / "out")]) == 0
    finally:
        os.umask(before)
    assert open_to_others(folder / "out") == []
    told = json.loads(capsys.readouterr().out)
    assert [point["method"] for point in told["points"]] == ["PSA", "cell-key"]
    assert told["points"][1]["guarantee"] == "no finite budget (proved)"
    assert all(point["risk"]["name"] == "recall of cells of one" for point in told["points"])
    assert all(point["risk"]["baselines"] for point in told["points"])
    page = (folder / "out" / "report.html").read_text()
    assert "INTERNAL" in page
    assert "Risk against error" in page
    assert not (folder / "out.part").exists()

    packets = [str(path) for path in sorted((folder / "out" / "packets").iterdir())]
    truth = ["--truth", str(folder / "census" / "census.toml")]
    words = ["assess", *packets, *truth, "--only", "utility", "--json", "--out", str(folder / "assessed")]
    assert main(words) == 0
    assert len(json.loads(capsys.readouterr().out)["packets"]) == 2
    assert {path.name for path in (folder / "assessed").iterdir()} >= {
        "assessment.json",
        "metrics.csv",
        "report.html",
    }
    assert (
        main(["assess", *packets, *truth, "--out", str(folder / "m.csv")]) == 2
    )  # a file is about one packet
    assert main(["assess", packets[0], *truth, "--only", "audit", "--out", str(folder / "m.csv")]) == 2
