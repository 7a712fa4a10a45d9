"""The settings of special tabulations."""

from typing import ClassVar, Literal

from pydantic import Field

from stirred.mechanisms.config import MechanismConfig


class SpecialTabulationsConfig(MechanismConfig):
    """Special tabulations: small counts and small areas are left out, and counts are rounded.

    These rules have no guarantee of their own: on a census no protection loss budget is finite. Applied to the records of a
    swap (given), the swap's guarantee holds unchanged.
    """

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = None

    tables: list[list[str]] = Field(
        description="the tables to publish, each a list of variables",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    record: str = Field(
        default="household", description="the record type that is counted", examples=["person"]
    )
    rounding: Literal["none", "fives", "tens", "graduated"] = Field(
        default="fives",
        description="a rule of the Census Bureau: fives (1 to 7 become 4, others the nearest 5) and tens (the nearest 10) "
        "of the 2004 rules for special tabulations, or graduated (2019: below 15 not shown, then coarser with the count)",
        examples=["fives"],
    )
    base: int = Field(
        default=0,
        ge=0,
        description="round to the nearest multiple of this number instead, halves up; 0: by the rule of rounding",
        examples=[3],
    )
    least_count: int = Field(default=0, ge=0, description="counts below this are not shown", examples=[3])
    least_area: int = Field(
        default=0,
        ge=0,
        description="areas with fewer records than this are not shown: those of the finest level in a table",
        examples=[100],
    )
    given: str | None = Field(
        default=None,
        description="a packet whose records are tabulated instead of the census, or the label of an earlier [[mechanism]]; "
        "its guarantee holds for these tables too",
        examples=["packet"],
        json_schema_extra={"path": True, "continues": True},
    )
    without_guarantee: str = Field(
        default="",
        description="why the tables are published though no protection loss budget is finite; it stands in the report",
        examples=["a request under the rules of 2004"],
    )
