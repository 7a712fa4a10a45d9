"""What others promised: the published specifications, each with its source and its exact budget.

The module itself can be indexed: ``stirred.catalog["das-2020"]`` works whether or not the module was imported before.
"""

import sys
from types import ModuleType

from stirred.catalog.book import Catalog, catalog
from stirred.catalog.entries import CatalogEntry
from stirred.catalog.published import DELTA
from stirred.spec import Specification


class _Room(ModuleType):
    def __getitem__(self, name: str) -> Specification:
        return catalog[name]


sys.modules[__name__].__class__ = _Room

__all__ = ["DELTA", "Catalog", "CatalogEntry", "catalog"]
