"""A table with exact margins that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_areas_if_any


def propose(schema: Schema) -> Proposal:
    """Return a table of the coarsest area by the first category, or of the first two categories."""
    record = find_root(schema)
    areas = list_areas_if_any(schema, record)
    names = [*areas[:1], *(variable.name for variable in choose_variables(schema, record))]
    if len(names) < 2:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"it makes one table of two variables, and {record.name} records have {' and '.join(names) or 'none'}",
            fix='list the levels of a variable in census.toml: tenure = { levels = ["own", "rent"] }',
        )
    level, column = names[:2]
    return Proposal(
        settings={"rows": level, "columns": column, "rho_squared": "1/2", "record": record.name},
        reasons={
            "rows": f"the {'coarsest level of the geography' if areas else 'first category'}; its totals stay exact",
            "columns": f"the {'first' if areas else 'second'} category; its totals stay exact",
            "rho_squared": "a start, not a choice: tune it on a stand-in with stirred plan tune",
            "record": "the records that are counted",
        },
    )
