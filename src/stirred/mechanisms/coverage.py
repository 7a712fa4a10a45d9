"""State what was measured of the 95 % intervals of a mechanism: how many of 100 hold the true number, with the source.

A mechanism names its figures in its registration, so that they are read without importing it.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

NOMINAL_PERCENT = 95
CLASS_STARTS = (0, 1, 5, 20, 100, 1_000)  # the first published number of each class
CLASS_NAMES = ("0", "1–4", "5–19", "20–99", "100–999", "1,000+")
# of 100 cells with a true number of 1 to 19, whatever number was published for them: docs/explain/topdown-uncertainty.md
TRUE_SIZE_COVERAGE = (84, 99)
Held = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCoverage:
    """How many of 100 intervals of one method held the true number, by level of geography and published size.

    Each range is the lowest and the highest of all tables that were measured; None: too few cells were seen.
    """

    key: str  # of its name in reports: report.coverage.KEY in the catalog of words
    name: str  # in plain texts
    levels: Mapping[str, tuple[Held | None, ...]]  # level → its classes
    source: str  # where the figures stand, and the command that measures them


def find_size_class(published: float) -> int:
    """Return the class of a published number.

    >>> [CLASS_NAMES[find_size_class(number)] for number in (0, 4, 5, 20_000)]
    ['0', '1–4', '5–19', '1,000+']
    """
    return max(place for place, first in enumerate(CLASS_STARTS) if published >= first or not place)


def lookup_coverage(
    measured: Collection[MeasuredCoverage], published: float, variables: Collection[str] = ()
) -> tuple[int, int] | None:
    """Return how many of 100 cells published with such a number have their true number in the interval.

    That is at the level of geography that is among ``variables``, where it was measured; else at every level. None
    where nothing was measured.

    >>> one = MeasuredCoverage(key="a", name="a", source="", levels={"block group": (None, None, (96.6, 96.6))})
    >>> lookup_coverage([one], 12, ["block_group", "race"]), lookup_coverage([], 12)
    ((96, 97), None)
    """
    rows = [(level, row) for one in measured for level, row in one.levels.items()]
    named = [row for level, row in rows if level.replace(" ", "_") in variables] or [row for _, row in rows]
    found = [held for row in named if (held := row[find_size_class(published)]) is not None]
    if not found:
        return None
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
