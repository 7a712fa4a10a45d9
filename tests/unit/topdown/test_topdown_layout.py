"""The compiled layout of one parent's children, against the same sums and projections written plainly."""

import numpy as np
import pytest

from oracles.topdown_numpy import ProblemLayout
from oracles.topdown_solves import least_squares
from stirred.kernels import add_four, add_products, compile_kernel, compile_slowest, scale_four
from stirred.mechanisms.topdown.solve import crossing
from stirred.mechanisms.topdown.solve.descent import (
    NEVER_COUNT,
    descend,
    list_positive,
    move_thresholds,
    multiply_hessian,
    multiply_on_face,
)
from stirred.mechanisms.topdown.solve.parent import build_problem, merge_equal_queries, solve, solve_problem
from stirred.mechanisms.topdown.solve.root import project_whole


def parent(seed, C, n, queries=5, classes=2):
    """A random parent whose queries leave some cells out and sometimes refine each other."""
    rng = np.random.default_rng(seed)
    fine = rng.integers(0, max(2, n // 2), n)
    rows = [np.arange(n), fine, fine // 2, fine // 4, np.zeros(n, int)]
    rows += [np.where(rng.random(n) < 0.3, -1, rng.integers(0, 3, n)) for _ in range(queries - 3)]
    rows += [np.where(rows[-1] < 0, -1, 0)]
    weights = rng.random((classes, len(rows))) + 0.1
    allowed = rng.random((C, n)) < 0.7
    allowed[rng.integers(0, C, n), np.arange(n)] = True
    return build_problem(
        rng.integers(1, 50, n).astype(float), rng.normal(0, 20, (C, n)), allowed, np.stack(rows).astype(np.int32),
        weights, rng.integers(0, classes, C).astype(np.int32),
    )  # fmt: skip


@pytest.mark.parametrize(("seed", "C", "n"), [(1, 1, 1), (2, 3, 7), (3, 4, 12), (4, 9, 40), (5, 33, 100)])
def test_sums_through_finer_queries_are_the_hessian(seed, C, n):
    problem = parent(seed, C, n)
    laid = ProblemLayout.out(problem, *merge_equal_queries(problem.groups, problem.weights))
    x = np.random.default_rng(seed).normal(size=(C, n))
    X = np.zeros(laid.linear.shape)
    for c in range(C):
        X[c // 4, c % 4 :: 4] = x[c]
    out = np.empty_like(X)
    multiply_hessian(X, laid.queries, laid.weights, laid.diagonal, np.empty(4 * laid.queries[1][-1] + 4), out)
    for c in range(C):
        H = np.zeros((n, n))
        for q, row in enumerate(problem.groups):
            same = (row[:, None] == row[None, :]) & (row >= 0)[:, None]
            H += problem.weights[problem.classes[c], q] * same
        assert np.allclose(out[c // 4, c % 4 :: 4], H @ x[c], rtol=0, atol=1e-10)


@pytest.mark.parametrize(("seed", "C", "n"), [(3, 4, 12), (5, 33, 100)])
def test_products_on_a_face_have_the_bits_of_the_whole_histograms(seed, C, n):
    problem = parent(seed, C, n)
    laid = ProblemLayout.out(problem, *merge_equal_queries(problem.groups, problem.weights))
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(laid.linear.shape) < 0.2, rng.random(laid.linear.shape), 0.0)
    sums, whole = np.empty(4 * laid.queries[1][-1] + 4), np.empty_like(X)
    multiply_hessian(X, laid.queries, laid.weights, laid.diagonal, sums, whole)
    first, place = np.empty(len(X) + 1, np.int64), np.empty(X.size // 4, np.int32)
    list_positive(X, first, place)
    for b, row in enumerate(X):
        own = place[first[b] : first[b + 1]]
        cells = (4 * own[:, None] + np.arange(4)).ravel()
        assert set(np.flatnonzero(row)) <= set(cells.tolist())
        P, Z = np.r_[9.0, row[cells]], np.empty(len(cells) + 1)
        multiply_on_face(P, 1, own, laid.queries, laid.weights[b], laid.diagonal[b], sums, Z)
        assert Z[1:].tobytes() == whole[b][cells].tobytes()


@compile_kernel
def four_wide(y, x, w):
    """All three operations, at places that four does not divide."""
    add_four(y, 1, x, 2)
    scale_four(y, 6, x, 0, w, 3)
    add_products(y, 3, x, 1, w, 2)


def test_four_numbers_at_a_time_are_four_numbers():
    rng = np.random.default_rng(4)
    x, w, ours = rng.normal(size=(3, 11))
    theirs = ours.copy()
    four_wide(ours, x, w)
    four_wide.__wrapped__(theirs, x, w)
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("start", [-np.inf, -50.0, 0.0, 3.0, 1e6])
def test_the_root_is_projected_alike_from_any_start(start):
    rng = np.random.default_rng(8)
    n, group = 60, np.arange(60, dtype=np.int32) % 4 - 1  # a quarter of the cells in no group
    v, d, sums = rng.normal(0, 10, n), rng.random(n) + 0.5, np.array([40.0, np.nan, 0.5])
    found, tau = np.empty(n), np.full(3, start)
    project_whole(v, d, 1.0 / d, group, sums, tau, found)
    for a in (0, 2):  # Michelot 1986, in the metric d, by sorting
        cells = np.flatnonzero(group == a)
        order = cells[np.argsort(-(v * d)[cells])]
        levels = (np.cumsum(v[order]) - sums[a]) / np.cumsum(1.0 / d[order])
        level = levels[np.flatnonzero((v * d)[order] > levels)[-1]]
        assert np.allclose(found[cells], np.maximum(v[cells] - level / d[cells], 0.0), rtol=0, atol=1e-9)
    free = (group == 1) | (group < 0)
    assert np.array_equal(found[free], np.maximum(v[free], 0.0))
    one = np.empty(n)  # one group for all cells is held in registers
    project_whole(v, d, 1.0 / d, np.zeros(n, np.int32), np.array([40.0]), np.full(1, start), one)
    assert np.isclose(one.sum(), 40.0, rtol=0, atol=1e-9)
    assert np.ptp(((v - one) * d)[one > 0]) < 1e-9


@pytest.mark.parametrize("start", [-0.5 * NEVER_COUNT, -50.0, 0.0, 3.0, 1e6])
@pytest.mark.parametrize("C", [1, 4, 11])
def test_thresholds_are_those_of_the_sorted_projection_from_any_start(start, C):
    rng = np.random.default_rng(C)
    n, K = 30, (C + 3) // 4
    values, p = rng.normal(0, 10, (C, n)), rng.integers(1, 30, n).astype(float)
    T = np.full((K, 4 * n), -NEVER_COUNT)
    for c in range(C):
        T[c // 4, c % 4 :: 4] = values[c]
    tau = np.full(4 * n, start)
    move_thresholds(T, p, tau, np.empty(4 * n), np.empty(4 * n))
    for j in range(n):  # Duchi et al. 2008, by sorting
        v = np.sort(values[:, j])[::-1]
        levels = (np.cumsum(v) - p[j]) / np.arange(1, C + 1)
        expected = levels[np.flatnonzero(v > levels)[-1]]
        assert np.allclose(tau[4 * j : 4 * j + 4], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_certificate_bounds_the_distance_to_the_optimum(seed):
    problem = parent(seed, 6, 30)
    best = crossing.solve_piqp(problem, eps=1e-12)
    for limit in (11, 20, 35, 4000):
        ours = solve(problem, tolerance=1e-4, limit=limit)
        away = np.linalg.norm(ours.x - best.x)
        assert away <= ours.distance * np.sqrt(len(ours.x)) + 1e-6
        excess = least_squares(problem, ours.x) - least_squares(problem, best.x)
        assert excess <= ours.gap + 1e-6
    assert away <= 1e-4 + 1e-6


def test_large_counts_do_not_stop_the_certificate():
    """Where cells hold a hundred thousand persons, rounding drowns the duality gap but not the subgradient."""
    problem = parent(7, 5, 60, classes=1)
    rng = np.random.default_rng(7)
    truth = rng.integers(1, 400_000, (5, 60)) * problem.allowed
    linear = np.zeros((5, 60))
    for q, row in enumerate(problem.groups):
        for c in range(5):
            answer = np.bincount(row[row >= 0], truth[c][row >= 0], minlength=60) + rng.normal(0, 3, 60)
            linear[c] += problem.weights[0, q] * np.where(row >= 0, answer[np.maximum(row, 0)], 0.0)
    large = build_problem(
        truth.sum(axis=0).astype(float),
        linear,
        problem.allowed,
        problem.groups,
        problem.weights,
        problem.classes,
    )
    solution = solve(large, tolerance=5e-3)
    assert solution.distance * np.sqrt(5) <= 5e-3
    assert solution.iterations < 1000
    assert np.abs(solution.x - crossing.solve_piqp(large, eps=1e-11).x).max() < 1e-2


def test_the_slowest_kernel_is_compiled_for_the_types_that_it_is_called_with():
    """Compiled before there are records, it must not be compiled again when they come."""
    compile_slowest()
    solve(parent(1, 3, 7))
    assert len(descend.signatures) == len(solve_problem.signatures) == 1
