"""Budgets are exact, never rounded down, and compared by proof."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import iv
from mpmath.libmp import to_rational

from stirred.errors import BudgetError
from stirred.spec import Budget
from stirred.spec.exact import Interval

fractions = st.fractions(min_value=0, max_value=10**6, max_denominator=10**6)
atoms = st.one_of(
    fractions.map(Budget.of),
    st.fractions(min_value=1, max_value=10**9, max_denominator=10**4).map(Budget.log),
    fractions.map(Budget.sqrt),
)
budgets = st.lists(atoms, min_size=1, max_size=4).map(Budget.total)


def enclosure(budget: Budget, bits: int = 400) -> tuple[Fraction, Fraction]:
    """The value by mpmath's own interval arithmetic, from the written form: an oracle that shares no code."""
    iv.prec = bits
    total = iv.mpf(0)
    for term in budget.exact.split(" + "):
        product = iv.mpf(1)
        for factor in term.split("*"):
            kind, _, inner = factor.partition("(")
            p, _, q = (inner.rstrip(")") if inner else kind).partition("/")
            number = iv.mpf(int(p)) / int(q or 1)
            product *= {"ln": iv.log, "sqrt": iv.sqrt}[kind](number) if inner else number
        total += product
    low, high = total._mpi_
    return Fraction(*map(int, to_rational(low))), Fraction(*map(int, to_rational(high)))


@settings(deadline=None)
@given(budgets, st.integers(0, 12))
def test_never_rounded_down(budget: Budget, decimals: int) -> None:
    low, high = enclosure(budget)
    step = Fraction(1, 10**decimals)
    upper, lower = Fraction(budget.upper(decimals)), Fraction(budget.lower(decimals))
    assert upper >= low
    assert lower <= high
    # and not a step more than needed
    assert upper - step < high
    assert lower + step > low
    assert upper - lower <= step


@settings(deadline=None)
@given(budgets, budgets, budgets)
def test_addition_is_commutative_and_associative(a: Budget, b: Budget, c: Budget) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert ((a + b) + c).exact == (a + (b + c)).exact
    assert hash(a + b) == hash(b + a)


@settings(deadline=None)
@given(budgets, budgets)
def test_order_agrees_with_an_independent_enclosure(a: Budget, b: Budget) -> None:
    (a_low, a_high), (b_low, b_high) = enclosure(a), enclosure(b)
    if a_high < b_low:
        assert a < b <= Budget.infinite()
    elif b_high < a_low:
        assert b < a
    assert (a <= b) or (b <= a)
    assert a <= a + b
    assert (a + b) - b == a


@settings(deadline=None)
@given(budgets)
def test_json_and_squares_round_trip(budget: Budget) -> None:
    assert Budget.from_json(budget.to_json()) == budget
    assert Budget.sqrt(budget.square()) == budget
    assert Budget.from_json(budget.square().to_json()) == budget.square()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Budget.sqrt(8), Budget.sqrt(2) * 2),
        (Budget.log(9), Budget.log(3) * 2),
        (Budget.log(6), Budget.log(2) + Budget.log(3)),
        (Budget.log("9/4") * Fraction(1, 2), Budget.log("3/2")),
        (Budget.sqrt(Budget.of(2)) * Budget.sqrt(3), Budget.sqrt(6)),
        (Budget.sqrt("9/4"), Budget.of("3/2")),
        (Budget.log(4) * Budget.log(9), Budget.log(2) * Budget.log(3) * 4),
        (Budget.sqrt(Budget.log(4)), Budget.sqrt(Budget.log(2) * 2)),
        (Budget.sqrt(Budget.log(5).square() * Fraction(1, 2)), Budget.log(5) * Budget.sqrt("1/2")),
        (Budget.log(Fraction(3**5000)), Budget.log(3) * 5000),
    ],
)
def test_equal_numbers_written_differently_are_equal(one: Budget, other: Budget) -> None:
    assert one == other
    assert hash(one) == hash(other)
    assert one <= other <= one


def test_close_numbers_are_told_apart() -> None:
    big = 10**3000
    assert Budget.log(Fraction(big + 1, big)) > Budget.zero()
    assert Budget.log(big) < Budget.log(big + 1)
    assert Budget.of(Fraction(1, 3)) != Budget.of("0.3333333333333333333333333333")


def test_logarithms_of_huge_fractions_are_exact() -> None:
    q = Fraction(3**400_000 + 1, 2**200_001)
    # 400000 ln 3 − 200001 ln 2
    assert str(Budget.log(q)) == "300814.7863"
    assert Budget.log(q) < Budget.of(300816)


def test_golden_numbers_of_the_paper() -> None:
    # Table 2: b = 264,331; ε = ln((b + 1)/o), printed to nearest: 17.08, 15.43, 14.68, 12.48
    shown = {"1/100": "17.0801", "1/20": "15.4295", "1/10": "14.6822", "1/2": "12.4850"}
    for rate, text in shown.items():
        p = Fraction(rate)
        assert str(Budget.log(264_332 * (1 - p) / p)) == text
    assert Budget.log(264_332 * 99).upper() == Decimal("17.080082")


@pytest.mark.parametrize(
    "bad", [0.1, True, False, None, [1], "one", "1/0", "-1", -1, "1/2/3", Fraction(-1, 2), "nan", "0x1"]
)
def test_what_is_no_exact_number_is_refused(bad: object) -> None:
    with pytest.raises(BudgetError):
        Budget.of(bad)  # type: ignore[arg-type]


def test_floats_are_refused_with_the_fix() -> None:
    with pytest.raises(BudgetError, match=r'write it as text: "0\.1"'):
        Budget.of(0.1)  # type: ignore[arg-type]
    with pytest.raises(BudgetError):
        Budget.of(1) * 0.5  # type: ignore[operator]
    with pytest.raises(BudgetError):
        Budget.log("1/2")


def test_infinity_absorbs_and_zero_times_infinity_is_infinite() -> None:
    inf = Budget.infinite()
    assert Budget.of("inf") == inf == inf + Budget.of(3) == inf * 0 == Budget.zero() * inf
    assert str(inf) == "∞"
    assert Budget.of(10**100) < inf
    assert Budget.from_json(inf.to_json()) == inf
    with pytest.raises(BudgetError):
        inf - inf


def test_written_forms() -> None:
    assert Budget.of("293764/114921").exact == "293764/114921"
    assert Budget.log(264_332).exact == "ln(264332)"
    assert Budget.sqrt("1/2").exact == "sqrt(1/2)"
    assert Budget.log(264_332).to_json() == {"kind": "log", "of": "264332"}
    assert (Budget.log(3) + Budget.of("1/2")).exact == "1/2 + ln(3)"
    assert Budget.zero().exact == "0"


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "log"},
        {"kind": "cube", "of": "2"},
        {"kind": "log", "of": 2},
        {"kind": "fraction", "of": "-1"},
        3,
        None,
        {"kind": "sum", "of": "12"},
        {"kind": "log", "of": "0"},
        {"kind": "log", "of": "1/2"},
    ],
)
def test_unreadable_documents_are_refused(bad: object) -> None:
    with pytest.raises(BudgetError):
        Budget.from_json(bad)


def test_subtraction_refuses_less_than_nothing() -> None:
    assert (Budget.log(6) - Budget.log(3)) == Budget.log(2)
    with pytest.raises(BudgetError):
        Budget.of(1) - Budget.of(2)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 10**40), st.integers(1, 60))
def test_roots_and_logs_of_huge_integers_keep_their_side(n: int, decimals: int) -> None:
    upper = Budget.sqrt(n).upper(decimals)
    scaled = int(Fraction(upper) * 10**decimals)
    assert scaled * scaled >= n * 10 ** (2 * decimals)
    assert (scaled - 1) ** 2 < n * 10 ** (2 * decimals)


def ends(box: object) -> tuple[Fraction, Fraction]:
    low, high = box._mpi_  # type: ignore[attr-defined]
    return Fraction(*map(int, to_rational(low))), Fraction(*map(int, to_rational(high)))


@settings(deadline=None)
@given(st.fractions(min_value=-50, max_value=50, max_denominator=10**9), st.integers(8, 200))
def test_exponentials_are_enclosed(x: Fraction, bits: int) -> None:
    iv.prec = 600
    low, high = ends(iv.exp(iv.mpf(x.numerator) / x.denominator))
    box = Interval.point(x).exp(bits)
    assert box.low <= low <= high <= box.high
    assert box.high - box.low <= high / 2 ** (bits - 4)


@settings(deadline=None)
@given(st.integers(1, 10**60), st.integers(1, 10**6), st.integers(8, 300))
def test_logarithms_near_one_are_enclosed_and_sharp(n: int, k: int, bits: int) -> None:
    q = 1 + Fraction(k, n)
    iv.prec = 1200
    low, high = ends(iv.log(iv.mpf(q.numerator) / q.denominator))
    box = Interval.log(q, bits)
    assert box.low <= high
    assert box.high >= low
    assert box.high - box.low <= high / 2 ** (bits - 4)


def test_integers_of_numpy_are_integers_and_its_floats_are_not() -> None:
    assert Budget.of(np.int64(3)) == Budget.of(3)  # type: ignore[arg-type]
    for bad in (np.float64(0.5), np.bool_(True)):
        with pytest.raises(BudgetError):
            Budget.of(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["1e99999999", "1e-99999999", "1e" + "9" * 5000])
def test_an_exponent_nobody_means_is_refused_at_once(text: str) -> None:
    with pytest.raises(BudgetError, match="exponent"):
        Budget.of(text)
    assert Budget.of("1e0000000003") == Budget.of(1000)
