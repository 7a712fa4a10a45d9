"""Composition, refinement and change of unit: how one specification follows from others."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Literal

from stirred.errors import IncompatibleError, SpecificationError
from stirred.spec.algebra.accounting import account, convert_and_compose, is_free
from stirred.spec.algebra.stated import Spec
from stirred.spec.algebra.statement import Part
from stirred.spec.laws.functions import build_joint_function
from stirred.spec.multiverse import Invariant, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import OutputPremetric, make_conversion_error
from stirred.spec.premetrics import InputPremetric, RecordPremetric
from stirred.spec.released import join_views
from stirred.spec.verdict import Answer
from stirred.spec.verdicts.reach import refines_within_reach


def _rebuild(
    spec: Spec,
    parts: tuple[Part, ...],
    *,
    multiverse: Multiverse | None = None,
    input_premetric: InputPremetric | None = None,
    output_premetric: OutputPremetric | None = None,
    exactly: bool = False,
    kept: frozenset[str] | None = None,
) -> Spec:
    """Return the specification of these parts under a changed flavor, with its budget computed anew.

    The δ of an (ε, δ) premetric is what the parts add up to, unless the premetric is asked for ``exactly``.
    """
    flavor_multiverse = spec.multiverse if multiverse is None else multiverse
    unit = input_premetric or spec.input_premetric
    measure, budget, notes = convert_and_compose(
        parts,
        domain=spec.domain,
        multiverse=flavor_multiverse,
        input_premetric=unit,
        kind=output_premetric or spec.output_premetric,
    )
    if exactly and output_premetric is not None:
        found = measure.convert(budget, output_premetric)
        if found is None:
            raise make_conversion_error(measure, output_premetric)
        measure, budget = output_premetric, found

    def total(taken: Sequence[Part]) -> Budget:
        return account(
            taken,
            domain=spec.domain,
            multiverse=flavor_multiverse,
            input_premetric=unit,
            output_premetric=measure,
        )[0]

    same = unit == spec.input_premetric and measure == spec.output_premetric
    alone = len(parts) == 1 and parts[0] == replace(
        parts[0],
        input_premetric=unit,
        output_premetric=measure,
        multiverse=None if parts[0].multiverse is None else flavor_multiverse,
    )
    return replace(
        spec,
        multiverse=flavor_multiverse,
        input_premetric=unit,
        output_premetric=measure,
        budget=budget,
        bounds=spec.bounds if same else (),
        notes=tuple(sorted({*(_find_own_notes(spec) if kept is None else kept), *notes})),
        parts=() if alone else parts,
        varies=build_joint_function(
            [part for part in parts if not is_free(part, spec.domain, flavor_multiverse)], measure, total
        ),
        measures=parts[0].measures if len(parts) == 1 else (),
    )


def _find_own_notes(spec: Spec) -> frozenset[str]:
    """Return the notes of a specification without those that its current unit and premetric gave rise to."""
    try:
        _, _, derived = convert_and_compose(
            spec.statements,
            domain=spec.domain,
            multiverse=spec.multiverse,
            input_premetric=spec.input_premetric,
            kind=spec.output_premetric,
        )
    except SpecificationError:
        derived = ()  # its parts were restated by hand
    return frozenset(spec.notes) - frozenset(derived)


def compose(specs: Sequence[Spec]) -> Spec:
    """Return the specification of publishing all outputs: invariants join, parts convert once, budgets compose.

    >>> from stirred.spec import Budget, Domain, Hamming, Margin, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.of(Margin("household")),
    ...     input_premetric=Hamming("household"), output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> compose([spec, spec.per("person"), spec]).budget.exact
    '3'
    """
    first = specs[0]
    for spec in specs[1:]:
        if spec.domain != first.domain:
            raise IncompatibleError(
                "cannot compose these specifications",
                why=f"their domains differ: {first.domain} and {spec.domain}",
                fix="state both for one domain",
            )
    parts = tuple(sorted((part for spec in specs for part in spec.statements), key=Part.order))
    multiverse = Multiverse(frozenset().union(*(spec.multiverse.invariants for spec in specs)))
    free = [all(is_free(part, first.domain, multiverse) for part in spec.statements) for spec in specs]
    charged = [spec for spec, costs_nothing in zip(specs, free, strict=True) if not costs_nothing] or [first]
    input_premetric = reduce(lambda a, b: a.join(b), (spec.input_premetric for spec in charged))
    output_premetric = reduce(lambda a, b: a.join(b), (spec.output_premetric for spec in charged))
    together = replace(
        first,
        evidence=reduce(lambda a, b: a & b, (spec.evidence for spec in specs)),
        bounds=(),
        untouched=tuple(sorted({word for spec in specs for word in spec.untouched})),
        released=join_views(first.domain, (spec.views for spec in specs)),
    )
    return _rebuild(
        together,
        parts,
        multiverse=multiverse,
        input_premetric=input_premetric,
        output_premetric=output_premetric,
        kept=frozenset().union(*(_find_own_notes(spec) for spec in specs)),
    )


def add_invariants(spec: Spec, more: Multiverse | Invariant) -> Spec:
    """Return the specification with more invariants and the same budget (Proposition 5).

    The parts keep the universes they were stated in.
    """
    finer = spec.multiverse & more
    if finer == spec.multiverse:
        return spec
    return replace(spec, multiverse=finer, parts=spec.statements)


def drop_invariants(spec: Spec, dropped: Sequence[Invariant], *, released: bool) -> Spec:
    """Return the specification with fewer invariants; the budget depends on whether they are still published."""
    rest = Multiverse(spec.multiverse.invariants - frozenset(dropped))
    verdict = refines_within_reach(rest, spec.multiverse, spec.domain, spec.input_premetric)
    if verdict:
        return replace(spec, multiverse=rest, parts=() if _is_single_part(spec, rest) else spec.parts)
    if not released and _is_stated_within(spec, rest):
        with suppress(IncompatibleError):  # a constant between units may need what was dropped
            return _rebuild(spec, spec.statements, multiverse=rest)
    words = ", ".join(sorted(invariant.words() for invariant in dropped))
    told = "released exactly but not declared invariant" if released else "no longer declared invariant"
    proved = (
        released and verdict.answer is Answer.NO and spec.output_premetric.infinite_at_total_variation_one
    )
    why = "no finite budget holds (Proposition 1)" if proved else "no finite budget is known"
    if not proved and verdict.answer is Answer.UNKNOWN:
        why += f" ({verdict.because})"
    return replace(
        spec,
        multiverse=rest,
        budget=Budget.infinite(),
        bounds=(),
        parts=(),
        varies=None,
        notes=tuple(sorted({*spec.notes, f"{told}: {words}; {why}"})),
    )


def _is_stated_within(spec: Spec, multiverse: Multiverse) -> bool:
    """Return whether every part was stated in universes that contain those of this multiverse."""
    return all(
        part.multiverse is not None
        and refines_within_reach(multiverse, part.multiverse, spec.domain, spec.input_premetric)
        for part in spec.statements
    )


def _is_single_part(spec: Spec, multiverse: Multiverse) -> bool:
    """Return whether the only part states the same as the specification does in these universes."""
    return spec.parts == replace(spec, multiverse=multiverse, parts=()).statements


def change_unit(
    spec: Spec,
    unit: str | InputPremetric,
    *,
    link: Literal["kept", "free"] | None,
    copies: int | None,
) -> Spec:
    """Return the specification for another protection unit; parts convert from their first unit."""
    if isinstance(unit, InputPremetric):
        target: InputPremetric = unit
    elif isinstance(now := spec.input_premetric.unrestricted, RecordPremetric):
        target = type(now)(
            unit,
            link=link or (now.link if now.record_type == unit else "kept"),
            copies=now.copies if copies is None else copies,
        )
        if isinstance(spec.input_premetric, Neighbours):
            target = Neighbours(target)
    else:
        raise IncompatibleError(
            f"cannot restate {spec.input_premetric} per {unit}",
            why="it does not count records of one type, so the name of a record type does not say which distance is meant",
            fix="give the input premetric itself: spec.per(Hamming(…))",
        )
    return _rebuild(spec, spec.statements, input_premetric=target)


def change_output_premetric(spec: Spec, output_premetric: OutputPremetric) -> Spec:
    """Return the specification under another output premetric."""
    return _rebuild(spec, spec.statements, output_premetric=output_premetric, exactly=True)
