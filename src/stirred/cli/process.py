"""Handle the process of a command: limits, pipes, signals, and one message and exit code for every error."""

import atexit
import errno
import json
import os
import re
import select
import signal
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO

from stirred.errors import ClusterError, InputError, StirredError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs


# Limits of the system in which the libraries cannot even be loaded, told before they fail in their own words.

if sys.platform != "win32":
    import resource

ADDRESS_BYTES = 2_000_000_000  # bytes of addresses that the libraries reserve, far more than they use


def require_addresses() -> None:
    """Refuse a bound on addresses (``ulimit -v``) that is too small: libraries would end the process without a message."""
    if sys.platform == "win32":
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < ADDRESS_BYTES:
        raise InputError(
            f"this shell allows a process {allowed / 1e9:.1f} GB of addresses",
            why=f"the libraries reserve {ADDRESS_BYTES / 1e9:.0f} GB or more, whatever they use",
            fix='ulimit -v unlimited; --memory "8 GB" bounds what a run holds',
        )


# Standard output and standard error that nobody reads any more (``| head``), or that cannot be written (a full disk).


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


# What a command says on standard error: lines for people; with ``--json`` one JSON object a line, told apart by its event.

_spoken = {"json": False}


def speak_json(*, on: bool) -> None:
    """Choose how this process speaks on standard error: one JSON object a line, or text."""
    _spoken["json"] = on


def speaks_json() -> bool:
    """Return whether standard error has one JSON object a line."""
    return _spoken["json"]


def tell(text: str) -> None:
    """Say something on standard error that is neither an error nor progress."""
    write_event("message", text=text) if speaks_json() else write_line(text)


def write_event(event: str, **told: object) -> None:
    """Write one JSON object on one line of standard error."""
    write_line(json.dumps({"event": event} | told, ensure_ascii=False))


def write_line(text: str) -> None:
    """Write a line to standard error, where there still is one; a run goes on when nobody reads."""
    try:
        print(text, file=sys.stderr, flush=True)
    except ValueError:  # it is closed
        return
    except OSError:
        flush_stream(sys.stderr)


# Signals that ask a command to end: it removes its scratch, says how to go on, and ends with 128 plus the number.

# a scheduler's end of time, a terminal that was closed, a limit of processor time
SIGNAL_NAMES = ("SIGTERM", "SIGHUP", "SIGXCPU")
GO_ON = "run the same command again: a run goes on from what is finished in OUT.part"
RESEND_SECONDS = 0.02  # seconds
STOPPED_CODE = 128  # of a shell, to which the number of the signal is added
_leaving: list[int] = []  # the signal that was raised; cleaning up is not interrupted by another one


class StoppedBySignal(SystemExit):
    """Raised where the command was when the signal came, so that every folder in use is removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(STOPPED_CODE + number)
        self.number = number

    def build_error(self) -> StirredError:
        """Return the error to print for this signal.

        >>> print(StoppedBySignal(signal.SIGTERM).build_error().what)
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


END_SECONDS = 10.0  # seconds after a signal in which the threads of a command may end


def end_process(code: int) -> NoReturn:
    """End the process with an exit code; after a signal also where a thread never ends.

    Python waits for every thread. A signal that comes while the main thread takes the lock of a task's result leaves
    this lock taken, and the thread that made the result waits for it for ever.
    """
    if code >= STOPPED_CODE:
        late = threading.Timer(END_SECONDS, _leave_threads, (code,))
        late.daemon = True
        late.start()
    raise SystemExit(code)


def _leave_threads(code: int) -> None:
    """Remove what is removed at the end of a process, and end it; also where that takes long."""
    late = threading.Timer(END_SECONDS, os._exit, (code,))
    late.daemon = True
    late.start()
    atexit._run_exitfuncs()
    flush_stream(sys.stdout)  # which Python would do at its own end
    os._exit(code)


# How a command ends: one message and one exit code for every kind of error, and never a traceback that nobody asked for.

# code → what it means; docs/reference/exit-codes.md explains them
ERROR_CODES = {
    0: "done",
    1: "a check found a problem: records break the schema, a packet does not verify, or an audit fails",
    2: "wrong input or a refusal; nothing was released",
    70: "a fault of stirred or of a library",
    74: "the system refused (a full disk, missing rights, a limit): the same command goes on from what is finished",
    129: "stopped by SIGHUP: the terminal was closed; the same command goes on",
    130: "interrupted with Ctrl-C; the same command goes on",
    143: "stopped by SIGTERM; the same command goes on",
    152: "stopped by SIGXCPU: the limit of processor time; the same command goes on",
}
_SPACE = "free some space and run the same command again: it goes on from what is finished in OUT.part"
_RIGHTS = "check the rights of the files and folders that the command names"
_FIXES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "choose an --out on a disk that can be written to",
    errno.ENOENT: "check that the files and folders that the command names exist",
    errno.ENAMETOOLONG: "give the files and folders that the command names shorter names",
    errno.EMFILE: "allow more open files: ulimit -n 4096",
    errno.EFBIG: "allow larger files, ulimit -f unlimited, and run the same command again",
    errno.ENOMEM: "allow more memory, ulimit -v unlimited, or close other programs; --memory bounds what a run holds",
}
_NUMBER = re.compile(r"\b(?:os error|errno|code:) (\d+)", flags=re.IGNORECASE)


def report_error(error: BaseException) -> int:
    """Say what happened, as text or as JSON; returns the exit code."""
    told, code = _explain_error(find_signal() or error)
    if speaks_json():
        kind = type(told).__name__
        write_event("error", kind=kind, what=told.what, why=told.why, fix=told.fix, code=code)
    else:
        write_line(str(told) if code >= STOPPED_CODE else f"error: {told}")
    return code


def _explain_error(error: BaseException) -> tuple[StirredError, int]:
    """Return the error with what, why and fix, and the exit code."""
    if isinstance(error, StirredError):
        return error, 74 if isinstance(error, ClusterError) else 2
    if isinstance(error, KeyboardInterrupt):
        return StirredError("interrupted", why="Ctrl-C, or a program that stopped it", fix=GO_ON), 130
    if isinstance(error, StoppedBySignal):
        return error.build_error(), STOPPED_CODE + error.number
    system = _translate_system_error(error)
    if system is not None:
        return system, 74  # EX_IOERR of sysexits.h
    place = traceback.extract_tb(error.__traceback__)[-1]
    unexpected = StirredError(
        f"unexpected {type(error).__name__} in {Path(place.filename).name}, line {place.lineno}",
        why="this is a fault of stirred, or of a file it did not understand",
        fix="report it; with STIRRED_TRACEBACK=1 the whole traceback is shown, which may hold confidential values",
    )
    return unexpected, 70


def wants_traceback(error: BaseException) -> bool:
    """Return whether to show a traceback: only where somebody asked for it, because it may show records."""
    expected = (StirredError, KeyboardInterrupt, StoppedBySignal)
    return bool(os.environ.get("STIRRED_TRACEBACK")) and not isinstance(error, expected)


def _translate_system_error(error: BaseException) -> StirredError | None:
    """Translate an error of the operating system; show no path, which may hold a value of a record.

    >>> print(_translate_system_error(OSError(errno.ENOSPC, "No space left on device", "/data/household.parquet")))
    the system refused to go on
      why: No space left on device
      fix: free some space and run the same command again: it goes on from what is finished in OUT.part
    """
    if isinstance(error, MemoryError):
        return StirredError(
            "the memory is used up",
            why="the command needs more than this process may hold",
            fix="--memory 4GB works in parts on disk; or close other programs",
        )
    own = isinstance(error, OSError)
    told = _NUMBER.search(str(error))
    number = (error.errno if isinstance(error, OSError) else 0) or (int(told[1]) if told else 0)
    # a library in Rust panics or fails in other words, and names the number of the error
    if not own and number not in _FIXES:
        return None
    return StirredError(
        "the system refused to go on",
        why=os.strerror(number) if number else type(error).__name__,
        fix=_FIXES.get(number, "look at the disk and at the rights of its folders, then run it again"),
    )
