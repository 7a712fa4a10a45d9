"""Run tasks in threads, with results in order and a bounded number of them waiting."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def in_order(kernel: Callable[[T], R], tasks: Iterable[T], workers: int) -> Iterator[R]:
    """Yield results in the order of the tasks; tasks are taken one by one, so that a stream is never held whole.

    >>> list(in_order(len, ["a", "bb", ""], 2))
    [1, 2, 0]
    """
    if workers == 1:
        yield from map(kernel, tasks)
        return
    pool = ThreadPoolExecutor(workers)
    waiting: deque[Future[R]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(kernel, task))
            if len(waiting) >= workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # no waiting for threads here: an abandoned iterator is closed by the garbage collector, in any thread and at
        # any time, also while that thread holds a lock which joining another one needs
        pool.shutdown(wait=False, cancel_futures=True)
