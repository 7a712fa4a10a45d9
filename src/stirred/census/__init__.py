"""What is protected: a census with its schema, geography and readers."""

from stirred.census.census import Census, read
from stirred.census.expand import expand
from stirred.census.schema import Geography, RecordSchema, Schema, VariableSchema
from stirred.census.standard import pl94, ppmf
from stirred.census.validation import Problem, Problems, check, validate

__all__ = [
    "Census",
    "Geography",
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
