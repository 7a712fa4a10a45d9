"""The lists of the machine-checked proofs: what is named exists, and the pages are those that the sources give.

Whether the theorems hold is checked by ``make proof``, which needs Coq.
"""

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from stirred.mechanisms.swap.bounds import bounds
from stirred.mechanisms.swap.budget import CHECKED_THEOREMS
from stirred.mechanisms.swap.strata import Stratum

ROOT = Path(__file__).parents[3]
FORMAL = ROOT / "formal"
MAP = tomllib.loads((FORMAL / "map.toml").read_text(encoding="utf-8"))
NAMES = {theorem["name"] for theorem in MAP["theorem"]}
STATUS = {"machine-checked", "partly machine-checked", "enumerated", "on paper"}


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


def test_every_statement_of_the_paper_is_listed_by_itself() -> None:
    listed = [statement["name"] for statement in MAP["statement"] if statement["source"] == "The paper"]
    every = [
        *(f"Proposition {i}" for i in range(1, 11)),
        *(f"Lemma {i}" for i in range(1, 9)),
        *(f"Theorem {i}" for i in range(1, 5)),
    ]
    assert {*every} <= {*listed}
    assert len(listed) == len({*listed})


def test_every_statement_of_the_paper_has_a_test_that_exists() -> None:
    for statement in MAP["statement"]:
        assert ("tests" in statement) == (statement["source"] == "The paper") == ("says" in statement)
        for test in statement.get("tests", ()):
            file, _, name = test.partition("::")
            assert f"\ndef {name}(" in (ROOT / file).read_text(encoding="utf-8"), test


INCLUDE = re.compile(r'```{include} (\S+)\n:start-after: "([^"]+)"\n:end-before: "([^"]+)"\n```')


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "theory").glob("*.md")), ids=lambda page: page.stem)
def test_what_a_theory_page_includes_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = INCLUDE.findall(text)
    assert len(found) == text.count("{include}")
    for path, first, last in found:
        proof = (page.parent / path).read_text(encoding="utf-8")
        assert proof.count(first) == 1, (path, first)
        assert proof.index(first) < proof.index(last), (path, last)


def test_every_statement_of_a_proof_is_listed_and_marked(check: ModuleType) -> None:
    assert check.unmarked(MAP["statement"]) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("## Theorem 1: a thing\n*[on paper]*\n", ""),
        ("- **Theorem 1.** *[on paper]* A thing.\n", ""),
        ("## Theorem 1: a thing\nIt is so.\n", "does not carry the mark"),
        ("## Theorem 1: a thing\n*[enumerated]*\n", "does not carry the mark"),
        ("## Theorem 1: a thing\n*[on paper: `lemma5`]*\n", "does not carry the mark"),
        (
            "## Theorem 1: a thing\n*[on paper]*\n## Lemma 2: more\n*[on paper]*\n",
            "Lemma 2 is not in map.toml",
        ),
        ("## Theorem 1: a thing\n*[on paper]*\n**Lemma 2.** More.\n", "Lemma 2 is not in map.toml"),
        ("## Theorem 1: a thing\n*[on paper]*\nAnd *[enumerated]*.\n", "belongs to no statement"),
    ],
)
def test_what_is_not_listed_or_not_marked_is_found(
    check: ModuleType, tmp_path: Path, text: str, fault: str
) -> None:
    (tmp_path / "proof.md").write_text(text, encoding="utf-8")
    one = {"source": "proof.md", "name": "Theorem 1", "status": "on paper", "words": "a thing"}
    found = check.unmarked([one], tmp_path)
    assert all(fault in line for line in found[:1])
    assert bool(found) == bool(fault)


def test_what_cards_call_machine_checked_is_listed() -> None:
    assert {*CHECKED_THEOREMS.values()} <= NAMES
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
