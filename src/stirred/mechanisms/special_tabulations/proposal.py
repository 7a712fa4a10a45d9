"""Tables for special tabulations that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_tables


def propose(schema: Schema) -> Proposal:
    """Return tables of the coarsest area, if any, by the first categories, rounded to fives."""
    record = find_root(schema)
    found = choose_variables(schema, record)[:3]
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
            "rounding": "fives",
            "without_guarantee": "to be written: why these tables are published without a finite budget",
        },
        reasons={
            "tables": why,
            "record": "the records that are counted",
            "rounding": "the rule of the Disclosure Review Board for special tabulations",
            "without_guarantee": "no budget is finite; swap first (given) to have one",
        },
        undecided=(
            "whether to publish without a finite budget, or to swap first and name the swap in given",
        ),
    )
