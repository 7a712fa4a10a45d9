"""The checksums of a packet: written when it is sealed, compared with its files when it is verified."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, PrivacyError

CHECKSUMS = "checksums.txt"
PUBLIC, INTERNAL = "public", "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Discrepancy:
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


def check(folder: Path) -> list[Discrepancy]:
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
    findings = [Discrepancy(path=name, state="missing") for name in listed.keys() - present.keys()]
    findings += [Discrepancy(path=name, state="not listed") for name in present.keys() - listed.keys()]
    for name in listed.keys() & present.keys():
        if sha256(present[name]) != listed[name]:
            findings.append(Discrepancy(path=name, state="changed"))
    return sorted(findings, key=lambda finding: finding.path)


def verify(packet: Path, *, public: bool = False) -> list[Discrepancy]:
    """Compare a packet with its checksums; with ``public`` refuse one that still holds the internal part."""
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
        findings += [Discrepancy(path=f"{part}/{f.path}", state=f.state) for f in check(packet / part)]
    return findings
