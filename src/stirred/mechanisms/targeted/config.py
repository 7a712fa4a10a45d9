"""The settings of targeted record swapping, and what every traditional swap has in common."""

from typing import ClassVar, Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, MechanismConfig, Share


class PairwiseConfig(MechanismConfig):
    """What every pairwise swap releases, whatever decides who is swapped."""

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = None

    resolution: str = Field(
        default="household",
        description="the record type that is swapped; records linked to it, such as persons, travel along",
        examples=["household"],
    )
    hold: list[str] | None = Field(
        default=None,
        description="a list of held variables to publish (default: all)",
        examples=[["tenure"]],
    )
    drop: list[str] = Field(
        default=[], description="a list of variables not to publish", examples=[["tenure"]]
    )
    tables: list[list[str]] = Field(
        default=[],
        description="tables of the swapped records, each a list of variables, that the mechanism makes itself",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    microdata: bool = Field(
        default=True,
        description="whether records are released; without them only the variables of the tables are held",
        json_schema_extra={"flag": "--tables-only", "flag_help": "publish the tables and no records"},
    )
    carry: bool = Field(
        default=True,
        description="whether linked records, such as persons, are released too",
        json_schema_extra={"flag": "--no-persons", "flag_help": "do not publish the linked records"},
    )
    untouched: Literal["publish", "drop", "refuse"] = Field(
        default="publish",
        description="what becomes of vacant units and group quarters, which are never swapped",
        examples=["publish"],
    )
    release_identifiers: list[str] = Field(
        default=[],
        description="a list of columns to publish although nearly every record has a value of its own in them",
        examples=[["income"]],
    )
    accept_reversal: list[str] = Field(
        default=[],
        description="a list of held columns to publish although they tell where a swapped record came from",
        examples=[["income"]],
    )
    cycle: int = Field(
        default=2,
        ge=2,
        description="how many records change places together: 2 are pairs, with more each takes the place of the next; a "
        "cycle is shorter where no more partners are left",
        examples=[3],
    )
    without_guarantee: str = Field(
        default="",
        description="why the records are published though no protection loss budget is finite; it stands in the report",
        examples=["the method of the last census"],
    )


class TargetedConfig(PairwiseConfig):
    """Targeted record swapping: risky households change places with similar ones elsewhere, in pairs.

    It has no finite protection loss budget: who is risky is swapped with certainty, and the number of swaps is fixed. The
    setting without_guarantee says why it is published all the same.
    """

    hierarchy: list[str] = Field(
        description="a list of areas from coarse to fine; they move together",
        examples=[["county", "tract"]],
    )
    similar: list[list[str]] = Field(
        description="similarity profiles, each a list of variables on which partners agree; a later one is tried where "
        "no partner is left in an earlier one",
        examples=[[["size", "tenure"], ["size"]]],
    )
    swaprate: Share = Field(
        default="1/20",
        description="the share of households that move at least, an exact text",
        examples=["1/20"],
    )
    k_anonymity: int | None = Field(
        default=None,
        ge=0,
        description="a household with a member that fewer than this many persons of an area are like is swapped out of "
        "the area; 0: nobody has to be (default: 3 where risk_variables are named)",
        examples=[3],
    )
    risk_variables: list[str] = Field(
        default=[],
        description="the variables, of persons or of households, whose combinations are counted in each area",
        examples=[["age", "sex"]],
    )
    risk: list[str] = Field(
        default=[],
        description="variables of households or of persons with a given risk for each area of the hierarchy, instead of "
        "counts; a household has the largest of its members; they are not published",
        examples=[["risk_county", "risk_tract"]],
    )
    risk_threshold: Exact = Field(
        default="0",
        description="a household whose given risk is above this is swapped, an exact text",
        examples=["1/3"],
    )
    carry_along: list[str] = Field(
        default=[],
        description="more variables of the place that move with it, such as finer codes",
        examples=[["block"]],
    )
