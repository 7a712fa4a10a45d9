"""What others promised: the published specifications, each with its source and its exact budget."""

from stirred.catalog.book import Catalog, catalog
from stirred.catalog.entries import Entry
from stirred.catalog.published import DELTA

__all__ = ["DELTA", "Catalog", "Entry", "catalog"]
