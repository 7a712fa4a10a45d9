r"""Compute smaller budgets for strata with two hold types or two swap types, from the two margins $n_1 + n_2 = n$.

The margins are invariants, so a budget that depends on them may be published. Both bounds hold at every distance:
the closed form is half the paper's budget for large strata, the exact reduction is the best bound in (n₁, n₂, p).
Proofs: proof.md, Section 3 (Theorems C and D); the numerical part: Section 4.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np

from stirred.errors import InputError
from stirred.mechanisms.swapping.budget.by_size import (
    HALF,
    Rate,
    compute_odds,
    parse_rate,
    read_size,
    tight_budget,
)
from stirred.mechanisms.swapping.budget.reduction import Ratio, ratio_exact, ratio_interval
from stirred.spec.laws.derangements import count_derangements
from stirred.spec.numbers.budget import Budget

MAX_RATE_CLOSED = Fraction(2, 3)  # the swap rate up to which the closed form is proved (o ≤ 2)
MAX_RECORDS_IN_FRACTIONS = 24  # records up to which the reduction is evaluated in fractions
# Pairs to try in turn: how much of R_t may be lost between evaluated t, and how many t may be evaluated.
TOLERANCES = (
    (1e-7, 200),
    (1e-4, 200),
    (1e-2, 800),
    (2e-2, 1600),
    (5e-2, 1600),
    (0.1, 1600),
    (0.3, 1600),
    (0.9, 3200),
)
MAX_MARGIN_FOR_EVERY_T = 2000  # of the smaller margin
MAX_PRODUCTS_PER_ATTEMPT = 200_000_000  # for one attempt, in products
PRODUCTS_PER_EVALUATION = 100_000  # what one evaluation costs besides its products

TIGHT_CLOSED = "bound.tight.closed"  # keys of the catalog
TIGHT_REDUCTION = "bound.tight.reduction"


def _trivial_budget(n1: int, n2: int, p: Fraction) -> Budget | None:
    if read_size(n1) == 0 or read_size(n2) == 0:
        return Budget.zero()
    return Budget.infinite() if p in (0, 1) else None


@lru_cache(maxsize=1 << 16)
def _closed_budget(m: int, p: Fraction) -> Budget:
    o = compute_odds(p)
    return Budget.log(m / o + (1 + 2 / o) ** 2) * HALF


def margins_closed(n1: int, n2: int, rate: Rate) -> Budget:
    r"""Two types with margins n₁, n₂ and p ≤ 2/3: $\varepsilon \le \tfrac12\ln\bigl(m/o + (1+2/o)^2\bigr)$, m the larger.

    >>> [str(margins_closed(264330, 1, p).upper(2)) for p in ("1/100", "1/20", "1/10", "1/2")]
    ['8.55', '7.72', '7.35', '6.25']
    """
    p = parse_rate(rate)
    found = _trivial_budget(n1, n2, p)
    if found is not None:
        return found
    if p > MAX_RATE_CLOSED:
        raise InputError(
            f"the closed form for two types is not proved at a swap rate of {p}",
            why="its proof needs p ≤ 2/3",
            fix="use margins_exact, which holds at every rate",
        )
    return _closed_budget(max(n1, n2), p)


def margins_exact(n1: int, n2: int, rate: Rate) -> Budget:
    r"""Two types with margins n₁, n₂: $\varepsilon^* = \tfrac12\max_t|\ln R_t|$, rounded up and never down.

    Exact up to 24 records; beyond, a proved upper bound from intervals.

    >>> margins_exact(2, 2, "1/2").upper(3), margins_exact(163885, 100446, "1/2").upper(3)
    (Decimal('0.780'), Decimal('1.435'))
    """
    p = parse_rate(rate)
    found = _trivial_budget(n1, n2, p)
    return reduce_two_types(max(n1, n2), min(n1, n2), p).budget if found is None else found


@dataclass(frozen=True, slots=True)
class Reduction:
    """The bound of the exact reduction, and the work it took in products."""

    budget: Budget
    work: int


@lru_cache(maxsize=1 << 14)
def reduce_two_types(n1: int, n2: int, p: Fraction) -> Reduction:
    """Compute the exact reduction for n₁ ≥ n₂ ≥ 1 and 0 < p < 1.

    >>> reduce_two_types(1, 1, Fraction(1, 4)).budget.exact
    '1/2*ln(9)'
    """
    o = compute_odds(p)
    if n1 + n2 <= MAX_RECORDS_IN_FRACTIONS:
        ratios = [ratio_exact(n1, n2, o, t) for t in range(n2)]
        return Reduction(Budget.log(max(max(r, 1 / r) for r in ratios)) * HALF, 0)
    candidates = [tight_budget(n1 + n2, p)]
    if p <= MAX_RATE_CLOSED:
        candidates.append(_closed_budget(n1, p))
    least, work = _search_smallest_ratio(n1, n2, p)
    if least > 0:
        candidates.append(Budget.log(_round_up(max(1 / least, largest_ratio(n1, n2, p), 1.0))) * HALF)
    return Reduction(min(candidates), work)


def _round_up(value: float) -> Fraction:
    """Return a fraction of a dozen digits that is not below the double, whose reciprocal may be rounded down."""
    above = Fraction(value) * (1 + Fraction(1, 2**50))
    exponent = Decimal(value).adjusted() - 11
    unit = Fraction(10) ** exponent
    return ceil(above / unit) * unit


@dataclass(slots=True)
class _Search:
    """Search a lower bound on every R_t, t = 0 … min(n₁, n₂) − 1, with few evaluations."""

    n1: int
    n2: int
    p: Fraction
    tolerance: float
    most_evaluations: int
    known: dict[int, Ratio] = field(default_factory=dict)
    work: int = 0
    evaluations: int = 0

    def ratio(self, t: int) -> float:
        if t not in self.known:
            self.known[t] = ratio_interval(self.n1, self.n2, compute_odds(self.p), t)
            self.work += self.known[t].work + PRODUCTS_PER_EVALUATION
            self.evaluations += 1
        return self.known[t].low

    @property
    def affordable(self) -> bool:
        return self.work <= MAX_PRODUCTS_PER_ATTEMPT and self.evaluations <= self.most_evaluations

    def run(self) -> float:
        """Return the bound, or 0 if it would take too much work."""
        last = min(self.n1, self.n2) - 1
        least = min(self.ratio(0), self.ratio(last))
        t = 1
        while t < last:
            if not self.affordable:
                return 0.0
            here = self.ratio(t)
            least = min(least, here)
            floor = least * (1 - self.tolerance)
            if self.closed_from(t + 1) >= floor:
                break
            t += self.reach(t, here, floor) + 1
        return least * (1 - self.tolerance)

    def closed_from(self, t: int) -> float:
        """Return a lower bound on R of t and of all larger t, for t ≥ 1 and o ≤ 2 (Theorem D)."""
        if self.p > MAX_RATE_CLOSED:
            return 0.0
        o = float(compute_odds(self.p))
        n = self.n1 + self.n2
        return (1 - 1e-12) / ((1 + 2 / o) ** 2 + max(n - 2 * t - 2, 0) / ((t + 1) * o))

    def reach(self, t: int, ratio: float, floor: float) -> int:
        """Count the t beyond this one that keep R ≥ floor: (n₁−t)(n₂−t)R_t falls by at most κ_t a step (Theorem E)."""
        a, b = self.n1 - t, self.n2 - t
        kappa = (1 + 2 / (t + 1)) * (float(self.p) * (a + b - 2) + 4) * (1 + 1e-12)
        spare = (ratio - floor) * a * b * (1 - 1e-9)
        slope = floor * (a + b) - kappa
        # spare + slope·j − floor·j² ≥ 0 is concave in j, so it holds up to its larger root.
        root = (
            (slope + np.sqrt(slope * slope + 4 * floor * spare)) / (2 * floor)
            if slope >= 0
            else (2 * spare / (np.sqrt(slope * slope + 4 * floor * spare) - slope))
        )
        return max(0, int(root * (1 - 1e-9)))


def smallest_ratio(n1: int, n2: int, rate: Rate) -> float:
    """Return a proved lower bound on the smallest R_t, or 0 if too many must be evaluated.

    >>> 0.05678 < smallest_ratio(163885, 100446, "1/2") < 0.05679
    True
    """
    return _search_smallest_ratio(n1, n2, parse_rate(rate))[0]


def _search_smallest_ratio(n1: int, n2: int, p: Fraction) -> tuple[float, int]:
    known: dict[int, Ratio] = {}
    found, work = 0.0, 0
    every = min(n1, n2) if min(n1, n2) <= MAX_MARGIN_FOR_EVERY_T else 0
    for tolerance, most_evaluations in TOLERANCES:
        search = _Search(n1, n2, p, tolerance, max(most_evaluations, every), known)
        found = search.run()
        work += search.work
        if found > 0:
            break
    return found, work


def largest_ratio(n1: int, n2: int, rate: Rate) -> float:
    r"""Return a proved upper bound on the largest R_t.

    For t ≥ 1 it is at most $\max(1, r_{2t}, r_{2t}r_{2t+1})$, which exceeds 1 only up to t ≈ o/2; those are evaluated.

    >>> largest_ratio(500, 500, "1/2")
    1.0
    """
    o = compute_odds(parse_rate(rate))
    best = 1.0
    for t in range(min(n1, n2)):
        if t:
            first, second = _step_factor(2 * t, o), _step_factor(2 * t + 1, o)
            ahead = float(max(first, first * second)) * (1 + 1e-12)
            if ahead <= best:
                break  # the factors fall with t
            if t > 64:
                return max(best, ahead)
        best = max(best, min(ratio_interval(n1, n2, o, t).high, float(max(o * o, Fraction(1))) * (1 + 1e-12)))
    return best


def _step_factor(k: int, o: Fraction) -> Fraction:
    """Return r_k = o d(k)/d(k+1), or a slightly larger number beyond 60 moved records."""
    return o * count_derangements(k) / count_derangements(k + 1) if k <= 60 else o / k


def any_split(n: int, rate: Rate) -> Budget:
    """Return the closed form for two types in unknown proportion; the larger margin is at most n − 1.

    >>> str(any_split(264331, "1/2"))
    '6.2425'
    """
    return margins_closed(max(read_size(n) - 1, 0), 1 if n >= 2 else 0, rate)
