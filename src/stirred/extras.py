"""Import optional libraries when they are first used, or give the command that installs them."""

import importlib
import importlib.util
from types import ModuleType

from stirred.errors import MissingExtraError

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
