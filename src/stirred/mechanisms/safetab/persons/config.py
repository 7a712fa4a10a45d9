"""The settings of SafeTab-P."""

from typing import Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, MechanismConfig, Share
from stirred.mechanisms.safetab.settings import (
    ETHNICITY,
    RACES,
    Clamp,
    Codes,
    Island,
    NoiseLaw,
    RegionColumns,
    SupposedInvariants,
    WithoutNoise,
)


class SafeTabPConfig(MechanismConfig):
    """SafeTab-P: how many persons each detailed population group has, and large groups by sex and age.

    A person is counted in the groups that the detailed race and ethnicity codes lead to, in every region of the public
    geography. A first, noisy look at a group decides how much detail it gets.
    """

    preset: Literal["ddhc-a-2020", ""] = Field(
        default="ddhc-a-2020",
        description="a published product whose budgets and thresholds are taken; empty: all are given here",
        examples=["ddhc-a-2020"],
    )
    codes: Codes = None
    definition: NoiseLaw = "zcdp"
    budget: dict[str, Exact] = Field(
        default={},
        description="budgets by region type and level in the place of the preset's; 0 leaves a table out",
        examples=[{"STATE-2": "2.134"}],
    )
    thresholds: dict[str, str] = Field(
        default={},
        description="the three thresholds by region type and level in the place of the preset's, rising",
        examples=[{"STATE-2": "471,971,6971"}],
    )
    total: Exact | None = Field(
        default=None,
        description="the budget of the whole release: all budgets are scaled so that they add up to it",
        examples=["4.944"],
    )
    epsilon: WithoutNoise = None
    first_stage: Share | None = Field(
        default=None,
        description="the share of each budget that decides how much detail a group gets (preset: 1/10)",
        examples=["1/10"],
    )
    suppression: Share | None = Field(
        default=None,
        description="with at least this probability a group without persons is not shown below the states (preset: "
        "0.9999; 0 shows all)",
        examples=["0.9999"],
    )
    clamp: Clamp = False
    most_codes: int = Field(
        default=8,
        ge=1,
        description="the largest number of race codes of a person; more noise for more",
        examples=[8],
    )
    neighbours: Literal["added-or-removed", "changed"] = Field(
        default="added-or-removed",
        description="what the promise compares: a person added or removed, as the production code counts, or changed",
        examples=["added-or-removed"],
    )
    invariants: SupposedInvariants = "housing-units"
    races: list[str] = Field(
        default=[*RACES],
        description="a list of the columns with detailed race codes",
        examples=[["race_code_1", "race_code_2"]],
    )
    ethnicity: str = Field(
        default=ETHNICITY,
        description="the column with the detailed ethnicity",
        examples=["ethnicity_code"],
    )
    sex: str = Field(default="sex", description="the column with the sex", examples=["sex"])
    sexes: list[str] = Field(
        default=["1", "2"], description="a list of the two levels of that column", examples=[["1", "2"]]
    )
    age: str = Field(default="age", description="the column with the age in years", examples=["age"])
    record: str = Field(default="person", description="the record type that is counted", examples=["person"])
    regions: RegionColumns = Field(default={})
    puerto_rico: Island = "72"
