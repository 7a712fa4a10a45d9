"""zCDP and pure DP read in other ways: ρ² as (ε, δ) at each distance, and ε as ρ²."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from stirred.errors import BudgetError
from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.numerals import parse_fraction
from stirred.spec.outputs.readings import reading

DISTANCES = (1, 2, 5, 10)
HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonReading:
    """ε at one distance and δ, by the simple formula and as small as it is proved."""

    distance: int
    simple: Decimal
    tight: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversions:
    """A budget as ρ², where it came from, and its readings."""

    rho_squared: Budget
    delta: Fraction
    readings: Sequence[EpsilonReading]
    epsilon: Budget | None = None  # where a pure budget was given


def convert_budget(amount: str, delta: str, kind: str = "zcdp") -> Conversions:
    """Read a budget: ``kind`` is zcdp (ρ²) or pure (ε, which is ε²/2 in ρ²).

    >>> convert_budget("293764/114921", "1e-10").readings[0].tight
    Decimal('17.1436')
    >>> convert_budget("2", "1e-6", "pure").rho_squared.exact
    '2'
    """
    number = parse_fraction(amount.strip(), "the budget")
    if number < 0:
        raise BudgetError("a budget is not negative", why="it bounds a distance", fix="write 0 or more")
    pure = kind == "pure"
    rho_squared = Budget.of(number * number * HALF if pure else number)
    share = parse_fraction(delta.strip(), "delta")
    return Conversions(
        rho_squared=rho_squared,
        delta=share,
        readings=[
            EpsilonReading(
                distance=distance,
                simple=reading(rho_squared, share, distance=distance, decimals=4).epsilon,
                tight=reading(rho_squared, share, distance=distance, tight=True, decimals=4).epsilon,
            )
            for distance in DISTANCES
        ],
        epsilon=Budget.of(number) if pure else None,
    )
