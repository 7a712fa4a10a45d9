"""Tables with noise that the schema of a census suggests."""

from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_tables


def propose(schema: Schema) -> Proposal:
    """Return tables of the coarsest area, if there is one, by the first categories with listed levels."""
    record = find_root(schema)
    found = [variable for variable in choose_variables(schema, record) if variable.all_levels is not None][:3]
    if not found:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"no variable of {record.name} records has listed levels, which its tables need",
            fix=f"say in census.toml what may occur in {_candidates(schema, record)}: levels = [1, 2]; "
            "or --mechanism cell-key, which needs no levels and promises no finite budget",
        )
    tables, why = list_tables(schema, record, found)
    return Proposal(
        settings={
            "tables": tables,
            "rho_squared": "1/2",
            "record": record.name,
        },
        reasons={
            "tables": why,
            "rho_squared": "a start: plan tune finds the ρ² that an error asks for",
            "record": "the records that are counted and protected",
        },
        undecided=("which tables are published: all of them share one ρ²",),
    )


def _candidates(schema: Schema, record: RecordSchema) -> str:
    """Return the first variables that could have levels, in words."""
    names = [variable.name for variable in choose_variables(schema, record)][:3]
    return " or ".join(names) or "a variable"
