"""State the promise of a swap at the realised universe, from invariants: sizes and types of strata."""

import json
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.languages import Phrase, unit
from stirred.mechanisms.swap.bounds import claim
from stirred.mechanisms.swap.config import MatchedConfig, Roles, SwapOutputConfig
from stirred.mechanisms.swap.estimates import weak_strata
from stirred.mechanisms.swap.frame import Frame, StrataSummary
from stirred.mechanisms.swap.pipeline import SwapMechanism
from stirred.mechanisms.swap.records import Where
from stirred.mechanisms.swap.strata import Shapes
from stirred.spec import (
    Bound,
    Budget,
    BudgetFunction,
    Custom,
    Evidence,
    Exchanges,
    Hamming,
    InputPremetric,
    Invariant,
    LargestStratum,
    Margin,
    Multiplicative,
    Multiverse,
    SizeLaw,
    Specification,
)
from stirred.spec.invariants import Views, describe_table, pluralize

if TYPE_CHECKING:
    from stirred.census import Census


MAX_HELD_NAMED = (
    3  # the largest number of held variables listed in the name of their table; more are listed in a note
)


def state_specification(
    strata: StrataSummary,
    census: "Census",
    bounds: tuple[Bound, ...],
    *,
    law: SizeLaw | None,
    depends: str,
    released: Views,
    input_premetric: InputPremetric | None = None,
) -> Specification:
    """State the promise in full: invariants, unit, divergence, budget with all bounds, and what is not touched.

    The smallest proved bound is claimed, the first one if none is proved. ``law`` is the budget of other universes;
    ``depends`` says in words what it depends on where no law is known; ``released`` are the columns that leave. Without an
    ``input_premetric`` changed records are counted.
    """
    frame, found = strata.frame, strata.shapes
    roles = frame.roles
    counted = input_premetric or Hamming(roles.record_type)
    claimed = claim(bounds)
    singles = int(found.strata[found.n == 1].sum())
    words = [stay.describe(roles.record_type) for stay in frame.stays if stay.records]
    if singles:
        words.append(Phrase("swap.alone", count=singles))
    return Specification(
        domain=census.domain,
        multiverse=Multiverse(
            frozenset(list_invariants(frame, census, exchanged=isinstance(counted, Exchanges)))
        ),
        input_premetric=counted,
        output_premetric=Multiplicative(),
        budget=claimed.budget,
        evidence=Evidence(status=claimed.status, source=claimed.source),
        bounds=bounds,
        untouched=tuple(words),
        notes=(
            *_note_held(frame),
            *_note_left_out(frame),
            *_note_singletons(found, claimed.budget),
            *census.notes,
        ),
        varies=_budget_function(frame, found, law, depends),
        released=released,
    )


def _budget_function(frame: Frame, found: Shapes, law: SizeLaw | None, depends: str) -> BudgetFunction:
    """Return how the budget differs by universe: by a law of b if there is one, else in words."""
    b = found.largest_differing
    if law is None:
        return BudgetFunction(words=depends, universe=Phrase("law.realised", b=b), b=b)
    return BudgetFunction(
        law=law,
        statistic=_size_statistic(frame),
        universe=Phrase("law.realised", b=b),
        b=b,
        realised=found.fingerprint,
    )


def _size_statistic(frame: Frame) -> LargestStratum:
    """Return the statistic b of this swap; with linked members every two records are assumed to differ."""
    roles, only = frame.roles, frame.only
    without = [stay.where for stay in frame.stays]
    if only is not None and only.levels is None:
        without.append({only.column: only.left_out})
    return LargestStratum(
        roles.record_type,
        match=roles.match,
        hold=(*roles.hold, roles.identifier) if roles.members else roles.hold,
        swap=roles.moving_variables,
        where=None if only is None or only.levels is None else {only.column: only.levels},
        without=without,
    )


def list_invariants(frame: Frame, census: "Census", *, exchanged: bool = False) -> list[Invariant]:
    """List the invariants: match × swap, held variables, who lives together, and records that take no part.

    ``exchanged``: say of what keeps members with their record that two records may exchange places.
    """
    roles = frame.roles
    subject, among = pluralize(roles.record_type), "" if frame.only is None else f" ({frame.only.among})"
    place = [*(name for name in roles.spine if name in roles.moving_variables)]
    place += [name for name in roles.moving_variables if name not in place]
    by_place = describe_table(roles.record_type, " × ".join((*roles.match, *place)))
    found: list[Invariant] = [
        *_list_margins(frame, (*roles.match, *roles.moving_variables), by_place),
        *_list_margins(
            frame,
            roles.held_variables,
            describe_table(roles.record_type, _name_held(roles)) if roles.held_variables else "",
        ),
        *(
            margin
            for stay in frame.stays
            for margin in _list_margins(
                frame, roles.released_variables, stay.words(unit(roles.record_type, "ones")), where=stay.where
            )
        ),
    ]
    # variables that decide who takes part must be in the tables that determine an invariant
    telling = () if frame.only is None else (frame.only.column,)
    keeps_with = roles.record_type if exchanged else ""
    for record_type, names in roles.members:
        own = Margin(record_type, (census.schema.record(record_type).household, *names))
        people = pluralize(record_type)
        found.append(
            Custom(
                name=f"{people} within {subject}{among}",
                determined_by=(
                    own,
                    Margin(roles.record_type, (roles.identifier, *telling, *roles.held_variables)),
                ),
                description=_describe_together(record_type, roles.record_type, frame),
                keeps_with=keeps_with,
            )
        )
        if frame.stays:
            found.append(
                Custom(
                    name=_name_staying(record_type, roles.record_type, frame),
                    determined_by=(
                        own,
                        *(
                            margin
                            for stay in frame.stays
                            for margin in _list_margins(
                                frame,
                                (roles.identifier, *telling, *roles.released_variables),
                                "",
                                where=stay.where,
                            )
                        ),
                    ),
                    keeps_with=keeps_with,
                )
            )
    return found


def _name_held(roles: Roles) -> str:
    """Return the held variables for a table's name, or only their number if there are many."""
    if len(roles.hold) <= MAX_HELD_NAMED:
        return " × ".join((*roles.match, *roles.hold))
    many = Phrase("swap.held_variables", count=len(roles.hold))
    return Phrase("lists.times", first=" × ".join(roles.match), second=many) if roles.match else many


def _describe_together(members: str, homes: str, frame: Frame) -> Phrase:
    """Describe that members stay with their household."""
    ones, of_every = unit(members, "ones"), unit(homes, "of_every")
    if frame.only is None:
        return Phrase("swap.together", ones=ones, of_every=of_every)
    return Phrase("swap.together_among", ones=ones, of_every=of_every, among=frame.only.among)


def _name_staying(members: str, homes: str, frame: Frame) -> str:
    """Name the members of households that take no part."""
    told = Phrase("swap.staying", ones=unit(members, "ones"), homes=unit(homes, "ones"))
    return told if frame.only is None else Phrase("invariant.limited", table=told, among=frame.only.among)


def _list_margins(
    frame: Frame, by: tuple[str, ...], label: str, *, where: Where | None = None
) -> tuple[Margin, ...]:
    """Return a table of the released records as invariants."""
    record_type = frame.roles.record_type
    if frame.only is None:
        return (Margin(record_type, by, where=where, label=label),)
    return frame.only.margins(record_type, by, where=where or {}, label=label)


def _note_held(frame: Frame) -> tuple[str, ...]:
    """Return a note that lists the held variables if the table's name only gives their number."""
    if len(frame.roles.hold) <= MAX_HELD_NAMED:
        return ()
    return (Phrase("swap.note.held", variables=", ".join(sorted(frame.roles.hold))),)


def _note_left_out(frame: Frame) -> tuple[str, ...]:
    return () if frame.only is None else (frame.only.describe_others(frame.roles.record_type),)


def _note_singletons(found: Shapes, budget: Budget) -> tuple[str, ...]:
    if found.largest_differing:
        return ()
    return (Phrase("swap.note.singleton", budget=str(budget)),)


def note_weak_strata(found: Shapes, rate: Fraction) -> tuple[str, ...]:
    """Return warnings for the release: strata that are rarely swapped."""
    sizes, counts = found.count_by_size()
    weak = weak_strata(sizes, rate, counts=counts)
    return () if weak is None else (weak.words(),)


def describe_dependence(mechanism: SwapMechanism) -> str:
    """Describe all parameters that the budget depends on beside the invariants, with their values.

    All are named, so that two different budget functions never have equal words.
    """
    known = {*SwapOutputConfig.model_fields, *MatchedConfig.model_fields}  # these decide the invariants
    told = ", ".join(
        f"{label} = {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for label, value in mechanism.parameters().items()
        if label not in known and value
    )
    return Phrase("law.other", name=mechanism.name, parameters=told)
