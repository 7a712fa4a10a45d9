"""Tables for the cell key method that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, areas, root, tabulated


def propose(schema: Schema) -> Proposal:
    """The coarsest area by each of the first categories."""
    record = root(schema)
    level = areas(schema, record)[0]
    found = tabulated(schema, record)[:3]
    if not record.id:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"{record.name} records have no identifier, from which their keys would be made",
            fix=f'name it in census.toml: id = "…" under [record.{record.name}], or name a column of keys: record_key',
        )
    return Proposal(
        settings={
            "tables": [[level, variable.name] for variable in found] or [[level]],
            "record": record.name,
            "without_guarantee": "to be written: why these tables are published without a finite budget",
        },
        reasons={
            "tables": "the coarsest level of the geography by each of the first categories",
            "record": "the records that are counted",
            "without_guarantee": "no budget is finite; swap first (given) to have one",
        },
        undecided=(
            "whether to publish without a finite budget, or to swap first and name the swap in given",
        ),
    )
