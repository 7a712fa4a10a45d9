"""The two conversions of zCDP to (ε, δ): the simple formula, and the tight one as a rigorous upper bound."""

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

from stirred.spec.numbers.budget import Budget
from stirred.spec.numbers.exact import Exact
from stirred.spec.numbers.rounding import round_up


def compute_simple_epsilon(rho_squared: Budget, delta: Fraction) -> Budget:
    """Return ρ² + 2√(ρ²·(−ln δ)) exactly."""
    return rho_squared + Budget.sqrt(rho_squared * Budget.log(1 / delta)) * 2


@lru_cache(maxsize=512)  # a card reads the same budget several times
def compute_tight_epsilon(rho_squared: Budget, delta: Fraction, decimals: int) -> Decimal:
    r"""$\inf_\alpha\, \alpha\rho^2 + \frac{\ln(1/\delta) + (\alpha-1)\ln(1-1/\alpha) - \ln\alpha}{\alpha-1}$, rounded up.

    Every α > 1 gives a valid ε, so the minimiser is looked for in floating point, made a fraction, and the formula is
    evaluated exactly there.
    """
    assert rho_squared.value is not None
    if rho_squared.is_zero:
        return Decimal(0).scaleb(-decimals)
    alpha = _find_best_order(rho_squared, delta)
    value = round_up(compute_epsilon_at(rho_squared.value, delta, alpha), decimals)
    # below 0 the conversion says that (0, δ) holds
    return max(
        min(value, compute_simple_epsilon(rho_squared, delta).upper(decimals)), Decimal(0).scaleb(-decimals)
    )


def compute_epsilon_at(rho_squared: Exact, delta: Fraction, alpha: Fraction) -> Exact:
    """Return the conversion at one order α, exactly."""
    gap = alpha - 1
    logs = Exact.log(1 / delta) - Exact.log(alpha)
    return rho_squared.scale(alpha) + logs.scale(1 / gap) + Exact.log(1 - 1 / alpha)


def _find_best_order(rho_squared: Budget, delta: Fraction) -> Fraction:
    r"""The α where the derivative vanishes: with $g = \alpha - 1$ that is $\rho^2 g^2 + \ln(1 + g) = \ln(1/\delta)$.

    In ln g the left side is increasing and convex, so Newton's method from the right meets the root from above.
    """
    import mpmath

    with mpmath.workdps(40):
        rho = mpmath.mpf(str(rho_squared.upper(30)))
        weight = mpmath.log(mpmath.mpf(delta.denominator)) - mpmath.log(mpmath.mpf(delta.numerator))
        at = min(mpmath.log(weight / rho) / 2, mpmath.mpf(60))
        for _ in range(200):
            gap = mpmath.exp(at)
            quadratic = rho * gap * gap
            step = (quadratic + mpmath.log1p(gap) - weight) / (2 * quadratic + gap / (1 + gap))
            at -= step
            if abs(step) < mpmath.mpf(10) ** -13:
                break
        gap = mpmath.exp(max(at, mpmath.mpf(-60)))
        # twelve good digits of α − 1, as a short fraction
        scale = 10 ** max(0, 14 - int(mpmath.floor(mpmath.log10(gap))))
        return 1 + Fraction(ceil(int(gap * scale)) or 1, scale)
