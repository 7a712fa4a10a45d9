"""What is protected: a census with its schema, geography and readers."""

from stirred.census.census import DROPPED, Census, Invalid, read
from stirred.census.codebook.schema import Geography, RecordSchema, Schema, VariableSchema
from stirred.census.codebook.standard import pl94, ppmf
from stirred.census.expand import expand
from stirred.census.validation import Problem, Problems, check, validate

__all__ = [
    "DROPPED",
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
