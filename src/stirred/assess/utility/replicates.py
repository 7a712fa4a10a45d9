"""Bias, spread and coverage over replicate runs of a mechanism on the same stand-in."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from stirred.assess.utility.metrics import Array
from stirred.assess.utility.tables import CELL_BINS, bin_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One run's cells beside the truth; ``low`` and ``high`` are the published interval, where there is one."""

    reference: Array
    protected: Array
    low: Array | None = None
    high: Array | None = None


def replicate_errors(
    runs: Sequence[Replicate], *, table: str, edges: Sequence[int] = CELL_BINS, confidence: float = 0.95
) -> pl.DataFrame:
    """Return by size class: bias with its interval, MAE, RMSE and the coverage of the intervals.

    The bias of a class is the mean difference over its cells; its interval is Student's over the runs, which are
    independent (cells of one run are not).

    >>> runs = [Replicate(reference=np.array([5.0, 50.0]), protected=np.array([5.0 + d, 50.0 - d])) for d in (-1, 0, 1)]
    >>> replicate_errors(runs, table="t").select("size", "bias", "MAE").rows()[0]
    ('all', 0.0, 0.6666666666666666)
    """
    reference = runs[0].reference
    labels = bin_labels(edges)
    classes = np.searchsorted(np.asarray(edges[1:]), reference, side="right")
    groups = [("all", np.ones(reference.size, dtype=np.bool_))]
    groups += [(label, classes == index) for index, label in enumerate(labels)]
    rows = []
    for label, chosen in groups:
        if not chosen.any():
            continue
        differences = np.stack([(run.protected - run.reference)[chosen] for run in runs])
        by_run = differences.mean(axis=1)
        half = _half_width(by_run, confidence)
        covered = [_coverage(run, chosen) for run in runs if run.low is not None]
        rows.append(
            {
                "table": table,
                "size": label,
                "cells": int(chosen.sum()),
                "runs": len(runs),
                "bias": float(by_run.mean()),
                "bias_low": float(by_run.mean() - half),
                "bias_high": float(by_run.mean() + half),
                "MAE": float(np.abs(differences).mean()),
                "RMSE": float(np.sqrt(np.square(differences).mean())),
                "coverage": float(np.mean(covered)) if covered else None,
            }
        )
    return pl.DataFrame(rows)


def _half_width(values: Array, confidence: float) -> float:
    from scipy import stats  # a second to import, and only a rehearsal needs it

    if values.size < 2:
        return float("inf")
    return float(
        stats.t.ppf((1 + confidence) / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    )


def _coverage(run: Replicate, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    assert run.low is not None
    assert run.high is not None
    inside = (run.low <= run.reference) & (run.reference <= run.high)
    return float(inside[chosen].mean())
