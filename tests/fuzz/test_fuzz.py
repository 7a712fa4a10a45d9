"""Schemas, plans, specifications, packets, states and records, mutated at random.

``make test-slow`` runs 110,060 cases. One case again: ``Targets(folder).explore(target, seed, 1, first=number)``.
"""

import os
import tempfile
from collections.abc import Iterator

import pytest

from fuzz.targets import Targets

SEED = int(os.environ.get("STIRRED_FUZZ_SEED", "1"))
MANY = {
    "schema": 30_000,
    "plan": 28_000,
    "workload": 2_000,
    "specification": 18_000,
    "packet": 9_000,
    "state": 8_000,
    "resumed": 200,
    "text": 2_400,
    "parquet": 1_600,
    "command": 800,
    "bureau": 6_000,
    "lists": 4_000,
    "measured": 60,
}
FEW = {
    "schema": 100,
    "plan": 100,
    "workload": 20,
    "specification": 80,
    "packet": 20,
    "state": 20,
    "text": 10,
    "parquet": 10,
    "command": 3,
    "bureau": 12,
    "lists": 25,
    "measured": 2,
}
# (target, seed, number) of cases that found something
FOUND: tuple[tuple[str, int, int], ...] = (
    ("schema", 101, 7035),
    ("specification", 102, 1),
    ("specification", 102, 38),
    ("specification", 102, 1543),
    ("specification", 102, 9340),
    ("specification", 102, 10548),
    ("packet", 102, 786),
    ("packet", 102, 2560),
    ("packet", 102, 6423),
    ("parquet", 103, 9),
    ("parquet", 103, 1570),
    ("parquet", 202, 509),
    ("parquet", 202, 1156),  # Polars ended the process
    ("command", 103, 203),
    ("command", 103, 637),
)


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Targets]:
    before = tempfile.tempdir
    yield Targets(tmp_path_factory.mktemp("fuzz") / "outer")
    tempfile.tempdir = before


@pytest.mark.parametrize("target", FEW)
def test_a_few_mutated_files_are_refused_or_harmless(target: str, targets: Targets) -> None:
    assert targets.explore(target, 2026, FEW[target]) == []


@pytest.mark.parametrize(("target", "seed", "number"), FOUND)
def test_cases_that_found_something_are_refused_now(
    target: str, seed: int, number: int, targets: Targets
) -> None:
    assert targets.explore(target, seed, 1, first=number) == []


@pytest.mark.slow
@pytest.mark.parametrize("target", MANY)
def test_a_hundred_thousand_mutated_files_are_refused_or_harmless(target: str, targets: Targets) -> None:
    print(f"seed {SEED}: {MANY[target]:,} cases of {target}")
    found = targets.explore(target, SEED, MANY[target])
    assert not found, f"{len(found)} findings, the first: {found[:5]}"
