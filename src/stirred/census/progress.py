"""Progress events of long steps in this package, with the same signature as ``stirred.engine.Progress``."""

from typing import Protocol


class Progress(Protocol):
    """Receives progress events of a named step."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


def silent(step: str, done: int, total: int) -> None:
    """Ignore progress events.

    >>> silent("write", 1, 2)
    """
