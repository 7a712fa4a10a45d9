"""Audit a promise that rests on noise: run, take the noise of every measured query, and hold it against its claimed law."""

from stirred.assess.audit.gaussian import grouped, judged
from stirred.assess.audit.pairs import repeat_test
from stirred.assess.audit.ratio import measures
from stirred.assess.audit.result import FALSE_ALARM, AuditResult, AuditTest, Outcome
from stirred.assess.audit.sampling import Clock
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import MeasuredNoise
from stirred.spec import NormalizedRenyi

WANTED = 1500  # draws of the rarest law
MOST_RUNS = 2000


def audit_noise(
    mechanism: Mechanism,
    census: Census,
    *,
    runs: int,
    confidence: float,
    key: Key,
    clock: Clock,
    say: Progress,
    shown: bool,
) -> AuditResult:
    """The loss that the measured noise allows, as a multiple of what the account spends on each query."""
    promise = mechanism.specification(census)
    zcdp = isinstance(promise.output_premetric, NormalizedRenyi)
    budget = promise.rho_squared if zcdp else promise.budget
    claimed = float(budget.upper(9))
    found, done = _measured(mechanism, census, runs=runs, key=key, clock=clock, say=say)
    groups = grouped(found)
    tests: list[AuditTest] = []
    least: dict[tuple[str, ...], float] = {}
    for group in groups:
        verdict = judged(group, error=(1 - confidence) / len(groups), alarm=FALSE_ALARM / (len(groups) + 1))
        tests.append(verdict.test)
        least[group.names] = verdict.least
    if groups:
        tests.append(repeat_test(mechanism, census, key=key.bind("repeat")))
    lower = _spent_at_least(found, least) if groups else None
    outcome, reason = _verdict(tests, claimed)
    unit = "rho_squared" if zcdp else "epsilon"
    return AuditResult(
        mechanism=mechanism.name,
        unit="rho_squared" if zcdp else "epsilon",
        claimed=claimed,
        observed_lower=lower,
        exact=None,
        verdict=outcome,
        reason=reason,
        tests=tuple(tests),
        runs=done,
        confidence=confidence,
        measures=measures(mechanism.name, claimed, lower, None, confidence, reason, unit, public=shown),
    )


def _spent_at_least(found: list[MeasuredNoise], least: dict[tuple[str, ...], float]) -> float:
    """What all queries spend together, at least; of a query that is measured in several ways the smallest counts."""
    spent: dict[str, float] = {}
    for one in found:
        spent[one.name] = min(float(one.loss), spent.get(one.name, float("inf")))
    factors = {name: min(factor for names, factor in least.items() if name in names) for name in spent}
    return sum(spent[name] * factors[name] for name in spent)


def _measured(
    mechanism: Mechanism, census: Census, *, runs: int, key: Key, clock: Clock, say: Progress
) -> tuple[list[MeasuredNoise], int]:
    """The noise of as many runs as give enough draws of every law."""
    found: list[MeasuredNoise] = []
    total = min(runs, MOST_RUNS)
    for number in range(total):
        say("noise", number, total)
        made = mechanism.measured_noise(census, key=key.bind("noise", number))
        found += made
        if not made or clock.over or min(len(group.noise) for group in grouped(found)) >= WANTED:
            say("noise", total, total)
            return found, number + 1
    say("noise", total, total)
    return found, total


def _verdict(tests: list[AuditTest], claimed: float) -> tuple[Outcome, str]:
    failed = [test for test in tests if test.outcome == "fail"]
    if failed:
        return "fail", failed[0].finding
    if claimed == float("inf"):
        return "unknown", "no claim: the mechanism promises no finite loss"
    if not tests:
        return "unknown", "the mechanism states neither an exact law nor the law of its noise"
    open_tests = [test for test in tests if test.outcome == "unknown"]
    if open_tests:
        return "unknown", f"{open_tests[0].name}: {open_tests[0].finding}"
    return "pass", "the noise of every measured query follows its claimed law"
