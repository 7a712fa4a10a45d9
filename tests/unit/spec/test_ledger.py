"""The ledger says who spent what, and what is missing when it is overdrawn."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import BudgetError
from stirred.spec import Budget, Ledger, NormalizedRenyi


def test_overdrawn_says_requested_remaining_difference() -> None:
    ledger = Ledger(limit=Budget.of(2)).spend("topdown", "state", Budget.of("3/2"))
    with pytest.raises(BudgetError, match=r"requested 1\.000000, remaining 0\.500000, difference 0\.500000"):
        ledger.spend("topdown", "county", Budget.of(1))
    assert ledger.spend("topdown", "county", Budget.of("1/2")).remaining.is_zero


def test_it_is_immutable_and_adds_in_its_own_premetric() -> None:
    empty = Ledger(limit=Budget.sqrt(5), output_premetric=NormalizedRenyi())
    spent = empty.spend("a", "x", Budget.of(1)).spend("b", "y", Budget.of(1))
    assert empty.entries == ()
    assert empty.total.is_zero
    assert spent.total.squared() == Budget.of(2)
    assert spent.remaining.squared() == Budget.of(3)
    assert spent.spend("c", "z", Budget.sqrt(3)).remaining.is_zero
    with pytest.raises(BudgetError):
        spent.spend("c", "z", Budget.of(2))


def test_without_a_limit_anything_goes_and_floats_do_not() -> None:
    assert not Ledger().remaining.is_finite
    assert not Ledger().spend("a", "b", Budget.infinite()).total.is_finite
    with pytest.raises(BudgetError):
        Ledger(limit=Budget.of(1)).spend("a", "b", Budget.infinite())
    with pytest.raises(BudgetError):
        Ledger().spend("a", "b", 0.1)  # type: ignore[arg-type]


@settings(deadline=None)
@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), max_size=6))
def test_spent_and_remaining_add_up_to_the_limit(amounts: list[Fraction]) -> None:
    ledger = Ledger(limit=Budget.of(6))
    for amount in amounts:
        ledger = ledger.spend("mechanism", "query", Budget.of(amount))
    assert ledger.total + ledger.remaining == Budget.of(6)
