"""The settings that SafeTab-P and SafeTab-H share, each with its sentence."""

from typing import Annotated, Literal

from pydantic import Field

RACES = tuple(f"race_code_{place}" for place in range(1, 9))
ETHNICITY = "ethnicity_code"

Codes = Annotated[
    str | None,
    Field(
        description="a folder with the four code lists in the Bureau's format; without it, Stirred's own invented groups",
        examples=["codes"],
        json_schema_extra={"path": True},
    ),
]
NoiseLaw = Annotated[
    Literal["zcdp", "puredp"],
    Field(
        description="zcdp (budgets are ρ², discrete Gaussian noise) or puredp (budgets are ε, geometric noise)",
        examples=["zcdp"],
    ),
]
WithoutNoise = Annotated[
    Literal["inf"] | None,
    Field(description="inf: no noise, for a rehearsal; nothing is protected", examples=["inf"]),
]
Clamp = Annotated[bool, Field(description="publish negative counts as 0, which makes sums too large")]
SupposedInvariants = Annotated[
    Literal["housing-units", "none"],
    Field(
        description="the promise is stated where housing units by area are known, as in the paper's table, or with none",
        examples=["housing-units"],
    ),
]
RegionColumns = Annotated[
    dict[str, str],
    Field(
        description="the column with the code of a region type, where that is not the usual one",
        examples=[{"AIANNH": "aian_area"}],
    ),
]
Island = Annotated[
    str,
    Field(description="the state whose records are tabulated apart, as Puerto Rico is", examples=["72"]),
]
