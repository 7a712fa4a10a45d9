"""The settings of SafeTab-P that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.mechanisms.proposal import Proposal


def propose(schema: Schema) -> Proposal | None:
    """The 2020 product, where persons have detailed race codes; else nothing."""
    person = next((record for record in schema.records if record.name == "person"), None)
    if person is None or "race_code_1" not in person.names:
        return None
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
