"""The calculators give the numbers of the library, rounded up, and refuse what they cannot read."""

from decimal import Decimal

import pytest

from stirred.errors import StirredError
from stirred.mechanisms.swap.budget import theorem_1
from stirred.web.calculators import compose_products, convert_budget, draw_curve, strata_budget, swap_curve


@pytest.mark.parametrize(
    ("b", "rate", "epsilon"),
    [  # printed in the paper's Table 2 (1940, Massachusetts), to two decimals
        ("264331", "0.01", "17.08"),
        ("264331", "0.05", "15.43"),
        ("264331", "0.1", "14.69"),
        ("264331", "0.5", "12.49"),
    ],
)
def test_the_curve_has_the_papers_numbers(b: str, rate: str, epsilon: str) -> None:
    found = swap_curve(b, rate).epsilon.upper(6)
    assert abs(found - Decimal(epsilon)) <= Decimal("0.01")


def test_the_curve_marks_its_rate_and_the_best_one() -> None:
    found = swap_curve("100", "1/2", "5")
    assert found.epsilon == theorem_1(100, "1/2")
    low, high = found.between or (0, 0)
    assert theorem_1(100, low).upper(6) <= 5
    assert theorem_1(100, high).upper(6) <= 5
    picture = draw_curve(found)
    assert "style" not in picture
    assert 'class="here"' in picture
    assert swap_curve("100", "1/2", "0.1").unreached is not None


def test_a_rate_of_zero_promises_nothing() -> None:
    assert not swap_curve("100", "0").epsilon.is_finite
    assert swap_curve("100", "0").odds == "any number"
    draw_curve(swap_curve("100", "0"))


def test_the_products_add_up_and_switch_off() -> None:
    assert compose_products(None).specification is not None
    whole = compose_products(None)
    assert whole.specification is not None
    assert whole.specification.rho_squared.upper(5) == Decimal("55.37504")
    less = compose_products({switch.key for switch in whole.switches[1:]})
    assert less.specification is not None
    assert less.specification.rho_squared < whole.specification.rho_squared
    assert compose_products(set()).specification is None


def test_strata_that_cannot_move_cost_and_protect_nothing() -> None:
    found = strata_budget("100 = 1 / 7\n1 = 1 / 1", "1/2")
    assert (found.moving, found.largest) == (0, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: swap_curve("12x", "1/2"),
        lambda: swap_curve("9" * 13, "1/2"),
        lambda: swap_curve("-3", "1/2"),
        lambda: swap_curve("10", "two"),
        lambda: swap_curve("10", "3/2"),
        lambda: convert_budget("-1", "1e-10"),
        lambda: convert_budget("1", "0"),
        lambda: convert_budget("<script>", "1e-10"),
        lambda: strata_budget("", "1/2"),
        lambda: strata_budget("10 4 4", "1/2"),
        lambda: strata_budget("10 = / 4", "1/2"),
        lambda: strata_budget("10 = 5 6 / 4", "1/2"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_way_out(wrong: object) -> None:
    with pytest.raises(StirredError) as found:
        wrong()  # type: ignore[operator]
    assert found.value.why
    assert found.value.fix
