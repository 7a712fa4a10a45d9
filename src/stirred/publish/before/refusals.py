"""All that is refused before a key, a folder or a file exists, whichever way a packet is asked for."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stirred.census import Census
from stirred.engine import Engine, Progress
from stirred.engine.choice import engine_named
from stirred.errors import DataError, InputError, PlanError, PrivacyError, did_you_mean
from stirred.languages import Phrase
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.effect import ACCEPT, require_effect
from stirred.publish.before.promise import PlanPromise, stated
from stirred.publish.plan.description import Plan, Questions, TablePlan
from stirred.publish.plan.totals import public_totals, require_totals
from stirred.publish.run.inputs import Stamps, input_stamps
from stirred.publish.run.part import PartFolder
from stirred.spec import Custom, Margin, Multiverse, Specification
from stirred.spec.nearest.distance import smallest_distance


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPlan:
    """A validated plan: its census, its promise and the engine that runs it."""

    census: Census
    promise: PlanPromise
    engine: Engine
    stamps: Stamps  # of the files, from before their records were checked

    @property
    def specification(self) -> Specification:
        """The promise of the whole plan."""
        return self.promise.whole


def prepare(
    plan: Plan, out: Path, engine: Engine | None = None, *, rehearsal: bool = False, progress: Progress | None = None
) -> ReadyPlan:  # fmt: skip
    """Refuse what can be refused, without writing anything; what is left can be run.

    A ``rehearsal`` is run with a key for tests, and its packet is marked as not private: there a mechanism may be told to
    add no noise at all.
    """
    require_room(out)
    place = engine or engine_named(plan.engine)
    stamps = input_stamps(plan.census(place))
    census = plan.checked_census(place, progress=progress)
    require_records(census, place)
    require_variables(plan, census)
    promise = _noted(stated(plan, census, place), census)
    for mechanism, part in zip(plan.mechanisms, promise.parts, strict=True):
        if not (rehearsal and mechanism.noiseless):
            require_finite(part, mechanism.published_without_guarantee)
    if all(part.budget.is_finite for part in promise.parts):
        require_finite(promise.whole)
    promise = require_effects(plan, promise, rehearsal=rehearsal)
    return ReadyPlan(census=census, promise=promise, engine=place, stamps=stamps)


def require_effects(plan: Plan, promise: PlanPromise, *, rehearsal: bool = False) -> PlanPromise:
    """Refuse a plan that is expected to publish nearly the truth; return the promise with the note of an accepted one.

    A rehearsal without noise has no effect by intention, and its packet is marked as not private.
    """
    notes: list[Phrase] = []
    for step, effect in zip(plan.steps, promise.effects, strict=True):
        if not (rehearsal and step.mechanism.noiseless):
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
            f'{ACCEPT} = "why" in the plan, or --{ACCEPT.replace("_", "-")} on the command line',
        )
    return (Phrase("effect.accepted", effect=near.because, reason=reason.strip()),)


def _noted(promise: PlanPromise, census: Census) -> PlanPromise:
    """The promise that says which records it is about, also where no mechanism of the plan says so."""
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
    """A packet is written to a new folder in a folder that can be written to."""
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
    """A release without a finite budget is not published, unless its mechanism lets an office say why it is."""
    if not specification.budget.is_finite and not reason:
        raise PrivacyError(
            "the plan protects nothing",
            why="its protection loss budget is infinite",
            fix="a swap rate lies strictly between 0 and 1, and ρ² is finite; a method that has no finite budget has the "
            "setting without_guarantee, for the reason why it is published; a rehearsal without noise needs a key for "
            'tests, which marks its packet: Key.for_tests(1).save("tests.key"), then --key tests.key',
        )


def require_kept(releases: Sequence[Release]) -> None:
    """A release that does not keep its invariants is not published."""
    broken = [check.invariant for release in releases for check in release.checks if not check.kept]
    if broken:
        raise PrivacyError(
            "an invariant was not kept", why=broken[0], fix="nothing was released; report this"
        )


def require_variables(plan: Plan, census: Census) -> None:
    """The tables and the questions of a plan name variables that exist and that will be released."""
    told = [mechanism.table_variables(census) for mechanism in plan.mechanisms]
    for table in plan.tables:
        check_variables(census, table, own=_own_variables(told, table.record_type))
        able = [
            mechanism
            for number, (mechanism, found) in enumerate(zip(plan.mechanisms, told, strict=True))
            if table.source in (None, number) and (found is None or _has(found, table, census))
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
        weighed(plan, census)
    for questions in plan.questions.each():
        if questions.variables() or questions.improbable:
            _check_questions(questions, census, plan.mechanisms[0])


def weighed(plan: Plan, census: Census) -> int | None:
    """The number of the mechanism whose records get new weights from public totals, or None where no plan asks for them."""
    if plan.weights is None:
        return None
    totals = public_totals(plan.weights, plan.folder)
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
    """A table's record type and variables must exist in the census, or be ones that a mechanism makes of its own."""
    known = {*_known(census, table.record_type), *own}
    for name in table.variables:
        if name not in known:
            raise PlanError(
                f"table {table.name} asks for an unknown variable {name}",
                why=f"{table.record_type} records have no such column",
                fix=did_you_mean(name, known),
            )


def _own_variables(told: Sequence[Mapping[str, Sequence[str]] | None], record_type: str) -> set[str]:
    return {name for found in told if found is not None for name in found.get(record_type, ())}


def _known(census: Census, record_type: str) -> set[str]:
    """The variables of a record type, of its household, and the areas beside the spine."""
    record = census.schema.record(record_type)
    known = set(census.columns(record_type))
    if record.linked_to:
        known |= set(census.columns(record.linked_to))
    return known | {off.name for off in census.schema.geography.off_spine}


def _has(released: Mapping[str, Sequence[str]], table: TablePlan, census: Census) -> bool:
    """Whether released records have the variables of a table; areas beside the spine follow from those on it."""
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
    known = _known(census, record_type)
    released = mechanism.table_variables(census)
    for name in questions.variables():
        asked = TablePlan(name=name, record_type=record_type, by=(name,))
        if name not in known or (released is not None and not _has(released, asked, census)):
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
