"""This machine as an engine: threads over kernels that release the interpreter lock."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Runs kernels on this machine; results never depend on the number of workers.

    >>> list(Local(workers=2).map(len, ["a", "bb"]))
    [1, 2]
    """

    name: ClassVar[str] = "local"
    workers: int = os.cpu_count() or 1

    def map(self, kernel: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Results in the order of the tasks."""
        if self.workers == 1 or len(tasks) < 2:
            yield from map(kernel, tasks)
            return
        with ThreadPoolExecutor(self.workers) as pool:
            yield from pool.map(kernel, tasks)
