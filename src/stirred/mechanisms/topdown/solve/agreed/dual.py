r"""Non-negative least squares with exact sums, by Newton's method on the dual.

Minimise $\sum_c \tfrac12 \|x_c - a_c\|^2_{d_c} + \sum_r \tfrac12 W_r (s_r(x_c) - y_{cr})^2$ over $x_c \ge 0$, with some rows
$s_r(x_c)$ exact and, below a parent, $\sum_c x_c = p$ cell by cell. Given a price for every row, the best histogram is known
in closed form (a simplex projection across children in every cell); the dual is concave and piecewise quadratic, and its
Newton steps are found by conjugate gradients (Qi and Sun 1993; Fukuda, Zhao and Todd 2010 for the same idea elsewhere).
Whatever the prices are, the histogram is the exact optimum for sums that are off by the dual's gradient: that is the
certificate, in persons.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.solve.agreed import kernels

Floats = NDArray[np.float64]
Index = NDArray[np.int32]
NEWTON = 80  # steps
SEARCH = 12  # trials along one of them
PRODUCTS = 400  # of conjugate gradients in one of them
EASY, STIFF = 1e-6, 1e-4
LEAST = 0.05  # of a row's whole curvature: below it prices would run away
EXACT = 1e-3  # how far they reduce the squared residual


@dataclass(frozen=True, slots=True)
class PricedRows:
    """Children × cells with their rows: the centre and 1/d of the cells, targets and 1/W of the rows (0: exact)."""

    index: Index  # queries × cells → row
    centre: Floats  # children × cells
    inverse: Floats  # children × cells
    target: Floats  # children × rows
    soft: Floats  # children × rows
    parent: Floats  # by cell; length 0 at the root
    allowed: NDArray[np.bool_]
    small: NDArray[np.int64]  # rows → their number among the few large sums, -1 elsewhere


@dataclass(frozen=True, slots=True)
class DualSolution:
    """The histograms, the largest amount by which a row is off, the duality gap, and how many products it took."""

    x: Floats
    price: Floats
    residual: float
    gap: float
    products: int
    steps: int


def solve_dual(rows: PricedRows, *, tolerance: float = 1e-3, price: Floats | None = None) -> DualSolution:
    """The optimum, to within ``tolerance`` persons in every row."""
    u = np.zeros(rows.target.shape) if price is None else price.copy()
    X, g = np.empty(rows.centre.shape), np.empty(u.shape)
    _at(rows, u, X, g)
    tied, products = bool(len(rows.parent)), 0
    # Where few cells can move, a step is kept short by a share of the curvature that all cells of a row would have.
    whole, share = np.empty(u.shape), STIFF if tied else EASY
    kernels.row_sums(np.where(rows.allowed, rows.inverse, 0.0), rows.index, whole)
    steps = 0
    while steps < NEWTON:
        worst = float(np.abs(g).max(initial=0.0))
        if worst <= tolerance:
            break
        cell, child, first, slack, tie = kernels.active(X, rows.inverse, tied)
        del cell
        steps += 1
        soft = rows.soft + share * whole + 1e-9
        if tied:
            own = np.empty(u.shape)
            kernels.diagonal(rows.index, child, first, slack, tie, rows.soft, own)
            soft += np.maximum(LEAST * whole - own, 0.0)
        move, more = _newton(rows, soft, g, child, first, slack, tie)
        products += more
        u, taken = _line(rows, u, move, X, g)
        if taken == 0.0:
            break
        share = min(share * 4.0, 1.0) if taken < 0.4 else max(share / 4.0, EASY) if taken >= 0.9 else share
    worst = float(np.abs(g).max(initial=0.0))
    return DualSolution(X, u, worst, abs(float((u * g).sum())), products, steps)


def _at(rows: PricedRows, u: Floats, X: Floats, g: Floats) -> None:
    """The best histograms at prices u, and the gradient: by how much every row is off."""
    kernels.primal(u, rows.centre, rows.inverse, rows.index, rows.parent, rows.allowed, X)
    kernels.row_sums(X, rows.index, g)
    g -= rows.target
    g -= u * rows.soft


def _newton(
    rows: PricedRows,
    soft: Floats,
    g: Floats,
    child: Index,
    first: NDArray[np.int64],
    slack: Floats,
    tie: Floats,
) -> tuple[Floats, int]:
    """The Newton step, by conjugate gradients; preconditioned exactly among the large sums, by the diagonal elsewhere."""
    M = np.empty(g.shape)
    kernels.diagonal(rows.index, child, first, slack, tie, soft, M)
    np.reciprocal(M, out=M)
    factors = _factors(rows, child, first, slack, tie, soft)

    def better(r: Floats) -> Floats:
        z: Floats = M * r
        kernels.backward(factors, r, rows.small, z)
        return z

    step, r = np.zeros(g.shape), g.copy()
    z = better(r)
    p, out = z.copy(), np.empty(g.shape)
    left = float((r * z).sum())
    enough = left * EXACT
    for k in range(PRODUCTS):
        if left <= enough:
            return step, k
        kernels.curvature(p, rows.index, child, first, slack, tie, soft, out)
        curve = float((p * out).sum())
        if curve <= 0.0:
            return step, k
        step += (left / curve) * p
        out *= left / curve
        r -= out
        z = better(r)
        fresh = float((r * z).sum())
        p *= fresh / left
        p += z
        left = fresh
    return step, PRODUCTS


def _factors(
    rows: PricedRows, child: Index, first: NDArray[np.int64], slack: Floats, tie: Floats, soft: Floats
) -> Floats:
    """The factored matrix among the large sums, child by child."""
    size = int((rows.small >= 0).sum())
    blocks = np.empty((len(soft), size, size))
    kernels.coarse_block(rows.index, rows.small, child, first, slack, tie, soft, blocks)
    kernels.factor(blocks)
    return blocks


def _line(rows: PricedRows, u: Floats, move: Floats, X: Floats, g: Floats) -> tuple[Floats, float]:
    """The point along the step where the dual's slope has fallen by half; X and g are left there."""
    start = float((g * move).sum())
    if start <= 0.0:
        return u, 0.0
    low, high, at = 0.0, np.inf, 1.0
    low_slope, high_slope = start, 0.0
    there = u
    for _ in range(SEARCH):
        there = u + at * move
        _at(rows, there, X, g)
        slope = float((g * move).sum())
        if abs(slope) <= 0.5 * start:
            return there, at
        if slope > 0.0:
            low, low_slope = at, slope
            at = 2.0 * at if np.isinf(high) else low + (high - low) * low_slope / (low_slope - high_slope)
        else:
            high, high_slope = at, slope
            share = low_slope / (low_slope - high_slope)
            at = low + (high - low) * min(max(share, 0.05), 0.95)
    return there, at
