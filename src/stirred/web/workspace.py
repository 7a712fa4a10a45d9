"""Keep the folder of a workbench: its data, the versions of its plan, its runs and packets."""

import difflib
import fcntl
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Literal

from stirred.census import Schema, toml
from stirred.census.bureau import recognise_folder
from stirred.census.readers import database, workbook
from stirred.closed_files import closed_file, make_closed_folder, write_closed_text
from stirred.errors import InputError
from stirred.roots import home_path, reading_below, real_path, require_readable

# The folder of a workbench, and where everything lies in it.

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


# The data of a workbench: which census it designs a release for, and whether a person asked to read its records.

CODEBOOK = "census.toml"
DEFAULT_HOUSEHOLDS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileParts:
    """The sheets of a workbook or the tables of a database, of which each may be a record type."""

    file: str
    kind: Literal["sheet", "table"]
    names: tuple[str, ...]

    @staticmethod
    def of(path: Path) -> "FileParts | None":
        """Read the names of sheets or tables, and no record; None for other files and for a single sheet."""
        if path.suffix.lower() == ".xlsx":
            sheets = workbook.list_sheets(path)
            return FileParts(file=path.name, kind="sheet", names=tuple(sheets)) if len(sheets) != 1 else None
        if path.suffix.lower() == ".duckdb":
            return FileParts(file=path.name, kind="table", names=tuple(database.tables_of(path)))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenData:
    """A census by the place of its census.toml; public figures that a person typed stand in for its records."""

    file: Path
    read: bool = False  # whether the records may be read
    households: int = DEFAULT_HOUSEHOLDS  # of the stand-in: a published number
    largest: int | None = None  # the largest stratum, from published counts

    @property
    def schema(self) -> Schema:
        """Return the schema in the codebook; read no record."""
        return toml.load_schema(self.file)


@dataclass(frozen=True, slots=True)
class DataChoice:
    """The choice of data, as the folder of the workbench states it."""

    workspace: Workspace

    @property
    def _file(self) -> Path:
        return self.workspace.folder / "census.json"

    def read_choice(self) -> ChosenData | None:
        """Return the chosen census; one that was described or made here is chosen without asking."""
        told = read_document(self._file)
        place = told.get("file")
        own = self.workspace.own_census / CODEBOOK
        file = Path(os.path.normpath(self.workspace.folder / place)) if isinstance(place, str) else own
        if not file.is_file() and recognise_folder(file.parent) is None:
            return None
        figure, largest = told.get("households"), told.get("largest")
        return ChosenData(
            file=file,
            read=told.get("read") is True,
            households=figure if isinstance(figure, int) else DEFAULT_HOUSEHOLDS,
            largest=largest if isinstance(largest, int) else None,
        )

    def choose(self, chosen: ChosenData) -> None:
        """Keep a choice."""
        with self.workspace.lock:
            self._keep(chosen)

    def _keep(self, chosen: ChosenData) -> None:
        write_document(
            self._file,
            {
                "file": os.path.relpath(chosen.file, self.workspace.folder),
                "read": chosen.read,
                "households": chosen.households,
                "largest": chosen.largest,
            },
        )

    def change(self, **values: object) -> None:
        """Keep a change of what is chosen."""
        with self.workspace.lock:
            now = self.read_choice()
            if now is None:
                raise InputError(
                    "no data are chosen",
                    why="nothing was named, uploaded or made yet",
                    fix="choose data first",
                )
            self.choose(replace(now, **values))  # type: ignore[arg-type]

    def resolve_place(self, text: str) -> Path:
        """Return the folder or file that a person named; refuse places outside the allowed folders."""
        if not text.strip():
            raise InputError(
                "no folder is named",
                why="the field is empty",
                fix="write the path of a folder with a census.toml",
            )
        path = real_path(self.workspace.folder / home_path(text))
        with reading_below(self.workspace.readable_folders):
            return self._codebook_at(require_readable(path))

    def _codebook_at(self, path: Path) -> Path:
        """Return the codebook at a path that is open, if it can be read."""
        file = path / CODEBOOK if path.is_dir() else path
        if file.name.endswith(".toml") and (file.is_file() or recognise_folder(file.parent) is not None):
            toml.load_schema(file)
            return file
        raise InputError(
            "there is no census.toml",
            why="the workbench reads the codebook first, and there is none in this folder",
            fix="write one: stirred data describe FILE… --out census.toml; or upload the files here",
        )

    @property
    def is_own(self) -> bool:
        """Return whether the codebook lies in the folder of the workbench, where it may be corrected."""
        chosen = self.read_choice()
        return chosen is not None and chosen.file.parent == self.workspace.own_census

    def correct(self, text: str) -> None:
        """Keep a corrected codebook, if it can be read; the one before it is kept beside it."""
        place, plain = self.workspace.own_census / CODEBOOK, text.replace("\r\n", "\n")
        with reading_below(self.workspace.readable_folders):
            toml.loads(plain, folder=place.parent)
        with self.workspace.lock:
            self.keep_codebook()
            write_closed_text(place, plain)

    def keep_codebook(self) -> None:
        """Copy the codebook of the workbench, before it is replaced, to the first free name ``census.0001.toml``."""
        place, number = self.workspace.own_census / CODEBOOK, 1
        if not place.is_file():
            return
        while (copy := place.with_name(f"census.{number:04}.toml")).exists():
            number += 1
        with closed_file(copy) as whole:
            whole.write_bytes(place.read_bytes())

    def take(self, files: Mapping[str, Path]) -> None:
        """Give uploaded files their names; a codebook that is replaced is kept beside the new one."""
        with self.workspace.lock:
            if CODEBOOK in files:
                self.keep_codebook()
            for name, place in files.items():
                place.replace(self.workspace.own_census / name)

    def parts(self) -> list[FileParts]:
        """Return the uploaded files that hold several sheets or tables, with their names."""
        return [found for path in self.files() if (found := FileParts.of(path)) is not None]

    def files(self) -> list[Path]:
        """Return the files that were uploaded, without codebooks."""
        folder = self.workspace.own_census
        if not folder.is_dir():
            return []
        found = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
        return sorted(path for path in found if path.suffix != ".toml")


# The history of the plan: every version is a file that never changes; undo goes back to the one before.


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One version of the plan: its number, the one it was made from, and what was changed."""

    number: int
    parent: int  # 0: none
    words: str
    time: str

    @property
    def name(self) -> str:
        """Return the name of its file."""
        return f"{self.number:04}.toml"


@dataclass(frozen=True, slots=True)
class PlanHistory:
    """The versions in a folder; ``history.json`` says which one is current."""

    folder: Path
    lock: WorkspaceLock

    @staticmethod
    def of(folder: Path, lock: WorkspaceLock) -> "PlanHistory":
        """Open the history in a folder, with the lock of its workbench."""
        return PlanHistory(folder, lock)

    @property
    def _file(self) -> Path:
        return self.folder / "history.json"

    def versions(self) -> list[Version]:
        """Return all versions, oldest first."""
        listed = read_document(self._file).get("versions", [])
        found = []
        for item in listed if isinstance(listed, list) else []:
            version = Version(
                number=int(item["number"]),
                parent=int(item["parent"]),
                words=str(item["words"]),
                time=str(item["time"]),
            )
            if self.path(version.number).is_file():
                found.append(version)
        return found

    @property
    def current(self) -> int:
        """Return the number of the current version; 0 before there is one."""
        number = read_document(self._file).get("current", 0)
        return number if isinstance(number, int) else 0

    def path(self, number: int) -> Path:
        """Return the file of a version."""
        return self.folder / f"{number:04}.toml"

    def text(self, number: int | None = None) -> str:
        """Return the plan of a version, or the current one; empty before there is one."""
        wanted = self.current if number is None else number
        path = self.path(wanted)
        return path.read_text(encoding="utf-8") if wanted and path.is_file() else ""

    def add(self, text: str, words: str) -> int:
        """Keep a new version, made from the current one, and make it current; an unchanged plan makes none."""
        with self.lock:
            if text == self.text():
                return self.current
            versions = self.versions()
            number = 1 + max([version.number for version in versions], default=0)
            while self.path(number).exists():  # of a server that was killed before it listed the version
                number += 1
            write_closed_text(self.path(number), text)
            told = Version(
                number=number, parent=self.current, words=words, time=time.strftime("%Y-%m-%d %H:%M:%S")
            )
            self._keep([*versions, told], number)
            return number

    def restore(self, number: int) -> None:
        """Make a version current; nothing is deleted."""
        with self.lock:
            versions = self.versions()
            if number not in {version.number for version in versions}:
                raise InputError(
                    "there is no such version of the plan",
                    why="the history does not list it",
                    fix="choose one of the list",
                )
            self._keep(versions, number)

    def _keep(self, versions: Sequence[Version], current: int) -> None:
        listed = [
            {"number": v.number, "parent": v.parent, "words": v.words, "time": v.time} for v in versions
        ]
        write_document(self._file, {"current": current, "versions": listed})

    def undo(self) -> int:
        """Return the version that undo goes back to; 0 if there is none."""
        return next((v.parent for v in self.versions() if v.number == self.current), 0)

    def redo(self) -> int:
        """Return the latest version that was made from the current one; 0 if there is none."""
        return max((v.number for v in self.versions() if v.parent == self.current), default=0)

    def difference(self, before: int, after: int) -> list[tuple[str, str]]:
        """Return the lines of two versions as a diff: a mark (+, -, @ or nothing) and the line."""
        lines = difflib.unified_diff(
            self.text(before).splitlines() if before else [], self.text(after).splitlines(), lineterm="", n=2
        )
        found = []
        for line in lines:
            if line.startswith(("---", "+++")):
                continue
            mark = line[:1] if line[:1] in "+-@" else ""
            found.append((mark, line if mark == "@" else line[1:]))
        return found
