r"""The rows of a parent's children with their prices, and the linear system behind every step of a search for them.

Rows that measure or hold sums have prices; cells that can move by ``slack`` (1/d, less where something holds them back) tie
the prices together: $B V B' + \mathrm{soft}$, solved by conjugate gradients with a factored part of it as preconditioner.

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
        kernels.sum_rows(rows.inverse, *rows.structure, self.whole)
        self._within, self.start = _confine_prices(rows, self.whole)
        self._pair = kernels.number_pairs(*rows.structure, rows.small, rows.exact)
        self._cross = np.empty((int(self._pair.max(initial=-1)) + 1, C))
        self._held, self._block = np.empty((len(rows.members), C)), np.empty((C, rows.small, rows.small))
        self.diagonal = np.empty(self.whole.shape)
        self._factors = (self.diagonal, self._cross)

    def assemble(self, moving: Moving) -> None:
        """Assemble the parts of the matrix that can be factored, children untied and without ``soft``."""
        kernels.assemble_matrix(
            *self.rows.structure, self._pair, *moving, self.diagonal, self._cross, self._held
        )

    def factor(self, soft: Floats) -> None:
        """Factor the assembled matrix, with ``soft`` on the diagonal."""
        self.diagonal += soft
        kernels.factor_matrix(
            self.rows.members, self._pair, self.diagonal, self._cross, self._held, self._block
        )
        self._factors = (self.diagonal.copy(), self._cross.copy())

    def solve(self, right: Floats, soft: Floats, moving: Moving, enough: float, move: Floats) -> int:
        """Solve for the step by conjugate gradients until the residual falls to ``has_enough_rows``; return products."""
        rows, factors = self.rows, (self._pair, *self._factors, self._block)
        r, z, out = right.copy(), np.empty(right.shape), np.empty(right.shape)
        move[:] = 0.0
        self._confine(r)
        kernels.precondition(r, *factors, z)
        self._confine(z)
        p = z.copy()
        left = kernels.inner_product(r, z)
        goal = left * enough
        for k in range(MAX_CG_PRODUCTS):
            if left <= goal:
                return k
            kernels.apply_curvature(p, *rows.structure, *moving, soft, rows.soft, rows.lump, out)
            self._confine(out)
            curve = kernels.inner_product(p, out)
            if curve <= 0.0:
                return k
            kernels.take_cg_step(left / curve, p, out, move, r)
            kernels.precondition(r, *factors, z)
            self._confine(z)
            fresh = kernels.inner_product(r, z)
            kernels.turn_direction(fresh / left, z, p)
            left = fresh
        return MAX_CG_PRODUCTS

    def _confine(self, Z: Floats) -> None:
        """Remove what moves all children alike, where they add up to a parent that is known."""
        if self.below:
            kernels.project_moves(Z, *self._within)


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
    kernels.sum_rows(rows.parent[:, None], *rows.structure, known)
    firm = alike & (rows.soft[:, 0] > 0.0)
    own = rows.soft[firm][:, :1]
    left = (known[firm, 0] - np.where(part, rows.target, 0.0)[firm].sum(axis=1)) / number[firm]
    start[firm] = np.where(part[firm], left[:, None], -rows.target[firm]) / own
    return (keep, share), start
