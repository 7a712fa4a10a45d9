r"""From prior to posterior for noisy counts: what an attacker believes about a count before and after its publication.

The belief in a true count c after the noisy number x is proportional to prior(c) · noise(x − c), over the counts that the
invariants allow. What is said of counts is absolute risk. What one record does to the odds of two neighbouring counts is
relative risk, and a budget bounds it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from stirred.assess.attack.result import AttackResult
from stirred.assess.log_gamma import log_gamma
from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.errors import InputError
from stirred.frames import series_of

Floats = NDArray[np.float64]
REACH_DEVIATIONS = 9  # standard deviations of noise that are weighed
MAX_BOUND_WIDTH = 100_000  # bounds within which a prior is summed
CHUNK_NUMBERS = 4_000_000  # numbers held at once


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNoise:
    """Noise whose law is public: Gaussian (σ, also discrete) or two-sided geometric (ε per record)."""

    law: str  # "gaussian" or "geometric"
    scale: float  # σ, or 1/ε

    def __post_init__(self) -> None:
        if self.law not in ("gaussian", "geometric") or not self.scale > 0:
            raise InputError(
                f"{self.law} noise of scale {self.scale} is not known",
                why="the law is gaussian or geometric, and the scale is above 0",
                fix='KnownNoise(law="gaussian", scale=3.0)',
            )

    def log_weight(self, gap: Floats) -> Floats:
        """Return the logarithm of the probability of the noise, up to a constant."""
        return -(gap**2) / (2 * self.scale**2) if self.law == "gaussian" else -np.abs(gap) / self.scale

    @property
    def reach(self) -> int:
        """Return the largest gap that is weighed; a geometric tail is longer than a Gaussian one."""
        return int(np.ceil(REACH_DEVIATIONS * self.scale * (1 if self.law == "gaussian" else 3))) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """An attacker's belief before the release: a name for the report, and the log weight of each count."""

    name: str
    log_weight: Callable[[Floats], Floats]


def uniform() -> Prior:
    """Return the prior under which all counts are equally likely."""
    return Prior(name="every count is equally likely", log_weight=np.zeros_like)


def poisson(mean: float) -> Prior:
    """Return a Poisson prior, for an attacker who knows the average count.

    >>> float(poisson(2.0).log_weight(np.array([3.0]))[0].round(4))
    -1.7123
    """
    return Prior(
        name=f"counts are Poisson with mean {mean:g}",
        log_weight=lambda c: c * np.log(mean) - mean - log_gamma(c + 1),
    )


def posterior_counts(
    noisy: ArrayLike,
    noise: KnownNoise,
    prior: Prior,
    *,
    low: ArrayLike = 0,
    high: ArrayLike | None = None,
) -> pl.DataFrame:
    """Return the likeliest true count of each noisy count and its chance, within the given bounds.

    >>> noise = KnownNoise(law="geometric", scale=0.5)
    >>> posterior_counts([3, 8], noise, uniform(), high=[3, 20])["chance"].round(3).to_list()
    [0.865, 0.762]
    """
    x = np.atleast_1d(np.asarray(noisy, np.float64))
    least = np.broadcast_to(np.asarray(low, np.float64), x.shape)
    most = np.broadcast_to(np.asarray(np.inf if high is None else high, np.float64), x.shape)
    if np.any(most < least):
        raise InputError(
            "the bounds of a count exclude every value",
            why="the smallest value is above the largest",
            fix="take both from the same invariants",
        )
    offsets = np.arange(-noise.reach, noise.reach + 1, dtype=np.float64)
    parts = [
        _posterior(x[i : i + step], least[i : i + step], most[i : i + step], offsets, noise, prior)
        for step in [max(1, CHUNK_NUMBERS // offsets.size)]
        for i in range(0, x.size, step)
    ]
    likeliest, chance, mean, exact = (np.concatenate(found) for found in zip(*parts, strict=True))
    columns = {"noisy": x, "low": least, "high": most, "likeliest": likeliest, "chance": chance, "mean": mean}
    return pl.DataFrame({name: series_of(values) for name, values in {**columns, "implied": exact}.items()})


def _posterior(
    x: Floats, least: Floats, most: Floats, offsets: Floats, noise: KnownNoise, prior: Prior
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    # the window lies around the noisy count, moved into the bounds
    centre = np.clip(np.round(x), least, most)
    counts = centre[:, None] + offsets[None, :]
    allowed = (counts >= least[:, None]) & (counts <= most[:, None])
    weights = noise.log_weight(x[:, None] - counts) + _weigh_counts(prior, counts)
    weights = np.where(allowed, weights, -np.inf)
    chances = np.exp(weights - _log_sum(weights)[:, None])
    best = chances.argmax(axis=1)
    rows = np.arange(x.size)
    mean = (chances * np.where(allowed, counts, 0)).sum(axis=1)
    return counts[rows, best], chances[rows, best], mean, least == most


def _weigh_counts(prior: Prior, counts: Floats) -> Floats:
    """Return the prior weight of each count; each whole number is weighed once where that is less work."""
    first, last = counts.min(initial=np.inf), counts.max(initial=-np.inf)
    if not last - first < counts.size or not np.array_equal(counts[:, 0], np.rint(counts[:, 0])):
        return prior.log_weight(np.maximum(counts, 0))
    once = prior.log_weight(np.maximum(np.arange(first, last + 1), 0))
    found: Floats = once[(counts - first).astype(np.int64)]
    return found


def prior_to_posterior(
    noisy: ArrayLike,
    noise: KnownNoise,
    *,
    priors: Sequence[Prior] = (),
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    about: str = "counts",
) -> AttackResult:
    """Measure how sure the best guess of each count is, by prior, with and without the invariants' bounds.

    ``low`` and ``high`` are the bounds from the invariants (see ``frechet_bounds``). With the ``truth`` it is also said how many of
    the best guesses are right; all else is computed from what is published.
    """
    measures: list[RiskMeasure] = []
    tables: dict[str, pl.DataFrame] = {}
    x = np.atleast_1d(np.asarray(noisy, np.float64))
    for prior in priors or (uniform(),):
        cases: list[tuple[str, ArrayLike, ArrayLike | None]] = [(name_measure("case.without"), 0.0, None)]
        if low is not None or high is not None:
            cases.append((name_measure("case.with"), 0.0 if low is None else low, high))
        for words, least, most in cases:
            found = posterior_counts(x, noise, prior, low=least, high=most)
            before = _prior_chance(found, prior)
            tables[f"{prior.name}, {words}"] = found
            measures.append(
                RiskMeasure(
                    name=name_measure("count_guess", case=words),
                    about=f"{about}, if {prior.name}",
                    kind="absolute",
                    value=float(found["chance"].to_numpy().mean()),
                    unit="share",
                    public=True,
                    baselines=() if before is None else (Baseline(name="before the release", value=before),),
                )
            )
            if truth is not None:
                right = np.asarray(truth) == found["likeliest"].to_numpy()
                measures.append(
                    RiskMeasure(
                        name=name_measure("count_found", case=words),
                        about=f"{about}, if {prior.name}",
                        kind="absolute",
                        value=float(right.mean()),
                        unit="share",
                    )
                )
    measures.append(_one_record(noise, about))
    return AttackResult(measures=tuple(measures), tables=tables)


def _log_sum(weights: Floats) -> Floats:
    """Return the logarithm of a sum of weights that are given by their logarithms, along the last axis."""
    top = weights.max(axis=-1)
    found: Floats = top + np.log(np.exp(weights - top[..., None]).sum(axis=-1))
    return found


def _prior_chance(found: pl.DataFrame, prior: Prior) -> float | None:
    """Return the chance of the best guess without the noisy number, if the bounds leave finitely many counts."""
    spans = found.select("low", "high").unique()
    widths = (spans["high"] - spans["low"]).to_numpy()
    if not np.isfinite(widths).all() or widths.max() > MAX_BOUND_WIDTH:
        return None
    best = {}
    for least, most in spans.iter_rows():
        weights = prior.log_weight(np.arange(least, most + 1))
        best[least, most] = float(np.exp(weights.max() - _log_sum(weights)))
    return float(np.mean([best[pair] for pair in found.select("low", "high").iter_rows()]))


def _one_record(noise: KnownNoise, about: str) -> RiskMeasure:
    """Measure how far one record moves the odds of two neighbouring counts."""
    pure = noise.law == "geometric"
    value = 1 / noise.scale if pure else (2 * 1.96 * noise.scale + 1) / (2 * noise.scale**2)
    return RiskMeasure(
        name=name_measure("count_odds"),
        about=about,
        kind="relative",
        value=value,
        unit="epsilon",
        confidence=1.0 if pure else 0.95,
        public=True,
        reason="" if pure else "exceeded with a chance of at most 0.05",
    )


def frechet_bounds(rows: ArrayLike, columns: ArrayLike, total: ArrayLike) -> tuple[Floats, Floats]:
    """Return the bounds of counts whose two margins and total are exact.

    >>> low, high = frechet_bounds([4, 1], [3, 3], 5)
    >>> low.tolist(), high.tolist()
    ([2.0, 0.0], [3.0, 1.0])
    """
    r, c, n = (np.asarray(given, np.float64) for given in (rows, columns, total))
    return np.maximum(0.0, r + c - n), np.minimum(r, c)
