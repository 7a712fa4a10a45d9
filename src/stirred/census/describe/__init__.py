"""A first census.toml guessed from files, for a person to correct; what the records hold stays unsaid unless asked for."""

from stirred.census.describe.infer import describe
from stirred.census.describe.writing import to_toml

__all__ = ["describe", "to_toml"]
