"""Share what mechanisms with tables of records need: settings, the source of the records, the release.

The source is a census, or the records of an earlier release: then its promise holds for the tables, as post-processing.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred._support import pads
from stirred.census.schema import RecordSchema, Schema
from stirred.chance import Key
from stirred.engine import Engine, Local, Progress
from stirred.errors import BudgetError, InputError, PlanError
from stirred.frames import arrow_of, collect_frame, frame_of
from stirred.languages import Phrase
from stirred.mechanisms.base import Mechanism, check_inputs
from stirred.mechanisms.identifiers import require_unidentifying
from stirred.mechanisms.proposal import Proposal, choose_variables, list_tables
from stirred.mechanisms.release import Check, Release, find_own_table, join_variables
from stirred.mechanisms.tables.config import RecordTablesConfig
from stirred.spec import Budget, Domain, Evidence, Hamming, Ledger, Multiplicative, Multiverse, Specification
from stirred.spec.files import load
from stirred.spec.invariants import Views, largest_views, make_view

if TYPE_CHECKING:
    from stirred.census import Census


# Tabulate the records of an earlier release instead of the census: its promise holds for the tables, as post-processing.


def find_public_part(packet: Path) -> Path:
    """Return the public part of a packet, or the folder itself where a plan continues its own release."""
    return packet / "public" if (packet / "public").is_dir() else packet


def read_promise(packet: Path) -> Specification:
    """Return the promise of the earlier release, unchanged: tables of its records cost nothing more."""
    path = find_public_part(packet) / "spec.json"
    if not path.is_file():
        raise InputError(
            "the given packet has no specification",
            why=f"{path.name} is not there",
            fix="name a packet that stirred run or stirred swap wrote",
        )
    return load(path)


def read_records(packet: Path, census: "Census", record: str, columns: Sequence[str]) -> pa.Table:
    """Return the released records with the variables of a table, persons with their household's."""
    data = find_public_part(packet) / "data"
    found = {
        name: pads.dataset(data / f"{name}.parquet", format="parquet")
        for name in census.schema.record_types
        if (data / f"{name}.parquet").exists()
    }
    release = Release(
        mechanism="", parameters={}, specification=read_promise(packet), microdata=found,
        schema=census.schema, folder=census.folder,
    )  # fmt: skip
    return arrow_of(
        collect_frame(join_variables(release, record, columns).select(list(columns)), streaming=True)
    )


def count_earlier(packet: Path, census: "Census", record: str, by: Sequence[str]) -> pl.DataFrame:
    """Return how many released records each cell has, with text as text."""
    if not by:
        anything = read_records(packet, census, record, [*census.columns(record)][:1])
        return pl.DataFrame({"count": [anything.num_rows]})
    frame = frame_of(read_records(packet, census, record, by))
    text = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return text.group_by(list(by)).agg(pl.len().cast(pl.Int64).alias("count"))


# What mechanisms that publish tables of counts share: where the records come from, their release, their tables.


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeTables:
    """The tables of a run, what they spent (the whole promise unless it is stated), and what was checked."""

    tables: Mapping[str, pa.Table]
    ledger: Ledger | None = None
    checks: tuple[Check, ...] = ()


class CountedTables(Mechanism):
    """Tables of counts of one record type. A subclass makes them (``make_tables``) and reads one (``read_table``)."""

    @property
    @abstractmethod
    def tables(self) -> Sequence[Sequence[str]]:
        """Return the variables of each table."""

    @property
    def given(self) -> Path | None:
        """Return the packet whose records are counted instead of the census."""
        return None

    @property
    def columns_read(self) -> tuple[str, ...]:
        """Return the columns that are read of a record: the variables of all tables."""
        return tuple(dict.fromkeys(name for by in self.tables for name in by))

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop at variables that are not there or identify records; those of a given release were judged before it."""
        if self.given is None:
            census.scan(self.record_type, self.columns_read)
            self.require_unidentifying(census, engine)

    def require_unidentifying(self, census: "Census", engine: Engine | None) -> None:
        """Stop at variables of a table that tell who a record is; what is added up is not shown."""
        shown = [name for by in self.tables for name in by]
        require_unidentifying(census, self.record_type, shown, engine=engine)

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the variables of the tables, of the census or of the given release."""
        return {self.record_type: self.columns_read}

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
        """Release the tables; they are small, so they are held in memory and not taken up."""
        census = check_inputs(census, key, engine)
        if self.given is None:
            self.require_unidentifying(census, engine)
        census = engine.census(census) if engine else census
        promise = self.specification(census)
        made = self.make_tables(census, promise, key, engine or Local())
        whole = Ledger().spend(by=self.name, on=self.record_type, budget=promise.budget)
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables=dict(made.tables),
            checks=made.checks,
            ledger=whole if made.ledger is None else made.ledger,
            settings=self.settings(),
            private=key.private,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
        )

    @abstractmethod
    def make_tables(self, census: "Census", promise: Specification, key: Key, engine: Engine) -> MadeTables:
        """Return the tables of a census that was checked, with what they spent."""

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return one of the tables, or what follows from them, with the error of every count."""
        own = (record_type or self.record_type) == self.record_type
        found = self.read_table(release, by, weight) if own else None
        if found is None:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        return found

    @abstractmethod
    def read_table(self, release: Release, by: Sequence[str], weight: str) -> pa.Table | None:
        """Return counts by some variables with their errors, or None where no law of this mechanism gives them."""

    def find_table(self, release: Release, by: Sequence[str], why: str) -> pl.DataFrame:
        """Return the released table of exactly these variables; ``why`` others cannot be had from it."""
        found = find_own_table(release, by)
        if found is None:
            raise InputError(
                f"no table of {', '.join(by) or 'no variable'} was made",
                why=why,
                fix="name the table in the setting tables and run again",
            )
        return found


class RecordTables(CountedTables):
    """Tables of counts by variables, of a census or of the records of an earlier release (``given``)."""

    config: RecordTablesConfig

    def check_settings(self) -> None:
        """Refuse settings without a table."""
        if not self.config.tables:
            raise InputError(
                "there is no table to publish",
                why="each table is a list of the variables that it counts by",
                fix='tables=[["county", "tenure"]]',
            )

    @property
    def tables(self) -> Sequence[Sequence[str]]:
        """Return the variables of each table."""
        return self.config.tables

    @property
    def given(self) -> Path | None:
        """Return the packet whose records are counted instead of the census."""
        return None if self.config.given is None else Path(self.config.given)

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:
        """Return the same variables, also where a given release has records that the census lacks."""
        return self.released_columns(census)

    def views(self, census: "Census") -> Views:
        """Return the tables, counted in the census."""
        return self.views_on(census.domain)

    def views_on(self, domain: Domain) -> Views:
        """Return the tables, on the domain of the census or of the given release."""
        if domain.record_types and not domain.has(self.config.record):
            return ()
        return largest_views(domain, (make_view(domain, self.config.record, by) for by in self.tables))

    def counts(self, census: "Census", by: Sequence[str]) -> pl.DataFrame:
        """Return how many records each cell has, in the census or in the given release."""
        if self.given is not None:
            return count_earlier(self.given, census, self.config.record, by)
        return frame_of(census.counts(self.config.record, list(by)))

    def reason(self) -> tuple[Phrase, ...]:
        """Return the note that says why tables without a guarantee are published, if there is a reason."""
        if not self.config.without_guarantee:
            return ()
        return (Phrase("budget_note.without_guarantee", reason=self.config.without_guarantee),)

    def state_without_budget(
        self, census: "Census", *, source: Phrase, notes: tuple[Phrase, ...], chained: Phrase
    ) -> Specification:
        """Return a specification without finite budget, or the promise of the earlier release."""
        if self.given is not None:
            first = read_promise(self.given)
            return replace(
                first, notes=(*first.notes, chained, *self.reason()), released=self.views_on(first.domain)
            )
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.none(),
            input_premetric=Hamming(self.config.record),
            output_premetric=Multiplicative(),
            budget=Budget.infinite(),
            evidence=Evidence(status="proved", source=source),
            notes=(*notes, *self.reason(), *census.notes),
            released=self.views(census),
        )


def propose_tables(
    schema: Schema, record: RecordSchema, settings: Mapping[str, object], reasons: Mapping[str, str]
) -> Proposal:
    """Return tables of the coarsest area, if any, by the first categories, for a method without a finite budget.

    ``settings`` and ``reasons`` are those of the method, between the tables and the reason for publishing them.
    """
    tables, why = list_tables(schema, record, choose_variables(schema, record)[:3])
    if not tables:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"{record.name} records have neither areas nor a category, and a table is by one of them",
            fix="list the variables in census.toml",
        )
    return Proposal(
        settings={
            "tables": tables,
            "record": record.name,
            **settings,
            "without_guarantee": "to be written: why these tables are published without a finite budget",
        },
        reasons={
            "tables": why,
            "record": "the records that are counted",
            **reasons,
            "without_guarantee": "no budget is finite; swap first (given) to have one",
        },
        undecided=(
            "whether to publish without a finite budget, or to swap first and name the swap in given",
        ),
    )


def require_positive(rho_squared: Fraction) -> None:
    """Refuse a total ρ² with which nothing can be measured."""
    if rho_squared <= 0:
        raise BudgetError(
            "rho_squared must be positive",
            why="with a budget of 0 nothing can be measured",
            fix='rho_squared="1/2"',
        )


def name_table(by: Sequence[str]) -> str:
    """Return the name of a table by its variables, the last one first.

    >>> name_table(["county", "tenure"]), name_table([])
    ('tenure-by-county', 'total')
    """
    return "-by-".join(reversed(by)) or "total"
