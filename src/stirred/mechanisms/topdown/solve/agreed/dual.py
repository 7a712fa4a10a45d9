r"""Non-negative least squares with exact sums, by Newton's method on the dual.

Minimise $\sum_c \tfrac12 \|x_c - a_c\|^2_{d_c} + \sum_r \tfrac12 W_r (s_r(x_c) - y_{cr})^2$ over $x_c \ge 0$, with some rows
$s_r(x_c)$ exact and, below a parent, $\sum_c x_c = p$ cell by cell. Given a price for every row, the best histogram is known
in closed form (a simplex projection across children in every cell); the dual is concave and piecewise quadratic, and its
Newton steps are found by conjugate gradients (Qi and Sun 1993; Fukuda, Zhao and Todd 2010 for the same idea elsewhere).
Whatever the prices are, the histogram is the exact optimum for sums that are off by the dual's gradient: that is the
certificate, in persons. Where the steps get stuck between too many kinks, the search begins once more at prices that an
interior point method has found.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.solve.agreed import kernels
from stirred.mechanisms.topdown.solve.agreed.interior import find_interior_prices
from stirred.mechanisms.topdown.solve.agreed.system import PricedRows, System

Floats = NDArray[np.float64]
MAX_NEWTON_STEPS = 60  # steps
MAX_STUCK_STEPS = 8  # of them that do not halve what the worst row is off by: the search is stuck
MAX_LINE_TRIALS = 12  # trials along one of them
MIN_STIFFNESS, PARENT_STIFFNESS = 1e-9, 1e-4
MIN_CURVATURE_SHARE = (
    0.05  # of a row's whole curvature: below it prices may run away; less once steps prove too short
)
MIN_STALE_PRODUCTS = 5  # products that show that a factored matrix is out of date
ROOT_RESIDUAL_SHARE, PARENT_RESIDUAL_SHARE = (
    1e-5,
    1e-3,
)  # how far they reduce the squared residual: of a root, below a parent


@dataclass(frozen=True, slots=True)
class DualSolution:
    """The histograms, the largest amount by which a row is off, the duality gap, and how many products it took."""

    x: Floats  # cells × children
    price: Floats
    residual: float
    gap: float
    products: int
    steps: int


@dataclass(frozen=True, slots=True)
class _Point:
    """A point of the search: prices, histograms, gradient, and multipliers of the parent's counts."""

    price: Floats
    x: Floats
    gradient: Floats
    shift: Floats

    @property
    def worst(self) -> float:
        """Return the largest amount by which a row is off."""
        return float(np.abs(self.gradient).max(initial=0.0))


def solve_dual(rows: PricedRows, *, tolerance: float = 1e-3) -> DualSolution:
    """Return the optimum, to within ``tolerance`` persons in every row."""
    system = System(rows)
    now, products, steps = _search(system, system.start, tolerance)
    if now.worst > tolerance:
        start, more = find_interior_prices(system)
        again, others, further = _search(system, start, tolerance)
        products, steps = products + more + others, steps + further
        if again.worst < now.worst:
            now = again
    gap = abs(float((now.price * now.gradient).sum()))
    return DualSolution(now.x, now.price, now.worst, gap, products, steps)


def _search(system: System, start: Floats, tolerance: float) -> tuple[_Point, int, int]:
    """Run Newton's method from the given prices; return its last point, products and steps."""
    rows = system.rows
    below, products, steps = system.below, 0, 0
    # Where few cells can move, a step is kept short by a share of the curvature that all cells of a row would have.
    whole, stiff, least = system.whole, PARENT_STIFFNESS if below else MIN_STIFFNESS, MIN_CURVATURE_SHARE
    now = _Point(start, np.empty(rows.centre.shape), np.empty(whole.shape), np.zeros(len(rows.centre)))
    _evaluate(rows, now)
    move, renew = np.empty(whole.shape), True
    best, since = now.worst, 0
    while steps < MAX_NEWTON_STEPS and steps - since < MAX_STUCK_STEPS and now.worst > tolerance:
        steps += 1
        moving = kernels.find_active(now.x, rows.inverse, rows.give)
        system.assemble(moving)
        soft = rows.soft + stiff * whole + 1e-9
        if below:
            soft += np.maximum(least * whole - system.diagonal - rows.soft, 0.0)
        if renew:
            system.factor(soft)
        more = system.solve(
            now.gradient, soft, moving, PARENT_RESIDUAL_SHARE if below else ROOT_RESIDUAL_SHARE, move
        )
        products += more
        now, taken = _search_line(rows, now, move)
        if taken == 0.0 and renew:
            break
        if now.worst <= 0.5 * best:
            best, since = now.worst, steps
        # What is factored serves the next step as well, unless it needed many products or the cells that move changed.
        renew = more > MIN_STALE_PRODUCTS or taken < 0.9
        if taken < 0.4:
            stiff, least = min(stiff * 4.0, 1.0), min(least * 4.0, MIN_CURVATURE_SHARE)
        elif taken >= 0.9:
            stiff, least = max(stiff / 4.0, MIN_STIFFNESS), least / 4.0 if taken >= 2.0 else least
    return now, products, steps


def _evaluate(rows: PricedRows, at: _Point) -> None:
    """Compute the best histograms at the prices, and the gradient: by how much every row is off."""
    kernels.evaluate_prices(
        at.price, rows.centre, rows.inverse, rows.parent, rows.give, *rows.structure, at.shift, at.x, at.gradient,
    )  # fmt: skip
    rows.subtract_targets(at.price, at.gradient)


def _search_line(rows: PricedRows, now: _Point, move: Floats) -> tuple[_Point, float]:
    """Return the point along the step where the dual's slope has fallen by half."""
    start = float((now.gradient * move).sum())
    if start <= 0.0:
        return now, 0.0
    low, high, at = 0.0, np.inf, 1.0
    low_slope, high_slope = start, 0.0
    there = now
    for _ in range(MAX_LINE_TRIALS):
        there = _Point(now.price + at * move, now.x, now.gradient, now.shift)
        _evaluate(rows, there)
        slope = float((there.gradient * move).sum())
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
