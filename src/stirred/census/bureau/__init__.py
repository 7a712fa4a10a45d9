"""Folders in the formats of the Census Bureau's programs: recognised by their files, described without a census.toml."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stirred.census.bureau import mdf, phsafe, safetab
from stirred.census.codebook.schema import Schema
from stirred.errors import InputError
from stirred.roots import require_readable

NAME = "census.toml"  # a folder with this file is described by it, whatever else lies there


@dataclass(frozen=True, slots=True)
class BureauFormat:
    """A format: the files that a folder must have, and the schema that these describe; only their headers are read."""

    name: str
    files: tuple[str, ...]
    schema: Callable[[Path], Schema]


# the first one whose files are all there is taken
FORMATS: tuple[BureauFormat, ...] = (
    BureauFormat("SafeTab-P and SafeTab-H", (safetab.PERSONS, safetab.HOUSEHOLDS, safetab.AREAS), safetab.schema),
    BureauFormat("SafeTab-P", (safetab.PERSONS, safetab.AREAS), safetab.schema),
    BureauFormat("SafeTab-H", (safetab.HOUSEHOLDS, safetab.AREAS), safetab.schema),
    BureauFormat("PHSafe", (phsafe.PERSONS, phsafe.UNITS, phsafe.AREAS), phsafe.schema),
    BureauFormat("DHC microdata", (mdf.PERSONS, mdf.UNITS), mdf.schema),
)  # fmt: skip


def described(folder: Path) -> Schema | None:
    """The schema of a folder in one of the formats; None where none of their files of records is there.

    >>> described(Path("no such folder")) is None
    True
    """
    require_readable(folder)
    there = [(kind, [name for name in kind.files if not (folder / name).is_file()]) for kind in FORMATS]
    whole = next((kind for kind, lacking in there if not lacking), None)
    if whole is not None:
        return whole.schema(folder)
    partly = [(kind, lacking) for kind, lacking in there if len(lacking) < len(kind.files)]
    if not partly:
        return None
    kind, lacking = min(partly, key=lambda found: len(found[1]))
    raise InputError(
        f"the folder lacks {', '.join(lacking)}",
        why=f"its other files have the format of {kind.name}, which has {', '.join(kind.files)}",
        fix=f"add {', '.join(lacking)}, or describe the files that are there in a {NAME}",
    )
