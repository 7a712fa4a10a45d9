"""Linkage and its baselines: nobody is linked twice, guesses meet their closed forms, intervals cover."""

import numpy as np
import polars as pl
import pytest

from stirred.assess.attack.linkage import (
    COMMERCIAL,
    PERFECT,
    Attacker,
    LinkVariables,
    count_agreement,
    find_attacker,
    link_records,
    majority_guess,
    make_attacker_file,
    modal_guess,
    proportional_guess,
    random_draw_hits,
    reidentify,
)
from stirred.assess.risk import bootstrap_interval, normalise_risk, wilson_interval
from stirred.errors import InputError

VARIABLES = LinkVariables(area="block", parent="group")


def town(seed: int = 1, blocks: int = 40, size: int = 25) -> pl.DataFrame:
    """People of blocks with two thirds of one race each, in households of five."""
    draws = np.random.default_rng(seed)
    many = blocks * size
    block = np.repeat(np.arange(blocks), size)
    usual = draws.random(many) < 2 / 3
    return pl.DataFrame(
        {
            "block": [f"b{b:03d}" for b in block],
            "group": [f"g{b // 4}" for b in block],
            "sex": draws.integers(1, 3, many),
            "age": draws.integers(0, 90, many),
            "race": np.where(usual, 1 + block % 2, draws.integers(3, 8, many)),
            "hispanic": 1 + (draws.random(many) < 0.2),
            "person": np.arange(many),
            "household": np.arange(many) // 5,
        }
    )


def keyed(people: pl.DataFrame) -> pl.DataFrame:
    return VARIABLES.add_keys(people, also=["person"])


def test_links_are_one_to_one_and_as_many_as_possible() -> None:
    draws = np.random.default_rng(2)
    left = pl.DataFrame(
        {"exact": draws.integers(0, 30, 200).astype(str), "classed": draws.integers(0, 8, 200).astype(str)}
    )
    right = pl.DataFrame(
        {"exact": draws.integers(0, 40, 150).astype(str), "classed": draws.integers(0, 8, 150).astype(str)}
    )
    pairs = link_records(left, right, ["exact", "classed"], seed=1)
    assert pairs["left"].n_unique() == pairs["right"].n_unique() == pairs.height
    first = pairs.filter(pl.col("step") == 1)
    assert (left["exact"].gather(first["left"]) == right["exact"].gather(first["right"])).all()
    second = pairs.filter(pl.col("step") == 2)
    assert (left["classed"].gather(second["left"]) == right["classed"].gather(second["right"])).all()
    counts = left.group_by("exact").len().join(right.group_by("exact").len(), on="exact")
    assert first.height == counts.select(pl.min_horizontal("len", "len_right").sum()).item()
    assert not link_records(left, right, ["exact"], seed=1).equals(
        link_records(left, right, ["exact"], seed=2)
    )


def test_a_confirmed_record_is_right_in_place_and_in_secret() -> None:
    truth = pl.DataFrame(
        {
            "block": ["a", "a", "a", "b"],
            "group": ["g"] * 4,
            "sex": [1, 1, 2, 1],
            "age": [30, 40, 50, 60],
            "race": [1, 2, 1, 3],
            "hispanic": [1, 1, 1, 1],
            "person": [0, 1, 2, 3],
        }
    )
    # the release has person 1 in block b, and person 3 in block a as another race
    released = truth.with_columns(block=pl.Series(["a", "b", "a", "b"]), race=pl.Series([1, 2, 1, 1]))
    listed = truth.drop("race", "hispanic").with_columns(
        block=pl.Series(["a", "a", "b", "b"])
    )  # person 2 is stale
    found = reidentify(keyed(released), keyed(truth), keyed(listed), seed=1)
    attack = found.found["attack"]
    assert attack.putative.tolist() == [True, False, False, True]
    assert attack.confirmed.tolist() == [True, False, False, False]
    assert found.counts(("all", "all"), "attack") == (4, 2, 1)
    assert found.precision(("all", "all"), "attack") == 0.5
    assert found.recall(("all", "all"), "attack") == 0.25
    assert found.groups["mode", "nonmodal"].tolist() == [False, True, False, False]
    ceiling = found.found["attack on the truth"]
    assert ceiling.confirmed.tolist() == [True, True, False, True]  # the address of person 2 is wrong


def test_an_attack_on_the_truth_finds_every_unique_person() -> None:
    people = town()
    truth = keyed(people)
    found = reidentify(truth, truth, keyed(people.drop("race", "hispanic")), seed=3)
    unique = ("unique", "unique")
    assert found.recall(unique, "attack") == found.precision(unique, "attack") == 1
    assert found.recall(("mode", "nonmodal"), "modal guess") == 0
    assert found.groups["mode and unique", "nonmodal unique"].sum() > 100
    table = found.table()
    assert (
        table.filter(pl.col("group") == "size")
        .group_by("method")
        .agg(pl.col("persons").sum())["persons"]
        .unique()
        .item()
        == truth.height
    )
    assert (table["precision_low"] <= table["precision"].fill_null(0.5)).all()
    low, high = found.interval(("all", "all"), "attack", of="recall")
    share = found.recall(("all", "all"), "attack")
    assert share is not None
    assert low < share < high
    assert high - low < 0.15


def test_guesses_meet_their_closed_forms() -> None:
    """The modal guess is right for max p of an area, the proportional one for the sum of p² on average."""
    truth = keyed(town(blocks=30, size=60))
    shares = (
        truth.group_by("area", "secret")
        .len()
        .with_columns(p=pl.col("len") / pl.col("len").sum().over("area"))
    )
    best = shares.group_by("area").agg(pl.col("p").max())["p"].mean()
    modal = (modal_guess(truth, truth) == truth["secret"]).mean()
    assert modal == pytest.approx(best)
    expected = shares.group_by("area").agg((pl.col("p") ** 2).sum())["p"].mean()
    rates = [(proportional_guess(truth, truth, seed=seed) == truth["secret"]).mean() for seed in range(20)]
    assert np.mean(rates) == pytest.approx(expected, abs=0.01)
    assert np.mean(rates) < modal


def test_areas_without_a_mode_take_that_of_the_larger_area() -> None:
    seen = pl.DataFrame(
        {
            "area": ["a", "a", "b", "c", "c", "c", "d"],
            "parent": ["g", "g", "g", "g", "g", "g", "h"],
            "secret": ["x", "y", "y", "z", "z", "x", "w"],
        }
    )
    asked = pl.DataFrame({"area": ["a", "b", "c", "d", "e"], "parent": ["g", "g", "g", "h", "?"]})
    # g: x 2, y 2, z 2 has no proper mode; overall the same tie, in which the first of the alphabet is taken
    assert modal_guess(asked, seen).to_list() == ["x", "x", "z", "x", "x"]
    assert majority_guess(asked, seen).to_list() == [None, "y", "z", "w", None]
    assert modal_guess(asked, seen.head(0)).to_list() == [None] * 5


def test_a_random_draw_hits_someone_as_often_as_counting_says() -> None:
    truth = keyed(town(blocks=20, size=50))
    found = random_draw_hits(truth, key="classed", seed=1)
    pairs = truth.select("area", pl.col("classed").str.slice(4).alias("pair"))
    overall = pairs.group_by("pair").len().with_columns(p=pl.col("len") / pl.col("len").sum())
    held = pairs.unique().join(overall, on="pair").group_by("area").agg(pl.col("p").sum())
    assert found["with replacement"] == pytest.approx(held["p"].mean(), abs=0.04)
    assert found["without"] < found["with replacement"]


def test_agreement_counts_each_record_once() -> None:
    truth = keyed(town())
    assert (
        count_agreement(truth, truth, seed=1).select(pl.col("exact").sum() == pl.col("records").sum()).item()
    )
    doubled = pl.concat([truth.head(100)] * 2)
    assert count_agreement(doubled, truth, seed=1)["exact"].sum() == 100


def test_files_of_attackers_have_their_coverage_and_errors() -> None:
    people = town(blocks=400)
    whole = make_attacker_file(people, PERFECT, area="block", household="household", seed=1)
    assert whole.equals(people)
    file = make_attacker_file(people, COMMERCIAL, area="block", household="household", seed=1)
    assert file.height / people.height == pytest.approx(COMMERCIAL.coverage, abs=0.02)
    own = people[file["person"].to_numpy()]
    assert (file["sex"] != own["sex"]).mean() == pytest.approx(0.02, abs=0.01)
    assert (file["age"] - own["age"]).abs().max() == 1
    right = keyed(file)["classed"] == keyed(people)["classed"].gather(file["person"])
    assert right.mean() == pytest.approx(0.37, abs=0.04)
    stale = make_attacker_file(
        people, Attacker(name="old", stale=0.5), area="block", household="household", seed=1
    )
    moved = stale.with_columns(moved=stale["block"] != people["block"])
    together = moved.group_by("household").agg(pl.col("moved").n_unique(), pl.col("block").n_unique())
    assert together["moved"].max() == together["block"].max() == 1
    assert moved["moved"].mean() == pytest.approx(0.5, abs=0.05)
    with pytest.raises(InputError, match="no attacker is called perfekt"):
        find_attacker("perfekt")
    with pytest.raises(InputError, match="coverage is not between 0 and 1"):
        Attacker(name="x", coverage=2)


def test_intervals() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)
    low, high = wilson_interval(50, 100)
    assert (round(low, 4), round(high, 4)) == (0.4038, 0.5962)
    draws = np.random.default_rng(1)
    covered = 0
    for seed in range(60):  # areas with one success rate each: records of an area are not independent
        rates = draws.beta(2, 2, 60)
        hits = draws.binomial(20, rates).astype(np.float64)
        low, high = bootstrap_interval(hits, np.full(60, 20.0), seed=seed, runs=150)
        covered += low <= 0.5 <= high
    assert covered >= 51
    assert bootstrap_interval(np.zeros(0), np.zeros(0), seed=1) == (0.0, 1.0)
    assert normalise_risk(0.2, 1.0, attack_half=0.1, control_half=0.1) == (0.0, 0.0, 0.0)
    assert normalise_risk(0.3, 0.3, attack_half=0.1, control_half=0.0)[0] == 0


def test_ages_in_words_and_missing_values_are_linked_as_they_are() -> None:
    people = pl.DataFrame(
        {"block": ["a", None], "sex": [1, 2], "age": ["0-4", "85+"], "race": [1, 2], "hispanic": [1, 1]}
    )
    made = VARIABLES.add_keys(people)
    assert made["classed"].to_list() == made["exact"].to_list() == ["a·1·0-4", "·2·85+"]
    years = people.with_columns(age=pl.Series([3, None]))
    assert VARIABLES.add_keys(years)["classed"].to_list() == ["a·1·3", "·2·"]
