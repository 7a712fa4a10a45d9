"""A generator of small domains, invariants and promises, and the library's answers held against enumeration.

`towns` and `losses` compute the truth and import nothing of the library. This module tells the library the same domain and
the same promises, reads what it answers, and lists every answer that enumeration refutes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from random import Random
from typing import Any

import mpmath

import stirred.spec as sp
from oracles.census import Strata
from oracles.inventions import Forger
from oracles.losses import Judgement, Statement, excess, judge, noisy_table, true_concentration, true_loss
from oracles.promises import DIGITS, Law
from oracles.swaps import universe_laws
from oracles.towns import HOUSEHOLD, PERSON, Count, Distance, Kept, Reach, Town, Whole
from stirred.errors import StirredError
from stirred.spec import Specification

PLACES = 30  # decimals of a budget that is read from the library
IDENTIFIER = "household_id"
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
        _town(
            "families in nested places",
            "county:2 block:3",
            "sex:2",
            spine=("county", "block"),
            maps=NESTED,
            most=2,
        ),
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


def invariant_of(kept: Count | Reach | Whole) -> sp.Invariant:
    assert not isinstance(kept, Whole)
    if isinstance(kept, Count):
        return sp.Margin(kept.kind, kept.by, dict(kept.where) or None)
    than = kept.than if isinstance(kept.than, int) else invariant_of(kept.than)
    table = invariant_of(kept.table)
    assert isinstance(table, sp.Margin)
    assert isinstance(than, int | sp.Margin)
    return sp.AtLeast(table, than)


def kept_of(invariant: sp.Invariant) -> Count | Reach | Whole:
    if isinstance(invariant, sp.Margin):
        return Count(invariant.record_type, invariant.by, tuple(invariant.conditions().items()))
    if isinstance(invariant, sp.Custom):  # what a swap keeps of linked records
        assert invariant.name == "persons within households"
        held = {name for margin in invariant.needs() if margin.record_type == HOUSEHOLD for name in margin.by}
        return Whole(tuple(sorted(held - {IDENTIFIER})))
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
    kind = {sp.Multiplicative: "pure", sp.NormalizedRenyi: "zcdp", sp.Approximate: "approximate"}[
        type(output)
    ]
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
    (sp.Approximate(delta), b)
    for delta, b in (("1/100", "1/2"), ("1/10", "1"), ("1/1000", "2"), ("1/10", "0"))
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
        found: set[Count | Reach | Whole] = set()
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

    def varying(self) -> Specification:
        """A budget that differs by universe: by the law of a swap, or within bounds that are all that is known."""
        r, town = self.random, self.town
        names = [name for name, _ in town.homes]
        if r.random() < 0.5 or len(names) < 2 or town.kind != HOUSEHOLD:
            least, most = r.choice((("0", None), ("1/2", "2"), ("0", "1"), ("1/2", None)))
            bound = sp.BudgetFunction(
                words="anything",
                universe="the realised universe",
                least=sp.Budget.of(least),
                most=sp.Budget.infinite() if most is None else sp.Budget.of(most),
            )
            return self.specification(budget=sp.Budget.of(r.choice(("1/2", "1"))), varies=bound)
        swap, *hold = r.sample(names, len(names))
        match = hold[1:] if r.random() < 0.5 else []
        hold = [name for name in hold if name not in match]
        law = sp.SizeLaw(r.choice(("theorem-1", "by-size")), r.choice(("1/2", "3/4", "1/20")))
        tables = (
            Count(HOUSEHOLD, tuple(sorted((*match, *hold)))),
            Count(HOUSEHOLD, tuple(sorted((*match, swap)))),
        )
        function = sp.BudgetFunction(
            law=law,
            statistic=sp.LargestStratum(HOUSEHOLD, match, hold, (swap,)),
            b=REALISED,
            realised="there",
        )
        return self.specification(
            frozenset(tables),
            input_premetric=sp.Hamming(HOUSEHOLD),
            output_premetric=sp.Multiplicative(),
            budget=law.at(REALISED),
            varies=function,
        )

    def beside(self, first: Specification) -> Specification:
        """Another specification that is the first in some of its five parts; often in all but one or two."""
        r, found = self.random, self.specification()
        if r.random() < 0.5:
            return self.changed(first)
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

    def changed(self, first: Specification) -> Specification:
        """The first with its distance, its output premetric or its budget changed, or with one invariant more or less."""
        r, other = self.random, self.specification()
        plain = replace(first, varies=None, parts=(), bounds=())
        inner = first.input_premetric.unrestricted
        assert isinstance(inner, sp.RecordPremetric)
        added = isinstance(inner, sp.SymmetricDifference)
        turned = (sp.Hamming if added else sp.SymmetricDifference)(inner.record_type, link=inner.link)
        scaled = first.budget * (Fraction(2) if added else Fraction(1, 2))
        ways: list[dict[str, Any]] = [
            {"input_premetric": other.input_premetric},
            {"input_premetric": turned},
            *(2 * [{"input_premetric": turned, "budget": scaled}]),
            {"input_premetric": inner},
            {"input_premetric": sp.Neighbours(inner)},
            {"output_premetric": other.output_premetric, "budget": other.budget},
            {"budget": other.budget},
            {"multiverse": first.multiverse & invariant_of(self.count())},
            {"multiverse": sp.Multiverse(frozenset([*first.multiverse][1:]))},
        ]
        return replace(plain, **r.choice(ways))


# --- what the library says, held against the truth


@dataclass
class Tally:
    """Questions by kind and answer, and the answers that enumeration refutes."""

    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: list[tuple[str, int, str]] = field(
        default_factory=list
    )  # kind, number of the case, what is wrong

    def note(self, kind: str, answer: str) -> None:
        self.answers[kind, answer] += 1

    def blame(self, kind: str, case: int, words: str) -> None:
        if not any((kind, case) == (k, c) and words[:40] == w[:40] for k, c, w in self.faults):
            self.faults.append((kind, case, words))

    def asked(self, kind: str) -> int:
        return sum(n for (name, _), n in self.answers.items() if name == kind)

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.answers + other.answers, self.faults + other.faults)

    def __str__(self) -> str:
        rows = [f"{n:6} {kind}: {answer}" for (kind, answer), n in sorted(self.answers.items())]
        return "\n".join(
            [*rows, *(f"{kind} (case {case}): {words}" for kind, case, words in self.faults[:20])]
        )


def whole(spec: Specification) -> str:
    """A specification with its parts and with how its budget differs by universe."""
    if len(spec.parts) > 1:
        return f"{spec} (made of {'; '.join(f'{p.input_premetric} {p.output_premetric} {p.budget}' for p in spec.parts)})"
    function = spec.varies
    return (
        f"{spec}"
        if function is None
        else f"{spec} ({function.law or f'{function.least} to {function.most}'})"
    )


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
                tally.blame(
                    "compare",
                    case,
                    f"{relation} is false: {first} and {second}\n    {shown_pair(town, found)}",
                )


def ask_restatement(tally: Tally, case: int, town: Town, first: Specification, maker: Maker) -> None:
    """What follows by per, under and given holds."""
    r = maker.random
    way = r.choice(("per", "per", "per", "under", "given", "without"))
    try:
        if way == "per":
            second = first.per(premetric_of(maker.distance()))
        elif way == "under":
            second = first.under(
                r.choice((sp.Multiplicative(), sp.NormalizedRenyi(), sp.Approximate("1/10")))
            )
        else:
            first = first.given(invariant_of(maker.count()))
            second = first if way == "given" else first.without(r.choice([*first.multiverse]))
    except StirredError:
        tally.note(way, "refused")
        return
    found = judge(town, allowed_by(first), promised(second))
    tally.note(way, found.found)
    if found.found == "broken":
        tally.blame(way, case, f"{first} restated as {second}\n    {shown_pair(town, found)}")


def ask_composition(
    tally: Tally, case: int, town: Town, specs: Sequence[Specification], maker: Maker
) -> None:
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
    if verdict.answer is sp.Answer.NO and found.found == "holds" and fits(town, verdict):
        words = f"no is false: {specs[0]} + {specs[1]} => {other}: {verdict.because}\n    {verdict.why}"
        tally.blame("implies, of a sum", case, words)
    if verdict and found.found == "broken":
        words = f"yes is false: {specs[0]} + {specs[1]} => {other}: {verdict.because}\n    {shown_pair(town, found)}"
        tally.blame("implies, of a sum", case, words)


# --- the smallest distance and the odds


def views_of(maker: Maker) -> tuple[Count, ...]:
    """What a release may be computed from: some columns of each record type, or some tables."""
    town, r = maker.town, maker.random
    if r.random() < 0.3:
        return tuple({maker.count() for _ in range(r.choice((1, 2)))})
    names = [name for name, _ in town.homes]
    homes = tuple(sorted(r.sample(names, r.randint(1, len(names)))))
    found = [Count(town.kind, homes)]
    if town.people is not None and r.random() < 0.7:
        own = [name for name, _ in town.people]
        found.append(Count(PERSON, tuple(sorted({*r.sample(own, r.randint(1, len(own))), *homes}))))
    return tuple(found)


def within(town: Town, value: int, distance: Distance, kept: Kept) -> bool:
    """Whether a pair at this distance would be enumerated: all records that differ, in so many households."""
    touched = 2 * value if distance.free else value
    return touched <= town.most and not any(isinstance(one, Reach) for one in kept)


def ask_distance(tally: Tally, case: int, town: Town, maker: Maker) -> None:
    """The smallest distance is never below the true one, exact means equal, and odds are never below ε times it."""
    from stirred.spec.card import bound_odds
    from stirred.spec.nearest import smallest_distance

    kept, distance, views = maker.kept(), maker.distance(near=0), views_of(maker)
    told = sp.Multiverse.of(*map(invariant_of, kept))
    seen = tuple(sp.Margin(view.kind, view.by, dict(view.where) or None) for view in views)
    near = smallest_distance(domain_of(town), told, premetric_of(distance), seen)
    true = town.smallest(kept, distance, views)
    words = f"{town.name} | {told} | {premetric_of(distance)} | released {', '.join(map(str, seen))}: "
    words += f"{near.value} (exact {near.exact}), true {true}; {near.because}"
    if near.value is None:
        tally.note("distance", "none" if true is None else "none, and there is one")
        if near.exact and true is not None:
            tally.blame("distance", case, f"there is a change: {words}")
        return
    if true is None or near.value < true:
        enumerated = within(town, near.value, distance, kept)
        # where rules of the domain tie what changes, the library says that a larger change only may be possible
        below = "below" if near.safe else "below, and said to be unsure"
        tally.note("distance", below if enumerated else "not enumerated")
        if enumerated and near.safe:
            tally.blame("distance", case, f"below: {words}")
        return
    tally.note("distance", "equal" if near.value == true else "above")
    if near.exact and near.value > true:
        tally.blame("distance", case, f"not the smallest: {words}")
    try:
        spec = maker.specification(
            kept,
            input_premetric=premetric_of(distance),
            output_premetric=sp.Multiplicative(),
            budget=sp.Budget.of("1/2"),
            released=seen,
        )
    except StirredError:  # a view of persons by what their household has is no table of the domain
        return
    odds = bound_odds(spec)
    if odds.distance != near.value or odds.log_odds is None or odds.log_odds * 2 < true:
        tally.blame("distance", case, f"odds of {odds.log_odds} at {odds.distance}: {words}")


# --- mechanisms whose law is known


def ask_mechanism(tally: Tally, case: int, town: Town, maker: Maker) -> None:
    """A finite law keeps what follows from its own true loss: by implication, by another unit, by a sum."""
    r = maker.random
    names = [name for name, _ in town.homes if len(dict(town.homes)[name]) < 3]
    table = Count(town.kind, r.choice(((), (r.choice(names),) if names else ())))
    if town.people is not None and r.random() < 0.3:
        table = Count(PERSON)
    laws, kept, distance = noisy_table(town, table, r.choice((0.3, 0.6))), maker.kept(), maker.distance()
    loss = true_loss(town, laws, kept, distance)
    if loss == float("inf"):
        tally.note("mechanism", "infinite loss")
        return
    budget = sp.Budget.of(Fraction(int(loss * 10**9) + 2, 10**9))
    one = maker.specification(
        kept, input_premetric=premetric_of(distance), output_premetric=sp.Multiplicative(), budget=budget
    )
    wanted = [maker.beside(one) for _ in range(3)]
    wanted = [spec for spec in wanted if one.implies(spec)]
    try:
        wanted.append(one.per(premetric_of(maker.distance())))
    except StirredError:
        tally.note("mechanism", "refused per unit")
    for spec in wanted:
        claim = promised(spec)
        tally.note("mechanism", "held against what follows")
        over = breach(town, laws, claim)
        if over:
            tally.blame("mechanism", case, f"{table} with {one} does not keep {spec}: {over}")


def breach(town: Town, laws: Any, claim: Statement) -> str:
    """How a law breaks a statement; empty where it does not."""
    if claim.budget is None:
        return ""
    limit = float(claim.budget)
    if claim.output == "pure":
        lost = true_loss(town, laws, claim.kept, claim.distance)
        return f"it loses {lost}" if lost > limit + 1e-8 else ""
    if claim.output == "zcdp":
        lost = true_concentration(town, laws, claim.kept, claim.distance)
        return f"it loses {lost}" if lost > limit + 1e-6 else ""
    over = excess(town, laws, claim.kept, claim.distance, limit, claim.delta[0] / claim.delta[1])
    return f"δ is exceeded by {over}" if over > 1e-9 else ""


def ask_swap(tally: Tally, case: int, maker: Maker) -> None:
    """A permutation swap of a tiny census loses at most what it states, in its universe and per person; odds likewise."""
    from stirred.mechanisms.swap import PermutationSwapping
    from stirred.spec.card import bound_odds

    r = maker.random
    town = r.choice([t for t in towns() if "block" in t.spine and t.kind == HOUSEHOLD])
    maker = Maker(town, r)
    rest = [name for name, _ in town.homes if name not in town.spine]
    match = [*town.spine[:-1]] + [n for n in rest if n == town.size or r.random() < 0.2]
    free = [n for n in rest if n not in match]
    hidden = [n for n in free if r.random() < 0.5]
    if town.people is None and hidden == free:
        hidden = hidden[1:]
    rate = r.choice((Fraction(1, 2), Fraction(1, 5), Fraction(3, 4)))
    start = (
        len(town.data) - 1 - r.randrange(len(town.data) * 2 // 3)
    )  # data sets of more households come last
    mechanism = PermutationSwapping(match=match, swap=["block"], rate=str(rate), drop=hidden)
    try:
        spec = mechanism.specification(census_of(town, start))
    except StirredError:
        tally.note("swap", "refused")
        return
    claim = promised(spec)
    label = town.universes(claim.kept)
    places = [int(place) for place in (label == label[start]).nonzero()[0]]
    laws = dict(zip(places, universe_laws(town, places, match, ["block"], hidden, rate), strict=True))
    stated = replace(claim, budget=float(spec.budget.upper(12)), strata=None)
    tally.note("swap", f"{'one data set' if len(places) == 1 else 'universe'} enumerated")
    words = f"{town.name}: {mechanism.settings()} on {town.written(start)} states {spec}: "
    over = breach(town, laws, stated)
    if over:
        tally.blame("swap", case, words + over)
    if town.people is not None:
        try:
            person = spec.per(premetric_of(Distance(PERSON, r.random() < 0.7, r.random() < 0.3)))
        except StirredError:
            tally.note("swap", "refused per person")
        else:
            moved = promised(person)
            over = breach(town, laws, replace(moved, budget=float(person.budget.upper(12)), strata=None))
            tally.note("swap", "per person")
            if over:
                tally.blame("swap", case, words + f"per person {person}: {over}")
    # what can be told apart: the households that are released, with their persons
    seen = Whole(tuple(name for name, _ in town.homes if name not in hidden))
    true = town.smallest(claim.kept, claim.distance, (seen,))
    odds = bound_odds(spec)
    if odds.distance is not None and (true is None or odds.distance < true):
        tally.note("swap", "odds below")
        if true is not None or within(town, odds.distance, claim.distance, claim.kept):
            tally.blame("swap", case, words + f"odds at distance {odds.distance}, true {true}: {odds.reason}")


def census_of(town: Town, place: int) -> Any:
    """One data set as a census."""
    import pyarrow as pa

    from stirred.census import Census

    homes = [town.kinds[kind] for kind in town.data[place]]
    record: dict[str, Any] = {
        HOUSEHOLD: {"id": IDENTIFIER, "variables": {name: list(levels) for name, levels in town.homes}}
    }
    names = [str(i) for i in range(len(homes))]
    columns = {IDENTIFIER: names}
    for i, (name, _) in enumerate(town.homes):
        columns[name] = [home.values[i][1] for home in homes]
    files = {HOUSEHOLD: pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})}
    if town.people is not None:
        persons = [(name, person) for name, home in zip(names, homes, strict=True) for person in home.persons]
        record[PERSON] = {
            "id": "person_id",
            "household": IDENTIFIER,
            "variables": {name: list(levels) for name, levels in town.people},
        }
        rows = {"person_id": [str(i) for i in range(len(persons))], IDENTIFIER: [name for name, _ in persons]}
        for i, (name, _) in enumerate(town.people):
            rows[name] = [person[i] for _, person in persons]
        files[PERSON] = pa.table({name: pa.array(values, pa.string()) for name, values in rows.items()})
    schema = {
        "name": "small",
        "largest_household": town.largest,
        "geography": {"spine": list(town.spine)},
        "record": record,
    }
    return Census.of(schema, files)


# --- derivations that are invented


def ask_forgery(tally: Tally, case: int, town: Town, maker: Maker) -> None:
    """No forged derivation of a false statement is accepted, and none ends in an error."""
    r = maker.random
    first = maker.varying() if r.random() < 0.3 else maker.specification()
    if r.random() < 0.3:
        with suppress(StirredError):
            first = first + maker.beside(first)
    second = maker.beside(first)
    if r.random() < 0.2:
        varying = maker.varying()
        with suppress(StirredError):
            second = replace(varying, multiverse=varying.multiverse & first.multiverse)
    found = judge(town, allowed_by(first), promised(second))
    forger = Forger(town, r)
    if found.found == "broken":
        for rule, verdict in forger.yes(first, second):
            _check_forged(tally, case, rule, (first, second, verdict), shown_pair(town, found))
    elif found.found == "holds" and first.varies is None and second.varies is None:
        for rule, verdict in forger.no(first, second):
            _check_forged(tally, case, rule, (first, second, verdict), "no pair of data sets breaks it")
    _forge_refinement(tally, case, town, maker, forger)


def _check_forged(
    tally: Tally, case: int, rule: str, asked: tuple[Specification, Specification, sp.Verdict], truth: str
) -> None:
    first, second, verdict = asked
    answer = verdict.answer.value
    words = f"{answer} by {rule!r}: {whole(first)} => {whole(second)}"
    try:
        problems = sp_check(first, second, verdict)
    except Exception as error:  # whatever it is, a reader of forged proofs sees a crash
        tally.note("forged", f"{rule} crashed")
        tally.blame("forged", case, f"{type(error).__name__}, {words}")
        return
    tally.note("forged", f"{rule} {'refused' if problems else 'accepted'}")
    if not problems:
        assert verdict.derivation is not None
        tally.blame("forged", case, f"accepted {words}\n    {truth}\n    {verdict.derivation.to_json()}")


def _forge_refinement(tally: Tally, case: int, town: Town, maker: Maker, forger: Forger) -> None:
    from stirred.spec.verdicts.checker.check import check_refinement

    finer, wanted = maker.kept(), maker.count()
    label, coarse = town.universes(finer), town.universes(frozenset({wanted}))
    parts = {(a, b) for a, b in zip(label.tolist(), coarse.tolist(), strict=True)}
    if len(parts) == len({*label.tolist()}):
        return  # it is determined
    given, target = sp.Multiverse.of(*map(invariant_of, finer)), invariant_of(wanted)
    assert isinstance(target, sp.Margin)
    margins = tuple(i for i in given if isinstance(i, sp.Margin))
    for step in forger.inventions(margins, target):
        try:
            problems = check_refinement(
                given, sp.Multiverse.of(target), domain_of(town), sp.Verdict.yes("forged", step)
            )
        except Exception as error:
            tally.blame(
                "forged", case, f"{type(error).__name__} in {step.rule!r}: {given} determine {target}"
            )
            continue
        tally.note("forged refinement", f"{step.rule} {'refused' if problems else 'accepted'}")
        if not problems:
            tally.blame(
                "forged", case, f"accepted {step.rule!r}: {given} determine {target}\n    {step.to_json()}"
            )


KINDS = ("implies", "compare", "restate", "compose", "distance", "mechanism", "swap", "forge")


def run(cases: Iterator[int] | range, kinds: Sequence[str] = KINDS, seed: str = "second oracle") -> Tally:
    """So many cases of each kind; a case depends on its number alone."""
    tally = Tally()
    for case in cases:
        for kind in kinds:
            random = Random(f"{seed} {kind} {case}")
            town = random.choice(towns())
            maker = Maker(town, random)
            first = maker.varying() if kind == "implies" and random.random() < 0.15 else maker.specification()
            if kind == "implies":
                ask_implication(tally, case, town, first, maker.beside(first))
            elif kind == "compare":
                ask_comparison(tally, case, town, first, maker.beside(first))
            elif kind == "restate":
                ask_restatement(tally, case, town, first, maker)
            elif kind == "compose":
                ask_composition(tally, case, town, (first, maker.beside(first)), maker)
            elif kind == "distance":
                ask_distance(tally, case, town, maker)
            elif kind == "mechanism":
                ask_mechanism(tally, case, town, maker)
            elif kind == "swap":
                ask_swap(tally, case, maker)
            elif kind == "forge":
                ask_forgery(tally, case, town, maker)
    return tally
