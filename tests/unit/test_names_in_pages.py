"""What pages and proofs name exists: files, functions, classes with their methods and fields, and theorems."""

import ast
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
LINK_OR_SPAN = re.compile(r"\[`([^`]+)`\]\(([^)]+)\)|`([^`\n]+)`")
ITEM = re.compile(r"^(?:\d+\. |- |\| )", re.MULTILINE)
MAX_LINES_IN_AN_HOUR = 1_050  # of code, beside this page
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


def list_linked_names(text: str) -> list[tuple[Path | None, str]]:
    """The names of a text, each with the file of the last link before it in the same item or row of a table."""
    found: list[tuple[Path | None, str]] = []
    for item in ITEM.split(text):
        file = None
        for title, target, span in LINK_OR_SPAN.findall(item):
            if target:
                file = (GUIDE.parent / target).resolve()
                assert file.as_posix().endswith(title), target
            elif (name := NAME.fullmatch(span)) is not None:
                found.append((file, name[1]))
    return found


def count_lines(path: Path, name: str) -> int:
    """The lines of a function, or of a class up to its first method."""
    node: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for part in name.split("."):
        node = next(one for one in getattr(node, "body", ()) if getattr(one, "name", "") == part)
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    end = methods[0].lineno - 1 if isinstance(node, ast.ClassDef) and methods else node.end_lineno
    return int(end or 0) - node.lineno + 1


def test_the_guide_names_what_stands_in_the_linked_file() -> None:
    named = list_linked_names(GUIDE.read_text(encoding="utf-8"))
    assert len(named) > 50
    stale = [
        name for file, name in named if not is_defined(name, list_names(file) if file else list_all_names())
    ]
    assert stale == []


def test_the_guide_can_be_read_in_an_hour() -> None:
    hour = GUIDE.read_text(encoding="utf-8").partition("## The hour")[2].partition("\n## ")[0]
    read = {(file, name) for file, name in list_linked_names(hour) if file and file.is_relative_to(SOURCE)}
    lines = sum(count_lines(file, name) for file, name in read if file)
    assert 900 <= lines <= MAX_LINES_IN_AN_HOUR, lines
