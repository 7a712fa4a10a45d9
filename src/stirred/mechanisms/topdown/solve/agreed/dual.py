r"""Non-negative least squares with exact sums, by Newton's method on the dual.

Minimise $\sum_c \tfrac12 \|x_c - a_c\|^2_{d_c} + \sum_r \tfrac12 W_r (s_r(x_c) - y_{cr})^2$ over $x_c \ge 0$, with some rows
$s_r(x_c)$ exact and, below a parent, $\sum_c x_c = p$ cell by cell. Given a price for every row, the best histogram is known
in closed form (a simplex projection across children in every cell); the dual is concave and piecewise quadratic, and its
Newton steps are found by conjugate gradients (Qi and Sun 1993; Fukuda, Zhao and Todd 2010 for the same idea elsewhere).
Whatever the prices are, the histogram is the exact optimum for sums that are off by the dual's gradient: that is the
certificate, in persons.

Prices that rise alike for all children of a parent change no histogram, so what the children's prices of a row sum to is
known beforehand: $\sum_c u_{cr} = W_r (s_r(p) - \sum_c y_{cr})$. The search is confined to prices with these sums, where
the curvature of children taken one by one is a good approximation of the curvature of all. A parent that is itself only
measured adds rows that all children count in; its prices follow from theirs.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.solve.agreed import kernels

Floats = NDArray[np.float64]
Index = NDArray[np.int32]
NEWTON = 80  # steps
SEARCH = 12  # trials along one of them
PRODUCTS = 400  # of conjugate gradients in one of them
EASY, STIFF = 1e-9, 1e-4
LEAST = 0.05  # of a row's whole curvature: below it prices would run away
OLD = 5  # products that show that a factored matrix is out of date
EXACT, LOOSE = 1e-5, 1e-3  # how far they reduce the squared residual: of a root, below a parent


@dataclass(frozen=True, slots=True)
class PricedRows:
    """Cells × children with their rows: the centre and 1/d of the cells, targets and 1/W of the rows (0: exact).

    Rows are numbered small, exact, fine; see ``kernels`` for how cells count in them.
    """

    kind: Index  # by cell
    members: Index  # kinds × small queries → row
    lines: Index  # cells × (exact, fine queries) → row
    small: int  # how many rows of each sort
    exact: int
    centre: Floats  # cells × children
    inverse: Floats  # cells × children; 0 where a child may not have a cell
    target: Floats  # rows × children
    soft: Floats  # rows × children
    parent: Floats  # by cell: what the children sum to, as far as it gives; length 0 at the root
    give: Floats  # by cell: 0 where they sum to it exactly
    lump: Floats  # by row: 1 / (1/W of the parent's own row + the sum of the children's); 0 where the parent has none
    pulled: Floats  # by row: the sum of the children's targets minus the parent's
    # by row: how much more it counts in the fit than in rounding
    ahead: Floats = field(default_factory=lambda: np.ones(1))

    @property
    def below(self) -> bool:
        """Whether the children add up to a parent that is known."""
        return len(self.parent) > 0 and not self.give.any()


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
    """Where the search stands: prices, histograms, the gradient, and the multipliers of the parent's counts."""

    price: Floats
    x: Floats
    gradient: Floats
    shift: Floats


def solve_dual(rows: PricedRows, *, tolerance: float = 1e-3) -> DualSolution:
    """The optimum, to within ``tolerance`` persons in every row."""
    below, products, steps = rows.below, 0, 0
    C = rows.target.shape[1]
    # Where few cells can move, a step is kept short by a share of the curvature that all cells of a row would have.
    whole, stiff = np.empty(rows.target.shape), STIFF if below else EASY
    structure = (rows.kind, rows.members, rows.lines)
    kernels.whole_curvature(rows.inverse, *structure, whole)
    keep, share, start = _confined(rows, whole)
    now = _Point(start, np.empty(rows.centre.shape), np.empty(whole.shape), np.zeros(len(rows.centre)))
    _evaluate(rows, now)
    pair = kernels.pairing(*structure, rows.small, rows.exact)
    cross = np.empty((int(pair.max(initial=-1)) + 1, C))
    held, block = np.empty((len(rows.members), C)), np.empty((C, rows.small, rows.small))
    diagonal, move = np.empty(whole.shape), np.empty(whole.shape)
    factors, renew = (diagonal, cross, block), True
    while steps < NEWTON:
        g = now.gradient
        if float(np.abs(g).max(initial=0.0)) <= tolerance:
            break
        steps += 1
        moving = kernels.active(now.x, rows.inverse, rows.give)
        kernels.assembled(*structure, pair, *moving, diagonal, cross, held)
        soft = rows.soft + stiff * whole + 1e-9
        if below:
            soft += np.maximum(LEAST * whole - diagonal - rows.soft, 0.0)
        if renew:
            diagonal += soft
            kernels.factored(rows.members, pair, diagonal, cross, held, block)
            factors = (diagonal.copy(), cross.copy(), block)
        more = _conjugate(
            rows, g, soft, moving, (keep, share), (pair, *factors), LOOSE if below else EXACT, move
        )
        products += more
        now, taken = _line(rows, now, move)
        if taken == 0.0 and renew:
            break
        # What is factored serves the next step as well, unless it needed many products or the cells that move changed.
        renew = more > OLD or taken < 0.9
        stiff = min(stiff * 4.0, 1.0) if taken < 0.4 else max(stiff / 4.0, EASY) if taken >= 0.9 else stiff
    worst = float(np.abs(now.gradient).max(initial=0.0))
    gap = abs(float((now.price * now.gradient).sum()))
    return DualSolution(now.x, now.price, worst, gap, products, steps)


def _conjugate(
    rows: PricedRows, g: Floats, soft: Floats, moving: tuple[NDArray[np.int64], Floats, Floats],
    within: tuple[Floats, Floats], factors: tuple[Index, Floats, Floats, Floats], enough: float, move: Floats,
) -> int:  # fmt: skip
    """The Newton step, by conjugate gradients, until the squared residual has fallen to ``enough`` of itself."""
    structure = (rows.kind, rows.members, rows.lines)
    r, z, out = g.copy(), np.empty(g.shape), np.empty(g.shape)
    move[:] = 0.0
    kernels.projected(r, *within)
    kernels.better(r, *factors, z)
    kernels.projected(z, *within)
    p = z.copy()
    left = float((r * z).sum())
    goal = left * enough
    for k in range(PRODUCTS):
        if left <= goal:
            return k
        kernels.curvature(p, *structure, *moving, soft, rows.soft, rows.lump, out)
        kernels.projected(out, *within)
        curve = float((p * out).sum())
        if curve <= 0.0:
            return k
        move += (left / curve) * p
        out *= left / curve
        r -= out
        kernels.better(r, *factors, z)
        kernels.projected(z, *within)
        fresh = float((r * z).sum())
        p *= fresh / left
        p += z
        left = fresh
    return PRODUCTS


def _confined(rows: PricedRows, whole: Floats) -> tuple[Floats, Floats, Floats]:
    """Which prices move, by what share of their sum they are moved back, and the prices to begin with."""
    keep, share, start = np.ones(whole.shape), np.zeros(len(whole)), np.zeros(whole.shape)
    if not rows.below:
        return keep, share, start
    alike = np.ptp(rows.soft, axis=1) <= 1e-12 * rows.soft[:, 0]
    part = whole > 0.0
    keep[alike] = part[alike]
    number = np.maximum(part.sum(axis=1), 1)
    share[alike] = 1.0 / number[alike]
    known = np.empty((len(whole), 1))
    nobody = np.zeros((len(rows.kind), 1))
    kernels.evaluate(
        np.zeros((len(whole), 1)), rows.parent[:, None], nobody, np.zeros(0), np.zeros(0), rows.kind, rows.members,
        rows.lines, np.zeros(len(rows.kind)), nobody.copy(), known,
    )  # fmt: skip
    firm = alike & (rows.soft[:, 0] > 0.0)
    own = rows.soft[firm][:, :1]
    left = (known[firm, 0] - np.where(part, rows.target, 0.0)[firm].sum(axis=1)) / number[firm]
    start[firm] = np.where(part[firm], left[:, None], -rows.target[firm]) / own
    return keep, share, start


def _evaluate(rows: PricedRows, at: _Point) -> None:
    """The best histograms at the prices, and the gradient: by how much every row is off."""
    kernels.evaluate(
        at.price, rows.centre, rows.inverse, rows.parent, rows.give, rows.kind, rows.members, rows.lines, at.shift, at.x,
        at.gradient,
    )  # fmt: skip
    # Prices are those of a child's row and of its parent's together; the parent's own is known in closed form.
    above = ((at.price * rows.soft).sum(axis=1) + rows.pulled) * rows.lump
    np.subtract(at.gradient, rows.target, out=at.gradient)
    np.subtract(at.gradient, (at.price - above[:, None]) * rows.soft, out=at.gradient)


def _line(rows: PricedRows, now: _Point, move: Floats) -> tuple[_Point, float]:
    """The point along the step where the dual's slope has fallen by half."""
    start = float((now.gradient * move).sum())
    if start <= 0.0:
        return now, 0.0
    low, high, at = 0.0, np.inf, 1.0
    low_slope, high_slope = start, 0.0
    there = now
    for _ in range(SEARCH):
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
