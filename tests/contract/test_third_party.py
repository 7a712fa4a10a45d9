"""A mechanism of another package works in a plan, as a command, in the report and in the contract tests, unchanged.

The package is the one of docs/how-to/extend.md. It is installed as a wheel would be: its module and its metadata lie in
a folder on the path; nothing is fetched.
"""

import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from contract import test_contract as suite
from contract.registry import EXAMPLES
from stirred.chance import Key
from stirred.cli.main import main
from stirred.engine import Local, Spark
from stirred.errors import InputError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.registry import find_mechanism, list_mechanisms
from stirred.publish import load, run, save
from stirred.publish.packet import Packet, verify
from stirred.publish.plan.models import build_schema
from stirred.publish.tuning import Target, tune
from stirred.spec.files import document

PACKAGE = EXAMPLES / "own_mechanism"
TOML = """name = "contract"
[geography]
spine = ["state", "county", "tract"]
[record.household]
files = ["household.parquet"]
id = "hid"
[record.person]
files = ["person.parquet"]
household = "hid"
of = "household"
"""
PLAN = """title = "Households by county"
census = "census.toml"
[[mechanism]]
name = "noisy-counts"
sigma_squared = "9"
[[table]]
name = "households-by-county"
by = ["county"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InParts(Local):
    """This machine, if nothing fitted its memory."""

    def fits(self, size: int) -> bool:
        return False


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Mechanism]]:
    site = tmp_path / "site"
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    about = site / f"noisy_counts-{project['version']}.dist-info"
    about.mkdir(parents=True)
    shutil.copy(PACKAGE / "own_mechanism.py", site)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    points = project["entry-points"]["stirred.mechanisms"]
    lines = [f"{name} = {target}" for name, target in points.items()]
    (about / "entry_points.txt").write_text("[stirred.mechanisms]\n" + "\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(
        document, "CLASS_BY_KIND", dict(document.CLASS_BY_KIND)
    )  # what the package registers is forgotten with it
    list_mechanisms.cache_clear()
    yield find_mechanism("noisy-counts")
    list_mechanisms.cache_clear()
    sys.modules.pop("own_mechanism", None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = suite.census(120)
    for name in ("household", "person"):
        pq.write_table(data.table(name), tmp_path / f"{name}.parquet")
    (tmp_path / "census.toml").write_text(TOML)
    (tmp_path / "plan.toml").write_text(PLAN)
    Key.for_tests(1).save(tmp_path / "test.key")
    return tmp_path


def test_it_is_unknown_before_it_is_installed() -> None:
    list_mechanisms.cache_clear()
    with pytest.raises(InputError, match="there is no mechanism"):
        find_mechanism("noisy-counts")


@pytest.mark.parametrize("engine", [Local(), InParts()], ids=["in memory", "in parts"])
def test_a_plan_runs_it(installed: type[Mechanism], folder: Path, engine: Local) -> None:
    key = Key.load(folder / "test.key")
    packet = run(load(folder / "plan.toml"), folder / "packet", key=key, engine=engine)
    assert verify(packet.folder) == []
    table = pl.read_parquet(packet.public / "tables" / "households-by-county.parquet")
    assert table.columns == ["county", "count", "estimate", "standard_error", "low", "high", "quote"]
    assert table["standard_error"].unique().to_list() == [3.0]
    assert "noise of variance 9" in (packet.public / "report.html").read_text()
    entry = json.loads((packet.public / "receipt.json").read_text())["mechanisms"][0]
    assert entry["name"] == installed.name
    assert entry["parameters"]["sigma_squared"] == "9"


@pytest.mark.spark("local")
def test_a_plan_runs_it_on_spark(installed: type[Mechanism], folder: Path, spark: Spark) -> None:
    plan, key = load(folder / "plan.toml"), Key.load(folder / "test.key")
    here = run(plan, folder / "here", key=key)
    there = run(plan, folder / "there", key=key, engine=spark)
    assert verify(there.folder) == []
    assert there.receipt()["engine"] == "spark"
    assert here.contents() == there.contents()
    assert here.receipt()["mechanisms"] == there.receipt()["mechanisms"]
    for paper in ("public/spec.json", "public/card.md", "public/report.html", "internal/metrics.csv"):
        assert (here.folder / paper).read_bytes() == (there.folder / paper).read_bytes()
    mechanism = installed.of(installed.Config(sigma_squared="9"))
    release = mechanism.release(spark.read(folder / "census.toml"), key=key, engine=spark)
    saved = save(release, folder / "saved", engine=spark)
    assert verify(saved.folder) == []
    assert saved.tables() == {"households_by_county": "household"}
    counts = [next(iter(packet.read_tables().values()))["count"].to_pylist() for packet in (here, saved)]
    assert counts[0] == counts[1]


def test_the_command_makes_the_same_release(
    installed: type[Mechanism], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["noisy-counts", str(folder / "census.toml"), "--sigma-squared", "9"]
    assert main([*words, "--check", "--json"]) == 0
    assert "√D_α" in json.loads(capsys.readouterr().out)["specification"]
    key = ["--key", str(folder / "test.key")]
    assert main([*words, "--out", str(folder / "command"), *key, "--json"]) == 0
    assert main(["run", str(folder / "plan.toml"), "--out", str(folder / "plan"), *key, "--json"]) == 0
    made = pq.read_table(folder / "command/public/tables/households_by_county.parquet")
    planned = pq.read_table(Packet(folder / "plan").public / "tables" / "households-by-county.parquet")
    assert made["count"].to_pylist() == planned["count"].to_pylist()
    assert "noise of variance 9" in (folder / "command/public/report.html").read_text()
    assert installed.name == "noisy-counts"


@pytest.mark.usefixtures("installed")
def test_help_new_plans_the_schema_and_errors_know_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "new", str(folder / "new.toml"), "--mechanism", "noisy-counts"]) == 0
    assert load(folder / "new.toml").mechanisms[0].name == "noisy-counts"
    assert any(
        item["title"] == "noisy-counts"
        for item in build_schema()["properties"]["mechanism"]["items"]["oneOf"]
    )
    with pytest.raises(SystemExit):
        main(["noisy-counts", "--help"])
    assert "the variance of the noise" in capsys.readouterr().out
    (folder / "plan.toml").write_text(PLAN.replace("sigma_squared", "sigma_sqared"))
    with pytest.raises(InputError, match="did you mean sigma_squared"):
        load(folder / "plan.toml")


def test_it_is_tuned(installed: type[Mechanism]) -> None:
    target = Target.parse("mae county <= 3")
    found = tune(suite.census(120), installed.of(installed.Config()), target, runs=3)
    assert found.name == "sigma_squared"
    assert found.best.error <= target.limit
    assert any(trial.error > target.limit and trial.budget < found.best.budget for trial in found.trials)


def test_it_keeps_the_contract(installed: type[Mechanism], caplog: pytest.LogCaptureFixture) -> None:
    mechanism = installed.of(installed.Config())
    suite.test_is_a_mechanism_with_canonical_parameters(mechanism)
    for make in suite.CENSUSES.values():
        data = make()
        before = mechanism.specification(data)
        assert before.evidence.status == "proved"
        if not suite.runs(mechanism, data):
            continue
        released = mechanism.release(data, key=suite.KEY)
        assert released.specification == before
        suite.test_keeps_its_invariants(released, data)
        suite.test_same_key_same_bytes(released, mechanism, data)
    suite.test_its_specification_is_the_same_for_every_census_of_the_universe(mechanism)
    ordinary = mechanism.release(suite.shared("ordinary"), key=suite.KEY)
    suite.test_another_key_another_release(mechanism, ordinary)
    suite.test_a_test_key_marks_the_release_as_not_private(mechanism, ordinary)
    suite.test_errors_and_logs_show_no_record(mechanism, caplog)
