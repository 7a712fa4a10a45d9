"""The folder of a workbench, and where everything lies in it."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError

CENSUS, PLANS, JOBS, PACKETS, REPORTS = "census", "plans", "jobs", "packets", "reports"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """A folder that only its owner can read; commands are shown as they are typed in it."""

    folder: Path
    roots: tuple[Path, ...] = ()  # folders of data that the workbench may be pointed at

    @staticmethod
    def of(folder: Path, *, roots: tuple[Path, ...] = ()) -> "Workspace":
        """The workbench in a folder, which is made if it does not exist."""
        if folder.exists() and not folder.is_dir():
            raise InputError(
                f"{folder.name} is no folder",
                why="a workbench keeps its plans, runs and packets in a folder",
                fix="choose another folder: stirred serve DIR",
            )
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)
            for name in (PLANS, JOBS, PACKETS, REPORTS):
                (folder / name).mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot write to {folder.name}",
                why=error.strerror or "the system gives no reason",
                fix="choose a folder that you may write to: stirred serve DIR",
            ) from None
        return Workspace(folder=folder.resolve(), roots=tuple(root.resolve() for root in roots))

    @property
    def plans(self) -> Path:
        """The versions of the plan."""
        return self.folder / PLANS

    @property
    def jobs(self) -> Path:
        """What was run, and what is waiting."""
        return self.folder / JOBS

    @property
    def packets(self) -> Path:
        """Packets, each with the number of its job."""
        return self.folder / PACKETS

    @property
    def reports(self) -> Path:
        """Comparisons, assessments and frontiers, each with the number of its job."""
        return self.folder / REPORTS

    @property
    def own_census(self) -> Path:
        """The folder of files that were uploaded or made here."""
        return self.folder / CENSUS


def kept(path: Path, document: object) -> None:
    """Write JSON whole or not at all."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def known(path: Path) -> dict[str, object]:
    """What was written, or nothing where nothing or something else lies there."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
