"""Where files may be read: everywhere for a command of a person; below its folders for what comes through the workbench.

A plan or a codebook that somebody uploads names other files: records, codes, areas, workloads, tables of noise, packets.
Each of these names is judged by ``require_readable``, with links resolved, when it is stated and again when it is opened.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from stirred.errors import InputError

SETTING = "STIRRED_READ_BELOW"  # of a child process: folders, separated as in PATH
MAX_PATH_BYTES, MAX_NAME_BYTES = 4095, 255  # of common systems
ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]+:/"
)  # what only an engine can read, such as s3a://office/census.parquet
_OWN = Path(__file__).resolve().parent  # what the program brings with it is public
_MADE: set[Path] = set()  # folders of scratch that this process made, closed to other users
_ROOTS: ContextVar[tuple[Path, ...] | None] = ContextVar("stirred_roots", default=None)


@contextmanager
def reading_below(roots: Iterable[Path]) -> Iterator[None]:
    """Let files be read below these folders alone, inside the block and in threads that share its context."""
    before = _ROOTS.set(tuple(roots))
    try:
        yield
    finally:
        _ROOTS.reset(before)


def open_own_folder(folder: Path) -> None:
    """Let files be read in a folder that this process made for itself."""
    _MADE.add(folder.resolve())


def child_setting(roots: Iterable[Path]) -> dict[str, str]:
    """Return the setting with which a child process reads below these folders alone; none where there is no limit."""
    places = [str(root) for root in roots]
    return {SETTING: os.pathsep.join(places)} if places else {}


def allowed_roots() -> tuple[Path, ...] | None:
    """Return the folders below which files may be read; None where there is no limit."""
    found = _ROOTS.get()
    if found is None and SETTING in os.environ:
        found = tuple(Path(place) for place in os.environ[SETTING].split(os.pathsep) if place)
    return found


def require_readable(path: Path) -> Path:
    """Refuse a path that no file can have, and one outside the folders that are open; return the path as it is.

    >>> require_readable(Path("plan.toml")).name
    'plan.toml'
    """
    require_possible(path)
    roots = allowed_roots()
    if roots is not None and not any(real_path(path).is_relative_to(root) for root in (*roots, _OWN, *_MADE)):
        raise _closed_error(
            "it lies outside the folders that the workbench was started for, itself or by a link"
        )
    return path


def require_readable_below(path: Path) -> Path:
    """Judge a path and, where it is a folder, such as an earlier packet, every link in it; return the path as it is."""
    require_readable(path)
    if allowed_roots() is not None and path.is_dir():
        for folder, folders, files in os.walk(path):
            for name in (*folders, *files):
                if (place := Path(folder) / name).is_symlink():
                    require_readable(place)
    return path


def require_names(names: Iterable[str], folder: Path | None) -> None:
    """Judge the names of files in a codebook or a plan, relative to its folder; of a pattern, the part before its marks."""
    for name in filter(None, names):
        if allowed_roots() is not None and ADDRESS.match(name):
            raise _closed_error("it is an address, and the workbench reads files of its folders alone")
        parts = Path(name).parts
        first = next((at for at, part in enumerate(parts) if any(mark in part for mark in "*?[")), len(parts))
        require_possible(Path(name))
        require_readable((folder or Path()) / Path(*parts[:first]))


def real_path(path: Path) -> Path:
    """Return a path without links; refused where the system cannot follow it."""
    require_possible(path)
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links that lead in a circle
        raise _impossible("the system cannot follow it") from None


def home_path(text: str) -> Path:
    """Return the path that a person typed, with ``~`` as their own folder; refused where no such folder is known."""
    try:
        return Path(text.strip()).expanduser()
    except RuntimeError:
        raise _impossible("~ stands for a user whom this machine does not know") from None


def require_possible(path: Path) -> None:
    """Refuse a path that no file can have: with a zero byte, or longer than the system allows."""
    text = os.fspath(path)
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise _impossible("it has letters that no file name can have") from None
    if b"\0" in encoded:
        raise _impossible("it has a zero byte")
    if len(encoded) > MAX_PATH_BYTES or any(len(part) > MAX_NAME_BYTES for part in encoded.split(b"/")):
        raise _impossible(
            f"it is longer than {MAX_PATH_BYTES} bytes, or one of its names than {MAX_NAME_BYTES}"
        )


def _closed_error(why: str) -> InputError:
    return InputError(
        "a file or a folder that is named is not open to the workbench",
        why=why,
        fix="start it with the folder of the data: stirred serve --data FOLDER; or copy the file there",
    )


def _impossible(why: str) -> InputError:
    return InputError(
        "no file or folder can have this name",
        why=why,
        fix="write the path of a file or a folder that is there",
    )
