r"""The number of tables with given margins by sequential importance sampling (Chen, Diaconis, Holmes and Liu 2005).

Rows are drawn one after another, a row x with probability proportional to $\prod_j g(c_j - x_j)$, where g approximates how
many tables the rows after it can make of what is left in column j. The rows after it, each uniform among its own
possibilities, have column sums that are nearly Dirichlet-multinomial: $g(y) = \Gamma(y + k) / y!$ with k from the first two
moments. With one row left k is 1, with rows of one record k is infinite, and g is exact in both cases. The mean of
1 / probability is unbiased.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from stirred.assess.log_gamma import log_gamma
from stirred.compiled import compile_kernel

Floats = NDArray[np.float64]
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
