"""Audit a promise of pure DP: the exact loss of a small universe, and bounds from runs on a pair of data sets."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from stirred.assess.audit.datasets import SmallUniverse, enumerate_universe
from stirred.assess.audit.pairs import (
    PairDraws,
    PairOfSets,
    compare_leaving,
    draw_pair,
    law_test,
    one_run_test,
    paired_test,
    repeat_test,
)
from stirred.assess.audit.result import (
    BY_LOSS,
    FALSE_ALARM_PROBABILITY,
    AuditResult,
    AuditTest,
    Part,
    WorstPair,
    decide,
)
from stirred.assess.audit.sampling import (
    Clock,
    Draws,
    choose_event,
    count_draws,
    ratio_loss,
    read_ordered_copies,
)
from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import Content, Law
from stirred.spec import Budget, Specification

# The exact loss of a small universe: $\max |\ln P_x(y) / P_{x'}(y)| \,/\, d(x, x')$ over pairs and outputs, exactly.

LOSS_TOLERANCE = 1e-9  # floats find the candidates, fractions decide among those this near to the largest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactLoss:
    """The largest loss per unit, and where it occurs."""

    budget: Budget
    first: int = 0
    second: int = 0
    output: Content = ()
    distance: int = 0
    chances: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))


def find_exact_loss(
    laws: Sequence[Law], distances: NDArray[np.int64], tick: Callable[[int], None] = lambda _: None
) -> ExactLoss:
    """Return the largest loss per unit among laws at given distances (0: not compared).

    >>> half, third = Fraction(1, 2), Fraction(1, 3)
    >>> laws = [{"a": half, "b": half}, {"a": third, "b": 1 - third}]
    >>> find_exact_loss(laws, np.array([[0, 1], [1, 0]])).budget.exact
    'ln(3/2)'
    """
    outputs = list({output: None for law in laws for output in law})
    logs = np.full((len(laws), len(outputs)), -inf)
    place = {output: i for i, output in enumerate(outputs)}
    for i, law in enumerate(laws):
        for output, chance in law.items():
            if chance:
                logs[i, place[output]] = log(chance.numerator) - log(chance.denominator)
    candidates: list[tuple[float, int, int]] = []
    best = 0.0
    for i in range(len(laws) - 1):
        tick(i)
        with np.errstate(invalid="ignore"):
            gap = np.abs(logs[i + 1 :] - logs[i])
        largest = np.nan_to_num(gap, nan=0.0, posinf=inf).max(axis=1)  # −∞ on both sides: neither can give it
        apart = distances[i, i + 1 :]
        loss = np.where(apart > 0, largest / np.maximum(apart, 1), 0.0)
        best = max(best, float(loss.max(initial=0.0)))
        candidates += [
            (float(loss[j]), i, i + 1 + int(j)) for j in np.flatnonzero(loss >= best * (1 - LOSS_TOLERANCE))
        ]
    if best == 0.0:
        return ExactLoss(budget=Budget.zero())
    found: ExactLoss | None = None
    seen: set[tuple[Fraction, int]] = set()
    for loss_found, i, j in sorted(candidates, key=lambda one: int(distances[one[1], one[2]])):
        if loss_found < best * (1 - LOSS_TOLERANCE):
            continue
        with np.errstate(invalid="ignore"):
            gap = np.nan_to_num(np.abs(logs[i] - logs[j]), nan=0.0, posinf=inf)
        output = outputs[int(gap.argmax())]
        one, other = laws[i].get(output, Fraction(0)), laws[j].get(output, Fraction(0))
        units = int(distances[i, j])
        ratio = Fraction(0) if not one or not other else max(one / other, other / one)
        if (ratio, units) in seen:
            continue
        seen.add((ratio, units))
        budget = Budget.log(ratio) * Fraction(1, units) if ratio else Budget.infinite()
        if found is None or budget > found.budget:
            found = ExactLoss(
                budget=budget, first=i, second=j, output=output, distance=units, chances=(one, other)
            )
    return found or ExactLoss(budget=Budget.zero())


# Audit a promise of pure DP: the exact loss of a small universe, and bounds from runs on a pair of its data sets.

MAX_TESTS = 20  # the false alarms of up to ten tests here, and as many of an audit of noise that may follow
SINGLE_RELEASES = (
    24  # single releases of each data set whose order and texts are compared; more where they say too little
)
SINGLE_SHARE = 0.3  # of the time that is left, for these
TRIAL_SHARE = 0.2
COPIES_COMPARED = 2000  # whose order is compared, where one release has many
PAIRS_TRIED = 6  # pairs that a few runs are made of, to choose the one that is audited
TRIAL_RUNS = 400  # runs for that choice, on each data set


@dataclass(slots=True)
class RatioInquiry:
    """The state of one audit of pure DP."""

    mechanism: Mechanism
    promise: Specification
    universe: SmallUniverse
    confidence: float
    key: Key
    clock: Clock
    say: Progress
    runs: int
    tests: list[AuditTest] = field(default_factory=list)
    made: PairDraws | None = None
    needed: tuple[Part, ...] = BY_LOSS

    @property
    def claimed_loss(self) -> float:
        """Return the claimed loss per unit."""
        return float(self.promise.budget.upper(9))


def audit_ratio(
    mechanism: Mechanism,
    census: Census,
    promise: Specification,
    *,
    runs: int,
    confidence: float,
    methods: Sequence[str],
    key: Key,
    clock: Clock,
    say: Progress,
    shown: bool,
) -> AuditResult:
    """Audit pure DP: the exact loss where the law is known, and what runs on a pair of data sets show."""
    universe = enumerate_universe(census, promise)
    if universe is None or len(universe) < 2:
        return _unknown_result(mechanism, promise, confidence, "no small universe of it can be enumerated")
    inquiry = RatioInquiry(mechanism, promise, universe, confidence, key, clock, say, runs)
    laws = _compute_laws(inquiry) if "exact" in methods else None
    exact = (
        None if laws is None else find_exact_loss(laws, universe.distances(), _ticks(say, "pairs", len(laws)))
    )
    if laws is not None:
        inquiry.needed = ("loss", "law", *(part for part in BY_LOSS if part != "loss"))
    if exact is not None:
        _compare_exact(inquiry, exact)
    if {"sampled", "one-run"} & {*methods}:
        _compare_sampled(inquiry, exact, laws, methods)
    return _result(inquiry, exact, shown=shown)


def _ticks(say: Progress, step: str, total: int) -> Callable[[int], None]:
    return lambda done: say(step, min(done, total), total)


def _compute_laws(inquiry: RatioInquiry) -> list[Law] | None:
    """Return the law of every data set; None where one is not known, or the time is up."""
    found: list[Law] = []
    total = len(inquiry.universe)
    for number in range(total):
        inquiry.say("exact laws", number, total)
        law = (
            None
            if inquiry.clock.is_over
            else inquiry.mechanism.exact_law(inquiry.universe.build_census(number))
        )
        if law is None:
            return None
        found.append(law)
    inquiry.say("exact laws", total, total)
    return found


def _compare_exact(inquiry: RatioInquiry, exact: ExactLoss) -> None:
    sets = f"{len(inquiry.universe):,} data sets"
    if not inquiry.promise.budget.is_finite:
        told = f"the largest loss over pairs of {sets} is {exact.budget} per unit; nothing is claimed"
        inquiry.tests.append(AuditTest(name="exact", outcome="unknown", finding=told))
    elif exact.budget <= inquiry.promise.budget and not inquiry.universe.whole:
        told = f"the largest loss over pairs of {sets} is {exact.budget} per unit; the universe has more"
        inquiry.tests.append(AuditTest(name="exact", outcome="unknown", finding=told))
    elif exact.budget <= inquiry.promise.budget:
        told = f"the largest loss over all pairs of {sets} is {exact.budget} per unit, within the claim"
        inquiry.tests.append(AuditTest(name="exact", outcome="pass", finding=told))
    else:
        told = f"the largest loss over all pairs of {sets} is {exact.budget} per unit, above the claim"
        inquiry.tests.append(AuditTest(name="exact", outcome="fail", finding=told))


def _compare_sampled(
    inquiry: RatioInquiry, exact: ExactLoss | None, laws: list[Law] | None, methods: Sequence[str]
) -> None:
    alarm = FALSE_ALARM_PROBABILITY / MAX_TESTS
    error = (1 - inquiry.confidence) / len({"sampled", "one-run"} & {*methods})
    first, second = _choose_pair(inquiry, exact)
    universe = inquiry.universe
    pair = PairOfSets(
        one=universe.build_census(first),
        other=universe.build_census(second),
        distance=int(universe.distances()[first, second]),
    )
    inquiry.tests.append(repeat_test(inquiry.mechanism, pair.one, key=inquiry.key.bind("repeat")))
    _compare_all_that_leaves(
        inquiry, pair, None if laws is None else (laws[first], laws[second]), error=error, alarm=alarm
    )
    made = draw_pair(
        inquiry.mechanism, pair, key=inquiry.key, runs=inquiry.runs, clock=inquiry.clock, say=inquiry.say
    )
    inquiry.made = made
    if "sampled" in methods:
        support = _support(inquiry, made) if laws is None else list({o: None for law in laws for o in law})
        inquiry.tests.append(
            paired_test(
                made,
                inquiry.claimed_loss,
                error=error,
                alarm=alarm,
                support=support,
                alone=len(universe) == 2,
            )
        )
        if laws is not None:
            for number, seen in ((first, made.fresh[0]), (second, made.fresh[1])):
                inquiry.tests.append(law_test(laws[number], seen, alarm=alarm))
    if "one-run" in methods and not inquiry.clock.is_over:
        test_of_one = one_run_test(
            inquiry.mechanism,
            made,
            inquiry.claimed_loss,
            key=inquiry.key,
            copies=max(inquiry.runs, 2),
            error=error,
            alarm=alarm,
        )
        if test_of_one is not None:
            inquiry.tests.append(test_of_one)


def _compare_all_that_leaves(
    inquiry: RatioInquiry, pair: PairOfSets, laws: tuple[Law, Law] | None, *, error: float, alarm: float
) -> None:
    """Compare single releases of both data sets: their contents with the law, their order and texts with each other."""
    copies = []
    if not inquiry.clock.is_over:
        wanted = min(COPIES_COMPARED, max(inquiry.runs, 2))
        copies = read_ordered_copies(inquiry.mechanism, pair.one, key=inquiry.key, copies=wanted)
    runs, tests = compare_leaving(
        inquiry.mechanism,
        pair.one,
        pair.other,
        inquiry.claimed_loss,
        lambda low, high: ratio_loss(low, high) / pair.distance,
        key=inquiry.key,
        runs=SINGLE_RELEASES,
        clock=inquiry.clock.part(SINGLE_SHARE),
        error=error,
        alarm=alarm,
        copies=copies,
    )
    inquiry.tests += tests
    if laws is not None and copies:  # the runs that were compared with the law are copies in one release
        for law, some in ((laws[0], runs.one), (laws[1], runs.other)):
            seen = Draws(Counter(one.content for one in some), len(some))
            found = law_test(law, seen, alarm=alarm)
            if found.outcome == "fail":
                inquiry.tests.append(found)


def _support(inquiry: RatioInquiry, made: PairDraws) -> list[Content] | None:
    """Return all outputs: the data sets themselves, if each run shows one of them; else None."""
    universe = inquiry.universe
    sets = {universe.texts(number) for number in range(len(universe))}
    seen = {output for draws_of in (*made.training, *made.fresh) for output in draws_of.counts}
    names = {name for output in seen for name, _ in output}
    if not universe.whole or len(names) != 1 or len(seen) == 0:
        return None
    (name,) = names
    outputs: set[Content] = {((name, rows),) for rows in sets}
    return sorted(outputs) if seen <= outputs else None


def _choose_pair(inquiry: RatioInquiry, exact: ExactLoss | None) -> tuple[int, int]:
    """Choose the pair with the largest exact loss; without it the one that a few runs separate best."""
    if exact is not None and exact.distance:
        return exact.first, exact.second
    distances = inquiry.universe.distances()[0]
    near = np.argsort(np.where(distances > 0, distances, np.iinfo(np.int64).max), kind="stable")
    tried = [int(number) for number in near[: min(PAIRS_TRIED, len(near) - 1)]]
    seen: dict[int, Draws] = {}
    clock = inquiry.clock.part(TRIAL_SHARE)
    for number in [0, *tried]:
        own = inquiry.key.bind("trial", number)
        runs = min(TRIAL_RUNS, max(inquiry.runs // 20, 20))
        seen[number] = count_draws(
            inquiry.mechanism, inquiry.universe.build_census(number), key=own, runs=runs, clock=clock
        )
    return 0, max(
        tried, key=lambda number: choose_event(seen[0], seen[number], 0.05)[1] / int(distances[number])
    )


def _result(inquiry: RatioInquiry, exact: ExactLoss | None, *, shown: bool) -> AuditResult:
    claimed, tests = inquiry.claimed_loss, tuple(inquiry.tests)
    lowers = [test.lower for test in tests if test.lower is not None]
    lower = max(lowers) if lowers else None
    verdict, reason = decide(tests, inquiry.needed, claimed)
    value = None if exact is None else float(exact.budget.upper(9))
    return AuditResult(
        mechanism=inquiry.mechanism.name,
        unit="epsilon",
        claimed=claimed,
        observed_lower=lower,
        exact=value,
        exact_text="" if exact is None else exact.budget.exact,
        verdict=verdict,
        reason=reason,
        worst=_worst(inquiry.universe, exact) if exact is not None and shown else None,
        tests=tests,
        needed=inquiry.needed,
        data_sets=len(inquiry.universe),
        runs=0 if inquiry.made is None else inquiry.made.runs,
        confidence=inquiry.confidence,
        measures=loss_measures(
            inquiry.mechanism.name, claimed, lower, value, inquiry.confidence, reason, "epsilon", public=shown
        ),
    )


def _worst(universe: SmallUniverse, exact: ExactLoss) -> WorstPair | None:
    if not exact.distance:
        return None
    return WorstPair(
        columns=universe.columns,
        first=universe.texts(exact.first),
        second=universe.texts(exact.second),
        distance=exact.distance,
        output=exact.output,
        chances=(float(exact.chances[0]), float(exact.chances[1])),
        loss=float(exact.budget.upper(9)),
    )


def loss_measures(
    name: str,
    claimed: float | None,
    lower: float | None,
    exact: float | None,
    confidence: float,
    reason: str,
    unit: str,
    *,
    public: bool = True,
) -> tuple[RiskMeasure, ...]:
    """Return the observed loss as measures of risk beside the claim; public if records were invented."""
    beside = () if claimed is None or claimed == inf else (Baseline(name="claimed", value=claimed),)
    return (
        RiskMeasure(
            name=name_measure("observed", mechanism=name),
            about=name_measure("about.invented"),
            kind="relative",
            value=exact if exact is not None and exact != inf else lower,
            low=lower,
            high=claimed if claimed != inf else None,
            unit=unit,
            confidence=confidence,
            baselines=beside,
            public=public,
            reason=reason,
        ),
    )


def _unknown_result(
    mechanism: Mechanism, promise: Specification, confidence: float, reason: str
) -> AuditResult:
    claimed = float(promise.budget.upper(9))
    told = "no claim: the mechanism promises no finite loss" if claimed == inf else reason
    return AuditResult(
        mechanism=mechanism.name,
        unit="epsilon",
        claimed=claimed,
        observed_lower=None,
        exact=None,
        verdict="unknown",
        reason=told,
        confidence=confidence,
        measures=loss_measures(mechanism.name, claimed, None, None, confidence, told, "epsilon"),
    )
