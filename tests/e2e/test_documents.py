"""Every code block of the README and the docs runs as it is shown (e2e/pages.py says how)."""

import re
import shlex
import shutil
import tomllib
from itertools import zip_longest
from pathlib import Path

import pytest

from e2e.pages import BLOCK, PAGES, ROOT, RUN, SHOWN, Block, blocks, called, commands, run_page
from stirred.spec.files import document

# what a test machine cannot do: fetch packages, submit to a cluster, run other vendors' programs, run itself
CANNOT_RUN = re.compile(
    r"fetches packages|first step|YARN|not in Debian|Tumult|the blocks|the same lines|installs Coq"
)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the commands of a page run in, with the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        document, "CLASS_BY_KIND", dict(document.CLASS_BY_KIND)
    )  # what a page registers is forgotten after it
    return tmp_path


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(b.runs and b.mark != "slow" for b in blocks(p))], ids=name
)
def test_code_blocks_run(page: Path, folder: Path) -> None:
    run_page(page, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if any(b.mark == "slow" for b in blocks(p))], ids=name)
def test_all_code_blocks_run(page: Path, folder: Path) -> None:
    shutil.copytree(ROOT / "benchmarks", folder / "benchmarks")
    run_page(page, slow=True)


def faults(block: Block) -> list[str]:
    """What is wrong with a block as it is written."""
    found = []
    if block.kind not in RUN + SHOWN and block.mark != "file":
        found.append("no known language")
    if block.kind == "console" and not commands(block.text):
        found.append("no line begins with '$ '")
    if block.mark == "not run" and not CANNOT_RUN.search(block.words):
        found.append(f"the reason does not count, since slow blocks run in make test-slow: {block.words}")
    if block.kind == "toml":
        try:
            tomllib.loads(block.text)
        except tomllib.TOMLDecodeError as wrong:
            found.append(str(wrong))
    if block.instead:
        for shown, used in zip_longest(commands(block.text), commands(block.instead), fillvalue=""):
            words = iter(shlex.split(used))
            if not all(word in words for word in shlex.split(shown)):
                found.append(f"another command runs instead: {used}")
    return found


def test_blocks_say_what_they_are() -> None:
    found = [f"{name(p)}: {fault}: {b.text[:60]}" for p in PAGES for b in blocks(p) for fault in faults(b)]
    for page in PAGES:
        comments = re.findall(
            r"^<!-- (?:before|instead|slow|file|not run|ends with)", page.read_text(), re.MULTILINE
        )
        seen = sum(bool(b.before) + bool(b.instead) + bool(b.mark) for b in blocks(page))
        if len(comments) != seen:
            found.append(f"{name(page)}: a comment stands before no block")
    assert not found


def test_a_block_is_read_with_its_comments(tmp_path: Path) -> None:
    text = "<!-- before\n$ a\n-->\n<!-- slow: long -->\n```console\n$ b\n```\n\n```\nplain\n```\n"
    assert [found["kind"] for found in BLOCK.finditer(text)] == ["console", ""]
    (tmp_path / "page.md").write_text(text)
    first, _ = blocks(tmp_path / "page.md")
    assert (first.before, first.mark, commands(first.text)) == ("$ a\n", "slow", ["b"])


@pytest.mark.slow
def test_the_demo_at_its_full_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = called(["demo"])
    assert code == 0, told
    assert all((tmp_path / "demo" / name / "public").is_dir() for name in ("swap-5", "stirring-5", "topdown"))
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*PAGES, ROOT / "ARCHITECTURE.md"]
    broken = [
        f"{page.relative_to(ROOT)} → {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken
