"""Declare the settings of stirring, and what was measured of the intervals of its tables."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from stirred.mechanisms.config import Exact, Share, Varied
from stirred.mechanisms.effect import MeasuredCoverage
from stirred.mechanisms.swap.config import MatchedSwapConfig, SwapOutputConfig

MEASURED_COVERAGE = (
    MeasuredCoverage(
        key="stirring",
        name="stirring",
        levels={
            "tract": ((92.7, 99.4), (96.2, 99.9), (94.8, 97.1), (93.8, 96.1), (93.4, 97.6), (95.0, 98.3)),
            "block group": ((97.8, 99.3), (96.3, 99.1), (93.5, 96.9), (95.7, 96.4), (93.9, 96.9), (94.3, 95.6)),
            "block": ((99.1, 99.7), (96.3, 99.5), (94.8, 98.3), (94.1, 98.2), (93.1, 98.3), None),
        },
        source="docs/explain/topdown-uncertainty.md; python benchmarks/intervals.py --mechanism stirring",
    ),
)  # fmt: skip


class StirringConfig(MatchedSwapConfig):
    """Stir a census: a swap by laws of its own, under which one exchange loses little.

    Records move within strata of equal match variables. Where all records and places of a stratum differ, and where records
    are of two types, no mechanism that changes as few records on average loses less at one exchange. Give the share that
    moves, the loss of an exchange, or both. What is held, and what is counted by match × swap variables, stays exact: these
    are the invariants.
    """

    example_table: ClassVar[tuple[str, tuple[str, ...]] | None] = ("household", ("county", "tenure"))
    listed_where_given: ClassVar[frozenset[str]] = SwapOutputConfig.listed_where_given | {
        "shuffle_first",
        "shuffle_levels",
    }

    rate: Annotated[Share | None, Varied("rate", instead_of=("loss",))] = Field(
        default=None,
        description="the share of records that moves by cycles, in every stratum; by types as many records change their "
        'type as if this share had moved by cycles, and fewer move; an exact text: "1/20" is five percent',
        examples=["1/20"],
        json_schema_extra={"asked": True},  # or a loss: a new plan begins with a rate
    )
    loss: Annotated[Exact | None, Varied("epsilon", instead_of=("rate",))] = Field(
        default=None,
        description="the largest ε of one exchange of two records, an exact text; with a rate both are kept or refused",
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
        "which costs nothing; refused where a stratum has so few records that the rate asks for more than an even shuffle",
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
