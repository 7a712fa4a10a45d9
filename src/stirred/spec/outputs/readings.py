"""(ε, δ) readings of a zCDP budget at a stated distance, rounded up.

Definition 1 must hold at every distance, but the conversion is not linear in the distance: at distance k it is
k²ρ² + 2kρ√(−ln δ), more than k times its value at 1. So a reading is a fact about pairs at one distance and never a
specification.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from stirred.errors import BudgetError
from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.numerals import parse_fraction
from stirred.spec.outputs.tight import compute_simple_epsilon, compute_tight_epsilon


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """ε at one distance and one δ, by one formula; not a specification."""

    epsilon: Decimal
    delta: Fraction
    distance: int
    formula: str

    def __str__(self) -> str:
        return f"(ε, δ) = ({self.epsilon}, {float(self.delta):.3g}) at distance {self.distance}"


SIMPLE_FORMULA = "k²ρ² + 2kρ√(−ln δ) (Bun and Steinke 2016, Prop. 1.3)"
TIGHT_FORMULA = "inf over α of the Rényi conversion (Canonne, Kamath and Steinke 2020, Prop. 12)"


def reading(
    rho_squared: Budget,
    delta: int | str | Fraction,
    *,
    distance: int = 1,
    tight: bool = False,
    decimals: int = 6,
) -> Reading:
    """Return the ε of ρ²-zCDP at distance k, rounded up.

    >>> reading(Budget.of("293764/114921"), "1e-10", decimals=4).epsilon
    Decimal('17.9002')
    >>> reading(Budget.of("293764/114921"), "1e-10", tight=True, decimals=2).epsilon
    Decimal('17.15')
    """
    number = parse_fraction(delta, "delta")
    if not 0 < number < 1:
        raise BudgetError(
            "delta must lie between 0 and 1",
            why="at 0 the conversion is infinite, at 1 it is void",
            fix="write 1e-10 or 1/1000000",
        )
    if isinstance(distance, bool) or distance < 1:
        raise BudgetError(
            f"{distance} is no distance",
            why="a reading is taken at a whole distance of at least 1",
            fix="give 1, 2, …",
        )
    scaled = rho_squared * (distance * distance)
    if not scaled.is_finite:
        epsilon = Decimal("Infinity")
    elif tight:
        epsilon = compute_tight_epsilon(scaled, number, decimals)
    else:
        epsilon = compute_simple_epsilon(scaled, number).upper(decimals)
    return Reading(
        epsilon=epsilon, delta=number, distance=distance, formula=TIGHT_FORMULA if tight else SIMPLE_FORMULA
    )
