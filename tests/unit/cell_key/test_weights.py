"""Weighted counts tell no true count: every count that the shown count allows could show the same weighted count."""

from fractions import Fraction
from itertools import combinations_with_replacement
from math import floor
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import CellKey
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError, PrivacyError
from stirred.frames import frame_of

SCHEMA = {"geography": {"spine": ["area"]}, "record": {"household": {"id": "hid"}}}


def census(weights: Any, areas: Any) -> Census:
    rows = {"hid": np.arange(len(weights)), "area": areas, "w": weights}
    return Census.of(SCHEMA, {"household": pl.DataFrame(rows)})


def weighted(weights: Any, areas: Any, **settings: Any) -> pl.DataFrame:
    mechanism = CellKey(**({"tables": [["area"]], "weight": "w"} | settings))
    release = mechanism.release(census(weights, areas), key=Key.for_tests(3))
    return frame_of(release.tables["w-of-area"])


def round_to(base: Fraction, number: Fraction) -> Fraction:
    return base * floor(number / base + Fraction(1, 2))


@pytest.mark.parametrize("weights", [(50, 51, 52, 53), (1, 2), (Fraction(3, 2), Fraction(5, 2)), (2, 5, 8)])
@pytest.mark.parametrize("largest", [1, 2, 3])
def test_every_count_within_the_noise_stays_possible(weights: tuple[Fraction, ...], largest: int) -> None:
    """All cells of up to five records from a grid of weights, all noise: the proposition of proof.md, by enumeration."""
    step = weights[1] - weights[0]
    base = Fraction(largest + 1) * step
    means = {
        n: {Fraction(sum(chosen)) / n for chosen in combinations_with_replacement(weights, n)}
        for n in range(1, 6 + largest * 2)
    }
    tried = 0
    for n in range(1, 6):
        for count in range(max(1, n - largest), n + largest + 1):
            possible = [
                {round_to(base, count * mean) for mean in means[other]}
                for other in range(max(1, count - largest), count + largest + 1)
            ]
            for mean in means[n]:
                assert all(round_to(base, count * mean) in shown for shown in possible)
                tried += 1
    assert tried > 50


def test_a_smaller_base_would_tell_counts() -> None:
    """The condition is needed: with half of the base some count within the noise is excluded."""
    base, largest = Fraction(1), 1  # the step is 1, so that 2 is the least base
    shown = round_to(base, 2 * Fraction(101, 2))  # two records of 50 and 51, shown as 2
    assert shown not in {round_to(base, 2 * Fraction(w)) for w in (50, 51, 52, 53)}  # so it is not one record
    assert largest + 1 > base


def test_no_weighted_count_divided_by_its_count_is_the_mean_weight() -> None:
    """160 households with whole-number weights: no ratio is that of the true numbers but by chance of a multiple of 10."""
    rng = np.random.default_rng(1)
    weights, areas = rng.integers(50, 401, 160), rng.integers(0, 18, 160).astype(str)
    found = weighted(weights, areas)
    assert found.height > 12
    assert (found["weighted"] % 10 == 0).all()
    true = (
        pl.DataFrame({"area": areas, "w": weights}).group_by("area").agg(n=pl.len(), total=pl.col("w").sum())
    )
    both = found.join(true, on="area")
    assert (both["weighted"] - both["count"] * both["total"] / both["n"]).abs().max() <= 5  # type: ignore[operator]
    for c, w in both.select("count", "weighted").iter_rows():
        for n in range(
            max(1, c - 5), c + 6
        ):  # every count within the noise has a sum of weights that shows the same
            near = round(w * n / c)
            sums = range(max(50 * n, near - 6 * n), min(400 * n, near + 6 * n) + 1)
            assert any(round_to(Fraction(10), Fraction(c * total, n)) == w for total in sums)
    # error and interval are functions of what is published
    assert (both["low"] <= both["weighted"]).all()
    assert (both["weighted"] <= both["high"]).all()
    assert both["standard_error"].min() > 10 / 12**0.5  # type: ignore[operator]


def test_a_base_below_the_grid_of_the_weights_is_refused() -> None:
    areas = np.repeat(["a", "b"], 10)
    coarse = np.tile([100, 200], 10)
    with pytest.raises(PrivacyError, match="weight_base is too small") as refused:
        weighted(coarse, areas)
    assert "200" not in str(refused.value)
    assert weighted(coarse, areas, weight_base="600").height == 2
    with pytest.raises(PrivacyError, match="weight_base is too small"):
        weighted(coarse, areas, weight_base="599")
    assert weighted(np.full(20, 2.5), areas).height == 2  # equal weights tell no count
    with pytest.raises(InputError, match="weight_base is not above 0"):
        weighted(coarse, areas, weight_base="0")


def test_the_grid_of_the_weights_is_found_across_batches() -> None:
    """Two halves of one weight each: the difference is between the batches alone."""
    from stirred.engine import Local

    class Parts(Local):
        def fits(self, size: int) -> bool:
            return False

    mechanism = CellKey(tables=[["area"]], weight="w")
    with pytest.raises(PrivacyError, match="weight_base is too small"):
        mechanism.release(
            census(np.repeat([7, 57], 40), np.repeat(["a", "b"], 40)), key=Key.for_tests(3), engine=Parts()
        )
