"""The two conversions of zCDP to (ε, δ): the simple formula, and the tight one as a rigorous upper bound."""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.exact import Exact
from stirred.spec.numbers.rounding import rounded_up


def simple(rho_squared: Budget, delta: Fraction) -> Budget:
    """ρ² + 2√(ρ²·(−ln δ)), exactly."""
    return rho_squared + Budget.sqrt(rho_squared * Budget.log(1 / delta)) * 2


@lru_cache(maxsize=512)  # a card reads the same budget several times
def tight_epsilon(rho_squared: Budget, delta: Fraction, decimals: int) -> Decimal:
    r"""$\inf_\alpha\, \alpha\rho^2 + \frac{\ln(1/\delta) + (\alpha-1)\ln(1-1/\alpha) - \ln\alpha}{\alpha-1}$, rounded up.

    Every α > 1 gives a valid ε, so the minimiser is looked for in floating point, made a fraction, and the formula is
    evaluated exactly there.
    """
    assert rho_squared.value is not None
    if rho_squared.is_zero:
        return Decimal(0).scaleb(-decimals)
    alpha = _best_order(rho_squared, delta)
    value = rounded_up(epsilon_at(rho_squared.value, delta, alpha), decimals)
    # below 0 the conversion says that (0, δ) holds
    return max(min(value, simple(rho_squared, delta).upper(decimals)), Decimal(0).scaleb(-decimals))


def epsilon_at(rho_squared: Exact, delta: Fraction, alpha: Fraction) -> Exact:
    """The conversion at one order, exactly."""
    gap = alpha - 1
    logs = Exact.log(1 / delta) - Exact.log(alpha)
    return rho_squared.scaled(alpha) + logs.scaled(1 / gap) + Exact.log(1 - 1 / alpha)


def _best_order(rho_squared: Budget, delta: Fraction) -> Fraction:
    import mpmath

    with mpmath.workdps(40):
        rho = mpmath.mpf(str(rho_squared.upper(30)))
        weight = mpmath.log(mpmath.mpf(delta.denominator)) - mpmath.log(mpmath.mpf(delta.numerator))

        def epsilon(t: Any) -> Any:
            gap = mpmath.exp(t)
            return (1 + gap) * rho + (weight - mpmath.log1p(gap)) / gap + mpmath.log(gap) - mpmath.log1p(gap)

        low, high = mpmath.mpf(-60), mpmath.mpf(60)
        ratio = (mpmath.sqrt(5) - 1) / 2
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        at_a, at_b = epsilon(a), epsilon(b)
        while high - low > mpmath.mpf(10) ** -12:
            if at_a < at_b:
                high, b, at_b = b, a, at_a
                a = high - ratio * (high - low)
                at_a = epsilon(a)
            else:
                low, a, at_a = a, b, at_b
                b = low + ratio * (high - low)
                at_b = epsilon(b)
        gap = mpmath.exp((low + high) / 2)
        # twelve good digits of α − 1, as a short fraction
        scale = 10 ** max(0, 14 - int(mpmath.floor(mpmath.log10(gap))))
        return 1 + Fraction(ceil(int(gap * scale)) or 1, scale)
