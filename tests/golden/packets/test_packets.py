"""Every mechanism, preset and engine gives the packet that golden.json records, file by file.

What is right is tested elsewhere; here is tested that nothing changed. Where a change is meant, ``make.py`` records it.
"""

import platform
import random
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest

from golden.packets import make
from stirred import Spark

GOLDEN = make.load_golden()
MACHINES = make.describe_machines(
    GOLDEN
)  # in every failure: both architectures must reproduce what is recorded
ALL = make.plan_of_all()
QUICK = [name for name, maker in ALL.items() if maker.engine != "spark" and not maker.slow]
SLOW = [name for name, maker in ALL.items() if maker.slow]
ON_SPARK = [name for name, maker in ALL.items() if maker.engine == "spark"]


def differences(name: str, place: Path) -> list[str]:
    """Make one entry and return the lines that name what differs."""
    return make.compare(name, ALL[name].make(place / "made"), GOLDEN)


@pytest.mark.parametrize("name", QUICK)
def test_nothing_changed(name: str, tmp_path: Path) -> None:
    assert differences(name, tmp_path) == [], MACHINES


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_no_preset_changed(name: str, tmp_path: Path) -> None:
    assert differences(name, tmp_path) == [], MACHINES


@pytest.mark.slow  # minutes, in one session
@pytest.mark.spark("local")
@pytest.mark.parametrize("name", ON_SPARK)
def test_nothing_changed_on_spark(name: str, spark: Spark, tmp_path: Path) -> None:
    made = make.plan_of_all(lambda: spark)[name].make(tmp_path / "made")
    assert make.compare(name, made, GOLDEN) == [], MACHINES


def test_everything_is_recorded() -> None:
    """The commands list every mechanism, the schema its settings; each has a case, and each case its lines."""
    assert set(GOLDEN["digests"]) == set(ALL)
    titles = {name for name in GOLDEN["digests"]["schema"] if name.startswith("mechanism ")}
    assert titles == {f"mechanism {case.mechanism}" for case in make.CASES.values()}
    assert all(make.expect_digests(name, GOLDEN) for name in ALL)


@pytest.mark.parametrize("name", ["gaussian-tables", "permutation-swapping"])
def test_another_setting_is_found(name: str, tmp_path: Path) -> None:
    """A mutant: one number of the settings is another."""
    case = make.CASES[name]
    other = {"rho_squared": "1/3"} if name == "gaussian-tables" else {"rate": "1/4"}
    changed = replace(case, settings={**case.settings, **other})
    with patch.dict(make.CASES, {name: changed}):
        found = differences(f"memory/{name}", tmp_path)
    assert f"memory/{name}: parameters() of 1 {name} differs" in found
    assert f"memory/{name}: public/spec.json differs" in found
    assert any("public/data/" in line and line.endswith("differs") for line in found)


def test_another_record_is_found(tmp_path: Path) -> None:
    """A mutant: answers of the census are others; the promise stays, and the records of the release do not."""
    other = random.Random(1)
    with patch.object(make.random, "Random", lambda _: other):
        found = differences("memory/permutation-swapping", tmp_path)
    for record_type in ("household", "person"):
        assert f"memory/permutation-swapping: public/data/{record_type}.parquet differs" in found
    assert not any("spec.json" in line or "parameters()" in line for line in found)


def test_a_missing_and_a_new_file_are_named() -> None:
    recorded = GOLDEN["digests"]["catalog"]
    gone, *rest = recorded
    made = {**{name: recorded[name] for name in rest}, "more": ""}
    assert make.compare("catalog", made, GOLDEN) == [f"catalog: {gone} is missing", "catalog: more is new"]


def test_a_failure_names_the_architectures() -> None:
    assert platform.machine() in MACHINES
    assert "recorded on x86_64" in MACHINES


def test_the_last_number_of_python_is_left_out() -> None:
    pages = [f"<dd>python 3.{last}, stirred 1.0</dd>".encode() for last in ("11.7", "11.2", "12.13")]
    assert {make.pin("report.html", page) for page in pages} == {pages[0]}
    assert make.pin("README.txt", pages[1]) == pages[1]


def test_other_versions_compare_rows() -> None:
    """Where another pyarrow wrote a Parquet file, its rows decide; bytes of other files do always."""
    old = {**GOLDEN, "versions": {**GOLDEN["versions"], "pyarrow": "0"}, "digests": {"x": {"a": "1 rows 2"}}}
    assert make.compare("x", {"a": "9 rows 2"}, old) == []
    assert make.compare("x", {"a": "9 rows 3"}, old) == ["x: a differs"]
    same = {**old, "versions": make.versions()}
    assert make.compare("x", {"a": "9 rows 2"}, same) == ["x: a differs (its rows are equal)"]
