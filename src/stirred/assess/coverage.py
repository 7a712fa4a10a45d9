"""What was measured of the 95 % intervals: how many of 100 hold the true number, by method, level and published size.

The figures are those of docs/explain/topdown-uncertainty.md (``python benchmarks/topdown_accuracy.py`` and
``benchmarks/intervals.py``): the lowest and the highest of all tables that were measured, on synthetic censuses, Hawaii
and Washington. TopDown has two methods: intervals around the released numbers, by replicates (every mode), and those of
the unbiased estimates, whose variance is exact.
"""

import math
from collections.abc import Collection

NOMINAL_PERCENT = 95
CLASS_STARTS = (0, 1, 5, 20, 100, 1_000)  # the first published number of each class
CLASS_NAMES = ("0", "1–4", "5–19", "20–99", "100–999", "1,000+")
Held = tuple[float, float]
Rows = dict[str, tuple[Held | None, ...]]  # level → its classes; None: too few cells were seen
MEASURED_COVERAGE: dict[str, Rows] = {
    "topdown": {
        "tract": ((98.7, 99.8), (97.5, 99.0), (95.5, 97.2), (94.5, 100.0), (94.1, 100.0), (96.0, 98.4)),
        "block group": ((98.4, 99.2), (97.2, 98.8), (94.5, 100.0), (91.2, 100.0), (93.1, 99.0), (94.7, 96.3)),
        "block": ((97.0, 100.0), (95.0, 100.0), (93.3, 98.1), (92.9, 98.2), (91.9, 100.0), (93.5, 93.5)),
    },
    "unbiased": {
        "tract": ((95.5, 95.5), (92.0, 92.0), (94.4, 94.4), (92.5, 96.2), (92.2, 97.6), None),
        "block group": ((95.2, 95.2), (94.2, 94.2), (95.2, 95.2), (93.0, 96.4), (93.5, 97.7), None),
        "block": ((86.5, 86.5), (96.3, 96.3), (95.5, 95.5), (94.7, 94.9), (94.1, 94.8), None),
    },
    "swap": {
        "tract": ((99.1, 99.6), (97.4, 99.1), (97.4, 98.5), (88.4, 96.3), (94.6, 96.2), (94.5, 94.5)),
        "block group": ((99.8, 99.8), (97.8, 97.8), (96.6, 96.6), (96.6, 96.6), (94.7, 94.7), (93.5, 93.5)),
        "block": ((99.2, 99.7), (96.6, 99.5), (94.3, 98.6), (93.2, 97.5), (92.1, 95.6), (94.4, 94.4)),
    },
}
# Which methods make the intervals of a mechanism; those of any other mechanism have closed forms and were not measured so.
COVERAGE_METHODS = {"topdown": ("topdown", "unbiased"), "permutation-swapping": ("swap",)}
# of 100 cells with a true number of 1 to 19, whatever number was published for them
TRUE_SIZE_COVERAGE = (84, 99)


def find_size_class(published: float) -> int:
    """Return the class of a published number.

    >>> [CLASS_NAMES[find_size_class(number)] for number in (0, 4, 5, 20_000)]
    ['0', '1–4', '5–19', '1,000+']
    """
    return max(place for place, first in enumerate(CLASS_STARTS) if published >= first or not place)


def lookup_coverage(
    published: float, variables: Collection[str] = (), mechanism: str | None = None
) -> tuple[int, int]:
    """Return how many of 100 cells published with such a number have their true number in the interval.

    That is at the level of geography that is among ``variables``, where it was measured; else at every level. Without a
    ``mechanism`` that was measured it is the range of all methods.

    >>> lookup_coverage(12, ["block_group", "race"], "permutation-swapping")
    (96, 97)
    """
    tables = [
        MEASURED_COVERAGE[method] for method in COVERAGE_METHODS.get(mechanism or "", MEASURED_COVERAGE)
    ]
    named = [
        row for rows in tables for level, row in rows.items() if level.replace(" ", "_") in variables
    ] or [row for rows in tables for row in rows.values()]
    found = [one for row in named if (one := row[find_size_class(published)]) is not None]
    return math.floor(min(low for low, _ in found)), math.ceil(max(high for _, high in found))


def write_range(one: Held | None) -> str:
    """Return the range of a class as text.

    >>> write_range((94.6, 96.2)), write_range((94.5, 94.5)), write_range(None)
    ('95–96', '94', '–')
    """
    if one is None:
        return "–"
    low, high = (f"{number:.0f}" for number in one)
    return low if low == high else f"{low}–{high}"
