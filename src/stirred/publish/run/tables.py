"""The tables of a plan: checked before anything runs, then asked of the mechanism that released the records."""

import pyarrow as pa

from stirred.census import Census
from stirred.engine import Engine
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism, Release
from stirred.publish.plan.description import TablePlan


def check_variables(census: Census, table: TablePlan) -> None:
    """A table's variables must exist before anything runs."""
    census.schema.record(table.record_type)
    known = set(census.columns(table.record_type))
    record = census.schema.record(table.record_type)
    if record.linked_to:
        known |= set(census.columns(record.linked_to))
    known |= {off.name for off in census.schema.geography.off_spine}
    for name in table.by:
        if name not in known:
            raise PlanError(
                f"table {table.name} asks for an unknown variable {name}",
                why=f"{table.record_type} records have no such column",
                fix=did_you_mean(name, known),
            )


def tabulate(
    release: Release, table: TablePlan, mechanism: Mechanism, *, engine: Engine | None = None
) -> pa.Table:
    """The table with all that the mechanism knows about the certainty of its cells."""
    return mechanism.table(release, table.by, record_type=table.record_type, engine=engine)
