"""Packages whose names are loaded when they are first used: a command starts without what it does not need."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType

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
