"""One parent's solve and rounding against independent solvers: PIQP for least squares, HiGHS for rounding."""

from collections import Counter

import numpy as np
import polars as pl
import pytest

from oracles.topdown_numpy import build_network, round_plainly, solve_plainly
from oracles.topdown_solves import least_squares, objective, rounding_optimum
from stirred import Census, Key, TopDown
from stirred.census.synthetic import synthesise
from stirred.mechanisms.topdown.solve import crossing
from stirred.mechanisms.topdown.solve.parent import (
    HeldSums,
    build_problem,
    list_sums,
    measure_violation,
    solve,
)
from stirred.mechanisms.topdown.solve.root import round_root, solve_root
from stirred.mechanisms.topdown.solve.rounding import (
    SNAP_DISTANCE,
    aim_at,
    keep_sums,
    round_children,
    round_network,
    solve_flow,
)

WEIGHTS = np.array([0.4, 0.002, 0.001, 0.001, 0.2, 0.004, 0.001, 0.05])


def problem(seed, C, n, people, *, total=False, bounds=False, classes=1):
    """A random parent with the eight kinds of queries of the redistricting workload; returns it and the constant."""
    rng = np.random.default_rng(seed)
    cells = np.sort(rng.choice(504, n, replace=False))
    k, v, h, r = cells // 252, cells // 126 % 2, cells // 63 % 2, cells % 63
    groups = np.stack([0 * r, r, h, v, h * 63 + r, v * 63 + r, v * 2 + h, cells]).astype(np.int32)
    weights = np.stack([WEIGHTS * (1 + i) for i in range(classes)])
    kind = rng.integers(0, classes, C).astype(np.int32)
    truth = rng.multinomial(people, rng.dirichlet(np.ones(n) * 0.3), size=C).astype(float)
    allowed = np.ones((C, n), bool)
    allowed[:, k == 1] = rng.random((C, 1)) < 0.5
    allowed[0] = True
    truth[~allowed] = 0
    linear = np.zeros((C, n))
    constant = 0.0
    for q in range(len(groups)):
        size = groups[q].max() + 1
        for c in range(C):
            w = weights[kind[c], q]
            y = np.bincount(groups[q], truth[c], minlength=size) + rng.normal(0, 1 / np.sqrt(w), size)
            linear[c] += w * y[groups[q]]
            constant += 0.5 * w * (y[np.unique(groups[q])] ** 2).sum()
    held = []
    if total:
        sums = truth.sum(axis=1, keepdims=True)
        held.append(HeldSums(np.zeros(n, np.int32), sums, sums))
    if bounds:
        low = np.zeros((C, 2))
        low[:, 1] = truth[:, k == 1].sum(axis=1)
        held.append(HeldSums(k.astype(np.int32), low, np.full((C, 2), 1e9)))
    return build_problem(truth.sum(axis=0), linear, allowed, groups, weights, kind, held), constant


CASES = [
    (1, 3, 14, 60, {}),
    (2, 10, 36, 60, {}),
    (3, 30, 51, 50, {}),
    (4, 10, 120, 900, {}),
    (5, 30, 130, 2000, {}),
    (6, 12, 40, 60, {"classes": 2}),
    (7, 10, 36, 60, {"total": True}),
    (8, 20, 60, 300, {"bounds": True}),
    (9, 15, 120, 900, {"total": True, "bounds": True}),
]


@pytest.mark.parametrize(("seed", "C", "n", "people", "options"), CASES)
def test_the_fast_solver_agrees_with_piqp(seed, C, n, people, options):
    case, constant = problem(seed, C, n, people, **options)
    ours, theirs = solve(case, tolerance=5e-3), crossing.solve_piqp(case)
    best = least_squares(case, theirs.x) + constant
    assert (least_squares(case, ours.x) + constant - best) / best < 1e-7
    assert np.abs(ours.x - theirs.x).max() < 1e-2
    assert np.abs(ours.x.sum(axis=0) - case.parent).max() < 1e-8
    assert (ours.x >= 0).all()
    assert (ours.x[~case.allowed] == 0).all()
    assert measure_violation(ours.x, case.held, case.low, case.high) < 2e-4
    if not len(case.held):  # the certificate bounds the true excess
        assert least_squares(case, ours.x) - least_squares(case, theirs.x) <= ours.gap + 1e-6


@pytest.mark.parametrize(("seed", "C", "n", "people", "options"), CASES)
@pytest.mark.parametrize("by_column", [False, True])
def test_compiled_code_has_the_bits_of_the_plain_one(seed, C, n, people, options, by_column):
    """The solve and every rounding, with and without aimed sums, with exact groups and with room to move."""
    case = problem(seed, C, n, people, **options)[0]._replace(by_column=by_column)
    for one in (case, case._replace(crowded=True), case._replace(start=case.linear / 9.0)):
        if one.crowded and not len(one.held):
            continue
        ours, theirs = solve(one), solve_plainly(one)
        assert ours.x.tobytes() == theirs.x.tobytes()
        assert (ours.gap, ours.violation, ours.iterations) == (
            theirs.gap,
            theirs.violation,
            theirs.iterations,
        )
        assert (ours.method, ours.distance) == (theirs.method, theirs.distance)
    rng = np.random.default_rng(seed)
    parent, groups, aims = case.parent.astype(np.int64), rng.integers(0, 2, n), rng.integers(0, 3, n)
    x, free = solve(case).x, np.full((C, 2), 1e300)
    sums = np.stack([x[:, groups == g].sum(axis=1) for g in range(2)], axis=1)
    whole, kept = np.empty((C, n), np.int64), keep_sums(parent, groups, -free, free)
    assert round_network(x, case.allowed, kept, False, SNAP_DISTANCE, False, whole)
    exact = np.stack([whole[:, groups == g].sum(axis=1) for g in range(2)], axis=1)  # of some rounding
    for low, high in ((-free, free), (np.floor(sums), np.ceil(sums)), (exact, exact), (exact - 2, exact - 1)):
        kept = keep_sums(parent, groups, low, high)
        for one in (kept, aim_at(kept, aims)):
            for nested in (False, True):
                made, plain = np.empty((2, C, n), np.int64)
                found = round_children(x, case.allowed, one, nested, made)
                assert found == round_plainly(x, case.allowed, one, nested, plain)
                assert not found or np.array_equal(made, plain)


def test_a_solver_that_stops_early_is_noticed():
    case, constant = problem(5, 30, 130, 2000)
    early, best = solve(case, limit=20), crossing.solve_piqp(case)
    assert (least_squares(case, early.x) - least_squares(case, best.x)) / constant > 1e-7
    assert early.distance > 1e-2  # and the certificate says so by itself


@pytest.mark.parametrize(("seed", "C", "n", "people", "options"), CASES)
def test_rounding_is_optimal_and_exact(seed, C, n, people, options):
    case, _ = problem(seed, C, n, people, **options)
    solution = solve(case)
    k = list_sums(case)[-1] if options.get("bounds") else None
    groups = np.zeros(n, np.int32) if k is None else k.groups
    low = np.full((C, 1), 0.0) if k is None else k.low
    high = np.full((C, 1), 1e9) if k is None else k.high
    parent = case.parent.astype(np.int64)
    kept, result = keep_sums(parent, groups, low, high), np.empty((C, n), np.int64)
    assert round_network(solution.x, case.allowed, kept, False, SNAP_DISTANCE, False, result)
    net = build_network(solution.x, parent, case.allowed, groups, low, high)
    assert (result.sum(axis=0) == parent).all()
    assert (result >= 0).all()
    assert (result[~case.allowed] == 0).all()
    assert (np.abs(result.sum(axis=1) - solution.x.sum(axis=1)) < 1 + 1e-3).all()
    for g in range(low.shape[1]):
        assert (result[:, groups == g].sum(axis=1) >= low[:, g]).all()
    flow, balanced = solve_flow(net.tail, net.head, net.capacity, net.cost, net.supply, net.potential.copy())
    assert balanced
    best, _ = rounding_optimum(net)
    assert abs(objective(net, flow) - best) < 1e-6
    # the mutant: another start must not matter for the optimum
    again, _ = solve_flow(
        net.tail, net.head, net.capacity, net.cost, net.supply, np.zeros_like(net.potential)
    )
    assert abs(objective(net, again) - best) < 1e-6


def test_crossing_sums_round_through_the_integer_programme():
    case, _ = problem(4, 6, 40, 200)
    x = solve(case).x
    k, v = (case.groups[7] // 252).astype(np.int32), (case.groups[7] // 126 % 2).astype(np.int32)
    sums = [np.stack([x[:, g == 0].sum(axis=1), x[:, g == 1].sum(axis=1)], axis=1) for g in (k, v)]
    held = tuple(HeldSums(g, np.floor(s), np.ceil(s)) for g, s in zip((k, v), sums, strict=True))
    result = crossing.round_with_rows(x, case.parent.astype(np.int64), case.allowed, held)
    assert (result.sum(axis=0) == case.parent).all()
    for one in held:
        for g in range(2):
            total = result[:, one.groups == g].sum(axis=1)
            assert ((total >= one.low[:, g]) & (total <= one.high[:, g])).all()


def test_an_impossible_flow_says_so():
    tail, head = np.array([0]), np.array([1])
    _, balanced = solve_flow(tail, head, np.array([1]), np.array([0.0]), np.array([2, -2]), np.zeros(2))
    assert not balanced


@pytest.mark.parametrize("kinds", ["one sum", "two sums", "one of two sums", "no sum"])
@pytest.mark.parametrize("seed", range(3))
def test_the_root_agrees_with_piqp(seed, kinds):
    """A root is a parent with one child once its cells are free: PIQP gets the sums as equalities."""
    case, _ = problem(seed, 1, 120, 900)
    groups = np.arange(120, dtype=np.int32) % 2 if "two" in kinds else np.zeros(120, np.int32)
    sums = np.bincount(groups, case.parent).astype(float)
    if kinds.endswith("of two sums"):
        sums[1] = np.nan
    if kinds == "no sum":
        sums[:] = np.nan
    ours = solve_root(case.linear[0], case.groups, WEIGHTS, groups, sums, tolerance=1e-4)
    import piqp

    H = np.diag(np.full(120, WEIGHTS[7]))
    for q in range(7):
        H += WEIGHTS[q] * (case.groups[q][:, None] == case.groups[q][None, :])
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    free = np.full(120, np.inf)
    fixed = np.flatnonzero(~np.isnan(sums))
    rows = (groups[None] == fixed[:, None]).astype(float)
    solver.setup(H, -case.linear[0], rows, sums[fixed], None, None, None, np.zeros(120), free)
    solver.solve()
    assert np.abs(ours.x[0] - solver.result.x).max() < 1e-2
    if kinds != "one sum":
        return
    total = float(sums[0])
    integers = round_root(ours.x, groups, np.array([total]), groups, np.zeros((1, 1)), np.full((1, 1), 1e9))
    assert integers.sum() == total
    assert (integers >= 0).all()
    assert np.abs(integers - ours.x[0]).max() < 1 + 1e-6


def test_totals_of_counties_are_fitted_with_every_first_query() -> None:
    """Mode classic fits a county's first queries on cells that these tell apart; on coarser ones counties became alike.

    The counts of three counties have a standard deviation below 3 each; 40 is more than 13 of them, so a false alarm has a
    probability below 1e-30. On cells that only the constraints tell apart the largest county lost a thousand persons.
    """
    made = synthesise("demo", households=6000)
    census = Census.of(made.schema, made.tables)
    released = TopDown(workload="pl94-stirred-persons", mode="classic", replicates=0).release(
        census, key=Key.for_tests(1)
    )
    true = Counter(census.scan("person", ["county"]).collect()["county"].cast(pl.String))
    found = Counter(released.to_polars("person")["county"].cast(pl.String))
    assert len(true) == 3
    assert all(abs(true[county] - found[county]) <= 40 for county in true)
