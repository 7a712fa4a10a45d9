"""Measure risk: one number with its interval, beside what a guess without the release finds; and hold an attack's result."""

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.languages import Phrase, Value


def name_measure(key: str, /, **values: Value) -> Phrase:
    """Return the name of a measure as a phrase, which reports can translate.

    >>> name_measure("implied")
    'records in cells whose count is implied'
    """
    return Phrase(f"measure.{key}", **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The success of someone who has less than the attacker: a guess, or a ceiling from the truth itself."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskMeasure:
    """One number of an audit, an attack or a universe, with the records it is about and what a guess would find.

    ``value`` is None where the answer is unknown (a time limit, too few data); ``reason`` then says why. ``public`` is true
    only for numbers computed from the release and its specification alone, without the confidential census.
    """

    name: str
    about: str  # the records that it is about, for example "persons unique on block, sex and age"
    kind: Literal["absolute", "relative"]
    value: float | None
    unit: str  # "share", "bits per record", "epsilon", "count"
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    baselines: tuple[Baseline, ...] = ()
    public: bool = False
    reason: str = ""

    @property
    def sentence(self) -> str:
        """Return a sentence: is it absolute or relative risk, and which of the two does a budget bound."""
        return Phrase(f"measure.sentence.{self.kind}")

    def as_json(self) -> dict[str, object]:
        """Return the measure as plain values."""
        return {
            "name": str(self.name),
            "about": str(self.about),
            "kind": self.kind,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "unit": self.unit,
            "public": self.public,
            "baselines": [
                {"name": str(b.name), "value": b.value, "low": b.low, "high": b.high} for b in self.baselines
            ],
            "reason": self.reason,
            "sentence": str(self.sentence),
        }


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
