"""Guess a first census.toml from files, for a person to correct; by default it shows nothing of the records' values."""

from stirred.census.describe.document import Description, strip_comments, to_toml, write_document
from stirred.census.describe.infer import describe, describe_tables

__all__ = ["Description", "describe", "describe_tables", "strip_comments", "to_toml", "write_document"]
