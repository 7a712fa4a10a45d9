"""Progress events of long steps; the terminal, the web page and the log show the same events."""

from typing import Protocol


class Progress(Protocol):
    """Receives progress events of named steps."""

    def __call__(self, step: str, done: int, total: int) -> None: ...


def silent(step: str, done: int, total: int) -> None:
    """Ignore progress events.

    >>> silent("write", 1, 2)
    """


# How long a step will still take, from its pace so far.

SECONDS_SHOWN, MINUTES_SHOWN = 90, 90  # from which on a time is told in minutes, and in hours


def estimate_left(done: int, total: int, seconds: float) -> int | None:
    """Return how many seconds a step will still take at its pace so far; None where it has done nothing yet.

    >>> estimate_left(25, 100, 10.0), estimate_left(0, 100, 10.0)
    (30, None)
    """
    return None if not 0 < done < total else max(1, round(seconds * (total - done) / done))


def write_left(seconds: int) -> str:
    """Write how long a step will still take, as coarsely as it is known.

    >>> write_left(7), write_left(52), write_left(200), write_left(9000)
    ('about 7 s left', 'about 50 s left', 'about 3 min left', 'about 2.5 h left')
    """
    if seconds < SECONDS_SHOWN:
        return f"about {seconds if seconds < 10 else round(seconds, -1)} s left"
    minutes = seconds / 60
    return f"about {minutes:.0f} min left" if minutes < MINUTES_SHOWN else f"about {minutes / 60:.1f} h left"
