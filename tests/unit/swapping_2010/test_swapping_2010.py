"""The 2010 swap: who is selected, who is a partner, rates of states, and why no budget is finite."""

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import InputError, PrivacyError
from stirred.frames import frame_of
from stirred.mechanisms.swap import Swapping2010, swap_log

KEY = Key.for_tests(2010)
AREAS = ["county", "tract", "block"]
HOMES = 1200


def town(seed: int = 1, n: int = HOMES) -> Census:
    """Two states of three counties, six tracts and twenty-four blocks each; few of a minority."""
    rng = np.random.default_rng(seed)
    block = np.minimum(rng.integers(0, 48, n), rng.integers(0, 60, n))  # blocks of unequal size
    homes = pl.DataFrame(
        {
            "hid": np.arange(n),
            "state": (block // 24).astype(str),
            "county": (block // 8).astype(str),
            "tract": (block // 4).astype(str),
            "block": np.char.add("b", block.astype(str)),
            "adults": rng.integers(1, 4, n),
            "minors": rng.integers(0, 3, n),
            "tenure": rng.choice(["own", "rent"], n),
            "race": rng.choice(["w", "b", "a"], n, p=[0.7, 0.27, 0.03]),
            "allocated": rng.choice(["no", "part", "all"], n, p=[0.7, 0.2, 0.1]),
        }
    ).with_columns(size=pl.col("adults") + pl.col("minors"))
    schema = {"geography": {"spine": ["state", *AREAS]}, "record": {"household": {"id": "hid"}}}
    return Census.of(schema, {"household": homes})


def swap(**settings: Any) -> Swapping2010:
    return Swapping2010(**({"swap": AREAS, "without_guarantee": "a test"} | settings))


def paired(mechanism: Swapping2010, census: Census, key: Key = KEY) -> pl.DataFrame:
    """One row for each household that moved, with its partner's variables."""
    frame = frame_of(census.table("household"))
    pairs = frame_of(swap_log(mechanism, census, key=key).pairs)
    return pairs.join(frame, left_on="household", right_on="hid").join(
        frame, left_on="partner", right_on="hid", suffix="_of_partner"
    )


def test_partners_are_equal_in_the_same_state_and_another_block() -> None:
    pairs = paired(swap(rate="1/5"), town())
    assert pairs.height > 100
    for name in ("state", "adults", "minors", "tenure"):
        assert (pairs[name] == pairs[f"{name}_of_partner"]).all()
    assert (pairs["block"] != pairs["block_of_partner"]).all()


def test_rates_are_about_equal_by_state() -> None:
    census = town()
    moved = paired(swap(rate="1/10"), census).group_by("state").len().sort("state")["len"].to_numpy()
    sizes = frame_of(census.table("household")).group_by("state").len().sort("state")["len"].to_numpy()
    assert (np.abs(moved - sizes / 10) <= 2).all()


def test_the_unique_are_always_selected_and_the_totally_imputed_never() -> None:
    census = town()
    mechanism = swap(
        rate="1/50",
        unique=["race"],
        imputed="allocated",
        imputed_levels=["part", "all"],
        totally_imputed=["all"],
    )
    frame = frame_of(census.table("household")).with_columns(n=pl.len().over(["block", "race"]))
    unique = frame.filter((pl.col("n") == 1) & (pl.col("allocated") != "all"))
    pairs = paired(mechanism, census)
    log = swap_log(mechanism, census, key=KEY)
    assert unique.height > 10
    assert unique.filter(~pl.col("hid").is_in(pairs["household"].to_list())).height == log.without_partner
    assert "all" not in set(pairs.filter("selected")["allocated"])


def share(mechanism: Swapping2010, census: Census, chosen: pl.Series) -> float:
    """The share of selected households of which something is true, over some keys."""
    frame = mechanism.frame(census)
    begun = np.concatenate(
        [np.flatnonzero(mechanism.pair_records(frame, Key.for_tests(k)).begun) for k in range(8)]
    )
    return float(chosen.to_numpy()[begun].mean())


def test_small_blocks_and_a_unique_race_are_selected_more_often() -> None:
    census = town()
    frame = frame_of(census.table("household"))
    small = frame.select(pl.len().over("block") < 15).to_series()
    flat, steep = (share(swap(rate="1/20", block_size_power=p), census, small) for p in (0, 2))
    assert steep > 1.5 * flat
    alone = frame.select(pl.len().over(["block", "race"]) == 1).to_series()
    plain, more = (share(swap(rate="1/20", race=["race"], race_factor=f), census, alone) for f in ("1", "20"))
    assert more > 2 * plain


def test_near_partners_come_first_where_they_are_preferred() -> None:
    census = town()
    near = paired(swap(rate="1/10", prefer=["near"]), census)
    far = paired(swap(rate="1/10", prefer=[]), census)
    same = (
        (near["tract"] == near["tract_of_partner"]).mean(),
        (far["tract"] == far["tract_of_partner"]).mean(),
    )
    assert same[0] is not None
    assert same[1] is not None
    assert same[0] > 2 * same[1]  # type: ignore[operator]
    assert set(near["rule"]) <= {"same tract", "same county", "any"}


def test_selected_partners_come_first_where_they_are_preferred() -> None:
    mechanism = swap(rate="1/3", prefer=["selected", "near", "risky"])
    log = swap_log(mechanism, town(), key=KEY)
    assert (
        sum(number for rule, number in log.rules.items() if "selected" in rule) > sum(log.rules.values()) / 2
    )


@pytest.mark.parametrize(("preset", "rate"), [("study-5", Fraction(1, 20)), ("study-50", Fraction(1, 2))])
def test_the_experiments_of_the_study(preset: str, rate: Fraction) -> None:
    """The noisy key breaks the population of blocks; the number of households stays."""
    census = town()
    mechanism = swap(preset=preset)
    log = swap_log(mechanism, census, key=KEY)
    assert abs(log.moved - HOMES * rate) <= HOMES * rate / 10
    assert "block × state" in log.exact
    assert log.tables["block × size"] > 0
    pairs = paired(mechanism, census)
    assert set((pairs["size"] - pairs["size_of_partner"]).abs()) == {0, 1, 2}
    assert mechanism.match == ("state",)


def test_without_noise_the_matched_tables_stay_exact() -> None:
    census = town()
    mechanism = swap(rate="1/2")
    release = mechanism.release(census, key=KEY)
    assert all(check.kept for check in release.checks)
    assert {"block × adults", "block × minors", "block × tenure"} <= set(
        swap_log(mechanism, census, key=KEY).exact
    )


def test_the_witness() -> None:
    """One swap in a state is certain: a census of different households never comes out as it is, its neighbour does."""

    def outcomes(places: str) -> set[tuple[str, ...]]:
        schema = {"geography": {"spine": ["state", "block"]}, "record": {"household": {"id": "hid"}}}
        homes = {"hid": [1, 2, 3, 4], "state": ["s"] * 4, "block": list(places), "answer": list("abcd")}
        mechanism = Swapping2010(
            swap=["block"], rate="1/2", equal=[], release_identifiers={"answer": "a test"}
        )
        frame = mechanism.frame(Census.of(schema, {"household": homes}))
        return {
            tuple(mechanism.draw_swap(frame, Key.for_tests(k), Local())["block"].arrow().to_pylist())
            for k in range(200)
        }

    assert tuple("AABB") not in outcomes("AABB")
    assert tuple("AABB") in outcomes("BAAB")
    assert not swap().specification(town()).budget.is_finite


def test_a_cap_is_never_exceeded_and_has_a_witness() -> None:
    """One swap is allowed: the records after two swaps are impossible, and possible from the records after one of them."""

    def outcomes(places: str) -> set[tuple[str, ...]]:
        schema = {"geography": {"spine": ["state", "block"]}, "record": {"household": {"id": "hid"}}}
        homes = {"hid": [1, 2, 3, 4], "state": ["s"] * 4, "block": list(places), "answer": list("abcd")}
        mechanism = Swapping2010(
            swap=["block"],
            rate="1",
            equal=[],
            cap="1/2",
            unique=["answer"],
            release_identifiers={"answer": "a test"},
        )
        frame = mechanism.frame(Census.of(schema, {"household": homes}))
        return {
            tuple(mechanism.draw_swap(frame, Key.for_tests(k), Local())["block"].arrow().to_pylist())
            for k in range(100)
        }

    both = tuple("BBAA")
    assert both not in outcomes("AABB")
    assert both in outcomes("BAAB")
    found = swap(cap="1/2").details()["more_witnesses"]
    assert isinstance(found, list)
    assert found[-1]["chances"][0] == 0


def test_the_cap_counts_unique_households_too() -> None:
    census = town()
    mechanism = swap(rate="1/50", unique=["race", "adults", "minors"], cap="1/10")
    free = swap(rate="1/50", unique=["race", "adults", "minors"])
    sizes = frame_of(census.table("household")).group_by("state").len()
    moved = paired(mechanism, census).group_by("state").len(name="moved").join(sizes, on="state")
    assert (moved["moved"] <= moved["len"] / 10).all()
    assert paired(free, census).height > 2 * moved["moved"].sum()


def test_cycles_turn_equal_households_of_different_blocks() -> None:
    census = town()
    mechanism = swap(rate="1/4", cycle=4, prefer=[])
    pairs = paired(mechanism, census)
    for name in ("state", "adults", "minors", "tenure"):
        assert (pairs[name] == pairs[f"{name}_of_partner"]).all()
    assert (pairs["block"] != pairs["block_of_partner"]).all()
    takes = dict(pairs.select("household", "partner").iter_rows())
    assert sorted(takes) == sorted(takes.values())
    assert sum(takes[takes[hid]] != hid for hid in takes) > 0.9 * len(takes)  # few are pairs
    assert abs(len(takes) - HOMES / 4) < 12
    assert all(check.kept for check in mechanism.release(census, key=KEY).checks)
    assert swap(rate="1/4", cycle=2).parameters() == swap(rate="1/4").parameters()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cycle": 1}, "greater than or equal to 2"),
        ({"noisy": "size"}, "partners need not be equal"),
        ({"prefer": ["close"]}, "'selected', 'near' or 'risky'"),
        ({"prefer": ["near", "near"]}, "each once"),
        ({"preset": "1990"}, "'2010', 'study-5' or 'study-50'"),
        ({"unique_in": "place"}, "no area that moves"),
        ({"imputed": "allocated"}, "a variable and its levels"),
        ({"race_factor": "1/2"}, "below 1"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        swap(**settings)


def test_nobody_swapped_is_refused() -> None:
    with pytest.raises(PrivacyError, match="swaps nobody"):
        swap(rate="0").release(town(), key=KEY)
