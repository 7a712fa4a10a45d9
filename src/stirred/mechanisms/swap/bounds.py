"""Compute every bound on the loss that applies to the strata of a census, and choose the claim."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations_with_replacement, product
from math import ceil, comb, inf, lcm, log, prod

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.kernels import compile_kernel
from stirred.languages import Phrase
from stirred.mechanisms.swap.budget import CHECKED_THEOREMS, read_size, theorem_1, tight_budget
from stirred.mechanisms.swap.strata import (
    MAX_RECORDS_WITH_MARGINS,
    Counts,
    Stratum,
    StratumTable,
    read_margins,
)
from stirred.spec.budgets import Bound, Budget
from stirred.spec.laws import (
    HALF,
    TIGHT_SIZE,
    TIGHT_THEOREM_1,
    Rate,
    compute_odds,
    count_derangements,
    parse_rate,
)

# The exact reduction for two hold (or two swap) types: $R_t = \Phi_{t+1}/\Phi_t$, as fractions and as intervals.
#
# $\Phi_t = \sum_{k_1,k_2} w(k_1+k_2)\,A_1(k_1)A_2(k_2)$ with $A_i(k) = \binom{n_i-t}{k-t}\Delta(k,t)$: the weight of
# the permutations that send t given records of each type to the other (proof.md, Theorem C). Large strata are summed
# in double precision over a window; what lies outside is bounded by an envelope that splits into two one-dimensional
# sums, and all terms are positive, so the rounding error is a proved multiple of the number of steps (Section 4).

Floats = NDArray[np.float64]
MAX_DIRECT_PRODUCTS = (
    1_000_000  # products of a convolution that is summed directly; beyond, by fast transform
)
WINDOW_CUTOFF = 1e-12  # window edges, relative to the peak; the tail bound makes any value rigorous
# d(k+1)/d(k) for k = 2 … 29; from k = 30 on it is k+1 in double precision.
GROWTH_RATIOS = np.array(
    [0.0, 0.0] + [count_derangements(k + 1) / count_derangements(k) for k in range(2, 30)]
)


@cache
def partial_derangements(k: int, t: int) -> int:
    r"""Permutations of k points that fix none of k−t given points: $\Delta(k,t) = \sum_j (-1)^j \binom{k-t}{j} (k-j)!$.

    >>> partial_derangements(4, 0), partial_derangements(4, 4), partial_derangements(3, 1)
    (9, 24, 3)
    """
    if k == t:
        return k * partial_derangements(k - 1, k - 1) if k else 1
    # One given point fewer to avoid: Δ(k, t+1) = Δ(k, t) + Δ(k−1, t).
    return partial_derangements(k, t + 1) - partial_derangements(k - 1, t)


@lru_cache(maxsize=1 << 14)
def ratio_exact(n1: int, n2: int, o: Fraction, t: int) -> Fraction:
    """Return R_t as a fraction, for strata of a few dozen records.

    >>> ratio_exact(1, 1, Fraction(1, 3), 0)
    Fraction(1, 9)
    """
    return phi_exact(n1, n2, o, t + 1) / phi_exact(n1, n2, o, t)


@lru_cache(maxsize=1 << 14)
def phi_exact(n1: int, n2: int, o: Fraction, t: int) -> Fraction:
    """Return Φ_t as a fraction.

    >>> phi_exact(1, 1, Fraction(1, 3), 1)
    Fraction(1, 9)
    """
    by_moved: dict[int, int] = {}
    for k1 in range(t, n1 + 1):
        first = comb(n1 - t, k1 - t) * partial_derangements(k1, t)
        for k2 in range(t, n2 + 1):
            term = first * comb(n2 - t, k2 - t) * partial_derangements(k2, t)
            by_moved[k1 + k2] = by_moved.get(k1 + k2, 0) + term
    return sum((Fraction(c, count_derangements(k)) * o**k for k, c in by_moved.items() if c), Fraction(0))


@dataclass(frozen=True, slots=True)
class Ratio:
    """An interval that holds R_t, and the work it took (products of the convolution)."""

    low: float
    high: float
    work: int


@compile_kernel
def _growth(k: int, t: int, psi: float, steps: Floats) -> float:
    """Return ψ(k) = Δ(k+1,t)/Δ(k,t) from ψ(k−1) as k + (k−t)/ψ(k−1), or d(k+1)/d(k) for t = 0."""
    if t == 0:
        return steps[k] if k < 30 else k + 1.0
    return k + (k - t) / psi if k > t else float(t)


@compile_kernel
def _sequence(
    n: int, t: int, r: float, start: int, cutoff: float, steps: Floats, out: Floats
) -> tuple[int, int]:
    """Fill out[k] = A(k) r^k from 1 at ``start`` while it exceeds cutoff × its peak; return the window's ends."""
    floor = 2 if t == 0 else t
    # the effect of the starting value of ψ falls by a factor of at least k at every step.
    warm = max(floor, start - 64)
    psi = warm + (warm - t) / warm if warm > floor or t == 0 else float(t)
    for k in range(warm, start):
        psi = _growth(k, t, psi, steps)
    out[start] = 1.0
    peak = 1.0
    high = start
    for k in range(start, n):
        psi = _growth(k, t, psi, steps)
        out[k + 1] = out[k] * (r * (n - k) * psi / (k + 1 - t))
        high = k + 1
        peak = max(peak, out[k + 1])
        if out[k + 1] < cutoff * peak:
            break
    low = start
    # Downwards the recursion for ψ is unstable, so it is started again in chunks below the window.
    chunk = 256
    buffer = np.empty(chunk)
    top = start
    done = False
    while top > floor and not done:
        bottom = max(floor, top - chunk)
        warm = max(floor, bottom - 64)
        psi = warm + (warm - t) / warm if warm > floor or t == 0 else float(t)
        for k in range(warm, top):
            psi = _growth(k, t, psi, steps)
            if k >= bottom:
                buffer[k - bottom] = psi
        for k in range(top - 1, bottom - 1, -1):
            out[k] = out[k + 1] * ((k + 1 - t) / (r * (n - k) * buffer[k - bottom]))
            low = k
            peak = max(peak, out[k])
            if out[k] < cutoff * peak:
                done = True
                break
        top = bottom
    if t == 0 and low == 2:
        out[1] = 0.0
        out[0] = out[2] / (r * r * (n * (n - 1.0) / 2.0)) if n >= 2 else 1.0
        low = 0
    return low, high


@compile_kernel
def _weights(o: float, r: float, centre: int, low: int, high: int, steps: Floats) -> Floats:
    """Return w(k) r^{−k} for k = low … high, scaled to 1 at the centre; w is log-concave, so all are at most 1."""
    out = np.zeros(high - low + 1)
    value = 1.0
    for k in range(centre, high + 1):
        if k >= low:
            out[k - low] = value
        value *= o / ((steps[k] if k < 30 else k + 1.0) * r)
    value = 1.0
    for k in range(centre - 1, max(low, 2) - 1, -1):
        value *= (steps[k] if k < 30 else k + 1.0) * r / o
        if k <= high:
            out[k - low] = value
    if low == 0:
        at_two = value if centre > 2 else 1.0
        out[0] = at_two * (r / o) * (r / o)
    return out


def _find_modes(n1: int, n2: int, o: float, t: int) -> tuple[int, int]:
    """Return the approximate position of the largest term; only speed depends on it."""
    p = o / (1 + o)
    k1, k2 = t + p * (n1 - t), t + p * (n2 - t)
    for _ in range(60):
        total = max(k1 + k2, 1e-9)
        o1, o2 = o * k1 / total, o * k2 / total
        k1, k2 = (t + o1 * n1) / (1 + o1), (t + o2 * n2) / (1 + o2)
    floor = 2 if t == 0 else t
    return min(n1, max(floor, round(k1))), min(n2, max(floor, round(k2)))


def ratio_interval(n1: int, n2: int, o: Fraction, t: int) -> Ratio:
    r"""Return two doubles that enclose R_t, both proved (proof.md, Section 4).

    >>> found = ratio_interval(12, 9, Fraction(1, 3), 2)
    >>> found.low <= ratio_exact(12, 9, Fraction(1, 3), 2) <= found.high
    True
    """
    x = float(o)
    starts = _find_modes(n1, n2, x, t)
    centre = max(2, sum(starts))
    r = x / (GROWTH_RATIOS[centre] if centre < 30 else centre + 1.0)
    sides = [_compute_side(n, t, r, start) for n, start in zip((n1, n2), starts, strict=True)]
    (a1, b1, lo1, tail1), (a2, b2, lo2, tail2) = sides
    low = lo1 + lo2
    weights = _weights(x, r, centre, low, low + b1.size + b2.size - 2, GROWTH_RATIOS)
    den, den_error = _sum_weighted(a1, a2, weights)
    num, num_error = _sum_weighted(b1, b2, weights)
    s1, s2 = float(a1.sum()), float(a2.sum())
    tail = 1.01 * (tail1 * (s2 + tail2) + s1 * tail2)
    slack = 64 * (a1.size + a2.size + 200) * 2.0**-52
    most = max(1.0, x * x)  # X ≤ max(1, o²)
    least_den = (den - den_error) * (1 - slack)
    return Ratio(
        low=max(0.0, num - num_error) * (1 - slack) / ((den + den_error + tail) * (1 + slack)),
        high=(num + num_error + most * tail) * (1 + slack) / least_den if least_den > 0 else np.inf,
        work=min(a1.size * a2.size, 64 * (a1.size + a2.size)),
    )


def _sum_weighted(a: Floats, b: Floats, weights: Floats) -> tuple[float, float]:
    """Return Σ_k weights[k] (a ∗ b)[k] and a bound on the rounding error of the transform."""
    size = a.size + b.size - 1
    if a.size * b.size <= MAX_DIRECT_PRODUCTS:
        return float(np.convolve(a, b) @ weights[:size]), 0.0
    length = 1 << (size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(a, length) * np.fft.rfft(b, length), length)[:size]
    # A transform errs by at most 8 log₂N · u in the 2-norm; twice there and once back, then Cauchy–Schwarz; ten times that.
    step = 8 * np.log2(length) * 2.0**-53
    error = 30 * step * np.sqrt(length) * float(np.linalg.norm(a)) * float(b.sum())
    return float(product @ weights[:size]), float(error)


def _compute_side(n: int, t: int, r: float, start: int) -> tuple[Floats, Floats, int, float]:
    """Return A_i(k) r^k on its window, the same for t+1, the window's start, and a bound on what lies outside."""
    if n == 1 and t == 0:  # Δ(1, 0) = 0: a single record cannot move
        return np.array([1.0]), np.array([0.0, r]), 0, 0.0
    out = np.zeros(n + 1)
    low, high = _sequence(n, t, r, start, WINDOW_CUTOFF, GROWTH_RATIOS, out)
    a = out[low : high + 1]
    k = np.arange(low, high + 1, dtype=np.float64)
    b = np.zeros(a.size + 1)
    b[:-1] = (k - t) / (n - t) * a
    b[1:] += (n - k) / (n - t) * (r * a)
    if high == n:
        b = b[:-1]  # the last entry is 0: no record is left to add
    return a, b, low, _bound_tails(n, t, r, low, high, a)


def _bound_tails(n: int, t: int, r: float, low: int, high: int, a: Floats) -> float:
    """Return geometric bounds on both tails, infinite where the window is too narrow for one."""
    total = 0.0
    if high < n:
        # t ≥ 1: ψ(k) ≤ k+1, so the ratio of terms falls. t = 0: A(j)/A(high) = (d(j)/j!) (high!/d(high)) ∏(n−i) ≤ 1.5 ∏.
        ratio = r * (n - high) * (1.0 if t == 0 else (high + 1) / (high + 1 - t))
        total += (1.5 if t == 0 else 1.0) * a[-1] * ratio / (1 - ratio) if ratio < 1 else np.inf
    if low > (0 if t == 0 else t):
        # t ≥ 1: ψ(k−1) ≥ k−1, so the ratio falls downwards too. t = 0: as above with d(j)/j! ≤ 1 and low!/d(low) ≤ 3.
        ratio = (1.0 if t == 0 else (low - t) / (low - 1)) / (r * (n - low + 1))
        total += (3.0 if t == 0 else 1.0) * a[0] * ratio / (1 - ratio) if ratio < 1 else np.inf
    return float(total)


# Compute smaller budgets for strata with two hold types or two swap types, from the two margins $n_1 + n_2 = n$.
#
# The margins are invariants, so a budget that depends on them may be published. Both bounds hold at every distance:
# the closed form is half the paper's budget for large strata, the exact reduction is the best bound in (n₁, n₂, p).
# Proofs: proof.md, Section 3 (Theorems C and D); the numerical part: Section 4.

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


# Bound the loss of strata with three or more types by exchanges of two records, from the margins.
#
# Two data sets of one universe are joined by exchanges of two records inside it, so that
# $\varepsilon \le (2 - 2/r)\,\varepsilon_2$: r is the smaller number of types, $\varepsilon_2$ the largest loss per
# unit at distance 2. One exchange moves the numbers t of values that leave each type by at most one in two types,
# hence $2\varepsilon_2 \le \max|\ln\Phi(t')/\Phi(t)|$ with
# $\Phi(t) = \sum_k w(\sum k_h)\prod_h\binom{n_h-t_h}{k_h-t_h}\Delta(k_h,t_h)$. Proofs: proof.md, Theorems N and O.

MAX_STATES_PER_STRATUM = 3_000  # vectors t for one stratum, up to the order of types of equal size
MAX_RATIO_DIGITS = 60  # of an exact ratio; a longer one is rounded up

Margins = tuple[int, ...]
State = tuple[Margins, ...]  # for each size of a type, largest first: the t of its types in descending order

TIGHT_EXCHANGES = "bound.tight.exchanges"  # a key of the catalog


@dataclass(frozen=True, slots=True)
class ExchangeBound:
    """The bound of one stratum, and the number of vectors t that were evaluated."""

    budget: Budget
    work: int


def bound_by_exchanges(
    hold_margins: Sequence[int] | None,
    swap_margins: Sequence[int] | None,
    rate: Rate,
    *,
    below: Budget | None = None,
    nearest: bool = False,
) -> ExchangeBound | None:
    r"""A stratum with given margins: $\varepsilon \le (1 - 1/r)\max|\ln\Phi(t')/\Phi(t)|$, the smaller of both sides.

    A side that is not known is left out. None where no side can be evaluated, or where neither bound is ``below``.
    ``nearest``: only at distance 2, one exchange, where $1 - 1/r$ is ½.

    >>> str(bound_by_exchanges((3, 1, 1), (2, 2, 1), "9/10").budget.upper(3))
    '0.692'
    """
    sides = {tuple(sorted(side, reverse=True)) for side in (hold_margins, swap_margins) if side is not None}
    p = parse_rate(rate)
    if any(len(side) < 2 for side in sides):
        return ExchangeBound(Budget.zero(), 0)
    if not sides or p in (0, 1):
        return None
    share = HALF if nearest else 1 - Fraction(1, min(len(side) for side in sides))
    stop = inf if below is None or not below.is_finite else float(below.upper(9)) / float(share)
    looked = [
        _largest_exchange_ratio(side, compute_odds(p), stop) for side in sorted(sides) if _is_affordable(side)
    ]
    ratios = [ratio for ratio, _ in looked if ratio is not None]
    if not ratios:
        return None
    return ExchangeBound(Budget.log(min(ratios)) * share, sum(work for _, work in looked))


def count_states(margins: Sequence[int]) -> int:
    """Count the vectors t, taking types of equal size together.

    >>> count_states((2, 2, 1))
    12
    """
    return prod(comb(size + types, types) for size, types in Counter(margins).items())


def _is_affordable(margins: Margins) -> bool:
    return sum(margins) <= MAX_RECORDS_WITH_MARGINS and count_states(margins) <= MAX_STATES_PER_STRATUM


def phi(margins: Sequence[int], leaving: Sequence[int], o: Fraction) -> Fraction:
    r"""Φ(t): the weight of the permutations that send given $t_h$ values out of each type to given types.

    >>> phi((1, 1), (1, 1), Fraction(1, 3))
    Fraction(1, 9)
    """
    by_moved = [1]
    for size, t in zip(margins, leaving, strict=True):
        own = _series(size, t)
        joined = [0] * (len(by_moved) + size)
        for i, a in enumerate(by_moved):
            for j, b in enumerate(own):
                joined[i + j] += a * b
        by_moved = joined
    return sum((c * o**k / count_derangements(k) for k, c in enumerate(by_moved) if c), Fraction(0))


def _series(size: int, t: int) -> list[int]:
    """Return C(size − t, k − t) Δ(k, t) for k = 0 … size."""
    return [comb(size - t, k - t) * partial_derangements(k, t) if k >= t else 0 for k in range(size + 1)]


@lru_cache(maxsize=1 << 12)
def _largest_exchange_ratio(margins: Margins, o: Fraction, stop: float) -> tuple[Fraction | None, int]:
    """Return the largest ratio of Φ at two vectors that one exchange joins, and the number evaluated.

    None as soon as the logarithm of a ratio exceeds ``stop``. Floats choose the candidates; integers decide.
    """
    sizes = tuple(sorted(Counter(margins).items(), reverse=True))
    phis = _Phis(sizes, o)
    best, where = 0.0, (1, 1)
    for state in phis.states():
        own = phis.log(state)
        for other in _list_earlier(state):
            if is_possible(other):
                gap = abs(own - phis.log(other))
                if gap > stop + 1e-9:
                    return None, len(phis.values)
                if gap >= best - 1e-9:
                    high, low = phis.values[state], phis.values[other]
                    high, low = (high, low) if high > low else (low, high)
                    if high * where[1] > where[0] * low:
                        where = (high, low)
                    best = max(best, gap)
    return _round_ratio(Fraction(*where)), len(phis.values)


def is_possible(state: Sequence[Sequence[int]]) -> bool:
    """Return whether the vector t can occur: no t exceeds the sum of the others.

    >>> is_possible([(0, 1, 1)]), is_possible([(0, 1, 2)])
    (True, False)
    """
    every = [t for group in state for t in group]
    return 2 * max(every) <= sum(every)


class _Phis:
    """Compute Φ of every state, times one common denominator, when it is needed.

    Polynomials are packed into whole numbers, so that one multiplication of these multiplies them.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], o: Fraction) -> None:
        n = sum(size * types for size, types in sizes)
        self.sizes = sizes
        # all coefficients together are at most 2^n n!: moved sets, and permutations of each
        self.width = n + n * n.bit_length() + 1
        common = lcm(*(count_derangements(k) for k in range(n + 1) if k != 1))
        self.weights = [
            common // count_derangements(k) * o.numerator**k * o.denominator ** (n - k) if k != 1 else 0
            for k in range(n + 1)
        ]
        self.packed = [
            [sum(c << (self.width * k) for k, c in enumerate(_series(size, t))) for t in range(size + 1)]
            for size, _ in sizes
        ]
        self.values: dict[State, int] = {}
        self.logs: dict[State, float] = {}

    def states(self) -> Iterator[State]:
        """Iterate over the states that can occur, those with the most leaving values first."""
        groups = [combinations_with_replacement(range(size, -1, -1), types) for size, types in self.sizes]
        return filter(is_possible, product(*groups))

    def log(self, state: State) -> float:
        """Return ln Φ of a state, up to a constant."""
        if state not in self.logs:
            total = prod(numbers[t] for numbers, ts in zip(self.packed, state, strict=True) for t in ts)
            value, mask = 0, (1 << self.width) - 1
            for weight in self.weights:
                value += (total & mask) * weight
                total >>= self.width
            self.values[state] = value
            self.logs[state] = log(value)
        return self.logs[state]


def _list_earlier(state: State) -> set[State]:
    """Return the states with one t, or two t of different types, smaller by one."""
    found = set()
    for i, t in _list_lowerable(state):
        once = _lower_state(state, i, t)
        found.add(once)
        for j, u in _list_lowerable(state):
            if (i, t) != (j, u) or state[i].count(t) > 1:
                found.add(_lower_state(once, j, u))
    return found


def _list_lowerable(state: State) -> set[tuple[int, int]]:
    return {(i, t) for i, ts in enumerate(state) for t in ts if t}


def _lower_state(state: State, i: int, t: int) -> State:
    """Return the state in which one type of group i with t leaving values has one fewer."""
    ts = list(state[i])
    ts.remove(t)
    return (*state[:i], tuple(sorted((*ts, t - 1), reverse=True)), *state[i + 1 :])


def _round_ratio(ratio: Fraction) -> Fraction:
    """Return the ratio, or a slightly larger one of 15 digits if it is too long to print."""
    if max(ratio.numerator, ratio.denominator) < 10**MAX_RATIO_DIGITS:
        return ratio
    exponent = Decimal(ratio.numerator // ratio.denominator).adjusted() - 14
    unit = Fraction(10) ** exponent
    return ceil(ratio / unit) * unit


# Compute the budget of a whole census: every bound that applies to its strata, with its name, proof and sharpness.
#
# Strata are swapped independently, so the loss per unit is the largest over strata, and each stratum may use the
# smallest bound proved for it. Sizes and margins are invariants: nothing here costs anything to publish.

MAX_PRODUCTS = 1_000_000_000  # products spent on exact reductions; strata left over keep their closed bound
MAX_STATES = 10_000  # vectors t spent on strata with three and more types; strata left over keep Theorem B


def bound_exchange(strata: StratumTable, rate: Rate) -> Budget:
    """Return what one exchange of two records loses at most: twice the least bound per changed record at distance 2.

    >>> str(bound_exchange(StratumTable.of([Stratum(n=264331, hold_types=9, swap_types=9)]), "1/20").upper(2))
    '30.86'
    """
    return claim(bounds(strata, rate, nearest=True)).budget * 2


def bounds(
    strata: StratumTable | Iterable[Stratum], rate: Rate, *, nearest: bool = False
) -> tuple[Bound, ...]:
    """Return every bound that applies, the paper's first; ``claim`` chooses the smallest proved one.

    ``nearest``: at distance 2 only, the smallest at which data sets of a universe differ.

    >>> [b.name for b in bounds([Stratum(n=264331, hold_types=2, swap_types=14)], "1/2")]
    ['Theorem 1', 'largest loss by size', 'two types, closed form']
    """
    p = parse_rate(rate)
    columns = StratumTable.of(strata)
    kinds = columns.kinds()
    if not len(kinds):
        return (
            Bound(
                name=Phrase("bound.nothing"),
                budget=Budget.zero(),
                source=Phrase("bound.source.nothing"),
                tight=Phrase("bound.tight.every"),
            ),
        )
    b = int(kinds[:, 0].max())
    found = [
        Bound(
            name=Phrase("bound.theorem_1"),
            budget=theorem_1(b, p),
            source=Phrase("checked.theorem_1", b=b, name=CHECKED_THEOREMS["A"]),
            tight=Phrase(TIGHT_THEOREM_1),
        ),
        Bound(
            name=Phrase("bound.size"),
            budget=tight_budget(b, p),
            source=Phrase("checked.theorem", letter="B", name=CHECKED_THEOREMS["B"]),
            tight=Phrase(TIGHT_SIZE),
        ),
    ]
    if 0 < p < 1 and bool((kinds[:, 1:] != 0).any()):
        found += _bound_two_types(kinds, p)
    if 0 < p < 1:
        known = min(bound.budget for bound in found)
        found += _bound_many_types(columns.list_many_types(), kinds, p, known, nearest=nearest)
    return tuple(found)


def claim(found: Iterable[Bound]) -> Bound:
    """Return the smallest proved bound, the earlier one on a tie; if none is proved, the first bound.

    >>> str(claim(bounds([Stratum(n=10, hold_types=4, swap_types=4)], "1/2")).budget)
    '2.2500'
    """
    every = tuple(found)
    proved = [bound for bound in every if bound.status == "proved"]
    return min(proved, key=lambda bound: bound.budget) if proved else every[0]


def _bound_two_types(kinds: Counts, p: Fraction) -> list[Bound]:
    order, upper = _order_by_bound(kinds, p)
    result = []
    if p <= MAX_RATE_CLOSED:
        # Floats order the strata much better than to 1e-9, so the exact maximum is among these.
        near = [i for i in order[:4096] if upper[i] >= upper[order[0]] - 1e-9]
        result.append(
            Bound(
                name=Phrase("bound.closed"),
                budget=max(_cheap_bound(*map(int, kinds[i]), p) for i in near),
                source=Phrase("bound.source.closed"),
                tight=Phrase(TIGHT_CLOSED),
            )
        )
    if bool((kinds[:, 1:] > 0).any()):
        result.append(
            Bound(
                name=Phrase("bound.reduction"),
                budget=_bound_by_reduction(kinds, order, upper, p),
                source=Phrase("bound.source.reduction"),
                tight=Phrase(TIGHT_REDUCTION),
            )
        )
    return result


def _bound_by_reduction(kinds: Counts, order: Counts, upper: NDArray[np.float64], p: Fraction) -> Budget:
    """Return the largest over strata of the smallest two-type bound, evaluating only strata that may decide."""
    best, left = Budget.zero(), MAX_PRODUCTS
    for i in order:
        if upper[i] + 1e-9 <= float(best.lower(9)):
            break
        n, hold, swap = map(int, kinds[i])
        value = _cheap_bound(n, hold, swap, p)
        if value <= best:
            continue
        for m in (hold, swap):
            if m > 0 and left > 0:
                found = reduce_two_types(max(m, n - m), min(m, n - m), p)
                left -= found.work
                value = min(value, found.budget)
        best = max(best, value)
    return best


def _bound_many_types(
    many: list[tuple[int, str]], kinds: Counts, p: Fraction, known: Budget, *, nearest: bool
) -> list[Bound]:
    """Return the bound for three or more types if it is smaller than all others, else an empty list."""
    if not many or not many[0][1]:
        return []  # the largest of them decides, and only Theorem B is known for it
    two = kinds[(kinds[:, 1:] != 0).any(axis=1)]
    best, left = (
        _bound_by_reduction(two, *_order_by_bound(two, p), p) if len(two) else Budget.zero(),
        MAX_STATES,
    )
    for n, text in many:
        value = tight_budget(n, p)
        if value <= best:
            break
        if best >= known:
            return []
        found = (
            bound_by_exchanges(*read_margins(text), p, below=value, nearest=nearest)
            if text and left > 0
            else None
        )
        if found is not None:
            left -= found.work
            value = min(value, found.budget)
        best = max(best, value)
    if best >= known:
        return []
    return [
        Bound(
            name=Phrase("bound.exchanges"),
            budget=best,
            source=Phrase("bound.source.exchanges"),
            tight=Phrase(TIGHT_EXCHANGES),
        )
    ]


def _order_by_bound(kinds: Counts, p: Fraction) -> tuple[Counts, NDArray[np.float64]]:
    """Order the kinds of strata by their cheap bound in doubles; return the order and the bounds."""
    o = float(compute_odds(p))
    n = kinds[:, 0].astype(np.float64)
    table = np.array([float(tight_budget(k, p).upper(12)) for k in range(8)])
    size = np.maximum(np.log(o), 0.5 * np.log(np.maximum(n * (n - 1) + 1, 1)) - np.log(o))
    size = np.where(n < 8, table[np.minimum(kinds[:, 0], 7)], size)
    if p <= MAX_RATE_CLOSED:
        margins = np.where(kinds[:, 1:] < 0, n[:, None] - 1, kinds[:, 1:].astype(np.float64))
        m = np.where(margins > 0, margins, np.inf).min(axis=1)
        size = np.minimum(size, 0.5 * np.log(m / o + (1 + 2 / o) ** 2))
    return np.argsort(-size, kind="stable"), size


@lru_cache(maxsize=1 << 14)
def _cheap_bound(n: int, hold: int, swap: int, p: Fraction) -> Budget:
    """Return the smaller of Theorem B and, for two types, Theorem D."""
    best = tight_budget(n, p)
    if p <= MAX_RATE_CLOSED:
        for margin in (hold, swap):
            if margin:
                m = margin if margin > 0 else n - 1
                best = min(best, margins_closed(m, max(n - m, 1), p))
    return best
