"""Group privacy of (ε, δ): applied, never assumed linear."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil

from stirred.errors import BudgetError
from stirred.spec.budget import Budget
from stirred.spec.numerals import fraction_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """(kε, δₖ) between data sets k neighbours apart; δₖ is rounded up."""

    epsilon: Budget
    delta: Decimal
    distance: int


def at_distance(
    epsilon: Budget, delta: int | str | Fraction, *, distance: int, digits: int = 6
) -> GroupReading:
    r"""(ε, δ) for neighbours, read at distance k: $(k\varepsilon,\ \delta \sum_{i<k} e^{i\varepsilon})$.

    The chain x = x₀, …, x_k of neighbours gives P₀(E) ≤ e^{kε}P_k(E) + δ(1 + e^ε + … + e^{(k−1)ε}); the sum is k only
    at ε = 0 (Vadhan 2017, Lemma 2.2).

    >>> at_distance(Budget.of(1), "1/100", distance=2).delta  # not 0.02
    Decimal('0.0371829')
    """
    number = fraction_of(delta, "delta")
    if isinstance(distance, bool) or distance < 1:
        raise BudgetError("a distance is a whole number from 1 on")
    if epsilon.value is None:
        return GroupReading(epsilon=epsilon, delta=Decimal(1), distance=distance)
    bits = 160
    factor = epsilon.value.interval(bits).exp(bits).high
    total = min(number * sum((factor**i for i in range(distance)), Fraction(0)), Fraction(1))
    return GroupReading(epsilon=epsilon * distance, delta=_up(total, digits), distance=distance)


def _up(value: Fraction, digits: int) -> Decimal:
    """Rounded up to that many significant digits."""
    if value == 0:
        return Decimal(0)
    places = digits
    while value * 10**places < 10 ** (digits - 1):
        places += 1
    return Decimal(ceil(value * 10**places)).scaleb(-places)
