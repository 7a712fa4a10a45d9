"""A plan: what is to be released, how, and why."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from stirred.census import Census, Invalid, read
from stirred.census.bureau import recognise_folder
from stirred.engine import Engine, Local, Progress
from stirred.errors import PlanError
from stirred.frames import frame_of
from stirred.mechanisms.base import Mechanism, MechanismConfig, Release
from stirred.mechanisms.released import format_table, weigh
from stirred.spec import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """A table of counts, or of weighted totals, to publish."""

    name: str
    record_type: str
    by: tuple[str, ...]
    weight: str = ""
    calibrated: bool = False  # whether the weight is made after the release, from public totals
    source: int | None = (
        None  # the number of the [[mechanism]] whose release it is made of; None: the first that has it
    )
    own: str = ""  # the name of a table that the release has with its uncertainty: it is published as it is

    @property
    def variables(self) -> tuple[str, ...]:
        """Return all that the table reads of a release: its variables and its weight."""
        held = [] if self.calibrated else [self.weight]
        return tuple(dict.fromkeys([*self.by, *filter(None, held)]))

    def tabulate(self, release: Release, mechanism: Mechanism, *, engine: Engine | None = None) -> pa.Table:
        """Return the table with all that the mechanism knows about the uncertainty of its cells."""
        if self.own:
            own = release.tables[self.own]
            return format_table(frame_of(own), self.by).replace_schema_metadata(own.schema.metadata)
        if self.calibrated:
            place = engine or Local()
            return weigh(release, self.by, weight=self.weight, record_type=self.record_type, engine=place)
        if self.weight:
            return mechanism.table(
                release, self.by, record_type=self.record_type, weight=self.weight, engine=engine
            )
        return mechanism.table(release, self.by, record_type=self.record_type, engine=engine)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsPlan:
    """New weights for released records, made from files of public totals."""

    recalibrate_to: tuple[str, ...]
    column: str
    record_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retabulation:
    """A product that is computed from a release of the plan alone: post-processing, which costs nothing."""

    name: str
    source: int  # the number of the [[mechanism]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why an invariant is published exactly."""

    invariant: str
    kind: str
    text: str
    citation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """Questions of users, answered with the census and with the release in the internal report.

    They are about the records that the mechanism protects, or about those of ``record_type``.
    """

    record_type: str = ""
    relations: tuple[tuple[str, str], ...] = ()
    segregation: tuple[tuple[str, str], ...] = ()
    districts: tuple[str, ...] = ()
    regressions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    propensity: tuple[str, ...] = ()
    improbable: str = ""
    of: tuple["Questions", ...] = ()  # questions about other record types

    def each(self) -> tuple["Questions", ...]:
        """Return these questions, and those about other record types."""
        return (self, *self.of)

    def variables(self) -> list[str]:
        """Return all variables that the questions read."""
        names = [name for pair in (*self.relations, *self.segregation) for name in pair]
        names += [*self.districts, *self.propensity]
        names += [name for outcome, on in self.regressions for name in (outcome, *on)]
        return sorted(set(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedMechanism:
    """One [[mechanism]]: its settings as the plan states them, and the mechanism with paths that start at the plan."""

    label: str
    config: MechanismConfig
    mechanism: Mechanism
    continues: int | None = None  # the number of the earlier [[mechanism]] whose release it agrees with
    reads: int | None = None  # of the one whose release it reads as public data
    source: int | None = None  # of the one whose released records it tabulates in the place of the census

    @property
    def earlier(self) -> int | None:
        """Return the number of the earlier [[mechanism]] whose release it continues or reads, or None."""
        return self.reads if self.continues is None else self.continues

    def settings(self) -> dict[str, object]:
        """Return every setting, defaults included, as the receipt names them."""
        return self.config.model_dump()

    def after(self, packet: Path, folder: Path) -> Mechanism:
        """Return the mechanism that continues or reads the release in ``packet``."""
        setting = self.config.earlier_release_setting()
        found = self.config.resolve_paths(folder)
        if setting is not None:
            found = found.model_copy(update={setting: str(packet)})
        return type(self.mechanism).of(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be released, how, and why; ``text`` is the file as it was written."""

    title: str
    text: str
    folder: Path
    census_file: str
    engine: str
    steps: tuple[PlannedMechanism, ...]
    tables: tuple[TablePlan, ...]
    microdata: bool
    formats: tuple[str, ...]
    reasons: tuple[Reason, ...]
    owner: str
    limit: Budget | None
    utility: bool
    questions: Questions
    alternatives: tuple[str, ...]
    about: Mapping[str, object]
    invalid: Invalid = "refuse"  # what is done with records that break the schema
    weights: WeightsPlan | None = None
    language: str = "en"  # of the card and of the reports
    retabulations: tuple[Retabulation, ...] = ()
    accept_small_effect: str = ""  # why it is published though it is expected to be nearly the truth

    @property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """Return the mechanisms in the order of the plan."""
        return tuple(step.mechanism for step in self.steps)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the file's text; a plan is public."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def census(self, engine: Engine | None = None) -> Census:
        """Open the plan's census; read the schema now, the records when they are needed."""
        path = self.folder / self.census_file
        if not path.exists() and recognise_folder(path.parent) is None:
            raise PlanError(
                "the census is not there",
                why=f"there is no file {self.census_file}, relative to the plan",
                fix="give the path of census.toml relative to the plan, or make one: stirred data describe FILE…",
            )
        return read(path) if engine is None else engine.read(path)

    def checked_census(self, engine: Engine | None = None, *, progress: Progress | None = None) -> Census:
        """Open the plan's census and check its records against the schema before anything else reads them."""

        def told(step: str, done: int, total: int) -> None:  # noqa: ARG001 — its steps are one to whoever waits
            if progress is not None:
                progress("check", done, total)

        return self.census(engine).check(invalid=self.invalid, progress=told)
