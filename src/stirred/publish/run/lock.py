"""One run for one output: a lock beside it, which goes with the process that holds it."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stirred.errors import InputError

if sys.platform != "win32":
    import fcntl

_HELD_PATHS: set[Path] = set()  # by this process; a run that a command started finds the lock of the command


@contextmanager
def hold_lock(out: Path) -> Iterator[None]:
    """Hold ``OUT.lock`` while the block runs; a second run is refused and told who holds it."""
    path = out.absolute().with_name(out.name + ".lock")
    if path in _HELD_PATHS:
        yield
        return
    lock = _take_lock(path)
    _HELD_PATHS.add(path)
    try:
        yield
    finally:
        _HELD_PATHS.discard(path)
        path.unlink(missing_ok=True)  # while it is still held: no other run can have this file
        os.close(lock)


def _take_lock(path: Path) -> int:
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        if sys.platform == "win32":
            return lock
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 200).decode("utf-8", "replace").strip()
            os.close(lock)
            raise InputError(
                f"{path.stem} is being written by another run",
                why=f"it is held by {holder or 'another process'}",
                fix="wait until that run has ended, or choose another --out",
            ) from None
        with contextlib.suppress(FileNotFoundError):
            # the run that held it before may have removed the file between the two calls
            if os.path.samestat(os.fstat(lock), path.lstat()):
                with contextlib.suppress(
                    OSError
                ):  # a full disk: the lock holds without the name of its holder
                    os.ftruncate(lock, 0)
                    os.write(lock, f"process {os.getpid()} on {socket.gethostname()}".encode())
                return lock
        os.close(lock)
