"""Undoing a swap: the posterior and the de-shrunk table against many strata swapped by the mechanism itself."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import polars as pl
import pytest

from stirred import ExactMargins
from stirred.assess.attack.inversion import (
    _chance_shown,
    balance_weights,
    guess_joint_places,
    invert_swap,
    posterior_places,
)
from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.registry import rebuild_mechanism
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap import PermutationSwapping, posterior

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
    psa = PermutationSwapping(
        match=["g"],
        swap=["place"],
        rate=RATE,
        accept_reversal=["kind", "label"],
        release_identifiers={"g": "a test"},
    )
    return truth, psa.release(census, key=Key.for_tests(5))


def apart(values: np.ndarray, expected: float) -> float:
    """How many standard errors the mean of independent values is from what is expected."""
    error = values.std(ddof=1) / np.sqrt(values.size)
    return float(abs(values.mean() - expected) / max(error, 1e-12))


def test_the_posterior_is_the_frequency() -> None:
    """Records are spread at random in each stratum: of those shown at a place, so many were there."""
    random = np.random.default_rng(3)
    truth, release = swapped(np.array([random.permutation(PLACES) for _ in range(STRATA)]))
    law = rebuild_mechanism(release).exchange(release)
    assert law is not None
    found = posterior_places(release.to_polars("household"), law)
    both = found.join(truth.rename({"place": "true"}), on=["g", "label"])
    for index, (place, many) in enumerate((("a", 3), ("b", 2), ("c", 1))):
        shown = both.filter(pl.col("place").cast(pl.String) == place)
        (chance,) = shown["posterior"].unique()
        assert chance == pytest.approx(posterior([3, 2, 1], index, Fraction(RATE))[index])
        right = shown.group_by("g").agg((pl.col("true") == place).sum().alias("hits"))["hits"].to_numpy()
        assert apart(right / many, chance) < LIMIT


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
    result = invert_swap(psa.release(census, key=Key.for_tests(2)), census, given=["tenure"], records=True)
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
    (only,) = invert_swap(mechanism.release(census, key=Key.for_tests(1))).measures
    assert only.value is None
    assert "closed form" in only.reason


def test_guessed_together_nearly_as_many_are_found_as_by_listing_all_arrangements() -> None:
    """Strata of six, listed: guesses one by one find fewer, the best that can be done little more."""
    rate, spread, kinds = 0.5, np.array([[0.8, 0.15, 0.05], [0.1, 0.3, 0.6]]), np.array([0, 0, 1, 0, 1, 1])
    orders = np.array(list(permutations(range(6))))
    moved = (orders != np.arange(6)).sum(axis=1)
    derangements = np.array([1, 0, 1, 2, 9, 44, 265], float)
    odds = rate / (1 - rate)
    law = np.where(moved == 1, 0.0, odds**moved / np.maximum(derangements[moved], 1))
    law /= law.sum()
    q = float((law * moved).sum() / 6)
    room = np.array([3.0, 2.0, 1.0])
    arrangements = np.array(sorted(set(permutations([0, 0, 0, 1, 1, 2]))))
    prior = spread[kinds[None, :], arrangements].prod(axis=1)
    prior /= prior.sum()
    random = np.random.default_rng(1)
    found = {"one by one": 0.0, "together": 0.0, "listed": 0.0}
    for _ in range(150):
        truth = arrangements[random.choice(len(prior), p=prior)]
        shown = truth[orders[random.choice(len(law), p=law)]]
        likely = np.array([law[(one[orders] == shown).all(axis=1)].sum() for one in arrangements]) * prior
        likely /= likely.sum()
        chances = np.stack(
            [(likely[:, None] * (arrangements == place)).sum(axis=0) for place in range(3)], axis=1
        )
        weights = spread[kinds] * _chance_shown(room, shown, q)
        together = balance_weights(weights, np.ones(6), room)
        rows = np.arange(6)  # expected hits under the listed chances
        found["listed"] += chances.max(axis=1).sum()
        found["one by one"] += chances[rows, weights.argmax(axis=1)].sum()
        found["together"] += chances[rows, together.argmax(axis=1)].sum()
    assert found["one by one"] < 0.95 * found["together"]
    assert 0.98 * found["listed"] < found["together"] <= found["listed"]


def test_the_chances_of_a_joint_guess_are_frequencies() -> None:
    """Many strata swapped by the mechanism: as many guesses are right as their chances say."""
    random = np.random.default_rng(4)
    places = np.array([random.permutation(PLACES) for _ in range(2_000)])
    truth = pl.DataFrame({"g": np.repeat(np.arange(2_000), 6), "place": places.ravel()})
    truth = truth.with_columns(
        pl.when(pl.col("place") == "a").then(pl.lit("x")).otherwise(pl.lit("y")).alias("kind"),
        (pl.int_range(pl.len()) % 6).alias("label"),
    )
    census = Census.of({"geography": {"spine": ["place"]}}, {"household": truth})
    psa = PermutationSwapping(
        match=[],
        swap=["place"],
        rate="1/2",
        accept_reversal=["kind", "label", "g"],
        release_identifiers={"g": "a test"},
    )
    release = psa.release(census, key=Key.for_tests(5))
    law = rebuild_mechanism(release).exchange(release)
    assert law is not None
    units = release.to_polars("household")
    found = pl.concat([units, guess_joint_places(units, law, given=["kind"])], how="horizontal")
    names = found.select(pl.col("place").cast(pl.String), pl.col("shown_place")).unique()
    both = found.join(truth.select("g", "label", pl.col("place").alias("true")), on=["g", "label"]).join(
        names.rename({"place": "guess", "shown_place": "guessed_place"}), on="guessed_place"
    )
    right = (both["guess"] == both["true"]).to_numpy()
    assert both["joint_chance"].mean() == pytest.approx(right.mean(), abs=0.02)
    by_one = posterior_places(units, law, given=["kind"])["posterior"].mean()
    assert right.mean() > by_one + 0.02
    told = invert_swap(release, given=["kind"]).measure("places that the best guess finds").value
    assert told == pytest.approx(both["joint_chance"].mean(), abs=0.02)
