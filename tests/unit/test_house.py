"""The rules of the house: imports go one way, modules stay small, public names are declared."""

import ast
import importlib
from pathlib import Path

import pytest

import stirred

ROOT = Path(stirred.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
# Each room may import the rooms before it and itself.
ORDER = [
    "errors",
    "compiled",
    "frames",
    "spec",
    "chance",
    "census",
    "engine",
    "mechanisms",
    "catalog",
    "assess",
    "report",
    "publish",
]
TOP = ["web", "cli", "paper"]


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
            if node.module == "stirred":
                names |= {f"stirred.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] == "stirred"}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    parts = path.relative_to(ROOT).with_suffix("").parts
    home = parts[0]
    if home in {"__init__", "__main__"}:
        return
    seen = {room(name) for name in imported(path)} - {"", home}
    if home == "spec":
        assert seen <= {"errors"}
        return
    allowed = set(ORDER) | {home} if home in TOP else set(ORDER[: ORDER.index(home)])
    assert seen <= allowed, f"{path.name} in {home} reaches up to {sorted(seen - allowed)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_over_400_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_there_is_no_drawer_for_odds_and_ends() -> None:
    assert not [path for path in MODULES if path.stem in {"utils", "helpers", "misc", "common"}]


def test_public_names_are_exactly_all() -> None:
    assert stirred.__all__ == sorted(stirred.__all__)
    for name in stirred.__all__:
        assert getattr(stirred, name) is not None
    public = {name for name in dir(stirred) if not name.startswith("_")}
    assert public == set(stirred.__all__)


def test_every_module_imports_and_says_what_it_is_for() -> None:
    for path in MODULES:
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name.endswith("__main__"):
            continue
        module = importlib.import_module(name)
        assert module.__doc__, f"{name} has no docstring"
