"""Every relative link and every anchor of the documentation leads somewhere, and every page and public name is in it."""

import argparse
import importlib
import re
from pathlib import Path

import pytest

import stirred
from e2e.pages import blocks, commands
from stirred.cli.verbs import VERBS
from stirred.mechanisms.registry import list_mechanisms

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text())


def anchors(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and MyST name them."""
    found: set[str] = set()
    for heading in HEADING.findall(prose(page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        again = sum(
            name == slug or re.fullmatch(f"{re.escape(slug)}-\\d+", name) is not None for name in found
        )
        found.add(f"{slug}-{again}" if again else slug)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors(page: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(page))):
        file = (page.parent / target) if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(f"{target}#{anchor}")
    assert not broken


def listed(page: Path) -> set[Path]:
    """The pages that the tables of contents of a page name."""
    found: set[Path] = set()
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            name = line.partition("<")[2].rstrip(">") or line
            if name.strip() and not name.startswith(":"):
                found |= set(page.parent.glob(f"{name.strip()}.md"))
    return found


def test_every_page_is_in_a_table_of_contents() -> None:
    pages = set(DOCS.rglob("*.md")) - {DOCS / "index.md"}
    assert not pages - set().union(*(listed(page) for page in DOCS.rglob("*.md")))


ROOMS = {  # each room whose __all__ is its public API, with the names that are described under another path
    "spec": "", "spec.files": "", "spec.card": "", "census": "", "census.synthetic": "", "chance": "", "engine": "",
    "catalog": "Catalog CatalogEntry", "mechanisms.swap": "", "mechanisms.topdown": "",
    "assess.attack": "", "assess.audit": "", "assess.universe": "", "publish": "", "report": "",
    "languages": "",
}  # fmt: skip


def described() -> set[str]:
    """The dotted names, below stirred, that the API reference describes."""
    text = "".join(page.read_text() for page in (DOCS / "reference/api").glob("*.md"))
    return set(re.findall(r"^\.\. auto\w+:: stirred\.([\w.]+)$", text, re.MULTILINE))


def test_every_public_name_is_in_the_reference() -> None:
    named = described()
    assert not set(stirred.__all__) - named
    missing = {
        f"{room}.{name}"
        for room, elsewhere in ROOMS.items()
        for name in set(importlib.import_module(f"stirred.{room}").__all__) - set(elsewhere.split())
        if name not in named and f"{room}.{name}" not in named
    }
    assert not missing


def test_every_verb_is_shown_in_use() -> None:
    shown = {
        tuple(line.split()[1:3]) for page in PAGES for block in blocks(page) for line in commands(block.text)
    }
    first = {words[0] for words in shown if words}
    missing = set(VERBS) - first
    said = {line for page in PAGES for block in blocks(page) for line in commands(block.text)}
    missing |= {
        entry.command
        for entry in list_mechanisms().values()
        if not any(f" {entry.command} " in f" {line} " for line in said)
    }
    for verb in ("data", "packet", "plan", "spec"):
        parser = argparse.ArgumentParser()
        importlib.import_module(VERBS[verb][0]).add_arguments(parser)
        parts = next(action.choices for action in parser._actions if isinstance(action.choices, dict))
        missing |= {f"{verb} {part}" for part in parts if (verb, part) not in shown}
    assert not missing
