"""What was measured of the 95 % intervals: how many of 100 hold the true number, by level and published size.

The figures are those of docs/explain/topdown-uncertainty.md (``python benchmarks/intervals.py``): the lowest and the highest
of all tables that were measured, for the swap and for TopDown, on a synthetic census and on Hawaii.
"""

import math
from collections.abc import Collection

NOMINAL = 95
SIZES = (0, 1, 5, 20, 100, 1_000)  # the first published number of each class
CLASSES = ("0", "1–4", "5–19", "20–99", "100–999", "1,000+")
Held = tuple[float, float]
MEASURED: dict[str, tuple[Held, ...]] = {
    "tract": ((99.0, 99.6), (97.4, 99.1), (93.9, 98.5), (88.4, 97.8), (94.6, 98.3), (94.5, 98.4)),
    "block group": ((98.4, 99.8), (97.8, 98.2), (95.6, 97.3), (94.0, 100.0), (94.7, 96.6), (93.5, 95.9)),
    "block": ((97.6, 100.0), (96.6, 99.5), (93.7, 98.9), (93.2, 97.5), (91.6, 95.8), (93.0, 100.0)),
}
# of 100 cells with a true number of 1 to 19, whatever number was published for them
TRUE_SIZE = (84, 99)


def size_class(published: float) -> int:
    """The class of a published number.

    >>> [CLASSES[size_class(number)] for number in (0, 4, 5, 20_000)]
    ['0', '1–4', '5–19', '1,000+']
    """
    return max(place for place, first in enumerate(SIZES) if published >= first or not place)


def held(published: float, variables: Collection[str] = ()) -> tuple[int, int]:
    """How many of 100 cells published with such a number have their true number in the interval.

    That is at the level of geography that is among ``variables``, where it was measured; else at every level.

    >>> held(3), held(12), held(12, ["block_group", "race"])
    ((96, 100), (93, 99), (95, 98))
    """
    named = [row for level, row in MEASURED.items() if level.replace(" ", "_") in variables]
    found = [row[size_class(published)] for row in named or MEASURED.values()]
    return math.floor(min(low for low, _ in found)), math.ceil(max(high for _, high in found))
