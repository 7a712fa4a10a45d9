"""Undoing a swap: the posterior and the de-shrunk table against many strata swapped by the mechanism itself."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from stirred.assess.attack.inference import deshrunk, inversion, posterior_places
from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.base import Release
from stirred.mechanisms.exact_margins import ExactMargins
from stirred.mechanisms.registry import mechanism_of
from stirred.mechanisms.swapping import PermutationSwapping
from stirred.mechanisms.swapping.numbers.closed_forms import posterior

STRATA, PLACES = 6000, np.array(["a", "a", "a", "b", "b", "c"])
LIMIT = 5.4  # standard errors; ten comparisons raise a false alarm with a chance below 1e-6
RATE = "1/4"


def swapped(places: np.ndarray) -> tuple[pl.DataFrame, Release]:
    """One release of many alike strata: as many independent draws of one stratum."""
    n = PLACES.size
    truth = pl.DataFrame(
        {
            "g": np.repeat(np.arange(STRATA), n),
            "label": np.tile(np.arange(n), STRATA),
            "kind": np.tile(["x", "x", "y", "x", "y", "y"], STRATA),
            "place": places.ravel(),
        }
    )
    schema = {"geography": {"spine": ["place"]}, "record": {"household": {}}}
    census = Census.of(schema, {"household": truth})
    psa = PermutationSwapping(match=["g"], swap=["place"], rate=RATE, accept_reversal=["kind", "label"])
    return truth, psa.release(census, key=Key.for_tests(5))


def apart(values: np.ndarray, expected: float) -> float:
    """How many standard errors the mean of independent values is from what is expected."""
    error = values.std(ddof=1) / np.sqrt(values.size)
    return float(abs(values.mean() - expected) / max(error, 1e-12))


def test_the_posterior_is_the_frequency() -> None:
    """Records are spread at random in each stratum: of those shown at a place, so many were there."""
    random = np.random.default_rng(3)
    truth, release = swapped(np.array([random.permutation(PLACES) for _ in range(STRATA)]))
    law = mechanism_of(release).exchange(release)
    assert law is not None
    found = posterior_places(release.to_polars("household"), law)
    both = found.join(truth.rename({"place": "true"}), on=["g", "label"])
    for index, (place, many) in enumerate((("a", 3), ("b", 2), ("c", 1))):
        shown = both.filter(pl.col("place").cast(pl.String) == place)
        (chance,) = shown["posterior"].unique()
        assert chance == pytest.approx(posterior([3, 2, 1], index, Fraction(RATE))[index])
        right = shown.group_by("g").agg((pl.col("true") == place).sum().alias("hits"))["hits"].to_numpy()
        assert apart(right / many, chance) < LIMIT


def test_the_deshrunk_table_is_right_on_average() -> None:
    truth, release = swapped(np.tile(PLACES, (STRATA, 1)))
    law = mechanism_of(release).exchange(release)
    assert law is not None
    found = deshrunk(release.to_polars("household"), law, ["kind"])
    found = found.with_columns(pl.col("place", "kind").cast(pl.String))
    exact = truth.group_by("kind", "place").len().with_columns(pl.col("len") / STRATA)
    even = found.select("g").unique().join(exact.select("kind", "place"), how="cross")
    # cells without a released record have an estimate too: -λ n_h n_t / n / (1 - λ)
    weight = float(law.selected([6])[0]) * 6 / 5
    alone = pl.DataFrame({"place": ["a", "b", "c"], "n_t": [3, 2, 1]}).select(
        "place", (-weight * 3 * pl.col("n_t") / 6 / (1 - weight)).alias("empty")
    )
    every = even.join(found, on=["g", "kind", "place"], how="left").join(alone, on="place")
    every = every.with_columns(pl.col("estimate").fill_null(pl.col("empty")))
    for kind, place, many in exact.iter_rows():
        cell = every.filter((pl.col("kind") == kind) & (pl.col("place") == place))["estimate"].to_numpy()
        assert cell.size == STRATA
        assert apart(cell, many) < LIMIT


def test_measures_of_a_release_and_its_people() -> None:
    schema = {
        "geography": {"spine": ["county", "block"]},
        "record": {
            "household": {"id": "hid", "variables": {"tenure": ["o", "r"], "rooms": "1..40"}},
            "person": {"household": "hid", "of": "household", "variables": {"age": "0..99"}},
        },
    }
    n = 400
    homes = {
        "hid": list(range(n)),
        "county": ["k"] * n,
        "block": [f"b{i % 7}" for i in range(n)],
        "tenure": ["or"[i % 3 == 0] for i in range(n)],
        "rooms": [1 + i % 40 for i in range(n)],
    }
    people = {"hid": [i // 2 for i in range(2 * n)], "age": [i % 90 for i in range(2 * n)]}
    census = Census.of(schema, {"household": homes, "person": people})
    psa = PermutationSwapping(match=["county"], swap=["block"], rate="1/10", drop=["rooms"])
    result = inversion(psa.release(census, key=Key.for_tests(2)), census, given=["tenure"], records=True)
    values = {m.name: m for m in result.measures}
    assert all(m.sentence for m in result.measures)
    assert 0.85 < (values["records that are where they are shown"].value or 0) < 0.95
    assert values["largest change of the odds of a place"].kind == "relative"
    assert not values["unique records found in place"].public
    bands = result.tables["posterior by band"]
    assert (bands["records"].sum(), bands["people"].sum()) == (n, 2 * n)
    assert result.tables["posterior of records"].height == n


def test_a_mechanism_without_a_law_is_unknown() -> None:
    census = Census.of({"household": {"place": ["a", "b"], "kind": ["x", "y"]}})
    mechanism = ExactMargins(rows="place", columns="kind", rho_squared="1/2")
    (only,) = inversion(mechanism.release(census, key=Key.for_tests(1))).measures
    assert only.value is None
    assert "closed form" in only.reason
