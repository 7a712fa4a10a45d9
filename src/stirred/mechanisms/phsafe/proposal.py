"""Settings of PHSafe that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, find_root, list_areas


def propose(schema: Schema) -> Proposal:
    """Return the production settings, with the coarsest level of areas as the states."""
    level = list_areas(schema, find_root(schema))[0]
    if not {"household", "person"} <= set(schema.record_types) or not schema.record("person").household:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts persons by their household, and needs both with a link",
            fix='link the persons in census.toml: [record.person] household = "household_id"',
        )
    return Proposal(
        settings={"preset": "sdhc-2020", "state": level},
        reasons={
            "preset": "the budgets and the truncation of the 2020 production; tune them with stirred plan tune",
            "state": "the coarsest level of the geography; the sum of all its areas is published too",
        },
        undecided=(
            "how many persons of a household may count (tau): a larger number leaves out fewer and needs more noise",
        ),
    )
