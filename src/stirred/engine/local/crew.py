"""Steps one after the other, made by the threads that wait for them: no thread is idle, and none is added."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import Condition
from typing import TypeVar

T = TypeVar("T")


class Crew:
    """The first thread that waits for a step leads it; others that wait meanwhile take pieces of it.

    >>> seen = []
    >>> crew = Crew(lambda crew, step: [None for _ in crew.map(lambda piece: seen.append((step, piece)), "ab")])
    >>> crew.ready(1)
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
