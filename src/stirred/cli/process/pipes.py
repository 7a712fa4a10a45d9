"""Standard output and standard error that nobody reads any more (``| head``), or that cannot be written (a full disk)."""

import os
import select
from contextlib import suppress
from typing import TextIO


def flush_stream(stream: TextIO) -> OSError | None:
    """Write what waits; where that fails, say why, and throw it and all that follows away."""
    try:
        stream.flush()
    except OSError as error:
        _silence(stream)
        return error
    return None


def has_no_reader(stream: TextIO) -> bool:
    """Return whether a pipe has lost its reader; discard all that follows in that case."""
    try:
        asked = select.poll()
        asked.register(stream.fileno(), 0)
        gone = any(event & (select.POLLERR | select.POLLHUP) for _, event in asked.poll(0))
    except (OSError, ValueError):  # a stream of a test has no number
        return False
    if gone:
        _silence(stream)
    return gone


def _silence(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
