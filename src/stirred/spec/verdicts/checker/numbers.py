"""Budgets compared with fifty digits: whether one promise gives another, and whether a mechanism breaks one."""

from fractions import Fraction
from typing import Any

import mpmath

from stirred.spec.laws.sizes import SizeLaw
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric

DIGITS = 50
SLACK = mpmath.mpf(10) ** -25


def _number(budget: Budget) -> Any:
    return mpmath.inf if not budget.is_finite else mpmath.mpf(str(budget.upper(45)))


def _delta(premetric: OutputPremetric) -> Any:
    return (
        mpmath.mpf(premetric.delta.numerator) / premetric.delta.denominator
        if isinstance(premetric, Approximate)
        else 0
    )


def _delta_at(epsilon: Any, delta: Any, k: Any) -> Any:
    if not delta:
        return mpmath.mpf(0)
    return delta * k if epsilon == 0 else delta * mpmath.expm1(k * epsilon) / mpmath.expm1(epsilon)


def at_most(
    first: OutputPremetric,
    budget: Budget,
    factor: Fraction,
    second: OutputPremetric,
    limit: Budget,
    least: int,
    *,
    last: int | None = None,
) -> bool:
    """Whether the first promise, at factor times the distance, gives the second at every whole distance.

    >>> at_most(Multiplicative(), Budget.of(1), Fraction(1), NormalizedRenyi(), Budget.sqrt("1/2"), 1)
    True
    """
    if not limit.is_finite:
        return True
    if type(first) is type(second) and _delta(first) == _delta(second) == 0:
        return budget * factor <= limit
    with mpmath.workdps(DIGITS):
        mine, theirs = _number(budget) * factor.numerator / factor.denominator, _number(limit)
        if mine == 0 and _delta(first) == 0:
            return True
        own, bound = _delta(first), _delta(second)
        if isinstance(first, Approximate) and factor != 1:
            own = _delta_at(_number(budget), own, mpmath.mpf(factor.numerator) / factor.denominator)
        for k in range(least, least + 500):
            if isinstance(second, Approximate) and _delta_at(theirs, bound, k) >= 1:
                return True
            if not _holds(first, mine, own, second, theirs, bound, k):
                return False
            if k == last:
                return True
            if not isinstance(second, Approximate) or (mine <= theirs and own <= bound and not _renyi(first)):
                return True  # the rest is easier: tanh(t)/t falls, and neither ε nor δ is larger
    return False


def _renyi(premetric: OutputPremetric) -> bool:
    return isinstance(premetric, NormalizedRenyi)


def _holds(
    first: OutputPremetric, mine: Any, own: Any, second: OutputPremetric, theirs: Any, bound: Any, k: int
) -> bool:
    pure = isinstance(first, Multiplicative) or (isinstance(first, Approximate) and own == 0)
    if isinstance(second, NormalizedRenyi) and pure:
        return bool(mine * mpmath.tanh(k * mine / 2) / k <= theirs**2 + SLACK)
    if isinstance(second, Multiplicative) or (isinstance(second, Approximate) and bound == 0):
        return bool(pure and mine <= theirs + SLACK)
    if not isinstance(second, Approximate):
        return False
    allowed = _delta_at(theirs, bound, k)
    if _renyi(first):
        return bool(_concentrated_delta((k * mine) ** 2, k * theirs) <= allowed + SLACK)
    shown = _delta_at(mine, own, k)
    return bool(_stick(k * mine, k * theirs, shown) <= allowed + SLACK)


def _stick(loss: Any, level: Any, shown: Any) -> Any:
    """Revealed with probability ``shown``, else randomised response: its hockey-stick divergence."""
    if loss == mpmath.inf:
        return mpmath.mpf(1)
    rest = max(mpmath.mpf(0), (mpmath.exp(loss) - mpmath.exp(level)) / (1 + mpmath.exp(loss)))
    return shown + (1 - min(shown, 1)) * rest


def _concentrated_delta(rho_squared: Any, epsilon: Any) -> Any:
    """The smallest δ by the conversion of Canonne, Kamath and Steinke (2020), Prop. 12, over all orders."""

    def at(t: Any) -> Any:
        gap = mpmath.exp(t)
        alpha = 1 + gap
        return gap * (alpha * rho_squared - epsilon) - mpmath.log(gap) + alpha * mpmath.log(gap / alpha)

    low, high = mpmath.mpf(-40), mpmath.mpf(40)
    for _ in range(200):  # the exponent is convex in the order: ternary search
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return mpmath.exp(at((low + high) / 2))


def breaks(
    first: OutputPremetric,
    budget: Budget,
    mine: Fraction,
    second: OutputPremetric,
    limit: Budget,
    theirs: Fraction,
) -> bool:
    """Whether some mechanism under the first breaks the second for a pair at these two distances.

    >>> breaks(Multiplicative(), Budget.of(2), Fraction(1), Multiplicative(), Budget.of(1), Fraction(1))
    True
    """
    if not limit.is_finite:
        return False
    if type(first) is type(second) and not isinstance(first, Approximate):
        return budget * mine > limit * theirs
    with mpmath.workdps(DIGITS):
        epsilon, level = _number(budget), _number(limit)
        loss, k = (
            epsilon * mine.numerator / mine.denominator,
            mpmath.mpf(theirs.numerator) / theirs.denominator,
        )
        own, bound = _delta(first), _delta(second)
        if isinstance(second, NormalizedRenyi):
            if own:
                return True
            return bool(loss == mpmath.inf or loss * mpmath.tanh(loss / 2) > (level * k) ** 2 + SLACK)
        if isinstance(second, Multiplicative) or (isinstance(second, Approximate) and bound == 0):
            return bool(
                own > 0 or (_renyi(first) and loss > 0) or (not _renyi(first) and loss > level * k + SLACK)
            )
        if not isinstance(second, Approximate):
            return False
        allowed = _delta_at(level, bound, k)
        if allowed >= 1:
            return False
        if _renyi(first):
            mu = mpmath.sqrt(2) * loss
            if mu == mpmath.inf:
                return True
            gauss = mpmath.ncdf(mu / 2 - level * k / mu) - mpmath.exp(level * k) * mpmath.ncdf(
                -mu / 2 - level * k / mu
            )
            return bool(gauss > allowed + SLACK)
        chain = (
            _delta_at(epsilon, own, mpmath.mpf(mine.numerator) / mine.denominator)
            if loss != mpmath.inf
            else 1
        )
        return bool(
            _stick(loss, level * k, own) > allowed + SLACK or allowed + SLACK < chain < mpmath.mpf("0.5")
        )


def quadratics_ordered(first: SizeLaw, second: SizeLaw) -> bool:
    r"""Whether $\max\{A, G(b)/C\} \le \max\{A', G'(b)/C'\}$ for all b > 60; G is $(b+1)^2$ or $b(b-1)+1$, both growing.

    >>> quadratics_ordered(SizeLaw("theorem-1", "1/2"), SizeLaw("theorem-1", "1/20"))
    True
    >>> quadratics_ordered(SizeLaw("theorem-1", "1/20"), SizeLaw("theorem-1", "1/2"))
    False
    """
    if not second.is_finite:
        return True
    if not first.is_finite:
        return False
    (top, mine), (limit, theirs) = (_quadratic(law) for law in (first, second))

    def value(terms: tuple[Fraction, Fraction, Fraction], b: int) -> Fraction:
        return terms[0] * b * b + terms[1] * b + terms[2]

    gap = (theirs[0] - mine[0], theirs[1] - mine[1], theirs[2] - mine[2])
    if top > max(limit, value(theirs, 61)) or gap[0] < 0:
        return False
    b = 61
    while value(gap, b) < 0 or 2 * gap[0] * b + gap[1] < 0:  # from here on the gap is positive and grows
        if b > 1 << 200:
            return False
        b *= 2
    low = 61
    while low < b:  # the last place where it is not: before it the constant must do
        middle = (low + b) // 2
        low, b = (
            (low, middle)
            if value(gap, middle) >= 0 and 2 * gap[0] * middle + gap[1] >= 0
            else (middle + 1, b)
        )
    return b == 61 or value(mine, b - 1) <= limit


def _quadratic(law: SizeLaw) -> tuple[Fraction, tuple[Fraction, Fraction, Fraction]]:
    """e^(2ε) beyond 60 records: the constant A, and the terms of G(b)/C."""
    below, above = (rate / (1 - rate) for rate in (law.rate, law.highest))
    slope = {"theorem-1": 2, "by-size": -1}[law.kind]
    scale = 1 / (below * below)
    return above * above, (scale, slope * scale, scale)
