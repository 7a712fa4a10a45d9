r"""The compiled least-squares step of the root, and code shared with the step of one parent's children.

Minimise $\tfrac12 x' H x - b' x$ over one histogram $x \ge 0$ with the sums of some groups fixed: FISTA with restart in
the diagonal metric $d = H 1$, whose projection is an exact simplex projection in every group (Duchi et al. 2008;
Michelot 1986). All sums run in a fixed order, so the same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@compiled
def hessian_times(X: Floats, gid: Ints, w: Floats, diag: Floats, out: Floats) -> None:
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
    X: Floats, held: Ints, low: Floats, high: Floats, multiplier: Floats, mu: Floats, G: Floats
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
def update_multipliers(
    X: Floats, held: Ints, low: Floats, high: Floats, multiplier: Floats, mu: Floats
) -> float:
    """One step of the multipliers of the held sums; returns the largest violation."""
    C, n = X.shape
    worst = 0.0
    m = low.shape[2]
    s = np.zeros(m)
    for r in range(held.shape[0]):
        for c in range(C):
            s[:] = 0.0
            for j in range(n):
                if held[r, j] >= 0:
                    s[held[r, j]] += X[c, j]
            for a in range(m):
                worst = max(worst, low[r, c, a] - s[a], s[a] - high[r, c, a])
                z = s[a] + multiplier[r, c, a] / mu[r]
                nearest = min(max(z, low[r, c, a]), high[r, c, a])
                multiplier[r, c, a] = mu[r] * (z - nearest)
    return worst


@compiled
def project_whole(v: Floats, d: Floats, group: Ints, sums: Floats, x: Floats) -> None:
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
    gid: Ints,
    w: Floats,
    diag: Floats,
    d: Floats,
    group: Ints,
    sums: Floats,
    held: Ints,
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
