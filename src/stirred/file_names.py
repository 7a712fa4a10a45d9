"""Names that become file names: checked in this one place, so that no name of a schema, plan or table leaves its folder."""

import itertools
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from stirred.errors import InputError

MAX_NAME_CHARACTERS = (
    100  # characters; with an ending and any alphabet this fits the 255 bytes of common file systems
)
FILE_NAME_RULE = f"letters, digits, - and _, at most {MAX_NAME_CHARACTERS} of them, and no - at the start"


def is_file_name(name: str, *, spaced: bool = False) -> bool:
    """Return whether a name has only letters, digits, ``-`` and ``_``, so that it names no other folder.

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
        and len(name) <= MAX_NAME_CHARACTERS
        and unicodedata.is_normalized("NFC", name)
    )


def make_file_name(text: str) -> str:
    """Return a file name made from any text.

    >>> make_file_name("county × tenure"), make_file_name("../../evil"), make_file_name("…")
    ('county-tenure', 'evil', 'table')
    """
    words = "".join(
        c if c.isalnum() or c in "_-" else " " for c in unicodedata.normalize("NFC", text)
    ).split()
    return "-".join(words)[:MAX_NAME_CHARACTERS].strip("-") or "table"


def make_file_names(texts: Iterable[str]) -> dict[str, str]:
    """Return file names made from texts, each different from the others also where case does not count.

    >>> make_file_names(["a × b", "a-b", "A b"])
    {'a × b': 'a-b', 'a-b': 'a-b-2', 'A b': 'A-b-3'}
    """
    found: dict[str, str] = {}
    taken: set[str] = set()
    for text in texts:
        wanted = make_file_name(text)
        numbered = (f"{wanted[: MAX_NAME_CHARACTERS - 8]}-{number}" for number in itertools.count(2))
        name = next(
            name
            for name in (wanted, *itertools.islice(numbered, len(taken) + 1))
            if name.casefold() not in taken
        )
        found[text] = name
        taken.add(name.casefold())
    return found


def path_in(folder: Path, name: str, ending: str) -> Path:
    """Return the path of a file in a folder, or refuse a name that is not a file name.

    >>> path_in(Path("public"), "household", ".parquet").as_posix()
    'public/household.parquet'
    """
    if not is_file_name(name, spaced=True):
        raise InputError(
            "a name cannot be a file name",
            why=f"{name[:40]!r} becomes the name of a file, which has {FILE_NAME_RULE}",
            fix="rename the record type or the table",
        )
    return folder / f"{name}{ending}"
