r"""How many data sets have given margins: closed forms, bounds that always hold, and exact counting of small tables.

A stratum has n records. Its data sets are *labelled* where the records are told apart (they have names), and *unlabelled*
where only the table of counts is seen. Rows are the held types, columns the values that may be exchanged.
"""

from collections.abc import Sequence
from math import comb, factorial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred.assess.log_gamma import log_gamma

Floats = NDArray[np.float64]
MIN_STIRLING_KINDS = 1e6  # kinds, above which Stirling's series is exact to the last digits
MAX_STATES = 20_000  # steps of exact counting, after which it gives up


def log_choices(n: ArrayLike, kinds: ArrayLike) -> Floats:
    r"""$\ln \binom{n + K - 1}{K - 1}$: in how many ways n records, not told apart, have K kinds.

    >>> log_choices(2, 3).round(4), np.log(6).round(4)
    (np.float64(1.7918), np.float64(1.7918))
    """
    records, many = np.asarray(n, np.float64), np.asarray(kinds, np.float64)
    # of many kinds the difference of two logarithms of factorials would be rounded away: Stirling's, term by term
    large = np.maximum(many, MIN_STIRLING_KINDS)
    rising = records * np.log(large) + (large + records - 0.5) * np.log1p(records / large) - records
    rising += (1 / (large + records) - 1 / large) / 12
    small = np.minimum(many, MIN_STIRLING_KINDS)
    exact = log_gamma(records + small) - log_gamma(small)
    result: Floats = np.where(many > MIN_STIRLING_KINDS, rising, exact) - log_gamma(records + 1)
    return result


def log_placements(columns: ArrayLike) -> float:
    r"""$\ln n! - \sum_s \ln n_s!$: in how many ways the values of the columns stand on n records that are told apart.

    >>> round(log_placements([2, 2]), 4)  # ln 6
    1.7918
    """
    counts = np.asarray(columns, np.float64)
    return float(log_gamma(counts.sum() + 1) - log_gamma(counts + 1).sum())


def log_range(rows: ArrayLike, columns: ArrayLike) -> tuple[float, float]:
    r"""Return bounds of the logarithm of the number of tables that hold for all margins.

    A table T stands for $\prod_h r_h! / \prod_{hs} T_{hs}!$ placements, between 1 and $\prod_h r_h!$ of them; and there
    are no more tables than with the row sums alone, or the column sums alone.

    >>> [round(bound, 4) for bound in log_range([1, 1, 1], [2, 1])]  # rows of one record: both are ln 3
    [1.0986, 1.0986]
    """
    r, c = np.asarray(rows, np.float64), np.asarray(columns, np.float64)
    r, c = r[r > 0], c[c > 0]
    if r.size <= 1 or c.size <= 1:
        return 0.0, 0.0
    total = log_gamma(r.sum() + 1)
    fixed_rows, fixed_columns = log_gamma(r + 1).sum(), log_gamma(c + 1).sum()
    low = max(0.0, float(total - fixed_rows - fixed_columns))
    # all but one row decide the last one
    by_rows = log_choices(r, c.size).sum() - log_choices(r.max(), c.size)
    by_columns = log_choices(c, r.size).sum() - log_choices(c.max(), r.size)
    high = min(float(total - fixed_columns), float(total - fixed_rows), float(by_rows), float(by_columns))
    return low, max(low, high)


def count_tables(rows: Sequence[int], columns: Sequence[int], *, states: int = MAX_STATES) -> int | None:
    """Count the tables of whole numbers with these margins exactly; None where it takes too many steps.

    Columns are taken one after another; what is left of the rows is kept sorted, so that alike rows count once. Rows of
    one record are only counted, and end in a closed form.

    >>> count_tables([3, 2], [2, 2, 1]), count_tables([2, 2, 2], [2, 2, 2])
    (5, 21)
    """
    r, c = sorted(x for x in rows if x), sorted(x for x in columns if x)
    if len(r) <= 1 or len(c) <= 1:
        return 1
    if _work(c, r) < _work(r, c):
        r, c = c, r
    found: dict[tuple[tuple[int, ...], int], int] = {(tuple(x for x in r if x > 1), r.count(1)): 1}
    spent = 0
    while c:
        if all(not large for large, _ in found):  # only rows of one record are left
            return sum(ways * _multinomial(c) for ways in found.values())
        taken = c.pop()
        following: dict[tuple[tuple[int, ...], int], int] = {}
        for (large, ones), ways in found.items():
            splits = _split(large, taken)
            if splits is None:
                return None
            for left, more, used in splits:
                rest = taken - used
                if rest > ones:
                    continue
                spent += 1
                if spent > states:
                    return None
                key = (left, ones - rest + more)
                following[key] = following.get(key, 0) + ways * comb(ones, rest)
        found = following
    return sum(found.values())


def _work(rows: Sequence[int], columns: Sequence[int]) -> int:
    """Estimate the number of steps: ways to leave something in every large row, for each column."""
    total = len(columns)
    for row in rows:
        if row > 1:
            total *= row + 1
    return total


def _split(large: tuple[int, ...], taken: int) -> list[tuple[tuple[int, ...], int, int]] | None:
    """Return what may be left of the large rows: those still large, new rows of one, and how much was used."""
    found: list[tuple[list[int], int, int]] = [([], 0, 0)]
    for row in large:
        if sum(min(row, taken - used) + 1 for _, _, used in found) > MAX_STATES:
            return None
        found = [
            (left + ([row - x] if row - x > 1 else []), more + (row - x == 1), used + x)
            for left, more, used in found
            for x in range(min(row, taken - used) + 1)
        ]
    return [(tuple(sorted(left)), more, used) for left, more, used in found]


def _multinomial(parts: Sequence[int]) -> int:
    result = factorial(sum(parts))
    for part in parts:
        result //= factorial(part)
    return result


def log_estimate(rows: ArrayLike, columns: ArrayLike) -> float:
    r"""Estimate the logarithm of the number of tables in closed form (Dirichlet-multinomial column sums).

    Good's estimate has this form with k = the number of rows; here k follows from the variance of the column sums.

    >>> round(log_estimate([10, 62, 13, 11], [65, 25, 6]), 1), round(float(np.log(99_792)), 1)
    (11.7, 11.5)
    """
    r, c = np.asarray(rows, np.float64), np.asarray(columns, np.float64)
    r, c = r[r > 0], c[c > 0]
    low, high = log_range(r, c)
    if high == low:
        return low
    n, many = r.sum(), c.size
    spread = (r * (r + many)).sum() / (many + 1) / n
    if spread - 1 < 1e-12:
        return float(np.clip(log_placements(c), low, high))
    k = max(1.0, (n - spread) / (many * (spread - 1)))
    law = log_gamma(many * k) - log_gamma(n + many * k) + log_gamma(n + 1)
    law += (log_gamma(c + k) - log_gamma(k) - log_gamma(c + 1)).sum()
    return float(np.clip(log_choices(r, many).sum() + law, low, high))
