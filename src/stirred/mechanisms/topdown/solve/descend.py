r"""The constrained least-squares step of one parent, compiled.

Minimise $\sum_c \tfrac12 x_c' H_c x_c - b_c' x_c$ over the children's histograms $x_c \ge 0$ on the cells where the
parent is positive, with $\sum_c x_c = p$ cell by cell. Two kinds of steps take turns, as in Moré and Toraldo (1991):
ten of FISTA with restart in the diagonal metric $d \ge H 1$, whose projection is an exact simplex projection across
children in every cell, find out which cells are zero; conjugate gradients on the face of the others then remove
what a first-order method takes hundreds of steps for. The same input gives the same bits on any number of threads.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import add_four, add_products, compile_kernel, scale_four
from stirred.mechanisms.topdown.solve.layout import (
    NEVER_COUNT,
    Bounds,
    Nesting,
    add_pull,
    clip,
    find_active_sums,
    fold,
    move_thresholds,
    multiply_hessian,
    scale_children,
    spread,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
FISTA_STEPS = 10  # steps of one kind before certificates are computed and the other kind has its turn
CG_STEPS = 40  # conjugate gradients on one face
CG_TOLERANCE = (
    1e-4  # how far they reduce the squared residual: more is not useful, because the face may still be wrong
)
MAX_PAUSE_STEPS = 200
START, ALONG, ACROSS = 0, 1, 2  # the first projection, a step of FISTA, one across the face


@compile_kernel
def ordered_sum(total: Floats) -> float:
    """Return the sum, in order."""
    s = 0.0
    for i in range(len(total)):
        s += total[i]
    return s


@compile_kernel
def scale_into(A: Floats, factor: float, B: Floats) -> None:
    """Compute B = factor · A."""
    for b in range(len(A)):
        x, y = A[b], B[b]
        for i in range(len(x)):
            y[i] = factor * x[i]


@compile_kernel
def certify_gap(
    X: Floats,
    G: Floats,
    T: Floats,
    B: Floats,
    inverse: Floats,
    curvature: float,
    least: Floats,
    total: Floats,
) -> float:
    r"""Return a bound on f(X) − f*, the smaller of two, from the gradient at X.

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
    gap = ordered_sum(total)
    if curvature <= 0.0:
        return gap
    total[:] = 0.0
    for b in range(len(X)):
        x, g, t, y = X[b], G[b], T[b], B[b]
        for i in range(len(x)):
            u = g[i] + (t[i] - x[i]) / inverse[i] if y[i] > -0.5 * NEVER_COUNT else 0.0
            total[i] += u * u
    return min(gap, ordered_sum(total) / (2.0 * curvature))


@compile_kernel
def list_positive(X: Floats, first: Longs, place: Ints) -> None:
    """List the cells in which any of four children is positive, and where those of each four begin."""
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


@compile_kernel
def multiply_on_face(
    P: Floats,
    f: int,
    place: Ints,
    queries: Nesting,
    weights: Floats,
    diagonal: Floats,
    sums: Floats,
    Z: Floats,
) -> None:
    """Compute Z = P H as in ``multiply_hessian``, only for the cells ``place`` of four children, from ``f`` on."""
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
        scale_children(sums, 4 * begin[q], 4 * begin[q + 1], weights[q], sums)
    for a in range(len(place)):
        scale_four(Z, f + 4 * a, P, f + 4 * a, diagonal, 0)
    for q in range(Q - 1, -1, -1):
        if source[q] < 0:
            for a in range(len(place)):
                add_four(Z, f + 4 * a, sums, 4 * np.int64(into[q, place[a]]))
        else:
            spread(sums, into[q], length[q], 4 * begin[source[q]], sums)


@compile_kernel
def add_face_curvature(
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


@compile_kernel
def project_on_face(
    R: Floats, F: Floats, first: Longs, place: Ints, share: Floats, inverse: Floats, mean: Floats, Z: Floats, total: Floats
) -> float:  # fmt: skip
    """Project R / d on the face, keeping every cell's sum over children, into Z; return Σ R Z."""
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
    return ordered_sum(total)


@compile_kernel
def step_on_face(
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
    """Step from X towards the minimum where X is positive; return the products with H.

    Most numbers are zero, so conjugate gradients see only cells in which one of four children is positive. The others
    would add zeros to sums that run in the same order: the bits are those of the whole histograms.
    """
    size = X.shape[1]
    first, where = np.empty(len(X) + 1, np.int64), np.empty(X.size // 4, np.int32)
    list_positive(X, first, where)
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
    left = project_on_face(R, F, first, where, share, inverse, mean, P, total)
    enough = max(enough, CG_TOLERANCE * left)
    spent = most
    for k in range(most):
        if left <= enough:
            spent = k
            break
        total[:] = 0.0
        for b in range(len(X)):
            f, place = 4 * first[b], where[first[b] : first[b + 1]]
            multiply_on_face(P, f, place, queries, weights[b], diagonal[b], sums[0], Z)
            add_face_curvature(P, f, place, into, stiff, b, sums[1], Z)
            for a in range(len(place)):
                add_products(total, 4 * np.int64(place[a]), P, f + 4 * a, Z, f + 4 * a)
        curve = ordered_sum(total)
        if curve <= 0.0:
            spent = k
            break
        forward, back = left / curve, -left / curve
        for i in range(kept):
            S[i] += forward * P[i]
            R[i] += back * (Z[i] * F[i])
        fresh = project_on_face(R, F, first, where, share, inverse, mean, Z, total)
        for i in range(kept):
            P[i] = Z[i] + fresh / left * P[i]
        left = fresh
    scale_into(step, 0.0, step)
    for b in range(len(X)):
        for a in range(first[b], first[b + 1]):
            for lane in range(4):
                step[b, 4 * np.int64(where[a]) + lane] = S[4 * a + lane]
    return spent


@compile_kernel
def compute_gradient(X: Floats, XH: Floats, B: Floats, bounds: Bounds, sums: Floats, G: Floats) -> None:
    """Compute G = X H − B, plus the gradient of the held sums."""
    for b in range(len(X)):
        h, y, g = XH[b], B[b], G[b]
        for i in range(len(h)):
            g[i] = h[i] - y[i]
        add_pull(X[b], b, bounds, sums, g)


@compile_kernel
def extrapolate(
    X: Floats, old: Floats, XH: Floats, oldH: Floats, B: Floats, beta: float, bounds: Bounds, inverse: Floats,
    sums: Floats, V: Floats, T: Floats,
) -> None:  # fmt: skip
    """Compute V = X + β (X − old), and T one step down the gradient at V, four children at a time."""
    for b in range(len(X)):
        x, o, h, oh, y, v, t = X[b], old[b], XH[b], oldH[b], B[b], V[b], T[b]
        for i in range(len(x)):
            v[i] = x[i] + beta * (x[i] - o[i])
            t[i] = h[i] + beta * (h[i] - oh[i]) - y[i]
        add_pull(v, b, bounds, sums, t)
        for i in range(len(x)):
            t[i] = v[i] - t[i] * inverse[i]


@compile_kernel
def measure_change(
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
    """Return twice f(Y) − f(X), by the trapezoid rule on both gradients: exact for a quadratic."""
    compute_gradient(Y, YH, B, bounds, sums, scratch)
    total[:] = 0.0
    for b in range(len(X)):
        x, y, g, h = X[b], Y[b], G[b], scratch[b]
        for i in range(len(x)):
            total[i] += (y[i] - x[i]) * (g[i] + h[i])
    return ordered_sum(total)


@compile_kernel
def measure_uphill(V: Floats, X: Floats, old: Floats, inverse: Floats, total: Floats) -> float:
    """Return a positive number when the last move points uphill: then momentum starts again."""
    total[:] = 0.0
    for b in range(len(X)):
        x, o, v = X[b], old[b], V[b]
        for i in range(len(x)):
            total[i] += (v[i] - x[i]) * (x[i] - o[i]) / inverse[i]
    return ordered_sum(total)


@compile_kernel
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
    """Minimise from T into X; return products with the Hessian and the certified gap."""
    K, size = X.shape
    sums = (np.empty(4 * queries[1][-1] + 4), np.empty(bounds[1].shape[2] + 4))
    stiff = np.zeros(bounds[1].shape)
    tau, count, total = np.full(size, -0.5 * NEVER_COUNT), np.empty(size), np.empty(size)
    XH, G, V = np.zeros((K, size)), np.empty((K, size)), np.empty((K, size))
    now, old, oldH = np.zeros((K, size)), np.zeros((K, size)), np.zeros((K, size))
    momentum, beta, gap = 1.0, 0.0, np.inf
    pause, wait, spent, iteration = FISTA_STEPS, FISTA_STEPS, 0, 0
    kind, projected = START, False  # whether X is the projection of T after a step of FISTA
    while True:
        if kind != START and (iteration % FISTA_STEPS == 0 or spent >= limit):
            compute_gradient(now, XH, B, bounds, sums[1], G)
            gap = certify_gap(now, G, T, B, inverse, curvature if projected else 0.0, count, total)
            if gap <= goal or spent >= limit:
                break
            if iteration >= wait:
                find_active_sums(now, bounds, sums[1], stiff)
                spent += step_on_face(
                    now, G, inverse, queries, weights, diagonal, bounds[0], stiff, 0.01 * goal,
                    min(CG_STEPS, limit - spent), sums, V, total,
                )  # fmt: skip
                kind = ACROSS
                for b in range(K):
                    x, v, y, t = now[b], V[b], B[b], T[b]
                    for i in range(size):
                        t[i] = x[i] + v[i] if y[i] > -0.5 * NEVER_COUNT else -NEVER_COUNT
        if kind == ALONG:
            extrapolate(now, old, XH, oldH, B, beta, bounds, inverse, sums[1], V, T)
        move_thresholds(T, p, tau, count, total)
        now, old = old, now
        XH, oldH = oldH, XH
        clip(T, tau, now)
        multiply_hessian(now, queries, weights, diagonal, sums[0], XH)
        if kind == START:
            kind = ALONG
            continue
        projected = kind == ALONG
        if kind == ALONG and measure_uphill(V, now, old, inverse, total) <= 0.0:
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum))
            beta = (momentum - 1.0) / following
            momentum = following
        else:
            momentum, beta = 1.0, 0.0
        if kind == ACROSS:
            if measure_change(old, now, G, XH, B, bounds, sums[1], V, total) >= 0.0:
                now, old = old, now
                XH, oldH = oldH, XH
                pause = min(2 * pause, MAX_PAUSE_STEPS)
            wait = iteration + pause
            kind = ALONG
        iteration += 1
        spent += 1
    scale_into(now, 1.0, X)
    return spent, gap
