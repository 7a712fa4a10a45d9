"""Draw group quarters: the facilities of a block group, their sizes, and the ages allowed in them."""

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.codes import GQ_CODES
from stirred.census.synthetic.people.dice import draw_normal, draw_unit
from stirred.compiled import compile_kernel

# By code: chance that a block group has any, mean number where it has, typical residents, youngest and oldest
# resident (TopDown's structural zeros), middle of their ages, spread, share of men.
_FACILITY_TEXT = """
101 .0004 1 600 18  90 36 40 .92
102 .0009 1 1200 18 90 38 40 .93
103 .0050 1 700 16  90 38 40 .92
104 .0120 1 190 16  85 35 38 .86
105 .0060 1  60 18  80 36 36 .80
106 .0002 1  80 17  65 28 24 .92
201 .0110 1   9  3  25 14 12 .60
202 .0060 1  18  5  25 15 10 .60
203 .0040 1  30 10  25 16  6 .82
301 .0680 1  92 20 110 83 34 .33
401 .0040 1  45 15  95 42 50 .60
402 .0040 1  12  0  95 55 70 .52
403 .0040 1   8 18 105 80 36 .42
404 .0001 1  10 17  65 32 30 .80
405 .0020 1  25  3  30 15 16 .62
501 .0120 6 165 16  65 20  6 .46
601 .0016 5 160 17  65 23 12 .84
602 .0003 1 120 17  65 25 14 .82
701 .0280 1  22  0  90 34 66 .60
801 .2600 1.4 6 16 105 50 60 .57
802 .0480 1  14 16  90 38 44 .68
900 .0005 1  18 16  75 38 40 .96
901 .0180 1  15  0  90 34 40 .70
997 .0180 1  20  0  95 40 70 .52
"""
_FACILITY_ROWS = [line.split() for line in _FACILITY_TEXT.strip().splitlines()]
assert tuple(int(row[0]) for row in _FACILITY_ROWS) == GQ_CODES
_FACILITY_NUMBERS = np.array([[float(cell) for cell in row[1:]] for row in _FACILITY_ROWS])
PRESENT, SEVERAL, RESIDENTS = (np.ascontiguousarray(_FACILITY_NUMBERS[:, k]) for k in range(3))
YOUNGEST, OLDEST = (_FACILITY_NUMBERS[:, k].astype(np.int64) for k in (3, 4))
MIDDLE, SPREAD, MEN = (np.ascontiguousarray(_FACILITY_NUMBERS[:, k]) for k in (5, 6, 7))
MAX_FACILITY_PERSONS = 20_000


@compile_kernel
def _fill_facilities(
    seeds: NDArray[np.uint64], counts: NDArray[np.int64], places: NDArray[np.int8], sizes: NDArray[np.int16]
) -> int:
    dice = np.empty(2, dtype=np.uint64)
    at = 0
    for group in range(seeds.shape[0]):
        dice[0] = seeds[group, 0]
        dice[1] = seeds[group, 1] | np.uint64(1)
        first = at
        for place in range(24):
            if draw_unit(dice) >= PRESENT[place]:
                continue
            more = 1.0 - 1.0 / SEVERAL[place]
            again = True
            while again:
                residents = RESIDENTS[place] * np.exp(0.8 * draw_normal(dice) - 0.32)
                if at < sizes.size:
                    places[at] = place
                    sizes[at] = max(1, min(MAX_FACILITY_PERSONS, int(residents + 0.5)))
                at += 1
                again = draw_unit(dice) < more
        counts[group] = at - first
    return at


def draw_facilities(
    seeds: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int16]]:
    """Return facilities by block group, then the code's position and the residents of each facility.

    >>> counts, places, sizes = draw_facilities(np.arange(2000, dtype=np.uint64).reshape(1000, 2) * 977 + 1)
    >>> int(counts.sum()) == len(places) == len(sizes), 300 < len(places) < 1200
    (True, True)
    """
    counts = np.zeros(len(seeds), dtype=np.int64)
    empty = np.zeros(0, dtype=np.int8), np.zeros(0, dtype=np.int16)
    total = _fill_facilities(seeds, counts, *empty)
    places, sizes = np.zeros(total, dtype=np.int8), np.zeros(total, dtype=np.int16)
    _fill_facilities(seeds, counts, places, sizes)
    return counts, places, sizes
