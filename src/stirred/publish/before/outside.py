"""Releases from outside a plan that its mechanisms read as public: what their packets promise, added to the plan's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, StirredError
from stirred.languages import Phrase
from stirred.mechanisms.registry import find, registered
from stirred.publish.before.composition import compared, restated
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, Margin, Multiverse, NormalizedRenyi, Specification, compose
from stirred.spec.algebra.accounting import account
from stirred.spec.files import load
from stirred.spec.premetrics import RecordPremetric
from stirred.spec.units import totals_needed
from stirred.toml_text import json_of, plain_text

SPECIFICATION, RECEIPT = "spec.json", "receipt.json"
ABOVE = 4  # folders between a packet and a file of one of its mechanisms


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """What a plan and the releases that it reads promise together, and what each of them spends of it."""

    specification: Specification
    lines: tuple[tuple[str, Budget], ...]


def together(
    plan: Plan, parts: Sequence[Specification], alone: Sequence[int]
) -> tuple[Together | None, list[str]]:
    """The promise of a plan with that of the packets it reads, and the notes that say so; None where it reads none.

    A packet without a specification, or one that cannot be composed, is named in a note: what it costs is in no figure.
    """
    named: list[tuple[str, Specification]] = []
    notes: list[str] = []
    for step in plan.steps:
        setting = step.config.linked()
        if setting is None or setting == step.config.continued() or step.earlier is not None:
            continue
        path = Path(str(getattr(step.config.located(plan.folder), setting)))
        packet = packet_of(path)
        if packet is None:
            notes.append(Phrase("outside.unnamed", label=step.label, name=path.name))
        else:
            named.append((f"{step.label}: {setting}", _promised(packet)))
    if not named:
        return None, notes
    own = [(plan.steps[n].label, restated(plan, parts, n, "proved")) for n in alone]
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
    lines = tuple((label, _spent(promise, whole)) for label, promise in (*named, *own))
    unit, budget = str(whole.input_premetric), whole.shown_budget
    said = Phrase(
        "outside.together", label=named[0][0], unit=unit, budget=budget, exact=compared(whole).exact
    )
    return Together(specification=whole, lines=lines), [*notes, said]


def _totals_of(promises: Sequence[Specification]) -> tuple[Margin, ...]:
    """Return the numbers of records that must be fixed, so that promises per household and per person can be added."""
    persons = next((p.input_premetric for p in promises if p.input_premetric.unit == "person"), None)
    found: dict[Margin, None] = {}
    for promise in promises:
        source = promise.input_premetric
        if isinstance(persons, RecordPremetric) and isinstance(source, RecordPremetric):
            wanted = totals_needed(source, persons, promise.domain, promise.multiverse)
            known = promise.multiverse
            found |= {
                total: None for total in wanted if not known.refines(Multiverse.of(total), promise.domain)
            }
    return tuple(found)


def packet_of(path: Path) -> Path | None:
    """The public folder of the packet that a path is in or leads to, where there is one."""
    for folder in (path, path / "public"):
        if (folder / SPECIFICATION).is_file():
            return folder
    above = path.absolute().parents[:ABOVE]
    return next(
        (one for one in above if all((one / name).is_file() for name in (SPECIFICATION, RECEIPT))), None
    )


def _promised(packet: Path) -> Specification:
    """The promise of a packet, per changed record where its mechanism has a factor for that."""
    promise = load(packet / SPECIFICATION)
    try:
        told = json_of(plain_text(packet / RECEIPT))
        names = [str(made["name"]) for made in told["mechanisms"]]
    except FileNotFoundError:
        names = []
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            "the receipt of the packet that is read cannot be read",
            why=f"{RECEIPT} beside its {SPECIFICATION} does not say which mechanism made it",
            fix="stirred packet verify finds what was changed; name a packet as it was written",
        ) from None
    conversion = find(names[0]).conversion if len(names) == 1 and names[0] in registered() else None
    return promise if conversion is None else conversion.restated(promise, figure="proved")


def _spent(promise: Specification, whole: Specification) -> Budget:
    """What a promise spends in the flavor of the whole, as its output premetric adds it."""
    budget, _ = account(
        promise.statements,
        domain=whole.domain,
        multiverse=whole.multiverse,
        input_premetric=whole.input_premetric,
        output_premetric=whole.output_premetric,
    )
    return budget.squared() if isinstance(whole.output_premetric, NormalizedRenyi) else budget
