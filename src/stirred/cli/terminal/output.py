"""What a command prints: texts and tables for people, or one JSON document for programs."""

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Sequence

from stirred.cli.terminal.tables import TextTable

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
