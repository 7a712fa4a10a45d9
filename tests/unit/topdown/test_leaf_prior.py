"""The compiled prior of leaves against its formulas, written down once more with NumPy."""

import numpy as np
import pytest

from stirred.mechanisms.topdown.solve import parent as kernel
from stirred.mechanisms.topdown.solve.parent import LeafPrior, add_prior

QUERIES = 2
FORMULAS = {"scatter": 4.0, "least": 0.02, "freedom": 4.0, "weight": 1000.0}


def parent_of(rng, kinds=3):
    """A random parent: leaves without units, a kind without any, cells outside every kind, outliers, far and near."""
    C, n, leaves, cells = int(rng.integers(1, 12)), int(rng.integers(1, 40)), 20, 60
    units = rng.integers(0, 30, (leaves, kinds)) * (rng.random((leaves, kinds)) < 0.7)
    units[:, rng.integers(kinds)] *= rng.integers(2)
    persons = 3.0 * units + rng.normal(0, 20, units.shape) * (1 + 40 * (rng.random(units.shape) < 0.2))
    prior = LeafPrior(
        units,
        persons,
        rng.gamma(1.0, 30.0, units.shape),
        rng.uniform(0.003, 2, kinds),
        rng.integers(-1, kinds, cells),
    )
    counts = np.ceil(rng.gamma(0.3, 100.0, n) + 1e-9)
    children, place = np.sort(rng.permutation(leaves)[:C]), np.sort(rng.permutation(cells)[:n])
    problem = (
        counts, rng.random((C, n)) < 0.9, rng.normal(0, 3, (C, n)),
        rng.integers(-1, 4, (QUERIES, n)).astype(np.int32), rng.gamma(1.0, 1.0, (3, QUERIES)), rng.integers(0, 3, C),
    )  # fmt: skip
    return prior, children, place, problem


def spread_of(y, mean, noise, share, beta, weight):
    """Each leaf's own estimate of β, ((y - M)² - s² - M) / M², weighted by its precision, and β with a weight of its own."""
    own = (mean > 0) & (share < 1)
    y, mean, noise = y[own], mean[own], noise[own]
    precision = (mean**2 / (noise + mean + beta * mean**2)) ** 2
    each = ((y - mean) ** 2 - noise - mean) / mean**2
    return np.clip(np.average([*each, beta], weights=[*precision, weight]), 0.0025, 10.0)


def expected(prior, children, place, counts, *, scatter, least, freedom, weight):
    """The quadratic of every child: matrix and linear term, one term for the persons of each kind."""
    kind = prior.kind[place]
    H, b = np.zeros((len(children), len(kind), len(kind))), np.zeros((len(children), len(kind)))
    for a in np.unique(kind[kind >= 0]):
        inside, units = (kind == a).astype(float), prior.units[children, a].astype(float)
        if not units.any():
            continue
        mean = counts[kind == a].sum() * units / units.sum()
        y, noise = prior.persons[children, a], prior.variance[children, a]
        spread = spread_of(y, mean, noise, units / units.sum(), prior.totals[a], weight)
        variance = np.maximum(scatter * mean + spread * mean**2, least)
        apart = y - mean
        odd = apart**2 / (variance + noise)
        trust = np.where(mean > 0, np.minimum(1.0, (freedom + 1) / (freedom + odd)) / variance, 0.0)
        H += trust[:, None, None] * np.outer(inside, inside)
        b += (trust * mean)[:, None] * inside
    return H, b


def matrices(groups, weights):
    """The matrix of each child: its weights times the pairs of cells that count in one answer."""
    same = (groups[:, :, None] == groups[:, None, :]) & (groups[:, :, None] >= 0)
    return np.einsum("cq,qij->cij", weights, same.astype(float))


def agrees(rng, formulas):
    prior, children, place, problem = parent_of(rng)
    counts, allowed, linear, groups, weights, classes = problem
    terms, queries, own = add_prior(prior, children, place, *problem)
    H, b = expected(prior, children, place, counts, **formulas)
    assert np.array_equal(queries[:QUERIES], groups)
    assert np.array_equal(own[:, :QUERIES], weights[classes])
    assert np.array_equal(terms[~allowed], linear[~allowed])
    return np.allclose(
        matrices(queries[QUERIES:], own[:, QUERIES:]), H, rtol=1e-12, atol=1e-15
    ) and np.allclose((terms - linear)[allowed], b[allowed], rtol=1e-10, atol=1e-12)


def test_the_kernel_adds_the_quadratic_of_the_formulas():
    rng = np.random.default_rng(1)
    assert all(agrees(rng, FORMULAS) for _ in range(300))


@pytest.mark.parametrize("changed", [{"scatter": 3.0}, {"least": 30.0}, {"freedom": 1e12}, {"weight": 1e12}])
def test_another_formula_would_be_seen(changed):
    """With smaller variances, a larger least one, without outliers, or with the whole tree's β the formulas disagree."""
    rng = np.random.default_rng(9)
    assert not all(agrees(rng, FORMULAS | changed) for _ in range(300))


def test_a_block_group_with_empty_homes_draws_its_blocks_less_than_another():
    """Two block groups with the same homes and noise: in one half of the blocks stand empty, so its prior weighs less."""
    homes, beta = np.full((8, 1), 40), np.array([0.02])
    full, season = np.full((8, 1), 80.0), np.tile([[160.0], [0.0]], (4, 1))
    weights = []
    for persons in (full, season):
        prior = LeafPrior(homes, persons, np.full((8, 1), 9.0), beta, np.zeros(1, np.int64))
        _, _, own = add_prior(
            prior, np.arange(8), np.zeros(1, np.int64), np.array([640.0]), np.ones((8, 1), bool), np.zeros((8, 1)),
            np.zeros((0, 1), np.int32), np.ones((1, 0)), np.zeros(8, np.int64),
        )  # fmt: skip
        weights.append(own[:, 0])
    assert (weights[1] < 0.2 * weights[0]).all()


def test_without_kinds_nothing_is_added():
    prior, children, place, problem = parent_of(np.random.default_rng(2))
    nowhere = prior._replace(kind=np.full(len(prior.kind), -1))
    terms, queries, own = add_prior(nowhere, children, place, *problem)
    assert np.array_equal(terms, problem[2])
    assert (len(queries), own.shape[1]) == (QUERIES, QUERIES)
    assert len(kernel.build_no_prior().kind) == 0
