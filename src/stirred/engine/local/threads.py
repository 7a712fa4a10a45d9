"""Run tasks in threads, with results in order and a bounded number of them waiting."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


def map_in_order(
    kernel: Callable[[T], R], tasks: Iterable[T], workers: int, *, ahead: int = 0
) -> Iterator[R]:
    """Yield results in the order of the tasks; tasks are taken one by one, so that a stream is never held whole.

    ``ahead`` results more may wait, so that a task that takes long does not stop those after it.

    >>> list(map_in_order(len, ["a", "bb", ""], 2))
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
            if len(waiting) >= workers + ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        # no waiting for threads here: an abandoned iterator is closed by the garbage collector, in any thread and at
        # any time, also while that thread holds a lock which joining another one needs
        pool.shutdown(wait=False, cancel_futures=True)


def begin_call(call: Callable[[], R], workers: int) -> Callable[[], R]:
    """Begin a call in a thread of its own, if there may be two; the function that is returned waits for its result.

    >>> begin_call(lambda: 7, 2)()
    7
    """
    if workers == 1:
        return call
    pool = ThreadPoolExecutor(1)
    future = pool.submit(call)
    pool.shutdown(wait=False)  # what is submitted still runs
    return future.result


class BranchingTasks(Generic[T, R]):
    """Tasks that lead to others: those of the lowest rank run first, and results come as they are ready.

    >>> halves = BranchingTasks(lambda n: n // 2, 2)
    >>> halves.add((0,), 9)
    >>> for task, half in halves:
    ...     if half: halves.add((task,), half)
    ...     print(task, half)
    9 4
    4 2
    2 1
    1 0
    """

    def __init__(self, kernel: Callable[[T], R], workers: int) -> None:
        self.kernel, self.workers = kernel, workers
        self._waiting: list[tuple[tuple[int, ...], int, T]] = []
        self._number = count()

    def add(self, rank: tuple[int, ...], task: T) -> None:
        """Add a task, also while results are taken; equal ranks run in the order in which they were added."""
        heappush(self._waiting, (rank, next(self._number), task))

    def __iter__(self) -> Iterator[tuple[T, R]]:
        if self.workers == 1:
            while self._waiting:
                task = heappop(self._waiting)[2]
                yield task, self.kernel(task)
            return
        ready: SimpleQueue[tuple[T, Future[R]]] = SimpleQueue()
        pool, running = ThreadPoolExecutor(self.workers), 0
        try:
            while self._waiting or running:
                # one more than threads, so that none waits for this one
                while self._waiting and running <= self.workers:
                    task = heappop(self._waiting)[2]
                    future = pool.submit(self.kernel, task)
                    future.add_done_callback(partial(_put_ready, ready, task))
                    running += 1
                task, future = ready.get()
                running -= 1
                yield task, future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # as above


def _put_ready(ready: "SimpleQueue[tuple[T, Future[R]]]", task: T, future: "Future[R]") -> None:
    ready.put((task, future))
