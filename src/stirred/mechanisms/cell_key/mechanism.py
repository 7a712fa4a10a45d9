"""The cell key method as a mechanism: tables of counts with bounded noise that depends on who is in a cell."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Flow, Local, Progress
from stirred.errors import DataError, InputError, require_kind
from stirred.languages import Phrase
from stirred.mechanisms.arguments import require_inputs, require_key
from stirred.mechanisms.base import Knob, Mechanism, MechanismConfig, Release
from stirred.mechanisms.cell_key.config import CellKeyConfig
from stirred.mechanisms.cell_key.earlier import earlier_promise, earlier_records
from stirred.mechanisms.cell_key.exact_law import law_of_table
from stirred.mechanisms.cell_key.exhibits import exhibits
from stirred.mechanisms.cell_key.files import read_table
from stirred.mechanisms.cell_key.perturbation import Perturbation, Ties, designed, read_back
from stirred.mechanisms.cell_key.proposal import propose
from stirred.mechanisms.cell_key.tabulate import COUNT, SUM, KeyedCells, RecordKeys, counted
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.law import Law
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import finished, own_table
from stirred.spec import Budget, Evidence, Hamming, Ledger, Multiplicative, Multiverse, Specification

if TYPE_CHECKING:
    from stirred.census import Census, Schema


@dataclass(frozen=True, kw_only=True)
class CellKey(Mechanism):
    """Counts with noise from a perturbation table, looked up by the count and by the sum of the records' keys.

    The same set of records has the same noise in every table; tables do not add up. No budget is finite (proof.md): a
    count in a cell proves that the cell has a record.
    """

    name: ClassVar[str] = "cell-key"
    Config: ClassVar[type[MechanismConfig]] = CellKeyConfig

    tables: Sequence[Sequence[str]]
    record: str = "household"
    ptable: Path | None = None
    D: int = 5
    V: Fraction | str | int = 3
    js: int = 0
    pstay: Fraction | str | None = None
    mono: bool = True
    digits: int = 8
    ties: str = "below"
    record_key: str | None = None
    threshold: int = 0
    period: int = 250
    without_guarantee: str = ""
    given: Path | None = None

    def __post_init__(self) -> None:
        require_kind("record", self.record, str, wanted="a record type", fix='record="person"')
        if not self.tables or any(isinstance(by, str) for by in self.tables):
            raise InputError(
                "the tables are not lists of variables",
                why="each table is a list of the variables that it counts by",
                fix='tables=[["county", "tenure"]]',
            )
        if self.ties not in ("below", "up-to"):
            raise InputError(
                f"ties is {self.ties!r}", why="there are two rules", fix='ties="below", or "up-to"'
            )

    @classmethod
    def of(cls, config: MechanismConfig) -> Self:
        """The mechanism with these settings."""
        settings = {name: getattr(config, name) for name in type(config).model_fields}
        for name in ("ptable", "given"):
            settings[name] = None if settings[name] is None else Path(settings[name])
        return cls(**settings)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Small tables of the coarsest areas."""
        return propose(schema)

    @property
    def record_type(self) -> str:
        """The records that are counted."""
        return self.record

    @property
    def published_without_guarantee(self) -> str:
        """The office's reason."""
        return self.without_guarantee

    @cached_property
    def perturbation(self) -> Perturbation:
        """The perturbation table: read, or designed."""
        ties: Ties = "up-to" if self.ties == "up-to" else "below"
        if self.ptable is not None:
            return read_table(self.ptable, digits=self.digits, ties=ties, period=self.period)
        stay = None if self.pstay is None else float(Fraction(str(self.pstay)))
        return designed(
            self.D,
            float(Fraction(str(self.V))),
            js=self.js,
            stay=stay,
            mono=self.mono,
            digits=self.digits,
            ties=ties,
        )

    def parameters(self) -> dict[str, object]:
        """What the receipt says; of a perturbation table in a file only its digest, never its noise."""
        found = self.settings()
        if self.ptable is not None:
            design = ("D", "V", "js", "pstay", "mono")
            found = {name: value for name, value in found.items() if name not in design}
            found["ptable"] = hashlib.sha256(self.ptable.read_bytes()).hexdigest()
        return {name: value for name, value in found.items() if value is not None and name != "given"}

    def settings(self) -> dict[str, object]:
        """The keys of a [[mechanism]]."""
        found = {name: getattr(self, name) for name in self.Config.model_fields}
        found["V"] = str(Fraction(str(self.V)))
        found["pstay"] = None if self.pstay is None else str(Fraction(str(self.pstay)))
        found["tables"] = [list(by) for by in self.tables]
        return {name: str(value) if isinstance(value, Path) else value for name, value in found.items()}

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:  # noqa: ARG002
        """Stop at a perturbation table that cannot be, and at records that have no key."""
        _ = self.perturbation
        self._key_column(census)
        if self.given is None:
            census.scan(self.record, [name for by in self.tables for name in by])

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """No finite budget; on the records of an earlier release, the promise of that release."""
        require_inputs(census, engine)
        if self.given is not None:
            return earlier_promise(self.given)
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.none(),
            input_premetric=Hamming(self.record),
            output_premetric=Multiplicative(),
            budget=Budget.infinite(),
            evidence=Evidence(status="proved", source=Phrase("cell_key.source")),
            notes=(Phrase("cell_key.note.witness"), *self._reason(), *census.notes),
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
        """Each table with its perturbed counts; keys, noise and counts before it never leave this function."""
        require_inputs(census, engine)
        require_key(key)
        engine = engine or Local()
        census = engine.census(census.checked())
        promise = self.specification(census)
        column = self._key_column(census)
        keys = RecordKeys(
            key.bind(self.name, "record keys"),  # not bound to tables or data: keys are permanent
            column,
            self.perturbation.modulus,
            permanent=self.record_key is not None,
        )
        made = {}
        for by in self.tables:
            flow = self._flow(census, engine, list(dict.fromkeys([*by, column])))
            made["-by-".join(reversed(by)) or "total"] = self._perturbed(
                counted(flow, KeyedCells(tuple(by), keys)), by
            )
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
        """One of the tables with the standard error and 95 % interval of each count; sums of cells are refused."""
        found = own_table(release, by)
        if weight or (record_type or self.record) != self.record:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        if found is None:
            raise InputError(
                f"no table of {', '.join(by) or 'no variable'} was perturbed",
                why="perturbed counts are not added up: their errors would add up too, and each sum has its own key",
                fix="name the table in the setting tables and run again",
            )
        count = found[COUNT].to_numpy()
        error, low, high = read_back(self.perturbation, count)
        return finished(
            found.select(*by, COUNT).with_columns(
                estimate=count.astype(np.float64), standard_error=error, low=low, high=high
            ),
            by,
        )

    def exact_law(self, census: "Census") -> Law | None:
        """The law of a single table of counts; keys of its own make it a function of the records, with no law."""
        more = [self.record_key, self.given, getattr(self, "weight", None), *getattr(self, "magnitudes", ())]
        if len(self.tables) > 1 or any(more):
            return None
        by, name = list(self.tables[0]), "-by-".join(reversed(self.tables[0])) or "total"
        counts = census.counts(self.record, by)
        return law_of_table(counts, by, self.perturbation, name=name, threshold=self.threshold)

    def details(self) -> Mapping[str, object]:
        """The pair of data sets that shows why no budget is finite."""
        if self.given is not None:
            return {}
        number, chance = self.shown_from()
        return {
            "witness": {
                "first": "a cell with no record",
                "second": f"the same records, {number} of them changed into that cell",
                "distance": number,
                "event": "the cell is shown",
                "chances": [0.0, chance],
            }
        }

    def shown_from(self) -> tuple[int, float]:
        """The smallest count that is ever shown, and the chance that it is."""
        reach = int(self.perturbation.largest)
        noise = np.arange(-reach, reach + 1)
        for number in range(1, max(self.threshold, 1) + 2 * reach + 2):
            shown = number + noise >= max(self.threshold, 1)
            chance = float(self.perturbation.chance(np.full(len(noise), number), noise)[shown].sum())
            if chance > 0:
                return number, chance
        raise DataError(
            "the perturbation table shows nothing",
            why="every count is changed to one below the threshold",
            fix="a smaller threshold, or another perturbation table",
        )

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """The law of the noise, and what it does not do."""
        return exhibits(
            self.perturbation, release, secret=self.ptable is not None, continues=self.given is not None
        )

    def knobs(self) -> Sequence[Knob]:
        """The variance of a designed table."""
        if self.ptable is not None:
            return ()
        top = Fraction(self.D * self.D, 2)
        return (
            Knob(
                name="V",
                effect="a larger variance has a larger error; the budget is infinite in any case",
                settings=tuple(top * step / 16 for step in range(1, 16)),
                turned=lambda variance: replace(self, V=variance),
            ),
        )

    def _reason(self) -> tuple[Phrase, ...]:
        if not self.without_guarantee:
            return ()
        return (Phrase("budget_note.without_guarantee", reason=self.without_guarantee),)

    def _perturbed(self, cells: pl.DataFrame, by: Sequence[str]) -> pa.Table:
        count = cells[COUNT].to_numpy() + self.perturbation.noise(
            cells[COUNT].to_numpy(), cells[SUM].to_numpy()
        )
        # a perturbed 0 is left out, as a cell without records is: which of the two it is must not be seen
        shown = count >= max(self.threshold, 1)
        return finished(cells.select(*by).with_columns(pl.Series(COUNT, count)).filter(pl.Series(shown)), by)

    def _flow(self, census: "Census", engine: Engine, columns: list[str]) -> Flow:
        if self.given is None:
            return engine.records(census, self.record, columns)
        return engine.released(earlier_records(self.given, census, self.record, columns))

    def _key_column(self, census: "Census") -> str:
        record = census.schema.record(self.record)
        if self.record_key is not None:
            return self.record_key
        if not record.id:
            raise DataError(
                f"{self.record} records have no identifier",
                why="a record's key is made from it, so that the same record has the same key in every table",
                fix=f'name it in census.toml: id = "…" under [record.{self.record}], or name a column of keys: record_key',
            )
        return record.id
