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
LARGE = 20  # totals from which the bias is fitted; below, it is taken in proportion to the total
# b in parts of the slope that replicates show, before anything is seen, and its standard deviation; 0.05 to 1.6 were seen.
BEFORE = 0.6, 0.6
UNKNOWN = 1.0  # the same without unbiased totals
FLAT = 0.05  # no slope of the replicates is taken for less, in persons
# Of the totals' slope: below, a table has no such bias; above, as much as totals in proportion.
COARSE = 0.2, 0.5
# The factor of the spread less one, what b adds per natural logarithm of the size, and from which size.
WIDER = 0.04, 0.04, 7.4
DRIFT = (
    0.5  # what a replicate's drift, in parts of its noise (both as variances), adds to the spread's factor
)
MOST = 0.8  # no more of a number is taken to be drawn to its mean
ROUGH = 4.0  # of totals that only their cells tell: the drift from the census in parts of the replicates' (variances)
ENOUGH = 30  # cells of a size class from which its own drift is taken, and not that of the table


@dataclass(frozen=True, slots=True)
class Lost:
    """What replicates do not show of a table: its bias b, the slope that they do show, and b in parts of it."""

    least = 5  # numbers below this are left as they are

    slope: float
    middle: float
    flat: float
    ratio: float
    part: float = 1.0  # how far the table is like the totals

    def shift(self, count: Ints) -> Floats:
        """What is to be added to the true number that replicates suggest."""
        return self.slope * _profile(count, self.middle)

    def factor(self, count: Ints) -> Floats:
        """By how much the differences are wider."""
        more = np.log(np.maximum(count, WIDER[2]) / WIDER[2])
        return np.asarray(1.0 + self.part * WIDER[0] + WIDER[1] * self.ratio * more)


@dataclass(frozen=True, slots=True)
class Drift:
    """By how much the differences of each size class are wider, where the estimate drew areas to what is likely."""

    classes: tuple[int, ...]
    factors: Floats
    least: int = 1  # numbers below this are left as they are

    def shift(self, count: Ints) -> Floats:
        """Nothing: areas of one size drift up and down alike."""
        return np.zeros(len(count))

    def factor(self, count: Ints) -> Floats:
        """By how much the differences are wider."""
        return np.asarray(self.factors[np.digitize(count, self.classes)])


def drift(
    count: Ints, again: Ints, classes: tuple[int, ...], *, least: int = 1, by_cells: bool = False
) -> Drift:
    r"""From the published numbers and their replicates (R × cells, at least two).

    A replicate y differs from x by noise, with variance B over replicates, and by a drift to what the prior says, or
    non-negativity: a mean square A, with $E(\bar y - x)^2 = A + B/R$. The census had further to drift than the release,
    which lies nearer to that already: numbers that are drawn to their mean by the best part g have $A/B = 1 - g = u$ and
    $1/(1 - u^2)$ times the replicates' variance. The differences are wider by the root of that, and at least by
    $1 + u/2$, which was measured. A total that its own measurement hardly tells (``by_cells``) is the sum of cells that
    all drifted, in either direction: in the release little of that is left to see, and the differences have
    $(1 + 4u)/(1 + u)$ times their variance; the four was measured.

    >>> drift(np.array([10, 10]), np.array([[9, 11], [11, 9]]), (5,)).factors.tolist()
    [1.0, 1.0]
    """
    noise = again.var(axis=0, ddof=1)
    moved = (again.mean(axis=0) - count) ** 2 - noise / len(again)
    own, number = np.digitize(count, classes), len(classes) + 1
    cells = np.bincount(own, minlength=number)
    over, under = np.bincount(own, moved, number), np.bincount(own, noise, number)
    over, under = (np.where(cells < ENOUGH, each.sum(), each) for each in (over, under))
    part = np.maximum(over, 0.0) / np.maximum(under, 1e-12)
    if by_cells:
        return Drift(classes, np.sqrt((1.0 + ROUGH * part) / (1.0 + part)), least)
    best = 1.0 / np.sqrt(1.0 - np.minimum(part, MOST) ** 2)
    return Drift(classes, np.maximum(1.0 + DRIFT * np.minimum(part, 2.0), best), least)


def lost(
    count: Ints,
    again: Ints,
    place: Ints,
    own: Ints,
    estimate: Floats | None = None,
    error: Floats | None = None,
    *,
    totals: Lost | None = None,
) -> Lost:
    """From published numbers, their replicates (R × cells), both in size classes, and unbiased numbers if known.

    Where only the totals of the areas are known so, b of another table is in proportion to that of the ``totals``.

    >>> count = np.arange(20, 400)
    >>> again = np.stack([count - 0.1 * (count - 210), count - 0.1 * (count - 210)]).astype(int)
    >>> one = np.zeros_like(count)
    >>> found = lost(count, again, np.zeros_like(again), one)
    >>> round(found.slope, 2), round(found.ratio, 1)  # one class shows no slope
    (0.05, 1.0)
    """
    large = count >= LARGE
    taper = np.where(large, 1.0, count / LARGE)
    middle = float((taper * np.sqrt(np.maximum(count, LARGE))).sum() / max(taper.sum(), 1.0))
    used = large if error is None else large & (error > 0)
    h = np.where(used, _profile(count, middle), 0.0)
    known = max(float((h**2).sum()), 1e-12)
    number = max(int(place.max(initial=0)), int(own.max(initial=0))) + 1
    apart = _means(place, count - again, number)[own]
    flat = max(float((h * apart).sum()) / known, FLAT)
    if totals is not None:
        part = min(max((flat / totals.flat - COARSE[0]) / (COARSE[1] - COARSE[0]), 0.0), 1.0)
        return Lost(part * totals.ratio * flat, middle, flat, part * totals.ratio, part)
    slope, doubt = UNKNOWN * flat, BEFORE[1] * flat
    if estimate is not None and error is not None and len(again) > 1:
        noise = (again - again.mean(axis=0)) * (len(again) / (len(again) - 1))
        seen = float((h * (estimate - count - apart - _means(place, noise, number)[own])).sum()) / known
        variance = float((h**2 * error**2).sum()) / known**2
        slope = (seen * doubt**2 + BEFORE[0] * flat * variance) / (variance + doubt**2)
    slope = min(max(slope, 0.0), 2.0 * flat)
    return Lost(slope, middle, flat, slope / flat)


def _profile(count: Ints, middle: float) -> Floats:
    inside = np.sqrt(np.maximum(count, LARGE)) - middle
    return np.asarray(inside * np.minimum(count / LARGE, 1.0))


def _means(place: Ints, values: NDArray[np.generic], number: int) -> Floats:
    """The mean of the values in every class, 0 where there are none."""
    sums = np.zeros(number)
    np.add.at(sums, place.ravel(), np.asarray(values, np.float64).ravel())
    return sums / np.maximum(np.bincount(place.ravel(), minlength=number), 1)
