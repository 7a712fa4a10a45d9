"""The small sibling: margins exact, and the distance bound behind its budget checked by enumeration."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from stirred import ExactMargins
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import BudgetError, InputError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.tables.exact_margins import draw_lattice_noise
from stirred.spec import Budget, Margin


@pytest.mark.parametrize("both", [True, False])
def test_margins_stay(make_census, both):
    census = make_census(4)
    if not both:
        schema = {
            "geography": {"spine": ["tract"]},
            "record": {"household": {"variables": {"kind": {"levels": [1, 2, 3, 4]}}}},
        }
        census = Census.of(schema, {"household": census.table("household", ["tract", "kind"])})
    mechanism = ExactMargins(rows="tract", columns="kind", rho_squared="1/2", both=both)
    release = mechanism.release(census, key=Key.for_tests(2))
    assert isinstance(mechanism, Mechanism)
    assert all(check.kept for check in release.checks)
    assert len(release.checks) == 1 + both
    assert release.specification.rho_squared == Budget.of("1/2")
    assert Margin("household", ("tract",)) in release.specification.multiverse.invariants
    table = release.tables["tract-by-kind"].to_pandas().pivot(index="tract", columns="kind", values="count")
    truth = (
        census.counts("household", ["tract", "kind"])
        .to_pandas()
        .pivot(index="tract", columns="kind", values="count")
        .fillna(0)
    )
    assert (table.sum(axis=1) == truth.sum(axis=1)).all()
    if both:
        assert (table.sum(axis=0) == truth.sum(axis=0)).all()
    else:
        assert list(table.columns) == [1, 2, 3, 4]  # also the level nobody has
    assert not table.equals(truth)


def test_open_levels_are_not_read_off_the_records(make_census):
    mechanism = ExactMargins(rows="tract", columns="kind", rho_squared="1/2", both=False)
    with pytest.raises(InputError, match="open"):
        mechanism.release(make_census(4), key=Key.for_tests(2))


@pytest.mark.parametrize(("both", "worst"), [(True, Fraction(1)), (False, Fraction(2))])
def test_the_distance_bound_is_met_and_tight(both, worst):
    """All tables of a 3 × 3 universe with small entries: the largest |u|²/d² is the constant of Lemma 4, not less."""
    differences = []
    span = range(-2, 3)
    for free in product(span, repeat=4 if both else 6):
        delta = np.zeros((3, 3), int)
        if both:
            delta[:2, :2] = np.array(free).reshape(2, 2)
            delta[:2, 2] = -delta[:2, :2].sum(axis=1)
            delta[2] = -delta[:2].sum(axis=0)
        else:
            delta[:, :2] = np.array(free).reshape(3, 2)
            delta[:, 2] = -delta[:, :2].sum(axis=1)
        distance = Fraction(int(np.abs(delta).sum()), 2)
        if distance:
            u = delta[:2, :2] if both else delta[:, :2]
            differences.append(Fraction(int((u**2).sum())) / distance**2)
    assert max(differences) == worst
    mechanism = ExactMargins(rows="a", columns="b", rho_squared=1, both=both)
    # ρ² d² = |u|²/(2σ²): the claim holds with equality at the worst pair
    assert worst / (2 * mechanism.sigma_squared) == 1


def test_noise_is_zero_sum_and_of_the_stated_variance():
    """40,000 free cells: the variance is within 7 standard errors; false alarm below 1e-11."""
    noise = draw_lattice_noise((201, 201), Fraction(9), Key.for_tests(3), both=True)
    assert not noise.sum(axis=0).any()
    assert not noise.sum(axis=1).any()
    free = noise[:200, :200]
    assert abs(free.var() - 9) < 7 * 9 * np.sqrt(2 / free.size)


def test_degenerate_tables_are_released_exactly():
    for shape in ((1, 4), (4, 1), (1, 1)):
        assert not draw_lattice_noise(shape, Fraction(1), Key.for_tests(4), both=True).any()


def test_floats_are_refused():
    with pytest.raises(BudgetError):
        ExactMargins(rows="a", columns="b", rho_squared=0.5)
