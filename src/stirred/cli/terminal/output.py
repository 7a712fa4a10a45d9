"""What a command prints: a table for people or one JSON document for programs."""

import json
import sys
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table


def console() -> Console:
    """Standard output for people."""
    return Console(highlight=False, soft_wrap=True)


def print_json(document: object) -> None:
    """One JSON document and nothing else on standard output."""
    sys.stdout.write(json.dumps(document, ensure_ascii=False, indent=2) + "\n")


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A plain table with a title; numbers come in as text, already rounded the safe way."""
    result = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left")
    for column in columns:
        result.add_column(column)
    for row in rows:
        result.add_row(*row)
    return result
