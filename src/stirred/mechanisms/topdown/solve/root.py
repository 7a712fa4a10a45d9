r"""Solve the root's histogram: non-negative least squares with its exact sums, then rounding.

Minimise $\tfrac12 x' H x - b' x$ over one histogram $x \ge 0$ with the sums of some groups fixed: FISTA with restart in
the diagonal metric $d = H 1$, whose projection is an exact simplex projection in every group (Duchi et al. 2008;
Michelot 1986). All sums run in a fixed order, so the same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled
from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.solve.problem import (
    WORK,
    HeldSums,
    Solution,
    _stack,
    merged,
    metric,
    update_multipliers,
    worst_violation,
)
from stirred.mechanisms.topdown.solve.rounding import network, rounded

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]


@compiled
def hessian_times(X: Floats, gid: Groups, w: Floats, diag: Floats, out: Floats) -> None:
    """out = X H, query by query."""
    C, n = X.shape
    Q = gid.shape[0]
    sums = np.zeros(n)
    for c in range(C):
        for j in range(n):
            out[c, j] = diag[0] * X[c, j]
        for q in range(Q):
            weight = w[0, q]
            if weight == 0.0:
                continue
            sums[:] = 0.0
            g = gid[q]
            for j in range(n):
                if g[j] >= 0:
                    sums[g[j]] += X[c, j]
            for j in range(n):
                if g[j] >= 0:
                    out[c, j] += weight * sums[g[j]]


@compiled
def held_gradient(
    X: Floats, held: Groups, low: Floats, high: Floats, multiplier: Floats, mu: Floats, G: Floats
) -> None:
    """Add the gradient of the augmented-Lagrangian terms that hold sums of cells between bounds."""
    C, n = X.shape
    for r in range(held.shape[0]):
        m = low.shape[2]
        s = np.zeros(m)
        for c in range(C):
            s[:] = 0.0
            for j in range(n):
                if held[r, j] >= 0:
                    s[held[r, j]] += X[c, j]
            for a in range(m):
                z = s[a] + multiplier[r, c, a] / mu[r]
                nearest = min(max(z, low[r, c, a]), high[r, c, a])
                s[a] = mu[r] * (z - nearest)
            for j in range(n):
                if held[r, j] >= 0:
                    G[c, j] += s[held[r, j]]


@compiled
def project_whole(v: Floats, d: Floats, group: Groups, sums: Floats, x: Floats) -> None:
    """The nearest x ≥ 0 in the metric d whose group sums are given (NaN: free); for the root, which has no parent."""
    n = len(v)
    m = len(sums)
    tau = np.zeros(m)
    count = np.zeros(m, np.int64)
    value = np.zeros(m)
    inverse = np.zeros(m)
    for j in range(n):
        if group[j] >= 0:
            count[group[j]] += 1
            value[group[j]] += v[j]
            inverse[group[j]] += 1.0 / d[j]
    live = np.zeros(m, np.bool_)
    for a in range(m):
        if count[a] > 0 and not np.isnan(sums[a]):
            live[a] = True
            tau[a] = (value[a] - sums[a]) / inverse[a]
    for _ in range(n + 1):
        fresh = np.zeros(m, np.int64)
        value[:] = 0.0
        inverse[:] = 0.0
        for j in range(n):
            a = group[j]
            if a >= 0 and live[a] and v[j] - tau[a] / d[j] > 0.0:
                fresh[a] += 1
                value[a] += v[j]
                inverse[a] += 1.0 / d[j]
        more = False
        for a in range(m):
            if live[a]:
                if fresh[a] >= count[a] or fresh[a] == 0:
                    live[a] = False
                else:
                    count[a] = fresh[a]
                    tau[a] = (value[a] - sums[a]) / inverse[a]
                    more = True
        if not more:
            break
    for j in range(n):
        y = v[j] - (tau[group[j]] / d[j] if group[j] >= 0 else 0.0)
        x[j] = y if y > 0.0 else 0.0


@compiled
def fista_whole(
    X: Floats,
    B: Floats,
    gid: Groups,
    w: Floats,
    diag: Floats,
    d: Floats,
    group: Groups,
    sums: Floats,
    held: Groups,
    low: Floats,
    high: Floats,
    multiplier: Floats,
    mu: Floats,
    step: float,
    limit: int,
) -> tuple[int, float]:
    """Minimise one histogram without a parent (X, B of shape (1, n)) in place; stops when no cell moves by ``step``."""
    n = X.shape[1]
    V = np.empty((1, n))
    G = np.empty((1, n))
    XH = np.empty((1, n))
    project_whole(X[0], d, group, sums, V[0])
    X[:] = V
    old = X.copy()
    momentum = 1.0
    beta = 0.0
    moved = np.inf
    for iteration in range(limit):
        for j in range(n):
            V[0, j] = X[0, j] + beta * (X[0, j] - old[0, j])
        hessian_times(V, gid, w, diag, XH)
        for j in range(n):
            G[0, j] = XH[0, j] - B[0, j]
        held_gradient(V, held, low, high, multiplier, mu, G)
        old[:] = X
        for j in range(n):
            G[0, j] = V[0, j] - G[0, j] / d[j]
        project_whole(G[0], d, group, sums, X[0])
        turn = 0.0
        moved = 0.0
        for j in range(n):
            turn += d[j] * (V[0, j] - X[0, j]) * (X[0, j] - old[0, j])
            # The prox residual measures distance to optimality in the metric; scaled by d over the weakest curvature.
            moved = max(moved, abs(V[0, j] - X[0, j]) * d[j])
        if moved <= step:
            return iteration + 1, moved
        if turn > 0.0:
            momentum = 1.0
            beta = 0.0
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            beta = (momentum - 1.0) / following
            momentum = following
    return limit, moved


def solve_root(
    linear: Floats,
    groups: NDArray[np.int32],
    weights: Floats,
    exact: NDArray[np.int32],
    sums: Floats,
    held: tuple[HeldSums, ...] = (),
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
    iterations, moved = fista_whole(X, linear[None], *common, *empty, step, limit)
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
            more, moved = fista_whole(
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
            violation = update_multipliers(X, stacked, low, high, multiplier, mu)
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
