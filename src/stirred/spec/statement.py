"""Define what a specification rests on: evidence, parts, budget functions, and the budget of all parts."""

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from stirred.errors import IncompatibleError, SpecificationError
from stirred.languages import Phrase
from stirred.spec.budgets import Bound, Budget, Status
from stirred.spec.domain import Domain
from stirred.spec.input_premetrics import Constant, Exchanges, InputPremetric, Neighbours, neighbours_connect
from stirred.spec.invariants import Margin
from stirred.spec.laws import LargestStratum, LawOrder, Run, SizeLaw, compare_laws, find_first
from stirred.spec.multiverse import Multiverse
from stirred.spec.output_premetrics import Approximate, OutputPremetric, make_conversion_error

# What a specification rests on: its evidence, its parts, and how its budget differs by universe.

_WEAKNESS: dict[str, int] = {"proved": 0, "published": 1, "estimated": 2, "unknown": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The status of a budget (proved, published, estimated, unknown) and its source.

    >>> (Evidence(source="a") & Evidence(status="published", source="b"))
    Evidence(status='published', source='a; b')
    """

    status: Status = "proved"
    source: str = ""

    def __and__(self, other: "Evidence") -> "Evidence":
        """Return the joint evidence of two: the weaker status and all the sources."""
        sources = sorted({s for e in (self, other) for s in e.source.split("; ") if s})
        worse = max(self.status, other.status, key=lambda status: _WEAKNESS[status])
        return Evidence(status=worse, source="; ".join(sources))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetFunction:
    r"""A budget $\varepsilon_{\mathcal D}$ that differs by universe: stated where it was taken, a law elsewhere.

    Every universe but the realised one has the budget ``law.at(b)``, where b is the value of ``statistic`` in it; at the
    realised one the specification's ``budget`` holds, which may be sharper. Without a law the function is known in words
    only: it is then never equal to another one, and ``least`` and ``most`` bound it over all universes.

    >>> from stirred.spec.laws import SizeLaw
    >>> BudgetFunction(law=SizeLaw("theorem-1", "1/20"), b=10).words
    'max{ln o, ln(b + 1) − ln o} at swap rate 1/20 (o = 1/19)'
    >>> BudgetFunction(words="it grows with the largest household").most.is_finite
    False
    """

    words: str = ""  # filled in from the law and the statistic where it is empty
    universe: str = "the realised universe"
    least: Budget = field(default_factory=Budget.zero)
    most: Budget = field(default_factory=Budget.infinite)
    law: SizeLaw | None = None
    statistic: LargestStratum | None = None
    b: int | None = None  # the statistic at the realised universe
    # A digest of all that the budget at the realised universe was computed from, such as the sizes and types of its
    # strata: equal digests, equal inputs. These are functions of the invariants, which are published, so that the
    # digest tells nobody anything new.
    realised: str = ""

    def __post_init__(self) -> None:
        if self.b is not None and (isinstance(self.b, bool) or not isinstance(self.b, int) or self.b < 0):
            raise SpecificationError(
                f"b = {self.b} is no number of records",
                why="b counts the records of a stratum",
                fix="give a whole number of at least 0",
            )
        if self.law is not None and self.most.is_finite:
            raise SpecificationError(
                "this budget has a law of b and a bound over all universes",
                why="the law grows with b without end",
                fix="leave out most=",
            )
        if not self.words and self.law is None:
            raise SpecificationError(
                "this budget function says nothing",
                why="it has neither a law of b nor words that describe it",
                fix='give law=SizeLaw("by-size", "1/20"), or words="…"',
            )
        if not self.words and self.law is not None:
            told: str = self.law.words()
            if self.statistic is not None:
                told = Phrase("law.where", law=told, statistic=self.statistic.words())
            object.__setattr__(self, "words", told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One statement that went into a composed specification, in its own universes, unit and premetric."""

    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    source: str = ""
    varies: BudgetFunction | None = None
    multiverse: Multiverse | None = None  # the universes it was stated in; None: those of the whole
    measures: tuple[
        Margin, ...
    ] = ()  # all that its output is computed from, beside its invariants; empty: not stated

    def order(self) -> tuple[str, ...]:
        """Return a sort key of parts, so that a sum does not depend on the order of its terms."""
        kept = () if self.multiverse is None else (i.identity() for i in self.multiverse)
        return (
            str(self.input_premetric),
            str(self.output_premetric),
            self.source,
            self.budget.exact,
            *kept,
        )


# Budgets that are functions of the universe: compared for every universe at once, and composed.

_MAX_SEARCHED_BUDGET = Budget.of(1000)  # b grows like e^ε; beyond this budget no b is searched


class Promise(Protocol):
    """A budget and how it differs by universe; a specification has both."""

    @property
    def budget(self) -> Budget: ...

    @property
    def varies(self) -> BudgetFunction | None: ...


@dataclass(frozen=True, slots=True)
class PlainPromise:
    """A budget with its budget function, without the rest of a specification."""

    budget: Budget
    varies: BudgetFunction | None = None


@dataclass(frozen=True, slots=True)
class FunctionOrder:
    """The answer whether one budget is at most another in every universe; ``b`` is a size that refutes it.

    A refutation by two laws holds in every universe with that b but the realised ones; with ``realised`` it holds at
    the realised universe of the second (or, where the second is a constant, of the first).
    """

    answer: Literal["yes", "no", "unknown"]
    because: str
    b: int | None = None
    realised: bool = False
    order: LawOrder | None = None

    def __bool__(self) -> bool:
        return self.answer == "yes"


def compare_functions(first: Promise, second: Promise) -> FunctionOrder:
    r"""Whether $\varepsilon_1(U) \le \varepsilon_2(U)$ for every universe U; universes of one data set (b = 0) need nothing.

    >>> def swap(rate, b):
    ...     law = SizeLaw("by-size", rate)
    ...     statistic = LargestStratum("household", ("size",), ("tenure",), ("block",))
    ...     return PlainPromise(law.at(b), BudgetFunction(law=law, statistic=statistic, b=b))
    >>> compare_functions(swap("1/2", 7), swap("1/20", 900)).because
    'swap rate 1/2 gives a smaller budget than swap rate 1/20 for every size b of the largest stratum'
    >>> found = compare_functions(swap("1/2", 4), swap("3/4", 4))
    >>> found.answer, found.b
    ('no', 5)
    """
    mine, theirs = first.varies, second.varies
    if first is second:
        return FunctionOrder("yes", "the two are one statement")
    if theirs is None and not second.budget.is_finite:
        return FunctionOrder("yes", "the second budget is infinite in every universe")
    if mine is None and theirs is None:
        if first.budget <= second.budget:
            return FunctionOrder("yes", f"{first.budget} ≤ {second.budget} in every universe")
        return FunctionOrder("no", f"{first.budget} > {second.budget} in every universe")
    if theirs is None:
        assert mine is not None
        return _compare_with_constant(first.budget, mine, second.budget)
    if mine is None:
        return _compare_constant_with(first.budget, second.budget, theirs)
    return _compare_both(first.budget, mine, second.budget, theirs)


def _compare_with_constant(budget: Budget, mine: BudgetFunction, constant: Budget) -> FunctionOrder:
    """Compare a budget function with a finite constant."""
    if mine.law is None:
        if mine.most <= constant and budget <= constant:
            return FunctionOrder(
                "yes", f"the first is at most {mine.most} in every universe, and that ≤ {constant}"
            )
        if budget > constant and (mine.b or 0) >= 2:
            because = f"at the realised universe of the first {budget} > {constant}"
            return FunctionOrder("no", because, mine.b, realised=True)
        return _compare_words(mine)
    law, grows = (
        mine.law,
        f"{mine.law.describe_rates()}: the first grows with b without end, the second is {constant} everywhere",
    )
    if constant > _MAX_SEARCHED_BUDGET and law.is_finite:
        return FunctionOrder("no", grows)
    b = find_first(lambda size: law.at(size) > constant, 2)
    b += b == mine.b  # the law never falls, and it may not hold at the realised universe
    return FunctionOrder("no", f"{grows}, and at b = {b:,} the first is {law.at(b)}", b)


def _compare_constant_with(constant: Budget, budget: Budget, theirs: BudgetFunction) -> FunctionOrder:
    """Compare a constant with a budget function: at b = 2 and 3, and at its realised universe."""
    if constant.is_zero:
        return FunctionOrder("yes", "the first budget is 0")
    single = theirs.b is not None and theirs.b <= 1  # the realised universe is one data set
    if theirs.law is None:
        if constant <= theirs.least and (single or constant <= budget):
            return FunctionOrder(
                "yes", f"{constant} ≤ {theirs.least}, the second's smallest budget in any universe"
            )
    else:
        law = theirs.law
        places = [b for b in (2, 3) if constant > law.at(b)]
        if places:
            b = next((b for b in places if b != theirs.b), places[0])
            return FunctionOrder(
                "no", f"at b = {b} the second is {law.at(b)}, and {constant} > {law.at(b)}", b
            )
        if single or constant <= budget:
            return FunctionOrder("yes", f"{constant} ≤ {law.at(2)}, the second's smallest budget over all b")
    if constant > budget and (theirs.b or 0) >= 2:
        because = f"at the realised universe of the second {constant} > {budget}"
        return FunctionOrder("no", because, theirs.b, realised=True)
    if theirs.law is None:
        return _compare_words(theirs)
    return FunctionOrder("unknown", f"at {theirs.universe} the second is {budget}, and its b is not given")


def _compare_both(
    budget: Budget, mine: BudgetFunction, other: Budget, theirs: BudgetFunction
) -> FunctionOrder:
    """Compare two budget functions by their bounds, or by their laws of one statistic."""
    if mine.law is None or theirs.law is None:
        if mine.most <= theirs.least and budget <= theirs.least and mine.most <= other and budget <= other:
            return FunctionOrder("yes", f"{mine.most} ≤ {theirs.least} bounds both in every universe")
        return _compare_words(*(function for function in (mine, theirs) if function.law is None))
    if mine.statistic is None or theirs.statistic is None:
        return FunctionOrder("unknown", "a law of b does not say which strata b is taken over")
    if not mine.statistic.never_above(theirs.statistic):
        because = f"b is not the same number in both: {mine.statistic.words()}; {theirs.statistic.words()}"
        return FunctionOrder("unknown", because)
    same = mine.statistic == theirs.statistic
    order = compare_laws(mine.law, theirs.law)
    if order.relation in {"larger", "crosses"}:
        if same:
            b = _choose_size(order.runs, {mine.b, theirs.b})
            return FunctionOrder("no", order.sentence(), b, order=order)
        return FunctionOrder("unknown", order.sentence(), order=order)
    because = order.sentence() if same else f"the first's b is never the larger one, and {order.sentence()}"
    return _compare_realised(budget, mine, other, theirs, because, order)


def _choose_size(runs: Sequence[Run], realised: set[int | None]) -> int:
    """Return a small b at which the first is larger, if possible not that of a realised universe."""
    larger = [run for run in runs if run.sign > 0]
    for run in larger:
        for b in range(run.first, run.first + 3):
            if b not in realised and (run.last is None or b <= run.last):
                return b
    return larger[0].first


def _compare_realised(
    budget: Budget, mine: BudgetFunction, other: Budget, theirs: BudgetFunction, because: str, order: LawOrder
) -> FunctionOrder:
    """Compare the budgets at the realised universes, where the laws are in order already."""
    same = mine.statistic == theirs.statistic
    known = same and mine.realised and theirs.realised
    if known and mine.realised == theirs.realised:
        # the two were computed from the same numbers, so each budget holds exactly where the other does
        if budget <= other or (theirs.b is not None and theirs.b <= 1):
            here = f"; here the budgets are {budget} and {other}" if budget <= other else ""
            return FunctionOrder("yes", f"{because}{here}", order=order)
        here = f"at the realised universe {budget} > {other}"
        return FunctionOrder("no", here, theirs.b, realised=True, order=order)
    if theirs.b is None or mine.b is None:
        return FunctionOrder("unknown", "the value of b at a realised universe is not given", order=order)
    if theirs.b >= 2 and order.first.at(theirs.b) > other:
        here = (
            f"{because}; but the second is {other} at its own realised universe (b = {theirs.b:,}), below its law, and "
            f"the law of the first gives {order.first.at(theirs.b)} there"
        )
        return FunctionOrder("unknown", here, order=order)
    # a first budget above its own law (it was raised) must be met as well, at a universe that may be the second's
    apart = known or (same and mine.b != theirs.b)
    limit = order.second.at(mine.b) if apart else min(order.second.at(mine.b), other)
    if mine.b >= 2 and budget > order.first.at(mine.b) and budget > limit:
        here = (
            f"{because}; but the first is {budget} at its realised universe (b = {mine.b:,}), above its law"
        )
        return FunctionOrder("unknown", here, order=order)
    return FunctionOrder("yes", because, order=order)


def _compare_words(*functions: BudgetFunction) -> FunctionOrder:
    told = "; ".join(dict.fromkeys(function.words for function in functions))
    return FunctionOrder(
        "unknown", f"a budget differs by universe in a way that is known in words only ({told})"
    )


def build_joint_function(
    parts: Sequence[Part],
    output_premetric: OutputPremetric,
    total: Callable[[Sequence[Part]], Budget],
) -> BudgetFunction | None:
    """Return how a composed or converted budget differs by universe; ``total`` gives the budget of parts.

    One part that is not rescaled keeps its law. The sum of several has none, because their b may differ.
    """
    functions = [part.varies for part in parts if part.varies is not None]
    if not functions:
        return None
    one, alone = Budget.of(1), len(parts) == 1 and parts[0].output_premetric == output_premetric
    if alone and total([replace(parts[0], budget=one)]) == one:
        return parts[0].varies

    def bound(side: Literal["least", "most"]) -> Budget:
        return total(
            [replace(p, budget=getattr(p.varies, side)) if p.varies is not None else p for p in parts]
        )

    told = [function.words for function in functions]
    counted = [
        word if told.count(word) == 1 else f"{told.count(word)} times {word}" for word in sorted({*told})
    ]
    opening = "composed of" if len(parts) > 1 else "converted from"
    return BudgetFunction(
        words=f"{opening}: {'; '.join(counted)}",
        universe="; ".join(sorted({function.universe for function in functions})),
        least=bound("least"),
        most=bound("most"),
    )


# What the rules read of a specification.
#
# A specification calls these rules (`+`, `given`, `per`, `implies`), so they cannot import it. They take anything with
# its fields, and give back the same class.


class SpecificationFields(Protocol):
    """The fields of a `Specification` that the rules read; the class says what each of them means."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def domain(self) -> Domain: ...
    @property
    def multiverse(self) -> Multiverse: ...
    @property
    def input_premetric(self) -> InputPremetric: ...
    @property
    def output_premetric(self) -> OutputPremetric: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def evidence(self) -> Evidence: ...
    @property
    def bounds(self) -> tuple[Bound, ...]: ...
    @property
    def untouched(self) -> tuple[str, ...]: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    @property
    def parts(self) -> tuple[Part, ...]: ...
    @property
    def varies(self) -> BudgetFunction | None: ...
    @property
    def measures(self) -> tuple[Margin, ...]: ...
    @property
    def released(self) -> tuple[Margin, ...]: ...
    @property
    def views(self) -> tuple[Margin, ...]: ...
    @property
    def statements(self) -> tuple[Part, ...]: ...


Spec = TypeVar("Spec", bound=SpecificationFields)


# The budget of several parts together, each converted once from its first statement.


def account(
    parts: Sequence[Part],
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    output_premetric: OutputPremetric,
) -> tuple[Budget, tuple[str, ...]]:
    """Return the total budget of all parts under exactly this premetric (its δ included), and the rules used."""
    measure, budget, notes = convert_and_compose(
        parts, domain=domain, multiverse=multiverse, input_premetric=input_premetric, kind=output_premetric
    )
    found = measure.convert(budget, output_premetric)
    if found is None:
        raise make_conversion_error(measure, output_premetric)
    return found, notes


def convert_and_compose(
    parts: Sequence[Part],
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    kind: OutputPremetric,
) -> tuple[OutputPremetric, Budget, tuple[str, ...]]:
    """Convert each part once from its first statement, compose them in a premetric of this kind, and return it.

    Which premetric of the kind that is, its δ, is what the parts add up to.
    """
    statements: list[tuple[OutputPremetric, Budget]] = []
    notes: set[str] = set()
    for part in parts:
        if is_free(part, domain, multiverse):
            tables = ", ".join(table.words() for table in part.measures)
            notes.add(f"noise on what the invariants fix costs nothing: {tables}")
            continue
        constant = find_part_constant(part, input_premetric, domain, multiverse)
        if constant.because:
            notes.add(constant.because)
        statements.append(change_part_unit(part, constant.factor))
    measure, budget = kind.compose_parts(statements)
    return measure, budget, tuple(sorted(notes))


def is_free(part: Part, domain: Domain, multiverse: Multiverse) -> bool:
    """Return whether the invariants determine all that a part is computed from, so that it costs nothing.

    Publishing it costs nothing there (Proposition 1, with noise that does not depend on the data).
    """
    if not part.measures:
        return False
    own = () if part.multiverse is None else part.multiverse.invariants
    return bool(multiverse.refines(Multiverse.of(*part.measures, *own), domain))


def change_part_unit(part: Part, factor: Fraction) -> tuple[OutputPremetric, Budget]:
    """Return the premetric and budget of a part in another unit, valid in every universe where its ε differs."""
    measure, budget = part.output_premetric.scale(part.budget, factor)
    if part.varies is None or factor == 1 or not isinstance(part.output_premetric, Approximate):
        return measure, budget
    # δ·(e^{cε} − 1)/(e^ε − 1) is monotone in ε: it grows for c > 1 and falls for c < 1
    worst = part.varies.most if factor > 1 else part.varies.least
    if not worst.is_finite:
        raise IncompatibleError(
            f"cannot restate {part.input_premetric} with constant {factor}",
            why=f"its ε differs by universe ({part.varies.words}) and has no bound, so no δ is right in all of them",
            fix="state a bound of ε over all universes",
        )
    return part.output_premetric.scale(worst, factor)[0], budget


def find_part_constant(part: Part, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
    """Return the constant from the distance of a part to another, in the universes where the part was stated."""
    source, measure = part.input_premetric, part.output_premetric
    try:
        found = source.constant(to, domain, multiverse)
    except IncompatibleError:
        if not isinstance(source, Neighbours | Exchanges) or part.multiverse is None:
            raise
        # the universes of the part are the larger ones: a path may leave the smaller ones
        if isinstance(source, Exchanges):
            own = source.constant(source.hamming, domain, part.multiverse)
            return own * source.hamming.constant(to, domain, multiverse)
        connected = neighbours_connect(domain, part.multiverse, source.inner)
        if not connected:
            raise
        step = source.inner.constant(to, domain, multiverse)
        found = Constant(Fraction(1), connected.because, along_paths=True) * step
    if found.along_paths and not measure.group_privacy:
        raise IncompatibleError(
            f"cannot restate {source} as {to}",
            why=f"{measure} is not known to have group privacy, so the promise for neighbours stays one for neighbours",
            fix=f"keep {source}, or state the promise under D_mult, D_nor or D_δ",
        )
    return found
