"""Stirring beside the PSA, against figures that were computed apart from the product (theory notes, enumeration)."""

from fractions import Fraction

import pytest

from stirred.catalog import catalog
from stirred.paper.beyond import (
    CURVE_STRATUM,
    compare_rich,
    compare_two_types,
    figure_stirred,
    stirred_1940,
    stirring_beside_the_paper,
)
from stirred.spec import Budget, Exchanges, Hamming

LARGEST_1940 = 264_331


@pytest.mark.parametrize(("share", "psa", "stirring"), [("1/20", 30.86, 15.43), ("1/2", 24.97, 12.49)])
def test_different_records_lose_half(share: str, psa: float, stirring: float) -> None:
    row = compare_rich("Table 2", "", LARGEST_1940, Fraction(share))
    assert row["psa"] == pytest.approx(psa, abs=0.011)
    assert row["computed"] == pytest.approx(stirring, abs=0.011)


@pytest.mark.parametrize(
    ("share", "psa", "stirring"),
    [("1/100", 15.64, 10.65), ("1/20", 13.91, 7.39), ("1/10", 13.05, 5.95), ("1/2", 2.87, 2.25)],
)
def test_two_types_lose_less_than_the_psa(share: str, psa: float, stirring: float) -> None:
    first = round(0.62 * LARGEST_1940)
    row = compare_two_types("Table 2", "", first, LARGEST_1940 - first, Fraction(share))
    assert row["psa"] == pytest.approx(psa, abs=0.02)
    assert row["computed"] == pytest.approx(stirring, abs=0.02)


@pytest.mark.parametrize(
    ("first", "second", "share", "psa", "stirring"),
    [(4, 3, "1/4", 3.633, 2.468), (3, 3, "1/10", 5.668, 4.275), (5, 2, "1/2", 1.728, 1.494)],
)
def test_small_strata_agree_with_enumeration(
    first: int, second: int, share: str, psa: float, stirring: float
) -> None:
    row = compare_two_types("", "", first, second, Fraction(share))
    assert row["psa"] == pytest.approx(psa, abs=0.011)
    assert row["computed"] == pytest.approx(stirring, abs=0.011)


def test_the_page_has_every_stratum_and_stirring_always_loses_less() -> None:
    document = stirring_beside_the_paper()
    assert [row["of"] for row in document["rows"]].count("Table 5") == 12
    assert {row["law"] for row in document["rows"]} == {"cycles", "types"}
    chosen = [row for row in document["rows"] if row["records"] == "all different" or row["law"] == "types"]
    assert all(row["computed"] < row["psa"] for row in chosen)
    # tenure alone: by cycles stirring would lose more than the PSA (12.49 against 2.87 at one half)
    other = [row for row in document["rows"] if row not in chosen]
    assert [row["share"] for row in other if row["computed"] > row["psa"]] == ["1/100", "1/20", "1/10", "1/2"]
    largest = {row["n"] for row in document["rows"] if row["of"] == "Table 2"}
    assert largest == {LARGEST_1940}
    # 8.4: a share of e^L/(e^L + n - 1) may stay at most, and stirring reaches it
    point = next(row for row in document["curve"] if row["percent"] == 50 and row["method"] != "PSA")
    assert point["loss"] == pytest.approx(6.9068, abs=1e-4)  # ln 999
    assert CURVE_STRATUM == 1_000


def test_the_catalog_states_what_2020_would_have_promised() -> None:
    psa, stirred = catalog["whatif-county@1/20"], catalog["whatif-county-stirred@1/20"]
    assert (psa.input_premetric, stirred.input_premetric) == (Hamming("household"), Exchanges("household"))
    assert stirred.budget == Budget.log((3_420_628 - 1) * 19)
    doubled = psa.within(psa.budget).per(Exchanges("household"))
    assert float(doubled.budget.upper(4)) == pytest.approx(2 * float(stirred.budget.upper(4)), abs=1e-3)
    assert stirred.evidence.status == "proved"
    assert stirred.multiverse == psa.multiverse


def test_the_same_share_changes_the_same_and_loses_less() -> None:
    """The closed form of the PSA's mean table gives 1.365 % at five percent; every method has it, to its spread."""
    rows = {row["method"]: row for row in figure_stirred(runs=2, rates=(Fraction(1, 20),))["rows"]}
    assert {name: row["loss"] for name, row in rows.items()} == {
        "PSA": 13.91,
        "stirring by cycles": 15.43,
        "stirring by tenure": 7.39,
    }
    # single draws lie within about 0.2 percentage points of the mean (twenty draws of each method)
    assert all(row["computed"] == pytest.approx(0.01365, abs=0.005) for row in rows.values())


def test_a_stirred_table_keeps_the_margins() -> None:
    document = stirred_1940()
    for margin in ("county", "tenure"):
        for name in {row[margin] for row in document["rows"]}:
            own = [row for row in document["rows"] if row[margin] == name]
            assert len({sum(row[column] for row in own) for column in ("true", "swapped", "computed")}) == 1
    assert document["loss"] == {"swapped": 2.95, "stirred": 2.26}
    assert document["mape"]["stirred"] == pytest.approx(0.1365, abs=0.02)
