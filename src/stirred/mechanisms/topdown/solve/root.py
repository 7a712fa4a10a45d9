r"""Solve the root's histogram: non-negative least squares with its exact sums, then rounding.

Minimise $\tfrac12 x' H x - b' x$ over one histogram $x \ge 0$ with the sums of some groups fixed: FISTA with restart in
the diagonal metric $d = H 1$, whose projection is an exact simplex projection in every group (Duchi et al. 2008;
Michelot 1986), in turns with conjugate gradients on the face of the positive cells, as in ``descend``. All sums run in
a fixed order, so the same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InfeasibleError
from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.solve.descent import CG_STEPS, CG_TOLERANCE, FISTA_STEPS, MAX_PAUSE_STEPS
from stirred.mechanisms.topdown.solve.parent import (
    MAX_ADDITIONS,
    HeldSums,
    Solution,
    compute_penalties,
    measure_violation,
    merge_equal_queries,
    stack_sums,
    sum_hessian_rows,
    update_multipliers,
)
from stirred.mechanisms.topdown.solve.rounding import SNAP_DISTANCE, keep_sums, round_network

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Groups = NDArray[np.int32]


@compile_kernel
def multiply_root_hessian(
    x: Floats, into: Groups, weight: Floats, diagonal: float, sums: Floats, out: Floats
) -> None:
    """Compute out = x H, taking all queries of a cell together, which is faster than one by one.

    ``fill`` is cells × queries: the sum that a cell counts in, the last one where it counts in none.
    """
    sums[:] = 0.0
    for j in range(len(x)):
        for q in range(into.shape[1]):
            sums[into[j, q]] += x[j]
    for a in range(len(sums)):
        sums[a] *= weight[a]
    for j in range(len(x)):
        total = diagonal * x[j]
        for q in range(into.shape[1]):
            total += sums[into[j, q]]
        out[j] = total


@compile_kernel
def add_held_gradient(
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


@compile_kernel
def project_whole(
    v: Floats, d: Floats, inverse: Floats, group: Groups, sums: Floats, tau: Floats, x: Floats
) -> None:
    """Compute the nearest x ≥ 0 in the metric d with the given group sums (NaN: free), for the root.

    Newton's method from any ``tau``, such as that of the last iteration; at -∞ all cells of a group count.
    """
    n, m = len(v), len(sums)
    count, fresh, shrinks = np.zeros(m, np.int64), np.empty(m, np.int64), np.zeros(m, np.bool_)
    value, weight, live = np.empty(m), np.empty(m), np.empty(m, np.bool_)
    for a in range(m):
        live[a] = not np.isnan(sums[a])
        if not live[a]:
            tau[a] = 0.0
    for _ in range(n + 3):
        fresh[:] = 0
        value[:] = 0.0
        weight[:] = 0.0
        if m == 1 and live[0]:  # in registers
            k, s, w, level = 0, 0.0, 0.0, tau[0]
            for j in range(n):  # alone, so that the compiler divides several at a time
                x[j] = v[j] - level / d[j]
            for j in range(n):
                above = (group[j] == 0) & (x[j] > 0.0)
                k += 1 if above else 0
                s += v[j] if above else 0.0
                w += inverse[j] if above else 0.0
            fresh[0], value[0], weight[0] = k, s, w
        else:
            for j in range(n):
                a = group[j]
                if a >= 0 and live[a] and v[j] - tau[a] / d[j] > 0.0:
                    fresh[a] += 1
                    value[a] += v[j]
                    weight[a] += inverse[j]
        more = False
        for a in range(m):
            if not live[a]:
                continue
            if fresh[a] == 0 and count[a] == 0 and tau[a] > -np.inf:
                tau[a] = -np.inf  # too far right: begin with all cells
                more = True
            elif fresh[a] == 0 or fresh[a] == count[a] or (shrinks[a] and fresh[a] > count[a]):
                live[a] = False
            else:
                shrinks[a] = count[a] > 0
                count[a] = fresh[a]
                tau[a] = (value[a] - sums[a]) / weight[a]
                more = True
        if not more:
            break
    for a in range(m):
        if count[a] == 0:
            tau[a] = 0.0  # a free group, or one without cells
    for j in range(n):
        y = v[j] - (tau[group[j]] / d[j] if group[j] >= 0 else 0.0)
        x[j] = y if y > 0.0 else 0.0


@compile_kernel
def project_on_root_face(
    R: Floats, F: Floats, inverse: Floats, group: Groups, share: Floats, mean: Floats, Z: Floats
) -> float:
    """Project R / d on the face F, keeping every fixed sum, into Z; return Σ R Z.

    ``share`` is one over the summed 1/d of each group's cells on the face, 0 where the sum is free.
    """
    mean[:] = 0.0
    for j in range(len(R)):
        if group[j] >= 0:
            mean[group[j]] += F[j] * R[j] * inverse[j]
    for a in range(len(mean)):
        mean[a] *= share[a]
    total = 0.0
    for j in range(len(R)):
        Z[j] = F[j] * (R[j] - (mean[group[j]] if group[j] >= 0 else 0.0)) * inverse[j]
        total += R[j] * Z[j]
    return total


@compile_kernel
def step_on_root_face(
    x: Floats, g: Floats, inverse: Floats, group: Groups, sums: Floats, into: Groups, weight: Floats, diagonal: float,
    own: Floats, most: int, S: Floats,
) -> int:  # fmt: skip
    """Compute the step S from x, with gradient g, towards the minimum where x is positive."""
    n, m = len(x), len(sums)
    F, R, P, Z = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    share, mean = np.zeros(m), np.empty(m)
    for j in range(n):
        F[j] = 1.0 if x[j] > 0.0 else 0.0
        R[j] = -F[j] * g[j]
        S[j] = 0.0
        if group[j] >= 0:
            share[group[j]] += F[j] * inverse[j]
    for a in range(m):
        share[a] = 1.0 / share[a] if share[a] > 0.0 and not np.isnan(sums[a]) else 0.0
    left = project_on_root_face(R, F, inverse, group, share, mean, P)
    enough = CG_TOLERANCE * left
    for k in range(most):
        multiply_root_hessian(P, into, weight, diagonal, own, Z)
        curve = 0.0
        for j in range(n):
            curve += P[j] * Z[j]
        if left <= enough or curve <= 0.0:
            return k + 1
        forward = left / curve
        for j in range(n):
            S[j] += forward * P[j]
            R[j] -= forward * Z[j] * F[j]
        fresh = project_on_root_face(R, F, inverse, group, share, mean, Z)
        for j in range(n):
            P[j] = Z[j] + fresh / left * P[j]
        left = fresh
    return most


@compile_kernel
def minimise_root(
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
    n, Q = X.shape[1], len(gid)
    V = np.empty((1, n))
    G = np.empty((1, n))
    XH = np.empty((1, n))
    inverse, tau = 1.0 / d, np.full(len(sums), -np.inf)
    # Queries that weigh nothing are left out; sums of all queries lie one after the other.
    begin = np.zeros(Q + 1, np.int64)
    for q in range(Q):
        begin[q + 1] = begin[q] + (gid[q].max() + 1 if w[0, q] != 0.0 else 0)
    into, own, weight = np.full((n, Q), begin[Q], np.int32), np.empty(begin[Q] + 1), np.zeros(begin[Q] + 1)
    for q in range(Q):
        weight[begin[q] : begin[q + 1]] = w[0, q]
        for j in range(n):
            if gid[q, j] >= 0 and w[0, q] != 0.0:
                into[j, q] = begin[q] + gid[q, j]
    project_whole(X[0], d, inverse, group, sums, tau, V[0])
    X[:] = V
    old = X.copy()
    momentum = 1.0
    beta = 0.0
    moved = np.inf
    spent, iteration, wait, pause = 0, 0, FISTA_STEPS, FISTA_STEPS
    while spent < limit:
        if len(held) == 0 and iteration >= wait:
            multiply_root_hessian(X[0], into, weight, diag[0], own, XH[0])
            for j in range(n):
                G[0, j] = XH[0, j] - B[0, j]
            spent += step_on_root_face(
                X[0], G[0], inverse, group, sums, into, weight, diag[0], own, CG_STEPS, V[0]
            )
            for j in range(n):
                V[0, j] += X[0, j]
            project_whole(V[0], d, inverse, group, sums, tau, old[0])
            multiply_root_hessian(old[0], into, weight, diag[0], own, XH[0])
            rise = 0.0  # twice the change of the objective, by the trapezoid rule
            for j in range(n):
                rise += (old[0, j] - X[0, j]) * (G[0, j] + XH[0, j] - B[0, j])
            if rise < 0.0:
                X[:] = old
            else:
                pause = min(2 * pause, MAX_PAUSE_STEPS)
            wait = iteration + pause
            momentum, beta = 1.0, 0.0
        iteration += 1
        spent += 1
        for j in range(n):
            V[0, j] = X[0, j] + beta * (X[0, j] - old[0, j])
        multiply_root_hessian(V[0], into, weight, diag[0], own, XH[0])
        for j in range(n):
            G[0, j] = XH[0, j] - B[0, j]
        add_held_gradient(V, held, low, high, multiplier, mu, G)
        old[:] = X
        for j in range(n):
            G[0, j] = V[0, j] - G[0, j] / d[j]
        project_whole(G[0], d, inverse, group, sums, tau, X[0])
        turn = 0.0
        moved = 0.0
        for j in range(n):
            turn += d[j] * (V[0, j] - X[0, j]) * (X[0, j] - old[0, j])
            # The prox residual measures distance to optimality in the metric; scaled by d over the weakest curvature.
            moved = max(moved, abs(V[0, j] - X[0, j]) * d[j])
        if moved <= step:
            return spent, moved
        if turn > 0.0:
            momentum = 1.0
            beta = 0.0
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            beta = (momentum - 1.0) / following
            momentum = following
    return spent, moved


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
    gid, w, diag = merge_equal_queries(groups, weights[None])
    w = np.ascontiguousarray(w)
    d = sum_hessian_rows(gid, len(gid), w, diag)
    weakest = float(diag[0]) if diag[0] > 0 else float(weights[weights > 0].min())
    X = (linear / d)[None].copy() if start is None else start[None].copy()
    limit = max(100, min(limit, int(MAX_ADDITIONS / (n * 2 * len(gid)))))
    empty = (
        np.zeros((0, n), np.int32),
        np.zeros((0, 1, 1)),
        np.zeros((0, 1, 1)),
        np.zeros((0, 1, 1)),
        np.zeros(0),
    )
    common = (gid, w, diag, d, exact, sums)
    step = weakest * tolerance
    iterations, moved = minimise_root(X, linear[None], *common, *empty, step, limit)
    stacked, low, high = stack_sums(held, 1, n)
    violation = measure_violation(X, stacked, low, high)
    method = "fista"
    if violation > 1e-6:
        method = "fista + multipliers"
        multiplier = np.zeros_like(low)
        mu, heavy = compute_penalties(stacked, low.shape[2], d)
        for _ in range(60):
            more, moved = minimise_root(
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
    """Round x (1, n) and keep the exact sums; without any, round the total to the nearest integer."""
    supply = np.array([int(np.rint(x.sum()))]) if np.isnan(sums).any() else sums.astype(np.int64)
    column_of = np.zeros(x.shape[1], np.int64) if len(supply) == 1 else exact.astype(np.int64)
    kept, values = keep_sums(supply, partition, low, high, column=column_of), np.empty(x.shape, np.int64)
    # few cells are positive; all of them only if that is not enough
    if not any(
        round_network(x, allowed, kept, False, SNAP_DISTANCE, False, values)
        for allowed in (x > 1e-7, np.ones(x.shape, bool))
    ):
        raise InfeasibleError(
            "the root's histogram has no rounding that keeps its exact sums",
            why="the exact sums at the root contradict each other",
            fix="remove a constraint of the root",
        )
    integers: Ints = values[0]
    return integers
