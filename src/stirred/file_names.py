"""Names that become file names: checked in this one place, so that no name of a schema, plan or table leaves its folder."""

import itertools
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from stirred.errors import InputError

LONGEST = 100  # characters; with an ending and any alphabet this fits the 255 bytes of common file systems
RULE = f"letters, digits, - and _, at most {LONGEST} of them, and no - at the start"


def is_file_name(name: str, *, spaced: bool = False) -> bool:
    """Whether a name may be a file name: it has only letters, digits, ``-`` and ``_``, so it names no other folder.

    Record types may have spaces between words, as in "group quarters".

    >>> [is_file_name(name) for name in ("household", "ménage_2", "../evil", "", "-rf", "a" * 101)]
    [True, True, False, False, False, False]
    >>> [is_file_name(name, spaced=True) for name in ("group quarters", " a", "a  b", "a /b")]
    [True, False, False, False]
    """
    plain = name.replace("-", "").replace("_", "")
    if spaced and name == " ".join(name.split()):
        plain = plain.replace(" ", "")
    return (
        plain.isalnum()
        and not name.startswith("-")
        and len(name) <= LONGEST
        and unicodedata.is_normalized("NFC", name)
    )


def file_name(text: str) -> str:
    """A file name made from any text.

    >>> file_name("county × tenure"), file_name("../../evil"), file_name("…")
    ('county-tenure', 'evil', 'table')
    """
    words = "".join(
        c if c.isalnum() or c in "_-" else " " for c in unicodedata.normalize("NFC", text)
    ).split()
    return "-".join(words)[:LONGEST].strip("-") or "table"


def file_names(texts: Iterable[str]) -> dict[str, str]:
    """File names made from texts, each different from the others also where case does not count.

    >>> file_names(["a × b", "a-b", "A b"])
    {'a × b': 'a-b', 'a-b': 'a-b-2', 'A b': 'A-b-3'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for text in texts:
        wanted = file_name(text)
        numbered = (f"{wanted[: LONGEST - 8]}-{number}" for number in itertools.count(2))
        name = next(
            name
            for name in (wanted, *itertools.islice(numbered, len(taken) + 1))
            if name.casefold() not in taken
        )
        found[text] = name
        taken.add(name.casefold())
    return found


def path_in(folder: Path, name: str, ending: str) -> Path:
    """The path of a file in a folder; a name that is not a file name is refused.

    >>> path_in(Path("public"), "household", ".parquet").as_posix()
    'public/household.parquet'
    """
    if not is_file_name(name, spaced=True):
        raise InputError(
            "a name cannot be a file name",
            why=f"{name[:40]!r} becomes the name of a file, which has {RULE}",
            fix="rename the record type or the table",
        )
    return folder / f"{name}{ending}"
