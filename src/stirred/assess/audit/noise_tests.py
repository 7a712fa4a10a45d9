"""Test measured noise against its law, and bound the loss between near data sets from released numbers."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import special

from stirred.assess.audit.datasets import group_variables
from stirred.assess.audit.result import AuditTest
from stirred.assess.audit.sampling import chance_of_deviation, lower_limit, upper_limit
from stirred.census import Census
from stirred.errors import StirredError
from stirred.frames import collect_frame, frame_of
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import identifier_columns
from stirred.mechanisms.release import MEASURE_COLUMNS, Release
from stirred.spec import Specification
from stirred.spec.input_premetrics import RecordPremetric

# Tests of measured noise: its law, and the trade-off between two data sets that it must not exceed.
#
# Two data sets that differ by a shift s of one answer are told apart by noise ≥ t. At each false-positive rate a law
# allows a certain power at most; a Gaussian has the curve of $\mu = s/\sigma$, and $\rho^2 = \mu^2/2$ at sensitivity 1.

Floats = NDArray[np.float64]
NOISE_TRAINING_STEP = 5  # one noise of so many chooses the threshold
QUANTILES_PER_SIDE = 40  # quantiles at which a law is compared, on each side
PASS_LOSS_FACTOR = 1.25  # a pass says that the measured loss is at most this times the claim


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The probabilities of a symmetric law of whole numbers, from −reach to reach."""

    kind: str
    parameter: float

    @property
    def deviation(self) -> float:
        """Return the standard deviation."""
        return sqrt(self._moment(2))

    @property
    def kurtosis(self) -> float:
        """Return the fourth moment over the square of the second."""
        return self._moment(4) / self._moment(2) ** 2

    def _moment(self, order: int) -> float:
        chances, reach = self.chances()
        return float(chances @ np.arange(-reach, reach + 1, dtype=float) ** order)

    def chances(self) -> tuple[Floats, int]:
        """Return the probabilities and the reach, beyond which less than 1e-15 is left."""
        if self.kind == "gaussian":
            reach = int(9 * sqrt(self.parameter) + 12)
            k = np.arange(-reach, reach + 1, dtype=float)
            weights = np.exp(-(k**2) / (2 * self.parameter))
        else:
            reach = int(40 * self.parameter + 12)
            k = np.arange(-reach, reach + 1, dtype=float)
            weights = np.exp(-np.abs(k) / self.parameter)
        return weights / weights.sum(), reach

    def tail_chances(self) -> tuple[Floats, int]:
        """Return P(noise ≥ k) for k from −reach to reach, and the reach."""
        chances, reach = self.chances()
        return np.asarray(np.cumsum(chances[::-1])[::-1]), reach

    def power(self, level: float, shift: int) -> float:
        """Return the largest power at a false-positive rate between the law and the law shifted by ``shift``.

        >>> round(NoiseLaw("gaussian", 100.0).power(0.05, 10), 3)
        0.26
        """
        tail, _ = self.tail_chances()
        padded = np.concatenate([np.ones(shift), tail])[: len(tail)]  # P(noise ≥ k − shift)
        order = slice(None, None, -1)
        return float(np.interp(level, np.r_[0.0, tail[order]], np.r_[0.0, padded[order]]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseGroup:
    """All noise of queries with one claimed law."""

    names: tuple[str, ...]
    law: NoiseLaw
    noise: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNoise:
    """The noise of one query in some runs, with its claimed law."""

    name: str
    kind: str
    parameter: float
    noise: NDArray[np.int64]


def group_noise(measured: Sequence[SeenNoise]) -> list[NoiseGroup]:
    """Group the noise of all runs by claimed law."""
    found: dict[tuple[str, float], list[SeenNoise]] = {}
    for one in measured:
        found.setdefault((one.kind, one.parameter), []).append(one)
    return [
        NoiseGroup(
            names=tuple(dict.fromkeys(one.name for one in some)),
            law=NoiseLaw(*law),
            noise=np.concatenate([one.noise.ravel() for one in some]),
        )
        for law, some in found.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseJudgement:
    """The loss that one group of noise shows, as a multiple of the claim, from below and from above."""

    test: AuditTest
    least: float
    most: float
    surely: float = 0.0  # as least, at the probability of a false alarm


def judge_group(group: NoiseGroup, *, error: float, alarm: float) -> NoiseJudgement:
    """Compare the noise with its law, and bound the loss by a trade-off at one threshold, chosen on other noise."""
    first = len(group.noise) // NOISE_TRAINING_STEP
    training, fresh = group.noise[:first], group.noise[first:]
    name = "noise of " + ", ".join(group.names[:3]) + (", …" if len(group.names) > 3 else "")
    if len(training) < 20:
        told = f"only {len(group.noise)} draws were seen"
        test = AuditTest(name=name, part="noise", outcome="unknown", finding=told)
        return NoiseJudgement(test=test, least=0.0, most=np.inf)
    shift = max(round(group.law.deviation), 1)
    threshold = _choose_noise_threshold(training, shift)
    hits, others = int((fresh >= threshold - shift).sum()), int((fresh >= threshold).sum())

    def sides(risk: float) -> tuple[float, float]:
        return float(lower_limit(hits, len(fresh), risk / 2)), float(
            upper_limit(others, len(fresh), risk / 2)
        )

    least = _loss_factor(group.law, *sides(error), shift)
    p, q = sides(alarm / 2)
    surely = _loss_factor(group.law, p, q, shift)
    allowed = group.law.power(q, shift)
    unlike = _law_p_value(fresh, group.law)
    most = _largest_factor(group, error)
    spread = float(np.sqrt(np.mean(fresh.astype(float) ** 2)))
    told = (
        f"{len(fresh):,} draws have the standard deviation {spread:.3g} (claimed {group.law.deviation:.3g}); "
        f"the loss is at least {least:.3f} and at most {most:.3f} times the claimed one"
    )
    if p > allowed:
        told += f"; a shift of {shift} is seen with power {p:.3f} at level {q:.3f}, where the claim allows {allowed:.3f}"
    elif unlike < alarm / 2:
        told += f"; the draws do not follow the claimed law (p < {max(unlike, 1e-300):.1e})"
    failed = p > allowed or unlike < alarm / 2
    enough = most <= PASS_LOSS_FACTOR
    outcome = AuditTest(
        name=name, part="noise", outcome="fail" if failed else "pass" if enough else "unknown", finding=told
    )
    return NoiseJudgement(test=outcome, least=least, most=most, surely=surely)


def _choose_noise_threshold(training: NDArray[np.int64], shift: int) -> int:
    """Choose the threshold with the largest distance of probits on training noise."""
    points = np.unique(np.round(np.quantile(training, np.linspace(0.2, 0.8, 25)))).astype(int) + shift // 2
    n = len(training)
    p = np.array([(np.count_nonzero(training >= t - shift) + 0.5) / (n + 1) for t in points])
    q = np.array([(np.count_nonzero(training >= t) + 0.5) / (n + 1) for t in points])
    spread = np.sqrt(p * (1 - p) + q * (1 - q)) / sqrt(n)
    return int(points[int(np.argmax(special.ndtri(p) - special.ndtri(q) - 2 * spread))])


def _loss_factor(law: NoiseLaw, power: float, level: float, shift: int) -> float:
    """Return the loss of the law of this kind that just allows such a power, over the claimed loss."""

    def excess(factor: float) -> float:
        narrower = law.parameter / factor
        return NoiseLaw(law.kind, narrower).power(level, shift) - power

    low, high = 1e-3, 1e3
    if excess(low) > 0:
        return 0.0
    return _bisect_root(excess, low, high)


def _bisect_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Find where a rising function is 0, by bisection of the logarithm."""
    for _ in range(60):
        middle = sqrt(low * high)
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return low


def _largest_factor(group: NoiseGroup, error: float) -> float:
    """Return the largest loss, as a multiple, of a law of this kind that fits such a variance."""
    n = len(group.noise)
    spread = float(special.ndtri(1 - error)) * sqrt((group.law.kurtosis - 1) / n)
    smallest = float(np.mean(group.noise.astype(float) ** 2)) / (1 + spread)
    if smallest <= 0:
        return float("inf")
    return _bisect_root(
        lambda factor: smallest - NoiseLaw(group.law.kind, group.law.parameter / factor).deviation ** 2,
        1e-3,
        1e3,
    )


def _law_p_value(noise: NDArray[np.int64], law: NoiseLaw) -> float:
    """Return the p-value, with a union bound, of exact binomial tests of events noise ≤ k and |noise| ≥ k."""
    tail, reach = law.tail_chances()
    at = np.arange(-reach, reach + 1)
    below = 1 - np.r_[tail[1:], 0.0]
    ks = np.unique(
        at[np.minimum(np.searchsorted(below, np.linspace(0.01, 0.99, QUANTILES_PER_SIDE)), len(at) - 1)]
    )
    ts = np.unique(
        np.minimum(np.ceil(np.linspace(0.0, 6.5, QUANTILES_PER_SIDE)[1:] * law.deviation), reach).astype(int)
    )
    hits = [np.count_nonzero(noise <= k) for k in ks] + [np.count_nonzero(np.abs(noise) >= t) for t in ts]
    chances = [below[k + reach] for k in ks] + [2 * tail[t + reach] if t else 1.0 for t in ts]
    values = chance_of_deviation(hits, len(noise), np.clip(chances, 0.0, 1.0))
    outside = np.count_nonzero(np.abs(noise) > reach)
    return 0.0 if outside else float(values.min()) * len(values)


# Make pairs of data sets near each other, and see how far released numbers tell them apart.
#
# A pair differs in some records of the protected type, with equal invariants. Two things are computed of it. The
# shift: true numbers of one data set minus those of the other, held against the claimed noise; this is the loss, if
# the noise is as claimed. And a bound that believes nothing: many runs on both, a weighted sum of all released numbers
# that was learned on some of the runs, and the chance that it lies above a threshold on the others.

TARGET_SHIFT = (
    1.5  # √(2ρ²)·d or ε·d: as far apart as a claim of this size allows, runs say most about the loss
)
RUN_TRAINING_STEP = 3  # one run of so many teaches the weights and the threshold
MIN_DEVIATIONS = 2.5  # deviations by which a number must differ in training to get a weight
MAX_RECORDS_CHANGED = 64
Loss = Callable[[float, float], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearSets:
    """Two data sets with equal invariants that differ in some records; their distance is at most ``distance``."""

    one: Census
    other: Census
    distance: int
    what: str


def make_near_sets(
    census: Census, promise: Specification, *, claimed_shift: float, seed: int, pairs: int
) -> Iterator[NearSets]:
    """Yield pairs of a census and a changed one: some records changed, or some variables exchanged.

    ``claimed_shift`` is √(2ρ²) or ε: the smaller it is, the more records differ. Only a record's own variables change;
    which household a person belongs to stays as it is.
    """
    premetric = promise.input_premetric.unrestricted
    if not isinstance(premetric, RecordPremetric) or premetric.record_type not in census.schema.record_types:
        return
    record_type = premetric.record_type
    whole = {
        name: collect_frame(census.scan(name, list(census.columns(name))))
        for name in census.schema.record_types
    }
    frame = whole[record_type]
    record = census.schema.record(record_type)
    hidden = {*identifier_columns(census.schema, record_type), record.weight}
    own = [name for name in frame.columns if name not in hidden]
    if not own or frame.height < 2:
        return
    margins = [margin for invariant in promise.multiverse for margin in invariant.needs()]
    most = 1 if promise.input_premetric.neighbours_only else MAX_RECORDS_CHANGED
    units = 1 if premetric.keeps_number else 2  # a changed record is one taken away and one added
    wanted = min(max(ceil(TARGET_SHIFT / claimed_shift), 1) if claimed_shift > 0 else most, most)
    rng = np.random.default_rng(seed)
    kept = {str(invariant): invariant.tabulate(census) for invariant in promise.multiverse}
    ways: list[tuple[str, list[str]]] = [("", own)]
    ways += [
        (", ".join(block), block)
        for block in group_variables(
            own, [m for m in margins if m.record_type == record_type], census.schema.spine
        )
        if len(block) < len(own)
    ]
    made = 0
    for attempt in range(4 * pairs):
        if made >= pairs:
            return
        what, columns = ways[attempt % len(ways)]
        number = 1 if attempt >= 2 * len(ways) else wanted
        found = (
            _change_records(frame, own, number, rng, mixed=attempt >= len(ways))
            if not what
            else _exchange_variables(frame, columns, own, number, rng)
        )
        if found is None:
            continue
        changed, records = found
        files = {**whole, record_type: changed}
        other = Census(
            schema=census.schema,
            files={name: one.lazy() for name, one in files.items()},
            folder=census.folder,
        )
        try:
            if any(
                not invariant.tabulate(other).equals(kept[str(invariant)]) for invariant in promise.multiverse
            ):
                continue
        except StirredError:
            continue
        made += 1
        told = f"{records} changed" if not what else f"{what} exchanged, {records} records differ"
        yield NearSets(one=census, other=other, distance=records * units, what=told)


def _change_records(
    frame: pl.DataFrame, own: list[str], number: int, rng: np.random.Generator, *, mixed: bool
) -> tuple[pl.DataFrame, int] | None:
    """Give some records the values of one other record: those of the commonest kind, so that shifts add up, or any."""
    kinds = frame.select(pl.struct(own).rank("dense")).to_series().to_numpy()
    common = np.bincount(kinds)
    target = int(rng.integers(frame.height))
    free = np.flatnonzero(kinds != kinds[target])
    if not len(free):
        return None
    order = free[np.lexsort((rng.random(len(free)), kinds[free], -common[kinds[free]]))]
    if mixed:
        order = rng.permutation(free)
    chosen = order[: min(number, len(order))]
    rows = np.arange(frame.height)
    rows[chosen] = target
    return frame.with_columns(frame.select(own)[rows].get_columns()), len(chosen)


def _exchange_variables(
    frame: pl.DataFrame, columns: list[str], own: list[str], number: int, rng: np.random.Generator
) -> tuple[pl.DataFrame, int] | None:
    """Exchange some variables between pairs of records that differ in them and in others."""
    rest = [name for name in own if name not in columns]
    a = frame.select(pl.struct(columns).rank("dense")).to_series().to_numpy()
    b = frame.select(pl.struct(rest).rank("dense")).to_series().to_numpy()
    first = int(rng.integers(frame.height))
    different = np.flatnonzero((a != a[first]) & (b != b[first]))
    if not len(different):
        return None
    second = int(rng.choice(different))
    ones = np.flatnonzero((a == a[first]) & (b == b[first]))
    others = np.flatnonzero((a == a[second]) & (b == b[second]))
    count = min(max(number // 2, 1), len(ones), len(others))
    rows = np.arange(frame.height)
    rows[ones[:count]], rows[others[:count]] = others[:count], ones[:count]
    return frame.with_columns(frame.select(columns)[rows].get_columns()), 2 * count


def collect_numbers(mechanism: Mechanism, release: Release) -> dict[Hashable, float]:
    """Return every number of a release by its place: each cell of each table, and counts of values."""
    found: dict[Hashable, float] = {}
    for name, table in release.tables.items():
        keys = key_columns(mechanism, release, name)
        texts = (
            list(zip(*(_texts(table, key) for key in keys), strict=True)) if keys else [()] * table.num_rows
        )
        for column in table.column_names:
            if column not in keys and _is_number(table, column):
                for key, value in zip(texts, table[column].to_pylist(), strict=True):
                    found[name, column, key] = float(value) if value is not None else 0.0
    for record_type in release.microdata:
        frame = release.to_polars(record_type)
        for column in frame.columns:
            if column not in identifier_columns(release.schema, record_type):
                counts = frame.select(pl.col(column).cast(pl.String).fill_null("")).to_series().value_counts()
                for value, count in counts.rows():
                    found[record_type, column, value] = float(count)
    return found


def key_columns(mechanism: Mechanism, release: Release, name: str) -> list[str]:
    """Return the variables of a table: those it counts by, else the columns that hold no numbers."""
    counted = mechanism.list_own_tables(release).get(name)
    table = release.tables[name]
    if counted is not None:
        measures = [column for column in table.column_names if column not in counted]
        if all(_is_number(table, column) for column in measures):
            return list(counted)
    return [
        column
        for column in table.column_names
        if column not in MEASURE_COLUMNS and not _is_number(table, column)
    ]


def _is_number(table: pa.Table, column: str) -> bool:
    kind = table.schema.field(column).type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _texts(table: pa.Table, column: str) -> list[str]:
    return (
        frame_of(table.select([column]))
        .select(pl.col(column).cast(pl.String).fill_null(""))
        .to_series()
        .to_list()
    )


@dataclass(slots=True)
class NumberRuns:
    """The released numbers of many runs on the two data sets of a pair."""

    pair: NearSets
    sides: tuple[list[dict[Hashable, float]], list[dict[Hashable, float]]] = field(
        default_factory=lambda: ([], [])
    )

    @property
    def fewest(self) -> int:
        """Return the runs on the data set that has fewer."""
        return min(len(side) for side in self.sides)

    def matrices(self, places: Sequence[Hashable] | None = None) -> tuple[list[Hashable], Floats, Floats]:
        """Return the numbers as one row for each run; 0 where a number was not released."""
        if places is None:
            places = list(dict.fromkeys(place for side in self.sides for run in side for place in run))
        first, second = (
            np.array([[run.get(place, 0.0) for place in places] for run in side]).reshape(-1, len(places))
            for side in self.sides
        )
        return list(places), first, second


def neighbours_test(
    runs: NumberRuns, claimed: float, loss: Loss, *, unit: str, error: float, alarm: float
) -> AuditTest:
    """Bound the loss of a pair from below by one event of released numbers: nothing that the mechanism states is used."""
    name = f"runs on neighbours ({runs.pair.what})"
    start = runs.fewest // RUN_TRAINING_STEP
    if start < 5:
        told = f"only {runs.fewest} runs on each of two data sets ended in time"
        return AuditTest(name=name, part="sensitivity", outcome="unknown", finding=told)
    _, one, other = runs.matrices()
    weights = _weights(one[:start], other[:start])
    scores = [one @ weights, other @ weights]
    event = _choose_threshold(scores[0][:start], scores[1][:start], loss, error)
    fresh = [score[start:] for score in scores]

    def bound(risk: float) -> float:
        if event is None:
            return 0.0
        threshold, upward, swapped = event
        first, second = (fresh[1], fresh[0]) if swapped else (fresh[0], fresh[1])
        hits, others = (
            int(np.count_nonzero(score >= threshold if upward else score <= threshold))
            for score in (first, second)
        )
        low = float(lower_limit(hits, len(first), risk / 2))
        return loss(low, float(upper_limit(others, len(second), risk / 2)))

    lower, sure = bound(error), bound(alarm)
    told = (
        f"{len(fresh[0])} and {len(fresh[1])} runs on two data sets at distance {runs.pair.distance} show a loss {unit} "
        f"of at least {lower:.4f} per unit"
    )
    if sure > claimed:
        told += ", above the claim"
        return AuditTest(name=name, part="sensitivity", outcome="fail", finding=told, lower=lower, sure=sure)
    return AuditTest(name=name, part="sensitivity", outcome="unknown", finding=told, lower=lower, sure=sure)


def _weights(one: Floats, other: Floats) -> Floats:
    """Return weights of a sum that separates the training runs: the shift over the variance."""
    shift = other.mean(axis=0) - one.mean(axis=0)
    variance = (one.var(axis=0) + other.var(axis=0)) / 2
    floor = 1e-6 * max(float(np.abs(shift).max(initial=0.0)), 1e-12) ** 2  # of numbers without noise
    score = np.abs(shift) / np.sqrt((variance + floor) * 2 / len(one))
    kept = score >= min(MIN_DEVIATIONS, float(score.max(initial=0.0)))
    return np.where(kept, shift / (variance + floor), 0.0)


def _choose_threshold(
    one: Floats, other: Floats, loss: Loss, error: float
) -> tuple[float, bool, bool] | None:
    """Choose the threshold with the largest bound on training runs, its side and its data set."""
    points = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0.01, 0.99, 60)))
    best: tuple[float, tuple[float, bool, bool]] | None = None
    for point in points.tolist():
        for upward in (True, False):
            for swapped in (True, False):
                first, second = (other, one) if swapped else (one, other)
                hits, others = (
                    int(np.count_nonzero(score >= point if upward else score <= point))
                    for score in (first, second)
                )
                low = float(lower_limit(hits, len(first), error / 2))
                value = loss(low, float(upper_limit(others, len(second), error / 2)))
                # without a bound on few runs: the smoothed difference of the two shares
                value = value or 1e-6 * (hits / len(first) - others / len(second))
                if best is None or value > best[0]:
                    best = (value, (point, upward, swapped))
    return best[1] if best is not None else None


def shift_loss(kind: str, parameter: float, shift: Floats) -> float:
    """Return the loss between two data sets whose true numbers differ by a shift, under a law of noise.

    >>> shift_loss("gaussian", 2.0, np.array([1.0, -1.0])), shift_loss("geometric", 2.0, np.array([1.0, -1.0]))
    (0.5, 1.0)
    """
    if kind == "gaussian":
        return float((shift**2).sum()) / (2 * parameter)
    return float(np.abs(shift).sum()) / parameter


def are_sums_of(covered: Floats, others: Floats) -> bool | None:
    """Return whether numbers are fixed weighted sums of others in all runs; None where runs are too few.

    >>> rng = np.random.default_rng(1)
    >>> noisy = rng.normal(size=(50, 3))
    >>> are_sums_of(noisy, noisy.sum(axis=1, keepdims=True) + 2), are_sums_of(noisy, rng.normal(size=(50, 1)))
    (True, False)
    """
    design = np.hstack([covered, np.ones((len(covered), 1))])
    if len(design) < design.shape[1] + 10:
        return None
    solution, *_ = np.linalg.lstsq(design, others, rcond=None)
    scale = max(sqrt(float((others**2).mean())), 1.0)
    return bool(np.abs(design @ solution - others).max(initial=0.0) < 1e-6 * scale)
