"""The settings of SafeTab-P that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, find_root, list_areas


def propose(schema: Schema) -> Proposal:
    """Return the 2020 product where persons have detailed race codes; refuse where they have none."""
    list_areas(schema, find_root(schema))
    person = next((record for record in schema.records if record.name == "person"), None)
    if person is None or "race_code_1" not in person.names:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts groups by detailed race codes, and persons have no variable race_code_1",
            fix='write the plan by hand and name the columns with codes: races = ["…"]',
        )
    races = [name for place in range(1, 9) if (name := f"race_code_{place}") in person.names]
    ethnicity = "ethnicity_code" if "ethnicity_code" in person.names else ""
    return Proposal(
        settings={"preset": "ddhc-a-2020", "races": races, "ethnicity": ethnicity},
        reasons={
            "preset": "budgets and thresholds of the 2020 Detailed DHC-A: a start, not a choice",
            "races": "the columns with detailed race codes",
            "ethnicity": "the column with the detailed ethnicity",
        },
        undecided=("codes: without a folder of code lists, Stirred's own invented groups are used",),
    )
