"""The folder of a workbench, and where everything lies in it."""

import fcntl
import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock

from stirred.closed_files import make_closed_folder, write_closed_text
from stirred.errors import InputError

ABANDONED_SECONDS = 3600  # after that a file that is being written belongs to a process that was killed
CENSUS, PLANS, JOBS, PACKETS, REPORTS = "census", "plans", "jobs", "packets", "reports"


class WorkspaceLock:
    """The one lock of a workbench: of all threads of a server, and of all servers in the same folder.

    Whoever reads something, changes it and writes it again holds it from the first step to the last.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._threads = RLock()
        self._depth = 0
        self._descriptor = -1

    def __enter__(self) -> None:
        self._threads.acquire()
        try:
            if not self._depth:
                self._descriptor = _lock_file(self.path)
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            os.close(self._descriptor)  # which gives the lock back
        self._threads.release()


def _lock_file(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A folder that only its owner can read; commands are shown as they are typed in it."""

    folder: Path
    roots: tuple[Path, ...] = ()  # folders of data that the workbench may be pointed at
    lock: WorkspaceLock = field(compare=False)

    @staticmethod
    def of(folder: Path, *, roots: tuple[Path, ...] = ()) -> "Workspace":
        """Open the workbench in a folder, which is made if it does not exist."""
        if folder.exists() and not folder.is_dir():
            raise InputError(
                f"{folder.name} is no folder",
                why="a workbench keeps its plans, runs and packets in a folder",
                fix="choose another folder: stirred serve DIR",
            )
        try:
            for place in (folder, *(folder / name for name in (PLANS, JOBS, PACKETS, REPORTS))):
                make_closed_folder(place)
        except OSError as error:
            raise InputError(
                f"cannot write to {folder.name}",
                why=error.strerror or "the system gives no reason",
                fix="choose a folder that you may write to: stirred serve DIR",
            ) from None
        whole = folder.resolve()
        (whole / "secret").unlink(missing_ok=True)  # of a version that kept one secret for all starts
        return Workspace(
            folder=whole, roots=tuple(root.resolve() for root in roots), lock=WorkspaceLock(whole / "lock")
        )

    @property
    def readable_folders(self) -> tuple[Path, ...]:
        """Return the folders below which the workbench reads files."""
        return (self.folder, *self.roots)

    def remove_abandoned(self) -> None:
        """Delete files that a killed server did not finish to write."""
        for place in (self.folder, self.plans, self.own_census, *self.jobs.glob("*")):
            for path in place.glob(".*.part*"):
                with suppress(OSError):
                    if time.time() - path.lstat().st_mtime > ABANDONED_SECONDS:
                        path.unlink()

    @property
    def plans(self) -> Path:
        """Return the folder of the versions of the plan."""
        return self.folder / PLANS

    @property
    def jobs(self) -> Path:
        """Return the folder of what was run and what is waiting."""
        return self.folder / JOBS

    @property
    def packets(self) -> Path:
        """Return the folder of packets, each with the number of its job."""
        return self.folder / PACKETS

    @property
    def reports(self) -> Path:
        """Return the folder of comparisons, assessments and frontiers, each with the number of its job."""
        return self.folder / REPORTS

    @property
    def own_census(self) -> Path:
        """Return the folder of files that were uploaded or made here."""
        return self.folder / CENSUS


def write_document(path: Path, document: object) -> None:
    """Write JSON whole or not at all."""
    write_closed_text(path, json.dumps(document, ensure_ascii=False, indent=1))


def read_document(path: Path) -> dict[str, object]:
    """Read the JSON that was written; return an empty mapping where there is none or it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
