r"""The protection loss budget of the Permutation Swapping Algorithm from a stratum's size and the swap rate.

A permutation that moves k of n records is drawn with probability $c\,w(k)$, $w(k) = o^k/d(k)$, $o = p/(1-p)$, and
two data sets at distance Δ ≥ 2 turn a permutation that moves k records into one that moves k′, |k − k′| ≤ Δ. So a
stratum loses at most $\ln(w(k)/w(k'))/\Delta$ per record: the paper's Theorem 1 bounds it, ``tight_budget`` maximises it.
Both are laws of the size alone and stand in ``spec/laws.py``, where specifications compare them.
Every function here rounds only upwards. Proofs: proof.md, Sections 1 and 2.
"""

from fractions import Fraction
from typing import Any

from stirred._support import ModuleOnDemand
from stirred.errors import BudgetError, InputError
from stirred.spec.budgets import Budget
from stirred.spec.laws import (
    HALF,
    Rate,
    SizeLaw,
    compute_odds,
    generate_losses,
    parse_rate,
)

mpmath: Any = ModuleOnDemand("mpmath")  # a command that only shows its help does without
# theorems of proof.md, by their names in formal/: Coq checks them
CHECKED_THEOREMS = {"A": "theorem1", "B": "theoremB"}
SHARPNESS = (
    "with four or more hold and four or more swap types in a stratum no bound in n and p can be much smaller: margins "
    "(1, 1, m, m) on both sides lose exactly ½ ln(d(n)/d(n−2)) − ln o, so Theorem 1 is asymptotically sharp"
)


def read_size(b: int) -> int:
    """Return the size of a stratum, or raise an error if it is no count of records.

    >>> read_size(10)
    10
    """
    if isinstance(b, bool) or not isinstance(b, int):
        raise InputError(
            "a stratum size is a whole number", why=f"it is of type {type(b).__name__}", fix="give an integer"
        )
    if b < 0:
        raise InputError(f"a stratum cannot hold {b} records", why="it counts records", fix="give 0 or more")
    return b


def theorem_1(b: int, rate: Rate) -> Budget:
    r"""The paper's Theorem 1: $\max\{\ln o,\ \ln(b+1) - \ln o\}$; 0 if b = 0, ∞ if p is 0 or 1.

    >>> theorem_1(264331, "1/100").exact, theorem_1(264331, "1/100").upper()
    ('ln(26168868)', Decimal('17.080082'))
    """
    return SizeLaw("theorem-1", rate).at(read_size(b))


def tight_budget(b: int, rate: Rate) -> Budget:
    r"""Return the largest loss per unit of any stratum of at most b records.

    $\max\{\ln o,\ \tfrac12\ln\frac{d(b)}{d(b-2)} - \ln o\}$;
    exact up to 60 records and at b = 3, where d(1) = 0 spoils the formula; above 60, d(b)/d(b−2) ≤ b(b−1)+1.

    >>> tight_budget(264331, "1/100").upper(), tight_budget(3, "1/2").exact
    (Decimal('17.080076'), '1/2*ln(2)')
    """
    return SizeLaw("by-size", rate).at(read_size(b))


def largest_loss(n: int, rate: Rate) -> Budget:
    r"""The same by brute force: the maximum of $\ln(w(k)/w(k'))/\max(2, |k-k'|)$ over k, k′ in {0, 2, …, n}.

    >>> largest_loss(10, "1/20") == tight_budget(10, "1/20")
    True
    """
    n, p = read_size(n), parse_rate(rate)
    if n <= 1:
        return Budget.zero()
    if p in (0, 1):
        return Budget.infinite()
    return max(Budget.log(ratio) * Fraction(1, apart) for ratio, apart in generate_losses(n, compute_odds(p)))


def smallest_budget(b: int) -> tuple[Budget, Fraction]:
    r"""Return the smallest ε of Theorem 1 and, to six decimals, the swap rate that reaches it.

    $\tfrac12\ln(b+1)$ at $p = \sqrt{b+1}/(\sqrt{b+1}+1)$.

    >>> smallest_budget(10)[0].upper(2), float(smallest_budget(10)[1])
    (Decimal('1.20'), 0.768338)
    """
    if read_size(b) <= 1:
        return Budget.zero(), Fraction(1, 2)
    with mpmath.workdps(60):
        root = mpmath.sqrt(b + 1)
        rate = Fraction(int(mpmath.nint(root / (root + 1) * 10**6)), 10**6)
    return Budget.log(b + 1) * HALF, rate


def rates_for(b: int, epsilon: Budget | Rate, *, decimals: int = 6) -> tuple[Fraction, Fraction]:
    r"""Return the two swap rates that reach ε by Theorem 1, rounded inward so that every rate between keeps it.

    $(b+1)e^{-\varepsilon} \le o \le e^{\varepsilon}$; each end is checked again with exact budgets.

    >>> [float(rate) for rate in rates_for(10, 3)]
    [0.353863, 0.952574]
    """
    b, target = read_size(b), Budget.of(epsilon)
    if b <= 1 or not target.is_finite:
        return Fraction(0), Fraction(1)
    least, at = smallest_budget(b)
    if target < least:
        raise BudgetError(
            f"no swap rate gives a stratum of {b} records ε = {target}",
            why=f"the smallest is {least} (about {least.upper(2)}), "
            f"at a swap rate of {float(at):.6f} ({_write_percent(at)}%)",
            fix=f"ask for ε ≥ {least.upper(6)}, or match on more variables so that strata are smaller",
        )
    while decimals <= 60:
        low, high = _round_inward(b, target, decimals)
        if low <= high:
            return low, high
        decimals += 6  # near the minimum the two rates are closer than the grid
    raise BudgetError(
        f"the two swap rates for ε = {target} agree to 60 decimals",
        why="numbers this close cannot be distinguished",
        fix="ask for a slightly larger ε",
    )


def _write_percent(rate: Fraction) -> str:
    """Write the rate with as few decimals as distinguish it from 100 %."""
    for places in range(4):
        if (text := f"{float(rate * 100):.{places}f}") != f"{100:.{places}f}":
            return text
    return f"{float(rate * 100):.6f}"


def _round_inward(b: int, target: Budget, decimals: int) -> tuple[Fraction, Fraction]:
    """Return the smallest and largest rate on a decimal grid whose exact budget does not exceed the target."""
    grid = 10**decimals
    with mpmath.workdps(decimals + 40):
        epsilon = mpmath.mpf(str(target.upper(decimals + 30)))
        low_odds, high_odds = (b + 1) * mpmath.exp(-epsilon), mpmath.exp(epsilon)
        low = int(mpmath.floor(low_odds / (1 + low_odds) * grid)) - 1
        high = int(mpmath.ceil(high_odds / (1 + high_odds) * grid)) + 1
    low, high = max(low, 1), min(high, grid - 1)
    # The guesses are one step too wide on purpose; exact comparison decides.
    while low <= high and not _keeps_target(b, Fraction(low, grid), target):
        low += 1
    while high >= low and not _keeps_target(b, Fraction(high, grid), target):
        high -= 1
    return Fraction(low, grid), Fraction(high, grid)


def _keeps_target(b: int, p: Fraction, target: Budget) -> bool:
    return theorem_1(b, p) <= target
