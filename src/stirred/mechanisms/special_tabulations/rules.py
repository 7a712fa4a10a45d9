"""Rules for counts: what is shown of a count, and which counts can stand behind what is shown.

"fives" and "tens" are the rules of the Disclosure Review Board for special tabulations of Census 2000 (29 January 2004),
"graduated" is its rule for counts of 2019.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
GRADUATED_UNITS = (
    (15, 0),
    (100, 10),
    (1_000, 50),
    (10_000, 100),
    (100_000, 500),
    (1_000_000, 1_000),
)  # below: unit


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRule:
    """Leave small counts out and round the others.

    >>> [CountRule(rounding="fives").shown(n) for n in (0, 1, 7, 8, 12, 13)]
    [0, 4, 4, 10, 10, 15]
    """

    rounding: str = "none"
    base: int = 0
    least: int = 0

    def show(self, count: int) -> int:
        """Return the number shown for a count; 0 stands for no row."""
        if count < max(self.least, 1):
            return 0
        if self.base:
            return (2 * count + self.base) // (2 * self.base) * self.base
        if self.rounding == "fives":
            return 4 if count <= 7 else (count + 2) // 5 * 5
        if self.rounding == "tens":
            return (count + 5) // 10 * 10
        if self.rounding == "graduated":
            return _round_graduated(count)
        return count

    def of(self, counts: Ints) -> Ints:
        """Return the numbers shown for some counts."""
        distinct, place = np.unique(counts, return_inverse=True)
        return np.array([self.show(int(count)) for count in distinct], np.int64)[place]

    def range_behind(self, shown: int) -> tuple[int, int]:
        """Return the smallest and the largest count shown as this number; all between are shown so too."""
        counts = range(2 * shown + 32)
        return bisect_left(counts, shown, key=self.show), bisect_right(counts, shown, key=self.show) - 1

    def first_step(self) -> tuple[int, int, int]:
        """Return the smallest count at which one more record is shown differently, and both numbers."""
        count = 0
        while self.show(count) == self.show(count + 1):
            count += 1
        return count, self.show(count), self.show(count + 1)


def _round_graduated(count: int) -> int:
    for below, unit in GRADUATED_UNITS:
        if count < below:
            return _round_half_even(count, unit) if unit else 0
    return _round_half_even(count, 10 ** (len(str(count)) - 4))


def _round_half_even(count: int, unit: int) -> int:
    return round(Fraction(count, unit)) * unit
