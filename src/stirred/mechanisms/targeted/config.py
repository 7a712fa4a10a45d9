"""The settings of targeted record swapping, and what every traditional swap has in common."""

from pydantic import Field

from stirred.mechanisms.config import Exact, Share
from stirred.mechanisms.swapping.config import SwapOutputConfig


class PairwiseConfig(SwapOutputConfig):
    """What every pairwise swap has, beside what every swap publishes."""

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
