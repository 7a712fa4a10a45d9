"""Budgets that are functions of the universe: compared for every universe at once, and composed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from stirred.spec.algebra.statement import BudgetFunction, Part
from stirred.spec.laws.order import LawOrder, Run, compare_laws, find_first
from stirred.spec.laws.sizes import SizeLaw
from stirred.spec.laws.stratum import LargestStratum
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import OutputPremetric

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


__all__ = [
    "BudgetFunction",
    "FunctionOrder",
    "LargestStratum",
    "LawOrder",
    "PlainPromise",
    "Promise",
    "SizeLaw",
    "build_joint_function",
    "compare_functions",
    "compare_laws",
]
