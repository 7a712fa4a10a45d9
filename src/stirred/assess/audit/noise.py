"""Audit a promise that rests on noise, from what is released: noise, sensitivity, order and texts, each by itself.

The noise of a query is its released numbers minus true ones, which the audit tabulates from the invented census or takes
from a run of the same mechanism without noise. Nothing is taken from what the mechanism reports about its own noise but
the law that it claims: a report can fail, and cannot pass.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf, sqrt

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from stirred.assess.audit.noise_tests import (
    NearSets,
    NoiseJudgement,
    NumberRuns,
    SeenNoise,
    are_sums_of,
    collect_numbers,
    group_noise,
    judge_group,
    key_columns,
    make_near_sets,
    neighbours_test,
    shift_loss,
)
from stirred.assess.audit.pairs import LeavingRuns, leaving_tests, repeat_test
from stirred.assess.audit.ratio import loss_measures
from stirred.assess.audit.result import (
    BY_NOISE,
    FALSE_ALARM_PROBABILITY,
    AuditResult,
    AuditTest,
    Outcome,
    decide,
)
from stirred.assess.audit.sampling import Clock, ratio_loss, renyi_loss
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Progress
from stirred.errors import StirredError
from stirred.frames import frame_of
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import MeasuredNoise, PublicParts, collect_public_parts
from stirred.mechanisms.release import Release
from stirred.spec import Multiplicative, NormalizedRenyi, Specification

WANTED_DRAWS = 1500  # draws of the rarest law
MAX_RUNS = 2000
RUNS_PER_PAIR = 40  # one pair of runs on neighbours for so many runs that are asked for
MIN_RUNS = 60
COMPARED_RUNS = 40  # runs whose order and texts are compared
MAX_ROWS = 10_000  # of all these runs
NEAR_PAIRS = 40  # of near data sets whose shift is computed
MAX_CELLS = 300  # numbers whose noise is compared pair by pair
SHIFT_TOLERANCE = 1 + 1e-9  # floats compute the loss of a shift
Ints = NDArray[np.int64]


@dataclass(slots=True)
class NoiseInquiry:
    """The state of one audit of noise."""

    mechanism: Mechanism
    promise: Specification
    census: Census
    key: Key
    clock: Clock
    say: Progress
    runs: int
    confidence: float
    pairs: list[NearSets] = field(default_factory=list)
    seen: list[SeenNoise] = field(default_factory=list)  # released minus true numbers
    tests: list[AuditTest] = field(default_factory=list)
    done: int = 0

    @property
    def zcdp(self) -> bool:
        """Return whether the loss is ρ²; else it is ε."""
        return isinstance(self.promise.output_premetric, NormalizedRenyi)

    @property
    def claimed_loss(self) -> float:
        """Return the claimed loss per unit."""
        budget = self.promise.rho_squared if self.zcdp else self.promise.budget
        return float(budget.upper(9))

    def per_unit(self, loss: float, distance: int) -> float:
        """Convert the loss of a pair to a loss per unit: ρ² grows with the square of the distance."""
        return loss / (distance**2 if self.zcdp else distance)


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
    """Compare noise with its law, shifts of true numbers with it, and what runs on neighbours show with the claim."""
    promise = mechanism.specification(census)
    inquiry = NoiseInquiry(mechanism, promise, census, key, clock, say, runs, confidence)
    claims = list(mechanism.measured_noise(census, key=key.bind("noise", 0)))
    stated = isinstance(promise.output_premetric, (NormalizedRenyi, Multiplicative))
    if stated and inquiry.claimed_loss < inf:
        shift = sqrt(2 * inquiry.claimed_loss) if inquiry.zcdp else inquiry.claimed_loss
        found = make_near_sets(census, promise, claimed_shift=shift, seed=1, pairs=NEAR_PAIRS)
        inquiry.pairs = _releasable_pairs(inquiry, list(found))
    if claims or inquiry.pairs:
        _compare_runs(inquiry, claims)
    lowers = [test.lower for test in inquiry.tests if test.lower is not None]
    lower = max(lowers) if lowers else None
    claimed = inquiry.claimed_loss
    outcome, reason = decide(inquiry.tests, BY_NOISE, claimed)
    if not inquiry.tests and claimed < inf:
        reason = "the mechanism states neither an exact law nor the law of its noise, and no neighbouring data set was made"
    unit = "rho_squared" if inquiry.zcdp else "epsilon"
    return AuditResult(
        mechanism=mechanism.name,
        unit="rho_squared" if inquiry.zcdp else "epsilon",
        claimed=claimed,
        observed_lower=lower,
        exact=None,
        verdict=outcome,
        reason=reason,
        tests=tuple(inquiry.tests),
        needed=BY_NOISE,
        runs=inquiry.done,
        confidence=confidence,
        measures=loss_measures(mechanism.name, claimed, lower, None, confidence, reason, unit, public=shown),
    )


def _releasable_pairs(inquiry: NoiseInquiry, pairs: list[NearSets]) -> list[NearSets]:
    """Return the pairs from the first one whose second data set the mechanism accepts."""
    for start, pair in enumerate(pairs[:4]):
        try:
            inquiry.mechanism.release(pair.other, key=inquiry.key.bind("trial", start))
        except StirredError:
            continue
        return pairs[start:]
    return []


@dataclass(slots=True)
class _Truths:
    """True numbers of one data set: counts that are tabulated here, or those of a run without noise."""

    mechanism: Mechanism
    census: Census
    claims: Sequence[MeasuredNoise]
    tabulated: dict[tuple[str, tuple[str, ...]], dict[tuple[str, ...], int]] = field(default_factory=dict)
    exact: tuple[Key, dict[Hashable, float]] | None = None  # the numbers of the last run without noise

    def match_claim(
        self, claim: MeasuredNoise, release: Release, key: Key
    ) -> tuple[list[Hashable], Ints, Ints] | None:
        """Return places, released numbers and true numbers of a claim; None where no truth is known."""
        name = claim.table or self._only_table(claim, release)
        if name not in release.tables or claim.column not in release.tables[name].column_names:
            return None
        table = release.tables[name]
        keys = key_columns(self.mechanism, release, name)
        texts: list[tuple[str, ...]] = [()] * table.num_rows
        if keys:
            texts = frame_of(table.select(keys)).select(_as_texts(keys)).rows()
        rows = list(range(table.num_rows)) if claim.rows is None else list(claim.rows)
        values = table[claim.column].to_pylist()
        places: list[Hashable] = [(name, claim.column, texts[row]) for row in rows]
        truth = self._tabulate(claim, keys)
        if truth is not None:
            true = [truth.get(texts[row], 0) for row in rows]
        else:
            twin = self.mechanism.without_noise()
            if twin is None:
                return None
            if self.exact is None or self.exact[0] is not key:
                self.exact = (key, collect_numbers(self.mechanism, twin.release(self.census, key=key)))
            true = [int(self.exact[1].get(place, 0.0)) for place in places]
        return places, np.array([int(values[row]) for row in rows], np.int64), np.array(true, np.int64)

    def _only_table(self, claim: MeasuredNoise, release: Release) -> str:
        """Return the one table of counts that a claim without a table name is about."""
        counted = [*self.mechanism.list_own_tables(release)]
        if len(counted) != 1 or release.tables[counted[0]].num_rows != claim.noise.size:
            return ""
        return counted[0]

    def _tabulate(self, claim: MeasuredNoise, keys: list[str]) -> dict[tuple[str, ...], int] | None:
        record_type = claim.record or self.mechanism.record_type
        at = (record_type, tuple(keys))
        if at in self.tabulated:
            return self.tabulated[at]
        if claim.column != "count" or record_type not in self.census.schema.record_types:
            return None
        if not {*keys} <= {*self.census.columns(record_type)}:
            return None
        frame = frame_of(self.census.counts(record_type, keys))
        texts = frame.select(_as_texts(keys)).rows() if keys else [()]
        self.tabulated[at] = dict(zip(texts, frame["count"].to_list(), strict=True))
        return self.tabulated[at]


def _as_texts(names: Sequence[str]) -> list[pl.Expr]:
    return [pl.col(name).cast(pl.String).fill_null("") for name in names]


def _compare_runs(inquiry: NoiseInquiry, claims: Sequence[MeasuredNoise]) -> None:
    """Run on a pair of near data sets, or on one where none was made, and judge every part."""
    mechanism = inquiry.mechanism
    run_pairs = _pairs_to_run(inquiry.pairs)
    sides = [inquiry.census, *(pair.other for pair in run_pairs)]
    stated = [claims, *(mechanism.measured_noise(one, key=inquiry.key.bind("noise", 0)) for one in sides[1:])]
    truths = [_Truths(mechanism, one, some) for one, some in zip(sides, stated, strict=True)]
    numbers: list[list[dict[Hashable, float]]] = [[] for _ in sides]
    leaving: list[list[PublicParts]] = [[] for _ in sides]
    covered: dict[Hashable, None] = {}
    wanted = min(max(inquiry.runs // RUNS_PER_PAIR, MIN_RUNS), MAX_RUNS, max(inquiry.runs, 1))
    unseen: dict[str, None] = {}
    vectors: list[Ints] = []  # all noise of each run on the first data set
    rows = 0
    drawn: Counter[tuple[str, float]] = Counter()  # by law
    for number in range(max(min(inquiry.runs, MAX_RUNS), wanted)):
        inquiry.say("runs", min(number, wanted), wanted)
        if number and (
            inquiry.clock.is_over
            or (number >= wanted and min(drawn.values(), default=WANTED_DRAWS) >= WANTED_DRAWS)
        ):
            break
        for side, census in enumerate(sides):
            key = inquiry.key.bind("run", side, number)
            made = mechanism.release(census, key=key)
            numbers[side].append(collect_numbers(mechanism, made))
            if number < COMPARED_RUNS or rows < MAX_ROWS:
                leaving[side].append(collect_public_parts(made))
                rows += sum(len(some) for some in leaving[side][-1].rows.values())
            noise: list[Ints] = []
            for claim in stated[side]:
                found = truths[side].match_claim(claim, made, key)
                if found is None:
                    unseen[claim.name] = None
                    continue
                places, released, true = found
                covered |= dict.fromkeys(places)
                noise.append(released - true)
                drawn[claim.kind, float(claim.parameter)] += len(true)
                inquiry.seen.append(
                    SeenNoise(
                        name=claim.name,
                        kind=claim.kind,
                        parameter=float(claim.parameter),
                        noise=released - true,
                    )
                )
            if side == 0 and noise:
                vectors.append(np.concatenate(noise))
        inquiry.done += 1
    inquiry.say("runs", wanted, wanted)
    reported = [claim for claim in claims if claim.name in unseen]
    if reported:
        inquiry.seen = [one for one in inquiry.seen if one.name not in unseen]
    factors = _judge_noise(inquiry, reported)
    if vectors and len({len(one) for one in vectors}) == 1:
        inquiry.tests.append(independence_test(np.array(vectors), alarm=FALSE_ALARM_PROBABILITY / 8))
    if inquiry.pairs:
        made_runs = [NumberRuns(pair, (numbers[0], numbers[i + 1])) for i, pair in enumerate(run_pairs)]
        _judge_sensitivity(inquiry, claims, made_runs, list(covered), factors, reported=bool(reported))
        nearest = len(
            run_pairs
        )  # what has no noise is seen best at a small distance, where the claim allows least
        tests = leaving_tests(
            LeavingRuns(one=tuple(leaving[0]), other=tuple(leaving[nearest])),
            inquiry.claimed_loss,
            partial(_loss_of_event, inquiry, run_pairs[-1].distance),
            error=(1 - inquiry.confidence) / 2,
            alarm=FALSE_ALARM_PROBABILITY / 8,
        )
        inquiry.tests += tests
    inquiry.tests.append(repeat_test(mechanism, inquiry.census, key=inquiry.key.bind("repeat")))


def _pairs_to_run(pairs: Sequence[NearSets]) -> list[NearSets]:
    """Return the first pair, which shows the noise best, and the nearest one."""
    nearest = min(pairs, key=lambda pair: pair.distance, default=None)
    return [] if nearest is None else [pairs[0], *([nearest] if nearest.distance < pairs[0].distance else [])]


def _loss_of_event(inquiry: NoiseInquiry, distance: int, low: float, high: float) -> float:
    return inquiry.per_unit((renyi_loss if inquiry.zcdp else ratio_loss)(low, high), distance)


def _judge_noise(inquiry: NoiseInquiry, reported: Sequence[MeasuredNoise]) -> dict[str, NoiseJudgement]:
    """Hold noise against its law, query by query; what only the mechanism reports can fail, and cannot pass."""
    names = {claim.name for claim in reported}
    groups = group_noise(inquiry.seen)
    told = group_noise(_collect_reports(inquiry, names)) if names else []
    found: dict[str, NoiseJudgement] = {}
    share = max(len(groups) + len(told), 1)
    for group in groups:
        one = judge_group(
            group, error=(1 - inquiry.confidence) / share, alarm=FALSE_ALARM_PROBABILITY / (8 * share)
        )
        inquiry.tests.append(one.test)
        found |= dict.fromkeys(group.names, one)
    for group in told:
        one = judge_group(
            group, error=(1 - inquiry.confidence) / share, alarm=FALSE_ALARM_PROBABILITY / (8 * share)
        )
        said = f"{one.test.finding}; this noise is what the mechanism reports, not taken from a release"
        outcome: Outcome = "fail" if one.test.outcome == "fail" else "unknown"
        inquiry.tests.append(AuditTest(name=one.test.name, part="noise", outcome=outcome, finding=said))
    return found


def independence_test(noise: Ints, *, alarm: float) -> AuditTest:
    """Test whether the signs of the noise of two numbers agree in half of the runs, pair by pair.

    Noise of a symmetric law agrees in sign with independent noise as a fair coin falls; zeros are left out. Dependence
    that pairs of signs do not show is not found.
    """
    signs = np.sign(noise[:, :MAX_CELLS]).astype(float)
    both = np.abs(signs).T @ np.abs(signs)
    agree = (both + signs.T @ signs) / 2
    above = np.triu_indices(signs.shape[1], 1)
    counts, hits = both[above], agree[above]
    name = "independence"
    if not len(counts) or len(noise) < MIN_RUNS // 2:
        told = f"{len(noise)} runs and {signs.shape[1]} numbers are too few to compare their noise"
        outcome: Outcome = "unknown" if len(counts) else "pass"
        return AuditTest(name=name, part="noise", outcome=outcome, finding=told)
    values = 2 * stats.binom.cdf(np.minimum(hits, counts - hits), counts, 0.5)
    least = float(values.min()) * len(values)
    if least < alarm:
        told = f"the noise of different numbers is not independent (p < {max(least, 1e-300):.1e})"
        return AuditTest(name=name, part="noise", outcome="fail", finding=told)
    told = f"the noise of {signs.shape[1]} numbers agrees in sign as if it were independent, pair by pair"
    return AuditTest(name=name, part="noise", outcome="pass", finding=told)


def _collect_reports(inquiry: NoiseInquiry, names: set[str]) -> list[SeenNoise]:
    """Return the noise that the mechanism reports, of enough runs for every law."""
    found: list[SeenNoise] = []
    for number in range(min(inquiry.runs, MAX_RUNS)):
        made = inquiry.mechanism.measured_noise(inquiry.census, key=inquiry.key.bind("noise", number))
        found += [
            SeenNoise(name=one.name, kind=one.kind, parameter=float(one.parameter), noise=one.noise.ravel())
            for one in made
            if one.name in names
        ]
        groups = group_noise(found)
        if not groups or inquiry.clock.is_over or min(len(group.noise) for group in groups) >= WANTED_DRAWS:
            break
    return found


def _judge_sensitivity(
    inquiry: NoiseInquiry,
    claims: Sequence[MeasuredNoise],
    runs: Sequence[NumberRuns],
    covered: list[Hashable],
    factors: dict[str, NoiseJudgement],
    *,
    reported: bool,
) -> None:
    """Compute the loss of the shifts of many near pairs, and bound that of some from their runs alone."""
    for one in runs:
        inquiry.tests.append(
            neighbours_test(
                one,
                inquiry.claimed_loss,
                partial(_loss_of_event, inquiry, one.pair.distance),
                unit="ρ²" if inquiry.zcdp else "ε",
                error=(1 - inquiry.confidence) / (2 * len(runs)),
                alarm=FALSE_ALARM_PROBABILITY / (8 * len(runs)),
            )
        )
    kinds = {claim.kind for claim in claims}
    if not covered or kinds != {"gaussian" if inquiry.zcdp else "geometric"}:
        return
    inquiry.tests.append(_shifts_test(inquiry, runs[0], covered, factors, reported=reported))


def _shifts_test(
    inquiry: NoiseInquiry,
    runs: NumberRuns,
    covered: list[Hashable],
    factors: dict[str, NoiseJudgement],
    *,
    reported: bool,
) -> AuditTest:
    """Test the largest loss of a shift of true numbers among near pairs."""
    worst = (0.0, 0.0, 0.0, "")
    tried = 0
    for pair in inquiry.pairs:
        found = _measure_shift(inquiry, pair, factors)
        if found is None:
            continue
        tried += 1
        worst = max(worst, (*found, pair.what))
        if inquiry.clock.is_over:
            break
    exact, lower, sure, what = worst
    told = (
        f"the shift of true numbers costs at most {exact:.4f} per unit over {tried} near pairs of data sets"
    )
    if not tried:
        told = "the shift of true numbers between near data sets is not known"
        return AuditTest(name="shift", part="sensitivity", outcome="unknown", finding=told)
    if exact > inquiry.claimed_loss * SHIFT_TOLERANCE:
        told = f"the shift of true numbers costs {exact:.4f} per unit with the claimed noise, above the claim ({what})"
        return AuditTest(
            name="shift", part="sensitivity", outcome="fail", finding=told, lower=lower, sure=sure
        )
    places, one, other = runs.matrices()
    inside = [place in {*covered} for place in places]
    rest = [not known for known in inside]
    both = np.vstack([one, other])
    follows = True if not any(rest) else are_sums_of(both[:, inside], both[:, rest])
    outcome: Outcome = "pass" if follows and not reported else "unknown"
    if reported:
        told += "; some noise was not taken from a release"
    elif not follows:
        told += f"; {sum(rest):,} released numbers are not among those whose noise is claimed" + (
            "" if follows is None else ", and are no sums of them"
        )
    return AuditTest(
        name="shift",
        part="sensitivity",
        outcome=outcome,
        finding=told,
        lower=lower,
        sure=sure,
    )


def _measure_shift(
    inquiry: NoiseInquiry, pair: NearSets, factors: dict[str, NoiseJudgement]
) -> tuple[float, float, float] | None:
    """Return the loss per unit of a pair's shift: with the claimed noise, and with the measured noise."""
    found: list[dict[str, dict[Hashable, int]]] = []
    key = inquiry.key.bind("shift")
    laws: dict[str, MeasuredNoise] = {}
    for census in (pair.one, pair.other):
        try:
            made = inquiry.mechanism.release(census, key=key)
            claims = inquiry.mechanism.measured_noise(census, key=key)
        except StirredError:
            return None
        truths = _Truths(inquiry.mechanism, census, claims)
        true: dict[str, dict[Hashable, int]] = {}
        for claim in claims:
            taken = truths.match_claim(claim, made, key)
            if taken is None:
                return None
            laws[claim.name] = claim
            true[claim.name] = dict(zip(taken[0], taken[2].tolist(), strict=True))
        found.append(true)
    exact = lower = sure = 0.0
    for name, law in laws.items():
        one, other = found[0].get(name, {}), found[1].get(name, {})
        shift = np.array([other.get(place, 0) - one.get(place, 0) for place in {**one, **other}], float)
        cost = shift_loss(law.kind, float(law.parameter), shift)
        exact += cost
        if name in factors:
            lower += cost * factors[name].least
            sure += cost * factors[name].surely
    return tuple(inquiry.per_unit(cost, pair.distance) for cost in (exact, lower, sure))  # type: ignore[return-value]
