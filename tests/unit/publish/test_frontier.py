"""Families of releases: their members, one small frontier, and packets assessed together by the command line."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from modes import open_to_others
from stirred.census.synthetic import write_preset
from stirred.cli.main import main
from stirred.errors import InputError
from stirred.mechanisms.config import list_varied
from stirred.mechanisms.registry import OWN_REGISTRATIONS, find_registration, list_mechanisms
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


STIRRED = (
    PLAN[: PLAN.index("[[mechanism]]")]
    + """[[mechanism]]
name = "stirring"
match = ["state", "size"]
swap = ["county", "tract", "block_group", "block"]
rate = "1/20"
[[mechanism]]
name = "safetab-p"
[[mechanism]]
name = "phsafe"
definition = "puredp"
preset = ""
budget = { PH3 = "1" }
tau = { PH3 = 10 }
"""
)


def test_a_total_has_the_unit_of_its_definition_and_a_loss_takes_the_place_of_a_rate(folder: Path) -> None:
    plan = parse(STIRRED, folder=folder)
    found = build_family(plan, rates=["1/10"], rho_squared=["2"], epsilon=["8"])
    assert [member.name for member in found] == [
        "stirring, rate 1/10",
        "stirring, loss 8",
        "safetab-p, total 2",  # its default definition counts ρ²
        "phsafe, epsilon 8",  # of puredp: no ρ² is tried
    ]
    by_name = {member.name: member.plan.steps[0].config.model_dump() for member in found}
    assert by_name["stirring, loss 8"]["rate"] is None
    assert by_name["stirring, rate 1/10"]["loss"] is None
    pure = parse(STIRRED.replace('"safetab-p"', '"safetab-p"\ndefinition = "puredp"'), folder=folder)
    assert [one.name for one in build_family(pure, rho_squared=["2"], epsilon=["8"])] == [
        "stirring, loss 8",
        "safetab-p, total 8",
        "phsafe, epsilon 8",
    ]


OTHERS = """
from typing import Annotated, ClassVar

from pydantic import Field

from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import MechanismConfig, Share, Varied


class MovedConfig(MechanismConfig):
    \"\"\"Move some records.\"\"\"

    area: str = Field(default="county", description="the areas")
    rate: str = Field(default="tax", description="a word that other mechanisms use for something else")
    moved: Annotated[Share, Varied("rate")] = Field(default="1/20", description="the share that moves")


class Moved(Mechanism):
    name: ClassVar[str] = "moved-shares"
    config: MovedConfig

    def specification(self, census, **_):
        raise NotImplementedError

    def release(self, census, *, key, **_):
        raise NotImplementedError
"""


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Install a mechanism of another package, of which only the Config says what is varied."""
    site = tmp_path / "site"
    about = site / "moved-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "moved_shares.py").write_text(OTHERS)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: moved\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[stirred.mechanisms]\nmoved-shares = moved_shares:Moved\n")
    monkeypatch.syspath_prepend(site)
    list_mechanisms.cache_clear()
    yield "moved-shares"
    list_mechanisms.cache_clear()


def test_a_mechanism_of_another_package_takes_part(moved: str, folder: Path) -> None:
    from stirred.web.screens import plan

    text = f'title = "t"\ncensus = "census/census.toml"\n[[mechanism]]\nname = "{moved}"\n'
    found = build_family(parse(text, folder=folder), rates=["1/10", "1/2"])
    assert [member.name for member in found] == ["moved-shares, moved 1/10", "moved-shares, moved 1/2"]
    assert [member.plan.steps[0].config.model_dump()["rate"] for member in found] == ["tax", "tax"]
    config = find_registration(moved).Config
    assert [field.name for field in plan.main_fields(config, {})] == ["area", "moved"]


def test_every_rate_and_total_of_our_own_is_marked_and_no_schema_shows_the_mark() -> None:
    marked = {one.name: set(list_varied(one.Config)) for one in OWN_REGISTRATIONS}
    assert {name for name, found in marked.items() if not found} == {"cell-key", "special-tabulations"}
    for one in OWN_REGISTRATIONS:
        stated = {"rate", "swaprate", "rho_squared", "total", "loss"} & set(one.Config.model_fields)
        assert stated <= marked[one.name], one.name
        assert "Varied" not in json.dumps(one.Config.model_json_schema())


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
