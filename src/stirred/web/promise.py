"""State the promise at a choice: from the codebook alone, or from the records once a person asks to read them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import RLock
from typing import Any

from stirred.census import Census
from stirred.errors import StirredError
from stirred.mechanisms.base import Knob, Mechanism
from stirred.mechanisms.release import Guard
from stirred.publish.check import require_finite, require_variables
from stirred.publish.composition import join_promises, read_spending, state_promise
from stirred.publish.plan.description import Plan, parse
from stirred.publish.plan.proposal import complete_schema
from stirred.spec import Budget, Specification
from stirred.spec.card import Card
from stirred.web.document import Document, text_of
from stirred.web.workspace import ChosenData, Workspace

# What the promise is computed on: a stand-in from the codebook, or the records once a person asked to read them.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromiseGround:
    """A census to state promises on, and where it comes from."""

    census: Census
    records: bool  # whether these are the confidential records


class GroundCache:
    """The ground of the chosen data, made once; another codebook, figure or answer makes it anew."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._key: object = None
        self._ground: PromiseGround | None = None

    def of(self, chosen: ChosenData) -> PromiseGround:
        """Return the records where they may be read, else a stand-in with as many households as stated."""
        stamp = chosen.file.stat().st_mtime_ns if chosen.file.is_file() else 0
        key = (chosen.file, stamp, chosen.read, chosen.households)
        with self._lock:
            if self._ground is None or self._key != key:
                self._ground, self._key = _make_ground(chosen), key
            return self._ground


def _make_ground(chosen: ChosenData) -> PromiseGround:
    census = Census(schema=chosen.schema, folder=chosen.file.parent)
    if chosen.read:
        return PromiseGround(census=census.check(), records=True)
    # slow to import, and the first page does not need it
    from stirred.census.synthetic.stand_in import StandInFigures, make_stand_in

    schema = complete_schema(census)
    figures = StandInFigures(households=max(2, chosen.households))
    made = Census.of(schema, make_stand_in(schema, figures, chosen.file.parent))
    return PromiseGround(
        census=replace(made, folder=chosen.file.parent), records=False
    )  # public files of areas


# The promise of a plan as it stands in a form: sentence, budget, invariants, refusals; a slider turns one setting of it.

MAX_STRUCTURES = 8  # structures that are remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What cannot be done as it is chosen, why, and the way out."""

    what: str
    why: str
    fix: str

    @staticmethod
    def of(error: StirredError) -> "Refusal":
        """Build the refusal of an error."""
        return Refusal(what=error.what, why=error.why, fix=error.fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slider:
    """A slider: the setting it changes, its values as texts in order, and its position; "" leaves the setting out."""

    name: str
    effect: str
    values: tuple[str, ...]
    at: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactTable:
    """An invariant in words and how many numbers it fixes (None: it is not known)."""

    words: str
    numbers: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseAnswer:
    """What a screen shows about a promise."""

    records: bool
    refusal: Refusal | None = None
    sentence: str = ""
    warning: str = ""
    symbol: str = ""
    budget: str = ""
    exact: str = ""
    odds: str = ""
    specification: Specification | None = None
    kept: tuple[ExactTable, ...] = ()
    sliders: tuple[Slider, ...] = ()
    largest: int | None = None  # the b that the budget was computed for
    typed: bool = False  # whether a person typed it
    guards: tuple[Guard, ...] = ()  # what they found on the records, without a trial draw


@dataclass(frozen=True, slots=True, kw_only=True)
class _Structure:
    """Everything that does not depend on the slider, computed once."""

    refusal: Refusal | None
    state: Callable[[Mechanism], Specification] | None
    kept: Mapping[str, int | None]
    guards: tuple[Guard, ...] = ()


class PromiseCalculator:
    """Answers about promises; what does not change with the slider is cached."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._lock = RLock()
        self._known: dict[tuple[int, str], _Structure] = {}

    def answer(
        self,
        document: Document,
        ground: PromiseGround,
        *,
        part: int = 0,
        largest: int | None = None,
    ) -> PromiseAnswer:
        """Return the promise of a document, with a slider for each knob; ``largest`` is a published b."""
        sliders: tuple[Slider, ...] = ()
        try:
            plan = self.read(document)
            mechanism = plan.mechanisms[part]
            knobs = mechanism.knobs()
            sliders = tuple(_build_slider(knob, document["mechanism"][part], mechanism) for knob in knobs)
            structure = self._structure(plan, document, ground, part, knobs)
            if structure.refusal is not None:
                return PromiseAnswer(records=ground.records, refusal=structure.refusal, sliders=sliders)
            with self._lock:
                whole = self._state_whole(plan, structure, mechanism, ground.census)
            require_finite(whole, next((m.published_without_guarantee for m in plan.mechanisms), ""))
        except StirredError as error:
            return PromiseAnswer(records=ground.records, refusal=Refusal.of(error), sliders=sliders)
        return _build_answer(whole, structure, ground, sliders, None if ground.records else largest)

    def read(self, document: Document) -> Plan:
        """Return the plan of a document; refuse an invalid one."""
        return parse(text_of(document), folder=self.workspace.plans)

    def _structure(
        self, plan: Plan, document: Document, ground: PromiseGround, part: int, knobs: Sequence[Knob]
    ) -> _Structure:
        plain = {**document, "mechanism": [dict(one) for one in document["mechanism"]], "title": ""}
        for knob in knobs:
            plain["mechanism"][part].pop(knob.name, None)
        key = (id(ground), json.dumps(plain, sort_keys=True, default=str))
        with self._lock:
            if key not in self._known:
                if len(self._known) >= MAX_STRUCTURES:
                    self._known.pop(next(iter(self._known)))
                self._known[key] = self._look(plan, ground)
            return self._known[key]

    def _look(self, plan: Plan, ground: PromiseGround) -> _Structure:
        """Refuse what can be refused, and count what the invariants fix."""
        census = ground.census
        try:
            require_variables(plan, census)
            if len(plan.steps) > 1 or plan.steps[0].config.earlier_release_setting() is not None:
                whole = state_promise(plan, census).whole
                found = _guards(plan, ground)
                return _Structure(refusal=None, state=None, kept=_numbers(whole, census), guards=found)
            mechanism = plan.mechanisms[0]
            mechanism.refuse(census)
            state = mechanism.prepare_restating(census)
            promised = state(mechanism)
            mechanism.refuse_promise(census, promised)
            found = _guards(plan, ground)
        except StirredError as error:
            return _Structure(refusal=Refusal.of(error), state=None, kept={})
        return _Structure(refusal=None, state=state, kept=_numbers(promised, census), guards=found)

    def _state_whole(
        self, plan: Plan, structure: _Structure, mechanism: Mechanism, census: Census
    ) -> Specification:
        if structure.state is None:
            return state_promise(plan, census).whole
        return join_promises(plan, [structure.state(mechanism)]).whole


def _build_slider(knob: Knob, settings: Mapping[str, Any], mechanism: Mechanism) -> Slider:
    """Return the slider from the largest budget to the smallest, with the current value as one stop.

    A setting that is left out has a first stop for that, where the mechanism does without it.
    """
    values = list(knob.settings)
    stated_now = settings.get(knob.name, mechanism.parameters().get(knob.name))
    optional = (
        type(mechanism).Config.model_fields[knob.name].get_default() is None and len(mechanism.knobs()) > 1
    )
    now: Fraction | None = None
    if stated_now not in (None, "") or not optional:
        try:
            now = Fraction(str(stated_now))
        except (ValueError, ZeroDivisionError):
            now = values[len(values) // 2]
        if now not in values:
            rising = len(values) > 1 and values[0] < values[-1]
            values = sorted([*values, now], reverse=not rising)
    stops = ("",) * optional + tuple(map(str, values))
    value = "" if now is None else str(now)
    return Slider(name=knob.name, effect=knob.effect, values=stops, at=stops.index(value), value=value)


def _guards(plan: Plan, ground: PromiseGround) -> tuple[Guard, ...]:
    """Return what the guards of all methods find on the records; nothing on a stand-in."""
    if not ground.records:
        return ()
    return tuple(
        guard
        for step in plan.steps
        if step.config.earlier_release_setting() is None
        for guard in step.mechanism.guards(ground.census, trial=False)
    )


def _numbers(whole: Specification, census: Census) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for invariant in whole.multiverse:
        try:
            found[invariant.words()] = int(invariant.tabulate(census).num_rows)
        except StirredError:
            found[invariant.words()] = None
    return found


def _build_answer(
    whole: Specification,
    structure: _Structure,
    ground: PromiseGround,
    sliders: tuple[Slider, ...],
    largest: int | None,
) -> PromiseAnswer:
    """Return the words of card and report about a promise; a typed b replaces that of the stand-in."""
    varies = whole.varies
    law = None if varies is None else varies.law
    b = None if varies is None else varies.b
    if largest is not None and law is not None:
        budget: Budget = law.at(largest)
        whole, b = replace(whole, budget=budget, bounds=(), varies=None, parts=()), largest
    card = Card(whole)
    symbol, total = read_spending(whole)
    allowed = card.bound_odds()
    return PromiseAnswer(
        records=ground.records,
        sentence=card.sentence(),
        warning=card.warning(),
        symbol=symbol,
        budget=str(total) if total.is_finite else "∞",
        exact=total.exact,
        odds=card.translate(str(allowed.factor)) if total.is_finite else "any factor",
        specification=whole,
        kept=tuple(
            ExactTable(words=i.words(), numbers=structure.kept.get(i.words())) for i in whole.multiverse
        ),
        sliders=sliders,
        largest=b,
        typed=largest is not None and law is not None,
        guards=structure.guards,
    )


# How large the universe is: how many data sets agree on everything that is published exactly.

MAX_MEASURES_SHOWN = 4  # measures


@dataclass(frozen=True, slots=True, kw_only=True)
class UniverseSize:
    """One way to count the data sets, in bits for each record."""

    name: str
    about: str
    value: str
    reason: str = ""


def make_not_counted(error: StirredError) -> UniverseSize:
    """Return the entry that replaces a number which cannot be computed."""
    return UniverseSize(name="not counted", about="", value="–", reason=error.what)


def measure_universe(plan: Plan, ground: PromiseGround) -> list[UniverseSize]:
    """Return the measures of the universe that a plan leaves; an error replaces a number."""
    from stirred.assess.universe import (
        measure_universe,  # slow to import, and the first page does not need it
    )

    try:
        whole = state_promise(plan, ground.census).whole
        if not whole.views:
            return []
        found = measure_universe(whole, ground.census).measures
    except StirredError as error:
        return [make_not_counted(error)]
    return [
        UniverseSize(
            name=one.name,
            about=one.about,
            value="–" if one.value is None else f"{one.value:.2f}",
            reason=str(one.reason or ""),
        )
        for one in found
        if one.unit == "bits per record"
    ][:MAX_MEASURES_SHOWN]
