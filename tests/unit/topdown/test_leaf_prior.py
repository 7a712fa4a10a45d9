"""The compiled prior of leaves against its formulas, written down once more with NumPy."""

import numpy as np
import pytest

from stirred.mechanisms.topdown.solve import parent as kernel
from stirred.mechanisms.topdown.solve.parent import LeafPrior, add_prior

QUERIES = 2
FORMULAS = {"scatter": 4.0, "least": 0.02, "freedom": 4.0}


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


def expected(prior, children, place, counts, *, scatter, least, freedom):
    """The quadratic of every child: matrix and linear term, one term for the persons of each kind."""
    kind = prior.kind[place]
    H, b = np.zeros((len(children), len(kind), len(kind))), np.zeros((len(children), len(kind)))
    for a in np.unique(kind[kind >= 0]):
        inside, units = (kind == a).astype(float), prior.units[children, a].astype(float)
        if not units.any():
            continue
        mean = counts[kind == a].sum() * units / units.sum()
        variance = np.maximum(scatter * mean + prior.totals[a] * mean**2, least)
        apart = prior.persons[children, a] - mean
        odd = apart**2 / (variance + prior.variance[children, a])
        weight = np.where(mean > 0, np.minimum(1.0, (freedom + 1) / (freedom + odd)) / variance, 0.0)
        H += weight[:, None, None] * np.outer(inside, inside)
        b += (weight * mean)[:, None] * inside
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


@pytest.mark.parametrize("changed", [{"scatter": 3.0}, {"least": 30.0}, {"freedom": 1e12}])
def test_another_formula_would_be_seen(changed):
    """With smaller variances, a larger least one, or without outliers the formulas disagree."""
    rng = np.random.default_rng(9)
    assert not all(agrees(rng, FORMULAS | changed) for _ in range(300))


def test_without_kinds_nothing_is_added():
    prior, children, place, problem = parent_of(np.random.default_rng(2))
    nowhere = prior._replace(kind=np.full(len(prior.kind), -1))
    terms, queries, own = add_prior(nowhere, children, place, *problem)
    assert np.array_equal(terms, problem[2])
    assert (len(queries), own.shape[1]) == (QUERIES, QUERIES)
    assert len(kernel.build_no_prior().kind) == 0
