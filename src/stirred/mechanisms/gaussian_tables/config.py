"""The settings of tables with discrete Gaussian noise."""

from typing import ClassVar

from pydantic import Field

from stirred.mechanisms.config import Exact, MechanismConfig


class GaussianTablesConfig(MechanismConfig):
    """Tables of counts, each cell with independent discrete Gaussian noise (zCDP), the empty cells too.

    Applied to the records of a swap (given), the swap's guarantee holds unchanged, and the noise has one of its own.
    """

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = None

    tables: list[list[str]] = Field(
        description="the tables to publish, each a list of variables with listed levels, or levels of the geography",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    rho_squared: Exact = Field(
        description="the total ρ² (the usual zCDP ρ) of all tables, an exact text above 0, never a float",
        examples=["1/2"],
    )
    shares: list[Exact] = Field(
        default=[],
        description="the share of ρ² of each table, in their order; they add up to 1; equal shares unless given",
        examples=[["3/4", "1/4"]],
    )
    record: str = Field(
        default="household",
        description="the record type that is counted, which is also the unit that is protected",
        examples=["person"],
    )
    given: str | None = Field(
        default=None,
        description="a packet whose records are tabulated instead of the census, or the label of an earlier [[mechanism]]; "
        "its guarantee holds for these tables too",
        examples=["packet"],
        json_schema_extra={"path": True, "continues": True},
    )
    stability: Exact | None = Field(
        default=None,
        description="for how many records of the given release one changed record of the census can differ, where it is "
        "proved: 1 for permutation-swapping within its invariants; then the noise's own promise is stated too",
        examples=["1"],
    )
    without_guarantee: str = Field(
        default="",
        description="why the tables are published where the given release has no finite budget; it stands in the report",
        examples=["the method of the last census"],
    )
