"""The settings of PHSafe."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stirred.mechanisms.config import Exact, ExactOrInfinite, MechanismConfig


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
    definition: Literal["zcdp", "puredp"] = Field(
        default="zcdp",
        description="zcdp: budgets are ρ², the noise is discrete Gaussian; puredp: budgets are ε, the noise is two-sided "
        "geometric",
        examples=["zcdp"],
    )
    neighbours: Literal["added-or-removed", "changed", "household"] = Field(
        default="added-or-removed",
        description="what the promise is about, at the same noise: a person added or removed (as the original counts), a "
        "person changed who may move to another household (ρ² times 2), or a whole household changed (ρ² times 1/2)",
        examples=["added-or-removed"],
    )
    rho_squared: Exact | None = Field(
        default=None,
        description="the total ρ² (zcdp) that all budgets are scaled to, per person added or removed; an exact text, never "
        "a float",
        examples=["1.257281"],
    )
    epsilon: ExactOrInfinite | None = Field(
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
