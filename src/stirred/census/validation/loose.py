"""Read a census leniently: values that do not fit their type become empty, so that all other rules can be checked."""

from dataclasses import replace

import polars as pl

from stirred.census.codebook.schema import Area, RecordSchema, Schema, VariableSchema
from stirred.census.codebook.typed import loosely, present, variables_of, wanted_type
from stirred.census.files import CensusFiles


def loose(census: CensusFiles, record_types: list[str]) -> CensusFiles:
    """The same census with unfit values empty, columns renamed and codes composed; absent columns are left out."""
    files = {name: declared_loosely(census, census.schema.record(name)) for name in record_types}
    kept = {name: frozenset(frame.collect_schema().names()) for name, frame in files.items()}
    records = tuple(
        _settled(record, kept[record.name]) for record in census.schema.records if record.name in files
    )
    geography = census.schema.geography
    schema: Schema = replace(
        census.schema,
        records=records,
        geography=replace(
            geography,
            spine=tuple(Area(name=level.name, label=level.label) for level in geography.spine),
            off_spine=tuple(off if off.files else replace(off, column="") for off in geography.off_spine),
        ),
    )
    return CensusFiles(schema=schema, files=files, folder=census.folder, _forms={name: {} for name in files})


def declared_loosely(census: CensusFiles, record: RecordSchema) -> pl.LazyFrame:
    """The records of one type, leniently typed, restricted as the schema says."""
    file = census.file(record.name)
    shaped = present(census.schema, record, file)
    types = shaped.collect_schema()
    known = variables_of(census.schema, record, file.collect_schema())
    frame = shaped.select(
        _loosely(variable, types[variable.name]) for variable in known if variable.name in types
    )
    for name, codes in record.where:
        if name in types:
            frame = frame.filter(pl.col(name).is_in(list(codes)))
    return frame


def _loosely(variable: VariableSchema, dtype: pl.DataType) -> pl.Expr:
    target = wanted_type(variable, dtype)
    value = pl.col(variable.name)
    return value if target is None else loosely(value, dtype, target).alias(variable.name)


def _settled(record: RecordSchema, kept: frozenset[str]) -> RecordSchema:
    """The record type after this step: without renaming, restriction or absent columns."""
    return replace(
        record,
        variables=tuple(replace(v, column="", imputed="") for v in record.variables if v.name in kept),
        id=record.id if record.id in kept else "",
        household=record.household if record.household in kept else "",
        linked_to=record.linked_to if record.household in kept else "",
        size=record.size if record.size in kept else "",
        weight=record.weight if record.weight in kept else "",
        kinds=record.kinds if record.kinds is not None and record.kinds.column in kept else None,
        where=(),
    )
