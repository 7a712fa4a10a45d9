"""Guess a first census.toml from files, for a person to correct; by default it shows nothing of the records' values."""

from stirred.census.describe.infer import describe
from stirred.census.describe.writing import to_toml

__all__ = ["describe", "to_toml"]
