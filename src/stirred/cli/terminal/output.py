"""What a command prints: a table for people or one JSON document for programs."""

import json
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table


def shown(text: str) -> str:
    """A text as a terminal may show it: control characters, which move the cursor or change the order, are written out.

    >>> shown("a\\x1b[2Jb\\u202ec")
    'a\\\\x1b[2Jb\\\\u202ec'
    """
    if text.isprintable():
        return text
    harmless = "\n\t\u200d\u00ad"
    return "".join(
        c if c in harmless or unicodedata.category(c) not in ("Cc", "Cf", "Cs") else ascii(c)[1:-1]
        for c in text
    )


class PlainConsole(Console):
    """A console that takes texts as they are: no markup, no control characters."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print texts without their control characters."""
        super().print(*(shown(part) if isinstance(part, str) else part for part in objects), **settings)


def console() -> Console:
    """Standard output for people; a name in a file cannot style or move it."""
    return PlainConsole(highlight=False, soft_wrap=True, markup=False, emoji=False)


def print_json(document: object) -> None:
    """One JSON document and nothing else on standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A plain table with a title; numbers come in as text, already rounded the safe way."""
    result = Table(title=shown(title), box=box.SIMPLE_HEAD, title_justify="left")
    for column in columns:
        result.add_column(shown(column))
    for row in rows:
        result.add_row(*map(shown, row))
    return result
