"""Describe the columns of a packet for programs as a Frictionless Data Package: types, levels in order, labels.

Nothing of it comes from the records. Levels, ranges, labels and what an empty field means are the schema's, whose domain
``spec.json`` publishes too; types are those of the released files. A column whose levels the schema leaves open has no
list: one made from the records would tell which levels a released file merely happens to lack.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from stirred.census.schema import RecordSchema, Schema, VariableSchema

if TYPE_CHECKING:
    import pyarrow as pa

DATA_PACKAGE = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
MEASURES: Mapping[str, str] = {
    "count": "released records in the cell",
    "weighted": "the sum of their weights",
    "estimate": "the true number, estimated",
    "standard_error": "standard error of the estimate; 0: exact",
    "variance": "variance of the noise on the count",
    "low": "lower end of the 95% interval of the true number",
    "high": "upper end of the 95% interval of the true number",
    "quote": "the column to quote",
}


def describe_package(
    schema: Schema, *, title: str, resources: "Iterable[tuple[str, str, pa.Schema]]"
) -> dict[str, object]:
    """Return the document: for each released file its path, the record type that it holds or counts, and its columns."""
    return {
        "$schema": PROFILE,
        "title": title,
        "resources": [
            {
                "name": path.rpartition(".")[0],
                "path": path,
                "format": path.rpartition(".")[2],
                "recordType": record_type,
                "schema": {
                    "missingValues": [""],
                    "fields": [describe_field(schema, record_type, field) for field in columns],
                },
            }
            for path, record_type, columns in resources
        ],
    }


def describe_field(schema: Schema, record_type: str, field: "pa.Field") -> dict[str, object]:
    """Return one column: its type, and what the schema says of it."""
    told: dict[str, object] = {"name": field.name, "type": _name_type(field.type)}
    variable = _find_variable(schema, record_type, field.name)
    if variable is None:
        titles = {**{area.name: area.label for area in schema.geography.spine}, **MEASURES}
        return told | ({"title": titles[field.name]} if titles.get(field.name) else {})
    told |= {"title": variable.label} if variable.label else {}
    required: dict[str, object] = {"required": True} if variable.missing.policy != "keep" else {}
    levels = variable.all_levels
    if isinstance(levels, range) and levels and levels.step == 1:
        required |= {"minimum": levels[0], "maximum": levels[-1]}
    elif levels is not None:
        words = dict(variable.labels)
        told["categories"] = [
            {"value": level} | ({"label": words[str(level)]} if str(level) in words else {})
            for level in levels
        ]
    return told | ({"constraints": required} if required else {})


def _find_variable(schema: Schema, record_type: str, name: str) -> VariableSchema | None:
    """Return the variable of a record type or of the type that it is linked to, or None for areas and measures."""
    record: RecordSchema | None = schema.record(record_type) if record_type in schema.record_types else None
    while record is not None:
        if name in record.names:
            return record.variable(name)
        record = schema.record(record.linked_to) if record.linked_to else None
    return None


def _name_type(kind: "pa.DataType") -> str:
    """Return the name of a type in a Table Schema.

    >>> import pyarrow as pa
    >>> [_name_type(kind) for kind in (pa.int8(), pa.dictionary(pa.int32(), pa.string()), pa.bool_(), pa.date32())]
    ['integer', 'string', 'boolean', 'date']
    """
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = {
        "boolean": pa.types.is_boolean,
        "integer": pa.types.is_integer,
        "number": lambda one: pa.types.is_floating(one) or pa.types.is_decimal(one),
        "date": pa.types.is_date,
        "datetime": pa.types.is_timestamp,
        "list": pa.types.is_list,
    }
    return next((name for name, fits in tests.items() if fits(kind)), "string")
