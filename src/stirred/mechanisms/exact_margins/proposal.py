"""A table with exact margins that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, areas, root, tabulated


def propose(schema: Schema) -> Proposal:
    """The coarsest area by the first category."""
    record = root(schema)
    level = areas(schema, record)[0]
    found = tabulated(schema, record)
    if not found:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"it makes one table of two variables, and {record.name} records have no category beside {level}",
            fix='list the levels of a variable in census.toml: tenure = { levels = ["own", "rent"] }',
        )
    column = found[0].name
    return Proposal(
        settings={"rows": level, "columns": column, "rho_squared": "1/2", "record": record.name},
        reasons={
            "rows": "the coarsest level of the geography; its totals stay exact",
            "columns": "the first category; its totals stay exact",
            "rho_squared": "a start, not a choice: tune it on a stand-in with stirred plan tune",
            "record": "the records that are counted",
        },
    )
