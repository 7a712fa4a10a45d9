"""Publish special tabulations: small counts are left out, counts are rounded; without a guarantee.

special_proof.md shows why there is none.

"fives" and "tens" are the rules of the Disclosure Review Board for special tabulations of Census 2000 (29 January 2004),
"graduated" is its rule for counts of 2019.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census.schema import Schema
from stirred.chance import Key
from stirred.engine import Engine
from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.base import require_inputs
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.proposal import Proposal, find_root
from stirred.mechanisms.release import Release, format_table
from stirred.mechanisms.tables.base import MadeTables, RecordTables, name_table, propose_tables
from stirred.mechanisms.tables.config import SpecialTabulationsConfig
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.census import Census


# Rules for counts: what is shown of a count, and which counts can stand behind what is shown.

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

    >>> [CountRule(rounding="fives").show(n) for n in (0, 1, 7, 8, 12, 13)]
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


# Special tabulations as an optional step: small counts and areas left out, counts rounded; without a guarantee.

SMALL_COUNTS_PROTECTED = range(1, 11)  # that the rules are there to protect


class SpecialTabulations(RecordTables):
    """Tables whose small counts and areas are left out, and whose counts are rounded; no noise, so no budget is finite.

    >>> SpecialTabulations(tables=[["county"]]).rule.first_step()
    (0, 0, 4)
    """

    name: ClassVar[str] = "special-tabulations"
    config: SpecialTabulationsConfig

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Return tables of the coarsest area, if any, by the first categories, rounded to fives."""
        why = "the rule of the Disclosure Review Board for special tabulations"
        return propose_tables(schema, find_root(schema), {"rounding": "fives"}, {"rounding": why})

    def check_settings(self) -> None:
        """Refuse settings without a table or without a rule."""
        super().check_settings()
        if self.rule == CountRule() and not self.config.least_area:
            raise InputError(
                "no rule is set",
                why="without one the tables would show every count as it is",
                fix='rounding = "fives", base, least_count or least_area',
            )

    @property
    def rule(self) -> CountRule:
        """Return the rule for counts."""
        return CountRule(rounding=self.config.rounding, base=self.config.base, least=self.config.least_count)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return no finite budget; on released records, the promise of that release."""
        require_inputs(census, engine)
        return self.state_without_budget(
            census,
            source=Phrase("special.source"),
            notes=(Phrase("special.note.witness"),),
            chained=Phrase("special.note.chained"),
        )

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the share of the counts from 1 to 10 that the rules show as another number, or not at all."""
        if self.given is not None:
            return None
        changed = sum(self.rule.show(count) != count for count in SMALL_COUNTS_PROTECTED)
        return ExpectedEffect(kind="cells", share=changed / len(SMALL_COUNTS_PROTECTED))

    def make_tables(
        self,
        census: "Census",
        promise: Specification,  # noqa: ARG002
        key: Key,  # noqa: ARG002
        engine: Engine,  # noqa: ARG002
    ) -> MadeTables:
        """Return each table by the rules; tables are counted before rounding, so they do not add up."""
        return MadeTables(tables={name_table(by): self._make_table(census, by) for by in self.tables})

    def read_table(self, release: Release, by: Sequence[str], weight: str) -> pa.Table | None:
        """Return one of the tables; of a census with the range behind each number and its error."""
        if weight:
            return None
        found = self.find_table(
            release, by, "rounded counts are not added up: each table is counted before it is rounded"
        )
        if self.given is not None:  # a range would be about the released records, not about the census
            return format_table(found.select(*by, "count"), by)
        count = found["count"].to_numpy()
        distinct, place = np.unique(count, return_inverse=True)
        ranges = np.array([self.rule.range_behind(int(shown)) for shown in distinct], float).reshape(-1, 2)[
            place
        ]
        low, high = ranges[:, 0], ranges[:, 1]
        # as if all counts in the range were equally likely
        spread = ((high - low + 1) ** 2 - 1) / 12 + ((high + low) / 2 - count) ** 2
        return format_table(
            found.select(*by, "count").with_columns(
                estimate=count.astype(float), standard_error=np.sqrt(spread), low=low, high=high
            ),
            by,
        )

    def details(self) -> Mapping[str, object]:
        """Return the pair of data sets that shows why no budget is finite."""
        if self.given is not None:
            return {}
        count, before, after = self.rule.first_step()
        return {
            "witness": {
                "first": f"a cell with {count} records, in an area that is shown",
                "second": "the same records, one of them changed into that cell",
                "distance": 1,
                "event": f"the cell shows {after}",
                "chances": [0.0, 1.0],
                "shown": [before, after],
                "count": count,
            }
        }

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return what the rules do not promise."""
        return (
            Exhibit(
                title=Phrase("special.limits.title"),
                finding=Phrase(
                    "special.limits.finding" if self.given is None else "special.limits.continues"
                ),
                note=Phrase("special.limits.note"),
                chapter="risk",
            ),
        )

    def _make_table(self, census: "Census", by: Sequence[str]) -> pa.Table:
        counts = self.counts(census, by)
        areas = [name for name in by if name in census.schema.spine]
        if self.config.least_area and areas:
            counts = counts.filter(pl.col("count").sum().over(areas) >= self.config.least_area)
        shown = pl.Series("count", self.rule.of(counts["count"].to_numpy().astype(np.int64)))
        return format_table(counts.with_columns(shown).filter(pl.col("count") > 0), by)
