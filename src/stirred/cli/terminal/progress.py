"""Progress of long runs: bars on a terminal, a line a step elsewhere, and a structured log beside the packet."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.process.pipes import settled

if TYPE_CHECKING:
    from stirred.engine import Progress as ProgressEvents


@contextmanager
def bars(*, quiet: bool = False) -> "Iterator[ProgressEvents]":
    """Bars on standard error while the block runs, or lines where it is not a terminal; nothing when it is quiet."""
    if quiet:
        yield _nothing
        return
    if not sys.stderr.isatty():
        yield _line_a_step()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:>12}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        tasks: dict[str, TaskID] = {}

        def report(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = shown.add_task(step, total=max(total, 1))
            shown.update(tasks[step], completed=done, total=max(total, 1))

        yield report


def _nothing(step: str, done: int, total: int) -> None:
    """Show no progress."""


def _line_a_step() -> "ProgressEvents":
    """Print the name of each step when it begins, with the seconds since the start."""
    began, under_way = time.monotonic(), set[str]()

    def report(step: str, done: int, total: int) -> None:
        begins = step not in under_way
        under_way.add(step)
        if done >= total:
            under_way.discard(step)  # a later release has the same steps
        if begins and (done < total or total == 0):
            try:
                print(f"{time.monotonic() - began:6.1f} s  {step}", file=sys.stderr, flush=True)
            except OSError:  # nobody reads: the run goes on
                settled(sys.stderr)

    return report


@contextmanager
def logged(path: Path, inner: "ProgressEvents") -> "Iterator[ProgressEvents]":
    """Write each step to a JSON-lines log beside the packet; it holds times, and no value of a record."""
    began = time.monotonic()
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "a", encoding="utf-8"
    ) as file:

        def report(step: str, done: int, total: int) -> None:
            if done in (0, total):
                event = {
                    "step": step,
                    "state": "done" if done == total else "begun",
                    "seconds": round(time.monotonic() - began, 3),
                }
                file.write(json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **event}) + "\n")
                file.flush()
            inner(step, done, total)

        yield report
