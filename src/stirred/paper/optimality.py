r"""How far Theorem 1 can be from the best budget: the paper's Theorems 3 and 4 (its Appendix F)."""

from fractions import Fraction

import mpmath

from stirred.spec import Budget
from stirred.spec.laws.derangements import count_derangements

HALF = Fraction(1, 2)


def theorem_3(b: int, rate: Fraction) -> Budget:
    r"""What some universe needs at least: $\max\{\ln o,\ \tfrac12\ln\frac{d(b)}{d(b-2)} - \ln o\}$, ∞ at rates 0 and 1.

    At b = 3 the second bound says nothing, because d(1) = 0.

    >>> from stirred.mechanisms.swapping.budget.count_by_size import theorem_1
    >>> float(theorem_3(10, Fraction(1, 20)).upper(4)), float(theorem_1(10, Fraction(1, 20)).upper(4))
    (5.1944, 5.3424)
    """
    if rate in (0, 1):
        return Budget.infinite()
    odds = rate / (1 - rate)
    found = [Budget.log(odds)] if odds > 1 else [Budget.zero()]
    if b != 3 and (ratio := Fraction(count_derangements(b), count_derangements(b - 2)) / odds**2) > 1:
        found.append(Budget.log(ratio) * HALF)
    return max(found)


def bound_gap(b: int) -> Fraction:
    r"""Return Theorem 4's bound on the excess of Theorem 1, rounded up at the twelfth decimal.

    $f(b) = \tfrac12\ln\Big[\frac{(b+1)^2}{b(b-1)}\cdot\frac{1 + e/(2(b-2)!)}{1 - e/(2\,b!)}\Big]$; decreasing to 0.

    >>> round(float(bound_gap(10)), 6)
    0.148007
    """
    with mpmath.workdps(40):
        first = mpmath.mpf((b + 1) ** 2) / (b * (b - 1))
        above = 1 + mpmath.e / (2 * mpmath.factorial(b - 2))
        under = 1 - mpmath.e / (2 * mpmath.factorial(b))
        value = mpmath.log(first * above / under) / 2
        return Fraction(int(mpmath.ceil(value * 10**12)), 10**12)
