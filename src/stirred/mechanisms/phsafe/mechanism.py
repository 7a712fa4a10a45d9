"""PHSafe: noisy counts of persons by household and of households, each with its variance (S-DHC, PH1 to PH8)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.chance.words import Hasher
from stirred.engine import Engine, Local, Progress, silent
from stirred.errors import BudgetError, InputError, did_you_mean, require_kind
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.arguments import require_inputs, require_key
from stirred.mechanisms.base import Check, Knob, Mechanism, MechanismConfig, Release
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.phsafe import exhibits, files, statement
from stirred.mechanisms.phsafe.amounts import Measured, budgets, measured
from stirred.mechanisms.phsafe.config import PHSafeConfig
from stirred.mechanisms.phsafe.counting.tables import BY_NAME, TABULATIONS
from stirred.mechanisms.phsafe.counting.tabulate import COUNT, CountKernel, regions, tabulated
from stirred.mechanisms.phsafe.counting.variables import HOUSEHOLD, PERSON, CensusColumns
from stirred.mechanisms.phsafe.measure import MEASURES, ORDER, Answers, published, variables
from stirred.mechanisms.phsafe.presets import PRESETS
from stirred.mechanisms.phsafe.proposal import propose
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import finished
from stirred.mechanisms.safetab.noise import Definition
from stirred.mechanisms.topdown.accounting import totals_to_try
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.census import Census, Schema

PUERTO_RICO = "72"
SHOWN = tuple(name for name in MEASURES if name != "variance")


@dataclass(frozen=True, kw_only=True)
class PHSafe(Mechanism):
    r"""Counts of persons by household with $\sigma^2 = (2\tau + 2)^2 / 2\rho^2$, and of households with $2/\rho^2$.

    >>> mechanism = PHSafe()
    >>> mechanism.amounts["PH3", "state_A-G"], mechanism.taus["PH3"]
    (Fraction(20718, 31250), 6)
    """

    name: ClassVar[str] = "phsafe"
    Config: ClassVar[type[MechanismConfig]] = PHSafeConfig
    seconds_per_million: ClassVar[float] = 2.0

    preset: str = "sdhc-2020"
    definition: Definition = "zcdp"
    rho_squared: str | None = None
    epsilon: str | None = None
    budget: Mapping[str, str] | None = None
    tau: Mapping[str, int] | None = None
    states: Sequence[str] = field(default=())
    state: str = "state"
    columns: Mapping[str, str] | None = None

    def __post_init__(self) -> None:
        for name in ("rho_squared", "epsilon"):
            value = getattr(self, name)
            if isinstance(value, float):
                raise BudgetError(f"{name} is a float", why="floats are not exact", fix=f'{name}="2"')
            if value is not None and str(value) != "inf" and Fraction(str(value)) <= 0:
                raise BudgetError(
                    f"{name} must be positive",
                    why="with a budget of 0 nothing can be measured",
                    fix=f'{name}="2"',
                )
        require_kind("state", self.state, str, wanted="a name", fix='state="state"')
        self._require_settings()
        object.__setattr__(self, "states", tuple(self.states))

    def _require_settings(self) -> None:
        """Refuse settings that contradict each other; the budgets and every τ are computed once, which checks them."""
        given = "rho_squared" if self.definition == "puredp" else "epsilon"
        if getattr(self, given) is not None and not self.noiseless:
            other = "epsilon" if given == "rho_squared" else "rho_squared"
            raise BudgetError(
                f"{given} is not the budget of {self.definition}",
                why="zcdp counts ρ², puredp counts ε",
                fix=f"give {other}, or change definition",
            )
        if self.definition == "puredp" and self.preset and self.epsilon is None:
            raise BudgetError(
                "the preset's budgets are no ε",
                why=f"{self.preset} states ρ², which zcdp counts",
                fix='give the total: epsilon = "2", or preset = "" with every budget',
            )
        for name in self.tau or {}:
            if name not in BY_NAME or not BY_NAME[name].persons:
                persons = [table.name for table in TABULATIONS if table.persons]
                raise InputError(
                    f"there is no τ of {name!r}",
                    why="it names no table of persons",
                    fix=did_you_mean(name, persons),
                )
        for name in self.columns or {}:
            known = [*HOUSEHOLD, *(f"person.{item}" for item in PERSON)]
            if name not in known:
                raise InputError(
                    f"there is no variable {name!r}",
                    why="PHSafe does not read it",
                    fix=did_you_mean(name, known),
                )
        if PUERTO_RICO in self.states and len(self.states) > 1:
            raise InputError(
                "Puerto Rico is a run of its own",
                why="it is not part of the nation, whose total would include it",
                fix=f'states = ["{PUERTO_RICO}"], and another run for the states',
            )
        lacking = sorted({t for t, _ in self.amounts if BY_NAME[t].persons} - set(self.taus))
        if lacking:
            raise InputError(
                f"{lacking[0]} has no τ",
                why="how many persons of a household count decides the noise",
                fix=f"tau = {{ {lacking[0]} = 10 }}",
            )

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
        return self.states != (PUERTO_RICO,)

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
        if not self._measured(columns):
            raise InputError(
                "PHSafe would make no table",
                why="every budget is 0, or the census lacks the variables of the tables that have one",
                fix="give a budget, or name the columns: --columns person.age=years",
            )
        self._states(engine.census(census) if engine else census, columns)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """The promise per person added or removed, with the household's own unit record."""
        require_inputs(census, engine)
        columns = self._columns(census)
        return statement.specification(
            census, columns, self._measured(columns), self.definition, nation=self.nation
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
        require_inputs(census, engine)
        require_key(key)
        place, report = engine or Local(), progress or silent
        census = census.checked()
        census = engine.census(census) if engine else census
        self.refuse(census)
        columns = self._columns(census)
        wanted, states = self._measured(columns), self._states(census, columns)
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
        settings = json.dumps(self.parameters(), sort_keys=True)
        truth = key.digest(*(answer.counts.tobytes() for answer in answers), repr(states).encode())
        made = published(answers, key.bind(self.name, settings, truth))
        promise = statement.specification(census, columns, wanted, self.definition, nation=self.nation)
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
                    kept=states == self._states(census, columns),
                    numbers=len(states),
                ),
            ),
            ledger=statement.ledger(wanted, self.definition),
            notes=(Phrase("phsafe.note.noiseless"),) if promise.budget.is_finite is False else (),
            input_digest=truth.hex(),
            private=key.private and promise.budget.is_finite,
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
        return finished(frame_of(release.tables[name.lower()]).select(*by, *SHOWN), by)

    def counted(self, release: Release) -> Mapping[str, tuple[str, ...]]:
        """All of its tables."""
        return {name.lower(): variables(name) for name in ORDER if name.lower() in release.tables}

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """The noise by table and region, the averages that follow, and what truncation leaves out."""
        measured_tables = None if release is None else {n for n in ORDER if n.lower() in release.tables}
        every = frozenset([*HOUSEHOLD, *(f"person.{name}" for name in PERSON)])
        shown = [m for m in self._measured_of(every) if measured_tables is None or m.table in measured_tables]
        tau = {name: value for name, value in self.taus.items() if name in {item.table for item in shown}}
        found = [exhibits.noise_exhibit(shown, tau), exhibits.truncation_exhibit(tau)]
        if release is not None:
            tables = {name: frame_of(release.tables[name.lower()]) for name in measured_tables or ()}
            more = exhibits.averages_exhibit(tables)
            found += [more] if more is not None else []
        return found

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
        for name in ("household", "person"):
            if name not in census.schema.record_types:
                raise InputError(
                    f"the census has no {name} records",
                    why="PHSafe counts persons by their household",
                    fix="give a census with both, and a link from persons to households",
                )
        if not census.schema.record("household").id or not census.schema.record("person").household:
            raise InputError(
                "persons are not linked to households",
                why="PHSafe counts persons by their household",
                fix='name the columns in census.toml: id = "…" of households, household = "…" of persons',
            )
        there = census.columns("household")
        if self.state not in there:
            raise InputError(
                f"household records have no {self.state}",
                why="PHSafe tabulates states, and the sum of them",
                fix=did_you_mean(self.state, there),
            )
        return CensusColumns.of(census, self.columns or {}, state=self.state)

    def _measured(self, columns: CensusColumns) -> tuple[Measured, ...]:
        return self._measured_of(columns.available)

    def _measured_of(self, available: frozenset[str]) -> tuple[Measured, ...]:
        return measured(self.amounts, self.taus, self.definition, available, nation=self.nation)

    def _states(self, census: "Census", columns: CensusColumns) -> tuple[str, ...]:
        """The states that are tabulated, from the public file of areas or from the invariant."""
        found = regions(census, columns)
        unknown = [name for name in self.states if name not in found]
        if unknown:
            raise InputError(
                f"no housing unit lies in {unknown[0]}",
                why="states names it, and the census has no such state",
                fix=did_you_mean(unknown[0], found),
            )
        chosen = tuple(name for name in found if name in self.states) if self.states else found
        if not chosen:
            raise InputError(
                "there is no state to tabulate",
                why="no household record has one",
                fix="give a census that has households",
            )
        if not self.states and PUERTO_RICO in chosen and len(chosen) > 1:
            raise InputError(
                "the census holds states and Puerto Rico",
                why="Puerto Rico is a run of its own, and is not part of the nation",
                fix="--states with the states, and another run with --states 72",
            )
        return chosen


__all__ = ["COUNT", "PHSafe"]
