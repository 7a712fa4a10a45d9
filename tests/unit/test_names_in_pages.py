"""What pages and proofs name exists: files, functions, classes with their methods and fields, and theorems."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import stirred

SOURCE = Path(stirred.__file__).parent
ROOT = SOURCE.parents[1]
PROOFS = sorted(SOURCE.rglob("*.md"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GUIDE = ROOT / "docs/explain/read-the-code.md"

SPAN = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w./-]+\.(?:py|md|v)")
NAME = re.compile(r"([A-Za-z_]\w*(?:\.\w+)*)(\(.*\))?")
DEFINED = re.compile(r"^( {4})?(?:(?:async )?def (\w+)|class (\w+)|([A-Za-z_]\w*)(?=:| = ))", re.MULTILINE)
PARAMETER = re.compile(r"(?<=\()(\w+)(?=: )|(?<=, )(\w+)(?=: )|(?<=^ {8})(\w+)(?=: .*,$)", re.MULTILINE)
PROVED = re.compile(r"^\s*(?:Theorem|Lemma|Corollary|Definition|(?:Program )?Fixpoint) (\w+)", re.MULTILINE)
WRITTEN_BY_READERS = {"redo.py", "own_mechanism.py"}  # the script of a packet, and of the page on extending

Names = dict[str, set[str]]


@cache
def list_names(path: Path) -> Names:
    """The names that a file defines, by the class or module that they belong to; under "" all of them."""
    text = path.read_text(encoding="utf-8")
    found: Names = defaultdict(set)
    module = within = path.parent.name if path.stem == "__init__" else path.stem
    for indent, function, kind, value in DEFINED.findall(text):
        if not indent:
            within = kind or module
        name = function or kind or value
        found[within if indent else module].add(name)
        found[""].add(name)
    found[path.parent.name].add(module)
    found[""] |= {module, *("".join(match) for match in PARAMETER.findall(text))}
    return found


@cache
def list_all_names() -> Names:
    found: Names = defaultdict(set)
    for path in [*SOURCE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for owner, names in list_names(path).items():
            found[owner] |= names
    for path in (ROOT / "formal").glob("*.v"):
        found[""] |= set(PROVED.findall(path.read_text(encoding="utf-8")))
    return found


@cache
def list_files() -> tuple[str, ...]:
    return tuple(
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in ("src", "tests", "docs", "formal", "tools", "benchmarks", "examples")
        for path in (ROOT / folder).rglob("*.*")
    )


def exists(file: str, page: Path) -> bool:
    """Whether a path leads somewhere from the page, or is the end of a path in the project."""
    return (page.parent / file).exists() or any(path.endswith(f"/{file}") for path in list_files())


def is_defined(name: str, names: Names) -> bool:
    owner, _, last = name.rpartition(".")
    return last in names.get(owner.rpartition(".")[2], ())


def find_stale(text: str, page: Path, *, proof: bool) -> list[str]:
    """The paths, and in a proof the names of code, that lead nowhere."""
    stale = []
    for span in dict.fromkeys(SPAN.findall(text)):
        name = NAME.fullmatch(span)
        if FILE.fullmatch(span):
            known = span in WRITTEN_BY_READERS or (span.endswith(".md") and not proof) or exists(span, page)
            stale += [] if known else [span]
        elif proof and name and re.search(r"[._(]|^[A-Z][a-z]", span):
            stale += [] if is_defined(name[1], list_all_names()) else [span]
    return stale


@pytest.mark.parametrize("page", [*PROOFS, *PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    assert find_stale(page.read_text(encoding="utf-8"), page, proof=page in PROOFS) == []


def test_a_stale_name_is_found() -> None:
    text = "`Key.bind`, `Key.bound`, `swap/moves.py`, `guards/mine.py`, `draw_moves(…)`, `draw_move`, `lemma5`, `p`"
    assert find_stale(text, PROOFS[0], proof=True) == ["Key.bound", "guards/mine.py", "draw_move"]
    assert find_stale(text, PROOFS[0], proof=False) == ["guards/mine.py"]
