"""The promise of a plan: the specification of each mechanism, stated once, and their composition."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stirred.census import Census
from stirred.engine import Engine
from stirred.engine.scratch import scratch_folder
from stirred.errors import BudgetError, PrivacyError
from stirred.mechanisms.effect import ExpectedEffect
from stirred.publish.before.composition import Share, compose_promises, convert_comparable, find_charged
from stirred.publish.before.outside import JointPromise, join_earlier_packets
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, NormalizedRenyi, Specification
from stirred.spec.files import save

DATA_FOLDER = "data"  # the folder of the records in what a later mechanism continues


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPromise:
    """Promise of a plan: each mechanism's specification, in the order of the plan, and the whole."""

    parts: tuple[Specification, ...]
    whole: Specification
    published: Specification  # by published factors; the whole where no factor is needed
    bureau: Specification  # by factors that follow from each promise per record added or removed alone
    shares: tuple[Share, ...]  # what each mechanism adds
    effects: tuple[ExpectedEffect | None, ...] = ()  # of each mechanism; None where it states none
    together: JointPromise | None = None  # with the packets from outside the plan that it reads


def state_promise(plan: Plan, census: Census, engine: Engine | None = None) -> PlanPromise:
    """Let every mechanism refuse what it can, then state its specification; the whole stays within the plan's limit.

    The specification of a mechanism that continues an earlier one includes the earlier promise, which is therefore not
    composed a second time. A mechanism that tabulates released records has their promise, which it does not weaken.
    """
    found: list[Specification] = []
    effects: list[ExpectedEffect | None] = []
    with scratch_folder() as place:
        for number, step in enumerate(plan.steps):
            mechanism = step.mechanism
            if step.earlier is not None:
                earlier = write_earlier_packet(place / str(number), found[step.earlier])
                (earlier / DATA_FOLDER).mkdir()
                mechanism = step.after(earlier, plan.folder)
            mechanism.refuse(census, engine)
            if step.source is not None:
                found.append(found[step.source].post_processed(step.label))
                effects.append(None)
                continue
            specification, effect = mechanism.state_promise(census, engine=engine)
            found.append(specification)
            effects.append(effect)
            mechanism.refuse_promise(census, found[-1], engine)
            if step.continues is not None:
                _require_included(found[step.continues], found[-1], step.label)
    return replace(join_promises(plan, found), effects=tuple(effects))


def join_promises(plan: Plan, found: Sequence[Specification]) -> PlanPromise:
    """Join the promises of a plan's mechanisms with those of the earlier packets that it reads."""
    plan_alone = compose_promises(plan, found)
    _require_within(plan, plan_alone.whole)
    read, notes = join_earlier_packets(plan, found, find_charged(plan, found))
    whole = plan_alone.whole
    return PlanPromise(
        parts=tuple(found),
        whole=replace(whole, notes=(*whole.notes, *notes)) if notes else whole,
        published=plan_alone.published,
        bureau=plan_alone.bureau,
        shares=plan_alone.shares,
        together=read,
    )


def promise(plan: Plan, census: Census, engine: Engine | None = None) -> Specification:
    """Return the specification of all that the plan publishes, within the plan's limit."""
    return state_promise(plan, census, engine).whole


def write_earlier_packet(place: Path, specification: Specification) -> Path:
    """Write the specification to a folder that a later mechanism reads as an earlier packet; return it."""
    place.mkdir(parents=True)
    save(specification, place / "spec.json")
    return place


def read_spending(specification: Specification) -> tuple[str, Budget]:
    """Return the symbol and the budget that people compare: ρ² for zCDP, else ε."""
    zcdp = isinstance(specification.output_premetric, NormalizedRenyi)
    return "ρ²" if zcdp else "ε", convert_comparable(specification)


def _require_included(earlier: Specification, later: Specification, label: str) -> None:
    """Refuse a later promise without the earlier one, whose budget would not be counted."""
    if not all(part in later.statements for part in earlier.statements):
        raise PrivacyError(
            f"the promise of {label} does not include the release that it continues",
            why="the earlier budget would not be counted",
            fix="the mechanism must compose its specification with that of the given packet; report this",
        )


def _require_within(plan: Plan, whole: Specification) -> None:
    symbol, total = read_spending(whole)
    if plan.limit is not None and not total <= plan.limit:
        over = f", difference {total - plan.limit}" if total.is_finite and plan.limit.is_finite else ""
        raise BudgetError(
            "the plan spends more than its limit",
            why=f"requested {symbol} = {total}, limit {plan.limit}{over}",
            fix="spend less (a higher swap rate, a smaller ρ²), or ask the owner of the budget for a higher limit",
        )
