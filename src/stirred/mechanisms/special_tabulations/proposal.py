"""Tables for special tabulations that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.mechanisms.proposal import Proposal, areas, root, tabulated


def propose(schema: Schema) -> Proposal:
    """The coarsest area by each of the first categories, rounded to fives."""
    record = root(schema)
    level = areas(schema, record)[0]
    found = tabulated(schema, record)[:3]
    return Proposal(
        settings={
            "tables": [[level, variable.name] for variable in found] or [[level]],
            "record": record.name,
            "rounding": "fives",
            "without_guarantee": "to be written: why these tables are published without a finite budget",
        },
        reasons={
            "tables": "the coarsest level of the geography by each of the first categories",
            "record": "the records that are counted",
            "rounding": "the rule of the Disclosure Review Board for special tabulations",
            "without_guarantee": "no budget is finite; swap first (given) to have one",
        },
        undecided=(
            "whether to publish without a finite budget, or to swap first and name the swap in given",
        ),
    )
