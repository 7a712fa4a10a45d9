"""The history of the plan: every version is a file that never changes; undo goes back to the one before."""

import difflib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred.closed_files import write_closed_text
from stirred.errors import InputError
from stirred.web.workspace.folder import WorkspaceLock, read_document, write_document


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
