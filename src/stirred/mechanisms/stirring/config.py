"""Declare the settings of stirring."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, Share, Varied
from stirred.mechanisms.swap.config import MatchedSwapConfig, SwapOutputConfig


class StirringConfig(MatchedSwapConfig):
    """Stir a census: the swap that loses least.

    Records move within strata of equal match variables, by a law under which one exchange of two records loses as little as
    any mechanism can lose that moves as few. Give the share that moves, the loss of an exchange, or both. What is held, and
    what is counted by match × swap variables, stays exact: these are the invariants.
    """

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = ("household", ("county", "tenure"))
    listed_where_given: ClassVar[frozenset[str]] = SwapOutputConfig.listed_where_given | {
        "shuffle_first",
        "shuffle_levels",
    }

    rate: Annotated[Share | None, Varied("rate", instead_of=("loss",))] = Field(
        default=None,
        description='the share of records that moves at least in every stratum, an exact text; "1/20" is five percent',
        examples=["1/20"],
        json_schema_extra={"asked": True},  # or a loss: a new plan begins with a rate
    )
    loss: Annotated[Exact | None, Varied("epsilon", instead_of=("rate",))] = Field(
        default=None,
        description="the largest ε of one exchange of two records, an exact text; with a rate both are kept",
        examples=["8"],
    )
    law: Literal["auto", "cycles", "types"] = Field(
        default="auto",
        description="cycles: for records that differ; types: for strata with few held types or few places; auto: in each "
        "stratum the one that loses least at the rate, or changes fewest at the loss",
        examples=["cycles"],
    )
    shuffle_first: str = Field(
        default="",
        description="a held or match variable; records with one of shuffle_levels are shuffled among themselves first, "
        "which costs nothing",
        examples=["tenure"],
    )
    shuffle_levels: list[str] = Field(
        default=[],
        description="a list of the levels of that variable that mean shuffled first",
        examples=[["rent"]],
        json_schema_extra={"levels_of": "shuffle_first"},
    )

    def parameters(self) -> dict[str, object]:
        """Return the settings that a receipt and a key know, what decides the moves first."""
        found = super().parameters()
        first = ("match", "swap", "rate", "loss", "law", "shuffle_first", "shuffle_levels")
        return {name: found[name] for name in dict.fromkeys((*first, *found)) if name in found}
