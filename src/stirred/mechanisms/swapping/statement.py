"""State the promise of a swap at the realised universe, from invariants: sizes and types of strata."""

import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.languages import Phrase, unit
from stirred.mechanisms.swapping.budget.claim import StratumTable, claim
from stirred.mechanisms.swapping.budget.shapes import Shapes
from stirred.mechanisms.swapping.numbers.closed_forms import weak_strata
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.records.participation import Where
from stirred.mechanisms.swapping.roles import Roles
from stirred.spec import (
    Bound,
    Budget,
    BudgetFunction,
    Custom,
    Evidence,
    Hamming,
    Invariant,
    LargestStratum,
    Margin,
    Multiplicative,
    Multiverse,
    SizeLaw,
    Specification,
)
from stirred.spec.invariants.margins import table_words
from stirred.spec.multiverse import plural
from stirred.spec.released import Views

if TYPE_CHECKING:
    from stirred.census import Census

SHOWN = 3  # the largest number of held variables listed in the name of their table; more are listed in a note


def specification(
    frame: Frame,
    found: Shapes,
    census: "Census",
    bounding: Callable[[StratumTable], tuple[Bound, ...]],
    *,
    law: SizeLaw | None,
    depends: str,
    released: Views,
) -> Specification:
    """The promise in full: invariants, unit, divergence, budget with all bounds, and what is never touched.

    ``law`` is the budget of other universes; ``depends`` says in words what it depends on where no law is known;
    ``released`` are the columns that leave.
    """
    roles = frame.roles
    all_bounds = bounding(found.table)
    proved = any(bound.status == "proved" for bound in all_bounds)
    claimed = claim(all_bounds) if proved else all_bounds[0]
    singles = int(found.strata[found.n == 1].sum())
    words = [stay.told(roles.record_type) for stay in frame.stays if stay.records]
    if singles:
        words.append(Phrase("swap.alone", count=singles))
    return Specification(
        domain=census.domain,
        multiverse=Multiverse(frozenset(invariants(frame, census))),
        input_premetric=Hamming(roles.record_type),
        output_premetric=Multiplicative(),
        budget=claimed.budget,
        evidence=Evidence(status=claimed.status, source=claimed.source),
        bounds=all_bounds,
        untouched=tuple(words),
        notes=(*_held(frame), *_left_out(frame), *_remarks(found, claimed.budget), *census.notes),
        varies=_varies(frame, found, law, depends),
        released=released,
    )


def _varies(frame: Frame, found: Shapes, law: SizeLaw | None, depends: str) -> BudgetFunction:
    """How the budget differs by universe: by a law of b where there is one, else in words."""
    b = found.differing
    if law is None:
        return BudgetFunction(words=depends, universe=Phrase("law.realised", b=b), b=b)
    return BudgetFunction(
        law=law,
        statistic=_statistic(frame),
        universe=Phrase("law.realised", b=b),
        b=b,
        realised=found.fingerprint,
    )


def _statistic(frame: Frame) -> LargestStratum:
    """The statistic b of this swap; with linked members every two records are assumed to differ, as in ``Frame.shapes``."""
    roles, only = frame.roles, frame.only
    without = [stay.where for stay in frame.stays]
    if only is not None and only.levels is None:
        without.append({only.column: only.left_out})
    return LargestStratum(
        roles.record_type,
        match=roles.match,
        hold=(*roles.hold, roles.identifier) if roles.members else roles.hold,
        swap=roles.moving,
        where=None if only is None or only.levels is None else {only.column: only.levels},
        without=without,
    )


def invariants(frame: Frame, census: "Census") -> list[Invariant]:
    """All invariants: match × swap, all held variables, who lives together, and the records that take no part."""
    roles = frame.roles
    subject, among = plural(roles.record_type), "" if frame.only is None else f" ({frame.only.among})"
    place = [*(name for name in roles.spine if name in roles.moving)]
    place += [name for name in roles.moving if name not in place]
    by_place = table_words(roles.record_type, " × ".join((*roles.match, *place)))
    found: list[Invariant] = [
        *_tables(frame, (*roles.match, *roles.moving), by_place),
        *_tables(frame, roles.held, table_words(roles.record_type, _held_names(roles)) if roles.held else ""),
        *(
            margin
            for stay in frame.stays
            for margin in _tables(
                frame, roles.released, stay.words(unit(roles.record_type, "ones")), where=stay.where
            )
        ),
    ]
    # variables that decide who takes part must be in the tables that determine an invariant
    telling = () if frame.only is None else (frame.only.column,)
    for record_type, names in roles.members:
        own = Margin(record_type, (census.schema.record(record_type).household, *names))
        people = plural(record_type)
        found.append(
            Custom(
                name=f"{people} within {subject}{among}",
                determined_by=(own, Margin(roles.record_type, (roles.identifier, *telling, *roles.held))),
                description=_together(record_type, roles.record_type, frame),
            )
        )
        if frame.stays:
            found.append(
                Custom(
                    name=_staying(record_type, roles.record_type, frame),
                    determined_by=(
                        own,
                        *(
                            margin
                            for stay in frame.stays
                            for margin in _tables(
                                frame, (roles.identifier, *telling, *roles.released), "", where=stay.where
                            )
                        ),
                    ),
                )
            )
    return found


def _held_names(roles: Roles) -> str:
    """The held variables of a table's name; of many only their number."""
    if len(roles.hold) <= SHOWN:
        return " × ".join((*roles.match, *roles.hold))
    many = Phrase("swap.held_variables", count=len(roles.hold))
    return Phrase("lists.times", first=" × ".join(roles.match), second=many) if roles.match else many


def _together(members: str, homes: str, frame: Frame) -> Phrase:
    """That members stay with their household."""
    ones, of_every = unit(members, "ones"), unit(homes, "of_every")
    if frame.only is None:
        return Phrase("swap.together", ones=ones, of_every=of_every)
    return Phrase("swap.together_among", ones=ones, of_every=of_every, among=frame.only.among)


def _staying(members: str, homes: str, frame: Frame) -> str:
    """The members of households that take no part."""
    told = Phrase("swap.staying", ones=unit(members, "ones"), homes=unit(homes, "ones"))
    return told if frame.only is None else Phrase("invariant.limited", table=told, among=frame.only.among)


def _tables(
    frame: Frame, by: tuple[str, ...], label: str, *, where: Where | None = None
) -> tuple[Margin, ...]:
    """A table of the records that are released, as invariants."""
    record_type = frame.roles.record_type
    if frame.only is None:
        return (Margin(record_type, by, where=where, label=label),)
    return frame.only.margins(record_type, by, where=where or {}, label=label)


def _held(frame: Frame) -> tuple[str, ...]:
    """The list of held variables, if the table's name only gives their number."""
    if len(frame.roles.hold) <= SHOWN:
        return ()
    return (Phrase("swap.note.held", variables=", ".join(sorted(frame.roles.hold))),)


def _left_out(frame: Frame) -> tuple[str, ...]:
    return () if frame.only is None else (frame.only.fate(frame.roles.record_type),)


def _remarks(found: Shapes, budget: Budget) -> tuple[str, ...]:
    if found.differing:
        return ()
    return (Phrase("swap.note.singleton", budget=str(budget)),)


def notes(found: Shapes, rate: Fraction) -> tuple[str, ...]:
    """Warnings for the release: strata that are rarely swapped."""
    sizes, counts = found.by_size()
    weak = weak_strata(sizes, rate, counts=counts)
    return () if weak is None else (weak.words(),)


def other_law(name: str, chosen: Mapping[str, object]) -> str:
    """The words for a law that depends on other parameters than the invariants, with the values of these."""
    told = ", ".join(
        f"{label} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for label, value in chosen.items()
    )
    return Phrase("law.other", name=name, parameters=told)
