"""Progress of long runs: bars on a terminal, a line a step elsewhere, and a structured log beside the packet."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.process.pipes import flush_stream
from stirred.closed_files import append_closed

if TYPE_CHECKING:
    from stirred.engine import Progress as ProgressEvents


LINE_AFTER_SECONDS = 5.0  # seconds after which a line says how far a step is
LOG_AFTER_SECONDS = 1.0


def percent(done: int, total: int) -> int:
    """Return the progress of a step in percent; counts, such as those of strata, are not shown.

    >>> percent(1, 3), percent(7, 0)
    (33, 100)
    """
    return 100 if total <= 0 else min(100, max(0, 100 * done // total))


@contextmanager
def show_progress(*, quiet: bool = False, late: bool = False) -> "Iterator[ProgressEvents]":
    """Show bars on standard error while the block runs, lines without a terminal, nothing when quiet.

    ``late`` lines are only those of steps that last: what is refused at once is one error and nothing before it.
    """
    if quiet:
        yield _nothing
        return
    if not sys.stderr.isatty():
        yield _line_a_step(late=late)
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


def _line_a_step(*, late: bool = False) -> "ProgressEvents":
    """Print the name of each step when it begins, with the seconds since the start; a long one says how far it is."""
    began, told = time.monotonic(), dict[str, float]()  # when a step under way was last told

    def report(step: str, done: int, total: int) -> None:
        now = time.monotonic()
        begins, last = step not in told, told.get(step, now)
        told[step] = last
        if done >= total:
            told.pop(step)  # a later release has the same steps
        far = (
            "" if begins or done >= total or now - last < LINE_AFTER_SECONDS else f" {percent(done, total)} %"
        )
        if far or (begins and not late and (done < total or total == 0)):
            if step in told:
                told[step] = now
            try:
                print(f"{now - began:6.1f} s  {step}{far}", file=sys.stderr, flush=True)
            except OSError:  # nobody reads: the run goes on
                flush_stream(sys.stderr)

    return report


@contextmanager
def log_progress(path: Path, inner: "ProgressEvents") -> "Iterator[ProgressEvents]":
    """Write each step to a JSON-lines log beside the packet; it holds times, and no value of a record."""
    began = last = time.monotonic()
    with os.fdopen(append_closed(path), "a", encoding="utf-8") as file:

        def report(step: str, done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            whole = done in (0, total)
            if whole or now - last >= LOG_AFTER_SECONDS:
                last = now
                event: dict[str, object] = {
                    "step": step,
                    "state": "done" if done == total else "begun" if whole else "under way",
                    "seconds": round(now - began, 3),
                }
                if not whole:
                    event["percent"] = percent(done, total)
                file.write(json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **event}) + "\n")
                file.flush()
            inner(step, done, total)

        yield report
