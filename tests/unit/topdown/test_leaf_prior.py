"""The compiled prior of leaves against its formulas, written down once more with NumPy."""

import numpy as np
import pytest

from oracles import topdown_prior
from stirred.mechanisms.topdown.solve import parent as kernel
from stirred.mechanisms.topdown.solve.parent import LeafPrior, add_prior

QUERIES = 2


def parent_of(rng, *, sizes, kinds=3):
    """A random parent: leaves without units, a kind without any, cells outside every kind, outliers, far and near."""
    C, n, leaves, cells = int(rng.integers(1, 12)), int(rng.integers(1, 40)), 20, 60
    units = rng.integers(0, 30, (leaves, kinds)) * (rng.random((leaves, kinds)) < 0.7)
    units[:, rng.integers(kinds)] *= rng.integers(2)
    persons = 3.0 * units + rng.normal(0, 20, units.shape) * (1 + 40 * (rng.random(units.shape) < 0.2))
    prior = LeafPrior(
        units, persons, rng.gamma(1.0, 30.0, units.shape), rng.uniform(1, 5, kinds), rng.uniform(0.003, 2, kinds),
        rng.integers(-1, kinds, cells),
    )  # fmt: skip
    counts = rng.integers(3, 6, n) if sizes == 1 else np.ceil(rng.gamma(0.3, 100.0, n) + 1e-9)
    children, place = np.sort(rng.permutation(leaves)[:C]), np.sort(rng.permutation(cells)[:n])
    problem = (
        counts.astype(float), rng.random((C, n)) < 0.9, rng.normal(0, 3, (C, n)),
        rng.integers(-1, 4, (QUERIES, n)).astype(np.int32), rng.gamma(1.0, 1.0, (3, QUERIES)), rng.integers(0, 3, C),
    )  # fmt: skip
    return prior, children, place, problem


def expected(prior, children, place, problem):
    return topdown_prior.prior_terms(
        prior.units[children], prior.persons[children], prior.variance[children], prior.cells, prior.totals,
        prior.kind[place], problem[0],
    )  # fmt: skip


def matrices(groups, weights):
    """The matrix of each child: its weights times the pairs of cells that count in one answer."""
    same = (groups[:, :, None] == groups[:, None, :]) & (groups[:, :, None] >= 0)
    return np.einsum("cq,qij->cij", weights, same.astype(float))


def agrees(rng, sizes):
    prior, children, place, problem = parent_of(rng, sizes=sizes)
    counts, allowed, linear, groups, weights, classes = problem
    terms, queries, own = add_prior(prior, children, place, *problem)
    H, b = expected(prior, children, place, problem)
    assert np.array_equal(queries[:QUERIES], groups)
    assert np.array_equal(own[:, :QUERIES], weights[classes])
    assert np.array_equal(terms[~allowed], linear[~allowed])
    return (
        np.allclose(matrices(queries[QUERIES:], own[:, QUERIES:]), H, rtol=1e-12, atol=1e-15)
        and np.allclose((terms - linear)[allowed], b[allowed], rtol=1e-10, atol=1e-12)
        and len(queries) == QUERIES + rows(prior.kind[place], counts)
    )


def rows(kind, counts):
    """One query for each kind and size of its cells, one for each kind's total."""
    size = np.floor(np.log(counts) / np.log(2.5)).astype(int)
    inside = kind >= 0
    return len(set(zip(kind[inside], size[inside], strict=True))) + len(set(kind[inside]))


@pytest.mark.parametrize("sizes", [1, 9])
def test_the_kernel_adds_the_quadratic_of_the_formulas(sizes):
    rng = np.random.default_rng(sizes)
    assert all(agrees(rng, sizes) for _ in range(300))


@pytest.mark.parametrize(
    ("name", "value"), [("FREEDOM", 1e12), ("KEPT", 0.0), ("LEAST", 1e-6), ("STEP", 3.0)]
)
def test_another_formula_would_be_seen(monkeypatch, name, value):
    """Without outliers, without the least share, with smaller variances, with other sizes the oracle disagrees."""
    monkeypatch.setattr(topdown_prior, name, value)
    rng = np.random.default_rng(9)
    assert not all(agrees(rng, 9) for _ in range(300))


def test_cases_that_matter_occur():
    """The random parents have outliers, shares at their least, kinds and leaves without units, cells of no kind."""
    rng, seen = np.random.default_rng(9), np.zeros(6, bool)
    for _ in range(300):
        prior, children, place, (counts, *_) = parent_of(rng, sizes=9)
        kind = prior.kind[place]
        seen[0] |= bool((kind < 0).any())
        for a in np.unique(kind[kind >= 0]):
            number = prior.units[children, a].astype(float)
            seen[1] |= not number.any()
            seen[2] |= bool(number.any() and (number == 0).any())
            total, own = counts[kind == a].sum(), (children, a)
            means, spread, _, trust = topdown_prior.leaves(
                number, prior.persons[own], prior.variance[own], float(prior.totals[a]), total
            )
            seen[3] |= bool((trust[number > 0] < 0.5).any())
            seen[4] |= bool((trust == 1.0).any())
            seen[5] |= bool(
                (spread > prior.cells[a] * means).any() and (spread < prior.cells[a] * means).any()
            )
    assert seen.all()


def test_without_leaves_or_kinds_nothing_is_added():
    rng = np.random.default_rng(2)
    prior, children, place, problem = parent_of(rng, sizes=9)
    nowhere = prior._replace(kind=np.full(len(prior.kind), -1))
    terms, queries, own = add_prior(nowhere, children, place, *problem)
    assert np.array_equal(terms, problem[2])
    assert (len(queries), own.shape[1]) == (QUERIES, QUERIES)
    assert len(kernel.build_no_prior().kind) == 0
