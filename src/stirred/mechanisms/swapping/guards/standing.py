"""Count the records that a swap publishes as they are, because nothing in their stratum can move.

A stratum can move if it has two swap values and two held combinations. Sizes and types of strata are invariants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from stirred.errors import PrivacyError
from stirred.languages import Phrase
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.release import Guard
from stirred.mechanisms.swapping.budget.shapes import Shapes
from stirred.mechanisms.swapping.numbers.closed_forms import effective_rate
from stirred.mechanisms.swapping.records.participation import Stay

STANDING_GUARD = Phrase("guard.standing")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingRecords:
    """Records and strata that cannot move, by the reason; the reasons do not overlap."""

    records: int  # that take part
    strata: int
    reasons: tuple[tuple[str, int, int], ...]  # a key of the catalog, with records and strata
    staying: int  # records that take no part

    @staticmethod
    def of(shapes: Shapes, stays: Sequence[Stay] = ()) -> "StandingRecords":
        """Count the strata of each reason."""
        alone = shapes.n == 1
        alike = (shapes.n == 2) & ((shapes.swap_types < 2) | (shapes.hold_types < 2))
        place = ~alone & ~alike & (shapes.swap_types < 2)
        held = ~alone & ~alike & ~place & (shapes.hold_types < 2)
        reasons = {
            "guard.alone": alone,
            "guard.alike": alike,
            "guard.one_place": place,
            "guard.one_held": held,
        }
        return StandingRecords(
            records=int((shapes.n * shapes.strata).sum()),
            strata=int(shapes.strata.sum()),
            reasons=tuple((key, *_count_chosen(shapes, chosen)) for key, chosen in reasons.items()),
            staying=sum(stay.records for stay in stays),
        )

    @property
    def fixed_records(self) -> int:
        """Return the number of records that take part and cannot move."""
        return sum(records for _, records, _ in self.reasons)

    @property
    def finding(self) -> str:
        """Return in words what cannot move."""
        if not self.fixed_records:
            return Phrase("guard.all_move", strata=self.strata)
        strata = sum(number for _, _, number in self.reasons)
        told = self._describe_reasons()
        return Phrase(
            "guard.fixed",
            number=self.fixed_records,
            all=self.records,
            strata=strata,
            all_strata=self.strata,
            told=reduce(lambda one, two: Phrase("lists.semicolon_pair", first=one, second=two), told),
        )

    def _describe_reasons(self) -> list[Phrase]:
        return [Phrase(key, number=records) for key, records, _ in self.reasons if records]

    def guard(self, record_type: str) -> Guard:
        """Return the finding, or raise an error if nothing can move."""
        if self.records + self.staying and self.fixed_records == self.records:
            known = "; ".join(self._describe_reasons())
            raise PrivacyError(
                "nothing can move, so the swap would publish the file as it is",
                why=f"of {self.records:,} {record_type} records that take part: {known or 'none'}",
                fix="match on fewer or coarser variables, and swap variables that differ within strata",
            )
        return Guard(name=STANDING_GUARD, finding=self.finding)


def expect_share_moved(shapes: Shapes, stays: Sequence[Stay], rate: Fraction) -> ExpectedEffect:
    """Return the expected share of all records that change places: the effective rate in strata that can move.

    Records that take no part, or whose stratum has one swap value or one held combination, never move.
    """
    movable = (shapes.swap_types >= 2) & (shapes.hold_types >= 2)
    taking = shapes.n * shapes.strata
    moved = float((effective_rate(shapes.n, rate) * taking)[movable].sum())
    records = int(taking.sum()) + sum(stay.records for stay in stays)
    return ExpectedEffect(kind="records", share=moved / max(records, 1), records=records)


def _count_chosen(shapes: Shapes, chosen: NDArray[np.bool_]) -> tuple[int, int]:
    return int((shapes.n * shapes.strata)[chosen].sum()), int(shapes.strata[chosen].sum())
