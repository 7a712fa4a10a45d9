"""Prior to posterior for noisy counts, and numbers that follow by subtraction."""

import numpy as np
import polars as pl
import pytest

from stirred.assess.attack.inference import (
    KnownNoise,
    compare_releases,
    difference_areas,
    frechet_bounds,
    make_pieces,
    poisson,
    posterior_counts,
    prior_to_posterior,
    uniform,
)
from stirred.errors import InputError

NOISE = KnownNoise(law="gaussian", scale=1.5)


def test_the_posterior_is_bayes() -> None:
    found = posterior_counts([2], NOISE, poisson(3.0), high=[6])
    counts = np.arange(7)
    weights = np.exp(-((2 - counts) ** 2) / (2 * 1.5**2)) * 3.0**counts / [1, 1, 2, 6, 24, 120, 720]
    assert found["chance"].item() == pytest.approx(weights.max() / weights.sum())
    assert found["mean"].item() == pytest.approx((weights * counts).sum() / weights.sum())


def test_the_chance_is_the_frequency() -> None:
    """Counts drawn from the prior: 4,000 of them, so that five standard errors are 0.04 (a false alarm below 1e-6)."""
    random = np.random.default_rng(4)
    truth = random.poisson(5.0, 4000)
    span = np.arange(-15, 16)
    law = np.exp(-(span**2) / (2 * 1.5**2))
    noisy = truth + random.choice(span, 4000, p=law / law.sum())
    result = prior_to_posterior(noisy, NOISE, priors=[poisson(5.0)], truth=truth)
    chance, hits = (result.measures[i].value for i in (0, 1))
    assert chance is not None
    assert hits == pytest.approx(chance, abs=0.04)


def test_invariants_sharpen_what_is_believed() -> None:
    low, high = frechet_bounds([4, 1, 5], [3, 3, 5], 5)
    result = prior_to_posterior([3, 1, 4], NOISE, priors=[uniform()], low=low, high=high)
    without, with_, odds = result.measures
    assert (with_.value or 0) > (without.value or 0)
    assert with_.baselines[0].value < (with_.value or 0)
    assert odds.kind == "relative"
    implied = result.tables["every count is equally likely, with invariants"]
    assert implied["chance"].to_list()[2] == 1.0  # both margins are the total: nothing else is possible
    assert implied["implied"].to_list() == [False, False, True]


def test_bounds_that_exclude_all_are_refused() -> None:
    with pytest.raises(InputError, match="exclude every value"):
        posterior_counts([1], NOISE, uniform(), low=[3], high=[2])
    with pytest.raises(InputError, match="not known"):
        KnownNoise(law="laplace", scale=1)


def test_pieces_follow_exactly_where_the_linear_algebra_says_so() -> None:
    """Against the null space of the totals: a piece follows if and only if every null vector is 0 there."""
    random = np.random.default_rng(6)
    for _ in range(30):
        edges = sorted({(int(a), int(b)) for a, b in random.integers(0, 5, (7, 2))})
        truth = random.integers(0, 9, len(edges))
        pieces = pl.DataFrame(
            {"a": [f"a{a}" for a, _ in edges], "b": [f"b{b}" for _, b in edges], "count": truth}
        )
        totals = [pieces.group_by(side).agg(pl.col("count").sum()) for side in ("a", "b")]
        matrix = np.zeros((10, len(edges)))
        for place, (a, b) in enumerate(edges):
            matrix[a, place] = matrix[5 + b, place] = 1
        null = np.linalg.svd(matrix)[2][np.linalg.matrix_rank(matrix) :]
        found = difference_areas(pieces, *totals, areas=["a", "b"]).tables["pieces"]
        for place, difference in enumerate(found["difference"].to_list()):
            free = bool(np.abs(null[:, place]).max(initial=0) > 1e-9)
            assert (difference is None) == free
            assert free or difference == truth[place]


def test_noisy_totals_carry_their_error() -> None:
    pieces = make_pieces(
        pl.DataFrame({"a": ["1", "1", "2"], "b": ["x", "y", "y"], "count": [9, 3, 30]}), ["a", "b"]
    )
    first = pl.DataFrame({"a": ["1", "2"], "count": [12, 30], "standard_error": [3.0, 4.0]})
    second = pl.DataFrame({"b": ["x", "y"], "count": [9, 33], "standard_error": [0.0, 0.0]})
    result = difference_areas(pieces, first, second, areas=["a", "b"])
    assert result.tables["pieces"]["spread"].to_list() in ([0.0, 3.0, 4.0], [5.0, 3.0, 4.0], [0.0, 4.0, 4.0])
    assert "noise of all totals" in result.measures[0].reason
    assert result.measures[1].value == pytest.approx(1 / 3)


def test_two_releases_of_one_table() -> None:
    old = pl.DataFrame({"block": ["a", "b"], "count": [3, 7], "standard_error": [2.0, 2.0]})
    new = pl.DataFrame({"block": ["a", "b"], "count": [5, 7], "standard_error": [2.0, 2.0]})
    *_, averaged = compare_releases(old, new, by=["block"]).measures
    assert averaged.value == pytest.approx(0.5**0.5)
    exact = compare_releases(old.drop("standard_error"), new.drop("standard_error"), by=["block"])
    assert exact.tables["changes"]["difference"].to_list() == [2.0]
    assert exact.measures[1].value == 0.5
