r"""Estimate a swapped cell without bias, with its variance, from public numbers only.

In a stratum of $n$ records let $u_i = 1$ when record $i$ truly lies in the cell's places (there are $n_t$ such records) and
let $w_i \ge 0$ be what it adds to the cell when shown there (1 for a household table, the number of such persons for a
person table, 0 outside the cell's held categories). The cell shows $N' = \sum_i w_i\, u_{g(i)}$ for the random
permutation $g$ of Algorithm 1. With $K$ the number of selected records (binomial, redrawn at 1), the joint law of
$(g(i), g(j))$ has five classes, so the first two moments of $N'$ are exact closed forms in
$W = \sum w_i$, $Q = \sum w_i^2$ and their parts over $u_i = 1$. $n$, $n_t$, $W$ and $Q$ are functions of the
invariants; the parts over $u_i = 1$ are estimated without bias from their swapped values.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLaw:
    """Probabilities of the joint moves of one record and of two records of a stratum."""

    moves: float  # q: a given record moves
    both_stay: float
    exchange: float  # i → j and j → i
    stay_and_go: float  # i stays, j → one given third record
    follow: float  # i → j and j → one given third record
    apart: float  # i and j → two given further records

    @property
    def stays(self) -> float:
        """Return 1 − q, the probability that a record stays."""
        return 1 - self.moves


@lru_cache(maxsize=1 << 16)
def pair_law(n: int, rate: Fraction) -> PairLaw:
    """Return the pair law of the PSA in a stratum of n records at swap rate p, in floats.

    >>> round(pair_law(2, Fraction(1, 2)).exchange, 12)
    0.5
    >>> pair_law(1, Fraction(1, 2)).moves
    0.0
    """
    from scipy import stats  # a second to import, and only tables with intervals need it

    p = float(rate)
    if n < 2 or p == 0.0:
        return PairLaw(moves=0.0, both_stay=1.0, exchange=0.0, stay_and_go=0.0, follow=0.0, apart=0.0)
    spread = 12 * np.sqrt(n * p * (1 - p)) + 12
    k = np.arange(max(0, int(n * p - spread)), min(n, int(n * p + spread) + 1) + 1, dtype=np.float64)
    weight = stats.binom.pmf(k, n, p)
    weight[k == 1] = 0.0
    weight /= weight.sum()
    pairs = weight * k * (k - 1) / (n * (n - 1))
    swapped = _two_cycles(k)
    one = np.divide(1.0, k - 1, out=np.zeros_like(k), where=k >= 2)
    third = max(n - 2, 1)
    return PairLaw(
        moves=float((weight * k).sum() / n),
        both_stay=float((weight * (n - k) * (n - k - 1)).sum() / (n * (n - 1))),
        exchange=float((pairs * swapped).sum()),
        stay_and_go=float((weight * (n - k) * k).sum() / (n * (n - 1)) / third) if n > 2 else 0.0,
        follow=float((pairs * (one - swapped)).sum() / third) if n > 2 else 0.0,
        apart=float((pairs * (1 - 2 * one + swapped)).sum() / (third * (n - 3))) if n > 3 else 0.0,
    )


def _two_cycles(k: Array) -> Array:
    """Return d(k−2)/d(k), the chance that two given points of a random derangement of k exchange places."""
    small = [0.0, 0.0]
    d = [1, 0]
    for m in range(2, 24):
        d.append(m * d[-1] + (-1) ** m)
        small.append(d[m - 2] / d[m])
    table = np.array(small)
    large = np.divide(1.0, k * (k - 1), out=np.zeros_like(k), where=k > 1)
    return np.where(k < len(table), table[np.minimum(k, len(table) - 1).astype(np.int64)], large)


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCells:
    """Cells of strata as arrays: one entry for each (stratum, cell)."""

    n: npt.NDArray[np.int64]  # records of the stratum
    places: Array  # n_t: records of the stratum that lie in the cell's places
    shown: Array  # N′, or its sum of squares
    weight: Array  # W: what the stratum would add if all its records lay there
    shown_squares: Array  # Σ w² over the records shown there
    squares: Array  # Q = Σ w²


def cell_shrinkage(n: npt.NDArray[np.int64], rate: Fraction) -> Array:
    """Return λ = q n/(n−1), by which a cell moves towards independence, for each stratum size.

    >>> cell_shrinkage(np.array([2]), Fraction(1, 2)).round(6).tolist()
    [1.0]
    """
    sizes, inverse = np.unique(n, return_inverse=True)
    values = np.array([pair_law(int(m), rate).moves * m / (m - 1) if m > 1 else 0.0 for m in sizes])
    result: Array = values[inverse]
    return result


def estimate(cells: StratumCells, rate: Fraction) -> tuple[Array, Array]:
    r"""Unbiased $\hat N = (N' - \lambda W n_t/n)/(1-\lambda)$ and its estimated variance, entry by entry.

    Where $|1 - \lambda|$ is nearly 0 (the swapped file holds no information on the cell) the variance is infinite.
    """
    lam = cell_shrinkage(cells.n, rate)
    share = np.divide(cells.places, cells.n, out=np.zeros_like(cells.places), where=cells.n > 0)
    known = np.abs(1 - lam) > 1e-9
    safe = np.where(known, 1 - lam, 1.0)
    value = np.where(known, (cells.shown - lam * cells.weight * share) / safe, cells.weight * share)
    squares = np.where(
        known, (cells.shown_squares - lam * cells.squares * share) / safe, cells.squares * share
    )
    inside = np.clip(value, 0.0, cells.weight)
    squares = np.clip(squares, 0.0, cells.squares)
    spread = variance(cells.n, cells.places, inside, cells.weight, squares, cells.squares, rate)
    return value, np.where(known, spread / np.square(safe), np.inf)


def variance(
    n: npt.NDArray[np.int64],
    places: Array,
    inside: Array,
    weight: Array,
    squares_inside: Array,
    squares: Array,
    rate: Fraction,
) -> Array:
    """Return the exact variance of N′ given the true parts (``inside`` = Σ w u, ``squares_inside`` = Σ w² u).

    >>> one = np.ones(1)
    >>> variance(np.array([2]), one, one, one, one, one, Fraction(1, 2)).round(6).tolist()  # stays or leaves, ½ each
    [0.25]
    """
    sizes, inverse = np.unique(n, return_inverse=True)
    laws = [pair_law(int(m), rate) for m in sizes]

    def each(name: str) -> Array:
        column: Array = np.array([getattr(item, name) for item in laws], dtype=np.float64)[inverse]
        return column

    q, both, exchange = each("moves"), each("both_stay"), each("exchange")
    go, follow, apart = each("stay_and_go"), each("follow"), each("apart")
    outside, squares_outside = weight - inside, squares - squares_inside
    others = np.maximum(n - 1, 1)
    stay = 1 - q * (n - places) / others
    come = q * places / others
    mean = inside * stay + outside * come
    one_one = both + exchange + 2 * (places - 2) * (go + follow) + (places - 2) * (places - 3) * apart
    one_zero = (places - 1) * (go + follow) + (places - 1) * (places - 2) * apart
    zero_zero = places * (places - 1) * apart
    second = squares_inside * stay + squares_outside * come
    second += (np.square(inside) - squares_inside) * one_one
    second += 2 * inside * outside * one_zero
    second += (np.square(outside) - squares_outside) * zero_zero
    result: Array = np.maximum(second - np.square(mean), 0.0)
    return result
