"""What a mechanism asks of the place where it runs."""

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Progress(Protocol):
    """Receives how far a named step is; the same events feed the terminal, the web page and the log."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


def silent(step: str, done: int, total: int) -> None:
    """Progress that is told to nobody.

    >>> silent("read", 0, 1)
    """


class Engine(Protocol):
    """Runs pure kernels over independent groups (a stratum, a geounit, a parent), in any order."""

    name: ClassVar[str]

    def map(self, kernel: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Results in the order of the tasks, whatever ran first."""
        ...
