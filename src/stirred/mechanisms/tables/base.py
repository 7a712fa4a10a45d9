"""Share what mechanisms with tables of records need: settings, the source of the records, the release.

The source is a census, or the records of an earlier release: then its promise holds for the tables, as post-processing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import polars as pl
import pyarrow as pa

from stirred._support import pads
from stirred.chance import Key
from stirred.engine import Engine
from stirred.errors import InputError, require_kind
from stirred.frames import arrow_of, collect_frame, frame_of
from stirred.languages import Phrase
from stirred.mechanisms.base import Mechanism, check_inputs
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.identifiers import require_unidentifying
from stirred.mechanisms.release import Check, Release, join_variables
from stirred.spec import Budget, Domain, Evidence, Hamming, Ledger, Multiplicative, Multiverse, Specification
from stirred.spec.files import load
from stirred.spec.invariants import Views, largest_views, make_view

if TYPE_CHECKING:
    from stirred.census import Census


# Tabulate the records of an earlier release instead of the census: its promise holds for the tables, as post-
# processing.


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


# What mechanisms that publish tables of counts share: their settings, where the records come from, their release.


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordTables(Mechanism):
    """Tables of counts by variables, of a census or of the records of an earlier release (``given``)."""

    file_settings: ClassVar[tuple[str, ...]] = ("given",)

    tables: Sequence[Sequence[str]]
    record: str = "household"
    given: Path | None = None
    without_guarantee: str = ""

    def __post_init__(self) -> None:
        require_kind("record", self.record, str, wanted="a record type", fix='record="person"')
        if not self.tables or any(isinstance(by, str) for by in self.tables):
            raise InputError(
                "the tables are not lists of variables",
                why="each table is a list of the variables that it counts by",
                fix='tables=[["county", "tenure"]]',
            )

    @classmethod
    def of(cls, config: MechanismConfig) -> Self:
        """Return the mechanism with these settings."""
        settings = {name: getattr(config, name) for name in type(config).model_fields}
        for name in cls.file_settings:
            settings[name] = None if settings[name] is None else Path(settings[name])
        return cls(**settings)

    @property
    def record_type(self) -> str:
        """Return the record type that is counted."""
        return self.record

    @property
    def published_without_guarantee(self) -> str:
        """Return the office's reason."""
        return self.without_guarantee

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that are read of a record: the variables of all tables."""
        return tuple(dict.fromkeys(name for by in self.tables for name in by))

    def parameters(self) -> dict[str, object]:
        """Return the canonical JSON parameters, without the path of a given release."""
        return {name: value for name, value in self.settings().items() if name != "given"}

    def settings(self) -> dict[str, object]:
        """Return the keys of a [[mechanism]]."""
        found = {name: getattr(self, name) for name in self.Config.model_fields}
        found["tables"] = [list(by) for by in self.tables]
        return {name: str(value) if isinstance(value, Path) else value for name, value in found.items()}

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop at variables that are not there or identify records; those of a given release were judged before it."""
        if self.given is None:
            census.scan(self.record, self.columns)
            self._require_unidentifying(census, engine)

    def _require_unidentifying(self, census: "Census", engine: Engine | None) -> None:
        shown = [name for by in self.tables for name in by]  # what is added up is not shown
        require_unidentifying(census, self.record, shown, engine=engine)

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the variables of the tables, of the census or of the given release."""
        return {self.record: self.columns}

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:
        """Return the same variables, also where a given release has records that the census lacks."""
        return self.released_columns(census)

    def views(self, census: "Census") -> Views:
        """Return the tables, counted in the census."""
        return self.views_on(census.domain)

    def views_on(self, domain: Domain) -> Views:
        """Return the tables, on the domain of the census or of the given release."""
        if domain.record_types and not domain.has(self.record):
            return ()
        return largest_views(domain, (make_view(domain, self.record, by) for by in self.tables))

    def counts(self, census: "Census", by: Sequence[str]) -> pl.DataFrame:
        """Return how many records each cell has, in the census or in the given release."""
        if self.given is not None:
            return count_earlier(self.given, census, self.record, by)
        return frame_of(census.counts(self.record, list(by)))

    def reason(self) -> tuple[Phrase, ...]:
        """Return the note that says why tables without a guarantee are published, if there is a reason."""
        if not self.without_guarantee:
            return ()
        return (Phrase("budget_note.without_guarantee", reason=self.without_guarantee),)

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
            input_premetric=Hamming(self.record),
            output_premetric=Multiplicative(),
            budget=Budget.infinite(),
            evidence=Evidence(status="proved", source=source),
            notes=(*notes, *self.reason(), *census.notes),
            released=self.views(census),
        )

    def admit_census(self, census: "Census", key: Key, engine: Engine | None) -> "Census":
        """Check the inputs of a release and return the census where the engine reads it."""
        census = check_inputs(census, key, engine)
        if self.given is None:
            self._require_unidentifying(census, engine)
        return engine.census(census) if engine else census

    def make_release(
        self,
        census: "Census",
        key: Key,
        promise: Specification,
        tables: Mapping[str, pa.Table],
        *,
        ledger: Ledger | None = None,
        checks: tuple[Check, ...] = (),
    ) -> Release:
        """Return the tables as a release; without a ledger the promise is spent in one piece."""
        whole = Ledger().spend(by=self.name, on=self.record, budget=promise.budget)
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables=dict(tables),
            checks=checks,
            ledger=whole if ledger is None else ledger,
            settings=self.settings(),
            private=key.private,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
        )


def name_table(by: Sequence[str]) -> str:
    """Return the name of a table by its variables, the last one first.

    >>> name_table(["county", "tenure"]), name_table([])
    ('tenure-by-county', 'total')
    """
    return "-by-".join(reversed(by)) or "total"
