"""The designed noise against a generic solver, against closed forms, and at the edges where nothing can be designed."""

import numpy as np
import pytest
from scipy.optimize import minimize

from stirred.errors import InputError
from stirred.mechanisms.cell_key import designed
from stirred.mechanisms.cell_key.design import law


def generic(values: np.ndarray, variance: float, stay: float | None, mono: bool) -> np.ndarray:
    """The law of largest entropy by a solver that knows nothing of its form."""
    n = len(values)
    zero = np.flatnonzero(values == 0)
    wants = [
        {"type": "eq", "fun": lambda p: p.sum() - 1},
        {"type": "eq", "fun": lambda p: p @ values},
        {"type": "ineq", "fun": lambda p: variance - p @ values**2},
    ]
    if mono:
        low = [i for i in range(n - 1) if values[i + 1] <= 0]
        wants += [{"type": "ineq", "fun": lambda p, i=i: p[i + 1] - p[i]} for i in low]
    if stay is not None and len(zero):
        wants.append({"type": "eq", "fun": lambda p: p[zero[0]] - stay})
    found = minimize(
        lambda p: float((p * np.log(p)).sum()),
        np.full(n, 1 / n),
        jac=lambda p: np.log(p) + 1,
        bounds=[(1e-10, 1)] * n,
        constraints=wants,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    return np.asarray(found.x)


@pytest.mark.parametrize(
    ("values", "variance", "stay", "mono"),
    [
        (np.arange(-1.0, 3), 1.0, None, True),  # the variance does not bind
        (np.arange(-1.0, 4), 1.0, None, True),  # two values are pooled
        (np.arange(-6.0, 7), 5.0, None, True),
        (
            np.array([-6.0, -3, -2, -1, 0, 1, 2, 3, 4, 5]),
            3.0,
            0.5,
            True,
        ),  # js = 2, pooled below a fixed chance
        (np.array([-2.0, 1, 2, 3, 4, 5]), 3.0, 0.5, True),  # cannot stay
        (np.arange(-1.0, 4), 1.5, None, False),
        (np.arange(-4, 21) / 4, 2.0, None, True),  # with fractions
    ],
)
def test_law_is_the_generic_solver_s(
    values: np.ndarray, variance: float, stay: float | None, mono: bool
) -> None:
    assert law(values, variance, stay=stay, mono=mono) == pytest.approx(
        generic(values, variance, stay, mono), abs=2e-5
    )


@pytest.mark.parametrize("variance", [0.5, 2.0, 4.0])
def test_symmetric_rows_are_cut_discrete_gaussians(variance: float) -> None:
    values = np.arange(-4.0, 5)
    chances = law(values, variance)
    ratio = np.log(chances[4] / chances[5:])
    assert ratio == pytest.approx(ratio[0] * np.arange(1, 5) ** 2, rel=1e-6)
    assert chances @ values**2 == pytest.approx(variance, abs=1e-10)


def test_rows_meet_what_was_asked() -> None:
    table = designed(5, 3, js=2, stay=0.5)
    assert sorted(table.rows) == [float(i) for i in range(9)]
    for at, row in table.rows.items():
        shown = at + row.values
        assert ((shown == 0) | (shown > 2)).all()
        assert row.chances @ row.values == pytest.approx(0, abs=1e-6)
        assert row.variance <= 3 + 1e-6
        if at > 2:
            assert row.chances[row.values == 0] == pytest.approx([0.5])


def test_a_chance_to_stay_that_contradicts_mono_is_refused() -> None:
    """With p(0) = 0.05 and p(−1) below it, the mean of a count of 1 cannot be 0."""
    with pytest.raises(InputError, match="no law of noise"):
        designed(2, 1, stay=0.05)


@pytest.mark.parametrize(
    "wishes",
    [{"largest": 0, "variance": 1}, {"largest": 3, "variance": 0}, {"largest": 2, "variance": 0.5, "js": 1}],
)
def test_what_cannot_be_designed_is_refused(wishes: dict[str, float]) -> None:
    with pytest.raises(InputError):
        designed(**wishes)  # type: ignore[arg-type]
