r"""The constrained least-squares step of one parent, compiled.

Minimise $\sum_c \tfrac12 x_c' H_c x_c - b_c' x_c$ over the children's histograms $x_c \ge 0$ on the cells where the
parent is positive, with $\sum_c x_c = p$ cell by cell: FISTA with restart in the diagonal metric $d = H 1$, whose
projection is an exact simplex projection across children in every cell (Duchi et al. 2008; Michelot 1986). All sums
run in a fixed order, so the same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Bools = NDArray[np.bool_]


@compiled
def hessian_times(X: Floats, cls: Ints, H: Floats, gid: Ints, w: Floats, diag: Floats, out: Floats) -> None:
    """out = X H, by the dense matrix of each weight class when there is one, else query by query."""
    C, n = X.shape
    if H.shape[1] == n:
        for c in range(C):
            row = out[c]
            row[:] = 0.0
            h = H[cls[c]]
            for i in range(n):
                x = X[c, i]
                if x != 0.0:
                    hi = h[i]
                    for j in range(n):
                        row[j] += x * hi[j]
        return
    Q = gid.shape[0]
    sums = np.zeros(n)
    for c in range(C):
        k = cls[c]
        for j in range(n):
            out[c, j] = diag[k] * X[c, j]
        for q in range(Q):
            weight = w[k, q]
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
def project_columns(V: Floats, allowed: Bools, p: Floats, X: Floats) -> None:
    """The nearest X ≥ 0 with column sums p and zeros where not allowed; Michelot's threshold, no sort."""
    C, n = V.shape
    tau = np.empty(n)
    count = np.zeros(n, np.int64)
    total = np.zeros(n)
    for c in range(C):
        for j in range(n):
            if allowed[c, j]:
                count[j] += 1
                total[j] += V[c, j]
    for j in range(n):
        tau[j] = (total[j] - p[j]) / count[j] if count[j] > 0 else 0.0
    live = np.ones(n, np.bool_)
    for _ in range(C + 1):
        fresh = np.zeros(n, np.int64)
        total[:] = 0.0
        for c in range(C):
            for j in range(n):
                if live[j] and allowed[c, j] and V[c, j] > tau[j]:
                    fresh[j] += 1
                    total[j] += V[c, j]
        more = False
        for j in range(n):
            if live[j]:
                # "did not shrink" rather than "did not change": in floating point the count can cycle.
                if fresh[j] >= count[j] or fresh[j] == 0:
                    live[j] = False
                else:
                    count[j] = fresh[j]
                    tau[j] = (total[j] - p[j]) / fresh[j]
                    more = True
        if not more:
            break
    for c in range(C):
        for j in range(n):
            x = V[c, j] - tau[j]
            X[c, j] = x if allowed[c, j] and x > 0.0 else 0.0


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
def duality_gap(X: Floats, G: Floats, allowed: Bools) -> float:
    """The certificate: Σ X (G − min over allowed children of G) is at least f(X) − f*."""
    C, n = X.shape
    least = np.full(n, np.inf)
    for c in range(C):
        for j in range(n):
            if allowed[c, j] and G[c, j] < least[j]:
                least[j] = G[c, j]
    gap = 0.0
    for c in range(C):
        for j in range(n):
            if X[c, j] > 0.0:
                gap += X[c, j] * (G[c, j] - least[j])
    return gap


@compiled
def fista(
    X: Floats,
    B: Floats,
    p: Floats,
    allowed: Bools,
    cls: Ints,
    H: Floats,
    gid: Ints,
    w: Floats,
    diag: Floats,
    d: Floats,
    held: Ints,
    low: Floats,
    high: Floats,
    multiplier: Floats,
    mu: Floats,
    goal: float,
    limit: int,
) -> tuple[int, float]:
    """Minimise in place from X; returns iterations and the certified gap of the (augmented) objective."""
    C, n = X.shape
    V = np.empty((C, n))
    project_columns(X, allowed, p, V)
    X[:] = V
    XH = np.empty((C, n))
    hessian_times(X, cls, H, gid, w, diag, XH)
    old = X.copy()
    oldH = XH.copy()
    G = np.empty((C, n))
    momentum = 1.0
    beta = 0.0
    gap = np.inf
    for iteration in range(limit):
        if iteration % 10 == 0:
            for c in range(C):
                for j in range(n):
                    G[c, j] = XH[c, j] - B[c, j]
            held_gradient(X, held, low, high, multiplier, mu, G)
            gap = duality_gap(X, G, allowed)
            if gap <= goal:
                return iteration, gap
        for c in range(C):
            for j in range(n):
                V[c, j] = X[c, j] + beta * (X[c, j] - old[c, j])
                G[c, j] = XH[c, j] + beta * (XH[c, j] - oldH[c, j]) - B[c, j]
        held_gradient(V, held, low, high, multiplier, mu, G)
        old[:] = X
        oldH[:] = XH
        for c in range(C):
            for j in range(n):
                G[c, j] = V[c, j] - G[c, j] / d[j]
        project_columns(G, allowed, p, X)
        hessian_times(X, cls, H, gid, w, diag, XH)
        turn = 0.0
        for c in range(C):
            for j in range(n):
                turn += d[j] * (V[c, j] - X[c, j]) * (X[c, j] - old[c, j])
        if turn > 0.0:
            momentum = 1.0
            beta = 0.0
        else:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            beta = (momentum - 1.0) / following
            momentum = following
    return limit, gap


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
