"""A release from outside a plan that a mechanism reads: its promise is added to the plan's own, or a note says why not."""

import shutil
from pathlib import Path

import pytest

from stirred import Plan, SafeTabH
from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.errors import InputError
from stirred.publish import Packet, parse, run
from stirred.publish.composition import PlanPromise, build_account, state_promise

TOTALS = """title = "totals"
census = "census.toml"
[[mechanism]]
name = "safetab-p"
"""
HOUSEHOLDS = """title = "households"
census = "census.toml"
[[mechanism]]
name = "safetab-h"
totals = "{totals}"
"""


@pytest.fixture(scope="module")
def totals(tmp_path_factory: pytest.TempPathFactory) -> Packet:
    place = tmp_path_factory.mktemp("outside")
    write_preset("demo", place / "census", households=5)
    return run(parse(TOTALS, folder=place / "census"), place / "packet", key=Key.for_tests(1), internal=False)


def promised(totals: Path, census: Census) -> tuple[Plan, PlanPromise]:
    plan = parse(HOUSEHOLDS.format(totals=totals), folder=census.folder)
    return plan, state_promise(plan, census)


@pytest.fixture(scope="module")
def census(totals: Packet) -> Census:
    return read(totals.folder.parent / "census" / "census.toml")


@pytest.mark.parametrize("place", [".", "public/tables/t1.parquet", "public/data/mechanism/t1"])
def test_a_packet_that_is_read_is_in_the_ledger(totals: Packet, census: Census, place: str) -> None:
    plan, promise = promised(totals.folder / place, census)
    assert promise.whole.shown_budget == SafeTabH().specification(census).shown_budget
    assert promise.together is not None
    # without tribal areas: 2 × (4.944 − 0.159), Theorem 2 of SafeTab, and 2 × (8.895302 − 2 × 0.142869), that of SafeTab-H
    assert promise.together.specification.shown_budget == "ρ² = 26.7892"
    assert any("26.7892 under d_Ham(person)" in note for note in promise.whole.notes)
    ledger = build_account(plan, promise)
    assert ledger is not None
    assert [entry.by for entry in ledger.entries] == ["safetab-h: totals", "safetab-h"]
    assert ledger.total == promise.together.specification.budget


def test_totals_without_a_specification_are_named(totals: Packet, census: Census, tmp_path: Path) -> None:
    shutil.copy(totals.public / "tables" / "t1.parquet", tmp_path / "t1.parquet")
    plan, promise = promised(tmp_path / "t1.parquet", census)
    assert promise.together is None
    assert build_account(plan, promise) is None
    assert "reads t1.parquet, which comes without a specification" in promise.whole.notes[-1]


@pytest.mark.parametrize("name", ["spec.json", "receipt.json"])
def test_a_packet_that_cannot_be_read_is_refused(
    totals: Packet, census: Census, tmp_path: Path, name: str
) -> None:
    shutil.copytree(totals.folder, tmp_path / "packet")
    (tmp_path / "packet" / "public" / name).write_text("{}")
    with pytest.raises(InputError, match=r"spec\.json|receipt"):
        promised(tmp_path / "packet", census)
