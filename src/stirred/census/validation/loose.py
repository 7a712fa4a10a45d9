"""Read a census leniently: values that do not fit their type become empty, so that all other rules can be checked."""

from collections.abc import Mapping
from dataclasses import replace

from stirred.census.codebook.domain import largest_household
from stirred.census.codebook.schema import Area, RecordSchema, Schema, VariableSchema
from stirred.census.files import CensusFiles
from stirred.census.validation.single import SingleRecords


def loosen_census(census: CensusFiles, records: Mapping[str, SingleRecords]) -> CensusFiles:
    """Return the census with unfit values empty, columns renamed and codes composed."""
    files = {name: some.select_variables() for name, some in records.items()}
    kept = {name: frozenset(some.names) for name, some in records.items()}
    settled = tuple(
        _settle_record(record, kept[record.name]) for record in census.schema.records if record.name in files
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


def _open_levels(variable: VariableSchema) -> VariableSchema:
    """Return the variable without integer levels, because a value outside them may need a wider type."""
    whole = variable.levels is not None and isinstance(variable.levels[0], int)
    kept = replace(variable, column="", imputed="")
    return replace(kept, kind="integer", levels=None) if whole else kept


def _settle_record(record: RecordSchema, kept: frozenset[str]) -> RecordSchema:
    """Return the record type after this step: without renaming, restriction or absent columns."""
    return replace(
        record,
        variables=tuple(_open_levels(v) for v in record.variables if v.name in kept),
        id=record.id if record.id in kept else "",
        household=record.household if record.household in kept else "",
        linked_to=record.linked_to if record.household in kept else "",
        size=record.size if record.size in kept else "",
        weight=record.weight if record.weight in kept else "",
        kinds=record.kinds if record.kinds is not None and record.kinds.column in kept else None,
        where=(),
    )
