"""Minimise the constrained least-squares objective of one parent in compiled code."""

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import add_four, add_products, compile_kernel, scale_four

# The memory layout of the compiled solver: the histograms of four children side by side.
#
# Histograms of four children are interleaved (cell 0 of all four, then cell 1, …), so sums by query, which access
# cells in no order, still process four numbers at a time. Arrays have one row of 4n numbers per four children; a
# missing child or a cell that a child may not hold has a measurement that forces it to zero (``NEVER_COUNT``). All
# sums run in a fixed order.

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Bools = NDArray[np.bool_]
Nesting = tuple[Longs, Longs, Longs, Ints]
Bounds = tuple[Ints, Floats, Floats, Floats, Floats]
NEVER_COUNT = 1e200


@compile_kernel
def merge_queries(groups: Ints, weights: Floats, gid: Ints, w: Floats, diagonal: Floats) -> int:
    """Merge equal queries, renumbered by first appearance; return how many remain.

    Queries that keep every cell apart become a diagonal.
    """
    Q, n = groups.shape
    top = 0
    for q in range(Q):
        for j in range(n):
            top = max(top, groups[q, j])
    name = np.empty(top + 1, np.int32)
    kept = 0
    for q in range(Q):
        name[:] = -1
        m = 0
        for j in range(n):
            g = groups[q, j]
            if g >= 0 and name[g] < 0:
                name[g] = m
                m += 1
            gid[kept, j] = name[g] if g >= 0 else -1
        if m == n:
            for k in range(len(w)):
                diagonal[k] += weights[k, q]
        elif m > 0:
            same = 0
            j = 0
            while j < n:
                if gid[same, j] == gid[kept, j]:
                    j += 1
                else:
                    same += 1
                    j = 0
            for k in range(len(w)):
                w[k, same] += weights[k, q]
            kept = max(kept, same + 1)
    return kept


@compile_kernel
def nest_queries(gid: Ints, size: Longs, source: Longs, begin: Longs, length: Longs, into: Ints) -> None:
    """Nest queries from fine to coarse: each is summed from the coarsest finer one (-1: from the cells).

    Fills in that source, where the sums of each query begin, how many numbers it sums, and into which sum each goes.
    The last sum is a bin for what a query leaves out.
    """
    Q, n = gid.shape
    for k in range(Q):
        begin[k + 1] = begin[k] + size[k]
    image = np.empty(n, np.int32)
    for k in range(Q):
        own = gid[k]
        source[k] = -1
        for f in range(k - 1, -1, -1):
            finer = gid[f]
            image[:] = -2
            refines = True
            for j in range(n):
                if finer[j] < 0:
                    refines = own[j] < 0
                elif image[finer[j]] == -2:
                    image[finer[j]] = own[j]
                else:
                    refines = image[finer[j]] == own[j]
                if not refines:
                    break
            if refines:
                source[k] = f
                break
        length[k] = size[source[k]] if source[k] >= 0 else n
        for a in range(length[k]):
            g = image[a] if source[k] >= 0 else own[a]
            into[k, a] = begin[k] + g if g >= 0 else begin[Q]


@compile_kernel
def fold(x: Floats, first: int, into: Ints, length: int, sums: Floats) -> None:
    """Add every number of x to its sum."""
    for a in range(length):
        add_four(sums, 4 * np.int64(into[a]), x, first + 4 * a)


@compile_kernel
def spread(sums: Floats, into: Ints, length: int, first: int, y: Floats) -> None:
    """Add to every number of y its sum."""
    for a in range(length):
        add_four(y, first + 4 * a, sums, 4 * np.int64(into[a]))


@compile_kernel
def scale_children(x: Floats, first: int, last: int, w: Floats, y: Floats) -> None:
    """Multiply the numbers of each child by its own weight."""
    for i in range(first, last, 4):
        scale_four(y, i, x, i, w, 0)


@compile_kernel
def multiply_hessian(
    X: Floats, queries: Nesting, weights: Floats, diagonal: Floats, sums: Floats, out: Floats
) -> None:
    """Compute out = X H: sums from fine to coarse, weighted, and back from coarse to fine."""
    source, begin, length, into = queries
    Q = len(source)
    for b in range(len(X)):
        sums[:] = 0.0
        for q in range(Q):
            if source[q] < 0:
                fold(X[b], 0, into[q], length[q], sums)
            else:
                fold(sums, 4 * begin[source[q]], into[q], length[q], sums)
        sums[4 * begin[Q] :] = 0.0
        for q in range(Q):
            scale_children(sums, 4 * begin[q], 4 * begin[q + 1], weights[b, q], sums)
        scale_children(X[b], 0, X.shape[1], diagonal[b], out[b])
        for q in range(Q - 1, -1, -1):
            if source[q] < 0:
                spread(sums, into[q], length[q], 0, out[b])
            else:
                spread(sums, into[q], length[q], 4 * begin[source[q]], sums)


@compile_kernel
def move_thresholds(T: Floats, p: Floats, tau: Floats, count: Floats, total: Floats) -> None:
    r"""Move tau to where $\sum_c \max(T_c - \tau, 0) = p$ in every cell: Newton on a convex function, from any tau.

    One step from too far right lands left of the root, and from the left the steps only go right (Michelot 1986),
    so the threshold of the last iteration is a good start.
    """
    K, size = T.shape
    count[:] = 0.0
    total[:] = 0.0
    for b in range(K):
        row = T[b]
        for i in range(size):
            above = row[i] > tau[i]
            total[i] += row[i] if above else 0.0
            count[i] += 1.0 if above else 0.0
    for i in range(0, size, 4):
        k = count[i] + count[i + 1] + count[i + 2] + count[i + 3]
        s = total[i] + total[i + 1] + total[i + 2] + total[i + 3]
        level = (s - p[i // 4]) / k if k > 0.0 else -0.5 * NEVER_COUNT
        shrinks = False
        for _ in range(4 * K + 3):
            k0 = k1 = k2 = k3 = s0 = s1 = s2 = s3 = 0.0
            for b in range(K):
                t0, t1, t2, t3 = T[b, i], T[b, i + 1], T[b, i + 2], T[b, i + 3]
                k0 += 1.0 if t0 > level else 0.0
                k1 += 1.0 if t1 > level else 0.0
                k2 += 1.0 if t2 > level else 0.0
                k3 += 1.0 if t3 > level else 0.0
                s0 += t0 if t0 > level else 0.0
                s1 += t1 if t1 > level else 0.0
                s2 += t2 if t2 > level else 0.0
                s3 += t3 if t3 > level else 0.0
            fresh = k0 + k1 + k2 + k3
            # Test for "did not shrink", not "did not change": in floating point the count can cycle.
            if fresh == 0.0 or fresh == k or (shrinks and fresh > k):
                break
            shrinks = k > 0.0
            k = fresh
            level = (s0 + s1 + s2 + s3 - p[i // 4]) / k
        tau[i] = tau[i + 1] = tau[i + 2] = tau[i + 3] = level


@compile_kernel
def clip(T: Floats, tau: Floats, X: Floats) -> None:
    """Compute X = max(T − τ, 0)."""
    for b in range(len(T)):
        t, x = T[b], X[b]
        for i in range(len(t)):
            x[i] = max(t[i] - tau[i], 0.0)


@compile_kernel
def add_pull(x: Floats, b: int, bounds: Bounds, sums: Floats, g: Floats) -> None:
    """Add to the gradient of four children the terms of the augmented Lagrangian that hold sums between bounds."""
    into, low, high, multiplier, mu = bounds
    for r in range(len(into)):
        sums[:] = 0.0
        fold(x, 0, into[r], into.shape[1], sums)
        for a in range(low.shape[2]):
            z = sums[a] + multiplier[r, b, a] / mu[r]
            sums[a] = mu[r] * (z - min(max(z, low[r, b, a]), high[r, b, a]))
        sums[low.shape[2] :] = 0.0
        spread(sums, into[r], into.shape[1], 0, g)


@compile_kernel
def find_active_sums(X: Floats, bounds: Bounds, sums: Floats, stiff: Floats) -> None:
    """Find which held sums are active at X: there the curvature is μ, elsewhere 0."""
    into, low, high, multiplier, mu = bounds
    for r in range(len(into)):
        for b in range(len(X)):
            sums[:] = 0.0
            fold(X[b], 0, into[r], into.shape[1], sums)
            for a in range(low.shape[2]):
                z = sums[a] + multiplier[r, b, a] / mu[r]
                within = low[r, b, a] < high[r, b, a] and low[r, b, a] <= z <= high[r, b, a]
                stiff[r, b, a] = 0.0 if within else mu[r]


@compile_kernel
def lay_out(A: Floats, kept: Bools, out: Floats) -> None:
    """Copy a child × cell array into the layout, where kept; the rest of ``out`` does not change."""
    for c in range(len(A)):
        for j in range(A.shape[1]):
            if kept[c, j]:
                out[c // 4, 4 * j + c % 4] = A[c, j]


@compile_kernel
def lay_back(X: Floats, A: Floats) -> None:
    """Copy the layout back to a child × cell array."""
    for c in range(len(A)):
        for j in range(A.shape[1]):
            A[c, j] = X[c // 4, 4 * j + c % 4]


# The constrained least-squares step of one parent, compiled.
#
# Minimise $\sum_c \tfrac12 x_c' H_c x_c - b_c' x_c$ over the children's histograms $x_c \ge 0$ on the cells where the
# parent is positive, with $\sum_c x_c = p$ cell by cell. Two kinds of steps take turns, as in Moré and Toraldo (1991):
# ten of FISTA with restart in the diagonal metric $d \ge H 1$, whose projection is an exact simplex projection across
# children in every cell, find out which cells are zero; conjugate gradients on the face of the others then remove what
# a first-order method takes hundreds of steps for. The same input gives the same bits on any number of threads.

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
