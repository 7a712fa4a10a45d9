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


TWICE, MAJORITY, OTHER = "twice", "majority", "other"  # kinds of cells, by shares of published numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class KindCoverage:
    """How many of 100 intervals held, by published size, for the cells of one kind in the areas of one level.

    It is stated for releases whose ``settings`` are among those that were measured.
    """

    level: str  # a column of the released records, as is the level above
    above: str
    kind: str
    settings: Mapping[str, Collection[str]]  # setting → the values that were measured
    classes: tuple[Held | None, ...]

    def covers(self, settings: Mapping[str, object], variables: Collection[str], kind: str) -> bool:
        """Return whether it says something about a cell of this kind of a release with these settings."""
        measured = all(str(settings.get(name)) in values for name, values in self.settings.items())
        return measured and kind == self.kind and self.level in variables


def find_kind(cell: int, area: int, cell_above: int, area_above: int) -> str:
    """Return the kind of a cell from published numbers alone: its own, its area's, and those of the area above.

    ``TWICE`` has at least twice the share of the area above, ``MAJORITY`` more than half of its area, else ``OTHER``.

    >>> find_kind(6, 20, 30, 200), find_kind(12, 20, 150, 200), find_kind(0, 20, 0, 200)
    ('twice', 'majority', 'other')
    """
    if cell > 0 and cell * area_above >= 2 * cell_above * area:
        return TWICE
    return MAJORITY if 2 * cell > area else OTHER


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCoverage:
    """How many of 100 intervals of one method held the true number, by level of geography and published size.

    Each range is the lowest and the highest of all tables that were measured; None: too few cells were seen.
    """

    key: str  # of its name in reports: report.coverage.KEY in the catalog of words
    name: str  # in plain texts
    levels: Mapping[str, tuple[Held | None, ...]]  # level → its classes
    source: str  # where the figures stand, and the command that measures them
    kinds: tuple[KindCoverage, ...] = ()


def find_size_class(published: float) -> int:
    """Return the class of a published number.

    >>> [CLASS_NAMES[find_size_class(number)] for number in (0, 4, 5, 20_000)]
    ['0', '1–4', '5–19', '1,000+']
    """
    return max(place for place, first in enumerate(CLASS_STARTS) if published >= first or not place)


def lookup_kind_coverage(
    measured: Collection[MeasuredCoverage],
    published: float,
    variables: Collection[str],
    kind: str,
    settings: Mapping[str, object],
) -> tuple[int, int] | None:
    """Return the same as ``lookup_coverage`` for cells of one kind, or None where they were not measured."""
    own = [one for each in measured for one in each.kinds if one.covers(settings, variables, kind)]
    return _join_ranges([one.classes[find_size_class(published)] for one in own])


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
    return _join_ranges([row[find_size_class(published)] for row in named])


def _join_ranges(ranges: Collection[Held | None]) -> tuple[int, int] | None:
    """Return whole numbers around all ranges, or None where there is none."""
    found = [held for held in ranges if held is not None]
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
