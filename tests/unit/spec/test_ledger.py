"""The ledger says who spent what, and what is missing when it is overdrawn."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import BudgetError
from stirred.spec import Approximate, Budget, Entry, Ledger, NormalizedRenyi


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
    assert spent.total.square() == Budget.of(2)
    assert spent.remaining.square() == Budget.of(3)
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


def test_delta_is_booked_and_its_total_is_never_exceeded() -> None:
    ledger = Ledger(limit=Budget.of(10), output_premetric=Approximate("1/10"))
    with pytest.raises(BudgetError, match="does not say its δ"):
        ledger.spend("m", "x", Budget.of(1))
    for name in "abcd":
        ledger = ledger.spend("m", name, Budget.of(1), delta="1/50")
    ledger = ledger.spend("m", "pure", Budget.of(1), delta=0)
    assert (ledger.total, ledger.delta, ledger.delta_left) == (Budget.of(5), Fraction(4, 50), Fraction(1, 50))
    with pytest.raises(BudgetError, match=r"requested 1/10, remaining 1/50, difference 2/25"):
        ledger.spend("m", "e", Budget.of(1), delta="1/10")
    assert ledger.spend("m", "e", Budget.of(1), delta="1/50").delta_left == 0
    for bad in (0.01, "-1/10", 1):
        with pytest.raises(BudgetError):
            ledger.spend("m", "e", Budget.of(1), delta=bad)  # type: ignore[arg-type]
    with pytest.raises(BudgetError, match="which has none"):
        Ledger().spend("m", "x", Budget.of(1), delta="1/10")


def test_ten_releases_at_one_tenth_are_not_booked_at_one_tenth() -> None:
    """The old ledger read (10, 1/10) where the releases have (10, 1): nothing is promised any more."""
    ledger = Ledger(limit=Budget.of(10), output_premetric=Approximate("1/10"))
    ledger = ledger.spend("m", "0", Budget.of(1), delta="1/10")
    with pytest.raises(BudgetError, match="larger δ than is left"):
        ledger.spend("m", "1", Budget.of(1), delta="1/10")
    lines = tuple(Entry(by="m", on=str(i), budget=Budget.of(1), delta=Fraction(1, 10)) for i in range(2))
    with pytest.raises(BudgetError, match="larger δ than it allows"):
        Ledger(output_premetric=Approximate("1/10"), entries=lines)


@settings(deadline=None)
@given(st.lists(st.fractions(min_value=0, max_value=1, max_denominator=50), max_size=6))
def test_spent_and_remaining_add_up_to_the_limit(amounts: list[Fraction]) -> None:
    ledger = Ledger(limit=Budget.of(6))
    for amount in amounts:
        ledger = ledger.spend("mechanism", "query", Budget.of(amount))
    assert ledger.total + ledger.remaining == Budget.of(6)
