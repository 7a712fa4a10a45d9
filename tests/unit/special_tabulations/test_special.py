"""Rules for special tabulations: the published numbers, what stands behind them, and that they promise nothing."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred import SpecialTabulations
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError, PrivacyError
from stirred.frames import frame_of
from stirred.mechanisms.tables.special import CountRule
from stirred.publish import load, run, save
from stirred.spec.files import load as load_spec


def town(counts: dict[tuple[str, str], int]) -> Census:
    rows = [cell for cell, number in counts.items() for _ in range(number)]
    return Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": {"id": "hid"}}},
        {
            "household": {
                "hid": list(range(len(rows))),
                "county": [county for county, _ in rows],
                "tenure": [tenure for _, tenure in rows],
            }
        },
    )


def shown(census: Census, **settings: Any) -> dict[tuple[str, str], int]:
    mechanism = SpecialTabulations(tables=[["county", "tenure"]], **settings)
    made = mechanism.release(census, key=Key.for_tests(1)).tables["tenure-by-county"]
    return {(county, tenure): count for county, tenure, count in frame_of(made).iter_rows()}


@pytest.mark.parametrize(
    ("settings", "pairs"),
    [
        ({"rounding": "fives"}, {0: 0, 1: 4, 7: 4, 8: 10, 864: 865, 982: 980, 20: 20, 25: 25}),
        ({"rounding": "tens"}, {0: 0, 1: 0, 4: 0, 5: 10, 14: 10, 15: 20, 24: 20}),
        (
            {"rounding": "graduated"},
            {
                14: 0,
                15: 20,
                25: 20,
                99: 100,
                124: 100,
                175: 200,
                5_449: 5_400,
                54_321: 54_500,
                1_234_567: 1_235_000,
            },
        ),
        ({"base": 3}, {1: 0, 2: 3, 4: 3, 5: 6}),
        ({"base": 4}, {1: 0, 2: 4, 6: 8}),
        ({"least": 3}, {0: 0, 2: 0, 3: 3, 4: 4}),
    ],
)
def test_the_rules(settings: dict[str, Any], pairs: dict[int, int]) -> None:
    rule = CountRule(**settings)
    assert {count: rule.show(count) for count in pairs} == pairs
    all_shown = [rule.show(count) for count in range(3_000)]
    assert all_shown == sorted(all_shown)
    for number in {*all_shown[:1_500]} - {0}:
        behind = [count for count, found in enumerate(all_shown) if found == number]
        assert rule.range_behind(number) == (behind[0], behind[-1])
    assert rule.of(np.array([0, 9, 9])).tolist() == [rule.show(n) for n in (0, 9, 9)]


COUNTS = {("a", "own"): 12, ("a", "rent"): 2, ("b", "own"): 4, ("b", "rent"): 3}


def test_small_counts_and_small_areas_are_left_out() -> None:
    assert shown(town(COUNTS), rounding="none", least_count=3) == {
        ("a", "own"): 12,
        ("b", "own"): 4,
        ("b", "rent"): 3,
    }
    # county b has 7 records, before rounding
    assert shown(town(COUNTS), rounding="none", least_area=8) == {("a", "own"): 12, ("a", "rent"): 2}
    assert shown(town(COUNTS), least_area=8, rounding="fives") == {("a", "own"): 10, ("a", "rent"): 4}
    assert shown(town(COUNTS), rounding="tens") == {("a", "own"): 10}


@pytest.mark.parametrize(
    "settings", [{"rounding": "fives"}, {"rounding": "graduated"}, {"base": 5, "least_area": 9}]
)
def test_the_witness_against_every_finite_budget(settings: dict[str, Any]) -> None:
    """Run on both data sets: one changed record changes the number, whatever the key."""
    mechanism = SpecialTabulations(tables=[["county", "tenure"]], **settings)
    assert not mechanism.specification(town(COUNTS)).budget.is_finite
    witness: Any = mechanism.details()["witness"]
    number = witness["count"]
    before, after = (
        shown(town({("a", "own"): number + more, ("a", "rent"): 40 - more}), **settings).get(("a", "own"), 0)
        for more in (0, 1)
    )
    assert [before, after] == witness["shown"]
    assert before != after


def test_the_range_of_a_census_holds_its_counts() -> None:
    mechanism = SpecialTabulations(tables=[["county", "tenure"]], rounding="fives")
    release = mechanism.release(town(COUNTS), key=Key.for_tests(1))
    found = frame_of(mechanism.table(release, ["tenure", "county"]))
    for tenure, county, low, high in found.select("tenure", "county", "low", "high").iter_rows():
        assert low <= COUNTS[county, tenure] <= high
    with pytest.raises(InputError, match="was made"):
        mechanism.table(release, ["county"])


def test_it_is_published_only_with_a_reason_and_says_so(tmp_path: Path) -> None:
    census = town(COUNTS)
    without = SpecialTabulations(tables=[["county"]], base=5)
    with pytest.raises(PrivacyError, match="protects nothing"):
        save(without.release(census, key=Key.for_tests(1)), tmp_path / "packet")
    reason = SpecialTabulations(tables=[["county"]], base=5, without_guarantee="a request of 2004")
    save(reason.release(census, key=Key.for_tests(1)), tmp_path / "packet")
    card = (tmp_path / "packet" / "public" / "card.md").read_text()
    assert "a request of 2004" in card
    assert (
        "Thresholds and rounding have no guarantee"
        in (tmp_path / "packet" / "public" / "report.html").read_text()
    )


PLAN = """title = "Swapped, then rounded"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
label = "swap"
swap = ["county"]
rate = "1/3"
[[mechanism]]
name = "special-tabulations"
given = "swap"
tables = [["county", "tenure"], []]
rounding = "fives"
[publish]
microdata = false
[assess]
utility = false
"""
CENSUS = '[geography]\nspine = ["county"]\n[record.household]\nfiles = ["h.csv"]\nid = "hid"\n'


def test_after_a_swap_its_guarantee_holds(tmp_path: Path) -> None:
    rows = [(county, tenure) for (county, tenure), number in COUNTS.items() for _ in range(number)]
    (tmp_path / "h.csv").write_text(
        "hid,county,tenure\n" + "".join(f"{i},{county},{tenure}\n" for i, (county, tenure) in enumerate(rows))
    )
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "plan.toml").write_text(PLAN)
    run(load(tmp_path / "plan.toml"), tmp_path / "packet", key=Key.for_tests(1))
    public = tmp_path / "packet" / "public"
    promise = load_spec(public / "spec.json")
    assert promise.budget.is_finite
    assert any("no guarantee of their own" in note for note in promise.notes)
    table = pl.read_parquet(public / "tables" / "tenure-by-county.parquet")
    assert set(table["count"].to_list()) <= {4, 10, 15, 20}
    assert "low" not in table.columns
    assert pl.read_parquet(public / "tables" / "total.parquet")["count"].to_list() == [20]


def test_what_is_no_rule_is_refused() -> None:
    wrong: list[dict[str, Any]] = [{"rounding": "none"}, {"rounding": "sevens"}]
    for settings in wrong:
        with pytest.raises(InputError):
            SpecialTabulations(tables=[["county"]], **settings)
    with pytest.raises(InputError):
        SpecialTabulations(tables=["county"], base=5)


@pytest.mark.parametrize(
    "settings", [{"base": 3}, {"base": 10}, {"rounding": "fives"}, {"rounding": "graduated"}]
)
def test_the_standard_error_is_that_of_all_counts_behind_a_number(settings: dict[str, Any]) -> None:
    """The root of the mean squared error over every count that is shown so, found by trying all counts."""
    mechanism = SpecialTabulations(tables=[["county", "tenure"]], without_guarantee="a test", **settings)
    counts = {("a", "own"): 6, ("a", "rent"): 31, ("b", "own"): 100, ("b", "rent"): 18}
    release = mechanism.release(town(counts), key=Key.for_tests(1))
    found = frame_of(mechanism.table(release, ["county", "tenure"]))
    every = np.arange(400)
    rounded = mechanism.rule.of(every)
    for count, error in found.select("count", "standard_error").iter_rows():
        behind = every[rounded == count]
        assert error == pytest.approx(np.sqrt(np.mean((behind - count) ** 2.0)))
    if settings == {"base": 3}:
        assert found["standard_error"].to_list() == pytest.approx([(2 / 3) ** 0.5] * found.height)
