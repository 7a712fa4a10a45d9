"""Load packages and optional libraries when they are first used, and make safe file names."""

import importlib
import importlib.util
import itertools
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from stirred.errors import InputError, MissingExtraError

# Packages whose names are loaded when they are first used: a command starts without what it does not need.

_NAMES = "_names_on_demand"


class _Package(ModuleType):
    def __setattr__(self, name: str, value: object) -> None:
        # importing a submodule binds it in its package; a public name of the same spelling keeps its meaning
        if not (isinstance(value, ModuleType) and name in self.__dict__[_NAMES]):
            super().__setattr__(name, value)


def load_on_demand(package: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package (PEP 562) whose public names lie in these modules of it."""
    where = {name: module for module, names in homes.items() for name in names}
    module = sys.modules[package]
    module.__dict__[_NAMES] = frozenset(where)
    module.__class__ = _Package

    def load(name: str) -> object:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{where[name]}"), name)
        module.__dict__[name] = value
        return value

    return load


class ModuleOnDemand:
    """A module that is imported when one of its names is first used.

    >>> ModuleOnDemand("math").floor(2.5)
    2
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self._name), name)


# Two parts of Arrow, loaded when first used: ``pyarrow.dataset`` imports pandas wherever that is installed.
#
# Annotations with ``pads.Dataset`` are written as texts, because evaluating one loads the module.

if TYPE_CHECKING:
    import pyarrow.compute as pc
    import pyarrow.dataset as pads
else:
    pc, pads = ModuleOnDemand("pyarrow.compute"), ModuleOnDemand("pyarrow.dataset")

__all__ = ["pads", "pc"]  # what is imported here for others; all else is defined here


# Import optional libraries when they are first used, or give the command that installs them.

# extra → the modules that it brings; the extras themselves stand in pyproject.toml
EXTRA_MODULES: dict[str, tuple[str, ...]] = {
    "duckdb": ("duckdb",),
    "ipums": ("ipumspy", "pandas"),
    "pandas": ("pandas",),
    "paper": ("altair", "vl_convert"),
    "report": ("vl_convert",),
    "solver": ("highspy", "piqp"),
    "spark": ("pyspark", "pandas"),
    "stat": ("pyreadstat",),
    "web": ("starlette", "uvicorn", "python_multipart"),
    "xlsx": ("python_calamine", "xlsxwriter"),
}


def import_optional(module: str, extra: str, *, why: str) -> ModuleType:
    """Import the module, or raise an error with the install command.

    >>> import_optional("no_such_module", "stat", why="SPSS files need it")
    Traceback (most recent call last):
    ...
    stirred.errors.MissingExtraError: no_such_module is not installed
      why: SPSS files need it
      fix: pip install 'stirred[stat]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing_extra(module, extra, why=why) from None


def missing_extra(module: str, extra: str, *, why: str) -> MissingExtraError:
    """Return the error that names the extra of a missing module."""
    return MissingExtraError(f"{module} is not installed", why=why, fix=f"pip install 'stirred[{extra}]'")


def find_missing(extra: str) -> str | None:
    """Return the first module of an extra that is not installed, or None; import nothing."""
    return next((name for name in EXTRA_MODULES[extra] if importlib.util.find_spec(name) is None), None)


def require_extra(extra: str, *, why: str) -> None:
    """Raise an error with the install command if a module of the extra is not installed; nothing is imported."""
    module = find_missing(extra)
    if module is not None:
        raise missing_extra(module, extra, why=why)


class OptionalModule:
    """A module of an extra that is imported when one of its names is first used.

    >>> OptionalModule("math", "report", why="charts are drawn with it").floor(2.5)
    2
    """

    def __init__(self, module: str, extra: str, *, why: str) -> None:
        self._module, self._extra, self._why = module, extra, why

    def __getattr__(self, name: str) -> object:
        return getattr(import_optional(self._module, self._extra, why=self._why), name)


# Names that become file names: checked in this one place, so that no name of a schema, plan or table leaves its folder.

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
