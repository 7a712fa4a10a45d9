"""The solve of a product that agrees with an earlier one: the optimum, its certificate, and integers that keep every sum."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from stirred.mechanisms.topdown.dhc_given_pl import dual, parents
from stirred.mechanisms.topdown.dhc_given_pl.dual import (
    PricedRows,
    System,
    estimate_linearly,
    find_interior_prices,
    solve_dual,
)
from stirred.mechanisms.topdown.dhc_given_pl.parents import (
    FIRST_WEIGHT_FACTOR,
    GivenSumsEstimator,
    GivenSumsParent,
)


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
    # Rows are numbered small (the first query), exact, fine (the second query).
    order = np.array([0, 1, 3, 4, 2])
    number = np.argsort(order)
    return PricedRows(
        kind=queries[0].astype(np.int32),
        members=np.array([[0], [1]], np.int32),
        lines=np.stack([np.where(own >= 0, number[own], -1) for own in (index[2], index[1])], axis=1).astype(
            np.int32
        ),
        small=2,
        exact=2,
        centre=(truth + rng.normal(0, 2, (C, n))).T.copy(),
        inverse=np.tile(1.0 / rng.uniform(0.5, 2.0, n), (C, 1)).T.copy(),
        target=np.concatenate(target, axis=1).T[order].copy(),
        soft=np.concatenate(soft, axis=1).T[order].copy(),
        parent=np.zeros(0) if root else truth.sum(axis=0).astype(float),
        give=np.zeros(0 if root else n),
        lump=np.zeros(5),
        pulled=np.zeros(5),
    )


def measured(rows: PricedRows) -> np.ndarray:
    """Queries × cells → row, without the exact ones."""
    return np.ascontiguousarray(np.concatenate([rows.members[rows.kind].T, rows.lines[:, 1:].T]))


def objective(rows: PricedRows, x: np.ndarray) -> float:
    sums = np.empty(rows.target.T.shape)
    parents.measure_errors(np.zeros(x.shape, np.int64), -x, measured(rows), sums)
    free = rows.soft.T > 0
    fit = ((sums - rows.target.T)[free] ** 2 / rows.soft.T[free]).sum()
    return 0.5 * float(((x - rows.centre.T) ** 2 / rows.inverse.T).sum() + fit)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("root", [False, True])
def test_newton_finds_the_optimum_of_an_independent_solver(seed, root):
    rows = problem(seed, children=1 if root else 3, root=root)
    found = solve_dual(rows, tolerance=1e-7)
    assert found.residual <= 1e-7
    n, C = rows.centre.shape
    exact = rows.lines[:, 0]

    def held(flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(C, n)
        free = C if root else C - 1  # below a parent the last child's sums follow from the others
        sums = [(x[:, exact == r].sum(axis=1) - rows.target[r])[:free] for r in np.unique(exact)]
        return np.concatenate([*sums, *([] if root else [x.sum(axis=0) - rows.parent])])

    start = np.tile(rows.parent / C, (C, 1)) if not root else np.ones((C, n))
    other = minimize(
        lambda flat: objective(rows, flat.reshape(C, n)), start.ravel(), method="SLSQP",
        bounds=[(0, None)] * (C * n), constraints={"type": "eq", "fun": held}, options={"ftol": 1e-12, "maxiter": 400},
    )  # fmt: skip
    assert objective(rows, found.x.T) <= other.fun + 1e-4
    assert np.abs(found.x.T.ravel() - other.x).max() < 1e-2
    assert np.abs(held(found.x.T.ravel())).max() < 1e-6


def together(seed: int, cells: int = 6) -> tuple[PricedRows, PricedRows, np.ndarray, np.ndarray]:
    """A measured root with two children; the children alone, and the root's own rows: 1/W and what they aim at."""
    own = problem(seed, children=2, cells=cells)
    rng = np.random.default_rng(1)
    soft, target = np.array([0.5, 0.5, 0.0, 0.0, 0.25]), rng.normal(12.0, 3.0, 5)
    rows = replace(
        own,
        parent=rng.normal(4.0, 2.0, cells),
        give=np.full(cells, 0.7),
        lump=np.where(soft > 0, 1.0 / np.maximum(soft + own.soft.sum(axis=1), 1e-9), 0.0),
        pulled=own.target.sum(axis=1) - target,
    )
    return rows, own, soft, target


def test_a_root_that_is_measured_is_fitted_together_with_its_children():
    """Its rows and cells are soft; a product with its price is the same as adding its squares to the objective."""
    rows, own, soft, target = together(4)
    measured_rows, give = soft > 0, rows.give
    found = solve_dual(rows, tolerance=1e-8)
    assert found.residual <= 1e-8
    index = measured(rows)

    def all_squares(flat: np.ndarray) -> float:
        x = flat.reshape(2, 6)
        whole, sums = x.sum(axis=0), np.zeros((1, 5))
        parents.measure_errors(np.zeros((1, 6), np.int64), -whole[None], index, sums)
        fit = ((sums[0] - target)[measured_rows] ** 2 / soft[measured_rows]).sum()
        return objective(own, x) + 0.5 * float(fit + ((whole - rows.parent) ** 2 / give).sum())

    exact = rows.lines[:, 0]
    held = {
        "type": "eq",
        "fun": lambda flat: np.concatenate(
            [flat.reshape(2, 6)[:, exact == r].sum(axis=1) - rows.target[r] for r in np.unique(exact)]
        ),
    }
    other = minimize(
        all_squares, np.ones(12), method="SLSQP", bounds=[(0, None)] * 12, constraints=held,
        options={"ftol": 1e-12, "maxiter": 400},
    )  # fmt: skip
    assert np.abs(found.x.T.ravel() - other.x).max() < 1e-2


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", ["below a parent", "root alone", "root with its children"])
def test_a_search_that_is_stuck_begins_again_near_the_optimum(seed, case, monkeypatch):
    """One or two steps are too few from far away; from the interior method's prices they are enough."""
    rows = {
        "below a parent": lambda: problem(seed, children=5, cells=60),
        "root alone": lambda: problem(seed, children=1, cells=200, root=True),
        "root with its children": lambda: together(seed, cells=60)[0],
    }[case]()
    free = solve_dual(rows, tolerance=1e-9)
    assert free.residual <= 1e-9
    system, begun = System(rows), []
    price, products = find_interior_prices(system)
    assert products > 0
    assert dual._search(system, price, 1e9)[0].worst < 0.05  # persons, before any step of Newton's
    assert dual._search(system, system.start, 1e9)[0].worst > 1.0
    monkeypatch.setattr(dual, "MAX_NEWTON_STEPS", 1 if case == "root alone" else 2)
    monkeypatch.setattr(
        dual, "find_interior_prices", lambda own: begun.append(own) or find_interior_prices(own)
    )
    found = solve_dual(rows, tolerance=1e-6)
    assert len(begun) == 1
    assert found.residual <= 1e-6
    assert np.abs(found.x - free.x).max() < 1e-4


def test_exchanges_keep_exact_sums_and_bring_the_measured_ones_nearer():
    rows = problem(11, children=4, cells=40)
    x = np.ascontiguousarray(solve_dual(rows).x.T)
    group = rows.lines[:, 0] - 2
    allowed = np.ones(x.shape, bool)
    order = np.argsort(group, kind="stable").astype(np.int64)
    begin = np.searchsorted(group[order], np.arange(3)).astype(np.int64)
    exact, parent = rows.target[2:4].T.astype(np.int64).copy(), rows.parent.astype(np.int64)
    X = np.zeros(x.shape, np.int64)
    assert parents.round_in_turn(x, order, parent, begin, exact, allowed, X)

    def check() -> None:
        assert (X >= 0).all()
        assert np.array_equal(X.sum(axis=0), parent)
        for g in range(2):
            assert np.array_equal(X[:, group == g].sum(axis=1), exact[:, g])

    check()
    index = measured(rows)
    weight = np.ascontiguousarray(1.0 / np.maximum(rows.soft.T, 1e-12))
    off, again = np.empty(weight.shape), np.empty(weight.shape)
    parents.measure_errors(X, x, index, off)
    stiff = np.ascontiguousarray(1.0 / rows.inverse.T)
    own = rows.soft[:, 0] > 0
    before = float((weight * off**2)[:, own].sum() + (stiff * (X - x) ** 2).sum())
    parents.exchange_persons(X, x, index, weight, stiff, off, order, begin, allowed, 40, 400)
    check()
    parents.measure_errors(X, x, index, again)
    assert np.allclose(off[:, own], again[:, own])
    assert float((weight * again**2)[:, own].sum() + (stiff * (X - x) ** 2).sum()) < before


def tied(seed: int, children: int = 4) -> tuple[PricedRows, np.ndarray]:
    """Forty cells, two small queries with four and three answers, five exact groups with noise of their own."""
    rng = np.random.default_rng(seed)
    n, C = 40, children
    truth = rng.poisson(6.0, (C, n))
    queries, group = (np.arange(n) % 4, np.arange(n) // 14), rng.permutation(n) % 5
    sums = [np.stack([truth[:, own == g].sum(axis=1) for g in range(int(own.max()) + 1)]) for own in queries]
    # Exact sums that the noisy answers contradict: persons moved between groups, in pairs of children.
    moved = truth.copy()
    for c in range(C):
        take = rng.choice(np.flatnonzero(truth[c] > 3), 3, replace=False)
        moved[c, take] -= 3
        moved[(c + 1) % C, take] += 3
    exact = np.stack([moved[:, group == g].sum(axis=1) for g in range(5)])
    kinds, kind = np.unique(np.stack(queries, axis=1), axis=0, return_inverse=True)
    noisy = np.concatenate([own + rng.normal(0, 3, own.shape) for own in sums])
    rows = PricedRows(
        kind=kind.ravel().astype(np.int32),
        members=np.ascontiguousarray((kinds + np.array([0, 4])).astype(np.int32)),
        lines=(7 + group)[:, None].astype(np.int32),
        small=7,
        exact=5,
        centre=np.full((n, C), 6.0),
        inverse=np.full((n, C), 5.0),
        target=np.concatenate([noisy, exact]).astype(float),
        soft=np.concatenate([np.full((4, C), 1.0 / 90), np.full((3, C), 1.0 / 60), np.zeros((5, C))]),
        parent=truth.sum(axis=0).astype(float),
        give=np.zeros(n),
        lump=np.zeros(12),
        pulled=np.zeros(12),
    )
    return rows, np.array([45.0] * 4 + [30.0] * 3)


@pytest.mark.parametrize("seed", range(3))
def test_linear_estimates_are_those_of_least_squares_with_all_sums(seed):
    """An independent solution: one dense system for all children, their exact sums and their parent's cells."""
    rows, times = tied(seed)
    n, C = rows.centre.shape
    A = np.zeros((12, n))
    for query in rows.members.T:
        A[query[rows.kind], np.arange(n)] = 1.0
    A[rows.lines[:, 0], np.arange(n)] = 1.0
    weight = np.sqrt(1.0 / (rows.soft[:7, 0] * times))[:, None]
    sure = np.concatenate([np.kron(np.eye(C), A[7:]), np.kron(np.ones((1, C)), np.eye(n))])
    known = np.concatenate([rows.target[7:].T.ravel(), rows.parent])
    start = np.linalg.lstsq(sure, known, rcond=None)[0]
    assert np.allclose(sure @ start, known)
    values, directions = np.linalg.svd(sure)[1:]
    free = directions[int((values > 1e-9).sum()) :].T
    left = np.kron(np.eye(C), weight * A[:7])
    noisy = (weight * rows.target[:7]).T.ravel()
    best = start + free @ np.linalg.lstsq(left @ free, noisy - left @ start, rcond=1e-10)[0]
    expected = A[:7] @ best.reshape(C, n).T
    found = estimate_linearly(rows, times)
    assert np.abs(found - expected).max() < 0.01
    assert np.abs(found - rows.target[:7]).max() > 1.0  # the exact sums do contradict the answers


def test_below_a_parent_the_fit_keeps_to_linear_estimates_and_most_to_the_fewest_answers():
    """The targets add up to the parent's sums, which noisy answers do not, and noise alone decides whether they are used."""
    rng = np.random.default_rng(3)
    n, C = 40, 3
    truth = rng.poisson(9.0, (C, n))
    queries = [SimpleNamespace(name=str(k), size=k, of=lambda cells, k=k: cells % k) for k in (2, 20)]
    noise = {query.name: rng.normal(0.0, 3.0, (C, query.size)) for query in queries}

    def answers(depth: int, nodes: np.ndarray, cells: np.ndarray, names: frozenset[str]) -> np.ndarray:
        (query,) = (one for one in queries if one.name in names)
        sums = np.stack([truth[:, np.arange(n) % query.size == g].sum(axis=1) for g in range(query.size)], 1)
        return 0.2 * (sums + noise[query.name])[:, query.of(cells)]

    low = np.stack([truth[:, :n // 2].sum(axis=1), truth[:, n // 2:].sum(axis=1)], axis=1)  # fmt: skip
    parent = GivenSumsParent(
        1, np.arange(C), np.arange(n), truth.sum(axis=0), np.ones((C, n), bool),
        SimpleNamespace(query=SimpleNamespace(of=lambda cells: cells // (n // 2)), low=[low, low]),
        tuple(queries), np.full((C, 2), 0.2),
    )  # fmt: skip
    noisy, plain = (
        parent.rows(SimpleNamespace(linear=answers, measurements=SimpleNamespace(key=key)))
        for key in (1, None)
    )
    assert noisy.small == plain.small == 22
    whole = [truth[:, np.arange(n) % k == g].sum() for k in (20, 2) for g in range(k)]
    assert np.abs(noisy.target[:22].sum(axis=1) - whole).max() < 1e-6
    assert np.abs(plain.target[:22].sum(axis=1) - whole).max() > 1.0
    assert np.allclose(plain.soft[:22], 1.0 / (FIRST_WEIGHT_FACTOR * 0.2))
    assert np.allclose(noisy.soft[:20], 1.0 / (FIRST_WEIGHT_FACTOR * 0.2))
    assert np.allclose(noisy.soft[20:22], 1.0 / (FIRST_WEIGHT_FACTOR * 6.0**1.5 * 0.2))
    assert np.allclose((noisy.soft * noisy.ahead[:, None])[:22], plain.soft[:22])  # rounding counts all alike
    faint = replace(parent, weights=np.full((C, 2), 1e-4)).rows(
        SimpleNamespace(linear=answers, measurements=SimpleNamespace(key=1))
    )
    assert np.allclose(
        faint.soft[:22], 1.0 / (FIRST_WEIGHT_FACTOR * 1e-4)
    )  # answers that are mostly noise: none comes before others
    x = solve_dual(noisy).x
    sums = np.stack([x[np.arange(n) % 2 == g].sum(axis=0) for g in range(2)])
    assert np.abs(sums - noisy.target[20:22]).max() < 0.02


@dataclass
class _Joint:
    """A root with its children whose fit ends with sums that are off."""

    violation: float
    above: object = None

    def rows(self, _targets: object) -> None:
        """None are needed."""

    def fit(self, _rows: object) -> SimpleNamespace:
        return SimpleNamespace(violation=self.violation, way="joint")


@pytest.mark.parametrize(
    ("joint", "alone", "taken"), [(5e-4, 1e-5, "joint"), (75.0, 5e-4, "alone"), (2.0, 3.0, "joint")]
)
def test_a_root_whose_sums_are_not_reached_with_its_children_is_fitted_alone(joint, alone, taken):
    estimator = SimpleNamespace(
        allotment=SimpleNamespace(spine=SimpleNamespace(levels=("state", "county"), first_child=[np.array([0, 2])])),
        targets=SimpleNamespace(measurements=SimpleNamespace(key=1)),
        constraints=SimpleNamespace(find_allowed=lambda *_: None),
        _build_problem=lambda *_: _Joint(joint),
    )  # fmt: skip
    root = SimpleNamespace(
        cells=np.arange(3),
        counts=np.zeros(0),
        weights=None,
        fit=lambda _: SimpleNamespace(violation=alone, way="alone"),
    )
    assert GivenSumsEstimator._solve_with_children(estimator, root, None).way == taken
