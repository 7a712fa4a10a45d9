"""The budget at which a noisy count behaves as an invariant."""

from fractions import Fraction
from math import exp

import pytest

from stirred.assess.universe import gaussian, geometric
from stirred.errors import InputError


def chance_unchanged(rho_squared: float) -> float:
    """The chance that discrete Gaussian noise of this ρ² (sensitivity 1) is 0."""
    return 1 / (1 + 2 * sum(exp(-rho_squared * k * k) for k in range(1, 200)))


@pytest.mark.parametrize("beta", ["1/2", "1/20", "1/1000"])
def test_the_budgets_are_the_smallest_ones(beta: str) -> None:
    aim = 1 - float(Fraction(beta))
    epsilon = float(geometric(beta).budget.upper(9))
    assert (1 - exp(-epsilon)) / (1 + exp(-epsilon)) == pytest.approx(aim, abs=1e-8)
    rho_squared = float(gaussian(beta).budget.upper(9))
    assert aim <= chance_unchanged(rho_squared) < aim + 1e-6
    assert chance_unchanged(rho_squared - 1e-6) < aim


def test_more_counts_and_larger_sensitivity_cost_more() -> None:
    one = gaussian("1/20")
    assert gaussian("1/20", counts=100).budget.upper(6) > one.budget.upper(6)
    assert float(gaussian("1/20", sensitivity=2).budget.upper(6)) == pytest.approx(
        4 * float(one.budget.upper(9)), abs=1e-5
    )
    assert geometric("1/20").exact
    assert not one.exact


def test_beta_is_a_probability() -> None:
    with pytest.raises(InputError, match="beta"):
        geometric("0")
