"""How a long step of this room tells how far it is; the shape is that of ``stirred.engine.Progress``."""

from typing import Protocol


class Progress(Protocol):
    """Receives how far a named step is."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


def silent(step: str, done: int, total: int) -> None:
    """No progress is told.

    >>> silent("write", 1, 2)
    """
