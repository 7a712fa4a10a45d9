"""The core works without any extra, and a command that needs one names it."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from stirred._support import EXTRA_MODULES, OptionalModule, find_missing

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# a child process in which no library of an extra can be imported
BLOCKED = f"""
import importlib.machinery, sys
names = {sorted({m for names in EXTRA_MODULES.values() for m in names})!r}
class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in names else super().find_spec(name, path, target)
sys.meta_path = [f for f in sys.meta_path if f is not importlib.machinery.PathFinder] + [Finder]
"""

CORE = """
import stirred as st
from stirred.census.synthetic import synthesise

made = synthesise("demo", households=300)
census = st.Census.of(made.schema, made.tables)
psa = st.PermutationSwapping(match=["state", "size"], swap=["county", "tract", "block_group", "block"], rate="1/20")
print(psa.specification(census))
release = psa.release(census, key=st.Key.fresh())
packet = st.save(release, "out")
assert "pip install &#39;stirred[report]&#39;" in (packet.public / "report.html").read_text()
try:
    release.to_pandas("household")
except st.errors.MissingExtraError as error:
    assert error.fix == "pip install 'stirred[pandas]'", error.fix
import numpy as np
from stirred.mechanisms.topdown.solve import crossing
one = np.ones((1, 1))
try:
    crossing.round_with_rows(one, np.ones(1, np.int64), one > 0, ())
except st.errors.MissingExtraError as error:
    assert error.fix == "pip install 'stirred[solver]'", error.fix
else:
    raise SystemExit("the solver is not there")
"""

COMMANDS = {
    "demo --out demo": "report",
    "packet compare out out --out both.html": "report",
    "run plan.toml --engine spark --out packet": "spark",
    "data describe people.sav": "stat",
    "data describe people.duckdb": "duckdb",
    "data describe people.dat --ddi people.xml": "ipums",
    "reproduce figure-budget --out figures": "paper",
}

PLAN = """
title = "A swap"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["size"]
swap = ["county"]
rate = "1/20"
"""


def child(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + program], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_core_works_alone_and_commands_name_the_extra_that_is_missing(tmp_path: Path) -> None:
    """A swap is promised, made and saved without any extra; every command that needs one says which."""
    for name in ("people.sav", "people.dat", "people.xml", "people.duckdb"):
        (tmp_path / name).write_text("")
    (tmp_path / "plan.toml").write_text(PLAN)
    calls = f"""
from stirred.cli.main import main
for words in {list(COMMANDS)!r}:
    print("##", main(words.split()), file=sys.stderr)
"""
    done = child(CORE + calls, tmp_path)
    assert done.returncode == 0, done.stderr
    told = done.stderr.split("## 2\n")
    assert len(told) == len(COMMANDS) + 1
    for (words, extra), text in zip(COMMANDS.items(), told, strict=False):
        assert f"fix: pip install 'stirred[{extra}]'" in text, (words, text)
    assert not (tmp_path / "demo").exists()


def test_extras_are_those_of_the_project() -> None:
    """Every optional library stands in the extra that the error names."""
    names = {module: dists[0].lower() for module, dists in packages_distributions().items()}
    extras = PROJECT["optional-dependencies"]
    for extra, modules in EXTRA_MODULES.items():
        wanted = {text.split(">")[0].lower() for text in extras[extra]}
        assert {names[module].replace("_", "-") for module in modules} == wanted
        assert find_missing(extra) is None
    whole = extras["all"][0].removeprefix("stirred[").removesuffix("]").split(",")
    assert set(whole) == set(EXTRA_MODULES)


def test_a_name_that_the_module_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        OptionalModule("math", "report", why="it is used").no_such_name  # noqa: B018


def test_the_demo_installs_pinned_versions_of_the_core_with_two_extras() -> None:
    """Every line of the demo's list stands in that of the tests, and Spark or a browser's driver is not among them."""
    root = Path(__file__).parents[2]
    small, whole = ((root / name).read_text().splitlines() for name in ("tools/demo.txt", "constraints.txt"))
    assert {line.rstrip(" \\") for line in small} <= {line.rstrip(" \\") for line in whole}
    names = {line.split("==")[0] for line in small if "==" in line}
    assert {"numba", "polars", "vl-convert-python", "highspy", "piqp"} <= names
    assert not names & {"altair", "pyspark", "playwright", "opendp", "pandas", "duckdb", "mypy"}


def test_one_version_everywhere() -> None:
    """A version of an R package is digits alone: 0.99.N stands for the candidate 1.0.0rcN."""
    root = Path(__file__).parents[2]
    version = PROJECT["version"]
    candidate = re.fullmatch(r"1\.0\.0rc(\d+)", version)
    stated = re.search(r"(?m)^version: (.*)$", (root / "CITATION.cff").read_text(encoding="utf-8"))
    in_r = re.search(r"(?m)^Version: (.*)$", (root / "r" / "DESCRIPTION").read_text(encoding="utf-8"))
    assert stated is not None
    assert in_r is not None
    assert stated[1] == version
    assert in_r[1] == (f"0.99.{candidate[1]}" if candidate else version)
