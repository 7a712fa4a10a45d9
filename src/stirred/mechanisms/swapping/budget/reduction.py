r"""The exact reduction for two hold (or two swap) types: $R_t = \Phi_{t+1}/\Phi_t$, as fractions and as intervals.

$\Phi_t = \sum_{k_1,k_2} w(k_1+k_2)\,A_1(k_1)A_2(k_2)$ with $A_i(k) = \binom{n_i-t}{k-t}\Delta(k,t)$: the weight of the
permutations that send t given records of each type to the other (proof.md, Theorem C). Large strata are summed in
double precision over a window; what lies outside is bounded by an envelope that splits into two one-dimensional
sums, and all terms are positive, so the rounding error is a proved multiple of the number of steps (Section 4).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.spec.laws.derangements import count_derangements

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
