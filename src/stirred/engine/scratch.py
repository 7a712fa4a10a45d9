"""Keep records that do not fit in memory in private folders, in files that are encrypted."""

import contextlib
import io
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

from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from stirred.errors import InputError
from stirred.roots import open_own_folder

# Private folders for records that do not fit in memory: locked while a process uses them, removed by the next run.
#
# A process that was killed cannot remove its folder. The lock on it goes with the process, so the next run that uses
# the same place finds the folder unlocked and removes it.

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


# Files of records on disk, encrypted with a key that only this process has: what a killed process leaves is noise.
#
# AES-256 in counter mode; every file has a fresh key, so no part of the key stream is used twice.


class SealedFiles:
    """The keys of the files of one folder; they are never written anywhere."""

    def __init__(self) -> None:
        self._keys: dict[Path, bytes] = {}

    def writer(self, path: Path) -> "EncryptedWriter":
        """Return a new file; it is an error if it exists."""
        self._keys[path] = os.urandom(32)
        return EncryptedWriter(path, _make_cipher(self._keys[path]).encryptor())

    def reader(self, path: Path) -> "EncryptedReader":
        """Return a file that was written before."""
        return EncryptedReader(path, _make_cipher(self._keys[path]).decryptor())


class EncryptedWriter(io.RawIOBase):
    """Encrypts what is written to a file that only its owner may read."""

    def __init__(self, path: Path, cipher: CipherContext) -> None:
        super().__init__()
        self._cipher = cipher
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb", 1 << 18)

    def writable(self) -> bool:
        """Return whether it can be written to."""
        return True

    def write(self, data: object) -> int:
        """Encrypt and write all of it."""
        given = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._file.write(self._cipher.update(given))
        return len(given)

    def flush(self) -> None:
        """Do nothing; the file itself is flushed when it is closed."""

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


class EncryptedReader(io.RawIOBase):
    """Decrypts a file from its beginning to its end."""

    def __init__(self, path: Path, cipher: CipherContext) -> None:
        super().__init__()
        self._cipher = cipher
        self._file = path.open("rb", 1 << 18)

    def readable(self) -> bool:
        """Return whether it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; fewer only at the end."""
        return self._cipher.update(self._file.read(size))

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


def _make_cipher(key: bytes) -> Cipher[modes.CTR]:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16)))
