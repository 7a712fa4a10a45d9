"""Define PHSafe: noisy counts of persons by household and of households (S-DHC, PH1 to PH8)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.census.schema import Schema
from stirred.chance import Key
from stirred.chance.words import Hasher
from stirred.engine import Engine, Local, Progress, silent
from stirred.errors import BudgetError, InputError, PlanError, did_you_mean
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, Mechanism, check_inputs, require_inputs, totals_to_try
from stirred.mechanisms.census2020.config import PHSafeConfig
from stirred.mechanisms.census2020.factors import PHSAFE_CONVERSION, PHSAFE_FACTORS
from stirred.mechanisms.census2020.phsafe import budgets
from stirred.mechanisms.census2020.phsafe.budgets import PRESETS, MeasuredTable, divide_budget, list_measured
from stirred.mechanisms.census2020.phsafe.counting import (
    ALL,
    HOUSEHOLD_VARIABLES,
    PERSON_VARIABLES,
    TABULATION_BY_NAME,
    TABULATIONS,
    CensusColumns,
    CountKernel,
    count_tables,
    find_regions,
)
from stirred.mechanisms.census2020.phsafe.tables import (
    DERIVED_TABLES,
    ITERATION,
    MEASURE_COLUMNS,
    REGION,
    REGION_TYPE,
    TABLE_ORDER,
    VARIANCE,
    Z95,
    Answers,
    cell_column,
    find_margin,
    has_measurement,
    list_states,
    list_variables,
    make_tables,
    select_rows,
    write_files,
)
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, smallest_effect
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.proposal import Proposal, find_root, list_areas
from stirred.mechanisms.release import Check, Release, format_table
from stirred.spec import Specification
from stirred.spec.conversions import Conversion
from stirred.spec.invariants import Views, largest_views, make_view

if TYPE_CHECKING:
    from stirred.census import Census


# Refuse settings that contradict each other, and a census that PHSafe cannot tabulate.

PUERTO_RICO_CODE = "72"


def require_totals(config: PHSafeConfig) -> None:
    """Refuse a total that is not positive, or that is not the budget of the definition."""
    for name, value in (("rho_squared", config.rho_squared), ("epsilon", config.epsilon)):
        if value is not None and value != "inf" and Fraction(value) <= 0:
            raise BudgetError(
                f"{name} must be positive",
                why="with a budget of 0 nothing can be measured",
                fix=f'{name}="2"',
            )
    wrong, right = ("rho_squared", "epsilon") if config.definition == "puredp" else ("epsilon", "rho_squared")
    if getattr(config, wrong) is not None and config.epsilon != "inf":
        raise BudgetError(
            f"{wrong} is not the budget of {config.definition}",
            why="zcdp counts ρ², puredp counts ε",
            fix=f"give {right}, or change definition",
        )
    if config.definition == "puredp" and config.preset and config.epsilon is None:
        raise BudgetError(
            "the preset's budgets are no ε",
            why=f"{config.preset} states ρ², which zcdp counts",
            fix='give the total: epsilon = "2", or preset = "" with every budget',
        )


def require_names(*, tau: Iterable[str], columns: Iterable[str], states: Sequence[str]) -> None:
    """Refuse names of tables, variables and states that do not exist or do not belong together."""
    people = [table.name for table in TABULATIONS if table.persons]
    for name in tau:
        if name not in people:
            raise InputError(
                f"there is no τ of {name!r}",
                why="it names no table of persons",
                fix=did_you_mean(name, people),
            )
    known = [*HOUSEHOLD_VARIABLES, *(f"person.{name}" for name in PERSON_VARIABLES)]
    for name in columns:
        if name not in known:
            raise InputError(
                f"there is no variable {name!r}",
                why="PHSafe does not read it",
                fix=did_you_mean(name, known),
            )
    if PUERTO_RICO_CODE in states and len(states) > 1:
        raise InputError(
            "Puerto Rico is a run of its own",
            why="it is not part of the nation, whose total would include it",
            fix=f'states = ["{PUERTO_RICO_CODE}"], and another run for the states',
        )


def require_tau(amounts: Iterable[tuple[str, str]], tau: Mapping[str, int]) -> None:
    """Refuse a table of persons that has a budget and no τ."""
    lacking = sorted({table for table, _ in amounts if TABULATION_BY_NAME[table].persons} - set(tau))
    if lacking:
        raise InputError(
            f"{lacking[0]} has no τ",
            why="how many persons of a household count decides the noise",
            fix=f"tau = {{ {lacking[0]} = 10 }}",
        )


def require_records(census: "Census", state: str) -> None:
    """Refuse a census without households, persons, their link, or the states."""
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
    if state not in there:
        raise InputError(
            f"household records have no {state}",
            why="PHSafe tabulates states, and the sum of them",
            fix=did_you_mean(state, there),
        )


def choose_states(found: tuple[str, ...], wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the states that are tabulated, of those that there are; both lists are public."""
    unknown = [name for name in wanted if name not in found]
    if unknown:
        raise InputError(
            f"no housing unit lies in {unknown[0]}",
            why="states names it, and the census has no such state",
            fix=did_you_mean(unknown[0], found),
        )
    chosen = tuple(name for name in found if name in wanted) if wanted else found
    if not chosen:
        raise InputError(
            "there is no state to tabulate",
            why="no household record has one",
            fix="give a census that has households",
        )
    if not wanted and PUERTO_RICO_CODE in chosen and len(chosen) > 1:
        raise InputError(
            "the census holds states and Puerto Rico",
            why="Puerto Rico is a run of its own, and is not part of the nation",
            fix="--states with the states, and another run with --states 72",
        )
    return chosen


# Settings of PHSafe that the schema of a census suggests.


def propose(schema: Schema) -> Proposal:
    """Return the production settings, with the coarsest level of areas as the states."""
    level = list_areas(schema, find_root(schema))[0]
    if not {"household", "person"} <= set(schema.record_types) or not schema.record("person").household:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why="it counts persons by their household, and needs both with a link",
            fix='link the persons in census.toml: [record.person] household = "household_id"',
        )
    return Proposal(
        settings={"preset": "sdhc-2020", "state": level},
        reasons={
            "preset": "the budgets and the truncation of the 2020 production; tune them with stirred plan tune",
            "state": "the coarsest level of the geography; the sum of all its areas is published too",
        },
        undecided=(
            "how many persons of a household may count (tau): a larger number leaves out fewer and needs more noise",
        ),
    )


# What a report shows of PHSafe: the noise of every table, the averages that follow, and what truncation leaves out.

MAX_REGIONS_SHOWN = 60  # rows of averages in the report
AVERAGES: tuple[tuple[str, str, str, tuple[int, ...], int], ...] = (
    ("household", "PH1_num", "PH1_denom", (2, 3), 1),
    ("family", "PH5_num", "PH5_denom", (2, 3), 1),
    ("owner", "PH8_num", "PH8_denom", (2,), 2),
    ("renter", "PH8_num", "PH8_denom", (3,), 3),
)  # name, table and cells of the persons, table and cell of the households


@dataclass(frozen=True, slots=True)
class Average:
    """A ratio of two noisy counts with its 95 % interval; without one where the denominator may be 0."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, top: float, top_variance: float, bottom: float, bottom_variance: float) -> "Average":
        r"""The interval of Fieller: all r with $(a - rb)^2 \le z^2 (v_a + r^2 v_b)$.

        >>> Average.of(250.0, 0.0, 100.0, 0.0)
        Average(value=2.5, low=2.5, high=2.5)
        >>> Average.of(250.0, 9.0, 3.0, 9.0).value is None
        True
        """
        square = bottom**2 - Z95**2 * bottom_variance
        if bottom <= 0 or square <= 0:
            return cls(None, None, None)
        middle = top * bottom / square
        inside = middle**2 - (top**2 - Z95**2 * top_variance) / square
        reach = max(inside, 0.0) ** 0.5
        return cls(top / bottom, middle - reach, middle + reach)


def show_noise(measured: Sequence[MeasuredTable], tau: Mapping[str, int]) -> Exhibit:
    """Return the standard deviation and margin of error of every table, by region type and level."""
    rows = [
        (
            item.table,
            item.region_type,
            item.level,
            tau.get(item.table, "–"),
            item.sensitivity,
            "∞" if item.budget is None else f"{float(item.budget):.8f}".rstrip("0").rstrip("."),
            round(float(item.noise.variance) ** 0.5, 2),
            find_margin(item.noise),
        )
        for item in measured
    ]
    head = ("table", "region", "level", "tau", "sensitivity", "budget", "deviation", "margin")
    columns = [Phrase(f"phsafe.head.{name}") for name in head]
    widest = max((row[-1] for row in rows), default=0.0)
    narrowest = min((row[-1] for row in rows), default=0.0)
    return Exhibit(
        title=Phrase("phsafe.noise.title"),
        finding=Phrase("phsafe.noise.finding", low=f"{narrowest:,.0f}", high=f"{widest:,.0f}"),
        parts=(
            Listing(caption=Phrase("phsafe.noise.caption"), columns=columns, rows=rows, numeric=columns[3:]),
        ),
        note=Phrase("phsafe.noise.note"),
        chapter="accuracy",
    )


def show_truncation(tau: Mapping[str, int]) -> Exhibit:
    """Return what at most τ persons of a household means for the counts; the number left out is secret."""
    columns = [Phrase("phsafe.head.table"), Phrase("phsafe.head.tau")]
    return Exhibit(
        title=Phrase("phsafe.truncation.title"),
        finding=Phrase("phsafe.truncation.finding", most=max(tau.values(), default=0)),
        parts=(
            Listing(
                caption=Phrase("phsafe.truncation.caption"),
                columns=columns,
                rows=sorted(tau.items()),
                numeric=columns[1:],
            ),
        ),
        note=Phrase("phsafe.truncation.note"),
        chapter="accuracy",
    )


def compute_averages(tables: Mapping[str, pl.DataFrame]) -> list[tuple[str, str, Average]]:
    """Return the averages of every region for which both counts were published, over all races."""
    found = []
    for name, top, bottom, cells, cell in AVERAGES:
        if top not in tables or bottom not in tables:
            continue
        persons = _sum_cells(tables[top], top, cells)
        homes = _sum_cells(tables[bottom], bottom, (cell,))
        for region, (count, variance) in persons.items():
            if region in homes:
                found.append((name, region, Average.of(count, variance, *homes[region])))
    return found


def _sum_cells(table: pl.DataFrame, name: str, cells: Sequence[int]) -> dict[str, tuple[float, float]]:
    chosen = table.filter((pl.col(ITERATION) == ALL) & pl.col(cell_column(name)).is_in(list(cells)))
    label = pl.concat_str(REGION_TYPE, pl.lit(" "), REGION).alias("label")
    rows = chosen.group_by(label, maintain_order=True).agg(pl.col("count", VARIANCE).sum())
    return {region: (float(count), float(variance)) for region, count, variance in rows.iter_rows()}


def show_averages(tables: Mapping[str, pl.DataFrame]) -> Exhibit | None:
    """Return average sizes of households and families, which follow from published counts at no cost."""
    found = compute_averages(tables)
    if not found:
        return None
    head = ("average", "region_id", "size", "low", "high")
    columns = [Phrase(f"phsafe.head.{name}") for name in head]
    rows = [
        (Phrase(f"phsafe.average.{name}"), region, *(_round_digits(v) for v in (a.value, a.low, a.high)))
        for name, region, a in found
    ]
    known = sum(average.value is not None for _, _, average in found)
    return Exhibit(
        title=Phrase("phsafe.averages.title"),
        finding=Phrase("phsafe.averages.finding", known=f"{known:,}", all=f"{len(found):,}"),
        parts=(
            Listing(
                caption=Phrase("phsafe.averages.caption"),
                columns=columns,
                rows=rows[:MAX_REGIONS_SHOWN],
                numeric=columns[2:],
            ),
        ),
        note=Phrase("phsafe.averages.note"),
        chapter="accuracy",
    )


def _round_digits(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


# PHSafe: noisy counts of persons by household and of households, each with its variance (S-DHC, PH1 to PH8).


class PHSafe(Mechanism):
    r"""Counts of persons by household with $\sigma^2 = (2\tau + 2)^2 / 2\rho^2$, and of households with $2/\rho^2$.

    >>> mechanism = PHSafe()
    >>> mechanism.amounts["PH3", "state_A-G"], mechanism.taus["PH3"]
    (Fraction(10359, 15625), 6)
    """

    name: ClassVar[str] = "phsafe"
    config: PHSafeConfig
    conversion: ClassVar[Conversion | None] = PHSAFE_CONVERSION
    seconds_per_million: ClassVar[float] = 2.0

    def check_settings(self) -> None:
        """Refuse settings that contradict each other."""
        require_totals(self.config)
        require_names(tau=self.config.tau or {}, columns=self.config.columns or {}, states=self.config.states)
        require_tau(self.amounts, self.taus)

    @property
    def is_noiseless(self) -> bool:
        """Return whether no noise is added: no protection, for a rehearsal."""
        return self.config.epsilon == "inf"

    @cached_property
    def amounts(self) -> dict[tuple[str, str], Fraction | None]:
        """Return the budget of every table and level; None is infinite."""
        total = self.config.rho_squared if self.config.definition == "zcdp" else self.config.epsilon
        wanted = None if self.is_noiseless or total is None else Fraction(total)
        return divide_budget(
            PRESETS[self.config.preset], self.config.budget or {}, wanted, infinite=self.is_noiseless
        )

    @cached_property
    def taus(self) -> dict[str, int]:
        """Return how many persons of a household count at most, by table."""
        return {**PRESETS[self.config.preset].tau, **(self.config.tau or {})}

    @property
    def nation(self) -> bool:
        """Return whether the nation is tabulated: not in a run for Puerto Rico."""
        return self.config.states != [PUERTO_RICO_CODE]

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Return the production settings."""
        return propose(schema)

    @property
    def record_type(self) -> str:
        """Return the record type of persons, whom most tables count."""
        return "person"

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
            files=write_files(out, made, self.config.definition) if out is not None else (),
            checks=(
                Check(
                    invariant=str(budgets.occupied_areas(census, columns)),
                    kept=all(list_states(table) <= set(states) for table in made.values()),
                    numbers=len(states),
                ),
            ),
            ledger=budgets.build_ledger(wanted, self.config.definition, self.config.neighbours),
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
        averages = show_averages(tables)
        found = (show_noise(listed, tau), show_truncation(tau))
        return found if averages is None else (*found, averages)

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """Return the law of every measured table, and the rows of the released table with its noise."""
        tables = self.release(census, key=key, engine=engine).tables
        factor = PHSAFE_FACTORS[self.config.definition][self.config.neighbours]
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
        return self.replace(epsilon="inf", rho_squared=None)

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total budget, which all tables share in proportion."""
        finite = [amount for amount in self.amounts.values() if amount is not None]
        if self.is_noiseless or len(finite) < len(self.amounts):
            return ()
        name = "rho_squared" if self.config.definition == "zcdp" else "epsilon"
        return (
            Knob(
                name=name,
                effect="a larger total is a larger budget and has a smaller error, in all tables in proportion",
                settings=totals_to_try(sum(finite, Fraction(0))),
                turned=lambda total: self.replace(**{name: total}),
            ),
        )

    def _columns(self, census: "Census") -> CensusColumns:
        require_records(census, self.config.state)
        return CensusColumns.of(census, self.config.columns or {}, state=self.config.state)

    def _build_specification(self, census: "Census", columns: CensusColumns) -> Specification:
        return budgets.build_specification(
            census,
            columns,
            self._measured_tables(columns),
            self.config.definition,
            neighbours=self.config.neighbours,
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
        return list_measured(self.amounts, self.taus, self.config.definition, available, nation=self.nation)

    def _states(self, census: "Census", columns: CensusColumns) -> tuple[str, ...]:
        """Return the states that are tabulated, from the public file of areas or from the invariant."""
        return choose_states(find_regions(census, columns), self.config.states)
