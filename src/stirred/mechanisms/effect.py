"""State what to expect of a release: how far it differs from the records, and what was measured of its 95 % intervals.

A budget bounds what a release may reveal from above; it does not say that anything happens at all. A swap of one record
in a million, or noise that is nearly always 0, has a finite budget and publishes the truth. The expected effect is computed
from settings and invariants alone, before a key exists, so that a refusal reveals nothing. A mechanism names its measured
coverage in its registration, so that it is read without importing the mechanism.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from math import exp
from typing import Literal

from stirred.errors import PrivacyError
from stirred.languages import Phrase

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


MIN_SHARE_OF_RECORDS = Fraction(1, 200)  # that change places; the paper's smallest swap rate is 1/100
MIN_RECORDS = 1  # that change places in expectation
MIN_SHARE_OF_CELLS = Fraction(1, 20)  # whose published count differs from the true one
ACCEPT_KEY = "accept_small_effect"  # the key of a plan that holds the reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedEffect:
    """Hold the expected share of records that change places, or of cells whose count changes.

    ``records`` is how many records there are, where the share is about records; ``where`` names the table or level with the
    smallest effect, where a release has several. ``losses`` has the ε of one exchange of two records by mechanism, the
    release's own first: what each would lose at most if it moved this share.

    >>> ExpectedEffect(kind="records", share=0.05, records=1_000).too_small
    False
    >>> ExpectedEffect(kind="records", share=0.05, records=10).too_small
    True
    """

    kind: Literal["records", "cells"]
    share: float
    records: int = 0
    where: str = ""
    losses: Mapping[str, str] = field(default_factory=dict)

    @property
    def too_small(self) -> bool:
        """Say whether the release would be the truth, or nearly."""
        if self.kind == "cells":
            return self.share < MIN_SHARE_OF_CELLS
        # a census without a record of this type has nothing to move, and nothing to publish
        return bool(self.records) and (
            self.share < MIN_SHARE_OF_RECORDS or self.share * self.records < MIN_RECORDS
        )

    def words(self) -> Phrase:
        """Return the effect as a sentence for the plan's check and the card."""
        share = _percent(self.share)
        if self.kind == "records":
            number = Decimal(f"{self.share * self.records:.1f}")
            return Phrase("effect.records", share=share, number=number, all=self.records)
        if self.where:
            return Phrase("effect.cells_of", share=share, where=self.where)
        return Phrase("effect.cells", share=share)

    def compare_losses(self, key: str = "effect.losses") -> Phrase | None:
        """Return in a phrase what swaps would lose at this share, or None where nothing is compared."""
        if len(self.losses) < 2:
            return None
        told = tuple(
            Phrase("effect.loss", mechanism=name, loss=loss if loss == "∞" else Decimal(loss))
            for name, loss in self.losses.items()
        )
        return Phrase(key, losses=told)

    def floor(self) -> str:
        """Return what is asked at least, in words."""
        if self.kind == "cells":
            return f"at least {_percent(float(MIN_SHARE_OF_CELLS))}% of the counts must be expected to change"
        return (
            f"at least {_percent(float(MIN_SHARE_OF_RECORDS))}% of the records, and {MIN_RECORDS} record, must be "
            "expected to change places"
        )

    def remedy(self) -> str:
        """Return what would make the effect larger."""
        if self.kind == "cells":
            return "choose a smaller budget, a larger variance of the noise or a coarser rounding"
        return "choose a higher swap rate, or fewer and coarser match variables"


def require_effect(effect: ExpectedEffect | None, reason: str, *, mechanism: str) -> tuple[Phrase, ...]:
    """Refuse a release that is expected to be nearly the truth; return the note of one that an office accepts."""
    if effect is None or not effect.too_small:
        return ()
    if not reason.strip():
        raise PrivacyError(
            f"{mechanism} would publish nearly the truth",
            why=f"{effect.words()}; {effect.floor()}",
            fix=f"{effect.remedy()}; or "
            f'accept it with a reason, which stands on the first line of the card: {ACCEPT_KEY} = "why" in the plan, or '
            f"--{ACCEPT_KEY.replace('_', '-')} on the command line",
        )
    return (Phrase("effect.accepted", effect=effect.words(), reason=reason.strip()),)


def smallest_effect(shares: Mapping[str, float]) -> ExpectedEffect | None:
    """Return the effect of the table, line or level that changes least; None where there is none.

    >>> smallest_effect({"county": 0.9, "block": 0.2}).where
    'block'
    """
    if not shares:
        return None
    where = min(shares, key=lambda name: shares[name])
    return ExpectedEffect(kind="cells", share=shares[where], where=where if len(shares) > 1 else "")


def gaussian_change(sigma_squared: Fraction | float) -> float:
    r"""Return the chance that discrete Gaussian noise is not 0: $1 - 1/\sum_k e^{-k^2/2\sigma^2}$.

    >>> round(gaussian_change(Fraction(1)), 4), gaussian_change(Fraction(1, 10**6))
    (0.6011, 0.0)
    """
    variance = float(sigma_squared)
    if variance <= 0:
        return 0.0
    beyond = 0.0
    for k in range(1, int(12 * variance**0.5) + 12):
        term = 2 * exp(-k * k / (2 * variance))
        if not term:
            break
        beyond += term
        if beyond > 1e6:  # a wider law is never 0 in practice
            break
    return beyond / (1 + beyond)


def geometric_change(scale: float) -> float:
    r"""Return the chance that two-sided geometric noise of this scale is not 0: $2q/(1+q)$ with $q = e^{-1/s}$.

    >>> round(geometric_change(1.0), 4)
    0.5379
    """
    if scale <= 0:
        return 0.0
    q = exp(-1 / scale)
    return 2 * q / (1 + q)


def _percent(share: float) -> Decimal:
    """Return a share in percent; something above 0 is never shown as 0.

    >>> _percent(0.05), _percent(0.000123)
    (Decimal('5.0'), Decimal('0.01'))
    """
    percent = 100 * share
    return (
        Decimal(f"{percent:.1f}")
        if percent >= 0.05 or percent <= 0
        else Decimal(f"{Decimal(f'{percent:.1g}'):f}")
    )
