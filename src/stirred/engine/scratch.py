"""Private folders for records that do not fit in memory: locked while a process uses them, removed by the next run.

A process that was killed cannot remove its folder. The lock on it goes with the process, so the next run that uses the
same place finds the folder unlocked and removes it.
"""

import contextlib
import os
import secrets
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from stirred.errors import InputError
from stirred.roots import open_own_folder

if sys.platform != "win32":
    import fcntl

SCRATCH_PREFIX, UNNAMED_PREFIX = "stirred-scratch-", "stirred-begun-"
LOCK_FILE = "in-use"
STALE_SECONDS = 3600  # seconds after which a folder that never got its name is stale


class ScratchFolder:
    """A folder that only this user may enter (mode 0700), removed with this object or by the next run."""

    def __init__(self, place: Path | str | None) -> None:
        parent = Path(place or tempfile.gettempdir())
        if not parent.is_dir():
            raise InputError(
                f"there is no folder {parent}",
                why="temporary files would be written there",
                fix="make it first, or name no folder for scratch",
            )
        remove_stale(parent)
        name = secrets.token_hex(8)
        begun, self.path = parent / f"{UNNAMED_PREFIX}{name}", parent / f"{SCRATCH_PREFIX}{name}"
        self._locks: list[int] = []
        # before anything is made: a signal may come between any two lines
        self.remove = weakref.finalize(self, _remove_folder, (self.path, begun), self._locks)
        begun.mkdir(mode=0o700)
        self._locks.append(os.open(begun / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        _take_lock(self._locks[0])
        # renamed when the lock is held, so that no other run takes it for a stale one
        begun.rename(self.path)
        open_own_folder(self.path)


@contextmanager
def scratch_folder(place: Path | str | None = None) -> Iterator[Path]:
    """Return a folder for the block, removed at its end or, where the process is killed, by the next run."""
    folder = ScratchFolder(place)
    try:
        yield folder.path
    finally:
        folder.remove()


def remove_stale(parent: Path) -> int:
    """Remove the folders of ended processes; returns how many. Folders of other users are left alone."""
    if sys.platform == "win32":
        return 0
    removed = 0
    for folder in parent.glob(SCRATCH_PREFIX + "*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if not folder.is_symlink() and folder.stat().st_uid == os.getuid() and _take_lock(lock):
                    _empty_folder(folder)
                    removed += 1
            finally:
                os.close(lock)
    for folder in parent.glob(
        UNNAMED_PREFIX + "*"
    ):  # of a process that was killed before it had a lock: nothing is in it
        with contextlib.suppress(OSError):
            told = folder.lstat()
            if told.st_uid == os.getuid() and time.time() - told.st_mtime > STALE_SECONDS:
                (folder / LOCK_FILE).unlink(missing_ok=True)
                folder.rmdir()
                removed += 1
    return removed


def _empty_folder(folder: Path) -> None:
    """Delete a folder, its lock last: without its lock nobody could tell that it is stale."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOCK_FILE:
            path.unlink(missing_ok=True)
    shutil.rmtree(
        folder.replace(folder.with_name(UNNAMED_PREFIX + folder.name.removeprefix(SCRATCH_PREFIX))),
        ignore_errors=True,
    )


def _take_lock(lock: int) -> bool:
    """Take the lock, or return False where another process has it."""
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_folder(paths: Sequence[Path], locks: Sequence[int]) -> None:
    """Remove what is there of a folder, under its name or the one before; a signal does not end this halfway."""
    for path in paths:
        try:
            _remove_path(path)
        except OSError:
            pass
        except BaseException:  # the command was asked to end, which it does after this
            _remove_path(path)
            raise
    for lock in locks:
        with contextlib.suppress(OSError):
            os.close(lock)


def _remove_path(path: Path) -> None:
    if path.name.startswith(SCRATCH_PREFIX):
        with contextlib.suppress(FileNotFoundError):
            _empty_folder(path)
    else:
        shutil.rmtree(path, ignore_errors=True)
