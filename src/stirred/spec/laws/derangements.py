r"""Derangement numbers d(k), and bounds on their ratios that need no large integers.

$d(k) = k\,d(k-1) + (-1)^k$ counts the permutations of k records that leave none in place; d(0) = 1, d(1) = 0.
The laws of a swap's budget need only ratios, and these are close to rational functions of k
(mechanisms/swapping/proof.md, Section 1).
"""

from fractions import Fraction
from functools import cache

# From here on the closed bound n(n−1)+1 is used: it exceeds the exact ratio by less than 1 part in 3000.
MAX_EXACT_RECORDS = 60


@cache
def count_derangements(n: int) -> int:
    """Permutations of n records without a fixed point: $d(n) = n d(n-1) + (-1)^n$.

    >>> [count_derangements(n) for n in range(8)]
    [1, 0, 1, 2, 9, 44, 265, 1854]
    """
    value = 1
    for k in range(1, n + 1):
        value = value * k + (-1) ** k
    return value


def bound_step_ratio(n: int) -> Fraction:
    r"""Return d(n)/d(n−2), exact for n ≤ 60, and the upper bound n(n−1)+1 beyond.

    $d(n)/d(n-2) = n(n-1) - (-1)^n (n-1)/d(n-2)$, and d(n−2) ≥ n−1 for n ≥ 6.

    >>> bound_step_ratio(5), bound_step_ratio(264331)
    (Fraction(22, 1), Fraction(69870613231, 1))
    """
    if n in (0, 1, 3):
        raise ValueError("d(n)/d(n-2) needs n = 2 or n >= 4")
    if n <= MAX_EXACT_RECORDS:
        return Fraction(count_derangements(n), count_derangements(n - 2))
    return Fraction(n * (n - 1) + 1)
