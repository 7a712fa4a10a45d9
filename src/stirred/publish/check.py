"""Check a plan before it runs: refuse, explain promise and cost, write the decision record."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stirred.census import Census
from stirred.census.validation import find_doubts
from stirred.engine import Engine, Progress, silent
from stirred.engine.choice import choose_engine, name_work
from stirred.errors import (
    ClusterError,
    DataError,
    InputError,
    PlanError,
    PrivacyError,
    StirredError,
    did_you_mean,
)
from stirred.languages import Phrase
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.effect import ACCEPT_KEY, require_effect
from stirred.mechanisms.release import Guard, Release
from stirred.publish.composition import PlanPromise, read_spending, state_promise
from stirred.publish.packet.receipt import guard_lines
from stirred.publish.plan.description import Plan, Questions, Reason, TablePlan
from stirred.publish.run.inputs import Stamps, input_stamps
from stirred.publish.run.part import PartFolder
from stirred.publish.weights import read_totals, require_totals
from stirred.spec import Custom, Invariant, Margin, Multiverse, Specification
from stirred.spec.card import Card
from stirred.spec.nearest import smallest_distance

# All that is refused before a key, a folder or a file exists, whichever way a packet is asked for.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPlan:
    """A validated plan: its census, its promise and the engine that runs it."""

    census: Census
    promise: PlanPromise
    engine: Engine
    stamps: Stamps  # of the files, from before their records were checked

    @property
    def specification(self) -> Specification:
        """Return the promise of the whole plan."""
        return self.promise.whole


def prepare(
    plan: Plan, out: Path, engine: Engine | None = None, *, rehearsal: bool = False, progress: Progress | None = None
) -> ReadyPlan:  # fmt: skip
    """Refuse what can be refused, without writing anything; what is left can be run.

    A ``rehearsal`` is run with a key for tests, and its packet is marked as not private: there a mechanism may be told to
    add no noise at all.
    """
    require_room(out)
    engine_used = engine or choose_engine(plan.engine, accept_open_network=plan.accept_open_network)
    name_work(engine_used, "check", progress or silent)
    stamps = input_stamps(plan.census(engine_used))
    census = plan.checked_census(engine_used, progress=progress)
    require_records(census, engine_used)
    require_variables(plan, census)
    promise = _add_notes(state_promise(plan, census, engine_used), census)
    for mechanism, part in zip(plan.mechanisms, promise.parts, strict=True):
        if not (rehearsal and mechanism.is_noiseless):
            require_finite(part, mechanism.published_without_guarantee)
    if all(part.budget.is_finite for part in promise.parts):
        require_finite(promise.whole)
    promise = require_effects(plan, promise, rehearsal=rehearsal)
    return ReadyPlan(census=census, promise=promise, engine=engine_used, stamps=stamps)


def require_effects(plan: Plan, promise: PlanPromise, *, rehearsal: bool = False) -> PlanPromise:
    """Refuse a plan that is expected to publish nearly the truth; return the promise with the note of an accepted one.

    A rehearsal without noise has no effect by intention, and its packet is marked as not private.
    """
    notes: list[Phrase] = []
    for step, effect in zip(plan.steps, promise.effects, strict=True):
        if not (rehearsal and step.mechanism.is_noiseless):
            notes += require_effect(effect, plan.accept_small_effect, mechanism=step.label)
    notes += _require_choice(promise.whole, plan.accept_small_effect)
    if not notes:
        return promise
    return replace(promise, whole=replace(promise.whole, notes=(*notes, *promise.whole.notes)))


def _require_choice(whole: Specification, reason: str) -> tuple[Phrase, ...]:
    """Refuse a plan whose exact tables fix everything that is released: no other data set could have given it."""
    counted_by = whole.input_premetric.unrestricted
    # a bound, and an invariant of another package, says less than the tables it is computed from: it leaves something open
    tables = Multiverse.of(*(one for one in whole.multiverse if isinstance(one, Margin | Custom)))
    near = smallest_distance(whole.domain, tables, counted_by, whole.views)
    if near.value is not None:
        return ()
    if not reason.strip():
        raise PrivacyError(
            "the plan publishes the truth",
            why=f"what is exact leaves nothing open: {near.because}",
            fix="keep fewer tables exact; or accept it with a reason, which stands on the first line of the card: "
            f'{ACCEPT_KEY} = "why" in the plan, or --{ACCEPT_KEY.replace("_", "-")} on the command line',
        )
    return (Phrase("effect.accepted", effect=near.because, reason=reason.strip()),)


def _add_notes(promise: PlanPromise, census: Census) -> PlanPromise:
    """Return the promise with a note on the records it is about, also where no mechanism says so."""
    notes = promise.whole.notes
    more = tuple(note for note in census.notes if note not in notes)
    return replace(promise, whole=replace(promise.whole, notes=(*notes, *more))) if more else promise


def require_records(census: Census, engine: Engine) -> None:
    """Refuse a census without a single record: its packet would say that everybody is protected."""
    counts = {record.name: engine.census(census).count(record.name) for record in census.schema.records}
    if not any(counts.values()):
        raise DataError(
            "the census has no records",
            why=f"the files of {', '.join(counts)} records have a header and no row",
            fix="check files in census.toml, and where = … that may leave every record out",
        )


def require_room(out: Path) -> None:
    """Refuse an output that exists already, or whose parent folder cannot be written to."""
    if os.path.lexists(out):
        PartFolder(out).remove_empty()
        raise InputError(
            f"{out.name} exists already",
            why="a packet is never overwritten",
            fix="choose another --out, or move the old packet away",
        )
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(
            f"cannot write beside {out.name}",
            why="its folder does not exist or cannot be written to",
            fix="make the folder first, or choose another --out",
        )
    PartFolder(out).require_own()


def require_finite(specification: Specification, reason: str = "") -> None:
    """Refuse a release without a finite budget, unless there is a stated reason to publish it."""
    if not specification.budget.is_finite and not reason:
        raise PrivacyError(
            "the plan protects nothing",
            why="its protection loss budget is infinite",
            fix="a swap rate lies strictly between 0 and 1, and ρ² is finite; a method that has no finite budget has the "
            "setting without_guarantee, for the reason why it is published; a rehearsal without noise needs a key for "
            'tests, which marks its packet: Key.for_tests(1).save("tests.key"), then --key tests.key',
        )


def require_kept(releases: Sequence[Release]) -> None:
    """Refuse a release that does not keep its invariants."""
    broken = [check.invariant for release in releases for check in release.checks if not check.kept]
    if broken:
        raise PrivacyError(
            "an invariant was not kept", why=broken[0], fix="nothing was released; report this"
        )


def require_variables(plan: Plan, census: Census) -> None:
    """Refuse a plan whose tables or questions name variables that do not exist or are not released."""
    told = [mechanism.table_variables(census) for mechanism in plan.mechanisms]
    for table in plan.tables:
        check_variables(census, table, own=_own_variables(told, table.record_type))
        able = [
            mechanism
            for number, (mechanism, found) in enumerate(zip(plan.mechanisms, told, strict=True))
            if table.source in (None, number) and (found is None or _has_variables(found, table, census))
        ]
        if not able:
            raise PlanError(
                f"table {table.name} asks for what is not released",
                why=f"no mechanism of the plan releases {table.record_type} records with {', '.join(table.variables)}",
                fix="leave the table out, or let the mechanism release its variables",
            )
        if table.weight and not table.calibrated:
            able[0].require_weight(table.weight, record_type=table.record_type, census=census)
    if plan.weights is not None:
        find_weighted(plan, census)
    for questions in plan.questions.each():
        if questions.variables() or questions.improbable:
            _check_questions(questions, census, plan.mechanisms[0])


def find_weighted(plan: Plan, census: Census) -> int | None:
    """Return the number of the mechanism whose records get new weights; None where the plan asks for none."""
    if plan.weights is None:
        return None
    totals = read_totals(plan.weights, plan.folder)
    told = [mechanism.table_variables(census) for mechanism in plan.mechanisms]
    having = [n for n, found in enumerate(told) if found is None or plan.weights.record_type in found]
    if not having:
        raise PlanError(
            f"no {plan.weights.record_type} records get the new weights",
            why="no mechanism of the plan releases records of this type",
            fix="name another record_type in [weights], or release these records",
        )
    wanted = {name for table in totals for name in table.variables}
    names = {n: (told[n] or {}).get(plan.weights.record_type, ()) for n in having}
    number = next((n for n in having if told[n] is None or wanted <= set(names[n])), having[0])
    if told[number] is not None:
        require_totals(totals, plan.weights, names[number])
    return number


def check_variables(census: Census, table: TablePlan, *, own: Collection[str] = ()) -> None:
    """Refuse a table whose record type or variables neither the census nor a mechanism has."""
    known = {*_list_variables(census, table.record_type), *own}
    for name in table.variables:
        if name not in known:
            raise PlanError(
                f"table {table.name} asks for an unknown variable {name}",
                why=f"{table.record_type} records have no such column",
                fix=did_you_mean(name, known),
            )


def _own_variables(told: Sequence[Mapping[str, Sequence[str]] | None], record_type: str) -> set[str]:
    return {name for found in told if found is not None for name in found.get(record_type, ())}


def _list_variables(census: Census, record_type: str) -> set[str]:
    """Return the variables of a record type, of its household, and the areas beside the spine."""
    record = census.schema.record(record_type)
    known = set(census.columns(record_type))
    if record.linked_to:
        known |= set(census.columns(record.linked_to))
    return known | {off.name for off in census.schema.geography.off_spine}


def _has_variables(released: Mapping[str, Sequence[str]], table: TablePlan, census: Census) -> bool:
    """Return whether released records have the variables of a table, with areas that follow from the spine."""
    if table.record_type not in released:
        return False
    known = {*released[table.record_type], *(off.name for off in census.schema.geography.off_spine)}
    linked = census.schema.record(table.record_type).linked_to
    known |= set(released.get(linked, ())) if linked else set()
    return set(table.variables) <= known


def _check_questions(questions: Questions, census: Census, mechanism: Mechanism) -> None:
    record_type = questions.record_type or mechanism.record_type
    if record_type not in census.schema.record_types:
        raise PlanError(
            f"the plan's [assess] asks about {record_type} records",
            why="the census has no such record type",
            fix=did_you_mean(record_type, census.schema.record_types),
        )
    known = _list_variables(census, record_type)
    released = mechanism.table_variables(census)
    for name in questions.variables():
        asked = TablePlan(name=name, record_type=record_type, by=(name,))
        if name not in known or (released is not None and not _has_variables(released, asked, census)):
            raise PlanError(
                f"the plan's [assess] asks for {name}, which is not released",
                why=f"{record_type} records are released without it, or have no such column",
                fix=did_you_mean(name, known - {name}),
            )
    level = questions.improbable
    if level and level not in known:
        raise PlanError(
            f"the plan's [assess] asks for improbable areas of {level}",
            why="there is no such level",
            fix=did_you_mean(level, census.schema.spine),
        )


# What a plan promises and costs, before it runs; reads at most the counts that the promise needs.

# of every run, for a rough estimate
FLOOR_SECONDS, FLOOR_BYTES = 3.0, 400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInvariant:
    """An invariant in words and how many numbers it fixes."""

    words: str
    numbers: int | None  # None: it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The whole promise and cost of a plan."""

    title: str
    sentence: str
    warning: str
    specification: Specification
    kept: tuple[KeptInvariant, ...]
    parts: tuple[tuple[str, str, str], ...]  # mechanism, budget as people read it, exact (ρ² for zCDP)
    unexplained: tuple[str, ...]  # invariants without a reason
    records: int
    seconds: float
    memory: int
    doubts: tuple[str, ...] = ()  # about the records, for the office alone
    effects: tuple[str, ...] = ()  # how far each mechanism is expected to change what it reads
    compared: tuple[str, ...] = ()  # what other mechanisms would lose at the same effect
    losses: tuple[tuple[int, float, str, str], ...] = ()  # the same: step, share that moves, mechanism, ε
    guards: tuple[Guard, ...] = ()  # for the office alone: one of them may come from a trial draw

    def document(self) -> dict[str, object]:
        """Return the explanation as plain values for programs."""
        return {
            "title": self.title,
            "sentence": self.sentence,
            "warning": self.warning,
            "specification": str(self.specification),
            "budget": float(self.specification.budget.upper(6))
            if self.specification.budget.is_finite
            else "inf",
            "budget_shown": Card(self.specification).budget(),
            "invariants": [{"words": k.words, "numbers": k.numbers} for k in self.kept],
            "budget_by_part": [
                {"part": name, "budget": told, "exact": exact} for name, told, exact in self.parts
            ],
            "without_reason": list(self.unexplained),
            "records": self.records,
            "estimated_seconds": round(self.seconds),
            "estimated_memory_bytes": self.memory,
            "doubts": list(self.doubts),
            "expected_effect": list(self.effects),
            "compared_losses": list(self.compared),
            "losses": [
                {"step": step, "share": share, "mechanism": name, "epsilon": loss}
                for step, share, name, loss in self.losses
            ],
            "guards": guard_lines(self.guards),
            "notes": [str(note) for note in self.specification.notes],
        }


def explain(
    plan: Plan, census: Census | None = None, engine: Engine | None = None, *, trial: bool = True
) -> Explanation:
    """Return everything that ``plan check`` prints; write nothing. With ``trial`` draw once and discard it."""
    engine_used = engine or choose_engine(plan.engine, accept_open_network=plan.accept_open_network)
    census = (
        plan.checked_census(engine_used)
        if census is None
        else engine_used.census(census.check(invalid=plan.invalid))
    )
    require_records(census, engine_used)
    require_variables(plan, census)
    promise = require_effects(plan, state_promise(plan, census, engine_used))
    whole = promise.whole
    kept = tuple(
        KeptInvariant(words=invariant.words(), numbers=_numbers(invariant, census))
        for invariant in whole.multiverse
    )
    unexplained = tuple(k.words for k in kept if find_reason(k.words, plan.reasons) is None)
    card = Card(whole, title=plan.title)
    records = sum(census.count(record.name) for record in census.schema.records)
    guards = [
        guard
        for mechanism in plan.mechanisms
        for guard in mechanism.guards(census, engine=engine_used, trial=trial)
    ]
    return Explanation(
        title=plan.title,
        sentence=card.sentence(),
        warning=card.warning(),
        specification=whole,
        kept=kept,
        parts=tuple(
            _part(step.label, part)
            for step, part in zip(plan.steps, promise.parts, strict=True)
            if step.source is None  # tables of released records spend nothing
        ),
        unexplained=unexplained,
        records=records,
        seconds=FLOOR_SECONDS + sum(_seconds(mechanism, records) for mechanism in plan.mechanisms),
        memory=FLOOR_BYTES + max(m.bytes_per_record for m in plan.mechanisms) * records,
        guards=tuple(guards),
        doubts=tuple(map(str, find_doubts(census))),
        effects=tuple(str(effect.words()) for effect in promise.effects if effect is not None),
        compared=tuple(
            str(told)
            for effect in promise.effects
            if effect is not None and (told := effect.compare_losses()) is not None
        ),
        losses=tuple(
            (step, effect.share, name, loss)
            for step, effect in enumerate(promise.effects, 1)
            if effect is not None
            for name, loss in effect.losses.items()
        ),
    )


def find_reason(invariant: str, reasons: Sequence[Reason]) -> Reason | None:
    """Return the plan's reason for an invariant, whose variables may stand in any order.

    >>> law = Reason(invariant="households by size × state", kind="law", text="a law", citation="")
    >>> find_reason("households by state × size", [law]) is law
    True
    >>> find_reason("persons by state", [law]) is None
    True
    """
    return next((reason for reason in reasons if same_invariant(reason.invariant, invariant)), None)


def same_invariant(first: str, second: str) -> bool:
    """Return whether two texts name the same invariant, in any order of variables and in any case.

    >>> same_invariant("Households by county × size", "households by size × county")
    True
    """
    return _parts(first) == _parts(second)


def _parts(words: str) -> tuple[str, tuple[str, ...], str]:
    """Split the words of an invariant: what is counted, by which variables, and where."""
    named, _, where = " ".join(words.lower().split()).partition(" where ")
    counted, _, by = named.partition(" by ")
    return counted, tuple(sorted(name.strip() for name in by.split("×"))), where


def _part(name: str, specification: Specification) -> tuple[str, str, str]:
    return name, Card(specification).budget(), read_spending(specification)[1].exact


def _numbers(invariant: Invariant, census: Census) -> int | None:
    try:
        return int(invariant.tabulate(census).num_rows)
    except ClusterError:
        raise
    except StirredError:
        return None


def _seconds(mechanism: Mechanism, records: int) -> float:
    return mechanism.seconds_per_million * records / 1e6


# The decision record: two pages for an ethics or legal file, without legal conclusions.


def decision_record(plan: Plan, explanation: Explanation) -> str:
    """Write the decision record as Markdown: what is protected, what is exact and why, what else was tried."""
    spec = explanation.specification
    card = Card(spec, title=plan.title)
    lines = [
        f"# Decision record: {plan.title}",
        "",
        "This record states what a release promises and what was decided. It draws no legal conclusion.",
        "",
        "## What is released",
        "",
        *[f"- {m.name} with {_settings(m.parameters())}" for m in plan.mechanisms],
        *[
            f"- table {t.name}: {t.record_type} records by {', '.join(t.by)}"
            + (f", weighted by {t.weight}" if t.weight else "")
            for t in plan.tables
        ],
        f"- microdata: {'yes' if plan.microdata else 'no'}",
        "",
        "## Whom the promise protects, and how far",
        "",
        card.sentence(),
        "",
        *([card.warning(), ""] if card.warning() else []),
        card.write_example(),
        "",
        f"- unit of protection: {spec.input_premetric}",
        f"- budget: {card.budget()} ({spec.evidence.status}; {spec.evidence.source})",
        f"- owner of the budget: {plan.owner or 'NOT NAMED: name one under [budget] in the plan'}",
        f"- limit set for the budget: {plan.limit if plan.limit is not None else 'none'}",
        "",
        "## What is exact, and why",
        "",
        "| invariant | numbers fixed | reason |",
        "|---|---|---|",
    ]
    for kept in explanation.kept:
        found = find_reason(kept.words, plan.reasons)
        why = (
            "NO REASON GIVEN"
            if found is None
            else f"{found.kind}: {found.text}" + (f" ({found.citation})" if found.citation else "")
        )
        lines.append(
            f"| {kept.words} | {'all' if kept.numbers is None else format(kept.numbers, ',')} | {why} |"
        )
    others = [
        reason
        for reason in plan.reasons
        if not any(same_invariant(reason.invariant, kept.words) for kept in explanation.kept)
    ]
    if others:
        lines += ["", "Reasons given for the invariants together:", ""]
        lines += [
            f"- {r.invariant}: {r.kind}, {r.text}" + (f" ({r.citation})" if r.citation else "")
            for r in others
        ]
    lines += [
        "",
        "## What is not protected",
        "",
        "- Every invariant above: it is published as counted, and anything that follows from it alone follows for anyone.",
        *[f"- {note}" for note in spec.notes],
        "- What is true of the population at large, whoever takes part.",
        "",
        "## Alternatives considered",
        "",
        *(
            [f"- {text}" for text in plan.alternatives]
            or ["- none recorded: list them under alternatives in the plan"]
        ),
        "",
        "## Sign-off",
        "",
        "| role | name | date |",
        "|---|---|---|",
        f"| owner of the budget | {plan.owner} | |",
        "| methodologist | | |",
        "| disclosure review | | |",
        "",
        f"Plan SHA-256: `{plan.digest}`",
        "",
    ]
    return "\n".join(lines)


def _settings(parameters: dict[str, object]) -> str:
    told = {name: value for name, value in parameters.items() if value not in (None, [], {}, "")}
    return "; ".join(f"{n} {', '.join(map(str, v)) if isinstance(v, list) else v}" for n, v in told.items())
