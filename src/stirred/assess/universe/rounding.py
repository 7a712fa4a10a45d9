r"""The budget at which a noisy count rounds to the truth with probability $1 - \beta$, so that it behaves as an invariant.

Noise on the integers changes nothing exactly where it is 0. The chance of 0 rises with the budget; at the smallest budget
where it reaches $1 - \beta$ the count is, for most who read it, as good as published exactly.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp

from stirred.errors import InputError
from stirred.spec import Budget

BISECTION_DIGITS = 40  # binary digits of the bisection


@dataclass(frozen=True, slots=True, kw_only=True)
class NearInvariant:
    """The smallest budget, rounded up, at which noise leaves counts as they are with probability 1 − β."""

    noise: str
    beta: Fraction
    counts: int  # that are all unchanged together
    budget: Budget  # ε of the geometric law, ρ² of the discrete Gaussian law
    exact: bool  # whether it is the smallest such budget, or an upper bound of it


def geometric(beta: "Fraction | str", *, counts: int = 1, sensitivity: int = 1) -> NearInvariant:
    r"""$\Pr(0) = (1 - a)/(1 + a)$, $a = e^{-\varepsilon/\Delta}$, so $\varepsilon = \Delta \ln((2 - \beta)/\beta)$; exactly.

    For several counts β is shared among them (a union bound).

    >>> print(geometric("1/20").budget)
    3.6636
    """
    share = _share(beta, counts)
    return NearInvariant(
        noise="geometric",
        beta=Fraction(beta),
        counts=counts,
        budget=Budget.log((2 - share) / share) * sensitivity,
        exact=counts == 1,
    )


def gaussian(beta: "Fraction | str", *, counts: int = 1, sensitivity: int = 1) -> NearInvariant:
    r"""$1/\Pr(0) = 1 + 2\sum_k x^{k^2}$ with $x = e^{-1/2\sigma^2}$ and $\rho^2 = \Delta^2/2\sigma^2$.

    The bisection is exact rational arithmetic with a bound of the tail, so the budget is never too small.

    >>> print(gaussian("1/20").budget)  # at σ² = 0.137
    3.6377
    """
    share = _share(beta, counts)
    most = 1 / (1 - share)
    low, high = Fraction(0), Fraction(1)
    for _ in range(BISECTION_DIGITS):
        middle = (low + high) / 2
        low, high = (middle, high) if _sum_above(middle) <= most else (low, middle)
    return NearInvariant(
        noise="discrete Gaussian",
        beta=Fraction(beta),
        counts=counts,
        budget=Budget.log(1 / low) * sensitivity**2,
        exact=False,
    )


def chance_unchanged(rho_squared: float) -> float:
    """Return the chance that discrete Gaussian noise of this ρ² (sensitivity 1) is 0.

    >>> round(chance_unchanged(3.6376), 4)
    0.95
    """
    return 1 / (1 + 2 * sum(exp(-rho_squared * k * k) for k in range(1, 200)))


def _sum_above(x: Fraction) -> Fraction:
    """Bound the sum over all integers from above: four terms, and a geometric series for the rest."""
    if x >= 1:
        return Fraction(10**9)
    terms = 1 + 2 * (x + x**4 + x**9)
    # k² ≥ 16 + 9 (k − 4) for k ≥ 4
    return terms + 2 * x**16 / (1 - x**9)


def _share(beta: "Fraction | str", counts: int) -> Fraction:
    value = Fraction(beta)
    if not 0 < value < 1 or counts < 1:
        raise InputError(
            f"beta = {value} for {counts} counts",
            why="beta is the chance that some count is changed, between 0 and 1, and there is at least one count",
            fix='give beta="1/20" and counts=1 or more',
        )
    return value / counts
