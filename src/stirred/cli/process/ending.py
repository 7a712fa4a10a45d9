"""How a command ends: one message and one exit code for every kind of error, and never a traceback that nobody asked for."""

import contextlib
import errno
import os
import re
import sys
import traceback
from pathlib import Path

from stirred.cli.process.signals import GO_ON, StoppedBySignal, find_signal
from stirred.errors import ClusterError, StirredError

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
    """Say what happened; returns the exit code."""
    error = find_signal() or error
    if isinstance(error, StirredError):
        return _write_error(f"error: {error}", 74 if isinstance(error, ClusterError) else 2)
    if isinstance(error, KeyboardInterrupt):
        return _write_error(f"interrupted\n  fix: {GO_ON}", 130)
    if isinstance(error, StoppedBySignal):
        return _write_error(str(error.build_error()), 128 + error.number)
    system = _translate_system_error(error)
    if system is not None:
        return _write_error(f"error: {system}", 74)  # EX_IOERR of sysexits.h
    place = traceback.extract_tb(error.__traceback__)[-1]
    return _write_error(
        f"error: unexpected {type(error).__name__} in {Path(place.filename).name}, line {place.lineno}\n"
        "  why: this is a fault of stirred, or of a file it did not understand\n"
        "  fix: report it; with STIRRED_TRACEBACK=1 the whole traceback is shown, which may hold confidential values",
        70,
    )


def wants_traceback(error: BaseException) -> bool:
    """Return whether to show a traceback: only where somebody asked for it, because it may show records."""
    expected = (StirredError, KeyboardInterrupt, StoppedBySignal)
    return bool(os.environ.get("STIRRED_TRACEBACK")) and not isinstance(error, expected)


def _write_error(text: str, code: int) -> int:
    """Write to standard error, where there still is one."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr)
    return code


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
