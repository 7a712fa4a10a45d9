"""Build the domain of a specification from a schema, without reading any record."""

from collections.abc import Callable, Iterator

import polars as pl

from stirred.census.codebook.schema import RecordSchema, Schema, VariableSchema
from stirred.census.codebook.typed import list_variables
from stirred.spec.domain import Constraint, Dependency, Domain, RecordType, Variable


def build_domain(schema: Schema, columns: Callable[[str], pl.Schema]) -> Domain:
    """Record types with their levels, functional dependencies from geography and links, edit constraints.

    ``columns`` gives the columns of a record type's files.

    >>> from stirred.census import Census
    >>> census = Census.of({"geography": {"spine": ["state", "county"]}, "record": {"household": {"size": "size"}}},
    ...                    {"household": {"state": ["a"], "county": ["a1"], "size": [2]}})
    >>> sorted(census.domain.closure("household", ["county"]))
    ['county', 'state']
    """
    own = {record.name: _list_variables(schema, record, columns(record.name)) for record in schema.records}
    types = []
    for record in schema.records:
        variables = dict(own[record.name])
        if record.linked_to:
            variables = {**own[record.linked_to], **variables}
        known = tuple(_make_variable(variable) for variable in variables.values())
        types.append(RecordType(name=record.name, variables=known))
    return Domain(
        name=schema.name,
        label=schema.label,
        record_types=tuple(types),
        spine=schema.spine,
        dependencies=tuple(_list_dependencies(schema, own)),
        constraints=tuple(_list_constraints(schema)),
        copies=schema.copies,
        largest_household=largest_household(schema),
        size_variable=next((record.size for record in schema.records if record.size), ""),
    )


def largest_household(schema: Schema) -> int | None:
    """Return the declared bound on persons in a household: stated, or the largest level of the size variable."""
    if schema.largest_household is not None:
        return schema.largest_household
    for record in schema.records:
        if record.size and record.size in record.names:
            levels = record.variable(record.size).levels
            if levels is not None and all(isinstance(level, int) for level in levels):
                return max(1, *(int(level) for level in levels), 1)
    return None


def _list_variables(schema: Schema, record: RecordSchema, columns: pl.Schema) -> dict[str, VariableSchema]:
    found = {variable.name: variable for variable in list_variables(schema, record, columns)}
    geography = schema.geography
    if geography.areas is not None and geography.names and geography.names[-1] in found:
        above = {level.name: VariableSchema(name=level.name, label=level.label) for level in geography.spine}
        found = {**above, **found}
    for off in geography.off_spine:
        if off.files and off.of in found:
            found[off.name] = VariableSchema(name=off.name, label=off.label)
    return found


def _make_variable(variable: VariableSchema) -> Variable:
    levels = variable.all_levels
    named = None if levels is None else tuple(str(level) for level in levels)
    return Variable(name=variable.name, levels=named, label=variable.label)


def _list_dependencies(schema: Schema, own: dict[str, dict[str, VariableSchema]]) -> Iterator[Dependency]:
    for off in schema.geography.off_spine:
        if off.of:
            yield Dependency(of=(off.of,), determines=(off.name,))
        if off.nests_in:
            yield Dependency(of=(off.name,), determines=(off.nests_in,))
    for record in schema.records:
        if record.id:
            rest = tuple(name for name in own[record.name] if name != record.id)
            if rest:
                yield Dependency(record_type=record.name, of=(record.id,), determines=rest, fixed=False)
        if record.household and record.linked_to:
            reached = tuple(name for name in own[record.linked_to] if name != record.household)
            if reached:
                yield Dependency(
                    record_type=record.name, of=(record.household,), determines=reached, fixed=False
                )


def _list_constraints(schema: Schema) -> Iterator[Constraint]:
    for rule in schema.rules:
        yield Constraint(
            words=rule.name,
            record_type=rule.record_type,
            variables=rule.variables,
            kind="structural zero" if rule.forbid else "edit",
        )
    largest = largest_household(schema)
    if largest is None:
        return
    for record in schema.records:
        # it limits the size of a household's record, and which household a person's record names
        about = record.size or (record.household if record.linked_to else "")
        if about:
            words = f"a household has at most {largest} persons"
            yield Constraint(words=words, record_type=record.name, variables=(about,), kind="size")
