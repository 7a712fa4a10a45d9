"""Print texts, tables and progress for people, or one JSON document for programs."""

import json
import os
import re
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.process import write_event, write_line
from stirred.closed_files import append_closed
from stirred.kernels import COMPILING, tell_compiling

if TYPE_CHECKING:
    from stirred.engine import Progress as ProgressEvents


# Tables as text: a cell may be wrapped between its words, and nothing is ever cut.

GAP_SPACES = 3  # spaces between columns
MIN_WIDTH_COLUMNS = 12  # a column of words is not made narrower than this
_NUMBER = re.compile(r"[≥≤<>×+\-−–~ ]*[0-9][0-9.,:/e+\-− ]*( ?%)?|[∞–—]|any factor|")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A title, the heads of the columns and rows of cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self, width: int) -> Iterator[str]:
        """Yield the lines; they exceed ``width`` only where a number or a word needs it.

        >>> print(*TextTable(title="Homes", columns=("county", "count"), rows=(("Kauai", "19,432"),)).lines(9), sep="\\n")
        Homes
        <BLANKLINE>
         county    count
         ───────────────
         Kauai    19,432
        <BLANKLINE>
        """
        widths = self._widths(width)
        if self.title:
            yield self.title
            yield ""
        if any(self.columns):
            yield from self._row(self.columns, widths)
            yield " " + "─" * (sum(widths) + GAP_SPACES * (len(widths) - 1))
        for row in self.rows:
            yield from self._row(row, widths)
        yield ""

    def _cells(self, column: int) -> list[str]:
        return [row[column] for row in self.rows]

    def _numeric(self, column: int) -> bool:
        return bool(self.rows) and all(_NUMBER.fullmatch(cell) for cell in self._cells(column))

    def _widths(self, width: int) -> list[int]:
        """Return the widths of columns; shrink the widest column of words first where they are too many."""
        natural, least = [], []
        for column, head in enumerate(self.columns):
            cells = [*self._cells(column), head]
            natural.append(max(map(columns_of, cells)))
            words = self._cells(column) if self._numeric(column) else [w for c in cells for w in c.split(" ")]
            longest = max(map(columns_of, [*words, *head.split(" ")]), default=0)
            least.append(min(natural[-1], max(longest, MIN_WIDTH_COLUMNS)))
        while sum(natural) + GAP_SPACES * (len(natural) - 1) + 1 > width:
            free = [column for column, found in enumerate(natural) if found > least[column]]
            if not free:
                break
            natural[max(free, key=natural.__getitem__)] -= 1
        return natural

    def _row(self, cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
        wrapped = [_wrap_cell(cell, width) for cell, width in zip(cells, widths, strict=True)]
        right = [self._numeric(column) for column in range(len(widths))]
        for place in range(max(map(len, wrapped))):
            parts = []
            for lines, width, at_right in zip(wrapped, widths, right, strict=True):
                text = lines[place] if place < len(lines) else ""
                blank = " " * (width - columns_of(text))
                parts.append(blank + text if at_right else text + blank)
            yield (" " + (" " * GAP_SPACES).join(parts)).rstrip()


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text fills.

    >>> columns_of("ε = 2"), columns_of("東京")
    (5, 4)
    """
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _wrap_cell(cell: str, width: int) -> list[str]:
    if columns_of(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]


# What a command prints: texts and tables for people, or one JSON document for programs.

_STYLES = {"bold": "1", "yellow": "33"}
PIPE_WIDTH_COLUMNS = 120  # of tables in a pipe, unless COLUMNS says otherwise


def escape_controls(text: str) -> str:
    """Return a text with control characters escaped, which could move the cursor or reorder the text.

    >>> escape_controls("a\\x1b[2Jb\\u202ec")
    'a\\\\x1b[2Jb\\\\u202ec'
    """
    if text.isprintable():
        return text
    harmless = "\n\t\u200d\u00ad"
    return "".join(
        c if c in harmless or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else ascii(c)[1:-1]
        for c in text
    )


def escape_line(text: str) -> str:
    """Return a text with control characters and line ends escaped, so that it stays in one line.

    >>> escape_line("a\\nchanged: b\\u2028c")
    'a\\\\nchanged: b\\\\u2028c'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


class PlainConsole:
    """Standard output for people: texts are printed as they are, without control characters."""

    def print(self, *objects: "str | TextTable", sep: str = " ", style: str = "") -> None:
        """Print texts and tables; a style is seen on a terminal only."""
        width = table_width()
        text = sep.join(
            escape_controls(part) if isinstance(part, str) else "\n".join(part.lines(width))
            for part in objects
        )
        if style and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
            text = f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
        sys.stdout.write(text + "\n")


def table_width() -> int:
    """Return the columns of the terminal; in a pipe those of COLUMNS, or 120."""
    return shutil.get_terminal_size((PIPE_WIDTH_COLUMNS, 24)).columns if sys.stdout.isatty() else _columns()


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    return int(given) if given.isdecimal() and given.isascii() else PIPE_WIDTH_COLUMNS


def console() -> PlainConsole:
    """Return the standard output for people; a name in a file cannot style or move it."""
    return PlainConsole()


def print_json(document: object) -> None:
    """Print one JSON document and nothing else on standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    """Return a plain table with a title; numbers come in as text, already rounded the safe way."""
    return TextTable(
        title=escape_controls(title),
        columns=tuple(map(escape_controls, columns)),
        rows=tuple(tuple(map(escape_controls, row)) for row in rows),
    )


# Progress of long runs: bars on a terminal, a line a step elsewhere, and a structured log beside the packet.

LINE_AFTER_SECONDS = 5.0  # seconds after which a line says how far a step is
LOG_AFTER_SECONDS = 1.0


def percent(done: int, total: int) -> int:
    """Return the progress of a step in percent; counts, such as those of strata, are not shown.

    >>> percent(1, 3), percent(7, 0)
    (33, 100)
    """
    return 100 if total <= 0 else min(100, max(0, 100 * done // total))


PROGRESS_KINDS = ("lines", "json", "none")


@contextmanager
def show_progress(
    *, quiet: bool = False, late: bool = False, kind: str | None = None, began: float | None = None
) -> "Iterator[ProgressEvents]":
    """Show bars on standard error while the block runs, lines without a terminal, nothing when quiet.

    Seconds are those since ``began`` (``time.monotonic()``), by default since this call.

    ``late`` lines are only those of steps that last: what is refused at once is one error and nothing before it. A
    ``kind`` that is asked for decides: a line a step, a JSON object a line, or nothing.
    """
    if kind == "none" or (quiet and kind is None):
        yield _nothing
        return
    if kind == "json":
        events = _tell_events(partial(write_event, "progress"), began)
        with tell_compiling(partial(events, COMPILING, 0, 1)):
            yield events
        return
    if kind == "lines" or not sys.stderr.isatty():
        began = time.monotonic() if began is None else began
        note = partial(write_step, began, COMPILING)
        with tell_compiling(note):
            yield _line_a_step(began, late=late)
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

        with tell_compiling(partial(shown.console.print, COMPILING)):
            yield report


def _nothing(step: str, done: int, total: int) -> None:
    """Show no progress."""


def write_step(began: float, words: str) -> None:
    """Write a line about a step, with the seconds since the start."""
    write_line(f"{time.monotonic() - began:6.1f} s  {words}")


def _line_a_step(began: float, *, late: bool = False) -> "ProgressEvents":
    """Print the name of each step when it begins, with the seconds since the start; a long one says how far it is."""
    from stirred.census.progress import estimate_left, write_left

    told, first = dict[str, float](), dict[str, float]()  # when a step under way was last told, and began

    def report(step: str, done: int, total: int) -> None:
        now = time.monotonic()
        begins, last = step not in told, told.get(step, now)
        told[step] = last
        first.setdefault(step, now)
        far = ""
        if not begins and done < total and now - last >= LINE_AFTER_SECONDS:
            left = estimate_left(done, total, now - first[step])
            far = f" {percent(done, total)}%" + ("" if left is None else f", {write_left(left)}")
        if done >= total:
            told.pop(step)  # a later release has the same steps
            first.pop(step)
        if far or (begins and not late and (done < total or total == 0)):
            if step in told:
                told[step] = now
            write_step(began, f"{step}{far}")

    return report


@contextmanager
def log_progress(path: Path, inner: "ProgressEvents") -> "Iterator[ProgressEvents]":
    """Write each step to a JSON-lines log beside the packet; it holds times, and no value of a record."""
    with os.fdopen(append_closed(path), "a", encoding="utf-8") as file:

        def write(**event: object) -> None:
            file.write(json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **event}) + "\n")
            file.flush()

        events = _tell_events(write)

        def report(step: str, done: int, total: int) -> None:
            events(step, done, total)
            inner(step, done, total)

        yield report


def _tell_events(write: Callable[..., None], since_start: float | None = None) -> "ProgressEvents":
    """Return a progress that writes an event when a step begins or ends, and at most one a second between."""
    from stirred.census.progress import estimate_left

    last = time.monotonic()
    began = last if since_start is None else since_start
    first = dict[str, float]()  # when a step began

    def report(step: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        whole = done in (0, total)
        since = now - first.setdefault(step, now)
        if done == total:
            first.pop(step)
        if whole or now - last >= LOG_AFTER_SECONDS:
            last = now
            state = "done" if done == total else "begun" if whole else "under way"
            far: dict[str, int] = {} if whole else {"percent": percent(done, total)}
            if not whole and (left := estimate_left(done, total, since)) is not None:
                far["seconds_left"] = left
            write(step=step, state=state, seconds=round(now - began, 3), **far)

    return report
