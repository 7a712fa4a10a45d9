"""Describe a release: the plan as an object, read from plan.toml and written as TOML."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from stirred._support import FILE_NAME_RULE, is_file_name
from stirred.census import DROPPED_NOTE, Census, Invalid, read
from stirred.census import toml as codebook
from stirred.census.bureau import recognise_folder
from stirred.census.schema import make_coder
from stirred.engine import Engine, Local, Progress
from stirred.errors import InputError, PlanError, StirredError, did_you_mean, require_path
from stirred.frames import frame_of
from stirred.languages import Language
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import MechanismConfig, parse_settings
from stirred.mechanisms.effect import ACCEPT_KEY
from stirred.mechanisms.registry import find_mechanism, list_mechanisms
from stirred.mechanisms.release import Release, format_table, weigh
from stirred.publish.plan import models
from stirred.roots import require_names
from stirred.spec import Budget
from stirred.text_formats import TomlError, parse_toml, read_plain_text, write_toml

# A plan: what is to be released, how, and why.


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
            engine_used = engine or Local()
            return weigh(
                release, self.by, weight=self.weight, record_type=self.record_type, engine=engine_used
            )
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
    accept_open_network: str = ""  # why a cluster with an open network is used
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

        def report_check(step: str, done: int, total: int) -> None:  # noqa: ARG001 — its steps are one to whoever waits
            if progress is not None:
                progress("check", done, total)

        return self.census(engine).check(invalid=self.invalid, progress=report_check)


# plan.toml, read: checked as far as it can be without looking at a record.


def load(path: str | Path) -> Plan:
    """Read the plan in a file, checked as far as possible without looking at a record."""
    require_path("the plan", path, fix='st.load("plan.toml")')
    path = Path(path)
    try:
        text = read_plain_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            "the plan cannot be read",
            why=f"{path.name}: {error.strerror or 'the system refused'}"
            if isinstance(error, OSError)
            else f"{path.name} is not text in UTF-8",
            fix="check the path, or make a plan: stirred plan new PLAN.toml",
        ) from None
    return parse(text, folder=path.parent)


def parse(text: str, *, folder: Path) -> Plan:
    """Read the plan in a text.

    >>> plan = parse('title = "t"\\ncensus = "c.toml"\\n[[mechanism]]\\nname = "exact-margins"\\n'
    ...              'rows = "county"\\ncolumns = "tenure"\\nrho_squared = "1/2"', folder=Path())
    >>> plan.mechanisms[0].name
    'exact-margins'
    """
    try:
        document = parse_toml(text)
    except TomlError as error:
        raise PlanError(
            "the plan is not valid TOML", why=str(error), fix="correct the line named above"
        ) from None
    if isinstance(document.get("mechanism"), Mapping):
        document["mechanism"] = [document["mechanism"]]
    config = parse_settings(models.PlanConfig, document, what="the plan", kind=PlanError)
    _check_tables(config)
    _check_reasons(config)
    require_names((config.census, *config.weights.recalibrate_to), folder)
    steps = _steps(config.mechanism, folder, config.census)
    labels = [step.label for step in steps]
    return Plan(
        title=config.title,
        text=text,
        folder=folder,
        census_file=config.census,
        engine=config.engine,
        steps=steps,
        tables=tuple(
            TablePlan(
                name=t.name,
                record_type=t.record_type,
                by=tuple(t.by),
                weight=t.weight,
                calibrated=bool(config.weights.recalibrate_to) and t.weight == config.weights.column,
                source=_find_label(t.of, labels, f"table {t.name}") if t.of else None,
            )
            for t in config.table
        ),
        microdata=config.publish.microdata,
        formats=tuple(config.publish.formats),
        reasons=tuple(Reason(**reason.model_dump()) for reason in config.reason),
        owner=config.budget.owner,
        limit=None if config.budget.limit is None else Budget.of(config.budget.limit),
        utility=config.assess.utility,
        questions=_questions(config.assess),
        alternatives=tuple(config.alternatives),
        about=config.about.model_dump(),
        invalid=config.invalid,
        weights=_weights(config.weights),
        language=config.language,
        accept_open_network=config.accept_open_network,
        accept_small_effect=config.accept_small_effect,
        retabulations=tuple(
            Retabulation(name=item.name, source=_find_label(item.of, labels, f"the retabulation {item.name}"))
            for item in config.retabulation
        ),
    )


def _weights(config: models.WeightsConfig) -> WeightsPlan | None:
    if not config.recalibrate_to:
        return None
    return WeightsPlan(
        recalibrate_to=tuple(config.recalibrate_to), column=config.column, record_type=config.record_type
    )


def with_invalid(plan: Plan, invalid: Invalid | None) -> Plan:
    """Return the plan with a command's choice for invalid records; refuse a plan that states another.

    >>> plan = parse('title = "t"\\ncensus = "c.toml"\\n[[mechanism]]\\nname = "exact-margins"\\n'
    ...              'rows = "county"\\ncolumns = "tenure"\\nrho_squared = "1/2"', folder=Path())
    >>> with_invalid(plan, "drop").text.splitlines()[0]
    'invalid = "drop"'
    """
    return plan if invalid is None else _state_key(plan, "invalid", invalid, plan.invalid)


def with_language(plan: Plan, language: str | None) -> Plan:
    """Return the plan with the language of a command; refuse a plan that states another one.

    >>> plan = parse('title = "t"\\ncensus = "c.toml"\\n[[mechanism]]\\nname = "exact-margins"\\n'
    ...              'rows = "county"\\ncolumns = "tenure"\\nrho_squared = "1/2"', folder=Path())
    >>> with_language(plan, "de").text.splitlines()[0]
    'language = "de"'
    """
    return (
        plan if language is None else _state_key(plan, "language", Language.of(language).code, plan.language)
    )


def with_small_effect(plan: Plan, reason: str) -> Plan:
    """Return the plan with the reason of a command for publishing nearly the truth, written into its text."""
    return _state_key(plan, ACCEPT_KEY, reason, plan.accept_small_effect) if reason else plan


def _state_key(plan: Plan, key: str, asked: str, stated: str) -> Plan:
    """Return the plan with a key that a command states; ``stated`` is what the plan has now."""
    if asked == stated:
        return plan
    flag = key.replace("_", "-")
    if key in parse_toml(plan.text):
        raise PlanError(
            f"the plan and the command disagree about {key}",
            why=f"the plan says {key} = {write_toml(stated)}, the command --{flag} {asked}",
            fix=f"leave --{flag} out, or change the plan",
        )
    return parse(f"{key} = {write_toml(asked)}\n{plan.text}", folder=plan.folder)


def _questions(config: models.QuestionsConfig) -> Questions:
    def pairs(key: str, found: list[list[str]]) -> tuple[tuple[str, str], ...]:
        for pair in found:
            if len(pair) != 2:
                raise PlanError(
                    f"the plan's assess.{key} holds something that is not a pair",
                    why=f"it has {len(pair)} variables instead of two",
                    fix=f'{key} = [["county", "tenure"]]',
                )
        return tuple((pair[0], pair[1]) for pair in found)

    whole = config if isinstance(config, models.AssessConfig) else models.AssessConfig()
    return Questions(
        record_type=config.record_type,
        relations=pairs("relations", config.relations),
        segregation=pairs("segregation", config.segregation),
        districts=tuple(config.districts),
        regressions=tuple((item.outcome, tuple(item.on)) for item in config.regression),
        propensity=tuple(config.propensity),
        improbable=whole.improbable,
        of=tuple(_questions(item) for item in whole.of),
    )


def _check_tables(config: models.PlanConfig) -> None:
    names = [table.name for table in config.table]
    for table in config.table:
        if names.count(table.name) > 1:
            raise PlanError(
                "two tables have the same name",
                why=f"{table.name} stands twice in the plan",
                fix="rename one of them",
            )
        if not is_file_name(table.name):
            raise PlanError(
                "a table's name cannot be a file name",
                why=f"{table.name[:40]!r} does not have {FILE_NAME_RULE}",
                fix='write for instance name = "tenure-by-county"',
            )
        if not table.by:
            raise PlanError(
                f"table {table.name} has no variables",
                why="a table counts records by at least one variable",
                fix='by = ["county", "tenure"]',
            )
    own = any(step.get("tables") for step in config.mechanism)  # tables that a mechanism makes itself
    if not config.publish.microdata and not config.table and not own:
        raise PlanError(
            "the plan publishes nothing",
            why="microdata = false and no [[table]]",
            fix="add a [[table]] or microdata",
        )


def _check_reasons(config: models.PlanConfig) -> None:
    """Refuse a reason that is empty or a text of the template: reasons are published."""
    for reason in config.reason:
        for key, placeholder in models.PLACEHOLDERS.items():
            stated = getattr(reason, key).strip()
            if stated == placeholder or not (stated or key == "citation"):
                raise PlanError(
                    f"a [[reason]] of the plan has no {key}",
                    why=f"it {'still has the text of the template' if stated else 'is empty'}, and reasons are published",
                    fix=f"write the {key} of your own, or delete the [[reason]]",
                )


def _steps(items: Sequence[Mapping[str, object]], folder: Path, census: str) -> tuple[PlannedMechanism, ...]:
    found: list[PlannedMechanism] = []
    for item in items:
        found.append(_step(item, folder, census, [step.label for step in found]))
    return tuple(found)


def _step(
    values: Mapping[str, object], folder: Path, census: str, earlier: Sequence[str]
) -> PlannedMechanism:
    """Build one [[mechanism]] from its settings; its label is its name, unless it has its own."""
    name, label = values.get("name"), values.get("label", values.get("name"))
    if not isinstance(name, str) or name not in list_mechanisms():
        raise PlanError(
            "a [[mechanism]] of the plan has no known name",
            why="neither Stirred nor an installed package has it",
            fix=did_you_mean(str(name or ""), list_mechanisms()),
        )
    if not isinstance(label, str) or not label:
        raise PlanError(
            f"the label of a [[mechanism]] ({name}) is not a text",
            why="a later [[mechanism]] may name it",
            fix='label = "first"',
        )
    kind = find_mechanism(name)
    settings = {key: value for key, value in values.items() if key not in ("name", "label", "from")}
    config = parse_settings(kind.Config, settings, what="the plan", where=f"mechanism.{name}", kind=PlanError)
    # Path.is_file would raise an error where the name is too long for the system.
    if config.names_levels() and os.path.isfile(folder / census):  # noqa: PTH113
        config = config.encode_labels(make_coder(codebook.load_schema(folder / census)))
    setting, from_ = config.earlier_release_setting(), values.get("from")
    given = None if setting is None else getattr(config, setting)
    earlier_one = _find_label(given, earlier, setting) if given in earlier else None
    continued = setting is not None and setting == config.continues_setting()
    return PlannedMechanism(
        label=label,
        config=config,
        mechanism=kind.of(config.resolve_paths(folder)),
        continues=earlier_one if continued else None,
        reads=None if continued else earlier_one,
        source=None if from_ is None else _find_label(from_, earlier, f"from in mechanism.{name}"),
    )


def _find_label(label: object, labels: Sequence[str], who: str | None) -> int:
    """Return the number of the [[mechanism]] with a label; refuse an unknown or ambiguous label."""
    if label not in labels:
        raise PlanError(
            f"{who} names no [[mechanism]] that comes before it",
            why="it is made from the release of another one",
            fix=did_you_mean(str(label), labels) if labels else 'label = "first" in an earlier [[mechanism]]',
        )
    if labels.count(str(label)) > 1:
        raise PlanError(
            f"two [[mechanism]] entries are called {label}",
            why=f"{who} must name one of them",
            fix='give each its own label, such as label = "first"',
        )
    return labels.index(str(label))


# The plan of a mechanism that was chosen without one: on the command line, or in Python.

CENSUS = "census.toml"
_TEXT = """title = {title}
census = {census}

[[mechanism]]
name = {name}
{settings}
[assess]
utility = false
"""


def plan_of(
    mechanism: Mechanism,
    folder: Path,
    *,
    census: str = CENSUS,
    title: str = "",
    invalid: Invalid = "refuse",
    language: str | None = None,
    accept_small_effect: str = "",
) -> Plan:
    """Return the plan that runs one mechanism on the census in ``folder``, where its paths start."""
    config = parse_settings(type(mechanism).Config, mechanism.settings(), what=f"mechanism {mechanism.name}")
    paths = {name: os.path.relpath(str(getattr(config, name)), folder) for name in config.paths()}
    values = {name: value for name, value in (mechanism.settings() | paths).items() if value is not None}
    text = _TEXT.format(
        title=write_toml(title or f"Released by {mechanism.name}"),
        census=write_toml(census),
        name=write_toml(mechanism.name),
        settings="".join(f"{name} = {write_toml(value)}\n" for name, value in values.items()),
    )
    plan = with_language(with_invalid(parse(text, folder=folder), invalid), language)
    return with_small_effect(plan, accept_small_effect)


def plan_of_release(
    release: Release, folder: Path, *, census: str = CENSUS, title: str = "", accept_small_effect: str = ""
) -> Plan:
    """Return the plan that makes a release again; refuse settings that no plan can state."""
    kind = find_mechanism(release.mechanism)
    settings = release.settings or {
        name: value for name, value in release.parameters.items() if name in kind.Config.model_fields
    }
    try:
        invalid: Invalid = "drop" if DROPPED_NOTE in release.specification.notes else "refuse"
        made = kind.of(parse_settings(kind.Config, settings))
        plan = plan_of(
            made,
            folder,
            census=census,
            title=title,
            invalid=invalid,
            accept_small_effect=accept_small_effect,
        )
        same = _plain(plan.mechanisms[0].parameters()) == _plain(release.parameters)
    except StirredError:
        same = False
    if not same:
        raise InputError(
            f"no plan describes this release of {release.mechanism}",
            why="a setting of its mechanism was made in Python, or a file that a setting names has changed",
            fix="use settings that plan.toml can state, such as the name of a file, and make the release again",
        )
    return plan


def _plain(parameters: Mapping[str, object]) -> str:
    return repr(sorted(parameters.items()))
