"""A plan: a TOML file that describes a release completely."""

import hashlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from pydantic import BaseModel, ValidationError

from stirred.census import Census, read
from stirred.engine import Engine
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism
from stirred.publish import models
from stirred.publish.mechanisms import build
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

    >>> plan = parse('title = "t"\\ncensus = "c.toml"\\n[[mechanism]]\\nname = "permutation-swapping"\\n'
    ...              'match = ["size"]\\nswap = ["county"]\\nrate = "1/20"', folder=Path())
    >>> plan.mechanisms[0].name
    'permutation-swapping'
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PlanError("the plan is no TOML", why=str(error), fix="mend the line named above") from None
    if isinstance(document.get("mechanism"), Mapping):
        document["mechanism"] = [document["mechanism"]]
    try:
        config = models.PlanConfig.model_validate(document)
    except ValidationError as error:
        raise explain(error, document) from None
    _check_tables(config)
    return Plan(
        title=config.title,
        text=text,
        folder=folder,
        census_file=config.census,
        engine=config.engine,
        mechanisms=tuple(build(item) for item in config.mechanism),
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


def explain(error: ValidationError, document: Mapping[str, object]) -> PlanError:
    """The first problem of a plan in words, with what would be right; all others counted."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    # a misspelt key is also a missing one: the misspelling helps more
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place = [str(part) for part in first["loc"]]
    where = ".".join(part for part in place if not part.isdigit()) or "the plan"
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    kind = first["type"]
    if kind == "extra_forbidden":
        known = _known(place[:-1])
        return PlanError(f"the plan has an unknown key: {where}{more}", fix=did_you_mean(place[-1], known))
    if kind == "missing":
        return PlanError(f"the plan lacks {where}{more}", fix=f"add it: {place[-1]} = …")
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        names = [literal for m in _members() for literal in get_args(m.model_fields["name"].annotation)]
        return PlanError(
            f"a [[mechanism]] of the plan has no known name{more}",
            fix=did_you_mean(_name_at(document, place), names),
        )
    return PlanError(
        f"the plan's {where} is not as it should be{more}",
        why=first["msg"],
        fix=_hint(place[-1] if place else ""),
    )


def _members() -> tuple[type[models.Strict], ...]:
    return (models.SwapConfig, models.TopDownConfig)


def _known(place: list[str]) -> list[str]:
    """The keys allowed at a place of the file."""
    model: type[BaseModel] = models.PlanConfig
    tables: dict[str, type[BaseModel]] = {
        "table": models.TableConfig,
        "publish": models.PublishConfig,
        "reason": models.ReasonConfig,
        "budget": models.BudgetConfig,
        "assess": models.AssessConfig,
        "about": models.AboutConfig,
    }
    for part in place:
        if part in tables:
            model = tables[part]
        for member in _members():
            if part in get_args(member.model_fields["name"].annotation):
                model = member
    return list(model.model_fields)


def _name_at(document: Mapping[str, object], place: list[str]) -> str:
    """The mechanism name the user typed: a plan is public, so it may be shown."""
    items = document.get("mechanism")
    index = next((int(part) for part in place if part.isdigit()), 0)
    if isinstance(items, list) and index < len(items) and isinstance(items[index], Mapping):
        return str(items[index].get("name", ""))
    return ""


def _hint(key: str) -> str:
    hints = {
        "rate": 'a swap rate is an exact text between 0 and 1: rate = "1/20"',
        "limit": 'a budget is an exact text, never a float: limit = "16" or "1/10"',
        "rho_squared": 'a budget is an exact text, never a float: rho_squared = "2.63" or "inf"',
        "match": 'a list of variables: match = ["state", "size"]',
        "swap": 'a list of variables: swap = ["county", "block"]',
        "by": 'a list of variables: by = ["county", "tenure"]',
        "engine": 'engine = "local" or engine = "spark"',
    }
    return hints.get(key, "see docs/reference/plan-toml.md")
