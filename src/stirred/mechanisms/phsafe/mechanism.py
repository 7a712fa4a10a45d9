"""PHSafe: noisy counts of persons by household and of households, each with its variance (S-DHC, PH1 to PH8)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.chance.words import Hasher
from stirred.engine import Engine, Local, Progress, silent
from stirred.errors import InputError
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.arguments import admitted, require_inputs
from stirred.mechanisms.base import Check, Knob, Mechanism, MechanismConfig, Release, totals_to_try
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, smallest_effect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.phsafe import exhibits, files, refusals, statement
from stirred.mechanisms.phsafe.amounts import MeasuredTable, budgets, measured
from stirred.mechanisms.phsafe.config import PHSafeConfig
from stirred.mechanisms.phsafe.counting.tables import TABULATIONS
from stirred.mechanisms.phsafe.counting.tabulate import CountKernel, regions, tabulated
from stirred.mechanisms.phsafe.counting.variables import HOUSEHOLD, PERSON, CensusColumns
from stirred.mechanisms.phsafe.factors import FACTORS, JOINED, PromisedUnit
from stirred.mechanisms.phsafe.measure import (
    DERIVED,
    MEASURES,
    ORDER,
    Answers,
    has,
    published,
    rows_of_measurement,
    shown,
    variables,
)
from stirred.mechanisms.phsafe.presets import PRESETS
from stirred.mechanisms.phsafe.proposal import propose
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import finished
from stirred.mechanisms.safetab.noise import Definition
from stirred.spec import Specification
from stirred.spec.algebra.conversions import Conversion
from stirred.spec.released import Views, largest_views, view_of

if TYPE_CHECKING:
    from stirred.census import Census, Schema


@dataclass(frozen=True, kw_only=True)
class PHSafe(Mechanism):
    r"""Counts of persons by household with $\sigma^2 = (2\tau + 2)^2 / 2\rho^2$, and of households with $2/\rho^2$.

    >>> mechanism = PHSafe()
    >>> mechanism.amounts["PH3", "state_A-G"], mechanism.taus["PH3"]
    (Fraction(10359, 15625), 6)
    """

    name: ClassVar[str] = "phsafe"
    Config: ClassVar[type[MechanismConfig]] = PHSafeConfig
    conversion: ClassVar[Conversion | None] = JOINED
    seconds_per_million: ClassVar[float] = 2.0

    preset: str = "sdhc-2020"
    definition: Definition = "zcdp"
    neighbours: PromisedUnit = "added-or-removed"
    rho_squared: str | None = None
    epsilon: str | None = None
    budget: Mapping[str, str] | None = None
    tau: Mapping[str, int] | None = None
    states: Sequence[str] = field(default=())
    state: str = "state"
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        refusals.require_kinds(
            preset=self.preset,
            definition=self.definition,
            neighbours=self.neighbours,
            states=self.states,
            state=self.state,
        )
        refusals.require_tables(budget=self.budget, tau=self.tau, columns=self.columns)
        object.__setattr__(self, "states", tuple(self.states))
        refusals.require_totals(
            self.definition, preset=self.preset, rho_squared=self.rho_squared, epsilon=self.epsilon
        )
        refusals.require_names(tau=self.tau or {}, columns=self.columns or {}, states=self.states)
        refusals.require_tau(self.amounts, self.taus)

    @property
    def noiseless(self) -> bool:
        """Whether no noise is added: no protection, for a rehearsal."""
        return str(self.epsilon) == "inf"

    @cached_property
    def amounts(self) -> dict[tuple[str, str], Fraction | None]:
        """The budget of every table and level; None: infinite."""
        total = self.rho_squared if self.definition == "zcdp" else self.epsilon
        wanted = None if self.noiseless or total is None else Fraction(str(total))
        return budgets(PRESETS[self.preset], self.budget or {}, wanted, infinite=self.noiseless)

    @cached_property
    def taus(self) -> dict[str, int]:
        """How many persons of a household count at most, by table."""
        return {**PRESETS[self.preset].tau, **(self.tau or {})}

    @property
    def nation(self) -> bool:
        """Whether the nation is tabulated: not in a run for Puerto Rico."""
        return self.states != (refusals.PUERTO_RICO,)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """The production settings."""
        return propose(schema)

    @property
    def record_type(self) -> str:
        """Persons, whom most tables count."""
        return "person"

    def parameters(self) -> dict[str, object]:
        """JSON-able and canonical."""
        return {
            "preset": self.preset,
            "definition": self.definition,
            "neighbours": self.neighbours,
            "rho_squared": None if self.rho_squared is None else str(Fraction(str(self.rho_squared))),
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "budget": None if self.budget is None else dict(sorted(self.budget.items())),
            "tau": None if self.tau is None else dict(sorted(self.tau.items())),
            "states": list(self.states),
            "state": self.state,
            "columns": None if self.columns is None else dict(sorted(self.columns.items())),
        }

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop where records or states are missing, or where no table can be made."""
        columns = self._columns(census)
        self._wanted(columns)
        self._states(engine.census(census) if engine else census, columns)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """The promise per person added or removed, with the household's own unit record."""
        require_inputs(census, engine)
        columns = self._columns(census)
        return self._stated(census, columns)

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a count is not 0, in the table with the least noise."""
        return smallest_effect(
            {item.place: item.noise.change for item in self._measured(self._columns(census))}
        )

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        state: Path | None = None,  # noqa: ARG002
        progress: Progress | None = None,
    ) -> Release:
        """All tables; with ``out`` also as the Bureau's files."""
        census = admitted(census, key, engine)
        place, report = engine or Local(), progress or silent
        census = engine.census(census) if engine else census
        columns = self._columns(census)
        wanted, states = self._wanted(columns), self._states(census, columns)
        report("counting", 0, 2)
        # the order of truncation must not depend on the data, so this key is not bound to them
        order = Hasher.of(key.bind(self.name, "truncation"), "order")
        tables = {item.table for item in wanted}
        kernel = CountKernel(
            columns=columns,
            tau=tuple((t.name, self.taus[t.name]) for t in TABULATIONS if t.persons and t.name in tables),
            households=tuple(t.name for t in TABULATIONS if not t.persons and t.name in tables),
            states=states,
            hasher=order,
        )
        counts = tabulated(census, kernel, place)
        report("noise", 1, 2)
        answers = [Answers.of(counts, item, states) for item in wanted]
        # the words of the promise change no draw
        same = {name: value for name, value in self.parameters().items() if name != "neighbours"}
        settings = json.dumps(same, sort_keys=True)
        truth = key.digest(*(answer.counts.tobytes() for answer in answers), repr(states).encode())
        made = published(answers, key.bind(self.name, settings, truth))
        promise = self._stated(census, columns)
        report("noise", 2, 2)
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables={
                name.lower(): table.to_arrow(compat_level=pl.CompatLevel.oldest())
                for name, table in made.items()
            },
            files=files.write(out, made, self.definition) if out is not None else (),
            checks=(
                Check(
                    invariant=str(statement.some_unit(census, columns)),
                    kept=all(shown(table) <= set(states) for table in made.values()),
                    numbers=len(states),
                ),
            ),
            ledger=statement.ledger(wanted, self.definition, self.neighbours),
            notes=(Phrase("phsafe.note.noiseless"),) if promise.budget.is_finite is False else (),
            input_digest=truth.hex(),
            private=key.private and promise.budget.is_finite,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
        )

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """One of its own tables with the standard error and the 95 % interval of every count."""
        name = next((t for t in ORDER if set(variables(t)) == set(by) and t.lower() in release.tables), "")
        if not name or weight:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        return finished(frame_of(release.tables[name.lower()]).select(*by, *MEASURES), by)

    def counted(self, release: Release) -> Mapping[str, tuple[str, ...]]:
        """All of its tables."""
        return {name.lower(): variables(name) for name in ORDER if name.lower() in release.tables}

    def views(self, census: "Census") -> Views:
        """Each measured table by state, as far as its variables are columns of the census."""
        columns = self._columns(census)
        names = dict(columns.household) | {f"person.{name}": column for name, column in columns.person}
        made = {item.table for item in self._measured(columns)}
        found = [
            view_of(
                census.domain,
                "person" if table.persons else "household",
                (columns.state, *(names[need] for need in table.needs if need in names)),
            )
            for table in TABULATIONS
            if table.name in made
        ]
        return largest_views(census.domain, found)

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:
        """Return the variables of its tables: regions, iterations and cells, which are no columns of the census."""
        made = {item.table for item in self._measured(self._columns(census))}
        names = [name for name in ORDER if DERIVED.get(name, (name,))[0] in made]
        return {self.record_type: tuple(dict.fromkeys(v for name in names for v in variables(name)))}

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """The noise by table and region, the averages that follow, and what truncation leaves out."""
        every = frozenset([*HOUSEHOLD, *(f"person.{name}" for name in PERSON)])
        listed, tables = self._measured_of(every), {}
        if release is not None:
            tables = {n: frame_of(release.tables[n.lower()]) for n in ORDER if n.lower() in release.tables}
            listed = tuple(item for item in listed if has(tables, item))
        tau = {name: value for name, value in self.taus.items() if name in {item.table for item in listed}}
        averages = exhibits.averages_exhibit(tables)
        found = (exhibits.noise_exhibit(listed, tau), exhibits.truncation_exhibit(tau))
        return found if averages is None else (*found, averages)

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """The law of every measured table, and the rows of the released table that have its noise."""
        tables = self.release(census, key=key, engine=engine).tables
        factor = FACTORS[self.definition][self.neighbours]
        found = []
        for item in self._measured(self._columns(census)):
            if item.budget is None:
                continue
            name = item.table.lower()
            rows = rows_of_measurement(frame_of(tables[name]).with_row_index("row number"), item)
            law = item.noise.measured(item.place, np.zeros(0, np.int64), item.budget * factor)
            found.append(replace(law, table=name, rows=tuple(rows["row number"].to_list())))
        return found

    def without_noise(self) -> Mechanism:
        """The same tables with an infinite budget; a key truncates the same persons in both."""
        return replace(self, epsilon="inf", rho_squared=None)

    def knobs(self) -> Sequence[Knob]:
        """The total budget, which all tables share in proportion."""
        finite = [amount for amount in self.amounts.values() if amount is not None]
        if self.noiseless or len(finite) < len(self.amounts):
            return ()
        name = "rho_squared" if self.definition == "zcdp" else "epsilon"
        return (
            Knob(
                name=name,
                effect="a larger total is a larger budget and has a smaller error, in all tables in proportion",
                settings=totals_to_try(sum(finite, Fraction(0))),
                turned=lambda total: replace(self, **{name: str(total)}),  # type: ignore[arg-type]
            ),
        )

    def _columns(self, census: "Census") -> CensusColumns:
        refusals.require_records(census, self.state)
        return CensusColumns.of(census, self.columns or {}, state=self.state)

    def _stated(self, census: "Census", columns: CensusColumns) -> Specification:
        return statement.specification(
            census,
            columns,
            self._measured(columns),
            self.definition,
            neighbours=self.neighbours,
            nation=self.nation,
            released=self.views(census),
        )

    def _wanted(self, columns: CensusColumns) -> tuple[MeasuredTable, ...]:
        found = self._measured(columns)
        if not found:
            raise InputError(
                "PHSafe would make no table",
                why="every budget is 0, or the census lacks the variables of the tables that have one",
                fix="give a budget, or name the columns: --columns person.age=years",
            )
        return found

    def _measured(self, columns: CensusColumns) -> tuple[MeasuredTable, ...]:
        return self._measured_of(columns.available)

    def _measured_of(self, available: frozenset[str]) -> tuple[MeasuredTable, ...]:
        return measured(self.amounts, self.taus, self.definition, available, nation=self.nation)

    def _states(self, census: "Census", columns: CensusColumns) -> tuple[str, ...]:
        """The states that are tabulated, from the public file of areas or from the invariant."""
        return refusals.chosen_states(regions(census, columns), self.states)
