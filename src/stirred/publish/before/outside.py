"""Releases from outside a plan that its mechanisms read as public: what their packets promise, added to the plan's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, StirredError
from stirred.languages import Phrase
from stirred.mechanisms.registry import find_mechanism, list_mechanisms
from stirred.publish.before.composition import convert_comparable, restate_part
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, Margin, Multiverse, NormalizedRenyi, Specification, compose
from stirred.spec.algebra.accounting import account
from stirred.spec.files import load
from stirred.spec.premetrics import RecordPremetric
from stirred.spec.units import find_needed_totals
from stirred.toml_text import parse_json, read_plain_text

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
