"""The lists of the machine-checked proofs: what is named exists, and the pages are those that the sources give.

Whether the theorems hold is checked by ``make proof``, which needs Coq.
"""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from stirred.mechanisms.swapping.budget.by_size import CHECKED
from stirred.mechanisms.swapping.budget.claim import Stratum, bounds

ROOT = Path(__file__).parents[3]
FORMAL = ROOT / "formal"
MAP = tomllib.loads((FORMAL / "map.toml").read_text(encoding="utf-8"))
NAMES = {theorem["name"] for theorem in MAP["theorem"]}
STATUS = {"machine-checked", "partly machine-checked", "enumerated", "on paper"}
MARK = re.compile(r"\*\[([^\]]*machine-checked[^\]]*)\]\*")


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("formal_check", FORMAL / "check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("theorem", MAP["theorem"], ids=lambda t: f"{t['file']}.{t['name']}")
def test_every_listed_theorem_is_stated_in_its_file(theorem: dict[str, str], check: ModuleType) -> None:
    assert theorem["name"] in check.statement(theorem)


def test_every_statement_has_a_status_and_names_listed_theorems() -> None:
    for statement in MAP["statement"]:
        assert statement["status"] in STATUS
        assert {*statement.get("theorems", ())} <= NAMES, statement["name"]
        assert statement["status"] != "machine-checked" or statement.get("theorems")


def test_the_marks_of_the_proofs_name_listed_theorems() -> None:
    marks = [
        mark
        for page in (ROOT / "src").rglob("proof.md")
        for mark in MARK.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(marks) > 10
    for mark in marks:
        assert {*re.findall(r"`(\w+)`", mark)} <= NAMES, mark


def test_what_cards_call_machine_checked_is_listed() -> None:
    assert {*CHECKED.values()} <= NAMES
    stratum = Stratum(n=10, hold_types=4, swap_types=4)
    assert [bound.source.rpartition(": ")[2] for bound in bounds([stratum], "1/2")] == [
        "theorem1",
        "theoremB",
    ]


def test_the_pages_are_written_from_the_map(check: ModuleType) -> None:
    for path, text in check.pages(MAP).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: python3 formal/check.py --write"


def test_nothing_is_left_unproved(check: ModuleType) -> None:
    assert check.gaps() == []
    assert {path.name for path in check.sources()} == {path.name for path in FORMAL.glob("*.v")}


@pytest.mark.parametrize(
    "gap", ["Proof. Admitted.", "Axiom a : 0 = 1.", "Proof. admit. Qed.", "Parameter b : nat."]
)
def test_a_gap_is_found(check: ModuleType, gap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mutant.v"
    file.write_text(f"(* Admitted: only a comment *)\nLemma l : 1 = 1.\n{gap}\n")
    monkeypatch.setattr(check, "sources", lambda: [file])
    assert [fault.split(": ")[0] for fault in check.gaps()] == ["mutant.v:3"]
