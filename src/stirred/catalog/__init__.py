"""What others promised: the published specifications, each with its source and its exact budget.

The module itself can be used as the catalog: ``stirred.catalog["das-2020"]`` and ``list(stirred.catalog)`` work whether or
not the module was imported before.
"""

import sys
from collections.abc import Iterator
from types import ModuleType

from stirred.catalog.book import Catalog, catalog, compare
from stirred.catalog.entries import CatalogEntry
from stirred.catalog.products import DELTA
from stirred.spec import Specification


class _Room(ModuleType):
    def __getitem__(self, name: str) -> Specification:
        return catalog[name]

    def __iter__(self) -> Iterator[str]:
        return iter(catalog)

    def __len__(self) -> int:
        return len(catalog)

    def __contains__(self, name: object) -> bool:
        return name in catalog

    def __repr__(self) -> str:
        return repr(catalog)

    def _repr_html_(self) -> str:
        return catalog._repr_html_()


_OF_THE_CATALOG = ("entry", "get", "items", "keys", "rows", "unstated", "values")


def __getattr__(name: str) -> object:
    if name in _OF_THE_CATALOG:
        return getattr(catalog, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


sys.modules[__name__].__class__ = _Room

__all__ = ["DELTA", "Catalog", "CatalogEntry", "catalog", "compare"]
