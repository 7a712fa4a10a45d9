"""What is protected: a census with its schema, geography and readers."""

from stirred.census.census import Census, read
from stirred.census.schema import Geography, RecordSchema, Schema, Variable

__all__ = ["Census", "Geography", "RecordSchema", "Schema", "Variable", "read"]
