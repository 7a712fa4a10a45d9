"""Solve non-negative least squares with exact sums by Newton's method on the dual."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel

# The compiled parts of the dual method: the best histograms for given prices, and products with its curvature.
#
# Children run along the last axis of every array, so that all of them are processed at once. A cell counts in the rows
# of the small queries through its kind (cells that no small query tells apart are of one kind) and in a few ``lines``
# of its own: the exact row first, then those of fine queries; -1 stands for none. Rows are numbered small, exact,
# fine. Cells and children run in a fixed order, so the same input gives the same bits on any number of threads.

Floats = NDArray[np.float64]
Index = NDArray[np.int32]
NEVER_CENTRE = -1e200  # the centre of a cell that a child may not have


@compile_kernel
def gather_prices(price: Floats, members: Index, table: Floats) -> None:
    """Sum the prices of the small rows of each kind."""
    table[:] = 0.0
    for k in range(members.shape[0]):
        for q in range(members.shape[1]):
            r = members[k, q]
            if r >= 0:
                for c in range(price.shape[1]):
                    table[k, c] += price[r, c]


@compile_kernel
def scatter_sums(table: Floats, members: Index, sums: Floats) -> None:
    """Add the sum of each kind to its small rows."""
    for k in range(members.shape[0]):
        for q in range(members.shape[1]):
            r = members[k, q]
            if r >= 0:
                for c in range(sums.shape[1]):
                    sums[r, c] += table[k, c]


@compile_kernel
def find_multiplier(v: Floats, inverse: Floats, whole: float, give: float, shift: float) -> float:
    """Return the multiplier at which max(v − shift · inverse, 0) sums to ``whole`` + give · shift.

    It is found by Newton's method on a convex function.
    """
    C = len(v)
    everyone = False
    for step in range(C + 8):
        value, slope = 0.0, give
        for c in range(C):
            if v[c] - shift * inverse[c] > 0.0 or (everyone and inverse[c] > 0.0):
                value += v[c]
                slope += inverse[c]
        if slope == 0.0:
            if everyone:
                break
            everyone = True
            continue
        everyone = False
        fresh = (value - whole) / slope
        if fresh == shift or (step > 1 and fresh < shift):
            break
        shift = fresh
    return shift


@compile_kernel
def evaluate_prices(
    price: Floats, centre: Floats, inverse: Floats, parent: Floats, give: Floats, kind: Index, members: Index,
    lines: Index, shift: Floats, X: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Compute X that minimises ½ d (x − centre)² + price · x + ½ (Σ_c x − parent)² / give, and its sums.

    The minimum is over x ≥ 0.

    Where give = 0, Σ_c x = parent; where parent has no length, children are not tied.
    """
    n, C = X.shape
    F = lines.shape[1]
    table, held = np.empty((len(members), C)), np.zeros((len(members), C))
    gather_prices(price, members, table)
    sums[:] = 0.0
    v = np.empty(C)
    tied = len(parent) > 0
    for j in range(n):
        for c in range(C):
            v[c] = table[kind[j], c]
        for f in range(F):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    v[c] += price[r, c]
        for c in range(C):
            v[c] = centre[j, c] - v[c] * inverse[j, c]
        if tied:
            shift[j] = find_multiplier(v, inverse[j], parent[j], give[j], shift[j])
        some = False
        for c in range(C):
            v[c] = max(v[c] - shift[j] * inverse[j, c], 0.0)
            X[j, c] = v[c]
            some |= v[c] > 0.0
        if some:
            for c in range(C):
                held[kind[j], c] += v[c]
            for f in range(F):
                r = lines[j, f]
                if r >= 0:
                    for c in range(C):
                        sums[r, c] += v[c]
    scatter_sums(held, members, sums)


@compile_kernel
def sum_rows(x: Floats, kind: Index, members: Index, lines: Index, sums: Floats) -> None:
    """Compute the sums of all rows."""
    sums[:] = 0.0
    held = np.zeros((len(members), x.shape[1]))
    for j in range(len(x)):
        for c in range(x.shape[1]):
            held[kind[j], c] += x[j, c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(x.shape[1]):
                    sums[r, c] += x[j, c]
    scatter_sums(held, members, sums)


@compile_kernel
def find_active(X: Floats, inverse: Floats, give: Floats) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Return the cells that can move, 1/d where a child's count is positive (else 0), and the ties."""
    n, C = X.shape
    tied = len(give) > 0
    kept = np.zeros(n, np.bool_)
    total = 0
    for j in range(n):
        count = 0
        for c in range(C):
            count += X[j, c] > 0.0
        kept[j] = count >= (2 if tied and give[j] == 0.0 else 1)
        total += kept[j]
    cell, slack, tie = np.empty(total, np.int64), np.empty((total, C)), np.zeros(total)
    k = 0
    for j in range(n):
        if kept[j]:
            s = give[j] if tied else 0.0
            for c in range(C):
                slack[k, c] = inverse[j, c] if X[j, c] > 0.0 else 0.0
                s += slack[k, c]
            cell[k], tie[k] = j, 1.0 / s if tied else 0.0
            k += 1
    return cell, slack, tie


@compile_kernel
def apply_curvature(
    P: Floats, kind: Index, members: Index, lines: Index, cell: NDArray[np.int64], slack: Floats, tie: Floats, soft: Floats,
    loose: Floats, lump: Floats, out: Floats,
) -> None:  # fmt: skip
    """Compute out = (B V B' + soft − loose loose' · lump) P on the cells that can move."""
    C = P.shape[1]
    table, held = np.empty((len(members), C)), np.zeros((len(members), C))
    gather_prices(P, members, table)
    out[:] = 0.0
    a = np.empty(C)
    for k in range(len(cell)):
        j = cell[k]
        for c in range(C):
            a[c] = table[kind[j], c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    a[c] += P[r, c]
        mean = 0.0
        for c in range(C):
            a[c] *= slack[k, c]
            mean += a[c]
        mean *= tie[k]
        for c in range(C):
            a[c] -= mean * slack[k, c]
            held[kind[j], c] += a[c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    out[r, c] += a[c]
    scatter_sums(held, members, out)
    for r in range(len(P)):
        mean = 0.0
        for c in range(C):
            out[r, c] += soft[r, c] * P[r, c]
            mean += loose[r, c] * P[r, c]
        mean *= lump[r]
        for c in range(C):
            out[r, c] -= mean * loose[r, c]


@compile_kernel
def number_pairs(kind: Index, members: Index, lines: Index, small: int, exact: int) -> Index:
    """Number every pair of an exact row and a small row that share a cell, -1 for the others."""
    pair = np.full((exact, small), -1, np.int32)
    for j in range(len(kind)):
        g = lines[j, 0] - small
        for q in range(members.shape[1]):
            r = members[kind[j], q]
            if r >= 0:
                pair[g, r] = 0
    count = 0
    for g in range(exact):
        for r in range(small):
            if pair[g, r] == 0:
                pair[g, r] = count
                count += 1
    return pair


@compile_kernel
def assemble_matrix(
    kind: Index, members: Index, lines: Index, pair: Index, cell: NDArray[np.int64], slack: Floats, tie: Floats,
    diagonal: Floats, cross: Floats, held: Floats,
) -> None:  # fmt: skip
    """Assemble the matrix, children untied, without ``soft``: diagonal, exact × small rows, kind parts."""
    C = slack.shape[1]
    small = pair.shape[1]
    w = np.empty(C)
    diagonal[:] = 0.0
    cross[:] = 0.0
    held[:] = 0.0
    for k in range(len(cell)):
        j = cell[k]
        for c in range(C):
            w[c] = slack[k, c] * (1.0 - slack[k, c] * tie[k])
            held[kind[j], c] += w[c]
        for f in range(lines.shape[1]):
            r = lines[j, f]
            if r >= 0:
                for c in range(C):
                    diagonal[r, c] += w[c]
        g = lines[j, 0] - small
        for q in range(members.shape[1]):
            r = members[kind[j], q]
            if r >= 0:
                p = pair[g, r]
                for c in range(C):
                    cross[p, c] += w[c]
    scatter_sums(held, members, diagonal)


@compile_kernel
def factor_matrix(
    members: Index, pair: Index, diagonal: Floats, cross: Floats, held: Floats, block: Floats
) -> None:
    """Eliminate the exact rows, which share no cell, then factor U'U of the small ones by child.

    1 / pivot is stored in the pivot's place.
    """
    exact, small = pair.shape
    begin = np.zeros(exact + 1, np.int64)
    at = np.empty(len(cross), np.int64)
    for g in range(exact):
        begin[g + 1] = begin[g]
        for r in range(small):
            if pair[g, r] >= 0:
                at[pair[g, r]] = r
                begin[g + 1] += 1
    own = np.empty(len(cross))
    for c in range(len(block)):
        U = block[c]
        U[:] = 0.0
        for k in range(len(members)):
            for q in range(members.shape[1]):
                a = members[k, q]
                if a >= 0:
                    for p in range(members.shape[1]):
                        if members[k, p] > a:
                            U[a, members[k, p]] += held[k, c]
        for r in range(small):
            U[r, r] = diagonal[r, c]
        for p in range(len(own)):
            own[p] = cross[p, c]
        for g in range(exact):
            for p in range(begin[g], begin[g + 1]):
                w = own[p] / diagonal[small + g, c]
                if w != 0.0:
                    row = U[at[p]]
                    for b in range(p, begin[g + 1]):
                        row[at[b]] -= w * own[b]
        for j in range(small):
            row = U[j]
            pivot = 1.0 / np.sqrt(max(row[j], 1e-12 * diagonal[j, c]))
            row[j] = pivot
            for k in range(j + 1, small):
                row[k] *= pivot
            for i in range(j + 1, small):
                w = row[i]
                if w != 0.0:
                    below = U[i]
                    for k in range(i, small):
                        below[k] -= w * row[k]


@compile_kernel
def precondition(R: Floats, pair: Index, diagonal: Floats, cross: Floats, block: Floats, Z: Floats) -> None:
    """Apply the inverse of the factored matrix to R, into Z; fine rows are only scaled."""
    exact, small = pair.shape
    C = R.shape[1]
    for r in range(len(R)):
        for c in range(C):
            Z[r, c] = R[r, c] if r < small else R[r, c] / diagonal[r, c]
    for g in range(exact):
        for r in range(small):
            p = pair[g, r]
            if p >= 0:
                for c in range(C):
                    Z[r, c] -= cross[p, c] * Z[small + g, c]
    v = np.empty(small)
    for c in range(C):
        U = block[c]
        for i in range(small):
            v[i] = Z[i, c]
        for i in range(small):
            row = U[i]
            v[i] *= row[i]
            for k in range(i + 1, small):
                v[k] -= row[k] * v[i]
        for i in range(small - 1, -1, -1):
            row = U[i]
            s = v[i]
            for k in range(i + 1, small):
                s -= row[k] * v[k]
            v[i] = s * row[i]
        for i in range(small):
            Z[i, c] = v[i]
    for g in range(exact):
        for r in range(small):
            p = pair[g, r]
            if p >= 0:
                for c in range(C):
                    Z[small + g, c] -= cross[p, c] * Z[r, c] / diagonal[small + g, c]


@compile_kernel
def project_moves(Z: Floats, keep: Floats, share: Floats) -> None:
    """Remove what moves every child alike: where children are tied, that changes no histogram."""
    for r in range(len(Z)):
        mean = 0.0
        for c in range(Z.shape[1]):
            Z[r, c] *= keep[r, c]
            mean += Z[r, c]
        mean *= share[r]
        for c in range(Z.shape[1]):
            Z[r, c] -= mean * keep[r, c]


@compile_kernel
def inner_product(A: Floats, B: Floats) -> float:
    """Return the sum of all A · B, row by row."""
    total = 0.0
    for r in range(len(A)):
        own = 0.0
        for c in range(A.shape[1]):
            own += A[r, c] * B[r, c]
        total += own
    return total


@compile_kernel
def take_cg_step(by: float, p: Floats, out: Floats, move: Floats, r: Floats) -> None:
    """Take one step of conjugate gradients: move by p, and update the residual."""
    for i in range(len(p)):
        for c in range(p.shape[1]):
            move[i, c] += by * p[i, c]
            r[i, c] -= by * out[i, c]


@compile_kernel
def turn_direction(by: float, z: Floats, p: Floats) -> None:
    """Compute the next direction from z and the last one."""
    for i in range(len(p)):
        for c in range(p.shape[1]):
            p[i, c] = z[i, c] + by * p[i, c]


# The rows of a parent's children with their prices, and the linear system behind every step of a search for them.
#
# Rows that measure or hold sums have prices; cells that can move by ``slack`` (1/d, less where something holds
# them back) tie the prices together: $B V B' + \mathrm{soft}$, solved by conjugate gradients with a factored part
# of it as preconditioner.
#
# Prices that rise alike for all children of a parent change no histogram, so what the children's prices of a row sum
# to is known beforehand: $\sum_c u_{cr} = W_r (s_r(p) - \sum_c y_{cr})$. The search is confined to prices with these
# sums, where the curvature of children taken one by one is a good approximation of the curvature of all. A parent that
# is itself only measured adds rows that all children count in; its prices follow from theirs.

Moving = tuple[NDArray[np.int64], Floats, Floats]  # cells, their slack by child, what ties the children
MAX_CG_PRODUCTS = 400  # of conjugate gradients in one step


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
        """Return whether the children add up to a parent that is known."""
        return len(self.parent) > 0 and not self.give.any()

    @property
    def structure(self) -> tuple[Index, Index, Index]:
        """Return how cells count in rows."""
        return self.kind, self.members, self.lines

    def subtract_targets(self, price: Floats, sums: Floats) -> None:
        """Turn the sums of histograms into the dual's gradient, in place."""
        # Prices are those of a child's row and of its parent's together; the parent's own is known in closed form.
        above = ((price * self.soft).sum(axis=1) + self.pulled) * self.lump
        np.subtract(sums, self.target, out=sums)
        np.subtract(sums, (price - above[:, None]) * self.soft, out=sums)


class System:
    """The linear system of one parent's rows, with memory for its factors."""

    def __init__(self, rows: PricedRows) -> None:
        self.rows, self.below = rows, rows.below
        C = rows.target.shape[1]
        self.whole = np.empty(rows.target.shape)  # the curvature of every row if every cell could move
        sum_rows(rows.inverse, *rows.structure, self.whole)
        self._within, self.start = _confine_prices(rows, self.whole)
        self._pair = number_pairs(*rows.structure, rows.small, rows.exact)
        self._cross = np.empty((int(self._pair.max(initial=-1)) + 1, C))
        self._held, self._block = np.empty((len(rows.members), C)), np.empty((C, rows.small, rows.small))
        self.diagonal = np.empty(self.whole.shape)
        self._factors = (self.diagonal, self._cross)

    def assemble(self, moving: Moving) -> None:
        """Assemble the parts of the matrix that can be factored, children untied and without ``soft``."""
        assemble_matrix(*self.rows.structure, self._pair, *moving, self.diagonal, self._cross, self._held)

    def factor(self, soft: Floats) -> None:
        """Factor the assembled matrix, with ``soft`` on the diagonal."""
        self.diagonal += soft
        factor_matrix(self.rows.members, self._pair, self.diagonal, self._cross, self._held, self._block)
        self._factors = (self.diagonal.copy(), self._cross.copy())

    def solve(self, right: Floats, soft: Floats, moving: Moving, enough: float, move: Floats) -> int:
        """Solve for the step by conjugate gradients until the residual falls to ``has_enough_rows``; return products."""
        rows, factors = self.rows, (self._pair, *self._factors, self._block)
        r, z, out = right.copy(), np.empty(right.shape), np.empty(right.shape)
        move[:] = 0.0
        self._confine(r)
        precondition(r, *factors, z)
        self._confine(z)
        p = z.copy()
        left = inner_product(r, z)
        goal = left * enough
        for k in range(MAX_CG_PRODUCTS):
            if left <= goal:
                return k
            apply_curvature(p, *rows.structure, *moving, soft, rows.soft, rows.lump, out)
            self._confine(out)
            curve = inner_product(p, out)
            if curve <= 0.0:
                return k
            take_cg_step(left / curve, p, out, move, r)
            precondition(r, *factors, z)
            self._confine(z)
            fresh = inner_product(r, z)
            turn_direction(fresh / left, z, p)
            left = fresh
        return MAX_CG_PRODUCTS

    def _confine(self, Z: Floats) -> None:
        """Remove what moves all children alike, where they add up to a parent that is known."""
        if self.below:
            project_moves(Z, *self._within)


def _confine_prices(rows: PricedRows, whole: Floats) -> tuple[tuple[Floats, Floats], Floats]:
    """Return which prices move, the share of their sum they are moved back by, and initial prices."""
    keep, share, start = np.ones(whole.shape), np.zeros(len(whole)), np.zeros(whole.shape)
    if not rows.below:
        return (keep, share), start
    alike = np.ptp(rows.soft, axis=1) <= 1e-12 * rows.soft[:, 0]
    part = whole > 0.0
    keep[alike] = part[alike]
    number = np.maximum(part.sum(axis=1), 1)
    share[alike] = 1.0 / number[alike]
    known = np.empty((len(whole), 1))
    sum_rows(rows.parent[:, None], *rows.structure, known)
    firm = alike & (rows.soft[:, 0] > 0.0)
    own = rows.soft[firm][:, :1]
    left = (known[firm, 0] - np.where(part, rows.target, 0.0)[firm].sum(axis=1)) / number[firm]
    start[firm] = np.where(part[firm], left[:, None], -rows.target[firm]) / own
    return (keep, share), start


# Prices near the optimum by an interior point method, for parents where Newton's method on the dual gets stuck.
#
# Every count $x$ stays positive, and so does its reduced cost $z$; their product is lowered to zero step by step, with
# Mehrotra's (1992) predictor and corrector. A count that is nearly zero still moves a little, so that no row ever
# looks as if nothing could move it: that is what stops Newton's method where thousands of near-empty cells share their
# sums. The system of a step is that of ``system`` with slack $1 / (d + z/x)$ in place of 1/d or nothing. It ends near
# the optimum, not at it.

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
        sum_rows(x, *rows.structure, sums)
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
            sum_rows(push, *rows.structure, right)
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
    gather_prices(price, members, table)
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
    gather_prices(change, members, table)
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


# The best linear estimates of the answers to queries with few answers, which the fit below a parent then keeps to.
#
# The published sums have noise of their own, and the children must repeat it. A linear estimate spreads what the two
# disagree by over all answers, those of cells that nobody or nearly nobody is in included: some of these become
# negative. A histogram cannot follow there. If it was fitted to the noisy answers in one step, the answers of all
# queries would share what is left over as if all were equally worth keeping. So the linear estimates come first, from
# all noisy answers in their measured weights, and then the fit keeps to them, the more so the fewer answers a query has.

PRIOR_WEIGHT_SHARE = 1e-3  # of the weight of an answer: how little is known about a cell before


def estimate_linearly(rows: PricedRows, times: Floats) -> Floats:
    """Return the best linear estimates of the small rows, rows × children.

    Exact sums are kept, and children sum to their parent.

    The rows count ``times`` as much as they were measured; the estimates are made in measured weights.
    """
    small, kept, C = rows.small, rows.small + rows.exact, rows.target.shape[1]
    if not small:
        return np.zeros((0, C))
    soft = rows.soft[:kept].copy()
    soft[:small] *= times[:, None]
    # Cells that neither the small queries nor the exact sums tell apart are one cell; all children have the same ones, so
    # that what they lack of their parent can be shared without breaking a sum.
    label = rows.lines[:, 0].astype(np.int64) * len(rows.members) + rows.kind
    _, first, place = np.unique(label, return_index=True, return_inverse=True)
    parent = np.bincount(place, rows.parent).astype(np.float64)
    loose = np.maximum(parent, 1.0) * float(soft[:small].min()) / PRIOR_WEIGHT_SHARE
    inverse = np.repeat(loose[:, None], C, axis=1)
    kind, lines = np.ascontiguousarray(rows.kind[first]), np.ascontiguousarray(rows.lines[first][:, :1])
    exact = rows.target[lines[:, 0]]
    share = exact / np.maximum(exact.sum(axis=1, keepdims=True), 1.0)
    structure = (kind, rows.members, lines)

    def sum_cells(x: Floats) -> Floats:
        sums = np.empty((kept, x.shape[1]))
        sum_rows(x, *structure, sums)
        return sums

    pair = number_pairs(*structure, small, rows.exact)
    diagonal, held = np.empty((kept, C)), np.empty((len(rows.members), C))
    cross, block = np.empty((int(pair.max(initial=-1)) + 1, C)), np.empty((C, small, small))
    every, untied = np.arange(len(first)), np.zeros(len(first))
    assemble_matrix(*structure, pair, every, inverse, untied, diagonal, cross, held)
    diagonal += soft
    factor_matrix(rows.members, pair, diagonal, cross, held, block)
    price = np.empty((kept, C))
    off = sum_cells(parent[:, None] * share) - rows.target[:kept]
    precondition(off, pair, diagonal, cross, block, price)
    own = rows.target[:small] + soft[:small] * price[:small]
    # What they lack of their parent's sums is shared in the proportion of their variances.
    lack = sum_cells(parent[:, None])[:small, 0] - own.sum(axis=1)
    return np.asarray(own + soft[:small] * (lack / soft[:small].sum(axis=1))[:, None])


# Non-negative least squares with exact sums, by Newton's method on the dual.
#
# Minimise $\sum_c \tfrac12 \|x_c - a_c\|^2_{d_c} + \sum_r \tfrac12 W_r (s_r(x_c) - y_{cr})^2$ over $x_c \ge 0$, with
# some rows $s_r(x_c)$ exact and, below a parent, $\sum_c x_c = p$ cell by cell. Given a price for every row, the best
# histogram is known in closed form (a simplex projection across children in every cell); the dual is concave and
# piecewise quadratic, and its Newton steps are found by conjugate gradients (Qi and Sun 1993; Fukuda, Zhao and Todd
# 2010 for the same idea elsewhere). Whatever the prices are, the histogram is the exact optimum for sums that are off
# by the dual's gradient: that is the certificate, in persons. Where the steps get stuck between too many kinks, the
# search begins once more at prices that an interior point method has found.

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
        moving = find_active(now.x, rows.inverse, rows.give)
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
    evaluate_prices(
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
