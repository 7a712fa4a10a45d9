"""Guess a first census.toml from files, for a person to correct; by default it shows nothing of the records' values."""

from stirred.census.describe.document import Description, document_of, uncommented
from stirred.census.describe.infer import describe, describe_tables
from stirred.census.describe.writing import to_toml

__all__ = ["Description", "describe", "describe_tables", "document_of", "to_toml", "uncommented"]
