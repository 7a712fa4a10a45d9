"""What if: the budget of a swap whose strata somebody types, by every bound that applies."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from stirred.errors import InputError
from stirred.mechanisms.swapping.budget.by_size import parse_rate
from stirred.mechanisms.swapping.budget.claim import Stratum, bounds, claim
from stirred.spec.card.factors import write_factor
from stirred.spec.numbers.budget import Bound
from stirred.web.calculators.curve import SMALLEST_DISTANCE, parse_count

MAX_LINES = 2_000
EXAMPLE = "264331 = 163885 100446 / 14\n52000 = 2 / 5\n40 = 3 / 3"


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataBudget:
    """The strata as they were understood, every bound, and the smallest proved one."""

    strata: Sequence[Stratum]
    rate: Fraction
    bounds: Sequence[Bound]
    claim: Bound

    @property
    def moving(self) -> int:
        """Return how many strata have two hold values and two swap values, so that records can move."""
        return sum(one.n >= 2 and min(one.hold_types, one.swap_types) >= 2 for one in self.strata)

    @property
    def largest(self) -> int:
        """Return the size of the largest stratum that can move, the paper's b."""
        sizes = [one.n for one in self.strata if one.n >= 2 and min(one.hold_types, one.swap_types) >= 2]
        return max(sizes, default=0)

    @property
    def odds(self) -> str:
        """Return the factor by which odds may move at the smallest distance, rounded up."""
        if not self.claim.budget.is_finite:
            return "any number"
        return str(write_factor((self.claim.budget * SMALLEST_DISTANCE).upper(6)))


def strata_budget(text: str, rate: str) -> StrataBudget:
    """Return the budget of typed strata, a line each: ``records = hold / swap``, as types or counts.

    >>> found = strata_budget("10 = 4 / 4", "1/2")
    >>> found.largest, str(found.claim.budget)
    (10, '2.2500')
    """
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    lines = [line for line in lines if line]
    if not lines or len(lines) > MAX_LINES:
        raise InputError(
            "there are no strata" if not lines else f"there are more than {MAX_LINES:,} strata",
            why="a budget follows from the sizes of strata and the types in them",
            fix="write a line for each, such as 10 = 4 / 4",
        )
    strata = [_stratum(line) for line in lines]
    found = bounds(strata, rate.strip())
    return StrataBudget(strata=strata, rate=parse_rate(rate.strip()), bounds=found, claim=claim(found))


def _stratum(line: str) -> Stratum:
    size, equals, sides = line.partition("=")
    hold, slash, swap = sides.partition("/")
    if not (equals and slash):
        raise InputError(
            "a stratum is not written as records = hold / swap",
            why="its budget depends on how many hold and swap types it has",
            fix="write 10 = 4 / 4, or 264331 = 163885 100446 / 14",
        )
    n = parse_count(size, "the size of a stratum")
    holds, swaps = _side(hold), _side(swap)
    return Stratum(
        n=n,
        hold_types=_types(holds),
        swap_types=_types(swaps),
        hold_margins=tuple(holds) if len(holds) > 1 else None,
        swap_margins=tuple(swaps) if len(swaps) > 1 else None,
    )


def _side(text: str) -> list[int]:
    words = text.split()
    if not words:
        raise InputError(
            "a side of a stratum is empty",
            why="it has a number of types, or a count for each type",
            fix="write 10 = 4 / 4",
        )
    return [parse_count(word, "a number of types or records") for word in words]


def _types(side: Sequence[int]) -> int:
    """Return the number of types: one number is the number itself, several are the records of each type."""
    return side[0] if len(side) == 1 else len(side)
