"""The settings of the Permutation Swapping Algorithm and of its relatives."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from stirred.mechanisms.config import Exact, MechanismConfig, Share


class SwapOutputConfig(MechanismConfig):
    """What every swap publishes, whatever decides who is swapped."""

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
    release_identifiers: dict[str, str] = Field(
        default={},
        description="columns to publish although they tell who a record is, each with the reason",
        examples=[{"income": "public register"}],
    )
    accept_reversal: list[str] = Field(
        default=[],
        description="a list of held columns to publish although they tell where a swapped record came from",
        examples=[["weight"]],
        json_schema_extra={"overrides": True},
    )

    @field_validator("release_identifiers", mode="before")
    @classmethod
    def _read_empty_list(cls, given: object) -> object:
        """Read an empty list, as receipts of a swap without identifiers have it, as no column."""
        return {} if given == [] else given


class StrataConfig(MechanismConfig):
    """Which records are swapped within which strata, and how often."""

    match: list[str] = Field(
        default=[],
        description="a list of variables on which swapped records agree; they make the strata",
        examples=[["state", "size"]],
    )
    swap: list[str] = Field(
        description="a list of variables that move, together; a level of geography between them moves along",
        examples=[["county", "tract", "block_group", "block"]],
    )
    rate: Share = Field(
        description='the swap rate p, an exact text strictly between 0 and 1; "1/20" is five percent',
        examples=["1/20"],
    )


class SwapConfig(SwapOutputConfig, StrataConfig):
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
