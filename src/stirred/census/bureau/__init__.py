"""Folders in the formats of the Census Bureau's programs: recognised by their files, described without a census.toml."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stirred.census.bureau import mdf, phsafe, safetab
from stirred.census.codebook.schema import Schema
from stirred.errors import InputError
from stirred.roots import require_readable

CENSUS_TOML = "census.toml"  # a folder with this file is described by it, whatever else lies there


@dataclass(frozen=True, slots=True)
class BureauFormat:
    """A format: the files that a folder must have, and the schema that these describe; only their headers are read."""

    name: str
    files: tuple[str, ...]
    schema: Callable[[Path], Schema]


# the first one whose files are all there is taken
BUREAU_FORMATS: tuple[BureauFormat, ...] = (
    BureauFormat("SafeTab-P and SafeTab-H", (safetab.SAFETAB_PERSONS_FILE, safetab.SAFETAB_HOUSEHOLDS_FILE, safetab.SAFETAB_AREAS_FILE), safetab.safetab_schema),
    BureauFormat("SafeTab-P", (safetab.SAFETAB_PERSONS_FILE, safetab.SAFETAB_AREAS_FILE), safetab.safetab_schema),
    BureauFormat("SafeTab-H", (safetab.SAFETAB_HOUSEHOLDS_FILE, safetab.SAFETAB_AREAS_FILE), safetab.safetab_schema),
    BureauFormat("PHSafe", (phsafe.PHSAFE_PERSONS_FILE, phsafe.PHSAFE_UNITS_FILE, phsafe.PHSAFE_AREAS_FILE), phsafe.phsafe_schema),
    BureauFormat("DHC microdata", (mdf.MDF_PERSONS_FILE, mdf.MDF_UNITS_FILE), mdf.mdf_schema),
)  # fmt: skip


def recognise_folder(folder: Path) -> Schema | None:
    """Return the schema of a folder in one of the formats; None where none of their files of records is there.

    >>> recognise_folder(Path("no such folder")) is None
    True
    """
    require_readable(folder)
    there = [
        (kind, [name for name in kind.files if not (folder / name).is_file()]) for kind in BUREAU_FORMATS
    ]
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
        fix=f"add {', '.join(lacking)}, or describe the files that are there in a {CENSUS_TOML}",
    )
