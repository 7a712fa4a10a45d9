"""Special tabulations as an optional step: small counts and areas left out, counts rounded; without a guarantee."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.errors import InputError, require_kind
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.arguments import require_inputs, require_key
from stirred.mechanisms.base import Mechanism, MechanismConfig, Release
from stirred.mechanisms.chains.earlier import earlier_counts, earlier_promise
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import finished, own_table
from stirred.mechanisms.special_tabulations.config import SpecialTabulationsConfig
from stirred.mechanisms.special_tabulations.proposal import propose
from stirred.mechanisms.special_tabulations.rules import CountRule
from stirred.spec import Budget, Evidence, Hamming, Ledger, Multiplicative, Multiverse, Specification

if TYPE_CHECKING:
    from stirred.census import Census, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialTabulations(Mechanism):
    """Tables whose small counts and areas are left out, and whose counts are rounded; no noise, so no budget is finite.

    >>> SpecialTabulations(tables=[["county"]]).rule.first_step()
    (0, 0, 4)
    """

    name: ClassVar[str] = "special-tabulations"
    Config: ClassVar[type[MechanismConfig]] = SpecialTabulationsConfig

    tables: Sequence[Sequence[str]]
    record: str = "household"
    rounding: str = "fives"
    base: int = 0
    least_count: int = 0
    least_area: int = 0
    given: Path | None = None
    without_guarantee: str = ""

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Small tables of the coarsest areas."""
        return propose(schema)

    def __post_init__(self) -> None:
        require_kind("record", self.record, str, wanted="a record type", fix='record="person"')
        if not self.tables or any(isinstance(by, str) for by in self.tables):
            raise InputError(
                "the tables are not lists of variables",
                why="each table is a list of the variables that it counts by",
                fix='tables=[["county", "tenure"]]',
            )
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

    @classmethod
    def of(cls, config: MechanismConfig) -> Self:
        """The mechanism with these settings."""
        settings = {name: getattr(config, name) for name in type(config).model_fields}
        settings["given"] = None if settings["given"] is None else Path(settings["given"])
        return cls(**settings)

    @property
    def rule(self) -> CountRule:
        """What happens to a count."""
        return CountRule(rounding=self.rounding, base=self.base, least=self.least_count)

    @property
    def record_type(self) -> str:
        """The records that are counted."""
        return self.record

    @property
    def published_without_guarantee(self) -> str:
        """The office's reason."""
        return self.without_guarantee

    def parameters(self) -> dict[str, object]:
        """JSON-able and canonical; where a given release lies says nothing."""
        return {name: value for name, value in self.settings().items() if name != "given"}

    def settings(self) -> dict[str, object]:
        """The keys of a [[mechanism]]."""
        found = {name: getattr(self, name) for name in self.Config.model_fields}
        found["tables"] = [list(by) for by in self.tables]
        found["given"] = None if self.given is None else str(self.given)
        return found

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:  # noqa: ARG002
        """Stop at variables that are not there."""
        if self.given is None:
            census.scan(self.record, [name for by in self.tables for name in by])

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """No finite budget; on the records of an earlier release, the promise of that release."""
        require_inputs(census, engine)
        reason = (
            (Phrase("budget_note.without_guarantee", reason=self.without_guarantee),)
            if self.without_guarantee
            else ()
        )
        if self.given is not None:
            first = earlier_promise(self.given)
            return replace(first, notes=(*first.notes, Phrase("special.note.chained"), *reason))
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.none(),
            input_premetric=Hamming(self.record),
            output_premetric=Multiplicative(),
            budget=Budget.infinite(),
            evidence=Evidence(status="proved", source=Phrase("special.source")),
            notes=(Phrase("special.note.witness"), *reason, *census.notes),
        )

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
        """Each table by the rules; counted before anything is rounded, so that tables do not add up."""
        require_inputs(census, engine)
        require_key(key)
        census = census.checked()
        census = engine.census(census) if engine else census
        promise = self.specification(census)
        made = {"-by-".join(reversed(by)) or "total": self._shown(census, by) for by in self.tables}
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables=made,
            ledger=Ledger().spend(by=self.name, on=self.record, budget=promise.budget),
            settings=self.settings(),
            private=key.private,
            schema=census.schema,
            folder=census.folder,
        )

    def publishes(self, census: "Census") -> Mapping[str, Sequence[str]] | None:  # noqa: ARG002
        """The variables of the tables."""
        return {self.record: tuple(dict.fromkeys(name for by in self.tables for name in by))}

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """One of the tables; of a census with the range of counts behind each number, and the error of rounding."""
        if weight or (record_type or self.record) != self.record:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        found = own_table(release, by)
        if found is None:
            raise InputError(
                f"no table of {', '.join(by) or 'no variable'} was made",
                why="rounded counts are not added up: each table is counted before it is rounded",
                fix="name the table in the setting tables and run again",
            )
        if self.given is not None:  # a range would be about the released records, not about the census
            return finished(found.select(*by, "count"), by)
        count = found["count"].to_numpy()
        distinct, place = np.unique(count, return_inverse=True)
        ranges = np.array([self.rule.behind(int(shown)) for shown in distinct], float).reshape(-1, 2)[place]
        low, high = ranges[:, 0], ranges[:, 1]
        # as if all counts in the range were equally likely
        spread = ((high - low + 1) ** 2 - 1) / 12 + ((high + low) / 2 - count) ** 2
        return finished(
            found.select(*by, "count").with_columns(
                estimate=count.astype(float), standard_error=np.sqrt(spread), low=low, high=high
            ),
            by,
        )

    def details(self) -> Mapping[str, object]:
        """The pair of data sets that shows why no budget is finite."""
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
        """What the rules do not promise."""
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

    def _shown(self, census: "Census", by: Sequence[str]) -> pa.Table:
        if self.given is None:
            counts = frame_of(census.counts(self.record, list(by)))
        else:
            counts = earlier_counts(self.given, census, self.record, by)
        areas = [name for name in by if name in census.schema.spine]
        if self.least_area and areas:
            counts = counts.filter(pl.col("count").sum().over(areas) >= self.least_area)
        shown = pl.Series("count", self.rule.of(counts["count"].to_numpy().astype(np.int64)))
        return finished(counts.with_columns(shown).filter(pl.col("count") > 0), by)
