"""Define the settings of SafeTab-P, SafeTab-H and PHSafe, each with its sentence."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stirred.mechanisms.census2020.factors import Definition, KnownInvariants, NeighbourKind, PromisedUnit
from stirred.mechanisms.config import Exact, ExactOrInfinite, ExactText, MechanismConfig, Share, Varied

# The settings that SafeTab-P and SafeTab-H share; where only a sentence or an example differs, each gives its own.

TOTAL_RHO_SQUARED = Varied("rho_squared", where=("definition", "zcdp"), instead_of=("epsilon",))
TOTAL_EPSILON = Varied("epsilon", where=("definition", "puredp"), instead_of=("epsilon",))

RACES = tuple(f"race_code_{place}" for place in range(1, 9))
ETHNICITY = "ethnicity_code"


class SafeTabConfig(MechanismConfig):
    """Which groups are counted, in which regions, with which budgets and thresholds."""

    preset: str = Field(
        default="",
        description="a published product whose budgets and thresholds are taken; empty: all are given here",
    )
    codes: str | None = Field(
        default=None,
        description="a folder with the four code lists in the Bureau's format; without it, Stirred's own invented groups",
        examples=["codes"],
        json_schema_extra={"path": True},
    )
    definition: Definition = Field(
        default="zcdp",
        description="zcdp (budgets are ρ², discrete Gaussian noise) or puredp (budgets are ε, geometric noise)",
        examples=["zcdp"],
    )
    budget: dict[str, ExactText] = Field(default={}, description="budgets in the place of the preset's")
    thresholds: dict[str, str] = Field(default={}, description="thresholds in the place of the preset's")
    total: Annotated[ExactText | None, TOTAL_RHO_SQUARED, TOTAL_EPSILON] = Field(
        default=None,
        description="the budget of the whole release: all budgets are scaled so that they add up to it",
    )
    epsilon: Literal["inf"] | None = Field(
        default=None, description="inf: no noise, for a rehearsal; nothing is protected", examples=["inf"]
    )
    clamp: bool = Field(default=False, description="publish negative counts as 0, which makes sums too large")
    most_codes: int = Field(default=8, ge=1, description="the largest number of race codes", examples=[8])
    neighbours: NeighbourKind = Field(
        default="added-or-removed", description="what the promise compares", examples=["added-or-removed"]
    )
    invariants: KnownInvariants = Field(
        default="housing-units",
        description="the promise is stated where housing units by area are known, as in the paper's table, or with none",
        examples=["housing-units"],
    )
    races: list[str] = Field(
        default=[*RACES],
        description="a list of the columns with detailed race codes",
        examples=[["race_code_1", "race_code_2"]],
    )
    ethnicity: str = Field(
        default=ETHNICITY, description="the column with the detailed ethnicity", examples=["ethnicity_code"]
    )
    regions: dict[str, str] = Field(
        default={},
        description="the column with the code of a region type, where that is not the usual one",
        examples=[{"AIANNH": "aian_area"}],
    )
    puerto_rico: str = Field(
        default="72",
        description="the state whose records are tabulated apart, as Puerto Rico is",
        examples=["72"],
    )


# The settings of SafeTab-P.


class SafeTabPConfig(SafeTabConfig):
    """SafeTab-P: how many persons each detailed population group has, and large groups by sex and age.

    A person is counted in the groups that the detailed race and ethnicity codes lead to, in every region of the public
    geography. A first, noisy look at a group decides how much detail it gets.
    """

    preset: Literal["ddhc-a-2020", ""] = Field(
        default="ddhc-a-2020",
        description="a published product whose budgets and thresholds are taken; empty: all are given here",
        examples=["ddhc-a-2020"],
    )
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
    total: Annotated[Exact | None, TOTAL_RHO_SQUARED, TOTAL_EPSILON] = Field(
        default=None,
        description="the budget of the whole release: all budgets are scaled so that they add up to it",
        examples=["4.944"],
    )
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
    most_codes: int = Field(
        default=8,
        ge=1,
        description="the largest number of race codes of a person; more noise for more",
        examples=[8],
    )
    neighbours: NeighbourKind = Field(
        default="added-or-removed",
        description="what the promise compares: a person added or removed, as the production code counts, or changed",
        examples=["added-or-removed"],
    )
    sex: str = Field(default="sex", description="the column with the sex", examples=["sex"])
    sexes: list[str] = Field(
        default=["1", "2"], description="a list of the two levels of that column", examples=[["1", "2"]]
    )
    age: str = Field(default="age", description="the column with the age in years", examples=["age"])
    record: str = Field(default="person", description="the record type that is counted", examples=["person"])


# The settings of SafeTab-H.


class SafeTabHConfig(SafeTabConfig):
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
    budget: dict[str, ExactText] = Field(
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
    total: Annotated[ExactText | None, TOTAL_RHO_SQUARED, TOTAL_EPSILON] = Field(
        default=None,
        description="the budget of the whole release: all budgets are scaled so that they add up to it",
        examples=["8.895302"],
    )
    most_codes: int = Field(
        default=8,
        ge=1,
        description="the largest number of race codes of a householder; more noise for more",
        examples=[8],
    )
    neighbours: NeighbourKind = Field(
        default="added-or-removed",
        description="what the promise compares: a household added or removed, as the production code counts, or changed",
        examples=["added-or-removed"],
    )
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


# The settings of PHSafe.


def _require_whole(value: object) -> object:
    if isinstance(value, str):
        if not (value.isascii() and value.isdigit()):
            raise PydanticCustomError("whole", "it is not a whole number")
        return int(value)
    return value


Whole = Annotated[int, BeforeValidator(_require_whole), Field(ge=1)]  # 6, or the text of a flag


class PHSafeConfig(MechanismConfig):
    """PHSafe: noisy counts of persons by their household, and of households (the tables PH1 to PH8 of the S-DHC).

    Persons are joined to their household, at most τ of each; every count gets noise of its own, and its variance is stated.
    """

    preset: Literal["sdhc-2020", ""] = Field(
        default="sdhc-2020",
        description="the budgets and the τ to start from: those of the 2020 production, or none (all are then given)",
        examples=["sdhc-2020"],
    )
    definition: Definition = Field(
        default="zcdp",
        description="zcdp: budgets are ρ², the noise is discrete Gaussian; puredp: budgets are ε, the noise is two-sided "
        "geometric",
        examples=["zcdp"],
    )
    neighbours: PromisedUnit = Field(
        default="added-or-removed",
        description="what the promise is about, at the same noise: a person added or removed (as the original counts), a "
        "person changed who may move to another household (ρ² times 2), or a whole household changed (ρ² times 1/2)",
        examples=["added-or-removed"],
    )
    rho_squared: Annotated[Exact | None, Varied("rho_squared", where=("definition", "zcdp"))] = Field(
        default=None,
        description="the total ρ² (zcdp) that all budgets are scaled to, per person added or removed; an exact text, never "
        "a float",
        examples=["1.257281"],
    )
    epsilon: Annotated[ExactOrInfinite | None, Varied("epsilon", where=("definition", "puredp"))] = Field(
        default=None,
        description="the total ε (puredp) that all budgets are scaled to, per person added or removed; inf: no noise, for a "
        "rehearsal that is never published",
        examples=["2"],
    )
    budget: dict[str, ExactOrInfinite] | None = Field(
        default=None,
        description="budgets instead of the preset's, by table (PH3) or by table and level (PH3.state_A-G); 0 leaves it out",
        examples=[{"PH3.state_A-G": "0.25"}],
    )
    tau: dict[str, Whole] | None = Field(
        default=None,
        description="how many persons of a household count at most, by table, instead of the preset's",
        examples=[{"PH3": 6}],
    )
    states: list[str] = Field(
        default=[],
        description="a list of the states that are tabulated (empty: all); Puerto Rico (72) is a run of its own, without "
        "the nation",
        examples=[["06"]],
    )
    state: str = Field(
        default="state", description="the level of areas that are the states", examples=["state"]
    )
    columns: dict[str, str] | None = Field(
        default=None,
        description="columns that are not called as in the synthetic census: tenure = a column of households, person.age = "
        "a column of persons",
        examples=[{"person.age": "years"}],
    )

    def settings(self) -> dict[str, object]:
        """Return every setting, tables of budgets, τ and columns in the order of their names."""
        found = super().settings()
        return {
            name: dict(sorted(value.items())) if isinstance(value, dict) else value
            for name, value in found.items()
        }
