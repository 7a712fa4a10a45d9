"""Tables with noise that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, areas, root, tabulated


def propose(schema: Schema) -> Proposal:
    """The coarsest area by each of the first categories with listed levels."""
    record = root(schema)
    level = areas(schema, record)[0]
    found = [variable for variable in tabulated(schema, record) if variable.all_levels is not None][:3]
    if not found:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"no variable of {record.name} records has listed levels, which its tables need",
            fix="declare the levels of a variable in census.toml",
        )
    return Proposal(
        settings={
            "tables": [[level, variable.name] for variable in found],
            "rho_squared": "1/2",
            "record": record.name,
        },
        reasons={
            "tables": "the coarsest level of the geography by each of the first categories",
            "rho_squared": "a start: plan tune finds the ρ² that an error asks for",
            "record": "the records that are counted and protected",
        },
        undecided=("which tables are published: all of them share one ρ²",),
    )
