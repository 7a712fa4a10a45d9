"""Write files and folders that only their owner may read, whatever the mask of the process.

All that is computed from confidential records and is not the public part of a packet is written through this module.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from stirred.errors import InputError

FOLDER_MODE, FILE_MODE = 0o700, 0o600


@contextmanager
def closed_file(path: Path) -> Iterator[Path]:
    """Write a file whole or not at all: yield a new empty file beside it, which gets its name at the end of the block.

    A link that has the name is replaced, not followed. After an error nothing is left.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part{path.suffix}")
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE))
    try:
        yield temporary
        temporary.chmod(FILE_MODE)
        _sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Let the disk have the content before the name leads to it: a machine that loses its power keeps the file before."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_closed_text(path: Path, text: str) -> None:
    """Write a text whole or not at all."""
    with closed_file(path) as place:
        place.write_text(text, encoding="utf-8")


def make_closed_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing; one of the user's own that is there is closed.

    What was computed from the truth is not written into a link, nor into a folder that another user can open again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=FOLDER_MODE)
    require_own_folder(path)
    path.chmod(FOLDER_MODE)


def close_folder(folder: Path) -> None:
    """Close a folder and all that is in it; links are not followed."""
    for place, _, names in os.walk(folder):
        Path(place).chmod(FOLDER_MODE)
        for name in names:
            path = Path(place) / name
            if not path.is_symlink():
                path.chmod(FILE_MODE)


def require_own_folder(path: Path) -> None:
    """Refuse a link, what is no folder, and a folder of another user; the error says whose it is."""
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        raise InputError(
            f"{path.name} is a link",
            why="what lies behind it may belong to something else, and would be changed",
            fix=f"remove the link {path.name}, or choose another --out",
        )
    if not stat.S_ISDIR(found.st_mode):
        raise InputError(
            f"{path.name} is in the way",
            why="a folder of this name is needed, and something else has it",
            fix=f"move {path.name} away, or choose another --out",
        )
    if os.name == "posix" and found.st_uid != os.geteuid():
        raise InputError(
            f"{path.name} belongs to {owner_of(path)}",
            why="who owns a folder can read and replace what others write into it",
            fix="choose another --out",
        )


def owner_of(path: Path) -> str:
    """Return the name of the user who owns an entry of a folder, or the number where it has no name."""
    number = path.lstat().st_uid
    try:
        import pwd

        return f"user {pwd.getpwuid(number).pw_name}"
    except (ImportError, KeyError):
        return f"user {number}"


@contextmanager
def closed_stream(path: Path, *, anew: bool = False) -> Iterator[IO[bytes]]:
    """Open a plain file of the user's own for what a child process says, at its end, or emptied first with ``anew``."""
    with os.fdopen(append_closed(path), "ab") as file:
        if anew:
            file.truncate(0)
        yield file


def append_closed(path: Path) -> int:
    """Open a plain file of the user's own to append to, as a descriptor; a link is refused, and a pipe does not block."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, FILE_MODE)
    except OSError as error:
        raise InputError(
            f"{path.name} cannot be written",
            why=f"it is a link, a pipe or closed to you ({error.strerror})",
            fix=f"remove {path.name}, or choose another --out",
        ) from None
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != os.geteuid():
        os.close(descriptor)
        raise InputError(
            f"{path.name} cannot be written",
            why="it is no plain file of your own: a device, a second name of another file, or a file of another user",
            fix=f"remove {path.name}, or choose another --out",
        )
    os.fchmod(descriptor, FILE_MODE)
    return descriptor
