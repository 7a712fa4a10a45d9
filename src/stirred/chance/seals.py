"""Files that an interrupted run left, and that only the holder of its key can have written.

Beside each file ``NAME`` lies ``NAME.seal``: HMAC(key, run ‖ NAME ‖ SHA-256 of the file). A file without its seal was
not finished. A file that differs from its seal was changed, cut or put there by somebody else, and is refused.
"""

import hashlib
import hmac
import os
from dataclasses import dataclass
from pathlib import Path

from stirred.chance.keys import Key
from stirred.errors import ForgedStateError

SEAL_ENDING = ".seal"
MAX_MARK_BYTES = 4096  # bytes


@dataclass(frozen=True, slots=True)
class AuthenticFolder:
    """The folder of one run; ``run`` identifies it, so that a file of another run with the same key is refused too."""

    folder: Path
    key: Key
    run: bytes

    def keep(self, name: str, content: bytes) -> None:
        """Write a file and its seal; each is complete or not there."""
        temporary = self.folder / f"{name}.new"
        temporary.unlink(missing_ok=True)
        _write_whole(temporary, content)
        self.adopt(name, temporary)

    def adopt(self, name: str, written: Path) -> None:
        """Give a file that this run has written elsewhere its name, and seal it."""
        place = self.folder / name
        seal = self.folder / f"{name}{SEAL_ENDING}"
        seal.unlink(missing_ok=True)
        told = self._seal(name, digest_file(written))
        written.replace(place)
        temporary = self.folder / f"{name}{SEAL_ENDING}.new"
        temporary.unlink(missing_ok=True)
        _write_whole(temporary, told.encode())
        temporary.replace(seal)

    def find_finished(self, name: str) -> Path | None:
        """Return the file as this run wrote it; None where it was not finished. One that was changed is refused."""
        place, seal = self.folder / name, self.folder / f"{name}{SEAL_ENDING}"
        if not os.path.lexists(seal):
            return None
        if place.is_symlink() or not place.is_file() or seal.is_symlink() or not seal.is_file():
            raise make_forged_error(self.folder)
        told = seal.read_bytes() if seal.stat().st_size <= 64 else b""
        if not hmac.compare_digest(told, self._seal(name, digest_file(place)).encode()):
            raise make_forged_error(self.folder)
        return place

    def read(self, name: str) -> bytes | None:
        """Return the content of a file as this run wrote it; None where it was not finished."""
        place = self.find_finished(name)
        return None if place is None else place.read_bytes()

    def _seal(self, name: str, digest: bytes) -> str:
        return self.key.digest(b"sealed state", self.run, name.encode(), digest).hex()


def read_mark(path: Path) -> bytes | None:
    """Return the short text that identifies a run, or None; a link, a pipe or a long file is refused."""
    if not os.path.lexists(path):
        return None
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_MARK_BYTES:
        raise make_forged_error(path.parent)
    return path.read_bytes()


def keep_mark(path: Path, text: str) -> None:
    """Write that text, completely or not at all, into the folder itself: a link that lies there is not followed."""
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    _write_whole(temporary, text.encode())
    temporary.replace(path)


def digest_file(path: Path) -> bytes:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def make_forged_error(folder: Path) -> ForgedStateError:
    """Return the error for a state that this run did not write."""
    return ForgedStateError(
        f"the state of the interrupted run in {folder.name} was changed",
        why="a file there is not as the run wrote it: cut, altered, or put there by somebody else",
        fix="nothing was released; delete the folder that ends in .part and start the run again",
    )


def _write_whole(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
