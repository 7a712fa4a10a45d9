"""Run tasks in threads, with results in order and a bounded number of them waiting."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import SimpleQueue
from threading import Condition
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Room(Generic[T, R]):
    """How many bytes tasks may hold together: those that run, and the results that wait for their turn."""

    size: int
    weigh_task: Callable[[T], int]  # the most that a task holds while it runs
    weigh_result: Callable[[R], int]  # what is left of it when it has run

    def holds(self, begun: Iterable[tuple[T, "Future[R]"]], task: T) -> bool:
        """Return whether one more task stays within the bound."""
        return sum(map(self._weigh, begun)) + self.weigh_task(task) <= self.size

    def _weigh(self, begun: tuple[T, "Future[R]"]) -> int:
        task, future = begun
        failed = not future.done() or future.cancelled() or future.exception() is not None
        return self.weigh_task(task) if failed else self.weigh_result(future.result())


def map_in_order(
    kernel: Callable[[T], R],
    tasks: Iterable[T],
    workers: int,
    *,
    ahead: int = 0,
    room: Room[T, R] | None = None,
) -> Iterator[R]:
    """Yield results in the order of the tasks; tasks are taken one by one, so that a stream is never held whole.

    ``ahead`` results more may wait, so that a task that takes long does not stop those after it. With ``room`` a task
    begins only while all that is held stays within it; one that is too large for it runs alone.

    >>> list(map_in_order(len, ["a", "bb", ""], 2))
    [1, 2, 0]
    """
    if workers == 1:
        yield from map(kernel, tasks)
        return
    pool = ThreadPoolExecutor(workers)
    waiting: deque[tuple[T, Future[R]]] = deque()
    try:
        for task in tasks:
            while waiting and room is not None and not room.holds(waiting, task):
                if waiting[0][1].done():
                    yield waiting.popleft()[1].result()
                else:  # when any has run, less is held
                    wait([future for _, future in waiting if not future.done()], return_when=FIRST_COMPLETED)
            waiting.append((task, pool.submit(kernel, task)))
            if len(waiting) >= workers + ahead:
                yield waiting.popleft()[1].result()
        while waiting:
            yield waiting.popleft()[1].result()
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


# Steps one after the other, made by the threads that wait for them: no thread is idle, and none is added.


class Crew:
    """The first thread that waits for a step leads it; others that wait meanwhile take pieces of it.

    >>> seen = []
    >>> crew = Crew(lambda crew, step: [None for _ in crew.map(lambda piece: seen.append((step, piece)), "ab")])
    >>> crew.wait_for(1)
    >>> seen
    [(0, 'a'), (0, 'b'), (1, 'a'), (1, 'b')]
    """

    def __init__(self, make: Callable[["Crew", int], object]) -> None:
        self._make = make  # makes a step with the help of the crew
        self._done = 0
        self._led = False
        self._pieces: deque[Callable[[], object]] = deque()
        self._open = 0  # pieces that are not finished
        self._error: BaseException | None = None
        self._changed = Condition()

    def wait_for(self, step: int) -> None:
        """Return when a step is made; an error in any of its pieces is raised in every thread that waits."""
        while True:
            with self._changed:
                if self._done > step:
                    return
                if self._error is not None:
                    raise self._error
                piece = self._pieces.popleft() if self._pieces else None
                if piece is None and self._led:
                    self._changed.wait()
                    continue
                self._led = True
            if piece is None:
                self._lead()
            else:
                self._do(piece)

    def map(self, kernel: Callable[[T], object], tasks: Iterable[T]) -> Iterator[None]:
        """Run tasks with all waiting threads; called by the thread that leads. Nothing is returned."""
        with self._changed:
            self._pieces.extend(partial(kernel, task) for task in tasks)
            self._open = len(self._pieces)
            self._changed.notify_all()
        while True:
            with self._changed:
                if not self._pieces and self._open:
                    self._changed.wait()
                    continue
                piece = self._pieces.popleft() if self._pieces else None
            if piece is None:
                break
            self._do(piece)
        if self._error is not None:
            raise self._error
        return iter(())

    def _lead(self) -> None:
        try:
            self._make(self, self._done)
        except BaseException as error:
            self._record_failure(error)
            raise
        with self._changed:
            self._done += 1
            self._led = False
            self._changed.notify_all()

    def _do(self, piece: Callable[[], object]) -> None:
        try:
            piece()
        except BaseException as error:
            self._record_failure(error)
        with self._changed:
            self._open -= 1
            if not self._open:
                self._changed.notify_all()

    def _record_failure(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._open -= len(self._pieces)
            self._pieces.clear()
            self._changed.notify_all()
