"""Two revisions measured in one run: every number of a benchmark, before and after, with its ratio.

    python benchmarks/revisions/against.py HEAD~20 swapping --households 1000000
    python benchmarks/revisions/against.py v0.3 topdown --generic 0 --rounds 3

The earlier revision is checked out into a temporary folder and its own script runs on its own source, in turn with
this one (before, after, before, after, …), so that a busy machine slows both. The smallest of the rounds is shown: other
work on the machine can only add. Lines that are more than 10 % larger are marked; on a busy machine only processor seconds
and memory can be compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1.10


def numbers(document: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every measured number of a benchmark's JSON with its place: seconds and bytes, nothing else."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from numbers(value, f"{path} {name}".strip())
    elif isinstance(document, list):
        for i, value in enumerate(document):
            yield from numbers(value, f"{path}[{i}]")
    elif isinstance(document, int | float) and not isinstance(document, bool):
        last = path.rsplit(" ", 1)[-1]
        steps = " steps " in f" {path} " or "by_step" in path
        if steps or last.endswith(("_s", "seconds", "bytes", "megabytes")):
            yield path, float(document)


def measured(source: Path, script: str, options: list[str]) -> dict[str, float]:
    """One run of a revision's benchmark."""
    environment = {**os.environ, "PYTHONPATH": f"{source / 'src'}:{source / 'benchmarks'}"}
    extra = [] if script == "topdown" else ["--json"]  # topdown.py always prints JSON
    command = [sys.executable, str(source / "benchmarks" / f"{script}.py"), *options, *extra]
    found = subprocess.run(command, env=environment, cwd=source, capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"{script}.py failed in {source}:\n{found.stderr[-2000:]}")
    return dict(numbers(json.loads(found.stdout)))


def main() -> None:
    """Measure both revisions in turn and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", help="the earlier commit")
    parser.add_argument("script", choices=["swapping", "topdown", "engines", "noise"])
    parser.add_argument("--rounds", type=int, default=2)
    arguments, options = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--detach", "-q", str(before), arguments.revision],
            cwd=ROOT,
            check=True,
        )
        try:
            rounds: dict[Path, list[dict[str, float]]] = {before: [], ROOT: []}
            for _ in range(arguments.rounds):
                for source, found in rounds.items():
                    found.append(measured(source, arguments.script, options))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(before)], cwd=ROOT, check=True)
    least = [{name: min(run[name] for run in runs) for name in runs[0]} for runs in rounds.values()]
    print(f"{'':60} {'before':>14} {'after':>14}  ratio")
    for name, was in least[0].items():
        now = least[1].get(name)
        if now is None or (was < 0.05 and now < 0.05):
            continue
        ratio = now / was if was else float("inf")
        print(f"{name:60} {was:14,.3f} {now:14,.3f}  {ratio:.2f}{'  <-' if ratio > LIMIT else ''}")


if __name__ == "__main__":
    main()
