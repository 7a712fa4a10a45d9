"""Every code block of the README and the docs runs as it is shown.

``python`` blocks of a page share one namespace (lines with ``>>>`` are doctests); in ``console`` blocks each line that
starts with ``$ stirred`` runs and must succeed, in one folder per page. It runs in this process, which saves starting Python
seventy times (test_packet.py starts the installed command), and in its own one on Spark. ``$ cp -r A B`` copies a folder. A
block after the comment ``<!-- file: NAME -->`` is a file that the reader writes. A block that needs what a test machine
lacks (a cluster, a full-size run) stands after the comment ``<!-- not run: reason -->``.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stirred.census.synthetic import write_preset
from stirred.cli.main import main
from stirred.spec.files import parts

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"(?:<!-- (not run|file): ([^>]+?) -->\s*)?^(`{3,})(\w+)\n(.*?)^\3$", re.MULTILINE | re.DOTALL
)
STIRRED = Path(sys.executable).with_name("stirred")


def blocks(page: Path) -> list[tuple[str, str]]:
    """What runs, in order: the kind of a block and its text; of a file its name stands in the place of the kind."""
    found = []
    for mark, words, _, kind, text in BLOCK.findall(page.read_text()):
        if mark == "file":
            found.append((words, text))
        elif kind in ("python", "console") and not mark:
            found.append((kind, text))
    return found


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parts, "KINDS", dict(parts.KINDS))  # what a page registers is forgotten after it
    namespace: dict[str, object] = {"__name__": "__main__"}
    for kind, text in blocks(page):
        if kind == "console":
            run_commands(text)
        elif kind != "python":
            Path(kind).parent.mkdir(parents=True, exist_ok=True)
            Path(kind).write_text(text)
        elif ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, namespace, page.name, str(page), 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            output: list[str] = []
            runner.run(test, out=output.append, clear_globs=False)
            namespace = dict(test.globs)
            assert not runner.failures, "".join(output)
        else:
            exec(compile(text, str(page), "exec"), namespace)


def run_commands(text: str) -> None:
    joined = text.replace("\\\n", " ")
    for line in joined.splitlines():
        if line.startswith("$ cp -r "):
            shutil.copytree(*line.split()[3:])
        if not line.startswith("$ stirred"):
            continue
        words = shlex.split(line.removeprefix("$ "), comments=True)[1:]
        if words == ["demo"]:  # takes the census that it finds: a small one here, the whole in make test-slow
            write_preset("demo", Path("demo/census"), households=2_000)
        code, told = started(words) if "spark" in words else called(words)
        assert code == 0, f"{line}\n{told}"


@pytest.mark.slow
def test_the_demo_at_its_full_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, told = called(["demo"])
    assert code == 0, told
    assert all((tmp_path / "demo" / name / "public").is_dir() for name in ("swap-5", "swap-50", "topdown"))
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000


def started(words: list[str]) -> tuple[int, str]:
    """Run the installed command; its exit code and errors."""
    command = [str(STIRRED), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    return done.returncode, done.stderr


def called(words: list[str]) -> tuple[int, str]:
    """Run the command in this process; its exit code and errors."""
    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        try:
            code = main(words)
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return code, told.getvalue()


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*PAGES, ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"]
    broken = [
        f"{page.relative_to(ROOT)} → {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken
