"""Progress events of long steps; the terminal, the web page and the log show the same events."""

from typing import Protocol


class Progress(Protocol):
    """Receives progress events of named steps."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


def silent(step: str, done: int, total: int) -> None:
    """Ignore progress events.

    >>> silent("write", 1, 2)
    """
