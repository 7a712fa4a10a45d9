"""Special tabulations as an optional step: small counts and areas left out, counts rounded; without a guarantee."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.arguments import require_inputs
from stirred.mechanisms.base import Mechanism, MechanismConfig, Release
from stirred.mechanisms.chains.tables import RecordTables, name_table
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import find_own_table, format_table
from stirred.mechanisms.special_tabulations.config import SpecialTabulationsConfig
from stirred.mechanisms.special_tabulations.proposal import propose
from stirred.mechanisms.special_tabulations.rules import CountRule
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.census import Census, Schema

SMALL_COUNTS_PROTECTED = range(1, 11)  # that the rules are there to protect


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTabulations(RecordTables):
    """Tables whose small counts and areas are left out, and whose counts are rounded; no noise, so no budget is finite.

    >>> SpecialTabulations(tables=[["county"]]).rule.first_step()
    (0, 0, 4)
    """

    name: ClassVar[str] = "special-tabulations"
    Config: ClassVar[type[MechanismConfig]] = SpecialTabulationsConfig

    rounding: str = "fives"
    base: int = 0
    least_count: int = 0
    least_area: int = 0

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Return small tables of the coarsest areas."""
        return propose(schema)

    def __post_init__(self) -> None:
        RecordTables.__post_init__(self)
        if self.rounding not in ("none", "fives", "tens", "graduated"):
            raise InputError(
                f"there is no rounding {self.rounding!r}",
                why="the rules are none, fives, tens and graduated",
                fix='rounding = "fives", or base = 3 for multiples of 3',
            )
        if self.rule == CountRule() and not self.least_area:
            raise InputError(
                "no rule is set",
                why="without one the tables would show every count as it is",
                fix='rounding = "fives", base, least_count or least_area',
            )

    @property
    def rule(self) -> CountRule:
        """Return the rule for counts."""
        return CountRule(rounding=self.rounding, base=self.base, least=self.least_count)

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

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,  # noqa: ARG002
        state: Path | None = None,  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> Release:
        """Release each table by the rules; tables are counted before rounding, so they do not add up."""
        census = self.admit_census(census, key, engine)
        made = {name_table(by): self._make_table(census, by) for by in self.tables}
        return self.make_release(census, key, self.specification(census), made)

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return one of the tables; of a census with the range behind each number and its error."""
        if weight or (record_type or self.record) != self.record:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        found = find_own_table(release, by)
        if found is None:
            raise InputError(
                f"no table of {', '.join(by) or 'no variable'} was made",
                why="rounded counts are not added up: each table is counted before it is rounded",
                fix="name the table in the setting tables and run again",
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
        if self.least_area and areas:
            counts = counts.filter(pl.col("count").sum().over(areas) >= self.least_area)
        shown = pl.Series("count", self.rule.of(counts["count"].to_numpy().astype(np.int64)))
        return format_table(counts.with_columns(shown).filter(pl.col("count") > 0), by)
