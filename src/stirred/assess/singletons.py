"""Cells that count one record: how many of them a release shows as they are, beside a guess from totals."""

from math import exp

import numpy as np
import polars as pl

from stirred.assess.assessment import TableAssessment
from stirred.assess.attack.linkage.intervals import wilson_interval
from stirred.assess.risk import Baseline, RiskMeasure, name_measure

GUESS_NAME = "guess from the area's total"


def measure_singletons(item: TableAssessment) -> tuple[RiskMeasure, ...]:
    """Measure recall and precision of an attacker who takes a published 1 for one real record.

    The guess knows the total of the area, and how the whole census is divided among the other variables: a cell that it
    expects to hold λ records holds one with probability λe^{−λ} (Poisson).
    """
    before, after = item.pair.arrays()
    true, shown = before == 1, after == 1
    if not true.any():
        return ()
    both, about = int((true & shown).sum()), f"cells of {item.name} that count one record"
    guess = (Baseline(name=GUESS_NAME, value=float(_chance_of_one(item)[true].mean())),)
    return (
        _share_measure(name_measure("recall_ones"), about, both, int(true.sum()), guess),
        _share_measure(
            name_measure("precision_ones"), about.replace("count", "show"), both, int(shown.sum()), ()
        ),
    )


def _share_measure(
    name: str, about: str, hits: int, whole: int, guesses: tuple[Baseline, ...]
) -> RiskMeasure:
    low, high = wilson_interval(hits, whole) if whole else (None, None)
    return RiskMeasure(
        name=name,
        about=about,
        kind="absolute",
        value=hits / whole if whole else None,
        low=low,
        high=high,
        unit="share",
        baselines=guesses,
        reason="" if whole else "no cell shows one record",
    )


def _chance_of_one(item: TableAssessment) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the probability that each cell holds one record, from its area's total and overall shares."""
    frame, by = item.pair.frame, list(item.by)
    if len(by) < 2:
        return np.full(
            frame.height, exp(-1)
        )  # an area with one record: there is no better guess than a mean of one
    area, rest = by[0], by[1:]
    held = pl.col("reference")
    expected = held.sum().over(area) * held.sum().over(rest) / held.sum()
    rate = frame.select(expected.cast(pl.Float64).alias("rate"))["rate"].to_numpy()
    return np.asarray(rate * np.exp(-rate), dtype=np.float64)
