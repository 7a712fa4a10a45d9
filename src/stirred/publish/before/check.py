"""What a plan promises and costs, before it runs; reads at most the counts that the promise needs."""

from collections.abc import Sequence
from dataclasses import dataclass

from stirred.census import Census
from stirred.census.validation import find_doubts
from stirred.engine import Engine
from stirred.engine.choice import choose_engine
from stirred.errors import StirredError
from stirred.mechanisms.base import Guard, Mechanism
from stirred.publish.before.promise import read_spending, state_promise
from stirred.publish.before.refusals import require_effects, require_records, require_variables
from stirred.publish.packet.receipt import guard_lines
from stirred.publish.plan.description import Plan, Reason
from stirred.spec import Invariant, Specification
from stirred.spec.card import Card

# of every run, for a rough estimate
FLOOR_SECONDS, FLOOR_BYTES = 3.0, 400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptInvariant:
    """An invariant in words and how many numbers it fixes."""

    words: str
    numbers: int | None  # None: it is not known


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The whole promise and cost of a plan."""

    title: str
    sentence: str
    warning: str
    specification: Specification
    kept: tuple[KeptInvariant, ...]
    parts: tuple[tuple[str, str, str], ...]  # mechanism, budget as people read it, exact (ρ² for zCDP)
    unexplained: tuple[str, ...]  # invariants without a reason
    records: int
    seconds: float
    memory: int
    doubts: tuple[str, ...] = ()  # about the records, for the office alone
    effects: tuple[str, ...] = ()  # how far each mechanism is expected to change what it reads
    guards: tuple[Guard, ...] = ()  # for the office alone: one of them may come from a trial draw

    def document(self) -> dict[str, object]:
        """Return the explanation as plain values for programs."""
        return {
            "title": self.title,
            "sentence": self.sentence,
            "warning": self.warning,
            "specification": str(self.specification),
            "budget": float(self.specification.budget.upper(6))
            if self.specification.budget.is_finite
            else "inf",
            "budget_shown": Card(self.specification).budget(),
            "invariants": [{"words": k.words, "numbers": k.numbers} for k in self.kept],
            "budget_by_part": [
                {"part": name, "budget": told, "exact": exact} for name, told, exact in self.parts
            ],
            "without_reason": list(self.unexplained),
            "records": self.records,
            "estimated_seconds": round(self.seconds),
            "estimated_memory_bytes": self.memory,
            "doubts": list(self.doubts),
            "expected_effect": list(self.effects),
            "guards": guard_lines(self.guards),
        }


def explain(
    plan: Plan, census: Census | None = None, engine: Engine | None = None, *, trial: bool = True
) -> Explanation:
    """Return everything that ``plan check`` prints; write nothing. With ``trial`` draw once and discard it."""
    place = engine or choose_engine(plan.engine)
    census = (
        plan.checked_census(place) if census is None else place.census(census.check(invalid=plan.invalid))
    )
    require_records(census, place)
    require_variables(plan, census)
    promise = require_effects(plan, state_promise(plan, census, place))
    whole = promise.whole
    kept = tuple(
        KeptInvariant(words=invariant.words(), numbers=_numbers(invariant, census))
        for invariant in whole.multiverse
    )
    unexplained = tuple(k.words for k in kept if find_reason(k.words, plan.reasons) is None)
    card = Card(whole, title=plan.title)
    records = sum(census.count(record.name) for record in census.schema.records)
    guards = [
        guard
        for mechanism in plan.mechanisms
        for guard in mechanism.guards(census, engine=place, trial=trial)
    ]
    return Explanation(
        title=plan.title,
        sentence=card.sentence(),
        warning=card.warning(),
        specification=whole,
        kept=kept,
        parts=tuple(
            _part(step.label, part)
            for step, part in zip(plan.steps, promise.parts, strict=True)
            if step.source is None  # tables of released records spend nothing
        ),
        unexplained=unexplained,
        records=records,
        seconds=FLOOR_SECONDS + sum(_seconds(mechanism, records) for mechanism in plan.mechanisms),
        memory=FLOOR_BYTES + max(m.bytes_per_record for m in plan.mechanisms) * records,
        guards=tuple(guards),
        doubts=tuple(map(str, find_doubts(census))),
        effects=tuple(str(effect.words()) for effect in promise.effects if effect is not None),
    )


def find_reason(invariant: str, reasons: Sequence[Reason]) -> Reason | None:
    """Return the plan's reason for an invariant, whose variables may stand in any order.

    >>> law = Reason(invariant="households by size × state", kind="law", text="a law", citation="")
    >>> find_reason("households by state × size", [law]) is law
    True
    >>> find_reason("persons by state", [law]) is None
    True
    """
    return next((reason for reason in reasons if same_invariant(reason.invariant, invariant)), None)


def same_invariant(first: str, second: str) -> bool:
    """Return whether two texts name the same invariant, in any order of variables and in any case.

    >>> same_invariant("Households by county × size", "households by size × county")
    True
    """
    return _parts(first) == _parts(second)


def _parts(words: str) -> tuple[str, tuple[str, ...], str]:
    """Split the words of an invariant: what is counted, by which variables, and where."""
    named, _, where = " ".join(words.lower().split()).partition(" where ")
    counted, _, by = named.partition(" by ")
    return counted, tuple(sorted(name.strip() for name in by.split("×"))), where


def _part(name: str, specification: Specification) -> tuple[str, str, str]:
    return name, Card(specification).budget(), read_spending(specification)[1].exact


def _numbers(invariant: Invariant, census: Census) -> int | None:
    try:
        return int(invariant.tabulate(census).num_rows)
    except StirredError:
        return None


def _seconds(mechanism: Mechanism, records: int) -> float:
    return mechanism.seconds_per_million * records / 1e6
