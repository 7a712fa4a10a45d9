r"""Prices near the optimum by an interior point method, for parents where Newton's method on the dual gets stuck.

Every count $x$ stays positive, and so does its reduced cost $z$; their product is lowered to zero step by step, with
Mehrotra's (1992) predictor and corrector. A count that is nearly zero still moves a little, so that no row ever looks as if
nothing could move it: that is what stops Newton's method where thousands of near-empty cells share their sums. The system
of a step is that of ``system`` with slack $1 / (d + z/x)$ in place of 1/d or nothing. It ends near the optimum, not at it.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.mechanisms.topdown.solve.agreed import kernels
from stirred.mechanisms.topdown.solve.agreed.system import System

Floats = NDArray[np.float64]
Index = NDArray[np.int32]
MAX_INTERIOR_STEPS = 60
EMPTY_CELL_DEVIATIONS = 5.0  # standard deviations of a cell: where empty cells begin
MAX_MEAN_PRODUCT, MAX_ROW_ERROR_PERSONS = (
    1e-7,
    1e-2,
)  # where it ends: the mean of x · z, and persons in any row
ROUGH_RESIDUAL_SHARE, FINE_RESIDUAL_SHARE = (
    1e-3,
    1e-4,
)  # how far the squared residual is reduced in the two parts of a step
BOUNDARY_SHARE = 0.95  # of the way to where a count or a cost would be zero


def find_interior_prices(system: System) -> tuple[Floats, int]:
    """Return prices near the optimum, and how many products they took."""
    rows = system.rows
    free = rows.inverse > 0.0
    n, C = rows.inverse.shape
    tied = len(rows.parent) > 0
    parent, give = (rows.parent, rows.give) if tied else (np.zeros(n), np.zeros(n))
    cells = (rows.centre, rows.inverse, parent, give, tied)
    x, z, price, shift = (
        _choose_start(rows.centre, rows.inverse, free),
        np.zeros((n, C)),
        system.start,
        np.zeros(n),
    )
    np.divide(EMPTY_CELL_DEVIATIONS * EMPTY_CELL_DEVIATIONS, x, out=z, where=free)
    slack, lack, move, cost = (np.zeros((n, C)) for _ in range(4))
    tie, short, turn = np.zeros(n), np.zeros(n), np.zeros(n)
    sums, right, change = (np.empty(rows.target.shape) for _ in range(3))
    soft = rows.soft + 1e-9 * system.whole + 1e-9
    moving = (np.arange(n), slack, tie)
    products, number = 0, max(int(free.sum()), 1)
    for _ in range(MAX_INTERIOR_STEPS):
        near = _compute_slack(x, z, shift, price, *cells, *rows.structure, slack, tie, lack, short) / number
        kernels.sum_rows(x, *rows.structure, sums)
        rows.subtract_targets(price, sums)
        if near <= MAX_MEAN_PRODUCT and float(np.abs(sums).max(initial=0.0)) <= MAX_ROW_ERROR_PERSONS:
            break
        system.assemble(moving)
        system.factor(soft)
        goal, step, move[:], cost[:] = 0.0, 1.0, 0.0, 0.0
        for enough in (
            ROUGH_RESIDUAL_SHARE,
            FINE_RESIDUAL_SHARE,
        ):  # what a straight step would do says how far to lower the products
            push = _predict_moves(x, z, lack, short, slack, tie, goal, move, cost)
            kernels.sum_rows(push, *rows.structure, right)
            right += sums
            products += system.solve(right, soft, moving, enough, change)
            step = _follow_prices(
                x, z, lack, short, slack, tie, goal, change, *rows.structure, move, cost, turn
            )
            ahead = _sum_products(x, z, move, cost, min(step, 1.0)) / number
            goal = near * min((ahead / near) ** 3, 1.0)
        step = min(BOUNDARY_SHARE * step, 1.0)
        x += step * move
        z += step * cost
        shift += step * turn
        price = price + step * change
    return price, products


def _choose_start(centre: Floats, inverse: Floats, free: NDArray[np.bool_]) -> Floats:
    """Return the starting counts: their centres, or far above zero where these are small."""
    usual = float(np.median(inverse[free])) if free.any() else 1.0
    return np.where(free, np.maximum(centre, EMPTY_CELL_DEVIATIONS * np.sqrt(usual)), 0.0)


@compile_kernel
def _price_cell(small: float, price: Floats, lines: Index, c: int) -> float:
    """Return the cost of a cell's rows together: the summed small ones and its own lines."""
    for r in lines:
        if r >= 0:
            small += price[r, c]
    return small


@compile_kernel
def _compute_slack(
    x: Floats, z: Floats, shift: Floats, price: Floats, centre: Floats, inverse: Floats, parent: Floats, give: Floats,
    tied: bool, kind: Index, members: Index, lines: Index, slack: Floats, tie: Floats, lack: Floats, short: Floats,
) -> float:  # fmt: skip
    """Compute slack and residuals of cells and their parent; return the sum of all x · z."""
    n, C = x.shape
    table = np.empty((len(members), C))
    kernels.gather_prices(price, members, table)
    total = 0.0
    for j in range(n):
        s, left = give[j], -parent[j] - give[j] * shift[j]
        for c in range(C):
            if inverse[j, c] > 0.0:
                v = _price_cell(table[kind[j], c], price, lines[j], c)
                lack[j, c] = (x[j, c] - centre[j, c]) / inverse[j, c] + v + shift[j] - z[j, c]
                slack[j, c] = 1.0 / (1.0 / inverse[j, c] + z[j, c] / x[j, c])
                s += slack[j, c]
                left += x[j, c]
                total += x[j, c] * z[j, c]
        if tied:
            tie[j], short[j] = 1.0 / s if s > 0.0 else 0.0, left
    return total


@compile_kernel
def _predict_moves(
    x: Floats, z: Floats, lack: Floats, short: Floats, slack: Floats, tie: Floats, goal: float, move: Floats, cost: Floats
) -> Floats:  # fmt: skip
    """Return how the counts would move if prices stayed."""
    push = np.zeros(x.shape)
    for j in range(len(x)):
        s = short[j]
        for c in range(x.shape[1]):
            if slack[j, c] > 0.0:
                own = (goal - move[j, c] * cost[j, c]) / x[j, c] - z[j, c]
                push[j, c] = slack[j, c] * (own - lack[j, c])
                s += push[j, c]
        s *= tie[j]
        for c in range(x.shape[1]):
            push[j, c] -= slack[j, c] * s
    return push


@compile_kernel
def _follow_prices(
    x: Floats, z: Floats, lack: Floats, short: Floats, slack: Floats, tie: Floats, goal: float, change: Floats,
    kind: Index, members: Index, lines: Index, move: Floats, cost: Floats, turn: Floats,
) -> float:  # fmt: skip
    """Compute the moves that follow a change of prices; return how far they can go."""
    n, C = x.shape
    table = np.empty((len(members), C))
    kernels.gather_prices(change, members, table)
    far = np.inf
    for j in range(n):
        s = short[j]
        for c in range(C):
            if slack[j, c] > 0.0:
                v = _price_cell(table[kind[j], c], change, lines[j], c)
                own = (goal - move[j, c] * cost[j, c]) / x[j, c] - z[j, c]
                cost[j, c], move[j, c] = own, slack[j, c] * (own - lack[j, c] - v)
                s += move[j, c]
        turn[j] = s * tie[j]
        for c in range(C):
            if slack[j, c] > 0.0:
                move[j, c] -= slack[j, c] * turn[j]
                cost[j, c] -= z[j, c] / x[j, c] * move[j, c]
                if move[j, c] < 0.0:
                    far = min(far, -x[j, c] / move[j, c])
                if cost[j, c] < 0.0:
                    far = min(far, -z[j, c] / cost[j, c])
    return far


@compile_kernel
def _sum_products(x: Floats, z: Floats, move: Floats, cost: Floats, step: float) -> float:
    """Return the sum of all x · z after the step."""
    total = 0.0
    for j in range(len(x)):
        for c in range(x.shape[1]):
            total += (x[j, c] + step * move[j, c]) * (z[j, c] + step * cost[j, c])
    return total
