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
STEPS = ((15, 0), (100, 10), (1_000, 50), (10_000, 100), (100_000, 500), (1_000_000, 1_000))  # below: unit


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRule:
    """Leave small counts out and round the others.

    >>> [CountRule(rounding="fives").shown(n) for n in (0, 1, 7, 8, 12, 13)]
    [0, 4, 4, 10, 10, 15]
    """

    rounding: str = "none"
    base: int = 0
    least: int = 0

    def shown(self, count: int) -> int:
        """What is shown of a count; 0 stands for no row."""
        if count < max(self.least, 1):
            return 0
        if self.base:
            return (2 * count + self.base) // (2 * self.base) * self.base
        if self.rounding == "fives":
            return 4 if count <= 7 else (count + 2) // 5 * 5
        if self.rounding == "tens":
            return (count + 5) // 10 * 10
        if self.rounding == "graduated":
            return _graduated(count)
        return count

    def of(self, counts: Ints) -> Ints:
        """What is shown of some counts."""
        distinct, place = np.unique(counts, return_inverse=True)
        return np.array([self.shown(int(count)) for count in distinct], np.int64)[place]

    def behind(self, shown: int) -> tuple[int, int]:
        """The smallest and the largest count that are shown like this; the rules do not fall, so all between are too."""
        counts = range(2 * shown + 32)
        return bisect_left(counts, shown, key=self.shown), bisect_right(counts, shown, key=self.shown) - 1

    def first_step(self) -> tuple[int, int, int]:
        """The smallest count at which one record more is shown differently, and what is shown of the two."""
        count = 0
        while self.shown(count) == self.shown(count + 1):
            count += 1
        return count, self.shown(count), self.shown(count + 1)


def _graduated(count: int) -> int:
    for below, unit in STEPS:
        if count < below:
            return _half_even(count, unit) if unit else 0
    return _half_even(count, 10 ** (len(str(count)) - 4))


def _half_even(count: int, unit: int) -> int:
    return round(Fraction(count, unit)) * unit
