"""A packet: a release on disk, in a public part that may be copied anywhere and an internal part that may not."""

import hashlib
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq

from stirred.errors import InputError, PrivacyError
from stirred.mechanisms.contents import digest

CHECKSUMS = "checksums.txt"
PUBLIC, INTERNAL = "public", "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One file that is not as the checksums say: changed, missing or unknown."""

    path: str
    state: str


def sha256(path: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files(folder: Path) -> Iterator[Path]:
    """All files below a folder but its checksums, in the order of their names."""
    found = (path for path in folder.rglob("*") if path.is_file() and path != folder / CHECKSUMS)
    yield from sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def seal(folder: Path) -> None:
    """Write the checksums of a folder, in the format that ``sha256sum --check`` reads."""
    lines = [f"{sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files(folder)]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def check(folder: Path) -> list[Finding]:
    """Every file that differs from the checksums, is missing, or is not listed."""
    try:
        lines = (folder / CHECKSUMS).read_text(encoding="utf-8").splitlines()
        listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    except (OSError, UnicodeDecodeError):
        raise InputError(
            "this is no packet",
            why=f"{folder.name}/{CHECKSUMS} cannot be read",
            fix="give the folder stirred run wrote",
        ) from None
    present = {path.relative_to(folder).as_posix(): path for path in files(folder)}
    findings = [Finding(path=name, state="missing") for name in listed.keys() - present.keys()]
    findings += [Finding(path=name, state="not listed") for name in present.keys() - listed.keys()]
    for name in listed.keys() & present.keys():
        if sha256(present[name]) != listed[name]:
            findings.append(Finding(path=name, state="changed"))
    return sorted(findings, key=lambda finding: finding.path)


def verify(packet: Path, *, public: bool = False) -> list[Finding]:
    """Hold a packet against its checksums; with ``public`` refuse one that still holds the internal part."""
    if public:
        folder = packet / PUBLIC if (packet / PUBLIC).is_dir() else packet
        # the folder decides what is internal; a file may have any name
        inside = any(INTERNAL in path.relative_to(folder).parts[:-1] for path in files(folder))
        if inside or (packet / INTERNAL).exists() or folder.resolve().name == INTERNAL:
            raise PrivacyError(
                "this copy is not public",
                why="it still holds the internal part, computed with the confidential data",
                fix=f"copy only the folder {PUBLIC}/ of the packet",
            )
        return check(folder)
    findings = []
    parts = [part for part in (PUBLIC, INTERNAL) if (packet / part).is_dir()]
    if not parts:
        return check(packet)
    for part in parts:
        findings += [Finding(path=f"{part}/{f.path}", state=f.state) for f in check(packet / part)]
    return findings


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that lies in a folder; reads only its public part unless asked."""

    folder: Path

    @property
    def public(self) -> Path:
        """The public part (a copy of it is itself a packet)."""
        return self.folder / PUBLIC if (self.folder / PUBLIC).is_dir() else self.folder

    def receipt(self) -> dict[str, object]:
        """How it was made."""
        return self._json("receipt.json")

    def table_names(self) -> list[str]:
        """The published tables."""
        return sorted(path.stem for path in (self.public / "tables").glob("*.parquet"))

    def tables(self) -> dict[str, str]:
        """The published tables with the record type each counts, as the plan states them, or else the receipt."""
        path = self.public / "plan.toml"
        if path.exists():
            try:
                plan = tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                raise InputError(
                    "this is no packet",
                    why="plan.toml is damaged",
                    fix="give the folder stirred run wrote",
                ) from None
            stated: object = {
                item["name"]: item.get("record_type", "household") for item in plan.get("table", [])
            }
        else:
            stated = self.receipt().get("tables")
        known = stated if isinstance(stated, dict) else {}
        return {name: str(known.get(name, "household")) for name in self.table_names()}

    def read_tables(self) -> dict[str, pa.Table]:
        """The published tables themselves."""
        return {
            name: pq.read_table(self.public / "tables" / f"{name}.parquet") for name in self.table_names()
        }

    def contents(self) -> dict[str, str]:
        """What its records and tables say, each by a digest that does not see who wrote the files."""
        self.receipt()
        found = {}
        for folder in [*sorted(self.public.glob("data*")), self.public / "tables"]:
            for path in sorted(folder.glob("*.parquet")):
                files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
                found[f"{folder.name}/{path.stem}"] = digest(pads.dataset([str(file) for file in files]))
        return found

    def _json(self, name: str) -> dict[str, object]:
        try:
            document = json.loads((self.public / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise InputError(
                "this is no packet",
                why=f"{name} is missing or damaged",
                fix="give the folder stirred run wrote",
            ) from None
        if not isinstance(document, dict):
            raise InputError(
                "this is no packet",
                why=f"{name} holds something else",
                fix="give the folder stirred run wrote",
            )
        return document
