"""Every entry below a folder, without following links: plain files, and what does not belong in a packet."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError

MAX_ENTRIES = 200_000  # entries of a packet; a release of thousands of part files stays far below
MAX_FOLDER_DEPTH = 16  # folders in folders
SPARSE_BYTES = 1 << 20  # bytes from which a file that occupies almost nothing on disk is refused


CONTROL = "a name with control characters"


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """One entry: its name below the folder, and why it cannot be a file of a packet ("" where it can)."""

    name: str
    path: Path
    fault: str


def list_entries(folder: Path) -> Iterator[FolderEntry]:
    """Yield all entries below a folder by name; enter folders, do not follow links."""
    found = sorted(_walk_folder(folder, "", MAX_FOLDER_DEPTH), key=lambda entry: entry.name)
    yield from found


def _walk_folder(folder: Path, above: str, depth: int) -> Iterator[FolderEntry]:
    number = 0
    with os.scandir(folder) as listed:
        for entry in listed:
            number += 1
            if number > MAX_ENTRIES:
                raise _too_large()
            name, path = f"{above}{entry.name}", Path(entry.path)
            mode = entry.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                if depth == 0:
                    raise _too_large()
                for inner in _walk_folder(path, f"{name}/", depth - 1):
                    number += 1
                    if number > MAX_ENTRIES:
                        raise _too_large()
                    yield inner
                if not entry.name.isprintable():
                    yield FolderEntry(name, path, CONTROL)
            else:
                yield FolderEntry(name, path, _find_fault(path, mode))


def _find_fault(path: Path, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "a link"
    if not stat.S_ISREG(mode):
        return "not a plain file"
    if not path.name.isprintable():  # a line feed in a name would forge a line of what is printed about it
        return CONTROL
    told = path.lstat()
    # a sparse file of a terabyte would take hours to read and holds nothing
    if told.st_size > SPARSE_BYTES and told.st_blocks * 512 * 64 < told.st_size:
        return "a sparse file"
    return ""


def _too_large() -> InputError:
    return InputError(
        "this is no packet",
        why=f"it has more than {MAX_ENTRIES:,} files or more than {MAX_FOLDER_DEPTH} folders in each other",
        fix="give the folder stirred run wrote",
    )
