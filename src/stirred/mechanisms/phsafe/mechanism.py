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
from stirred.mechanisms.arguments import check_inputs, require_inputs
from stirred.mechanisms.base import Check, Knob, Mechanism, MechanismConfig, Release, totals_to_try
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, smallest_effect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.phsafe import exhibits, files, refusals, statement
from stirred.mechanisms.phsafe.amounts import MeasuredTable, divide_budget, list_measured
from stirred.mechanisms.phsafe.config import PHSafeConfig
from stirred.mechanisms.phsafe.counting.tables import TABULATIONS
from stirred.mechanisms.phsafe.counting.tabulate import CountKernel, count_tables, find_regions
from stirred.mechanisms.phsafe.counting.variables import HOUSEHOLD_VARIABLES, PERSON_VARIABLES, CensusColumns
from stirred.mechanisms.phsafe.factors import PHSAFE_CONVERSION, PHSAFE_FACTORS, PromisedUnit
from stirred.mechanisms.phsafe.measure import (
    DERIVED_TABLES,
    MEASURE_COLUMNS,
    TABLE_ORDER,
    Answers,
    has_measurement,
    list_states,
    list_variables,
    make_tables,
    select_rows,
)
from stirred.mechanisms.phsafe.presets import PRESETS
from stirred.mechanisms.phsafe.proposal import propose
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import format_table
from stirred.mechanisms.safetab.noise import Definition
from stirred.spec import Specification
from stirred.spec.algebra.conversions import Conversion
from stirred.spec.released import Views, largest_views, make_view

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
    conversion: ClassVar[Conversion | None] = PHSAFE_CONVERSION
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
    def is_noiseless(self) -> bool:
        """Return whether no noise is added: no protection, for a rehearsal."""
        return str(self.epsilon) == "inf"

    @cached_property
    def amounts(self) -> dict[tuple[str, str], Fraction | None]:
        """Return the budget of every table and level; None is infinite."""
        total = self.rho_squared if self.definition == "zcdp" else self.epsilon
        wanted = None if self.is_noiseless or total is None else Fraction(str(total))
        return divide_budget(PRESETS[self.preset], self.budget or {}, wanted, infinite=self.is_noiseless)

    @cached_property
    def taus(self) -> dict[str, int]:
        """Return how many persons of a household count at most, by table."""
        return {**PRESETS[self.preset].tau, **(self.tau or {})}

    @property
    def nation(self) -> bool:
        """Return whether the nation is tabulated: not in a run for Puerto Rico."""
        return self.states != (refusals.PUERTO_RICO_CODE,)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Return the production settings."""
        return propose(schema)

    @property
    def record_type(self) -> str:
        """Return the record type of persons, whom most tables count."""
        return "person"

    def parameters(self) -> dict[str, object]:
        """Return the canonical JSON parameters."""
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
        self._wanted_tables(columns)
        self._states(engine.census(census) if engine else census, columns)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the promise per person added or removed, with the household's own unit record."""
        require_inputs(census, engine)
        columns = self._columns(census)
        return self._build_specification(census, columns)

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a count is not 0, in the table with the least noise."""
        return smallest_effect(
            {item.place: item.noise.change for item in self._measured_tables(self._columns(census))}
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
        """Release all tables; with ``out`` also as the Bureau's files."""
        census = check_inputs(census, key, engine)
        place, report = engine or Local(), progress or silent
        census = engine.census(census) if engine else census
        columns = self._columns(census)
        wanted, states = self._wanted_tables(columns), self._states(census, columns)
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
        counts = count_tables(census, kernel, place)
        report("noise", 1, 2)
        answers = [Answers.of(counts, item, states) for item in wanted]
        # the words of the promise change no draw
        same = {name: value for name, value in self.parameters().items() if name != "neighbours"}
        settings = json.dumps(same, sort_keys=True)
        truth = key.digest(*(answer.counts.tobytes() for answer in answers), repr(states).encode())
        made = make_tables(answers, key.bind(self.name, settings, truth))
        promise = self._build_specification(census, columns)
        report("noise", 2, 2)
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables={
                name.lower(): table.to_arrow(compat_level=pl.CompatLevel.oldest())
                for name, table in made.items()
            },
            files=files.write_files(out, made, self.definition) if out is not None else (),
            checks=(
                Check(
                    invariant=str(statement.occupied_areas(census, columns)),
                    kept=all(list_states(table) <= set(states) for table in made.values()),
                    numbers=len(states),
                ),
            ),
            ledger=statement.build_ledger(wanted, self.definition, self.neighbours),
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
        """Return one of its own tables with the standard error and 95 % interval of every count."""
        name = next(
            (t for t in TABLE_ORDER if set(list_variables(t)) == set(by) and t.lower() in release.tables), ""
        )
        if not name or weight:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        return format_table(frame_of(release.tables[name.lower()]).select(*by, *MEASURE_COLUMNS), by)

    def list_own_tables(self, release: Release) -> Mapping[str, tuple[str, ...]]:
        """Return all of its tables with their variables."""
        return {name.lower(): list_variables(name) for name in TABLE_ORDER if name.lower() in release.tables}

    def views(self, census: "Census") -> Views:
        """Return each measured table by state, as far as its variables are columns of the census."""
        columns = self._columns(census)
        names = dict(columns.household) | {f"person.{name}": column for name, column in columns.person}
        made = {item.table for item in self._measured_tables(columns)}
        found = [
            make_view(
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
        made = {item.table for item in self._measured_tables(self._columns(census))}
        names = [name for name in TABLE_ORDER if DERIVED_TABLES.get(name, (name,))[0] in made]
        return {self.record_type: tuple(dict.fromkeys(v for name in names for v in list_variables(name)))}

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return the noise by table and region, the averages that follow, and what truncation leaves out."""
        every = frozenset([*HOUSEHOLD_VARIABLES, *(f"person.{name}" for name in PERSON_VARIABLES)])
        listed, tables = self._measured_with(every), {}
        if release is not None:
            tables = {
                n: frame_of(release.tables[n.lower()]) for n in TABLE_ORDER if n.lower() in release.tables
            }
            listed = tuple(item for item in listed if has_measurement(tables, item))
        tau = {name: value for name, value in self.taus.items() if name in {item.table for item in listed}}
        averages = exhibits.show_averages(tables)
        found = (exhibits.show_noise(listed, tau), exhibits.show_truncation(tau))
        return found if averages is None else (*found, averages)

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """Return the law of every measured table, and the rows of the released table with its noise."""
        tables = self.release(census, key=key, engine=engine).tables
        factor = PHSAFE_FACTORS[self.definition][self.neighbours]
        found = []
        for item in self._measured_tables(self._columns(census)):
            if item.budget is None:
                continue
            name = item.table.lower()
            rows = select_rows(frame_of(tables[name]).with_row_index("row number"), item)
            law = item.noise.describe_noise(item.place, np.zeros(0, np.int64), item.budget * factor)
            found.append(replace(law, table=name, rows=tuple(rows["row number"].to_list())))
        return found

    def without_noise(self) -> Mechanism:
        """Return the same tables with an infinite budget; a key truncates the same persons in both."""
        return replace(self, epsilon="inf", rho_squared=None)

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total budget, which all tables share in proportion."""
        finite = [amount for amount in self.amounts.values() if amount is not None]
        if self.is_noiseless or len(finite) < len(self.amounts):
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

    def _build_specification(self, census: "Census", columns: CensusColumns) -> Specification:
        return statement.build_specification(
            census,
            columns,
            self._measured_tables(columns),
            self.definition,
            neighbours=self.neighbours,
            nation=self.nation,
            released=self.views(census),
        )

    def _wanted_tables(self, columns: CensusColumns) -> tuple[MeasuredTable, ...]:
        found = self._measured_tables(columns)
        if not found:
            raise InputError(
                "PHSafe would make no table",
                why="every budget is 0, or the census lacks the variables of the tables that have one",
                fix="give a budget, or name the columns: --columns person.age=years",
            )
        return found

    def _measured_tables(self, columns: CensusColumns) -> tuple[MeasuredTable, ...]:
        return self._measured_with(columns.available)

    def _measured_with(self, available: frozenset[str]) -> tuple[MeasuredTable, ...]:
        return list_measured(self.amounts, self.taus, self.definition, available, nation=self.nation)

    def _states(self, census: "Census", columns: CensusColumns) -> tuple[str, ...]:
        """Return the states that are tabulated, from the public file of areas or from the invariant."""
        return refusals.choose_states(find_regions(census, columns), self.states)
