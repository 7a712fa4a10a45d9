"""The settings of the 2010 swap, and its presets."""

from typing import Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, Share
from stirred.mechanisms.targeted.config import PairwiseConfig

Preference = Literal["selected", "near", "risky"]
DEFAULT_SETTINGS: dict[str, object] = {
    "rate": "3/100",  # within the 2 to 4 percent that the Bureau has named
    "equal": ["adults", "minors", "tenure"],
    "noisy": "",
    "block_size_power": 1,
    "prefer": ["selected", "near", "risky"],
}
_STUDY_SETTINGS: dict[str, object] = {
    "equal": ["size"],
    "noisy": "size",
    "block_size_power": 0,
    "prefer": ["near"],
}
PRESETS: dict[str, dict[str, object]] = {
    "": DEFAULT_SETTINGS,
    "2010": DEFAULT_SETTINGS,
    "study-5": _STUDY_SETTINGS | {"rate": "1/20"},
    "study-50": _STUDY_SETTINGS | {"rate": "1/2"},
}


class Swapping2010Config(PairwiseConfig):
    """Swapping as for the 2010 census, after what is public of it: select at-risk households, pair them, swap their places.

    It has no finite protection loss budget: unique households are always selected, and the number of swaps of a state is
    fixed. The setting without_guarantee says why it is published all the same.
    """

    swap: list[str] = Field(
        description="a list of areas from coarse to fine that move together; the last is the block",
        examples=[["county", "tract", "block"]],
    )
    state: str = Field(
        default="state",
        description="the area that no household leaves, with its own number of swaps",
        examples=["state"],
    )
    preset: Literal["", "2010", "study-5", "study-50"] = Field(
        default="",
        description="where rate, equal, noisy, block_size_power and prefer come from unless they are given: 2010, or the "
        "experiments of the reconstruction study, without targeting, with a noisy size",
        examples=["study-5"],
    )
    rate: Share | None = Field(
        default=None,
        description="the share of the households of each state that are selected, an exact text",
        examples=["3/100"],
    )
    equal: list[str] | None = Field(
        default=None,
        description="a list of variables on which partners are equal, beside the state",
        examples=[["adults", "minors", "tenure"]],
    )
    noisy: str | None = Field(
        default=None,
        description="one of these variables, to which −1, 0 or 1 is added with probability 1/4, 1/2, 1/4 for the pairing",
        examples=["size"],
    )
    block_size_power: int | None = Field(
        default=None,
        ge=0,
        le=4,
        description="a household is selected in proportion to the size of its block to this power, inverted",
        examples=[1],
    )
    race: list[str] = Field(
        default=[],
        description="the variables of race: who is unique in the block is selected more often",
        examples=[["race"]],
    )
    race_factor: Exact = Field(
        default="3", description="how much more often, an exact text of at least 1", examples=["3"]
    )
    imputed: str = Field(
        default="", description="the variable that says what was imputed", examples=["allocated"]
    )
    imputed_levels: list[str] = Field(
        default=[],
        description="its levels that mean imputed; households of blocks with many are selected less often",
        examples=[["part", "all"]],
        json_schema_extra={"levels_of": "imputed"},
    )
    totally_imputed: list[str] = Field(
        default=[],
        description="its levels that mean totally imputed; these households are never selected",
        examples=[["all"]],
        json_schema_extra={"levels_of": "imputed"},
    )
    imputation_power: int = Field(
        default=1,
        ge=0,
        le=4,
        description="a household is selected in proportion to the share of its block that was not imputed to this power",
        examples=[1],
    )
    unique: list[str] = Field(
        default=[],
        description="the variables on which a unique household is always selected",
        examples=[["race", "tenure"]],
    )
    unique_in: str = Field(
        default="",
        description="the area in which it is unique (default: the block)",
        examples=["county"],
    )
    cap: Share | None = Field(
        default=None,
        description="the largest share of the households of a state that moves, unique ones included, an exact text "
        "(default: unique households may exceed the rate)",
        examples=["1/20"],
    )
    synthetic: dict[str, Literal["multinomial", "poisson"]] = Field(
        default={},
        description="variables of persons in group quarters that are drawn anew in this order, each from a model of these "
        "persons: multinomial for levels, poisson for counts; without any guarantee",
        examples=[{"race": "multinomial", "age": "poisson"}],
    )
    synthetic_by: list[str] = Field(
        default=[],
        description="variables of these persons or of their record on which the models depend, beside the kind of group "
        "quarters and the variables drawn before",
        examples=[["sex", "county"]],
    )
    prefer: list[Preference] | None = Field(
        default=None,
        description="what makes a better partner, the most important first: selected too, near, risky",
        examples=[["selected", "near", "risky"]],
    )
