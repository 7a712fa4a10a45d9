"""A generator of small domains, invariants and promises, and the library's answers held against enumeration.

`towns` and `losses` compute the truth and import nothing of the library. This module tells the library the same domain and
the same promises, reads what it answers, and lists every answer that enumeration refutes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import mpmath

import stirred.spec as sp
from oracles.census import Strata
from oracles.losses import Judgement, Statement, judge
from oracles.promises import DIGITS, Law
from oracles.towns import HOUSEHOLD, PERSON, Count, Distance, Kept, Reach, Town
from stirred.errors import StirredError
from stirred.spec import Specification

PLACES = 30  # decimals of a budget that is read from the library
REALISED = 500  # b where a budget function was taken: more households than are enumerated
BITS = ("0", "1")


# --- small domains


def _town(name: str, homes: str, people: str | None = None, **more: Any) -> Town:
    """``block:2 tenure:2`` as variables with so many levels."""

    def levels(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        pairs = [one.split(":") for one in text.split()]
        return tuple((n, tuple(str(i + (n == "size")) for i in range(int(k)))) for n, k in pairs)

    return Town(name, levels(homes), None if people is None else levels(people), **more)


NESTED = (("block", "county", (("0", "0"), ("1", "0"), ("2", "1"))),)
GROUPED = (("age", "group", (("0", "0"), ("1", "0"), ("2", "1"))),)


@cache
def towns() -> tuple[Town, ...]:
    """The domains that cases are drawn from."""
    return (
        _town("homes", "block:2 tenure:2", spine=("block",), most=4),
        _town("homes of three variables", "block:2 tenure:2 kind:2", spine=("block",), most=3),
        _town("nested places", "county:2 block:3 tenure:2", spine=("county", "block"), maps=NESTED, most=3),
        _town("a variable that another one fixes", "age:3 group:2 tenure:2", maps=GROUPED, most=3),
        _town("persons alone", "sex:2 age:3", kind=PERSON, most=4),
        _town("one variable", "tenure:3", most=4),
        _town("families", "tenure:2", "sex:2", most=3),
        _town("families in places", "block:2", "sex:2", spine=("block",), most=3),
        _town("one kind of person", "block:2 tenure:2", "sex:1", spine=("block",), most=3),
        _town("families in places and tenures", "block:2 tenure:2", "sex:2", spine=("block",), most=2),
        _town("families with sizes", "size:2 block:2", "sex:2", spine=("block",), size="size", most=3),
        _town("families in nested places", "county:2 block:3", "sex:2", spine=("county", "block"), maps=NESTED,
              most=2),
        _town("larger families", "block:2", "sex:2", spine=("block",), largest=3, most=2),
        _town("persons with two variables", "block:2", "sex:2 age:2", spine=("block",), most=2),
    )


@cache
def domain_of(town: Town) -> sp.Domain:
    """The same domain as the library is told it."""

    def variables(levels: Any) -> tuple[sp.Variable, ...]:
        return tuple(sp.Variable(name=name, levels=values) for name, values in levels)

    kinds = [sp.RecordType(name=town.kind, variables=variables(town.homes))]
    if town.people is not None:
        kinds.append(sp.RecordType(name=PERSON, variables=variables(town.people)))
    own = [(of, determined) for of, determined, _ in town.maps if of not in town.spine]
    return sp.Domain(
        name=town.name,
        record_types=tuple(kinds),
        spine=town.spine,
        dependencies=tuple(
            sp.Dependency(record_type=town.kind, of=(of,), determines=(determined,)) for of, determined in own
        ),
        largest_household=town.largest if town.people is not None else None,
        size_variable=town.size,
    )


# --- plain statements as the library's, and back


def invariant_of(kept: Count | Reach) -> sp.Invariant:
    if isinstance(kept, Count):
        return sp.Margin(kept.kind, kept.by, dict(kept.where) or None)
    than = kept.than if isinstance(kept.than, int) else invariant_of(kept.than)
    table = invariant_of(kept.table)
    assert isinstance(table, sp.Margin)
    assert isinstance(than, int | sp.Margin)
    return sp.AtLeast(table, than)


def kept_of(invariant: sp.Invariant) -> Count | Reach:
    if isinstance(invariant, sp.Margin):
        return Count(invariant.record_type, invariant.by, tuple(invariant.conditions().items()))
    assert isinstance(invariant, sp.AtLeast)
    table = kept_of(invariant.statistic)
    than = invariant.than if isinstance(invariant.than, int) else kept_of(invariant.than)
    assert isinstance(table, Count)
    assert isinstance(than, int | Count)
    return Reach(table, than)


def premetric_of(distance: Distance) -> sp.InputPremetric:
    made = sp.Hamming if distance.change else sp.SymmetricDifference
    inner = made(distance.unit, link="free" if distance.free else "kept")
    return sp.Neighbours(inner) if distance.near else inner


def distance_of(premetric: sp.InputPremetric) -> Distance:
    inner = premetric.unrestricted
    assert isinstance(inner, sp.RecordPremetric)
    assert inner.copies == 1
    return Distance(
        inner.record_type, isinstance(inner, sp.Hamming), inner.link == "free", premetric.neighbours_only
    )


def _number(budget: sp.Budget, *, above: bool) -> Any:
    if not budget.is_finite:
        return None
    with mpmath.workdps(DIGITS):
        return mpmath.mpf(str(budget.upper(PLACES) if above else budget.lower(PLACES)))


def _stated(
    multiverse: sp.Multiverse,
    premetric: sp.InputPremetric,
    output: sp.OutputPremetric,
    budget: sp.Budget,
    varies: sp.BudgetFunction | None,
    *,
    above: bool,
) -> Statement:
    kind = {sp.Multiplicative: "pure", sp.NormalizedRenyi: "zcdp", sp.Approximate: "approximate"}[type(output)]
    delta = output.delta if isinstance(output, sp.Approximate) else Fraction(0)
    found: Any = _number(budget, above=above)
    strata = None
    if varies is not None and varies.law is not None:
        rate = varies.law.rate
        found = Law(varies.law.kind, (rate.numerator, rate.denominator))
        b = varies.statistic
        strata = None if b is None else Strata(b.match, b.hold, b.swap)
    elif varies is not None:  # known by its bounds alone: the worst that they leave open
        worst = min(budget, varies.least) if above else max(budget, varies.most)
        found = _number(worst, above=above)
    return Statement(
        frozenset(kept_of(invariant) for invariant in multiverse),
        distance_of(premetric),
        kind,  # type: ignore[arg-type]
        found,
        (delta.numerator, delta.denominator),
        strata,
    )


def promised(spec: Specification) -> Statement:
    """What a specification of the library claims, as a plain statement; a budget is read from above."""
    return _stated(
        spec.multiverse, spec.input_premetric, spec.output_premetric, spec.budget, spec.varies, above=True
    )


def allowed_by(spec: Specification) -> tuple[Statement, ...]:
    """What mechanisms under a specification are held to: its parts as they were stated, budgets read from below."""
    return tuple(
        _stated(
            spec.multiverse if part.multiverse is None else part.multiverse,
            part.input_premetric,
            part.output_premetric,
            part.budget,
            part.varies,
            above=False,
        )
        for part in spec.statements
    )


# --- random statements

PURE = tuple((sp.Multiplicative(), b) for b in ("0", "1/2", "1", "2", "5"))
ZCDP = tuple((sp.NormalizedRenyi(), b) for b in ("1/3", "1", "2"))
APPROXIMATE = tuple(
    (sp.Approximate(delta), b) for delta, b in (("1/100", "1/2"), ("1/10", "1"), ("1/1000", "2"), ("1/10", "0"))
)


@dataclass
class Maker:
    """Random tables, distances and specifications on one town."""

    town: Town
    random: Random

    def count(self) -> Count:
        town, r = self.town, self.random
        kind = PERSON if town.people is not None and r.random() < 0.4 else town.kind
        levels = dict(town.homes if kind == town.kind else town.people or ())
        if kind != town.kind:
            levels |= {name: values for name, values in town.homes if name in town.spine}
        names = sorted(levels)
        by = tuple(sorted(r.sample(names, min(len(names), r.choice((0, 1, 1, 2, 3))))))
        where = ()
        if r.random() < 0.3:
            name = r.choice(names)
            values = levels[name]
            chosen = tuple(sorted(r.sample(values, r.randint(1, max(1, len(values) - 1)))))
            where = ((name, chosen),)
        return Count(kind, by, where)

    def kept(self, most: int = 3) -> Kept:
        found: set[Count | Reach] = set()
        for _ in range(self.random.choice((0, 1, 1, 2, most))):
            table = self.count()
            found.add(Reach(table, self.random.choice((1, 1, 2))) if self.random.random() < 0.08 else table)
        return frozenset(found)

    def distance(self, near: float = 0.15) -> Distance:
        r = self.random
        unit = PERSON if self.town.people is not None and r.random() < 0.5 else self.town.kind
        free = unit == PERSON != self.town.kind and r.random() < 0.3
        return Distance(unit, r.random() < 0.7, free, r.random() < near)

    def specification(self, kept: Kept | None = None, **more: Any) -> Specification:
        measure, budget = self.random.choice((*PURE, *PURE, *ZCDP, *APPROXIMATE))
        return sp.Specification(
            domain=domain_of(self.town),
            multiverse=sp.Multiverse.of(*map(invariant_of, self.kept() if kept is None else kept)),
            **{
                "input_premetric": premetric_of(self.distance()),
                "output_premetric": measure,
                "budget": sp.Budget.of(budget),
                **more,
            },
        )

    def beside(self, first: Specification) -> Specification:
        """Another specification that is the first in some of its five parts."""
        r, found = self.random, self.specification()
        if r.random() < 0.7:
            more = [] if r.random() < 0.5 else [invariant_of(self.count())]
            found = replace(found, multiverse=sp.Multiverse(first.multiverse.invariants | {*more}))
        elif r.random() < 0.3 and len(first.multiverse):
            found = replace(found, multiverse=sp.Multiverse(frozenset([*first.multiverse][1:])))
        if r.random() < 0.5:
            found = replace(found, input_premetric=first.input_premetric)
        if r.random() < 0.5:
            found = replace(found, output_premetric=first.output_premetric)
        if r.random() < 0.3:
            found = replace(found, budget=first.budget)
        return found


# --- what the library says, held against the truth


@dataclass
class Tally:
    """Questions by kind and answer, and the answers that enumeration refutes."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[tuple[str, int, str]] = field(default_factory=list)  # kind, number of the case, what is wrong

    def note(self, kind: str, answer: str) -> None:
        self.answers[kind, answer] += 1

    def blame(self, kind: str, case: int, words: str) -> None:
        self.faults.append((kind, case, words))

    def asked(self, kind: str) -> int:
        return sum(n for (name, _), n in self.answers.items() if name == kind)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.answers + other.answers, self.faults + other.faults)

    def __str__(self) -> str:
        rows = [f"{n:6} {kind}: {answer}" for (kind, answer), n in sorted(self.answers.items())]
        return "\n".join([*rows, *(f"{kind} (case {case}): {words}" for kind, case, words in self.faults[:20])])


def shown_pair(town: Town, found: Judgement) -> str:
    if found.pair is None:
        return ""
    return " | ".join(town.written(place) for place in found.pair)


def ask_implication(tally: Tally, case: int, town: Town, first: Specification, second: Specification) -> None:
    """A yes is never broken; a no is broken by a pair that is enumerated, unless its own pair is too large for that."""
    verdict = first.implies(second)
    found = judge(town, allowed_by(first), promised(second))
    answer = verdict.answer.value
    tally.note("implies", f"{answer}, truth {found.found}")
    told = f"{first} => {second}: {verdict.because}"
    if answer == "yes" and found.found == "broken":
        tally.blame("implies", case, f"yes is false: {told}\n    {shown_pair(town, found)}")
    if answer == "no" and found.found == "holds" and fits(town, verdict):
        tally.blame("implies", case, f"no is false: {told}\n    {verdict.why}")
    problems = sp_check(first, second, verdict)
    tally.note("checker, honest", "accepted" if not problems else "refused")
    if problems and answer != "unknown":
        tally.note("checker, honest", f"refused {answer}: {problems[0][:60]}")


def sp_check(first: Specification, second: Specification, verdict: sp.Verdict) -> tuple[str, ...]:
    from stirred.spec.verdicts.checker.check import check_implication

    return check_implication(first, second, verdict)


def fits(town: Town, verdict: sp.Verdict) -> bool:
    """Whether the pair of a no is among the data sets that are enumerated."""
    step = verdict.derivation
    if step is None or step.witness is None:
        return False
    copies = int(step.facts.get("copies", 1))
    for data in (step.witness.first, step.witness.second):
        sizes = [n * copies for kind, _, n in data.rows if kind == town.kind]
        persons = [n * copies for kind, _, n in data.rows if kind != town.kind]
        if sum(sizes) > town.most or sum(persons) > town.most * town.largest:
            return False
    return True


def ask_comparison(tally: Tally, case: int, town: Town, first: Specification, second: Specification) -> None:
    """Equal, stronger and weaker are implications, and none of them is broken."""
    relation = sp.compare(first, second).overall.relation.value
    tally.note("compare", relation)
    for says, one, other in ((("equal", "stronger"), first, second), (("equal", "weaker"), second, first)):
        if relation in says:
            found = judge(town, allowed_by(one), promised(other))
            if found.found == "broken":
                tally.blame("compare", case, f"{relation} is false: {first} and {second}\n    {shown_pair(town, found)}")


def ask_restatement(tally: Tally, case: int, town: Town, first: Specification, maker: Maker) -> None:
    """What follows by per, under and given holds."""
    r = maker.random
    way = r.choice(("per", "per", "per", "under", "given"))
    try:
        if way == "per":
            second = first.per(premetric_of(maker.distance()))
        elif way == "under":
            second = first.under(r.choice((sp.Multiplicative(), sp.NormalizedRenyi(), sp.Approximate("1/10"))))
        else:
            second = first.given(invariant_of(maker.count()))
    except StirredError:
        tally.note(way, "refused")
        return
    found = judge(town, allowed_by(first), promised(second))
    tally.note(way, found.found)
    if found.found == "broken":
        tally.blame(way, case, f"{first} restated as {second}\n    {shown_pair(town, found)}")


def ask_composition(tally: Tally, case: int, town: Town, specs: Sequence[Specification], maker: Maker) -> None:
    """The sum is kept by every mechanism that publishes an output under each part; and so is what the sum implies."""
    try:
        total = specs[0] + specs[1]
    except StirredError:
        tally.note("+", "refused")
        return
    parts = tuple(statement for spec in specs for statement in allowed_by(spec))
    found = judge(town, parts, promised(total))
    tally.note("+", found.found)
    if found.found == "broken":
        tally.blame("+", case, f"{specs[0]} + {specs[1]} = {total}\n    {shown_pair(town, found)}")
    other = maker.beside(total)
    verdict = total.implies(other)
    found = judge(town, parts, promised(other))
    tally.note("implies, of a sum", f"{verdict.answer.value}, truth {found.found}")
    if verdict and found.found == "broken":
        words = f"yes is false: {specs[0]} + {specs[1]} => {other}: {verdict.because}\n    {shown_pair(town, found)}"
        tally.blame("implies, of a sum", case, words)


KINDS = ("implies", "compare", "restate", "compose")


def run(cases: Iterator[int] | range, kinds: Sequence[str] = KINDS, seed: str = "second oracle") -> Tally:
    """So many cases of each kind; a case depends on its number alone."""
    tally = Tally()
    for case in cases:
        for kind in kinds:
            random = Random(f"{seed} {kind} {case}")
            town = random.choice(towns())
            maker = Maker(town, random)
            first = maker.specification()
            if kind == "implies":
                ask_implication(tally, case, town, first, maker.beside(first))
            elif kind == "compare":
                ask_comparison(tally, case, town, first, maker.beside(first))
            elif kind == "restate":
                ask_restatement(tally, case, town, first, maker)
            elif kind == "compose":
                ask_composition(tally, case, town, (first, maker.beside(first)), maker)
    return tally


