"""How sure a reconstruction is of each record: how many of several random solutions have it."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.reconstruction.programme import Programme

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledSolutions:
    """Random solutions of one area: ``share[j, k]`` of them have more than k records in candidate j.

    ``certain`` marks what no solution lacks, because the least count of the cell says so.
    """

    solutions: int
    share: NDArray[np.float64]
    certain: NDArray[np.bool_]


def sample_solutions(
    programme: Programme, found: Counts, *, samples: int, seed: int, seconds: float = 10.0
) -> SampledSolutions | None:
    """Solve again and again with independent Gumbel weights of the cells; None where a time limit came first."""
    draws = np.random.default_rng(seed)
    highest = int(programme.high.max(initial=0))
    hits = np.zeros((programme.cells.size, highest), dtype=np.float64)
    copy = np.arange(highest)
    times = samples if programme.free.size else 1  # one solution is all there is
    for _ in range(times):
        solution: Counts | None = found
        if programme.free.size:
            weights = -draws.gumbel(size=programme.cells.size)
            _, solution = programme.find_solution(cost=weights, seconds=seconds)
        if solution is None:
            return None
        hits += solution[:, None] > copy
    certain = programme.low[:, None] > copy
    return SampledSolutions(solutions=times, share=hits / times, certain=certain)


def mark_true(confidences: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Add ``true`` to candidate records: whether the truth has that many records of the same key and secret.

    >>> sure = pl.DataFrame({"classed": ["a", "a"], "secret": ["x", "x"], "copy": [0, 1], "confidence": [1.0, 0.5]})
    >>> mark_true(sure, pl.DataFrame({"classed": ["a"], "secret": ["x"]}))["true"].to_list()
    [True, False]
    """
    many = truth.group_by("classed", "secret").agg(pl.len().cast(pl.Int64).alias("many"))
    joined = confidences.join(many, on=["classed", "secret"], how="left", maintain_order="left")
    return joined.with_columns((pl.col("copy") < pl.col("many").fill_null(0)).alias("true")).drop("many")


def calibration(confidences: pl.DataFrame, *, bins: int = 10) -> pl.DataFrame:
    """Return the precision of candidate records by class of confidence.

    ``confidences`` has columns ``confidence`` and ``true``.

    >>> sure = pl.DataFrame({"confidence": [1.0, 1.0, 0.5, 0.5], "true": [True, True, True, False]})
    >>> calibration(sure)["precision"].to_list()
    [0.5, 1.0]
    """
    grouped = confidences.with_columns((pl.col("confidence") * bins).round().cast(pl.Int64).alias("class"))
    return (
        grouped.group_by("class")
        .agg(
            pl.len().alias("candidates"),
            pl.col("confidence").mean(),
            pl.col("true").mean().alias("precision"),
        )
        .sort("class")
    )


def precision_area(confidences: pl.DataFrame, *, records: int) -> float:
    """Return the area under the precision–recall curve of candidates by falling confidence.

    Candidates of one confidence are taken together, so that their order does not matter.

    >>> sure = pl.DataFrame({"confidence": [1.0, 0.5, 0.5], "true": [True, True, False]})
    >>> round(precision_area(sure, records=2), 4)
    0.8333
    """
    steps = (
        confidences.group_by("confidence")
        .agg(pl.len().alias("taken"), pl.col("true").sum().alias("right"))
        .sort("confidence", descending=True)
        .with_columns(pl.col("taken").cum_sum().alias("all"), pl.col("right").cum_sum().alias("hits"))
    )
    return float((steps["hits"] / steps["all"] * steps["right"]).sum() / records) if records else 0.0
