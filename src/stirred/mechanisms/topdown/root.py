"""Solve the root's histogram: non-negative least squares with its exact sums, then rounding."""

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown import kernels
from stirred.mechanisms.topdown.rounding import network, rounded
from stirred.mechanisms.topdown.solve import WORK, Held, Solution, _stack, merged, metric, worst_violation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def solve_root(
    linear: Floats,
    groups: NDArray[np.int32],
    weights: Floats,
    exact: NDArray[np.int32],
    sums: Floats,
    held: tuple[Held, ...] = (),
    *,
    start: Floats | None = None,
    tolerance: float = 1e-3,
    limit: int = 20_000,
) -> Solution:
    """Minimise ½x'Hx − b'x over x ≥ 0 with the sums of ``exact`` groups fixed (NaN: free) and held sums in bounds."""
    n = len(linear)
    gid, w, diag = merged(groups, weights[None])
    d = metric(gid, w, diag)
    weakest = float(diag[0]) if diag[0] > 0 else float(weights[weights > 0].min())
    X = (linear / d)[None].copy() if start is None else start[None].copy()
    limit = max(100, min(limit, int(WORK / (n * 2 * len(gid)))))
    empty = (
        np.zeros((0, n), np.int32),
        np.zeros((0, 1, 1)),
        np.zeros((0, 1, 1)),
        np.zeros((0, 1, 1)),
        np.zeros(0),
    )
    common = (gid, w, diag, d, exact, sums)
    step = weakest * tolerance
    iterations, moved = kernels.fista_whole(X, linear[None], *common, *empty, step, limit)
    violation = worst_violation(X, held)
    method = "fista"
    if violation > 1e-6:
        method = "fista + multipliers"
        stacked, low, high, mu = _stack(held, 1, n, d)
        multiplier = np.zeros_like(low)
        heavy = d.copy()
        for r in range(len(stacked)):
            inside = stacked[r] >= 0
            heavy[inside] += mu[r] * np.bincount(stacked[r][inside], minlength=1)[stacked[r][inside]]
        for _ in range(60):
            more, moved = kernels.fista_whole(
                X,
                linear[None],
                gid,
                w,
                diag,
                heavy,
                exact,
                sums,
                stacked,
                low,
                high,
                multiplier,
                mu,
                step,
                limit,
            )
            iterations += more
            violation = kernels.update_multipliers(X, stacked, low, high, multiplier, mu)
            if violation <= 1e-4:
                break
    return Solution(X, float(moved), float(violation), int(iterations), method, float(moved / weakest))


def round_root(
    x: Floats, exact: NDArray[np.int32], sums: Floats, partition: NDArray[np.int32], low: Floats, high: Floats
) -> Ints:
    """Integers near x (1, n) with the exact sums kept; without any the total is rounded to the nearest integer."""
    supply = np.array([int(np.rint(x.sum()))]) if np.isnan(sums).any() else sums.astype(np.int64)
    column_of = np.zeros(x.shape[1], np.int64) if len(supply) == 1 else exact.astype(np.int64)
    result = None
    for allowed in (
        x > 1e-7,
        np.ones(x.shape, bool),
    ):  # few cells are positive; all of them only if that is not enough
        net = network(x, supply, allowed, partition, low, high, column_of=column_of)
        result = rounded(net) if (net.capacity >= 0).all() else None
        if result is not None:
            break
    if result is None:
        raise InfeasibleError(
            "the root's histogram has no rounding that keeps its exact sums",
            why="the exact sums at the root contradict each other",
            fix="remove a constraint of the root",
        )
    values: Ints = result[0]
    return values
