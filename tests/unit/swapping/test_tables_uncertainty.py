"""Intervals of swapped tables: exact cells, zero cells, and coverage over repeated swaps by an independent sampler."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl

from stirred.mechanisms.swap.estimates import finish_cells, keeps_table, lay_out_exact, sum_moments


def table_uncertainty(
    units: pl.DataFrame,
    counted: pl.DataFrame,
    *,
    by: Sequence[str],
    match: Sequence[str],
    swap: Sequence[str],
    rate: Fraction,
) -> pl.DataFrame:
    """Every cell with count, estimate, standard error and interval; exact where the swap keeps the table."""
    if keeps_table(by, match=match, swap=swap):
        published = counted.group_by(by).agg(pl.len().cast(pl.Int64).alias("count"))
        return lay_out_exact(published.sort(by, nulls_last=False))
    return finish_cells([sum_moments(units, counted, by=by, match=match, swap=swap, rate=rate)], list(by))


def swap(rng: np.random.Generator, stratum: np.ndarray, place: np.ndarray, p: float) -> np.ndarray:
    """Algorithm 1, written again in the plainest way."""
    result = place.copy()
    for m in np.unique(stratum):
        rows = np.flatnonzero(stratum == m)
        if len(rows) < 2:
            continue
        chosen = rows[rng.random(len(rows)) < p]
        while len(chosen) == 1:
            chosen = rows[rng.random(len(rows)) < p]
        if not len(chosen):
            continue
        order = rng.permutation(chosen)
        while (order == chosen).any():
            order = rng.permutation(chosen)
        result[chosen] = place[order]
    return result


def test_intervals_cover_and_estimates_are_unbiased() -> None:
    rng = np.random.default_rng(20)
    n, p, runs = 900, Fraction(3, 10), 60
    stratum = rng.integers(0, 6, n)
    place = rng.integers(0, 4, n)
    tenure = (rng.random(n) < 0.2 + 0.2 * place).astype(
        np.int64
    )  # tenure depends on place: swapping shrinks it
    truth = {(c, t): int(((place == c) & (tenure == t)).sum()) for c in range(4) for t in range(2)}
    covered, errors = 0, []
    for _ in range(runs):
        units = pl.DataFrame(
            {"unit": np.arange(n), "m": stratum, "county": swap(rng, stratum, place, float(p))}
        )
        counted = units.with_columns(pl.Series("tenure", tenure))
        table = table_uncertainty(
            units, counted, by=["county", "tenure"], match=["m"], swap=["county"], rate=p
        )
        assert table.height == 8
        for county, kind, _, value, error, low, high in table.rows():
            covered += low <= truth[county, kind] <= high
            errors.append((value - truth[county, kind]) / error)
    # 60 independent runs at 95 %: P(Bin(60, 0.95) ≤ 45) < 2e-7, even if the cells of a run moved as one
    assert covered / (8 * runs) > 0.75
    # standardised errors: five standard deviations of the mean and of the spread of 60 runs (false alarm below 1e-6)
    assert abs(np.mean(errors)) < 0.65
    assert 0.5 < np.std(errors) < 1.5


def test_exact_tables_have_no_error() -> None:
    units = pl.DataFrame({"unit": [0, 1, 2], "m": [1, 1, 1], "county": ["a", "b", "b"]})
    counted = units.with_columns(pl.Series("tenure", ["o", "o", "r"]))
    for by in (["tenure"], ["county"], ["m", "county"]):
        table = table_uncertainty(units, counted, by=by, match=["m"], swap=["county"], rate=Fraction(1, 2))
        assert table["standard_error"].to_list() == [0.0] * table.height


def test_a_cell_published_as_zero_is_uncertain() -> None:
    units = pl.DataFrame({"unit": range(6), "m": [1] * 6, "county": ["a", "a", "a", "b", "b", "b"]})
    counted = units.with_columns(pl.Series("tenure", ["o", "o", "o", "r", "r", "r"]))
    table = table_uncertainty(
        units, counted, by=["county", "tenure"], match=["m"], swap=["county"], rate=Fraction(1, 5)
    )
    zero = table.filter((pl.col("county") == "a") & (pl.col("tenure") == "r"))
    assert zero["count"].item() == 0
    assert zero["standard_error"].item() > 0


def test_person_tables_count_households_together() -> None:
    units = pl.DataFrame({"unit": [0, 1, 2, 3], "m": [3] * 4, "county": ["a", "a", "b", "b"]})
    counted = pl.DataFrame(
        {
            "unit": [0, 0, 0, 1, 2, 2, 3],
            "county": ["a"] * 4 + ["b"] * 3,
            "sex": ["f", "f", "m", "m", "f", "m", "m"],
        }
    )
    table = table_uncertainty(
        units, counted, by=["county", "sex"], match=["m"], swap=["county"], rate=Fraction(1, 4)
    )
    assert table["count"].sum() == 7
    # every household has one man, so the men of a county are as exact as its households; the women are not
    error = {row["sex"]: row["standard_error"] for row in table.rows(named=True)}
    assert error["m"] == 0
    assert error["f"] > 0


def test_records_that_take_no_part_are_exact() -> None:
    units = pl.DataFrame({"unit": [0, 1], "m": [2, 2], "county": ["a", "b"]})
    counted = pl.DataFrame({"unit": [0, 1, 9], "county": ["a", "b", "c"], "kind": ["home", "home", "vacant"]})
    table = table_uncertainty(
        units, counted, by=["county", "kind"], match=["m"], swap=["county"], rate=Fraction(1, 3)
    )
    vacant = table.filter(pl.col("kind") == "vacant")
    assert vacant.select("county", "count", "estimate", "standard_error").rows() == [("c", 1, 1.0, 0.0)]
