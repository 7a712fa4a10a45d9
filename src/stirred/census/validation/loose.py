"""Read a census leniently: values that do not fit their type become empty, so that all other rules can be checked."""

from collections.abc import Mapping
from dataclasses import replace

from stirred.census.codebook.domain import largest_household
from stirred.census.codebook.schema import Area, RecordSchema, Schema, VariableSchema
from stirred.census.files import CensusFiles
from stirred.census.validation.single import SingleRecords


def loose(census: CensusFiles, records: Mapping[str, SingleRecords]) -> CensusFiles:
    """The same census with unfit values empty, columns renamed and codes composed; absent columns are left out."""
    files = {name: some.plain() for name, some in records.items()}
    kept = {name: frozenset(some.names) for name, some in records.items()}
    settled = tuple(
        _settled(record, kept[record.name]) for record in census.schema.records if record.name in files
    )
    geography = census.schema.geography
    schema: Schema = replace(
        census.schema,
        records=settled,
        largest_household=largest_household(census.schema),
        geography=replace(
            geography,
            spine=tuple(Area(name=level.name, label=level.label) for level in geography.spine),
            off_spine=tuple(off if off.files else replace(off, column="") for off in geography.off_spine),
        ),
    )
    return CensusFiles(schema=schema, files=files, folder=census.folder, _forms={name: {} for name in files})


def _open(variable: VariableSchema) -> VariableSchema:
    """The variable without its integer levels: a number outside them may need a wider type than they have."""
    whole = variable.levels is not None and isinstance(variable.levels[0], int)
    kept = replace(variable, column="", imputed="")
    return replace(kept, kind="integer", levels=None) if whole else kept


def _settled(record: RecordSchema, kept: frozenset[str]) -> RecordSchema:
    """The record type after this step: without renaming, restriction or absent columns."""
    return replace(
        record,
        variables=tuple(_open(v) for v in record.variables if v.name in kept),
        id=record.id if record.id in kept else "",
        household=record.household if record.household in kept else "",
        linked_to=record.linked_to if record.household in kept else "",
        size=record.size if record.size in kept else "",
        weight=record.weight if record.weight in kept else "",
        kinds=record.kinds if record.kinds is not None and record.kinds.column in kept else None,
        where=(),
    )
