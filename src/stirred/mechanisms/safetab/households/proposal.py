"""Settings of SafeTab-H that the schema of a census suggests."""

from stirred.census.codebook.schema import Schema
from stirred.errors import PlanError
from stirred.mechanisms.proposal import Proposal, find_root, list_areas

TOTALS_LABEL = "safetab-p"  # the label of the [[mechanism]] that makes them, unless it has another


def propose(schema: Schema) -> Proposal:
    """Return the published product of 2020, where records have detailed codes."""
    list_areas(schema, find_root(schema))
    coded = [record for record in schema.records if "race_code_1" in record.names]
    if not coded:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts households by detailed race and ethnicity, and no record type has race_code_1",
            fix="write the plan by hand and name the columns: races = [ … ]",
        )
    return Proposal(
        settings={"totals": TOTALS_LABEL, "preset": "ddhc-b-2020", "definition": "zcdp"},
        reasons={
            "totals": "what SafeTab-P publishes decides which groups are shown; its [[mechanism]] stands before this one",
            "preset": "the budgets and thresholds of the Detailed DHC-B of 2020",
            "definition": "discrete Gaussian noise, as in 2020",
        },
        undecided=("which code lists to use: codes = a folder, or Stirred's own invented groups",),
    )
