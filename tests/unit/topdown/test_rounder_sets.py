"""Rounding with the query sets of production: the optimum of its objective, by an independent integer programme."""

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.solve.rounding import build_set_network, list_sets, round_network


def objective(b: np.ndarray, fraction: np.ndarray, sets: list[np.ndarray], first: float) -> float:
    value = float(((1 - 2 * fraction) * b).sum() + np.abs(b - np.rint(fraction)).sum())
    for groups, weight in [*((one, 1.0) for one in sets), (np.zeros(b.shape[1], int), first)]:
        for group in np.unique(groups):
            inside = groups == group
            near = np.rint(fraction[:, inside].sum(axis=1))
            value += weight * float(np.abs(b[:, inside].sum(axis=1) - near).sum())
    return value


def least(fraction: np.ndarray, left: np.ndarray, sets: list[np.ndarray]) -> float:
    """The least objective by an integer programme with one auxiliary number for each absolute value."""
    C, n = fraction.shape
    rows, near = [], []
    for groups in [*sets, np.zeros(n, int)]:
        for group in np.unique(groups):
            for c in range(C):
                row = np.zeros((C, n))
                row[c, groups == group] = 1
                rows.append(row.ravel())
                near.append(np.rint(fraction[c, groups == group].sum()))
    A, r, k = np.array(rows), np.array(near), len(rows)
    columns = np.concatenate([np.tile(np.eye(n), (1, C)), np.zeros((n, k))], axis=1)
    constraints = [
        LinearConstraint(columns, left, left),
        LinearConstraint(np.concatenate([A, -np.eye(k)], axis=1), -np.inf, r),
        LinearConstraint(np.concatenate([-A, -np.eye(k)], axis=1), -np.inf, -r),
    ]
    up = np.rint(fraction)
    cost = np.concatenate([(1 - 2 * fraction + 1 - 2 * up).ravel(), np.ones(k)])
    bounds = Bounds(np.zeros(C * n + k), np.concatenate([np.ones(C * n), np.full(k, np.inf)]))
    kinds = np.concatenate([np.ones(C * n), np.zeros(k)])
    return float(milp(cost, constraints=constraints, bounds=bounds, integrality=kinds).fun + up.sum())


@pytest.mark.parametrize("seed", range(6))
def test_it_is_the_optimum(seed):
    rng = np.random.default_rng(seed)
    histogram = Workload.preset("pl94-persons").histogram
    cells = np.sort(rng.choice(histogram.cells, 14, replace=False))
    sets = list_sets(histogram, cells)
    assert [len(np.unique(one)) for one in sets] == sorted(
        (len(np.unique(one)) for one in sets), reverse=True
    )
    parent = rng.integers(1, 5, len(cells))
    x = (rng.dirichlet(np.ones(3), len(cells)) * parent[:, None]).T
    free = np.full((3, 1), 1e300)
    zero = np.zeros(len(cells), np.int32)
    net = build_set_network(x, parent, np.ones(x.shape, bool), sets, zero, -free, free)
    found = round_network(net)
    assert (found.sum(axis=0) == parent).all()
    floor = np.floor(x + 1e-9)
    fraction = x - floor
    assert set(np.unique(found - floor)) <= {0.0, 1.0}
    wanted = least(fraction, parent - floor.sum(axis=0), sets)
    assert objective(found - floor, fraction, sets, 1.0) == pytest.approx(wanted, abs=1e-6)
    # a pass of its own for the total: no other rounding has nearer totals
    total = round_network(
        build_set_network(x, parent, np.ones(x.shape, bool), sets, zero, -free, free, first=True)
    ).sum(axis=1)
    fewest = round_network(
        build_set_network(x, parent, np.ones(x.shape, bool), [], zero, -free, free, first=True)
    ).sum(axis=1)
    near = np.rint(fraction.sum(axis=1)) + floor.sum(axis=1)
    assert np.abs(total - near).sum() == np.abs(fewest - near).sum()
    # held groups keep their bounds
    held = np.unique(sets[-1], return_inverse=True)[1].astype(np.int32)
    sums = np.stack([x[:, held == g].sum(axis=1) for g in range(held.max() + 1)], axis=1)
    bound = round_network(
        build_set_network(x, parent, np.ones(x.shape, bool), sets, held, np.floor(sums), np.ceil(sums))
    )
    kept = np.stack([bound[:, held == g].sum(axis=1) for g in range(held.max() + 1)], axis=1)
    assert (np.abs(kept - sums) < 1).all()


def test_a_release_keeps_every_invariant(make_census):
    census = make_census(2)
    plain = TopDown(workload="pl94-persons", mode="classic")
    mechanism = TopDown(workload="pl94-persons", mode="classic", rounder="production")
    assert "rounder" not in plain.identity()
    assert mechanism.identity() != plain.identity()
    release = mechanism.release(census, key=Key.for_tests(1))
    assert all(check.kept for check in release.checks)
    assert release.microdata["person"].num_rows == census.count("person")
