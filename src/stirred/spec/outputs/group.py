r"""Group privacy of (ε, δ): the one place where δ at another distance or for another unit is computed.

Between data sets k neighbours apart, (ε, δ) becomes $(k\varepsilon, \delta_k)$ with $\delta_k = \delta\,(e^{k\varepsilon}
- 1)/(e^\varepsilon - 1)$, which is $\delta(1 + e^\varepsilon + \dots + e^{(k-1)\varepsilon})$ for whole k and kδ at ε = 0
(Vadhan 2017, Lemma 2.2). The same formula with a constant c instead of k restates the promise for another unit.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from math import ceil, lcm

from stirred.errors import BudgetError
from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.exact import Exact, Log
from stirred.spec.numbers.numerals import find_root, parse_fraction
from stirred.spec.numbers.numerals import write_digits as written

DELTA_DIGITS = 12  # significant digits of a δ that is no fraction
_MAX_BITS = 1 << 13
_MAX_POWER_BITS = 1 << 16  # bits of a power that is still computed exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReading:
    """(kε, δₖ) between data sets k neighbours apart; δₖ is rounded up."""

    epsilon: Budget
    delta: Decimal
    distance: int | Fraction


def at_distance(
    epsilon: Budget, delta: int | str | Fraction, *, distance: int | Fraction, digits: int = 6
) -> GroupReading:
    r"""(ε, δ) for neighbours, read at distance k: $(k\varepsilon,\ \delta (e^{k\varepsilon}-1)/(e^\varepsilon-1))$.

    The chain x = x₀, …, x_k of neighbours gives P₀(E) ≤ e^{kε}P_k(E) + δ(1 + e^ε + … + e^{(k−1)ε}); the sum is k only
    at ε = 0.

    >>> at_distance(Budget.of(1), "1/100", distance=2).delta  # not 0.02
    Decimal('0.0371829')
    """
    number = parse_fraction(delta, "delta")
    if isinstance(distance, bool | float) or distance <= 0:
        raise BudgetError(
            f"{distance} is no distance",
            why="group privacy is read at an exact distance above 0",
            fix="give 1, 2, … or a Fraction",
        )
    found = Fraction(1) if not epsilon.is_finite else _bound_delta(epsilon, number, Fraction(distance))[0]
    return GroupReading(epsilon=epsilon * distance, delta=round_up_digits(found, digits), distance=distance)


def scale_delta(epsilon: Budget, delta: Fraction, constant: Fraction) -> Fraction:
    """Return the δ of the promise where distances are at most ``constant`` times as large, rounded up.

    It is at most 1, from where on nothing is promised. An infinite ε promises nothing either: δ is returned as it is.

    >>> scale_delta(Budget.log(2), Fraction(1, 1000), Fraction(3))  # 1 + 2 + 4
    Fraction(7, 1000)
    >>> scale_delta(Budget.log(4), Fraction(3, 10), Fraction(1, 2))  # (2 − 1)/(4 − 1)
    Fraction(1, 10)
    """
    if not epsilon.is_finite:
        return delta
    found, exact = _bound_delta(epsilon, delta, constant)
    if exact or found == 1:
        return found
    return min(Fraction(round_up_digits(found, DELTA_DIGITS)), Fraction(1))


def _bound_delta(epsilon: Budget, delta: Fraction, steps: Fraction) -> tuple[Fraction, bool]:
    """Return δ·(e^{kε} − 1)/(e^ε − 1), at most 1, from above, and whether it is exact."""
    value = epsilon.value
    if value is None or delta >= 1:
        return Fraction(1), True
    if delta == 0 or steps in (0, 1):
        return delta * steps, True
    if epsilon.is_zero:
        return min(delta * steps, Fraction(1)), True
    # δₖ ≥ δ·e^{(k−1)ε}: no power is computed where this alone exceeds 1
    if steps > 1 and (epsilon * (steps - 1)).lower(6) > Budget.log(1 / delta).upper(6):
        return Fraction(1), True
    one, all_steps = _find_rational_power(value, Fraction(1)), _find_rational_power(value, steps)
    if one is not None and all_steps is not None:
        return min(delta * (all_steps - 1) / (one - 1), Fraction(1)), True
    return min(delta * _bound_ratio(value, steps), Fraction(1)), False


def _bound_ratio(value: Exact, steps: Fraction) -> Fraction:
    """Return (e^{kε} − 1)/(e^ε − 1) rounded up to 15 digits."""
    bits = 128
    while bits <= _MAX_BITS:
        box = value.interval(bits)
        one, many = box.exp(bits), box.scale(steps).exp(bits)
        if one.low > 1 and many.low > 1:
            high, low = (many.high - 1) / (one.low - 1), (many.low - 1) / (one.high - 1)
            if high - low < low / 10**15:
                return high
        bits *= 2
    # ε is below all precision: x^k − 1 ≤ k·x^{k−1}(x − 1) for k ≥ 1, and ≤ k(x − 1) for k < 1
    return steps if steps < 1 else steps * value.scale(steps - 1).interval(128).exp(128).high


def _find_rational_power(value: Exact, steps: Fraction) -> Fraction | None:
    """Return e^{kε} as a fraction where ε is a sum of logarithms of fractions, or None."""
    exponents: list[tuple[Fraction, Fraction]] = []
    for monomial, coefficient in value.terms:
        if len(monomial) != 1 or monomial[0][1] != 1 or not isinstance(monomial[0][0], Log):
            return None
        exponents.append((monomial[0][0].of, coefficient * steps))
    root = lcm(*(exponent.denominator for _, exponent in exponents))
    size = sum(abs(e * root) * (q.numerator.bit_length() + q.denominator.bit_length()) for q, e in exponents)
    if size > _MAX_POWER_BITS:
        return None
    power = Fraction(1)
    for q, exponent in exponents:
        power *= q ** int(exponent * root)
    return find_root(power, root)


def round_up_digits(value: Fraction, digits: int) -> Decimal:
    """Round a positive number up to that many significant digits.

    >>> round_up_digits(Fraction(1, 3), 3), round_up_digits(Fraction(9999, 10000), 3)
    (Decimal('0.334'), Decimal('1.00'))
    """
    if value == 0:
        return Decimal(0)
    places = digits - len(written(value.numerator)) + len(written(value.denominator))
    shifted = value * Fraction(10) ** places
    if shifted >= 10**digits:
        places, shifted = places - 1, shifted / 10
    whole = ceil(shifted)
    if whole == 10**digits:
        places, whole = places - 1, whole // 10
    with localcontext(prec=digits + 2):
        return Decimal(whole).scaleb(-places)
