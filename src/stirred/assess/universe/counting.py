"""Count the tables with given margins: closed forms, bounds, exact counting and importance sampling."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, factorial, inf, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred.kernels import compile_kernel

# The logarithm of the gamma function in plain NumPy: reports are written without loading SciPy.

SERIES_START = 10  # below this the argument is moved up, where Stirling's series is exact to the last digits
SERIES_TERMS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def log_gamma(x: ArrayLike) -> NDArray[np.float64]:
    r"""$\ln \Gamma(x)$ for $x > 0$, by Stirling's series after $\Gamma(x) = \Gamma(x + 10) / \prod_{i<10} (x + i)$.

    >>> from math import lgamma
    >>> points = [0.001, 0.5, 1.0, 2.0, 9.9, 10.0, 123.4, 1e9]
    >>> bool(max(abs(log_gamma(point) - lgamma(point)) / max(abs(lgamma(point)), 1) for point in points) < 1e-13)
    True
    """
    values = np.asarray(x, np.float64)
    low = values < SERIES_START
    moved = np.where(low, values + SERIES_START, values)
    series, square = np.zeros_like(moved), 1 / moved**2
    for term in reversed(SERIES_TERMS):
        series = series * square + term
    found = (moved - 0.5) * np.log(moved) - moved + 0.5 * np.log(2 * np.pi) + series / moved
    if low.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            product = np.where(low, values, 1.0)
            for step in range(1, SERIES_START):
                product = product * np.where(low, values + step, 1.0)
            found = np.where(low, found - np.log(product), found)
    result: NDArray[np.float64] = np.where((values == 1) | (values == 2), 0.0, found)  # exactly
    return result


# How many data sets have given margins: closed forms, bounds that always hold, and exact counting of small tables.
#
# A stratum has n records. Its data sets are *labelled* where the records are told apart (they have names), and
# *unlabelled* where only the table of counts is seen. Rows are the held types, columns the values that may be exchanged.

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


# The number of tables with given margins by sequential importance sampling (Chen, Diaconis, Holmes and Liu 2005).
#
# Rows are drawn one after another, a row x with probability proportional to $\prod_j g(c_j - x_j)$, where g
# approximates how many tables the rows after it can make of what is left in column j. The rows after it, each uniform
# among its own possibilities, have column sums that are nearly Dirichlet-multinomial: $g(y) = \Gamma(y + k) / y!$ with
# k from the first two moments. With one row left k is 1, with rows of one record k is infinite, and g is exact in both
# cases. The mean of 1 / probability is unbiased.

Integers = NDArray[np.int64]
MAX_MULTIPLICATIONS = 500_000_000  # multiplications for one set of margins, all samples together
MIN_SAMPLES = 20  # samples, from which the error can be judged
MAX_UNTILTED_RECORDS = 40  # records of a row, up to which products of weights stay in range without a tilt


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledCount:
    """An estimate of the logarithm of a number of tables, with its standard error; 0 where the draw was exact."""

    log_count: float
    error: float
    samples: int
    work: int = 0  # multiplications that it took, roughly

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return the estimate with Student's limits on the scale of the logarithm."""
        from scipy.special import stdtrit

        reach = float(stdtrit(max(self.samples - 1, 1), 0.5 + confidence / 2)) * self.error
        return self.log_count - reach, self.log_count + reach


def sample_tables(
    rows: Sequence[int],
    columns: Sequence[int],
    *,
    samples: int = 200,
    seed: int = 1,
    work: int = MAX_MULTIPLICATIONS,
    tolerance: float = 0.0,
) -> SampledCount | None:
    """Estimate the logarithm of the number of tables with these margins; None where it would need more than ``work``.

    After a few samples it stops as soon as the standard error is within the ``tolerance``.

    >>> found = sample_tables([10, 62, 13, 11], [65, 25, 6])
    >>> found is not None and abs(found.log_count - log(99_792)) < 0.05  # the exact number of these tables
    True
    """
    r, c = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
    r, c = np.sort(r[r > 0])[::-1], c[c > 0]
    if r.size <= 1 or c.size <= 1:
        return SampledCount(log_count=0.0, error=0.0, samples=0)
    if _cost(c, r) < _cost(r, c):
        r, c = np.sort(c)[::-1], r
    cost = _cost(r, c)
    samples = min(samples, max(work // cost, 1))
    if samples < MIN_SAMPLES:
        return None
    large, ones = r[r > 1], int((r == 1).sum())
    shapes = np.array([_shape(r[place + 1 :], c.size) for place in range(large.size)])
    if not ones:
        large, shapes = large[:-1], shapes[:-1]  # the last row is what is left
    generator = np.random.default_rng(seed)
    weights: list[float] = []
    while len(weights) < samples:
        left = c.copy()
        lost = _draw_rows(large, shapes, left, generator.random((large.size, c.size)))
        tail = float(log_gamma(left.sum() + 1) - log_gamma(left + 1).sum()) if ones else 0.0
        weights.append(tail - lost)
        if len(weights) >= MIN_SAMPLES and mean_weight(weights)[1] <= tolerance:
            break
    found, error = mean_weight(weights)
    return SampledCount(log_count=found, error=error, samples=len(weights), work=len(weights) * cost)


def mean_weight(weights: Sequence[float]) -> tuple[float, float]:
    """Return the logarithm of the mean of weights given by their logarithms, and its standard error."""
    top = max(weights)
    scaled = np.exp(np.array(weights) - top)
    mean = float(scaled.mean())
    return top + log(mean), float(scaled.std(ddof=1)) / sqrt(len(weights)) / mean


def _cost(rows: Integers, columns: Integers) -> int:
    large = rows[rows > 1]
    if large.size * columns.size > MAX_MULTIPLICATIONS:
        return MAX_MULTIPLICATIONS
    # sum of min(row, column) over the columns, by sorted columns and their running sums
    sorted_, running = np.sort(columns), np.concatenate([[0], np.cumsum(np.sort(columns))])
    below = np.searchsorted(sorted_, large)
    smallest = running[below] + (columns.size - below) * large
    return int((smallest * large).sum()) + 60 * int(smallest[large > MAX_UNTILTED_RECORDS].sum())


def _shape(rest: Integers, columns: int) -> float:
    r"""Return the Dirichlet-multinomial parameter k that gives the variance of the column sums of the rows left.

    >>> _shape(np.array([7]), 5), _shape(np.array([1, 1, 1]), 5)
    (1.0, inf)
    """
    total = float(rest.sum())
    if total <= 1:
        return 1.0
    spread = float((rest * (rest + columns)).sum()) / (columns + 1) / total
    if spread - 1 < 1e-12:
        return inf
    return max(1.0, round((total - spread) / (columns * (spread - 1)), 12))


@compile_kernel
def _draw_rows(rows: Integers, shapes: Floats, left: Integers, uniform: Floats) -> float:
    """Draw the rows, take them out of ``left``, and return the logarithm of the probability of the draw."""
    lost = 0.0
    columns = left.size
    for place in range(rows.size):
        total, k = rows[place], shapes[place]
        tilt = _find_tilt(total, k, left)
        weights = np.zeros((columns, total + 1))
        ahead = np.zeros((columns + 1, total + 1))
        ahead[columns, 0] = 1.0
        for j in range(columns - 1, -1, -1):
            most = min(total, left[j])
            weights[j, 0] = 1.0
            for x in range(1, most + 1):
                y = left[j] - x + 1
                step = y * tilt if np.isinf(k) else tilt * y / (y + k - 1)
                weights[j, x] = weights[j, x - 1] * step
            top = 0.0
            for s in range(total + 1):
                value = 0.0
                for x in range(min(s, most) + 1):
                    value += weights[j, x] * ahead[j + 1, s - x]
                ahead[j, s] = value
                top = max(top, value)
            for s in range(total + 1):
                ahead[j, s] /= top
        open_ = total
        for j in range(columns):
            most = min(open_, left[j])
            whole = 0.0
            for x in range(most + 1):
                whole += weights[j, x] * ahead[j + 1, open_ - x]
            aim, chosen, reached = uniform[place, j] * whole, -1, 0.0
            for x in range(most + 1):
                value = weights[j, x] * ahead[j + 1, open_ - x]
                reached += value
                if value > 0.0:
                    chosen = x
                    if reached >= aim:
                        break
            lost += np.log(weights[j, chosen] * ahead[j + 1, open_ - chosen] / whole)
            left[j] -= chosen
            open_ -= chosen
    return lost


@compile_kernel
def _find_tilt(total: int, k: float, left: Integers) -> float:
    """Find the factor per record at which the expected sum of a row is about its total."""
    if total <= MAX_UNTILTED_RECORDS:
        return 1.0 / max(1.0, np.float64(left.max())) if np.isinf(k) else 1.0
    low, high = -40.0, 40.0
    for _ in range(30):
        middle = (low + high) / 2
        factor, mean = np.exp(middle), 0.0
        for j in range(left.size):
            weight, mass, first = 1.0, 1.0, 0.0
            for x in range(1, min(total, left[j]) + 1):
                y = left[j] - x + 1
                weight *= y * factor if np.isinf(k) else factor * y / (y + k - 1)
                if weight > 1e200:
                    mass /= weight
                    first /= weight
                    weight = 1.0
                mass += weight
                first += x * weight
            mean += first / mass
        if mean > total:
            high = middle
        else:
            low = middle
    return exp((low + high) / 2)
