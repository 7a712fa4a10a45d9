"""What was measured of the 95 % intervals: how many of 100 hold the true number, by level and published size.

The figures are those of docs/explain/topdown-uncertainty.md (``python benchmarks/intervals.py``): the lowest and the highest
of all tables that were measured, for the swap and for TopDown (every mode), on synthetic censuses, Hawaii and
Washington.
"""

import math
from collections.abc import Collection

NOMINAL = 95
SIZES = (0, 1, 5, 20, 100, 1_000)  # the first published number of each class
CLASSES = ("0", "1–4", "5–19", "20–99", "100–999", "1,000+")
Held = tuple[float, float]
MEASURED: dict[str, tuple[Held, ...]] = {
    "tract": ((97.6, 99.8), (97.4, 99.1), (95.0, 98.5), (88.4, 98.1), (88.4, 100.0), (94.5, 98.4)),
    "block group": ((98.4, 99.8), (97.2, 98.2), (95.2, 97.3), (92.3, 100.0), (94.7, 98.8), (93.5, 96.3)),
    "block": ((97.9, 99.7), (91.4, 100.0), (92.9, 98.6), (91.1, 98.3), (89.7, 100.0), (93.5, 94.4)),
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
    ((91, 100), (92, 99), (95, 98))
    """
    named = [row for level, row in MEASURED.items() if level.replace(" ", "_") in variables]
    found = [row[size_class(published)] for row in named or MEASURED.values()]
    return math.floor(min(low for low, _ in found)), math.ceil(max(high for _, high in found))
