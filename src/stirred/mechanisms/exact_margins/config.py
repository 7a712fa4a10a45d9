"""The settings of one table with exact margins."""

from pydantic import Field

from stirred.mechanisms.config import Exact, MechanismConfig


class ExactMarginsConfig(MechanismConfig):
    """One noisy table whose margins are exact: noise only where the margins leave room."""

    rows: str = Field(description="the variable of the rows", examples=["county"])
    columns: str = Field(description="the variable of the columns", examples=["tenure"])
    rho_squared: Exact = Field(
        description="the total ρ² (the usual zCDP ρ), an exact text above 0, never a float", examples=["1/2"]
    )
    record: str = Field(
        default="household", description="the record type that is counted", examples=["household"]
    )
    both: bool = Field(
        default=True,
        description="whether the column totals are exact too, and not the row totals alone",
        json_schema_extra={"flag": "--rows-only", "flag_help": "keep the row totals alone"},
    )
