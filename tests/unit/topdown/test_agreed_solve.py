"""The solve of a product that agrees with an earlier one: the optimum, its certificate, and integers that keep every sum."""

import numpy as np
import pytest
from scipy.optimize import minimize

from stirred.mechanisms.topdown.solve.agreed import exchange, kernels
from stirred.mechanisms.topdown.solve.agreed.dual import PricedRows, solve_dual


def problem(seed: int, *, children: int = 3, cells: int = 6, root: bool = False) -> PricedRows:
    """A small one: two measured queries, a partition into two exact groups, a truth that meets every sum."""
    rng = np.random.default_rng(seed)
    C, n = children, cells
    truth = rng.poisson(2.0, (C, n)) + (rng.random((C, n)) < 0.2)
    group = (np.arange(n) >= n // 2).astype(np.int32)
    queries = [np.arange(n) % 2, np.where(np.arange(n) < n - 1, 0, -1)]
    index, target, soft, at = [], [], [], 0
    for number, own in enumerate(queries):
        size = int(own.max()) + 1
        sums = np.stack([truth[:, own == g].sum(axis=1) for g in range(size)], axis=1)
        index.append(np.where(own >= 0, own + at, -1).astype(np.int32))
        target.append(sums + rng.normal(0, 2, sums.shape))
        soft.append(np.full(sums.shape, 1.0 / (3.0 - number)))
        at += size
    index.append(group + at)
    target.append(np.stack([truth[:, group == g].sum(axis=1) for g in range(2)], axis=1).astype(float))
    soft.append(np.zeros((C, 2)))
    return PricedRows(
        index=np.stack(index).astype(np.int32),
        centre=truth + rng.normal(0, 2, (C, n)),
        inverse=np.tile(1.0 / rng.uniform(0.5, 2.0, n), (C, 1)),
        target=np.concatenate(target, axis=1),
        soft=np.concatenate(soft, axis=1),
        parent=np.zeros(0) if root else truth.sum(axis=0).astype(float),
        allowed=np.ones((C, n), bool),
        small=np.where(np.arange(at + 2) < 2, np.arange(at + 2), -1),
    )


def objective(rows: PricedRows, x: np.ndarray) -> float:
    sums = np.empty(rows.target.shape)
    kernels.row_sums(x, rows.index, sums)
    free = rows.soft > 0
    fit = ((sums - rows.target)[free] ** 2 / rows.soft[free]).sum()
    return 0.5 * float(((x - rows.centre) ** 2 / rows.inverse).sum() + fit)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("root", [False, True])
def test_newton_finds_the_optimum_of_an_independent_solver(seed, root):
    rows = problem(seed, children=1 if root else 3, root=root)
    found = solve_dual(rows, tolerance=1e-7)
    assert found.residual <= 1e-7
    C, n = rows.centre.shape
    exact = rows.index[-1]

    def held(flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(C, n)
        free = C if root else C - 1  # below a parent the last child's sums follow from the others
        sums = [(x[:, exact == r].sum(axis=1) - rows.target[:, r])[:free] for r in np.unique(exact)]
        return np.concatenate([*sums, *([] if root else [x.sum(axis=0) - rows.parent])])

    start = np.tile(rows.parent / C, (C, 1)) if not root else np.ones((C, n))
    other = minimize(
        lambda flat: objective(rows, flat.reshape(C, n)), start.ravel(), method="SLSQP",
        bounds=[(0, None)] * (C * n), constraints={"type": "eq", "fun": held}, options={"ftol": 1e-12, "maxiter": 400},
    )  # fmt: skip
    assert objective(rows, found.x) <= other.fun + 1e-4
    assert np.abs(found.x.ravel() - other.x).max() < 1e-2
    assert np.abs(held(found.x.ravel())).max() < 1e-6


def test_exchanges_keep_exact_sums_and_bring_the_measured_ones_nearer():
    rows = problem(11, children=4, cells=40)
    x = solve_dual(rows).x
    group = rows.index[-1] - rows.index[-1].min()
    order = np.argsort(group, kind="stable").astype(np.int64)
    begin = np.searchsorted(group[order], np.arange(3)).astype(np.int64)
    exact, parent = rows.target[:, -2:].astype(np.int64), rows.parent.astype(np.int64)
    X = np.zeros(x.shape, np.int64)
    assert exchange.in_turn(x, order, parent, begin, exact, rows.allowed, X)

    def check() -> None:
        assert (X >= 0).all()
        assert np.array_equal(X.sum(axis=0), parent)
        for g in range(2):
            assert np.array_equal(X[:, group == g].sum(axis=1), exact[:, g])

    check()
    measured = np.ascontiguousarray(rows.index[:-1])
    off, weight = np.empty(rows.target.shape), 1.0 / np.maximum(rows.soft, 1e-12)
    kernels.row_sums(X - x, measured, off)
    stiff = 1.0 / rows.inverse
    before = float((weight * off**2)[:, :-2].sum() + (stiff * (X - x) ** 2).sum())
    exchange.exchanged(X, x, measured, weight, stiff, off, order, begin, rows.allowed, 40, 400)
    check()
    again = np.empty(rows.target.shape)
    kernels.row_sums(X - x, measured, again)
    assert np.allclose(off[:, :-2], again[:, :-2])
    assert float((weight * again**2)[:, :-2].sum() + (stiff * (X - x) ** 2).sum()) < before
