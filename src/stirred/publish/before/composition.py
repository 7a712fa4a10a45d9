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
    """Share of one mechanism in the budget of a plan, as people compare budgets (ρ² for zCDP, else ε)."""

    label: str
    unit: str  # the input premetric that its promise is stated in
    counted: Budget  # as it states its promise
    conversion: Conversion | None
    published: Budget  # in the unit of the whole, by the published factor
    bureau: Budget  # the same, by a factor that follows from the promise per record added or removed alone
    proved: Budget  # the same, by the factor that a theorem about the mechanism proves


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """Promise of a whole plan by proved factors, with what other factors would give."""

    whole: Specification
    published: Specification
    bureau: Specification
    shares: tuple[Share, ...]


def compose_promises(plan: Plan, parts: Sequence[Specification]) -> Composition:
    """Compose the promises of a plan's mechanisms, in the order of the plan.

    A promise that includes an earlier one replaces it, and what is computed from released records adds nothing. A promise
    that stands alone stays as it is stated.
    """
    charged = [n for n, step in enumerate(plan.steps) if step.source is None]
    alone, again = find_charged(plan, parts), _find_recomputed(plan, parts)
    if len(alone) == 1:
        whole = parts[alone[0]]
        if again:
            notes = {note: None for n in (alone[0], *again) for note in parts[n].notes}
            whole = replace(whole, notes=tuple(notes))
        wholes = dict.fromkeys(FIGURES, whole)
        return Composition(
            whole=whole, published=whole, bureau=whole, shares=_compute_shares(plan, parts, charged, wholes)
        )
    wholes = {figure: compose([restate_part(plan, parts, n, figure) for n in alone]) for figure in FIGURES}
    shares = _compute_shares(plan, parts, charged, wholes)
    proved, published = wholes["proved"], wholes["published"]
    if convert_comparable(published) != convert_comparable(proved):
        figure = Phrase(
            "composed.note.published",
            budget=published.shown_budget,
            exact=convert_comparable(published).exact,
        )
        proved = replace(proved, notes=tuple(sorted({*proved.notes, figure})))
    return Composition(whole=proved, published=published, bureau=wholes["bureau"], shares=shares)


def find_charged(plan: Plan, parts: Sequence[Specification]) -> list[int]:
    """Return the mechanisms to compose, without tabulations and those that a later promise includes."""
    included = {*(step.continues for step in plan.steps), *_find_recomputed(plan, parts)}
    return [n for n, step in enumerate(plan.steps) if step.source is None and n not in included]


def _find_recomputed(plan: Plan, parts: Sequence[Specification]) -> tuple[int, ...]:
    """Return the mechanisms that only tabulate an earlier release which another one continues too.

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


def convert_comparable(specification: Specification) -> Budget:
    """Return the budget that people compare: ρ² for zCDP, else ε."""
    zcdp = isinstance(specification.output_premetric, NormalizedRenyi)
    return specification.rho_squared if zcdp else specification.budget


def restate_part(plan: Plan, parts: Sequence[Specification], number: int, figure: Figure) -> Specification:
    """Return the promise of a mechanism, per changed record where it has a factor for that."""
    conversion = plan.steps[number].mechanism.conversion
    return parts[number] if conversion is None else conversion.restate(parts[number], figure=figure)


def _compute_shares(
    plan: Plan,
    parts: Sequence[Specification],
    charged: Sequence[int],
    wholes: Mapping[Figure, Specification],
) -> tuple[Share, ...]:
    return tuple(
        Share(
            label=plan.steps[n].label,
            unit=str(parts[n].input_premetric),
            counted=_compute_own(plan, parts, n, parts[n], "proved", alone=True),
            conversion=plan.steps[n].mechanism.conversion,
            published=_compute_own(plan, parts, n, wholes["published"], "published"),
            bureau=_compute_own(plan, parts, n, wholes["bureau"], "bureau"),
            proved=_compute_own(plan, parts, n, wholes["proved"], "proved"),
        )
        for n in charged
    )


def _compute_own(
    plan: Plan,
    parts: Sequence[Specification],
    number: int,
    whole: Specification,
    figure: Figure,
    *,
    alone: bool = False,
) -> Budget:
    """Return what a mechanism spends beyond the release that it continues, in the flavor of the whole."""
    told = parts[number] if alone or whole == parts[number] else restate_part(plan, parts, number, figure)
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
    return budget.square() if isinstance(whole.output_premetric, NormalizedRenyi) else budget
