"""State the promise of a plan: the specification of each mechanism, their composition and its account."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stirred.census import Census
from stirred.engine import Engine
from stirred.engine.scratch import scratch_folder
from stirred.errors import BudgetError, InputError, PrivacyError, StirredError
from stirred.languages import Phrase
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.registry import find_mechanism, list_mechanisms
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, Ledger, Margin, Multiverse, NormalizedRenyi, Specification, compose
from stirred.spec.conversions import Conversion, Figure
from stirred.spec.files import load, save
from stirred.spec.input_premetrics import RecordPremetric, find_needed_totals
from stirred.spec.output_premetrics import Approximate
from stirred.spec.statement import Part, account
from stirred.text_formats import parse_json, read_plain_text

# How the promises of a plan's mechanisms add up to one, each restated per changed record where it counts added ones.

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


# Releases from outside a plan that its mechanisms read as public: what their packets promise, added to the plan's own.

SPECIFICATION, RECEIPT = "spec.json", "receipt.json"
MAX_FOLDERS_ABOVE = 4  # folders between a packet and a file of one of its mechanisms


@dataclass(frozen=True, slots=True, kw_only=True)
class JointPromise:
    """Joint promise of a plan and the releases that it reads, with what each spends of it."""

    specification: Specification
    lines: tuple[tuple[str, Budget], ...]


def join_earlier_packets(
    plan: Plan, parts: Sequence[Specification], alone: Sequence[int]
) -> tuple[JointPromise | None, list[str]]:
    """Return the promise of a plan with the packets it reads, and notes; None where it reads none.

    A packet without a specification, or one that cannot be composed, is named in a note: what it costs is in no figure.
    """
    named: list[tuple[str, Specification]] = []
    notes: list[str] = []
    for step in plan.steps:
        setting = step.config.earlier_release_setting()
        if setting is None or setting == step.config.continues_setting() or step.earlier is not None:
            continue
        path = Path(str(getattr(step.config.resolve_paths(plan.folder), setting)))
        packet = find_packet(path)
        if packet is None:
            notes.append(Phrase("outside.unnamed", label=step.label, name=path.name))
        else:
            named.append((f"{step.label}: {setting}", _read_promise(packet)))
    if not named:
        return None, notes
    own = [(plan.steps[n].label, restate_part(plan, parts, n, "proved")) for n in alone]
    fixed = _totals_of([promise for _, promise in (*named, *own)])
    if fixed:  # a promise per household is one per person only where no household is founded or dissolved
        named = [(label, promise.given(Multiverse.of(*fixed))) for label, promise in named]
        own = [(label, promise.given(Multiverse.of(*fixed))) for label, promise in own]
    try:
        whole = compose([promise for _, promise in (*named, *own)])
    except StirredError as error:
        return None, [*notes, Phrase("outside.apart", label=named[0][0], why=error.why or error.what)]
    if fixed:
        notes.append(Phrase("outside.fixed", totals=tuple(total.words() for total in fixed)))
    lines = tuple((label, _compute_spending(promise, whole)) for label, promise in (*named, *own))
    unit, budget = str(whole.input_premetric), whole.shown_budget
    said = Phrase(
        "outside.together", label=named[0][0], unit=unit, budget=budget, exact=convert_comparable(whole).exact
    )
    return JointPromise(specification=whole, lines=lines), [*notes, said]


def _totals_of(promises: Sequence[Specification]) -> tuple[Margin, ...]:
    """Return the numbers of records that must be fixed, so that promises per household and per person can be added."""
    persons = next((p.input_premetric for p in promises if p.input_premetric.unit == "person"), None)
    found: dict[Margin, None] = {}
    for promise in promises:
        source = promise.input_premetric
        if isinstance(persons, RecordPremetric) and isinstance(source, RecordPremetric):
            wanted = find_needed_totals(source, persons, promise.domain, promise.multiverse)
            known = promise.multiverse
            found |= {
                total: None for total in wanted if not known.refines(Multiverse.of(total), promise.domain)
            }
    return tuple(found)


def find_packet(path: Path) -> Path | None:
    """Return the public folder of the packet that a path is in or leads to, or None."""
    for folder in (path, path / "public"):
        if (folder / SPECIFICATION).is_file():
            return folder
    above = path.absolute().parents[:MAX_FOLDERS_ABOVE]
    return next(
        (one for one in above if all((one / name).is_file() for name in (SPECIFICATION, RECEIPT))), None
    )


def _read_promise(packet: Path) -> Specification:
    """Return the promise of a packet, per changed record where its mechanism has a factor for that."""
    promise = load(packet / SPECIFICATION)
    try:
        told = parse_json(read_plain_text(packet / RECEIPT))
        names = [str(made["name"]) for made in told["mechanisms"]]
    except FileNotFoundError:
        names = []
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            "the receipt of the packet that is read cannot be read",
            why=f"{RECEIPT} beside its {SPECIFICATION} does not say which mechanism made it",
            fix="stirred packet verify finds what was changed; name a packet as it was written",
        ) from None
    conversion = (
        find_mechanism(names[0]).conversion if len(names) == 1 and names[0] in list_mechanisms() else None
    )
    return promise if conversion is None else conversion.restate(promise, figure="proved")


def _compute_spending(promise: Specification, whole: Specification) -> Budget:
    """Return what a promise spends in the flavor of the whole, as its output premetric adds it."""
    budget, _ = account(
        promise.statements,
        domain=whole.domain,
        multiverse=whole.multiverse,
        input_premetric=whole.input_premetric,
        output_premetric=whole.output_premetric,
    )
    return budget.square() if isinstance(whole.output_premetric, NormalizedRenyi) else budget


# The promise of a plan: the specification of each mechanism, stated once, and their composition.

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


# The account of a whole plan: what each mechanism spends in the unit of the whole, and what costs nothing.


def build_account(plan: Plan, promise: PlanPromise | None) -> Ledger | None:
    """Return the ledger of a plan: one line per mechanism, and one at cost 0 per product of a release.

    A packet from outside the plan that a mechanism reads has a line too. None for a plan of one mechanism that reads no
    packet, whose own ledger says it all, and under (ε, δ), where a line needs a δ of its own.
    """
    if promise is None:
        return None
    several = len(plan.steps) > 1 or bool(plan.retabulations) or promise.together is not None
    whole = promise.whole if promise.together is None else promise.together.specification
    if not several or isinstance(whole.output_premetric, Approximate):
        return None
    measure = whole.output_premetric
    ledger = Ledger(output_premetric=measure)
    unit = str(whole.input_premetric)
    shares = [(share.label, share.proved) for share in promise.shares]
    for label, amount in shares if promise.together is None else promise.together.lines:
        spent = Budget.sqrt(amount) if isinstance(measure, NormalizedRenyi) else amount
        ledger = ledger.spend(label, unit, spent)
    for step in plan.steps:
        if step.source is not None:
            ledger = ledger.spend(
                step.label, f"post-processing of {plan.steps[step.source].label}", Budget.zero()
            )
    for product in plan.retabulations:
        ledger = ledger.spend(
            product.name, f"post-processing of {plan.steps[product.source].label}", Budget.zero()
        )
    return ledger
