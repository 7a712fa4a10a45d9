"""Tests of measured noise: its law, and the trade-off between two data sets that it must not exceed.

Two data sets that differ by a shift s of one answer are told apart by noise ≥ t. At each false-positive rate a law allows a
certain power at most; a Gaussian has the curve of $\\mu = s/\\sigma$, and $\\rho^2 = \\mu^2/2$ at sensitivity 1.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from stirred.assess.audit.bounds import chance_of_deviation, lower_limit, upper_limit
from stirred.assess.audit.result import AuditTest

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
