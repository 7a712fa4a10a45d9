"""Signals that ask a command to end: it removes its scratch, says how to go on, and ends with 128 plus the number."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

from stirred.errors import StirredError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

# a scheduler's end of time, a terminal that was closed, a limit of processor time
SIGNAL_NAMES = ("SIGTERM", "SIGHUP", "SIGXCPU")
GO_ON = "run the same command again: a run goes on from what is finished in OUT.part"
RESEND_SECONDS = 0.02  # seconds
_leaving: list[int] = []  # the signal that was raised; cleaning up is not interrupted by another one


class StoppedBySignal(SystemExit):
    """Raised where the command was when the signal came, so that every folder in use is removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number

    def build_error(self) -> StirredError:
        """Return the error to print for this signal.

        >>> print(StoppedBySignal(signal.SIGTERM).told().what)
        stopped by SIGTERM
        """
        return StirredError(
            f"stopped by {signal.Signals(self.number).name}",
            why="the system or a scheduler asked the command to end",
            fix=GO_ON,
        )


def install_handlers() -> None:
    """Let these signals raise ``StoppedBySignal``, where nobody has decided otherwise (nohup has)."""
    if threading.current_thread() is not threading.main_thread():
        return
    _leaving.clear()
    for name in SIGNAL_NAMES:
        number = getattr(signal, name, None)  # not every system has all of them
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _leave)
    sys.unraisablehook = _unraisable


def find_signal() -> StoppedBySignal | None:
    """Return the signal that ended the command, or None; later errors are its consequence.

    With Spark the signal may reach Java first, and whatever is then asked of it fails in a way of its own.
    """
    return StoppedBySignal(_leaving[0]) if _leaving else None


def _leave(number: int, _frame: FrameType | None) -> None:
    if not _leaving:
        _leaving.append(number)
        raise StoppedBySignal(number)


def _unraisable(found: "UnraisableHookArgs") -> None:
    """Send a signal again that Python lost while it cleaned up an object; print no traceback."""
    if issubclass(found.exc_type, StoppedBySignal):
        number = _leaving.pop() if _leaving else signal.SIGTERM
    elif issubclass(found.exc_type, KeyboardInterrupt):
        number = signal.SIGINT
    else:
        sys.__unraisablehook__(found)
        return
    again = threading.Timer(
        RESEND_SECONDS, os.kill, (os.getpid(), number)
    )  # not at once: this function must end first
    again.daemon = True
    again.start()
