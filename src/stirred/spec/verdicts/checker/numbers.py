"""Budgets compared with fifty digits: whether one promise gives another, and whether a mechanism breaks one.

For a yes every number is rounded against it and must be smaller by a margin, unless an exact comparison settles it; for a
no every mechanism must exceed what is allowed by a margin.
"""

from fractions import Fraction
from math import ceil
from typing import Any

import mpmath

from stirred.spec.laws.sizes import SizeLaw
from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.exact import Log
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric

DECIMAL_DIGITS = 50
SLACK = mpmath.mpf(10) ** -25
MARGIN = mpmath.mpf(10) ** -30  # by which a number of a yes must be smaller, relative to it
MAX_POWER_BITS = 4096  # bits of a power of a fraction that is computed exactly
MAX_DISTANCES = 500
KNOWN_PREMETRICS = (Multiplicative, NormalizedRenyi, Approximate)


def is_known(premetric: OutputPremetric) -> bool:
    """Return whether the checker knows the premetric by its definition; a user's own is not known."""
    return type(premetric) in KNOWN_PREMETRICS


def simplify(premetric: OutputPremetric) -> OutputPremetric:
    """Return pure DP for (ε, 0), and any other premetric as it is."""
    return Multiplicative() if type(premetric) is Approximate and not premetric.delta else premetric


def _number(budget: Budget, *, down: bool = False) -> Any:
    if not budget.is_finite:
        return mpmath.inf
    return mpmath.mpf(str(budget.lower(45) if down else budget.upper(45)))


def _ratio(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def _delta(premetric: OutputPremetric) -> Any:
    return _ratio(premetric.delta) if isinstance(premetric, Approximate) else mpmath.mpf(0)


def _delta_at(epsilon: Any, delta: Any, k: Any) -> Any:
    if not delta:
        return mpmath.mpf(0)
    return delta * k if epsilon == 0 else delta * mpmath.expm1(k * epsilon) / mpmath.expm1(epsilon)


def scale_delta(budget: Budget, delta: Fraction, factor: Fraction) -> Fraction:
    """Return δ(e^{cε} − 1)/(e^ε − 1) for a unit with constant c: exact where possible, else from above.

    >>> scale_delta(Budget.log(2), Fraction(1, 1000), Fraction(3))
    Fraction(7, 1000)
    """
    if not delta or factor == 1:
        return delta
    if not budget.is_finite:
        return Fraction(1)
    if budget.is_zero:
        return delta * factor
    one, many = _power(budget, Fraction(1)), _power(budget, factor)
    if one is not None and many is not None:
        return delta * (many - 1) / (one - 1)
    with mpmath.workdps(DECIMAL_DIGITS):
        epsilon = _number(budget, down=factor < 1)  # the fraction grows with ε for c > 1, and falls for c < 1
        found = _delta_at(epsilon, _ratio(delta), _ratio(factor)) * (1 + MARGIN)
        return Fraction(ceil(found * mpmath.mpf(10) ** 45), 10**45)


def _power(budget: Budget, factor: Fraction) -> Fraction | None:
    """Return e^(factor · ε) as a fraction where ε is a multiple of one logarithm, or None."""
    if budget.value is None or len(budget.value.terms) != 1:
        return None
    ((monomial, coefficient),) = budget.value.terms
    if len(monomial) != 1 or not isinstance(monomial[0][0], Log) or monomial[0][1] != 1:
        return None
    base, exponent = monomial[0][0].of, coefficient * factor
    roots = [_root(part, exponent.denominator) for part in (base.numerator, base.denominator)]
    if roots[0] is None or roots[1] is None:
        return None
    bits = max(roots[0].bit_length(), roots[1].bit_length()) * abs(exponent.numerator)
    return None if bits > MAX_POWER_BITS else Fraction(roots[0], roots[1]) ** exponent.numerator


def _root(value: int, order: int) -> int | None:
    """Return the whole number whose power of this order is the value, or None."""
    if order == 1 or value == 1:
        return value
    if order > 64 or value.bit_length() > MAX_POWER_BITS:
        return None
    low, high = 1, 1 << (value.bit_length() // order + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**order < value else (low, middle)
    return low if low**order == value else None


def at_most(
    first: OutputPremetric,
    budget: Budget,
    factor: Fraction,
    second: OutputPremetric,
    limit: Budget,
    least: int,
    *,
    last: int | None = None,
    whole: bool = True,
) -> bool:
    """Return whether the first promise, at factor times the distance, gives the second from ``least`` on.

    With ``last`` only at distances up to that one; without ``whole`` at every distance.

    >>> at_most(Multiplicative(), Budget.of(1), Fraction(1), NormalizedRenyi(), Budget.sqrt("1/2"), 1)
    True
    """
    if not limit.is_finite:
        return True
    mine, theirs = simplify(first), simplify(second)
    if not is_known(mine) or not is_known(theirs):
        # what somebody else's premetric says of itself is its definition
        found = budget * factor if mine == theirs else mine.convert(budget * factor, theirs)
        return found is not None and found <= limit
    if type(mine) is type(theirs) and not isinstance(mine, Approximate):
        return budget * factor <= limit
    if isinstance(mine, Multiplicative | NormalizedRenyi) and (budget * factor).is_zero:
        return True
    if isinstance(theirs, NormalizedRenyi) and isinstance(mine, Multiplicative):
        return _gives_concentrated(budget * factor, limit, least, whole=whole)
    if not isinstance(theirs, Approximate) or not whole:
        return False
    own = scale_delta(budget, mine.delta, factor) if isinstance(mine, Approximate) else Fraction(0)
    if not isinstance(mine, NormalizedRenyi) and budget * factor <= limit and own <= theirs.delta:
        return True  # neither ε nor δ is larger, and then δ_k is not at any whole distance
    with mpmath.workdps(DECIMAL_DIGITS):
        up, down = _number(budget * factor), _number(limit, down=True)
        for k in range(least, least + MAX_DISTANCES):
            allowed = _delta_at(down, _ratio(theirs.delta), k)
            if allowed * (1 - MARGIN) >= 1:
                return True
            if isinstance(mine, NormalizedRenyi):
                found = _concentrated_delta((k * up) ** 2, k * down)
            else:
                found = _stick(k * up, k * down, _delta_at(up, _ratio(own), k))
            if not found * (1 + MARGIN) <= allowed:
                return False
            if k == last:
                return True
    return False


def _gives_concentrated(budget: Budget, limit: Budget, least: int, *, whole: bool) -> bool:
    """Return whether pure DP gives zCDP from a distance on, by ε²/2 or by ε·tanh(kε/2)/k."""
    if budget * Budget.sqrt("1/2") <= limit:
        return True
    if not whole:
        return False
    with mpmath.workdps(DECIMAL_DIGITS):
        epsilon, rho = _number(budget), _number(limit, down=True)
        return bool(epsilon * mpmath.tanh(least * epsilon / 2) / least * (1 + MARGIN) <= rho**2)


def _stick(loss: Any, level: Any, shown: Any) -> Any:
    """Return the hockey-stick divergence of revealing with probability ``shown``, else randomised response."""
    if loss == mpmath.inf:
        return mpmath.mpf(1)
    rest = max(mpmath.mpf(0), (mpmath.exp(loss) - mpmath.exp(level)) / (1 + mpmath.exp(loss)))
    return shown + (1 - min(shown, 1)) * rest


def _concentrated_delta(rho_squared: Any, epsilon: Any) -> Any:
    """Return the smallest δ over all orders by Canonne, Kamath and Steinke (2020), Prop. 12."""

    def at(t: Any) -> Any:
        gap = mpmath.exp(t)
        alpha = 1 + gap
        return gap * (alpha * rho_squared - epsilon) - mpmath.log(gap) + alpha * mpmath.log(gap / alpha)

    low, high = mpmath.mpf(-40), mpmath.mpf(40)
    for _ in range(200):  # the exponent is convex in the order: ternary search
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return mpmath.exp(at((low + high) / 2))


def is_void_at(measure: Approximate, budget: Budget, k: int) -> bool:
    """Return whether (ε, δ) promises nothing from distance k on, because δ_k has reached 1."""
    one, many = _power(budget, Fraction(1)), _power(budget, Fraction(k))
    if one is not None and many is not None:
        return measure.delta * (many - 1) / (one - 1) >= 1
    with mpmath.workdps(DECIMAL_DIGITS):
        return bool(_delta_at(_number(budget, down=True), _delta(measure), k) * (1 - MARGIN) >= 1)


def breaks(
    first: OutputPremetric,
    budget: Budget,
    mine: Fraction,
    second: OutputPremetric,
    limit: Budget,
    theirs: Fraction,
) -> bool:
    """Return whether some mechanism under the first breaks the second for a pair at these two distances.

    >>> breaks(Multiplicative(), Budget.of(2), Fraction(1), Multiplicative(), Budget.of(1), Fraction(1))
    True
    """
    first, second = simplify(first), simplify(second)
    if not limit.is_finite or not is_known(first) or not is_known(second):
        return False
    if type(first) is type(second) and not isinstance(first, Approximate):
        return budget * mine > limit * theirs
    with mpmath.workdps(DECIMAL_DIGITS):
        epsilon, level = _number(budget, down=True), _number(limit)
        loss, k = (
            epsilon * mine.numerator / mine.denominator,
            mpmath.mpf(theirs.numerator) / theirs.denominator,
        )
        own, bound = _delta(first), _delta(second)
        if isinstance(second, NormalizedRenyi):
            if own:
                return True
            return bool(loss == mpmath.inf or loss * mpmath.tanh(loss / 2) > (level * k) ** 2 + SLACK)
        if isinstance(second, Multiplicative):
            return bool(own > 0 or (isinstance(first, NormalizedRenyi) and loss > 0))
        allowed = _delta_at(level, bound, k)
        if allowed >= 1:
            return False
        if isinstance(first, NormalizedRenyi):
            mu = mpmath.sqrt(2) * loss
            if mu in {0, mpmath.inf}:
                return bool(mu)
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
    """Return e^(2ε) beyond 60 records: the constant A and the terms of G(b)/C."""
    below, above = (rate / (1 - rate) for rate in (law.rate, law.highest))
    slope = {"theorem-1": 2, "by-size": -1}[law.kind]
    scale = 1 / (below * below)
    return above * above, (scale, slope * scale, scale)
