r"""Rigorous comparisons of budgets through exponentials: each answers True only where intervals prove it.

Exact numbers are enclosed by intervals with 160 good bits; where the two sides cannot be told apart, the answer is False.
"""

from fractions import Fraction
from functools import lru_cache

from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.intervals import Interval
from stirred.spec.outputs.readings import reading

INTERVAL_BITS = 160
ONE = Interval.point(Fraction(1))


def _enclose(budget: Budget) -> Interval:
    assert budget.value is not None
    return budget.value.interval(INTERVAL_BITS)


@lru_cache(maxsize=4096)
def _enclose_power(exact: str, low: Fraction, high: Fraction) -> Interval:
    del exact
    return Interval(low, high).exp(INTERVAL_BITS)


def _exp(budget: Budget) -> Interval:
    box = _enclose(budget)
    return _enclose_power("", box.low, box.high)


def _subtract(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


def _divide(a: Interval, b: Interval) -> Interval:
    """Return a/b for b > 0."""
    return Interval(min(a.low / b.low, a.low / b.high), max(a.high / b.low, a.high / b.high))


def _tanh_half(budget: Budget) -> Interval:
    """Return tanh(B/2) = (e^B − 1)/(e^B + 1)."""
    power = _exp(budget)
    return _divide(_subtract(power, ONE), power + ONE)


def pure_within_concentrated(epsilon: Budget, rho: Budget, least: int) -> bool:
    """Return whether ε·tanh(kε/2)/k ≤ ρ² at the smallest distance k.

    >>> pure_within_concentrated(Budget.of(2), Budget.sqrt("1.6"), 1)  # though ε²/2 = 2
    True
    """
    if not (epsilon.is_finite and rho.is_finite):
        return not rho.is_finite
    left = _enclose(epsilon) * _tanh_half(epsilon * least)
    return left.high / least <= _enclose(rho.square()).low


def pure_above_concentrated(allowed: Budget, rho: Budget, distance: Fraction) -> bool:
    """Return whether B·tanh(B/2) > ρ²k² for a pair at distance k at which the pure loss may be B."""
    if not allowed.is_finite:
        return True
    left = _enclose(allowed) * _tanh_half(allowed)
    return left.low > (_enclose(rho.square()).scale(distance * distance)).high


def enclose_delta_at(epsilon: Budget, delta: Fraction, k: int) -> Interval:
    """Return an enclosure of δ_k = δ(1 + e^ε + … + e^{(k−1)ε})."""
    if epsilon.is_zero:
        return Interval.point(delta * k)
    return _divide(_subtract(_exp(epsilon * k), ONE), _subtract(_exp(epsilon), ONE)).scale(delta)


def _enclose_hockey_stick(allowed: Budget, revealed: Interval, limit: Budget, k: int) -> Interval:
    """Enclose the hockey-stick divergence at e^{kε'} of a mechanism that reveals the data or randomises at B."""
    if not allowed.is_finite:
        return ONE
    power, level = _exp(allowed), _exp(limit * k)
    rest = _divide(_subtract(power, level), power + ONE)
    rest = Interval(max(rest.low, Fraction(0)), max(rest.high, Fraction(0)))
    kept = Interval(max(1 - revealed.high, Fraction(0)), max(1 - revealed.low, Fraction(0)))
    total = revealed + kept * rest
    return Interval(total.low, min(total.high, Fraction(1)) if revealed.high <= 1 else total.high)


def hockey_stick_below(
    allowed: Budget, own: Fraction, budget: Budget, limit: Budget, delta: Fraction, k: int
) -> bool:
    """Return whether every pair under (kε, δ_k) is proved to be under (kε', δ'_k)."""
    if not budget.is_finite:
        return False
    revealed = enclose_delta_at(budget, own, k)
    bound = enclose_delta_at(limit, delta, k)
    if bound.low >= 1:
        return True
    return revealed.high < 1 and _enclose_hockey_stick(allowed, revealed, limit, k).high <= bound.low


def hockey_stick_above(
    allowed: Budget, stated: tuple[Fraction, Budget, int], limit: Budget, delta: Fraction, k: int
) -> bool:
    """Return whether some mechanism under (ε, δ) breaks (kε', δ'_k); ``stated`` is (δ, ε, own distance).

    Two mechanisms are tried: reveal with probability δ and else randomised response; and the chain in which the probability
    of one outcome is δ_j at distance j, which group privacy allows.
    """
    own, budget, steps = stated
    bound = enclose_delta_at(limit, delta, k)
    if bound.high >= 1:
        return False
    if not budget.is_finite:
        return True
    first = _enclose_hockey_stick(allowed, Interval.point(own), limit, k)
    chain = enclose_delta_at(budget, own, steps)
    half = Fraction(1, 2)
    return first.low > bound.high or (chain.high < half and chain.low > bound.high)


def tight_within(rho: Budget, limit: Budget, delta: Fraction, k: int) -> bool:
    """Return whether k²ρ²-zCDP gives (kε', δ'_k), by the conversion of Canonne, Kamath and Steinke."""
    bound = enclose_delta_at(limit, delta, k).low
    if bound >= 1:
        return True
    if not rho.is_finite or bound <= 0:
        return False
    found = reading(rho.square(), bound, distance=k, tight=True, decimals=9).epsilon
    return Fraction(found) <= _enclose(limit * k).low


def gaussian_exceeds(allowed: Budget, limit: Budget, delta: Fraction, k: int) -> bool:
    r"""Whether the Gaussian with $D_{nor} = B$ breaks (kε', δ'_k): its hockey-stick divergence is

    $\Phi(\mu/2 - E/\mu) - e^E\,\Phi(-\mu/2 - E/\mu)$, $\mu = \sqrt2 B$, $E = k\varepsilon'$ (Balle and Wang 2018).
    """
    import mpmath

    bound = enclose_delta_at(limit, delta, k).high
    if bound >= 1 or allowed.is_zero:
        return False
    if not allowed.is_finite:
        return True
    with mpmath.workdps(60):
        low, high = (mpmath.mpf(end.numerator) / end.denominator for end in _find_ends(allowed))
        level = mpmath.mpf(str(limit.upper(40))) * k
        del high  # the divergence grows with μ, so the smaller end is the safe one
        mu = mpmath.sqrt(2) * low
        found = mpmath.ncdf(mu / 2 - level / mu) - mpmath.exp(level) * mpmath.ncdf(-mu / 2 - level / mu)
        # sixty digits were carried; ten are kept as a margin for what the functions may be off by
        return bool(
            found
            > (mpmath.mpf(bound.numerator) / bound.denominator) * (1 + mpmath.mpf(10) ** -10)
            + mpmath.mpf(10) ** -30
        )


def _find_ends(budget: Budget) -> tuple[Fraction, Fraction]:
    box = _enclose(budget)
    return box.low, box.high
