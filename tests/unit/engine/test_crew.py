"""Threads that wait for a step make it together."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock

import pytest

from stirred.engine.threads import Crew

SOON = 60  # seconds after which a thread that nobody helps gives up: far more than a test takes


def all_of(crew: Crew, piece: Callable[[int], None], pieces: int) -> None:
    for _ in crew.map(piece, range(pieces)):
        pass


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_piece_of_every_step_is_done_once_and_steps_in_order(threads: int) -> None:
    seen: list[tuple[int, int]] = []
    lock = Lock()

    def make(crew: Crew, step: int) -> None:
        def piece(number: int) -> None:
            with lock:
                seen.append((step, number))

        all_of(crew, piece, 7)
        all_of(crew, lambda number: piece(number + 7), 7)

    crew = Crew(make)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(crew.wait_for, [3, 0, 2, 3, 1]))
    assert sorted(seen) == [(step, number) for step in range(4) for number in range(14)]
    assert [step for step, _ in seen] == sorted(step for step, _ in seen)
    for step in range(4):  # the second half begins when the first is finished
        assert all(number < 7 for _, number in [one for one in seen if one[0] == step][:7])


def test_threads_that_wait_take_pieces() -> None:
    together = Barrier(3, timeout=SOON)  # three pieces end only if three threads do them
    crew = Crew(lambda crew, _: all_of(crew, lambda _: (together.wait(), None)[1], 3))
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(crew.wait_for, [0, 0, 0]))


def test_a_thread_alone_does_everything() -> None:
    seen: list[int] = []
    Crew(lambda crew, _: all_of(crew, seen.append, 4)).wait_for(0)
    assert seen == [0, 1, 2, 3]


def test_an_error_is_raised_in_every_thread_that_waits() -> None:
    together = Barrier(2, timeout=SOON)

    def piece(number: int) -> None:
        together.wait()
        if number:
            raise ZeroDivisionError

    crew = Crew(lambda crew, _: all_of(crew, piece, 2))
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(crew.wait_for, step) for step in (0, 1)]
        for one in waiting:
            with pytest.raises(ZeroDivisionError):
                one.result(timeout=SOON)
    with pytest.raises(ZeroDivisionError):  # and in those that come later
        crew.wait_for(0)


def test_after_an_error_no_further_piece_is_begun() -> None:
    begun: list[int] = []

    def piece(number: int) -> None:
        begun.append(number)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Crew(lambda crew, _: all_of(crew, piece, 5)).wait_for(0)
    assert begun == [0]
