r"""How much more the estimate changed the census than a replicate changes the release, by size of the area.

Non-negativity lifts near-empty cells of small areas, and large ones pay. What they lost is no longer in the release, so
replicates y of the published totals x show less of it: a smaller bias, and a smaller spread. The unbiased totals e show
all of it. In a size class $E[c - x] = E[e - x] - E[e - c]$ for the true totals c, and the noise of e there is that of x,
which is its projection: its mean is that of $y - E y$ where y lies in the class. What is left is
$\delta(x) = b\,(\sqrt x - m)$ with $\sum \delta = 0$, since areas share a known sum; b is fitted to all areas, with exact
variances.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MIN_FITTED_TOTAL = 20  # totals from which the bias is fitted; below, it is taken in proportion to the total
# b in parts of the slope that replicates show, before anything is seen, and its standard deviation; 0.05 to 1.6 were seen.
PRIOR_BIAS = 0.6, 0.6
BIAS_WITHOUT_TOTALS = 1.0  # the same without unbiased totals
MIN_SLOPE_PERSONS = 0.05  # no slope of the replicates is taken for less, in persons
# Of the totals' slope: below, a table has no such bias; above, as much as totals in proportion.
BIAS_SLOPE_LIMITS = 0.2, 0.5
# The factor of the spread less one, what b adds per natural logarithm of the size, and from which size.
SPREAD_FACTORS = 0.04, 0.04, 7.4
DRIFT_FACTOR = (
    0.5  # what a replicate's drift, in parts of its noise (both as variances), adds to the spread's factor
)
MAX_SHRINKAGE = 0.8  # no more of a number is taken to be drawn to its mean
ROUGH_VARIANCE_RATIO = 4.0  # of totals that only their cells tell: the drift from the census in parts of the replicates' (variances)
MIN_CELLS_PER_CLASS = 30  # cells of a size class from which its own drift is taken, and not that of the table


@dataclass(frozen=True, slots=True)
class UnseenBias:
    """What replicates do not show of a table: its bias b, the slope that they show, and b relative to it."""

    least = 5  # numbers below this are left as they are

    slope: float
    middle: float
    flat: float
    ratio: float
    part: float = 1.0  # how far the table is like the totals

    def shift(self, count: Ints) -> Floats:
        """Return what to add to the true number that replicates suggest."""
        return self.slope * _profile(count, self.middle)

    def factor(self, count: Ints) -> Floats:
        """Return the factor by which the differences are wider."""
        more = np.log(np.maximum(count, SPREAD_FACTORS[2]) / SPREAD_FACTORS[2])
        return np.asarray(1.0 + self.part * SPREAD_FACTORS[0] + SPREAD_FACTORS[1] * self.ratio * more)


@dataclass(frozen=True, slots=True)
class Drift:
    """The factor by which differences are wider in each size class, where the estimate shrinks areas."""

    classes: tuple[int, ...]
    factors: Floats
    least: int = 1  # numbers below this are left as they are

    def shift(self, count: Ints) -> Floats:
        """Return zero: areas of one size drift up and down alike."""
        return np.zeros(len(count))

    def factor(self, count: Ints) -> Floats:
        """Return the factor by which the differences are wider."""
        return np.asarray(self.factors[np.digitize(count, self.classes)])


def estimate_drift(
    count: Ints, again: Ints, classes: tuple[int, ...], *, least: int = 1, by_cells: bool = False
) -> Drift:
    r"""Estimate the drift from the published numbers and their replicates (R × cells, at least two).

    A replicate y differs from x by noise, with variance B over replicates, and by a drift to what the prior says, or
    non-negativity: a mean square A, with $E(\bar y - x)^2 = A + B/R$. The census had further to drift than the release,
    which lies nearer to that already: numbers that are drawn to their mean by the best part g have $A/B = 1 - g = u$ and
    $1/(1 - u^2)$ times the replicates' variance. The differences are wider by the root of that, and at least by
    $1 + u/2$, which was measured. A total that its own measurement hardly tells (``by_cells``) is the sum of cells that
    all drifted, in either direction: in the release little of that is left to see, and the differences have
    $(1 + 4u)/(1 + u)$ times their variance; the four was measured.

    >>> estimate_drift(np.array([10, 10]), np.array([[9, 11], [11, 9]]), (5,)).factors.tolist()
    [1.0, 1.0]
    """
    noise = again.var(axis=0, ddof=1)
    moved = (again.mean(axis=0) - count) ** 2 - noise / len(again)
    own, number = np.digitize(count, classes), len(classes) + 1
    cells = np.bincount(own, minlength=number)
    over, under = np.bincount(own, moved, number), np.bincount(own, noise, number)
    over, under = (np.where(cells < MIN_CELLS_PER_CLASS, each.sum(), each) for each in (over, under))
    part = np.maximum(over, 0.0) / np.maximum(under, 1e-12)
    if by_cells:
        return Drift(classes, np.sqrt((1.0 + ROUGH_VARIANCE_RATIO * part) / (1.0 + part)), least)
    best = 1.0 / np.sqrt(1.0 - np.minimum(part, MAX_SHRINKAGE) ** 2)
    return Drift(classes, np.maximum(1.0 + DRIFT_FACTOR * np.minimum(part, 2.0), best), least)


def estimate_bias(
    count: Ints,
    again: Ints,
    place: Ints,
    own: Ints,
    estimate: Floats | None = None,
    error: Floats | None = None,
    *,
    totals: UnseenBias | None = None,
) -> UnseenBias:
    """Estimate the bias from published numbers, replicates (R × cells) and unbiased numbers if known.

    Where only the totals of the areas are known so, b of another table is in proportion to that of the ``totals``.

    >>> count = np.arange(20, 400)
    >>> again = np.stack([count - 0.1 * (count - 210), count - 0.1 * (count - 210)]).astype(int)
    >>> one = np.zeros_like(count)
    >>> found = estimate_bias(count, again, np.zeros_like(again), one)
    >>> round(found.slope, 2), round(found.ratio, 1)  # one class shows no slope
    (0.05, 1.0)
    """
    large = count >= MIN_FITTED_TOTAL
    taper = np.where(large, 1.0, count / MIN_FITTED_TOTAL)
    middle = float((taper * np.sqrt(np.maximum(count, MIN_FITTED_TOTAL))).sum() / max(taper.sum(), 1.0))
    used = large if error is None else large & (error > 0)
    h = np.where(used, _profile(count, middle), 0.0)
    known = max(float((h**2).sum()), 1e-12)
    number = max(int(place.max(initial=0)), int(own.max(initial=0))) + 1
    apart = _means(place, count - again, number)[own]
    flat = max(float((h * apart).sum()) / known, MIN_SLOPE_PERSONS)
    if totals is not None:
        part = min(
            max(
                (flat / totals.flat - BIAS_SLOPE_LIMITS[0]) / (BIAS_SLOPE_LIMITS[1] - BIAS_SLOPE_LIMITS[0]),
                0.0,
            ),
            1.0,
        )
        return UnseenBias(part * totals.ratio * flat, middle, flat, part * totals.ratio, part)
    slope, doubt = BIAS_WITHOUT_TOTALS * flat, PRIOR_BIAS[1] * flat
    if estimate is not None and error is not None and len(again) > 1:
        noise = (again - again.mean(axis=0)) * (len(again) / (len(again) - 1))
        seen = float((h * (estimate - count - apart - _means(place, noise, number)[own])).sum()) / known
        variance = float((h**2 * error**2).sum()) / known**2
        slope = (seen * doubt**2 + PRIOR_BIAS[0] * flat * variance) / (variance + doubt**2)
    slope = min(max(slope, 0.0), 2.0 * flat)
    return UnseenBias(slope, middle, flat, slope / flat)


def _profile(count: Ints, middle: float) -> Floats:
    inside = np.sqrt(np.maximum(count, MIN_FITTED_TOTAL)) - middle
    return np.asarray(inside * np.minimum(count / MIN_FITTED_TOTAL, 1.0))


def _means(place: Ints, values: NDArray[np.generic], number: int) -> Floats:
    """Return the mean of the values in every class, 0 where there are none."""
    sums = np.zeros(number)
    np.add.at(sums, place.ravel(), np.asarray(values, np.float64).ravel())
    return sums / np.maximum(np.bincount(place.ravel(), minlength=number), 1)
