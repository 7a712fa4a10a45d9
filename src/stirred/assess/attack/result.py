"""Define the result of an attack, and compute the intervals of the shares in it."""

from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.risk import RiskMeasure

# Intervals of shares: Wilson's for independent records, a bootstrap of whole areas for records that come in blocks.

Floats = NDArray[np.float64]


def wilson_interval(hits: float, trials: float, *, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a share.

    >>> tuple(round(end, 4) for end in wilson_interval(8, 10))
    (0.4902, 0.9433)
    """
    if trials <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share, room = hits / trials, z * z / trials
    middle = (share + room / 2) / (1 + room)
    half = z * ((share * (1 - share) + room / 4) / trials) ** 0.5 / (1 + room)
    return max(0.0, middle - half), min(1.0, middle + half)


def bootstrap_interval(
    hits: Floats, trials: Floats, *, seed: int, runs: int = 400, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the interval of Σ hits / Σ trials by a bootstrap of whole areas.

    >>> bootstrap_interval(np.array([1.0, 1.0]), np.array([2.0, 2.0]), seed=1)
    (0.5, 0.5)
    """
    draws = np.random.default_rng(seed)
    found = np.full(runs, np.nan)
    for run in range(runs):
        times = (
            np.bincount(draws.integers(0, hits.size, hits.size), minlength=hits.size) if hits.size else hits
        )
        whole = float(trials @ times)
        if whole:
            found[run] = float(hits @ times) / whole
    known = found[~np.isnan(found)]
    if not known.size:
        return 0.0, 1.0
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def normalise_risk(
    attack: float, control: float, *, attack_half: float, control_half: float
) -> tuple[float, float, float]:
    r"""Anonymeter's risk $R = (a - c)/(1 - c)$ with its interval, from the half widths of both intervals.

    >>> tuple(round(value, 3) for value in normalise_risk(0.9, 0.5, attack_half=0.02, control_half=0.05))
    (0.8, 0.755, 0.845)
    """
    if control >= 1:
        return 0.0, 0.0, 0.0
    risk = (attack - control) / (1 - control)
    half = (
        (attack_half / (1 - control)) ** 2 + (control_half * (attack - 1) / (1 - control) ** 2) ** 2
    ) ** 0.5
    return risk, risk - half, min(1.0, risk + half)


# What an attack found: measures with their baselines, and the tables behind them.


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """Measures of risk and the tables that they come from; all is internal but the measures marked public."""

    measures: tuple[RiskMeasure, ...]
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)

    def measure(self, name: str, about: str = "") -> RiskMeasure:
        """Return the measure of a name (and of these records, where several have it)."""
        return next(m for m in self.measures if m.name == name and about in ("", m.about))
