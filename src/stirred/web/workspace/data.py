"""The data of a workbench: which census it designs a release for, and whether a person asked to read its records."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from stirred.census import Schema
from stirred.census.bureau import recognise_folder
from stirred.census.codebook import parse
from stirred.census.readers import database, workbook
from stirred.closed_files import closed_file, write_closed_text
from stirred.errors import InputError
from stirred.roots import home_path, reading_below, real_path, require_readable
from stirred.web.workspace.folder import Workspace, read_document, write_document

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
        return parse.load_schema(self.file)


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
            parse.load_schema(file)
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
            parse.loads(plain, folder=place.parent)
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
