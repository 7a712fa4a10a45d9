"""The settings of SafeTab-H."""

from typing import Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, MechanismConfig
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


class SafeTabHConfig(MechanismConfig):
    """SafeTab-H: households of each detailed population group by type (T3) and by tenure (T4).

    A household is counted in the groups of its householder. The published totals of SafeTab-P decide which groups are shown
    and with how much detail, so no budget is spent on that decision.
    """

    totals: str | None = Field(
        default=None,
        description="SafeTab-P's totals (T1): a packet, its table t1, a pop-group-totals.txt, or the label of an earlier "
        "[[mechanism]]",
        examples=["pop-group-totals.txt"],
        json_schema_extra={"path": True, "reads": True},
    )
    preset: Literal["ddhc-b-2020", ""] = Field(
        default="ddhc-b-2020",
        description="a published product whose budgets and thresholds are taken; empty: all are given here",
        examples=["ddhc-b-2020"],
    )
    codes: Codes = None
    definition: NoiseLaw = "zcdp"
    budget: dict[str, Exact] = Field(
        default={},
        description="budgets by table, region type and level in the place of the preset's; 0 leaves a table out, a key "
        "without a table is for T3 and T4",
        examples=[{"T3-STATE-2": "1.9208"}],
    )
    thresholds: dict[str, str] = Field(
        default={},
        description="the thresholds by table, region type and level in the place of the preset's, rising: three for T3, one "
        "for T4",
        examples=[{"T3-STATE-2": "471,971,6971"}],
    )
    total: Exact | None = Field(
        default=None,
        description="the budget of the whole release: all budgets are scaled so that they add up to it",
        examples=["8.895302"],
    )
    epsilon: WithoutNoise = None
    clamp: Clamp = False
    most_codes: int = Field(
        default=8,
        ge=1,
        description="the largest number of race codes of a householder; more noise for more",
        examples=[8],
    )
    neighbours: Literal["added-or-removed", "changed"] = Field(
        default="added-or-removed",
        description="what the promise compares: a household added or removed, as the production code counts, or changed",
        examples=["added-or-removed"],
    )
    invariants: SupposedInvariants = "housing-units"
    races: list[str] = Field(
        default=[*RACES],
        description="a list of the columns with the householder's detailed race codes",
        examples=[["race_code_1", "race_code_2"]],
    )
    ethnicity: str = Field(
        default=ETHNICITY,
        description="the column with the householder's detailed ethnicity",
        examples=["ethnicity_code"],
    )
    household_type: str = Field(
        default="type",
        description="the column with the household's type (1 married couple, 2 male, 3 female householder, 4 alone, 5 not "
        "alone); a census without it gets no T3",
        examples=["type"],
    )
    types: dict[str, str] = Field(
        default={},
        description="the type (1 to 5) of each level of that column, where levels are not these codes",
        examples=[{"couple": "1", "single": "4"}],
    )
    tenure: str = Field(
        default="tenure",
        description="the column with the tenure (1 mortgage, 2 free and clear, 3 rented, 4 no rent); a census without it "
        "gets no T4",
        examples=["tenure"],
    )
    tenures: dict[str, str] = Field(
        default={},
        description="the tenure (1 to 4) of each level of that column, where levels are not these codes",
        examples=[{"own": "2", "rent": "3"}],
    )
    householder: str = Field(
        default="relationship",
        description="the column of persons that says who the householder is, where households have no codes of their own",
        examples=["relationship"],
    )
    householders: list[str] = Field(
        default=["0", "1"],
        description="a list of the levels of that column that a householder has",
        examples=[["0", "1"]],
    )
    regions: RegionColumns = Field(default={})
    puerto_rico: Island = "72"
