"""Hold the lock of an output, and make the result in the folder ``OUT.part`` until it gets its name ``OUT``."""

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stirred.chance.seals import keep_mark, read_mark
from stirred.closed_files import FOLDER_MODE, close_folder, make_closed_folder, owner_of, require_own_folder
from stirred.errors import InputError, PrivacyError
from stirred.publish.packet.checksums import INTERNAL, PUBLIC

# One run for one output: a lock beside it, which goes with the process that holds it.

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


# The folder ``OUT.part`` in which a result is made, until it gets its name ``OUT``.
#
# It carries a mark from before the first file is written until after the last one is gone. A folder without the mark
# is somebody else's: it is refused, and nothing in it is changed or deleted. Links are refused too.

MARK, MARK_BEGUN = "run", "run.new"
WHOLE_FOLDER = "whole"  # the result, in the moment before it gets its name


@dataclass(frozen=True, slots=True)
class PartFolder:
    """The folder beside an output in which it is made; only its owner may enter it."""

    out: Path

    @property
    def path(self) -> Path:
        """Return the folder itself."""
        return self.out.with_name(self.out.name + ".part")

    def mark(self) -> bytes:
        """Return who makes the result; empty where the folder carries no mark."""
        return read_mark(self.path / MARK) or b""

    def require_own(self) -> None:
        """Refuse a folder of this name that carries no mark of ours; an empty one holds nothing that could be lost."""
        if not os.path.lexists(self.path):
            return
        require_own_folder(self.path)
        if not self._is_empty() and not self.mark():
            raise PrivacyError(
                f"{self.path.name} is not a folder of an interrupted run",
                why=f"it belongs to {owner_of(self.path)}, has files and carries no mark of a run of this version",
                fix=f"nothing in it was changed: choose another --out, move {self.path.name} away, or delete the folder "
                "yourself if nothing in it is needed",
            )

    def _is_empty(self) -> bool:
        """Return whether the folder holds nothing but a mark, as a killed process leaves it."""
        return all(entry.name in (MARK, MARK_BEGUN) for entry in self.path.iterdir())

    def begin(self, mark: str) -> None:
        """Make the folder, or take up the one that carries the same mark; one of another run is refused."""
        self.require_own()
        if os.path.lexists(self.path) and not self._is_empty() and self.mark() != mark.encode():
            raise PrivacyError(
                "an interrupted run of something else lies there",
                why=f"{self.path.name} was begun with another plan or key, or the files of the census changed since",
                fix=f"finish it with what it was begun with, or delete the folder {self.path.name}",
            )
        make_closed_folder(self.path)
        keep_mark(self.path / MARK, mark)

    def clear(self, *kept: str) -> None:
        """Delete all but the mark and the named entries; links are not followed."""
        for entry in self.path.iterdir():
            if entry.name not in (MARK, *kept):
                delete(entry)

    def complete(self, *, closed: bool = False) -> None:
        """Give the result its name. A packet's public part is open as the system's mask says; all that is not is closed.

        A result that is ``closed`` has no public part. The mark is deleted after the result has its name.
        """
        whole = self.path / WHOLE_FOLDER
        delete(whole)
        whole.mkdir(mode=FOLDER_MODE)
        for entry in list(self.path.iterdir()):
            if entry.name not in (MARK, MARK_BEGUN, WHOLE_FOLDER):
                entry.replace(whole / entry.name)
        if closed:
            close_folder(whole)
        else:
            if (whole / INTERNAL).is_dir():
                close_folder(whole / INTERNAL)
            whole.chmod(_open_mode(whole))
        whole.replace(self.out)
        self.remove()

    def remove_empty(self) -> None:
        """Delete the folder that a process left which was killed when its result had its name already."""
        if self.path.is_dir() and not self.path.is_symlink() and self._is_empty():
            self.remove()

    def remove(self) -> None:
        """Delete the folder if it carries a mark, the mark after all else; what cannot be deleted is left."""
        with contextlib.suppress(OSError):
            if self.path.is_symlink() or not self.mark():
                return
            self.clear()
            (self.path / MARK).unlink(missing_ok=True)
            self.path.rmdir()


@contextmanager
def write_whole(out: Path, purpose: str, *, closed: bool) -> Iterator[Path]:
    """Write a folder whole or not at all: yield the place to write to, which gets the name ``out`` at the end of the block.

    What an earlier call for the same purpose left is deleted. With ``closed`` only its owner may read the result.
    """
    part = PartFolder(out)
    part.begin(f"stirred {purpose}")
    try:
        part.clear()
        yield part.path
        part.complete(closed=closed)
    finally:
        part.remove()


def _open_mode(whole: Path) -> int:
    """Return the mode that the system's mask gives to folders: that of the public part, or of a new folder."""
    public = whole / PUBLIC
    if public.is_dir():
        return public.stat().st_mode & 0o777
    probe = whole / WHOLE_FOLDER
    probe.mkdir()
    try:
        return probe.stat().st_mode & 0o777
    finally:
        probe.rmdir()


def delete(path: Path) -> None:
    """Delete an entry of any kind; a link is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
