"""The designed noise against a generic solver, against closed forms, and at the edges where nothing can be designed."""

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from shared_data import EXTRACTS
from stirred import CellKey
from stirred.errors import InputError
from stirred.mechanisms.tables.cell_key import design_table
from stirred.mechanisms.tables.cell_key.perturbation import design_law


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
    assert design_law(values, variance, stay=stay, mono=mono) == pytest.approx(
        generic(values, variance, stay, mono), abs=2e-5
    )


@pytest.mark.parametrize("variance", [0.5, 2.0, 4.0])
def test_symmetric_rows_are_cut_discrete_gaussians(variance: float) -> None:
    values = np.arange(-4.0, 5)
    chances = design_law(values, variance)
    ratio = np.log(chances[4] / chances[5:])
    assert ratio == pytest.approx(ratio[0] * np.arange(1, 5) ** 2, rel=1e-6)
    assert chances @ values**2 == pytest.approx(variance, abs=1e-10)


def test_rows_meet_what_was_asked() -> None:
    table = design_table(5, 3, js=2, stay=0.5)
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
        design_table(2, 1, stay=0.05)


@pytest.mark.parametrize(
    "wishes",
    [{"largest": 0, "variance": 1}, {"largest": 3, "variance": 0}, {"largest": 2, "variance": 0.5, "js": 1}],
)
def test_what_cannot_be_designed_is_refused(wishes: dict[str, float]) -> None:
    with pytest.raises(InputError):
        design_table(**wishes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("step", "number", "others"), [(7, 15, 12), pytest.param(1, 104, 76, marks=pytest.mark.slow)]
)
def test_laws_with_a_lowered_chance_to_stay_are_those_of_ptable(step: int, number: int, others: int) -> None:
    """The 104 designs of tests/data/peers, computed once by ptable 1.0.0.9000; it rounds to 1e-8 and stops at 1e-7."""
    laws = pl.read_csv(EXTRACTS / "peers" / "ptable_laws.csv", schema_overrides={"pstay": pl.Float64})
    differ = 0
    designs = list(laws.group_by(["D", "V", "js", "pstay", "mono"], maintain_order=True))[::step]
    for (largest, variance, js, stay, mono), rows in designs:
        wishes = {"js": js, "stay": stay, "mono": mono}
        table = design_table(largest, variance, lowered=True, **wishes)
        for at, value, chance in rows.select("i", "v", "p").iter_rows():
            row = table.rows[float(at)]
            assert row.chances[row.values == value] == pytest.approx([chance], abs=1e-6)
        assert {float(at) for at in rows["i"]} == {*table.rows} - {0.0}
        if stay is not None:
            try:
                plain = design_table(largest, variance, **wishes)
                differ += any(
                    np.abs(plain.rows[at].chances - table.rows[at].chances).max() > 1e-4 for at in table.rows
                )
            except InputError:
                differ += 1
    assert len(designs) == number
    assert differ == others  # the two rules are not the same


def test_the_rule_of_ptable_is_a_setting() -> None:
    own = {
        rule: CellKey(tables=[["a"]], D=3, V="2", pstay="0.7", pstay_rule=rule)
        for rule in ("exact", "lowered")
    }
    stays = {
        rule: row.chances[row.values == 0][0]
        for rule, row in ((r, m.perturbation.rows[3.0]) for r, m in own.items())
    }  # type: ignore[union-attr]
    assert stays["exact"] == pytest.approx(0.7)
    assert stays["lowered"] < 0.7
    assert own["lowered"].parameters()["pstay_rule"] == "lowered"
    assert "pstay_rule" not in own["exact"].parameters()
    with pytest.raises(InputError, match="pstay_rule"):
        CellKey(tables=[["a"]], pstay="0.7", pstay_rule="other")
