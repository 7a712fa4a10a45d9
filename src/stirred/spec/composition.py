"""Composition, refinement and change of unit: how one specification follows from others."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Literal

from stirred.errors import IncompatibleError
from stirred.spec.budget import Budget
from stirred.spec.divergences import OutputPremetric
from stirred.spec.domain import Domain
from stirred.spec.multiverse import Invariant, Multiverse
from stirred.spec.premetrics import InputPremetric, RecordPremetric
from stirred.spec.refinement import refines_within_reach
from stirred.spec.statement import BudgetFunction, Part
from stirred.spec.verdict import Answer

if TYPE_CHECKING:
    from stirred.spec.specification import Specification


def account(
    parts: Sequence[Part],
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    output_premetric: OutputPremetric,
) -> tuple[Budget, tuple[str, ...]]:
    """The budget of all parts together, converted once each and composed in one premetric; and the rules used."""
    converted: list[Budget] = []
    notes: set[str] = set()
    for part in parts:
        constant = part.input_premetric.constant(input_premetric, domain, multiverse)
        if constant.because:
            notes.add(constant.because)
        budget = part.output_premetric.converted(part.budget * constant.factor, output_premetric)
        if budget is None:
            raise IncompatibleError(
                f"cannot restate {part.output_premetric} as {output_premetric}",
                why="no conversion between the two holds at every distance",
                fix="a zCDP budget can be read as (ε, δ) at one distance: stirred.spec.reading",
            )
        converted.append(budget)
    return output_premetric.compose(converted), tuple(sorted(notes))


def _rebuilt(
    spec: "Specification",
    parts: tuple[Part, ...],
    *,
    multiverse: Multiverse | None = None,
    input_premetric: InputPremetric | None = None,
    output_premetric: OutputPremetric | None = None,
    kept: frozenset[str] | None = None,
) -> "Specification":
    """The specification of these parts under a changed flavor, its budget accounted afresh."""
    flavor_multiverse = multiverse or spec.multiverse
    unit, measure = input_premetric or spec.input_premetric, output_premetric or spec.output_premetric
    budget, notes = account(
        parts,
        domain=spec.domain,
        multiverse=flavor_multiverse,
        input_premetric=unit,
        output_premetric=measure,
    )
    same = unit == spec.input_premetric and measure == spec.output_premetric
    alone = len(parts) == 1 and (parts[0].input_premetric, parts[0].output_premetric) == (unit, measure)
    return replace(
        spec,
        multiverse=flavor_multiverse,
        input_premetric=unit,
        output_premetric=measure,
        budget=budget,
        bounds=spec.bounds if same else (),
        notes=tuple(sorted({*(_own_notes(spec) if kept is None else kept), *notes})),
        parts=() if alone else parts,
        varies=_joint_function(
            parts,
            domain=spec.domain,
            multiverse=flavor_multiverse,
            input_premetric=unit,
            output_premetric=measure,
        ),
    )


def _own_notes(spec: "Specification") -> frozenset[str]:
    """The notes without those on rules that were used for the unit and premetric it is stated in now."""
    try:
        _, derived = account(
            spec.statements,
            domain=spec.domain,
            multiverse=spec.multiverse,
            input_premetric=spec.input_premetric,
            output_premetric=spec.output_premetric,
        )
    except IncompatibleError:
        derived = ()  # its parts were restated by hand
    return frozenset(spec.notes) - frozenset(derived)


def _joint_function(
    parts: Sequence[Part],
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    output_premetric: OutputPremetric,
) -> BudgetFunction | None:
    """How a composed or converted budget differs by universe, its bounds accounted like the budget itself."""
    functions = [part.varies for part in parts if part.varies is not None]
    if not functions:
        return None

    def bound(side: Literal["least", "most"]) -> Budget:
        taken = [replace(p, budget=getattr(p.varies, side)) if p.varies is not None else p for p in parts]
        total, _ = account(
            taken,
            domain=domain,
            multiverse=multiverse,
            input_premetric=input_premetric,
            output_premetric=output_premetric,
        )
        return total

    return BudgetFunction(
        words="; ".join(sorted({function.words for function in functions})),
        universe="; ".join(sorted({function.universe for function in functions})),
        least=bound("least"),
        most=bound("most"),
    )


def compose(specs: "Sequence[Specification]") -> "Specification":
    """All outputs published together: invariants join, every part is converted once, budgets compose.

    >>> from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
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
    input_premetric = reduce(lambda a, b: a.joined(b), (spec.input_premetric for spec in specs))
    output_premetric = reduce(lambda a, b: a.joined(b), (spec.output_premetric for spec in specs))
    together = replace(
        first,
        evidence=reduce(lambda a, b: a & b, (spec.evidence for spec in specs)),
        bounds=(),
        untouched=tuple(sorted({word for spec in specs for word in spec.untouched})),
    )
    return _rebuilt(
        together,
        parts,
        multiverse=multiverse,
        input_premetric=input_premetric,
        output_premetric=output_premetric,
        kept=frozenset().union(*(_own_notes(spec) for spec in specs)),
    )


def given(spec: "Specification", more: "Multiverse | Invariant") -> "Specification":
    """More invariants, same budget (Proposition 5)."""
    return replace(spec, multiverse=spec.multiverse & more)


def without(spec: "Specification", dropped: Sequence[Invariant]) -> "Specification":
    """Fewer invariants declared than are released."""
    rest = Multiverse(spec.multiverse.invariants - frozenset(dropped))
    verdict = refines_within_reach(rest, spec.multiverse, spec.domain, spec.input_premetric)
    if verdict:
        return replace(spec, multiverse=rest)
    words = ", ".join(sorted(invariant.words() for invariant in dropped))
    proved = verdict.answer is Answer.NO and spec.output_premetric.infinite_at_total_variation_one
    why = (
        "no finite budget holds (Proposition 1)"
        if proved
        else f"no finite budget is known ({verdict.because})"
    )
    note = f"released exactly but not declared invariant: {words}; {why}"
    return replace(
        spec,
        multiverse=rest,
        budget=Budget.infinite(),
        bounds=(),
        parts=(),
        varies=None,
        notes=tuple(sorted({*spec.notes, note})),
    )


def per(
    spec: "Specification",
    unit: "str | InputPremetric",
    *,
    link: Literal["kept", "free"] | None,
    copies: int | None,
) -> "Specification":
    """Another unit of protection; every part is converted from the unit it was first stated in."""
    if isinstance(unit, InputPremetric):
        target: InputPremetric = unit
    elif isinstance(spec.input_premetric, RecordPremetric):
        now = spec.input_premetric
        target = type(now)(
            unit,
            link=link or (now.link if now.record_type == unit else "kept"),
            copies=now.copies if copies is None else copies,
        )
    else:
        raise IncompatibleError(
            f"cannot restate {spec.input_premetric} per {unit}", fix="give the input premetric itself"
        )
    return _rebuilt(spec, spec.statements, input_premetric=target)


def under(spec: "Specification", output_premetric: OutputPremetric) -> "Specification":
    """Another output premetric."""
    return _rebuilt(spec, spec.statements, output_premetric=output_premetric)
