"""The code blocks of a page, and how they run.

A comment before a block says what is special about it:

``<!-- file: NAME -->``        a file that the reader writes
``<!-- slow: reason -->``      runs in ``make test-slow`` alone, after all blocks of its page that stand before it
``<!-- ends with 1: why -->``  its last command ends with this code
``<!-- not run: reason -->``   needs what no test machine has: a cluster, another vendor's program
``<!-- before … -->``          lines that run before the block, for what its reader has already: a census, a packet
``<!-- instead … -->``         lines that run in its place: the same commands with options more (a smaller census)

``/shared/`` in a block is a folder of the page's own one.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred.census.synthetic import write_preset
from stirred.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
STIRRED = Path(sys.executable).with_name("stirred")
RUN = ("python", "console", "r")
SHOWN = ("toml", "json", "text", "{toctree}", "{eval-rst}", "{include}")
BLOCK = re.compile(
    r"(?:<!-- before\n(?P<before>(?:(?!-->).)*)-->\s*)?"
    r"(?:<!-- instead\n(?P<instead>(?:(?!-->).)*)-->\s*)?"
    r"(?:<!-- (?P<mark>not run|slow|file|ends with \d+): (?P<words>[^>]+?) -->\s*)?"
    r"^(?P<fence>`{3,})(?P<kind>\S*)[^\n]*\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
SHELL = set("|&;<>()")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of code, with the comments before it."""

    kind: str
    text: str
    mark: str
    words: str
    before: str
    instead: str

    @property
    def runs(self) -> bool:
        """Whether some test runs or writes it."""
        return self.mark == "file" or (self.kind in RUN and self.mark != "not run")


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    parts = ("kind", "text", "mark", "words", "before", "instead")
    return [
        Block(**{part: found[part] or "" for part in parts}) for found in BLOCK.finditer(page.read_text())
    ]


def commands(text: str) -> list[str]:
    """The lines of a console block that a reader types."""
    return [line[2:] for line in text.replace("\\\n", " ").splitlines() if line.startswith("$ ")]


def run_page(page: Path, *, slow: bool) -> None:
    """Run the blocks of a page in the current folder, in order; those marked slow only when asked for."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if not block.runs or (block.mark == "slow" and not slow):
            continue
        before, text = (
            part.replace("/shared/", f"{Path.cwd()}/shared/")
            for part in (block.before, block.instead or block.text)
        )
        if before.startswith("$ "):
            run_commands(before)
        elif before:
            namespace = run_python(before, namespace, page)
        if block.mark == "file":
            Path(block.words).parent.mkdir(parents=True, exist_ok=True)
            Path(block.words).write_text(text)
        elif block.kind == "console":
            run_commands(text, ends_with=int(block.mark.partition("ends with ")[2] or 0))
        elif block.kind == "r":
            subprocess.run(["Rscript", "-e", text], check=True, env=environment())
        else:
            namespace = run_python(text, namespace, page)
    if "spark" in namespace:
        namespace["spark"].stop()


def run_python(text: str, namespace: dict[str, Any], page: Path) -> dict[str, Any]:
    """Run one block: lines with ``>>>`` as doctests, others as they are; the names that the next block sees."""
    if ">>>" not in text:
        exec(compile(text, str(page), "exec"), namespace)
        return namespace
    test = doctest.DocTestParser().get_doctest(text, namespace, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output: list[str] = []
    runner.run(test, out=output.append, clear_globs=False)
    assert not runner.failures, "".join(output)
    return dict(test.globs)


def run_commands(text: str, *, ends_with: int = 0) -> None:
    """Run every line that a reader types; the last one ends with this code, the others with 0."""
    lines = commands(text)
    for line in lines:
        # the demo takes the census that it finds: a small one here
        if line in ("stirred demo", "make demo") and not Path("demo/census").exists():
            write_preset("demo", Path("demo/census"), households=2_000)
        code, told = run_command(line)
        assert code == (ends_with if line == lines[-1] else 0), f"{line}\n{told}"


def run_command(line: str) -> tuple[int, str]:
    """Run one line; its exit code and what it told."""
    words = shlex.split(line, comments=True)
    if words[:2] == ["stirred", "serve"]:
        return served(words[1:])
    alone = words[0] == "stirred" and not any(
        set(word) <= SHELL for word in shlex.shlex(line, punctuation_chars=True)
    )
    if alone and "spark" not in words and not installed().exists():
        return called(words[1:])
    if words[0] == "make":  # with the Python that runs the tests, which is set up already
        line = shlex.join(
            ["make", "-f", str(ROOT / "Makefile"), "-o", "setup", f"VENV={sys.prefix}", *words[1:]]
        )
    done = subprocess.run(line, shell=True, capture_output=True, text=True, env=environment(), check=False)
    return done.returncode, done.stdout + done.stderr


def installed() -> Path:
    """Where ``pip install`` puts what a page installs; a package of the tests stays as it is."""
    return Path.cwd() / "installed"


def environment() -> dict[str, str]:
    """The commands of this Python first, and nothing fetched or installed outside the page's folder."""
    found = dict(os.environ)
    found["PATH"] = os.pathsep.join([str(STIRRED.parent), found.get("PATH", "")])
    paths = [str(installed()), str(ROOT / "src"), *found.get("PYTHONPATH", "").split(os.pathsep)]
    found["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    pip = {
        "TARGET": str(installed()),
        "NO_DEPS": "1",
        "NO_BUILD_ISOLATION": "0",
        "NO_INDEX": "1",
        "QUIET": "1",
    }
    return found | {f"PIP_{name}": value for name, value in pip.items()}


def called(words: list[str]) -> tuple[int, str]:
    """Run the command in this process, which saves starting Python seventy times; its exit code and errors."""
    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        try:
            code = main(words)
        except SystemExit as stopped:
            code = int(stopped.code or 0)
    return code, told.getvalue()


def served(words: list[str]) -> tuple[int, str]:
    """Start a server on a free port, wait until it names its address, and stop it as Ctrl-C does."""
    command = [str(STIRRED), *words, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as server:
        assert server.stdout is not None
        told = ""
        while "open http" not in told and (line := server.stdout.readline()):
            told += line
        server.send_signal(signal.SIGINT)
        return server.wait(timeout=60), told
