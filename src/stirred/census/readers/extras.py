"""Import optional libraries when a file needs them, or give the command that installs them."""

import importlib
from types import ModuleType

from stirred.errors import MissingExtraError


def optional(module: str, extra: str, *, why: str) -> ModuleType:
    """Import the module, or raise an error with the install command.

    >>> optional("no_such_module", "stat", why="SPSS files need it")
    Traceback (most recent call last):
    ...
    stirred.errors.MissingExtraError: no_such_module is not installed
      why: SPSS files need it
      fix: pip install 'stirred[stat]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(
            f"{module} is not installed", why=why, fix=f"pip install 'stirred[{extra}]'"
        ) from None
