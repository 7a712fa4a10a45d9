"""How the promises of a plan's mechanisms add up to one, each restated per changed record where it counts added ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from stirred.languages import Phrase
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, NormalizedRenyi, Specification, compose
from stirred.spec.algebra.accounting import account
from stirred.spec.algebra.conversions import Conversion, Figure
from stirred.spec.algebra.statement import Part

FIGURES: tuple[Figure, ...] = ("published", "bureau", "proved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one mechanism adds to the budget of a plan; budgets are those that people compare (ρ² for zCDP, else ε)."""

    label: str
    unit: str  # the input premetric that its promise is stated in
    counted: Budget  # as it states its promise
    conversion: Conversion | None
    published: Budget  # in the unit of the whole, by the published factor
    bureau: Budget  # the same, by a factor that follows from the promise per record added or removed alone
    proved: Budget  # the same, by the factor that a theorem about the mechanism proves


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """The promise of a whole plan by factors that are proved, and what other factors would give."""

    whole: Specification
    published: Specification
    bureau: Specification
    shares: tuple[Share, ...]


def composed(plan: Plan, parts: Sequence[Specification]) -> Composed:
    """The composition of a plan's promises, stated in the order of the plan.

    A promise that includes an earlier one replaces it, and what is computed from released records adds nothing. A promise
    that stands alone stays as it is stated.
    """
    charged = [n for n, step in enumerate(plan.steps) if step.source is None]
    alone, again = counted_once(plan, parts), _computed_again(plan, parts)
    if len(alone) == 1:
        whole = parts[alone[0]]
        if again:
            notes = {note: None for n in (alone[0], *again) for note in parts[n].notes}
            whole = replace(whole, notes=tuple(notes))
        wholes = dict.fromkeys(FIGURES, whole)
        return Composed(
            whole=whole, published=whole, bureau=whole, shares=_shares(plan, parts, charged, wholes)
        )
    wholes = {figure: compose([restated(plan, parts, n, figure) for n in alone]) for figure in FIGURES}
    shares = _shares(plan, parts, charged, wholes)
    proved, published = wholes["proved"], wholes["published"]
    if compared(published) != compared(proved):
        figure = Phrase(
            "composed.note.published", budget=published.shown_budget, exact=compared(published).exact
        )
        proved = replace(proved, notes=tuple(sorted({*proved.notes, figure})))
    return Composed(whole=proved, published=published, bureau=wholes["bureau"], shares=shares)


def counted_once(plan: Plan, parts: Sequence[Specification]) -> list[int]:
    """The mechanisms whose promises are composed: one that a later promise includes is not, nor is a tabulation."""
    included = {*(step.continues for step in plan.steps), *_computed_again(plan, parts)}
    return [n for n, step in enumerate(plan.steps) if step.source is None and n not in included]


def _computed_again(plan: Plan, parts: Sequence[Specification]) -> tuple[int, ...]:
    """The mechanisms that only compute something from an earlier release which another one continues too.

    Their promise is the earlier one, which the other's includes already: post-processing is not counted twice.
    """
    found: list[int] = []
    for n, step in enumerate(plan.steps):
        earlier = step.continues
        if earlier is None or parts[n].statements != parts[earlier].statements:
            continue
        others = [m for m, other in enumerate(plan.steps) if m != n and other.continues == earlier]
        if any(m not in found for m in others):
            found.append(n)
    return tuple(found)


def compared(specification: Specification) -> Budget:
    """The budget that people compare: ρ² for zCDP, else ε."""
    zcdp = isinstance(specification.output_premetric, NormalizedRenyi)
    return specification.rho_squared if zcdp else specification.budget


def restated(plan: Plan, parts: Sequence[Specification], number: int, figure: Figure) -> Specification:
    """The promise of a mechanism, per changed record where it has a factor for that."""
    conversion = plan.steps[number].mechanism.conversion
    return parts[number] if conversion is None else conversion.restated(parts[number], figure=figure)


def _shares(
    plan: Plan,
    parts: Sequence[Specification],
    charged: Sequence[int],
    wholes: Mapping[Figure, Specification],
) -> tuple[Share, ...]:
    return tuple(
        Share(
            label=plan.steps[n].label,
            unit=str(parts[n].input_premetric),
            counted=_own(plan, parts, n, parts[n], "proved", alone=True),
            conversion=plan.steps[n].mechanism.conversion,
            published=_own(plan, parts, n, wholes["published"], "published"),
            bureau=_own(plan, parts, n, wholes["bureau"], "bureau"),
            proved=_own(plan, parts, n, wholes["proved"], "proved"),
        )
        for n in charged
    )


def _own(
    plan: Plan,
    parts: Sequence[Specification],
    number: int,
    whole: Specification,
    figure: Figure,
    *,
    alone: bool = False,
) -> Budget:
    """What a mechanism spends beyond the release that it continues, in the flavor of the whole."""
    told = parts[number] if alone or whole == parts[number] else restated(plan, parts, number, figure)
    own: list[Part] = list(told.statements)
    earlier = plan.steps[number].continues
    for part in () if earlier is None else parts[earlier].statements:
        own.remove(part)
    if not own:
        return Budget.zero()
    budget, _ = account(
        own,
        domain=whole.domain,
        multiverse=whole.multiverse,
        input_premetric=whole.input_premetric,
        output_premetric=whole.output_premetric,
    )
    return budget.squared() if isinstance(whole.output_premetric, NormalizedRenyi) else budget
