r"""The constrained least-squares step of one parent, compiled.

Minimise $\sum_c \tfrac12 x_c' H_c x_c - b_c' x_c$ over the children's histograms $x_c \ge 0$ on the cells where the
parent is positive, with $\sum_c x_c = p$ cell by cell. Two kinds of steps take turns, as in Moré and Toraldo (1991):
ten of FISTA with restart in the diagonal metric $d \ge H 1$, whose projection is an exact simplex projection across
children in every cell, find out which cells are zero; conjugate gradients on the face of the others then remove
what a first-order method takes hundreds of steps for. The same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import add_four, add_products, compiled, scale_four
from stirred.mechanisms.topdown.solve.layout import (
    NEVER,
    Bounds,
    Nesting,
    cut,
    fold,
    pull,
    pulling,
    scaled,
    spread,
    thresholds,
    times,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
TURN = 10  # steps of one kind before certificates are computed and the other kind has its turn
FACE = 40  # conjugate gradients on one face
FALL = (
    1e-4  # how far they reduce the squared residual: more is not useful, because the face may still be wrong
)
RARELY = 200
START, ALONG, ACROSS = 0, 1, 2  # the first projection, a step of FISTA, one across the face


@compiled
def added(total: Floats) -> float:
    """The sum, in order."""
    s = 0.0
    for i in range(len(total)):
        s += total[i]
    return s


@compiled
def moved(A: Floats, factor: float, B: Floats) -> None:
    """B = factor · A."""
    for b in range(len(A)):
        x, y = A[b], B[b]
        for i in range(len(x)):
            y[i] = factor * x[i]


@compiled
def certified(
    X: Floats,
    G: Floats,
    T: Floats,
    B: Floats,
    inverse: Floats,
    curvature: float,
    least: Floats,
    total: Floats,
) -> float:
    r"""A bound on f(X) − f*, from the gradient at X: the smaller of two.

    $\sum X (G - \min_c G)$ always is one. After a projection of T, $u = G + d (T - X)$ is a subgradient of the
    constrained objective at X, and strong convexity gives $|u|^2 / 2w$, which rounding hurts less where cells are large.
    """
    least[:] = np.inf
    for b in range(len(X)):
        g = G[b]
        for i in range(len(g)):
            least[i] = min(least[i], g[i])
    for i in range(0, len(least), 4):
        least[i] = min(min(least[i], least[i + 1]), min(least[i + 2], least[i + 3]))
        least[i + 1] = least[i + 2] = least[i + 3] = least[i]
    total[:] = 0.0
    for b in range(len(X)):
        x, g = X[b], G[b]
        for i in range(len(x)):
            total[i] += x[i] * (g[i] - least[i])
    gap = added(total)
    if curvature <= 0.0:
        return gap
    total[:] = 0.0
    for b in range(len(X)):
        x, g, t, y = X[b], G[b], T[b], B[b]
        for i in range(len(x)):
            u = g[i] + (t[i] - x[i]) / inverse[i] if y[i] > -0.5 * NEVER else 0.0
            total[i] += u * u
    return min(gap, added(total) / (2.0 * curvature))


@compiled
def positive(X: Floats, first: Longs, place: Ints) -> None:
    """The cells in which any of four children is positive, by four children, and where those of each four begin."""
    k = 0
    for b in range(len(X)):
        first[b] = k
        x = X[b]
        for j in range(len(x) // 4):
            i = 4 * j
            if x[i] > 0.0 or x[i + 1] > 0.0 or x[i + 2] > 0.0 or x[i + 3] > 0.0:
                place[k] = j
                k += 1
    first[len(X)] = k


@compiled
def face_times(
    P: Floats,
    f: int,
    place: Ints,
    queries: Nesting,
    weights: Floats,
    diagonal: Floats,
    sums: Floats,
    Z: Floats,
) -> None:
    """Z = P H as in ``times``, only for the cells ``place`` of four children, which lie from ``f`` on."""
    source, begin, length, into = queries
    Q = len(source)
    sums[:] = 0.0
    for q in range(Q):
        if source[q] < 0:
            for a in range(len(place)):
                add_four(sums, 4 * np.int64(into[q, place[a]]), P, f + 4 * a)
        else:
            fold(sums, 4 * begin[source[q]], into[q], length[q], sums)
    sums[4 * begin[Q] :] = 0.0
    for q in range(Q):
        scaled(sums, 4 * begin[q], 4 * begin[q + 1], weights[q], sums)
    for a in range(len(place)):
        scale_four(Z, f + 4 * a, P, f + 4 * a, diagonal, 0)
    for q in range(Q - 1, -1, -1):
        if source[q] < 0:
            for a in range(len(place)):
                add_four(Z, f + 4 * a, sums, 4 * np.int64(into[q, place[a]]))
        else:
            spread(sums, into[q], length[q], 4 * begin[source[q]], sums)


@compiled
def face_stiffness(
    P: Floats, f: int, place: Ints, into: Ints, stiff: Floats, b: int, sums: Floats, Z: Floats
) -> None:
    """Add the curvature of the active sums along P."""
    for r in range(len(into)):
        sums[:] = 0.0
        for a in range(len(place)):
            add_four(sums, 4 * np.int64(into[r, place[a]]), P, f + 4 * a)
        for a in range(stiff.shape[2]):
            sums[a] *= stiff[r, b, a]
        sums[stiff.shape[2] :] = 0.0
        for a in range(len(place)):
            add_four(Z, f + 4 * a, sums, 4 * np.int64(into[r, place[a]]))


@compiled
def along_face(
    R: Floats, F: Floats, first: Longs, place: Ints, share: Floats, inverse: Floats, mean: Floats, Z: Floats, total: Floats
) -> float:  # fmt: skip
    """Z = the part of R / d that stays on the face and keeps every cell's sum over children; returns Σ R Z."""
    mean[:] = 0.0
    for a in range(first[-1]):
        add_four(mean, 4 * np.int64(place[a]), R, 4 * a)
    for i in range(0, len(mean), 4):
        mean[i] = (mean[i] + mean[i + 1] + mean[i + 2] + mean[i + 3]) * share[i]
    total[:] = 0.0
    for a in range(first[-1]):
        k, cell = 4 * a, 4 * np.int64(place[a])
        m, d = mean[cell], inverse[cell]
        for lane in range(k, k + 4):
            Z[lane] = F[lane] * (R[lane] - m) * d
        add_products(total, cell, R, k, Z, k)
    return added(total)


@compiled
def face_step(
    X: Floats,
    G: Floats,
    inverse: Floats,
    queries: Nesting,
    weights: Floats,
    diagonal: Floats,
    into: Ints,
    stiff: Floats,
    enough: float,
    most: int,
    sums: tuple[Floats, Floats],
    step: Floats,
    total: Floats,
) -> int:
    """The step from X towards the minimum over the histograms that are positive where X is; returns products with H.

    Most numbers are zero, so conjugate gradients see only cells in which one of four children is positive. The others
    would add zeros to sums that run in the same order: the bits are those of the whole histograms.
    """
    size = X.shape[1]
    first, where = np.empty(len(X) + 1, np.int64), np.empty(X.size // 4, np.int32)
    positive(X, first, where)
    kept = 4 * first[-1]
    F, R, P, Z, S = np.empty(kept), np.empty(kept), np.empty(kept), np.empty(kept), np.zeros(kept)
    share, mean = np.zeros(size), np.empty(size)
    for b in range(len(X)):
        for a in range(first[b], first[b + 1]):
            for lane in range(4):
                cell, own = 4 * np.int64(where[a]) + lane, 4 * a + lane
                F[own] = 1.0 if X[b, cell] > 0.0 else 0.0
                R[own] = -G[b, cell] if X[b, cell] > 0.0 else 0.0
                share[cell] += F[own]
    for i in range(0, size, 4):
        share[i] = 1.0 / max(1.0, share[i] + share[i + 1] + share[i + 2] + share[i + 3])
    left = along_face(R, F, first, where, share, inverse, mean, P, total)
    enough = max(enough, FALL * left)
    spent = most
    for k in range(most):
        if left <= enough:
            spent = k
            break
        total[:] = 0.0
        for b in range(len(X)):
            f, place = 4 * first[b], where[first[b] : first[b + 1]]
            face_times(P, f, place, queries, weights[b], diagonal[b], sums[0], Z)
            face_stiffness(P, f, place, into, stiff, b, sums[1], Z)
            for a in range(len(place)):
                add_products(total, 4 * np.int64(place[a]), P, f + 4 * a, Z, f + 4 * a)
        curve = added(total)
        if curve <= 0.0:
            spent = k
            break
        forward, back = left / curve, -left / curve
        for i in range(kept):
            S[i] += forward * P[i]
            R[i] += back * (Z[i] * F[i])
        fresh = along_face(R, F, first, where, share, inverse, mean, Z, total)
        for i in range(kept):
            P[i] = Z[i] + fresh / left * P[i]
        left = fresh
    moved(step, 0.0, step)
    for b in range(len(X)):
        for a in range(first[b], first[b + 1]):
            for lane in range(4):
                step[b, 4 * np.int64(where[a]) + lane] = S[4 * a + lane]
    return spent


@compiled
def gradient(X: Floats, XH: Floats, B: Floats, bounds: Bounds, sums: Floats, G: Floats) -> None:
    """G = X H − B, plus the gradient of the held sums."""
    for b in range(len(X)):
        h, y, g = XH[b], B[b], G[b]
        for i in range(len(h)):
            g[i] = h[i] - y[i]
        pull(X[b], b, bounds, sums, g)


@compiled
def ahead(
    X: Floats, old: Floats, XH: Floats, oldH: Floats, B: Floats, beta: float, bounds: Bounds, inverse: Floats,
    sums: Floats, V: Floats, T: Floats,
) -> None:  # fmt: skip
    """V = X + β (X − old), and T one step down the gradient at V; four children at a time, which stay in the cache."""
    for b in range(len(X)):
        x, o, h, oh, y, v, t = X[b], old[b], XH[b], oldH[b], B[b], V[b], T[b]
        for i in range(len(x)):
            v[i] = x[i] + beta * (x[i] - o[i])
            t[i] = h[i] + beta * (h[i] - oh[i]) - y[i]
        pull(v, b, bounds, sums, t)
        for i in range(len(x)):
            t[i] = v[i] - t[i] * inverse[i]


@compiled
def change(
    X: Floats,
    Y: Floats,
    G: Floats,
    YH: Floats,
    B: Floats,
    bounds: Bounds,
    sums: Floats,
    scratch: Floats,
    total: Floats,
) -> float:
    """Twice f(Y) − f(X), from the gradients at both by the trapezoid rule: exact for a quadratic."""
    gradient(Y, YH, B, bounds, sums, scratch)
    total[:] = 0.0
    for b in range(len(X)):
        x, y, g, h = X[b], Y[b], G[b], scratch[b]
        for i in range(len(x)):
            total[i] += (y[i] - x[i]) * (g[i] + h[i])
    return added(total)


@compiled
def turned(V: Floats, X: Floats, old: Floats, inverse: Floats, total: Floats) -> float:
    """Positive when the last move points uphill: then momentum starts again."""
    total[:] = 0.0
    for b in range(len(X)):
        x, o, v = X[b], old[b], V[b]
        for i in range(len(x)):
            total[i] += (v[i] - x[i]) * (x[i] - o[i]) / inverse[i]
    return added(total)


@compiled
def descend(
    X: Floats,
    T: Floats,
    B: Floats,
    p: Floats,
    queries: Nesting,
    weights: Floats,
    diagonal: Floats,
    inverse: Floats,
    bounds: Bounds,
    curvature: float,
    goal: float,
    limit: int,
) -> tuple[int, float]:
    """Minimise from T into X; returns products with the Hessian and the certified gap of the (augmented) objective."""
    K, size = X.shape
    sums = (np.empty(4 * queries[1][-1] + 4), np.empty(bounds[1].shape[2] + 4))
    stiff = np.zeros(bounds[1].shape)
    tau, count, total = np.full(size, -0.5 * NEVER), np.empty(size), np.empty(size)
    XH, G, V = np.zeros((K, size)), np.empty((K, size)), np.empty((K, size))
    now, old, oldH = np.zeros((K, size)), np.zeros((K, size)), np.zeros((K, size))
    momentum, beta, gap = 1.0, 0.0, np.inf
    pause, wait, spent, iteration = TURN, TURN, 0, 0
    kind, projected = START, False  # whether X is the projection of T after a step of FISTA
    while True:
        if kind != START and (iteration % TURN == 0 or spent >= limit):
            gradient(now, XH, B, bounds, sums[1], G)
            gap = certified(now, G, T, B, inverse, curvature if projected else 0.0, count, total)
            if gap <= goal or spent >= limit:
                break
            if iteration >= wait:
                pulling(now, bounds, sums[1], stiff)
                spent += face_step(
                    now, G, inverse, queries, weights, diagonal, bounds[0], stiff, 0.01 * goal,
                    min(FACE, limit - spent), sums, V, total,
                )  # fmt: skip
                kind = ACROSS
                for b in range(K):
                    x, v, y, t = now[b], V[b], B[b], T[b]
                    for i in range(size):
                        t[i] = x[i] + v[i] if y[i] > -0.5 * NEVER else -NEVER
        if kind == ALONG:
            ahead(now, old, XH, oldH, B, beta, bounds, inverse, sums[1], V, T)
        thresholds(T, p, tau, count, total)
        now, old = old, now
        XH, oldH = oldH, XH
        cut(T, tau, now)
        times(now, queries, weights, diagonal, sums[0], XH)
        if kind == START:
            kind = ALONG
            continue
        projected = kind == ALONG
        if kind == ALONG and turned(V, now, old, inverse, total) <= 0.0:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            beta = (momentum - 1.0) / following
            momentum = following
        else:
            momentum, beta = 1.0, 0.0
        if kind == ACROSS:
            if change(old, now, G, XH, B, bounds, sums[1], V, total) >= 0.0:
                now, old = old, now
                XH, oldH = oldH, XH
                pause = min(2 * pause, RARELY)
            wait = iteration + pause
            kind = ALONG
        iteration += 1
        spent += 1
    moved(now, 1.0, X)
    return spent, gap
