"""The integer programme of one area: which histograms agree with the published numbers."""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, csr_array

from stirred.assess.attack.reconstruction.propagation import find_candidates, propagate_bounds

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
Status = Literal["solved", "infeasible", "unknown"]
STATUS_BY_CODE: dict[int, Status] = {
    0: "solved",
    2: "infeasible",
}  # of scipy.optimize.milp; a time limit is 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Programme:
    """$A x = c$ over the cells that zeros leave, with the bounds that propagation finds.

    ``cells`` are the candidates, ``low`` and ``high`` their bounds, ``free`` the places among them that are not decided,
    ``matrix`` and ``left`` the equations of those, each once.
    """

    cells: Counts
    low: Counts
    high: Counts
    free: Counts
    matrix: csr_array
    left: Counts
    possible: bool
    members: Codes = field(repr=False)
    counts: Counts = field(repr=False)

    @staticmethod
    def of(members: Codes, counts: Counts) -> "Programme":
        """Build the programme of an area with these published numbers."""
        cells = find_candidates(members, counts)
        own = np.ascontiguousarray(members[:, cells])
        low, high, possible = propagate_bounds(own, counts)
        free = np.flatnonzero(low < high) if possible else np.zeros(0, dtype=np.int64)
        rest = counts.copy()
        for table in own:
            counted = table >= 0
            np.subtract.at(rest, table[counted], low[counted])
        matrix, left = _equations(own[:, free], rest)
        return Programme(
            cells=cells,
            low=low,
            high=high,
            free=free,
            matrix=matrix,
            left=left,
            possible=possible,
            members=own,
            counts=counts,
        )

    @property
    def room(self) -> Counts:
        """Return how many records beyond its least each free cell can have."""
        return (self.high - self.low)[self.free]

    def complete_histogram(self, free: Counts) -> Counts:
        """Return the histogram over the candidates from the counts of the free cells beyond their least."""
        found = self.low.copy()
        found[self.free] += free
        return found

    def holds(self, histogram: Counts) -> bool:
        """Return whether a histogram over the candidates has exactly the published numbers; in integers."""
        if (histogram < 0).any():
            return False
        found = np.zeros_like(self.counts)
        for table in self.members:
            counted = table >= 0
            np.add.at(found, table[counted], histogram[counted])
        return bool((found == self.counts).all())

    def find_solution(
        self, *, cost: Floats | None = None, seconds: float = 10.0
    ) -> "tuple[Status, Counts | None]":
        """Find a histogram of least cost that has the published numbers; verified in integers."""
        if not self.possible:
            return "infeasible", None
        if not self.free.size:
            found = self.complete_histogram(np.zeros(0, dtype=np.int64))
            return ("solved", found) if self.holds(found) else ("infeasible", None)
        status, x, _ = solve(
            np.zeros(self.free.size) if cost is None else cost[self.free],
            self.matrix,
            self.left.astype(np.float64),
            self.left.astype(np.float64),
            high=self.room.astype(np.float64),
            seconds=seconds,
        )
        if x is None:
            return status, None
        found = self.complete_histogram(np.rint(x).astype(np.int64))
        return ("solved", found) if self.holds(found) else ("unknown", None)


def solve(
    cost: Floats,
    matrix: csr_array,
    least: Floats,
    most: Floats,
    *,
    high: Floats,
    integral: NDArray[np.int_] | None = None,
    seconds: float,
) -> tuple[Status, Floats | None, float | None]:
    """Minimise a linear cost over integers from 0 to ``high`` (HiGHS): status, best point, proved bound of the cost."""
    found = milp(
        cost,
        integrality=np.ones(cost.size, dtype=np.int_) if integral is None else integral,
        bounds=Bounds(np.zeros(cost.size), high),
        constraints=LinearConstraint(matrix, least, most),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    bound = found.get("mip_dual_bound")
    point = None if found.x is None else np.asarray(found.x, dtype=np.float64)
    return STATUS_BY_CODE.get(found.status, "unknown"), point, None if bound is None else float(bound)


def _equations(own: Codes, rest: Counts) -> tuple[csr_array, Counts]:
    """Return the equations of the free cells, each once."""
    table, cell = np.nonzero(own >= 0)
    rows, row = np.unique(own[table, cell], return_inverse=True)
    marks = np.random.default_rng(1).integers(1, 2**62, size=(own.shape[1], 2), dtype=np.int64)
    sums = np.zeros((rows.size, 2), dtype=np.int64)  # a sum of random marks tells sets of cells apart
    np.add.at(sums, row, marks[cell])
    _, first = np.unique(sums, axis=0, return_index=True)
    kept = np.zeros(rows.size, dtype=np.bool_)
    kept[first] = True
    place = np.cumsum(kept) - 1
    chosen = kept[row]
    data = np.ones(int(chosen.sum()))
    shape = (int(kept.sum()), own.shape[1])
    matrix = csr_array(coo_array((data, (place[row[chosen]], cell[chosen])), shape=shape))
    return matrix, rest[rows[kept]]
