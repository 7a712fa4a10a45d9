"""Tables for the cell key method that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_tables


def propose(schema: Schema) -> Proposal:
    """Return tables of the coarsest area, if there is one, by each of the first categories."""
    record = find_root(schema)
    found = choose_variables(schema, record)[:3]
    if not record.id:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"{record.name} records have no identifier, from which their keys would be made",
            fix=f'name it in census.toml: id = "…" under [record.{record.name}], or name a column of keys: record_key',
        )
    tables, why = list_tables(schema, record, found)
    if not tables:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"{record.name} records have neither areas nor a category, and a table is by one of them",
            fix="list the variables in census.toml",
        )
    return Proposal(
        settings={
            "tables": tables,
            "record": record.name,
            "without_guarantee": "to be written: why these tables are published without a finite budget",
        },
        reasons={
            "tables": why,
            "record": "the records that are counted",
            "without_guarantee": "no budget is finite; swap first (given) to have one",
        },
        undecided=(
            "whether to publish without a finite budget, or to swap first and name the swap in given",
        ),
    )
