"""Declare the settings of every swap and its presets: the PSA, its variants, targeted and 2010 swapping."""

from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator

from stirred.mechanisms.config import Exact, MechanismConfig, Share, Varied

# The settings of the Permutation Swapping Algorithm and of its relatives.


class SwapOutputConfig(MechanismConfig):
    """What every swap publishes, whatever decides who is swapped."""

    # the draw depends on the parameters, and must not change where nothing is accepted
    listed_where_given: ClassVar[frozenset[str]] = frozenset(("release_identifiers", "accept_reversal"))

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
        json_schema_extra={
            "flag": "--no-persons",
            "flag_help": "do not publish the linked records",
            "label": "publish linked records, such as persons",
        },
    )
    untouched: Literal["publish", "drop", "refuse"] = Field(
        default="publish",
        description="what becomes of vacant units and group quarters, which take no part in the swap",
        examples=["publish"],
    )
    release_identifiers: dict[str, str] = Field(
        default={},
        description="columns to publish although they tell who a record is, each with the reason",
        examples=[{"income": "public register"}],
        json_schema_extra={"label": "publish though it identifies"},
    )
    accept_reversal: list[str] = Field(
        default=[],
        description="a list of held columns to publish although they tell where a swapped record came from",
        examples=[["weight"]],
        json_schema_extra={"overrides": True, "label": "publish though it tells the place"},
    )

    @field_validator("release_identifiers", mode="before")
    @classmethod
    def _read_empty_list(cls, given: object) -> object:
        """Read an empty list, as receipts of a swap without identifiers have it, as no column."""
        return {} if given == [] else given


class MatchedConfig(MechanismConfig):
    """Which records are swapped within which strata."""

    match: list[str] = Field(
        default=[],
        description="a list of variables on which swapped records agree; they make the strata",
        examples=[["state", "size"]],
    )
    swap: list[str] = Field(
        description="a list of variables that move, together; a level of geography between them moves along",
        examples=[["county", "tract", "block_group", "block"]],
    )


class StrataConfig(MatchedConfig):
    """Which records are swapped within which strata, and how often."""

    rate: Annotated[Share, Varied("rate")] = Field(
        description='the swap rate p, an exact text strictly between 0 and 1; "1/20" is five percent',
        examples=["1/20"],
    )


class MatchedSwapConfig(SwapOutputConfig, MatchedConfig):
    """Which records are swapped within which strata, and what is released."""


class SwapConfig(MatchedSwapConfig, StrataConfig):
    """Swap a census: the Permutation Swapping Algorithm.

    Records move within strata of equal match variables; the swap variables of the selected records are deranged. What is
    held, and what is counted by match × swap variables, stays exact: these are the invariants.
    """

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = ("household", ("county", "tenure"))


class VaryingRatesConfig(SwapConfig):
    """Swap with rates that vary: by a variable, or by the rarity of a record.

    Give either ``by`` and ``rates``, or ``rarity`` and ``rare``; all other records have the rate ``rate``.
    """

    by: str = Field(
        default="", description="the variable that decides the rate of a record", examples=["tenure"]
    )
    rates: dict[str, Share] | None = Field(
        default=None,
        description="the rate for each level of that variable; other levels have the common rate",
        examples=[{"rent": "1/10"}],
        json_schema_extra={"levels_of": "by"},
    )
    rarity: list[str] = Field(
        default=[],
        description="a list of variables; a record whose combination of them is rare has a rate of its own",
        examples=[["race", "block"]],
    )
    rare: Share | None = Field(default=None, description="the rate of rare records", examples=["1/2"])
    counts_up_to: int = Field(
        default=1, ge=1, description="the largest number of records that is still rare", examples=[1]
    )

    def settings(self) -> dict[str, object]:
        """Return every setting as a plan states it, the rates by level."""
        rates = {level: str(Fraction(rate)) for level, rate in sorted((self.rates or {}).items())}
        return {**super().settings(), "rates": rates}


class ImputedStayConfig(SwapConfig):
    """Swap, but leave imputed records where they are."""

    imputed: str = Field(description="the held variable that marks imputed records", examples=["allocated"])
    levels: list[str] = Field(
        description="a list of the levels of that variable that mean imputed",
        examples=[["1"]],
        json_schema_extra={"levels_of": "imputed"},
    )


class NoVacuousConfig(SwapConfig):
    """Swap without vacuous draws: a draw that moves records and changes no table is thrown away."""


class NearPlacesConfig(SwapConfig):
    """Swap with a preference for near places."""

    preference: Exact = Field(
        description="how much the nearer of two arrangements is preferred, an exact text of at least 1",
        examples=["3"],
    )


class UnitMatchingConfig(SwapConfig):
    """Swap twice: first in coarser pools, then in the strata."""

    loose: list[str] = Field(
        description="a list of the match variables that the pools forget", examples=[["size"]]
    )
    alpha: Share = Field(
        description="the part of the swap rate that is spent in the pools, an exact text", examples=["1/2"]
    )


class NoisyKeyConfig(SwapConfig):
    """Swap with a noisy match variable; no finite bound is known, so a plan with it alone is refused."""

    noisy: str = Field(
        description="the match variable that is drawn again before matching", examples=["size"]
    )
    change: Share = Field(
        description="the probability that it is drawn again, an exact text", examples=["1/4"]
    )


class NoisyTablesConfig(SwapConfig):
    """Swap, then publish tables with noise in every cell, and no records."""

    tables: list[list[str]] = Field(
        description="the tables to publish, each a list of variables",
        examples=[[["county", "tenure"]]],
        json_schema_extra={"flag": "--table"},
    )
    microdata: Literal[False] = Field(default=False, description="no records are released")
    sigma_squared: Exact = Field(
        description="the variance of the noise in a cell, an exact text above 0", examples=["4"]
    )


# The settings of targeted record swapping, and what every traditional swap has in common.


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

    def parameters(self) -> dict[str, object]:
        """Return the settings that a receipt and a key know: those of its own first, then what every swap has.

        The draw depends on them and must not change: an empty list stands for no identifiers, and pairs are not named.
        """
        own = self.settings()
        common = {name: own.pop(name) for name in SwapOutputConfig.model_fields}
        reason, cycle = own.pop("without_guarantee"), own.pop("cycle")
        common["release_identifiers"] = common["release_identifiers"] or []
        return {**own, **common, "without_guarantee": reason, **({} if cycle == 2 else {"cycle": cycle})}


DEFAULT_K_ANONYMITY = 3  # of recordSwap


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
    swaprate: Annotated[Share, Varied("rate")] = Field(
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

    @field_validator("similar", mode="before")
    @classmethod
    def _read_one_profile(cls, given: object) -> object:
        """Read a list of names as one profile."""
        names = isinstance(given, list) and all(isinstance(name, str) for name in given)
        return [given] if names else given

    def settings(self) -> dict[str, object]:
        """Return every setting as a plan states it, with the k that is used."""
        return {**super().settings(), "k_anonymity": self.least_alike}

    @property
    def least_alike(self) -> int:
        """Return k, by default 3 as in recordSwap where risk variables are named."""
        if self.k_anonymity is None:
            return DEFAULT_K_ANONYMITY if self.risk_variables else 0
        return self.k_anonymity


# The settings of the 2010 swap, and its presets.

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

FIRST_PARAMETERS_2010 = (
    "preset", "state", "equal", "noisy", "block_size_power", "race", "race_factor", "imputed", "imputed_levels",
    "totally_imputed", "imputation_power", "unique", "unique_in", "prefer", "cap", "synthetic", "synthetic_by",
)  # fmt: skip


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
    rate: Annotated[Share | None, Varied("rate")] = Field(
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

    def fill_from_preset(self) -> "Swapping2010Config":
        """Return the same settings, with those of the preset where none are given."""
        given = PRESETS[self.preset]
        return self.model_copy(
            update={name: value for name, value in given.items() if getattr(self, name) is None}
        )

    def settings(self) -> dict[str, object]:
        """Return every setting as a plan states it, with what a preset decided."""
        return PairwiseConfig.settings(self.fill_from_preset())

    def parameters(self) -> dict[str, object]:
        """Return the settings that a receipt and a key know; the later ones only where they are used."""
        found = super().parameters()
        later = ("cap", "synthetic", "synthetic_by")
        return {
            name: found[name]
            for name in dict.fromkeys((*FIRST_PARAMETERS_2010, *found))
            if found[name] or name not in later
        }
