"""The data of a workbench: which census it designs a release for, and whether a person asked to read its records."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stirred.census import Schema
from stirred.census.bureau import described
from stirred.census.codebook import parse
from stirred.census.readers import database, workbook
from stirred.errors import InputError
from stirred.web.workspace.folder import Workspace, kept, known

CODEBOOK = "census.toml"
HOUSEHOLDS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FileParts:
    """The sheets of a workbook or the tables of a database, of which each may be a record type."""

    file: str
    kind: Literal["sheet", "table"]
    names: tuple[str, ...]

    @staticmethod
    def of(path: Path) -> "FileParts | None":
        """Read the names of the parts, and no record; None where a file has no parts, or one sheet."""
        if path.suffix.lower() == ".xlsx":
            sheets = workbook.sheets_of(path)
            return FileParts(file=path.name, kind="sheet", names=tuple(sheets)) if len(sheets) != 1 else None
        if path.suffix.lower() == ".duckdb":
            return FileParts(file=path.name, kind="table", names=tuple(database.tables_of(path)))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenData:
    """A census by the place of its census.toml; public figures that a person typed stand in for its records."""

    file: Path
    read: bool = False  # whether the records may be read
    households: int = HOUSEHOLDS  # of the stand-in: a published number
    largest: int | None = None  # the largest stratum, from published counts

    @property
    def schema(self) -> Schema:
        """The codebook; no record is read."""
        return parse.load(self.file)


@dataclass(frozen=True, slots=True)
class DataChoice:
    """What the folder says about its data."""

    workspace: Workspace

    @property
    def _file(self) -> Path:
        return self.workspace.folder / "census.json"

    def chosen(self) -> ChosenData | None:
        """The census that was chosen; one that was described or made here is chosen by itself."""
        told = known(self._file)
        place = told.get("file")
        own = self.workspace.own_census / CODEBOOK
        file = Path(os.path.normpath(self.workspace.folder / place)) if isinstance(place, str) else own
        if not file.is_file() and described(file.parent) is None:
            return None
        figure, largest = told.get("households"), told.get("largest")
        return ChosenData(
            file=file,
            read=told.get("read") is True,
            households=figure if isinstance(figure, int) else HOUSEHOLDS,
            largest=largest if isinstance(largest, int) else None,
        )

    def choose(self, chosen: ChosenData) -> None:
        """Keep a choice."""
        kept(
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
        now = self.chosen()
        if now is None:
            raise InputError(
                "no data are chosen", why="nothing was named, uploaded or made yet", fix="choose data first"
            )
        self.choose(replace(now, **values))  # type: ignore[arg-type]

    def named(self, text: str) -> Path:
        """The folder or file that a person named; only below the folders that the workbench was started for."""
        path = Path(text.strip()).expanduser()
        path = (path if path.is_absolute() else self.workspace.folder / path).resolve()
        allowed = (self.workspace.folder, *self.workspace.roots)
        if not text.strip() or not any(path.is_relative_to(root) for root in allowed):
            raise InputError(
                "this folder is not open to the workbench",
                why="it lies outside the folders that the workbench was started for",
                fix="start it with the folder of the data: stirred serve --data FOLDER",
            )
        file = path / CODEBOOK if path.is_dir() else path
        if file.name.endswith(".toml") and (file.is_file() or described(file.parent) is not None):
            parse.load(file)
            return file
        raise InputError(
            "there is no census.toml",
            why="the workbench reads the codebook first, and there is none in this folder",
            fix="write one: stirred data describe FILE… --out census.toml; or upload the files here",
        )

    @property
    def is_own(self) -> bool:
        """Whether the codebook lies in the folder of the workbench, where it may be corrected."""
        chosen = self.chosen()
        return chosen is not None and chosen.file.parent == self.workspace.own_census

    def correct(self, text: str) -> None:
        """Keep a corrected codebook, if it can be read; the one before it is kept beside it."""
        place = self.workspace.own_census / CODEBOOK
        draft = place.with_name("census.draft.toml")
        draft.write_text(text.replace("\r\n", "\n"), encoding="utf-8")
        try:
            parse.load(draft)
        except BaseException:
            draft.unlink()
            raise
        number = 1
        while place.with_name(f"census.{number:04}.toml").exists():
            number += 1
        place.replace(place.with_name(f"census.{number:04}.toml"))
        draft.replace(place)

    def parts(self) -> list[FileParts]:
        """The uploaded files that hold several sheets or tables, with their names."""
        return [found for path in self.files() if (found := FileParts.of(path)) is not None]

    def files(self) -> list[Path]:
        """The files that were uploaded, without codebooks."""
        folder = self.workspace.own_census
        if not folder.is_dir():
            return []
        return sorted(path for path in folder.iterdir() if path.is_file() and path.suffix != ".toml")
