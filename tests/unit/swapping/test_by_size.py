"""Budgets by size and rate against the paper's numbers and the published formulas."""

from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import log

import pytest

from stirred.errors import BudgetError, InputError
from stirred.mechanisms.swap.budget import largest_loss, rates_for, smallest_budget, theorem_1, tight_budget
from stirred.spec.budgets import Budget
from stirred.spec.laws import MAX_EXACT_RECORDS, bound_step_ratio, count_derangements

RATES = [Fraction(p) for p in ("1/100", "1/3", "1/2", "61/100", "7/10", "9/10", "99/100")]


def test_derangements_are_the_known_numbers() -> None:
    # OEIS A000166
    assert [count_derangements(n) for n in range(10)] == [1, 0, 1, 2, 9, 44, 265, 1854, 14833, 133496]
    assert count_derangements(20) == 895014631192902121


@pytest.mark.parametrize("n", [*range(6, 90)])
def test_closed_ratio_is_never_below_the_exact_one(n: int) -> None:
    exact = Fraction(count_derangements(n), count_derangements(n - 2))
    assert exact <= n * (n - 1) + 1
    assert bound_step_ratio(n) >= exact
    assert exact == n * (n - 1) - Fraction((-1) ** n * (n - 1), count_derangements(n - 2))


def test_closed_ratio_begins_where_it_is_proved() -> None:
    # at 5 the bound n(n−1)+1 = 21 is below d(5)/d(3) = 22
    assert bound_step_ratio(5) == 22
    assert MAX_EXACT_RECORDS >= 5


@pytest.mark.parametrize(
    ("rate", "paper", "nearest", "least"),
    [
        ("1/100", "17.080082", "17.08", "17.080076"),
        ("1/20", "15.429401", "15.43", "15.429395"),
        ("1/10", "14.682186", "14.68", "14.682181"),
        ("1/2", "12.484962", "12.48", "12.484956"),
    ],
)
def test_table_2_of_the_paper(rate: str, paper: str, nearest: str, least: str) -> None:
    found = theorem_1(264331, rate)
    assert found.upper() == Decimal(paper)
    assert round(float(found.upper(9)), 2) == float(nearest)
    assert tight_budget(264331, rate).upper() == Decimal(least)


@pytest.mark.parametrize(
    ("b", "five", "fifty"),
    [
        (13475623, 19.36, 16.42),
        (3948028, 18.13, 15.19),
        (3420628, 17.99, 15.05),
        (939185, 16.70, 13.75),
        (6204, 11.68, 8.73),
        (4549, 11.37, 8.42),
    ],
)
def test_table_5_of_the_paper(b: int, five: float, fifty: float) -> None:
    assert round(float(theorem_1(b, "1/20").upper(9)), 2) == five
    assert round(float(theorem_1(b, "1/2").upper(9)), 2) == fifty


def test_2010_estimate_of_the_paper() -> None:
    assert round(float(theorem_1(3650000, "1/25").upper(9)), 2) == 18.29
    assert round(float(theorem_1(3650000, "1/50").upper(9)), 2) == 19.00


@pytest.mark.parametrize("n", range(2, 13))
@pytest.mark.parametrize("p", RATES)
def test_tight_is_the_maximum_over_all_pairs_of_counts(n: int, p: Fraction) -> None:
    # independent of the code: doubles over k, k′, and every Δ from max(2, |k−k′|) on
    d = [1, 0, 1, 2, 9, 44, 265, 1854, 14833, 133496, 1334961, 14684570, 176214841]
    o = float(p / (1 - p))
    counts = [0, *range(2, n + 1)]
    brute = max(
        ((k - j) * log(o) + log(d[j] / d[k])) / delta
        for k in counts
        for j in counts
        for delta in range(max(2, abs(k - j)), n + 1)
    )
    assert float(tight_budget(n, p).upper(9)) == pytest.approx(brute, abs=2e-9)
    assert tight_budget(n, p) == largest_loss(n, p)
    assert tight_budget(n, p) <= theorem_1(n, p)


@pytest.mark.parametrize("p", RATES)
def test_a_larger_stratum_never_loses_less(p: Fraction) -> None:
    values = [tight_budget(n, p) for n in [*range(2, 70), 1000, 10**6]]
    assert all(a <= b for a, b in pairwise(values))


def test_three_records_need_their_own_maximum() -> None:
    # d(3)/d(1) does not exist; 0 → 3 moved records at Δ = 3 loses (ln 2)/3 − ln o
    assert tight_budget(3, "1/20") == Budget.log(2 * 19**3) * Fraction(1, 3)


@pytest.mark.parametrize("rate", ["0", "1"])
def test_never_or_always_swapping_costs_everything(rate: str) -> None:
    assert not theorem_1(2, rate).is_finite
    assert not tight_budget(2, rate).is_finite
    assert theorem_1(0, rate).is_zero
    assert tight_budget(0, rate).is_zero


def test_rates_for_rounds_inward() -> None:
    low, high = rates_for(10, 3)
    assert (low, high) == (Fraction("0.353863"), Fraction("0.952574"))
    step = Fraction(1, 10**6)
    target = Budget.of(3)
    assert theorem_1(10, low) <= target < theorem_1(10, low - step)
    assert theorem_1(10, high) <= target < theorem_1(10, high + step)


@pytest.mark.parametrize("b", [2, 10, 4549, 10**6])
@pytest.mark.parametrize("epsilon", ["7", "9.25", "20"])
def test_rates_for_keeps_the_budget_at_both_ends(b: int, epsilon: str) -> None:
    for rate in rates_for(b, epsilon):
        assert 0 < rate < 1
        assert theorem_1(b, rate) <= Budget.of(epsilon)


def test_the_two_rates_may_lie_closer_together_than_six_decimals() -> None:
    least, _ = smallest_budget(10**6)
    low, high = rates_for(10**6, least.upper(9).__str__())
    assert low <= high
    assert theorem_1(10**6, low) <= Budget.of(str(least.upper(9)))


def test_smallest_budgets_of_the_paper() -> None:
    assert smallest_budget(10)[0].upper(2) == Decimal("1.20")
    assert smallest_budget(10**6)[0].upper(2) == Decimal("6.91")
    assert round(float(smallest_budget(10)[1]) * 100) == 77
    assert round(float(smallest_budget(10**6)[1]) * 100, 1) == 99.9


def test_below_the_minimum_the_error_names_it() -> None:
    with pytest.raises(BudgetError) as caught:
        rates_for(10, 1)
    assert "1.1990" in str(caught.value)
    assert "77%" in str(caught.value)


@pytest.mark.parametrize("rate", ["3/2", "-1/2", "1.0001"])
def test_rates_outside_the_unit_interval_are_refused(rate: str) -> None:
    with pytest.raises(InputError, match="outside"):
        theorem_1(10, rate)


def test_floats_and_negative_sizes_are_refused() -> None:
    with pytest.raises(BudgetError, match="float"):
        theorem_1(10, 0.05)  # type: ignore[arg-type]
    with pytest.raises(InputError):
        theorem_1(-1, "1/2")
    with pytest.raises(InputError):
        theorem_1(2.0, "1/2")  # type: ignore[arg-type]
