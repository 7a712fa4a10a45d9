"""What is protected: a census with its schema, geography and readers."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.census.census import DROPPED_NOTE as DROPPED_NOTE
    from stirred.census.census import Census as Census
    from stirred.census.census import Invalid as Invalid
    from stirred.census.census import read as read
    from stirred.census.public_files import expand as expand
    from stirred.census.public_files import pl94 as pl94
    from stirred.census.public_files import ppmf as ppmf
    from stirred.census.schema import Geography as Geography
    from stirred.census.schema import RecordSchema as RecordSchema
    from stirred.census.schema import Schema as Schema
    from stirred.census.schema import VariableSchema as VariableSchema
    from stirred.census.validation import Problem as Problem
    from stirred.census.validation import Problems as Problems
    from stirred.census.validation import validate as validate
    from stirred.census.validation.check import check as check

__all__ = [
    "DROPPED_NOTE",
    "Census",
    "Geography",
    "Invalid",
    "Problem",
    "Problems",
    "RecordSchema",
    "Schema",
    "VariableSchema",
    "check",
    "expand",
    "pl94",
    "ppmf",
    "read",
    "validate",
]

__getattr__ = load_on_demand(
    __name__,
    {
        "census": (
            "Census",
            "DROPPED_NOTE",
            "Invalid",
            "read",
        ),
        "public_files": (
            "expand",
            "pl94",
            "ppmf",
        ),
        "schema": (
            "Geography",
            "RecordSchema",
            "Schema",
            "VariableSchema",
        ),
        "validation": (
            "Problem",
            "Problems",
            "validate",
        ),
        "validation.check": ("check",),
    },
)
