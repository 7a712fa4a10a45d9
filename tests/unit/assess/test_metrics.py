"""Utility metrics against figures computed by hand or by another library."""

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats
from scipy.stats.contingency import association

from stirred.assess.conclusions import (
    count_oddities,
    cramers_v,
    cross_table,
    dissimilarity,
    entropy_index,
    interval_overlap,
    propensity_score,
    regression,
)
from stirred.assess.utility import (
    TablePair,
    all_metrics,
    mape,
    measure_errors,
    percent_difference,
    rank_changes,
    total_variation,
)
from stirred.errors import InputError
from stirred.mechanisms.swap.estimates import keeps_table

# The paper's Table 1: owned, rented, owned swapped, rented swapped, of fourteen counties.
TABLE_1 = """7461 3825 5907 5379
14736 18417 13770 19383
33747 63931 35537 62141
1207 534 946 795
53936 81300 52631 82605
7433 6442 6337 7538
30597 58166 32267 56496
9427 8630 8145 9912
104144 147687 100372 151459
593 432 471 554
44885 40285 38566 46604
24857 23882 21549 27190
49656 176553 67357 158852
53126 78535 51950 79711"""


def test_mape_of_the_papers_table() -> None:
    cells = np.array([line.split() for line in TABLE_1.splitlines()], dtype=np.float64)
    value, left_out = mape(cells[:, :2].ravel(), cells[:, 2:].ravel())
    assert abs(value - 0.1378) < 5e-5
    assert left_out == 0


def test_undefined_cells_are_counted_not_hidden() -> None:
    value, left_out = mape(np.array([0.0, 0.0]), np.array([1.0, 0.0]))
    assert np.isnan(value)
    assert left_out == 2


def test_bureau_rule_for_zeros() -> None:
    # d/((0 + alt)/2) = 200 % whatever alt is
    assert percent_difference(np.zeros(2), np.array([1.0, 9.0])).tolist() == [200.0, 200.0]


def test_rank_correlation_agrees_with_scipy() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.poisson(9, 50).astype(float), rng.poisson(9, 50).astype(float)
    assert rank_changes(a, b)[0] == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-9)


def test_cramers_v_agrees_with_scipy() -> None:
    table = np.array([[12, 5, 9], [3, 22, 1]])
    assert cramers_v(table.astype(float)) == pytest.approx(association(table, method="cramer"), abs=1e-12)


def test_regression_recovers_the_line_and_robust_errors() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=4000)
    y = 1 + 2 * x + rng.normal(size=4000) * (1 + np.abs(x))
    fit = regression(pl.DataFrame({"y": y, "x": x}), "y", ["x"])
    line = stats.linregress(x, y)
    assert fit[1].value == pytest.approx(line.slope, rel=1e-9)
    # heteroscedastic noise: the robust error is larger than the classical one
    assert fit[1].error > line.stderr * 1.2
    assert interval_overlap(fit[1], fit[1]) == pytest.approx(1.0)


def test_propensity_ratio_is_one_for_two_samples_of_one_population() -> None:
    # mean 1, standard deviation √(2/(k−1)) = 0.2 for k = 51 cells; limits at 5.5 s.d. (false alarm below 1e-6)
    rng = np.random.default_rng(11)
    frames = [pl.DataFrame({"v": rng.integers(0, 51, 20000)}) for _ in range(2)]
    _, ratio = propensity_score(frames[0], frames[1], ["v"])
    assert 0.2 < ratio < 2.1
    _, apart = propensity_score(frames[0], frames[1].with_columns(pl.col("v") // 2), ["v"])
    assert apart > 50


def test_segregation_by_hand() -> None:
    # shares 3/4, 1/4 against 1/4, 3/4: D = 1/2
    assert dissimilarity(np.array([3.0, 1.0]), np.array([1.0, 3.0])) == 0.5
    expected = 1 - stats.entropy([0.75, 0.25]) / np.log(2)
    assert entropy_index(np.array([[3.0, 1.0], [1.0, 3.0]])) == pytest.approx(expected)


def test_total_variation_of_empty_tables() -> None:
    assert total_variation(np.zeros(2), np.zeros(2)) == 0.0
    assert total_variation(np.zeros(2), np.ones(2)) == 1.0


def test_errors_by_size_of_the_area_not_of_the_cell() -> None:
    a = pa.table({"area": ["s", "s", "l", "l"], "x": ["1", "2", "1", "2"], "count": [3, 4, 900, 200]})
    b = pa.table({"area": ["s", "s", "l", "l"], "x": ["1", "2", "1", "2"], "count": [4, 3, 890, 210]})
    frame = measure_errors(TablePair.align(a, b, by=["area", "x"]), table="t", area=["area"], edges=(0, 1000))
    mae = frame.filter(pl.col("metric") == "MAE").select("size", "value").rows()
    assert mae == [("all", 5.5), ("0–999", 1.0), ("1,000+", 10.0)]


def test_alignment_needs_the_columns_it_compares() -> None:
    with pytest.raises(InputError, match="county"):
        TablePair.align(pa.table({"count": [1]}), pa.table({"county": ["a"], "count": [1]}), by=["county"])


def test_what_a_swap_keeps() -> None:
    assert keeps_table(["tenure", "race"], match=["size"], swap=["county"])
    assert not keeps_table(["size", "tenure", "county"], match=["size"], swap=["county"])
    assert cross_table(pl.DataFrame({"a": ["x"], "b": ["y"], "count": [7]}), "a", "b").tolist() == [[7.0]]


def test_oddities() -> None:
    before = pl.DataFrame({"households": [0, 2], "persons": [3, 5], "adults": [1, 2]})
    after = pl.DataFrame({"households": [0, 2], "persons": [3, 0], "adults": [0, 0]})
    found = {o.name: (o.reference, o.protected) for o in count_oddities(before, after)}
    assert found["persons but no household"] == (1, 1)
    assert found["households but no person"] == (0, 1)
    assert found["everybody under 18"] == (0, 1)
    assert "all of one sex" not in found


def test_every_metric_of_equal_tables_is_zero_error() -> None:
    same = np.array([1.0, 2.0, 30.0])
    values = {m.name: m.value for m in all_metrics(same, same)}
    assert values.pop("rank correlation") == 1.0
    assert set(values.values()) == {0.0}
