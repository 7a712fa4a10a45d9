"""A plan: a TOML file that describes a release completely."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stirred.census import Census, read
from stirred.engine import Engine
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import parsed
from stirred.mechanisms.registry import find, registered
from stirred.publish import models
from stirred.spec import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePlan:
    """A table of counts to publish."""

    name: str
    record_type: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why an invariant is published exactly."""

    invariant: str
    kind: str
    text: str
    citation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Questions:
    """What users would ask of the released records, put to both files in the internal report."""

    relations: tuple[tuple[str, str], ...] = ()
    segregation: tuple[tuple[str, str], ...] = ()
    districts: tuple[str, ...] = ()
    regressions: tuple[tuple[str, tuple[str, ...]], ...] = ()
    propensity: tuple[str, ...] = ()
    improbable: str = ""

    def variables(self) -> list[str]:
        """All variables the questions read."""
        names = [name for pair in (*self.relations, *self.segregation) for name in pair]
        names += [*self.districts, *self.propensity]
        names += [name for outcome, on in self.regressions for name in (outcome, *on)]
        return sorted(set(names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be released, how, and why; ``text`` is the file as it was written."""

    title: str
    text: str
    folder: Path
    census_file: str
    engine: str
    mechanisms: tuple[Mechanism, ...]
    tables: tuple[TablePlan, ...]
    microdata: bool
    formats: tuple[str, ...]
    reasons: tuple[Reason, ...]
    owner: str
    limit: Budget | None
    utility: bool
    questions: "Questions"
    alternatives: tuple[str, ...]
    about: Mapping[str, object]

    @property
    def digest(self) -> str:
        """SHA-256 of the file's text: a plan is public."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def census(self, engine: Engine | None = None) -> Census:
        """The census it speaks of; the schema is read, the records are only scanned."""
        path = self.folder / self.census_file
        if not path.exists():
            raise PlanError(
                "the plan's census is not there",
                why=f"no file {self.census_file} beside the plan",
                fix="give the path of census.toml relative to the plan, or make one: stirred data describe FILE…",
            )
        return read(path) if engine is None else engine.read(path)


def load(path: str | Path) -> Plan:
    """The plan in a file, checked as far as it can be without looking at a record."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            "the plan cannot be read",
            why=f"{path.name}: {type(error).__name__}",
            fix="stirred plan new PLAN.toml",
        ) from None
    return parse(text, folder=path.parent)


def parse(text: str, *, folder: Path) -> Plan:
    """The plan in a text.

    >>> plan = parse('title = "t"\\ncensus = "c.toml"\\n[[mechanism]]\\nname = "exact-margins"\\n'
    ...              'rows = "county"\\ncolumns = "tenure"\\nrho_squared = "1/2"', folder=Path())
    >>> plan.mechanisms[0].name
    'exact-margins'
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError("the plan is no TOML", why=str(error), fix="fix the line named above") from None
    if isinstance(document.get("mechanism"), Mapping):
        document["mechanism"] = [document["mechanism"]]
    config = parsed(models.PlanConfig, document, what="the plan", kind=PlanError)
    _check_tables(config)
    return Plan(
        title=config.title,
        text=text,
        folder=folder,
        census_file=config.census,
        engine=config.engine,
        mechanisms=tuple(_mechanism(item, folder) for item in config.mechanism),
        tables=tuple(TablePlan(name=t.name, record_type=t.record_type, by=tuple(t.by)) for t in config.table),
        microdata=config.publish.microdata,
        formats=tuple(config.publish.formats),
        reasons=tuple(Reason(**reason.model_dump()) for reason in config.reason),
        owner=config.budget.owner,
        limit=None if config.budget.limit is None else Budget.of(config.budget.limit),
        utility=config.assess.utility,
        questions=_questions(config.assess),
        alternatives=tuple(config.alternatives),
        about=config.about.model_dump(),
    )


def _questions(config: models.AssessConfig) -> Questions:
    def pairs(key: str, found: list[list[str]]) -> tuple[tuple[str, str], ...]:
        for pair in found:
            if len(pair) != 2:
                raise PlanError(
                    f"the plan's assess.{key} holds no pair", fix=f'{key} = [["county", "tenure"]]'
                )
        return tuple((pair[0], pair[1]) for pair in found)

    return Questions(
        relations=pairs("relations", config.relations),
        segregation=pairs("segregation", config.segregation),
        districts=tuple(config.districts),
        regressions=tuple((item.outcome, tuple(item.on)) for item in config.regression),
        propensity=tuple(config.propensity),
        improbable=config.improbable,
    )


def _check_tables(config: models.PlanConfig) -> None:
    names = [table.name for table in config.table]
    for table in config.table:
        if names.count(table.name) > 1:
            raise PlanError(
                "two tables have one name", why=f"{table.name} stands twice", fix="rename one of them"
            )
        if not table.name.replace("-", "").replace("_", "").isalnum():
            raise PlanError(
                "a table's name cannot be a file name",
                why=f"{table.name!r} holds other characters than letters, digits, - and _",
                fix='write for instance name = "tenure-by-county"',
            )
        if not table.by:
            raise PlanError(
                f"table {table.name} has no variables", fix='name them: by = ["county", "tenure"]'
            )
    if not config.publish.microdata and not config.table:
        raise PlanError(
            "the plan publishes nothing",
            why="microdata = false and no [[table]]",
            fix="add a [[table]] or microdata",
        )


def _mechanism(values: Mapping[str, object], folder: Path) -> Mechanism:
    """The mechanism of one [[mechanism]]: its name says which settings it has."""
    name = values.get("name")
    if not isinstance(name, str) or name not in registered():
        raise PlanError(
            "a [[mechanism]] of the plan has no known name",
            why="neither Stirred nor an installed package has it",
            fix=did_you_mean(str(name or ""), registered()),
        )
    kind = find(name)
    settings = {key: value for key, value in values.items() if key != "name"}
    config = parsed(kind.Config, settings, what="the plan", where=f"mechanism.{name}", kind=PlanError)
    return kind.of(config.located(folder))
