"""How far two reconstructions of one area can differ, and certificates that there is only one."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, coo_array, csr_array

from stirred.assess.attack.reconstruction.programme import Programme, Status, solve

Counts = NDArray[np.int64]
Certificate = Literal["", "bounds", "rank", "infeasible", "another solution"]
PRIME = 2_147_483_629


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variability:
    r"""$\max_x \|x - x^*\|_1 / (2 N)$ over all histograms with the published numbers (solution variability).

    ``certificate`` says what proves it: ``bounds`` (propagation leaves one value to each cell; exact integers), ``rank``
    (the equations of the free cells have full column rank modulo a prime; exact integers), ``infeasible`` (the solver proved
    that no other solution exists), ``another solution`` (``other`` has the same numbers; verified in integers). It is empty,
    and ``unique`` is None, where the time limit came first. ``low`` and ``high`` bound the share; equal if it is proved.
    """

    unique: bool | None
    certificate: Certificate
    low: float
    high: float
    status: Status
    other: Counts | None = None


def measure_variability(programme: Programme, found: Counts, *, seconds: float = 10.0) -> Variability:
    """Bound how far another solution can be from one that was found."""
    persons = int(found.sum())
    if not programme.free.size:
        return Variability(unique=True, certificate="bounds", low=0.0, high=0.0, status="infeasible")
    if _full_rank(programme.matrix):
        return Variability(unique=True, certificate="rank", low=0.0, high=0.0, status="infeasible")
    base = (found - programme.low)[programme.free]
    room = programme.room
    fixed = int(programme.low.sum())
    moving = int(base.sum())
    straight = room <= base  # the overlap of these cells is the other solution's count itself
    bent = np.flatnonzero(~straight & (base > 0))
    cells, extra = programme.free.size, bent.size
    # overlap o ≥ x − (room − base) b and o ≥ base b, with b = 1 where the other solution has at least as many
    line = np.arange(extra)
    pick = csr_array(coo_array((np.ones(extra), (line, bent)), shape=(extra, cells)))
    slope = _diagonal((room - base)[bent])
    level = _diagonal(base[bent])
    one = _diagonal(np.ones(extra, dtype=np.int64))
    cost = np.concatenate([(straight & (base > 0)).astype(np.float64), np.ones(extra), np.zeros(extra)])
    total = csr_array(cost.reshape(1, -1))
    parts = [[programme.matrix, None, None]]
    if extra:
        parts += [[pick, -one, -slope], [None, -one, level]]
    matrix = csr_array(block_array(parts)) if extra else programme.matrix
    matrix = csr_array(block_array([[matrix], [total]]))
    left = programme.left.astype(np.float64)
    least = np.concatenate([left, np.full(2 * extra + 1, -np.inf)])
    most = np.concatenate([left, np.zeros(2 * extra), [moving - 1.0]])
    high = np.concatenate([room, base[bent], np.ones(extra)]).astype(np.float64)
    integral = np.concatenate([np.ones(cells), np.zeros(extra), np.ones(extra)]).astype(np.int_)
    status, point, bound = solve(cost, matrix, least, most, high=high, integral=integral, seconds=seconds)
    if status == "infeasible":
        return Variability(unique=True, certificate="infeasible", low=0.0, high=0.0, status=status)
    least_overlap = np.ceil(bound - 1e-6) if bound is not None and np.isfinite(bound) else 0.0
    most_apart = (moving - max(0.0, float(least_overlap))) / persons
    if point is None:
        return Variability(unique=None, certificate="", low=0.0, high=most_apart, status="unknown")
    other = programme.complete_histogram(np.rint(point[:cells]).astype(np.int64))
    if not programme.holds(other) or (other == found).all():
        return Variability(
            unique=None, certificate="", low=0.0, high=(persons - fixed) / persons, status="unknown"
        )
    apart = int(np.abs(other - found).sum()) / (2 * persons)
    return Variability(
        unique=False,
        certificate="another solution",
        low=apart,
        high=apart if status == "solved" else max(apart, most_apart),
        status=status,
        other=other,
    )


def _diagonal(values: Counts) -> csr_array:
    place = np.arange(values.size)
    return csr_array(coo_array((values.astype(np.float64), (place, place)), shape=(values.size, values.size)))


def _full_rank(matrix: csr_array) -> bool:
    """Return whether the columns are independent modulo a prime, hence over the rationals."""
    rows, columns = matrix.shape
    if rows < columns:
        return False
    rest = matrix.toarray().astype(np.int64)
    for column in range(columns):
        pivot = column + int(np.argmax(rest[column:, column] != 0))
        if rest[pivot, column] == 0:
            return False
        rest[[column, pivot]] = rest[[pivot, column]]
        head = rest[column, column:] * pow(int(rest[column, column]), -1, PRIME) % PRIME
        below = column + 1 + np.flatnonzero(rest[column + 1 :, column])
        rest[below, column:] = (
            rest[below, column:] - rest[below, column : column + 1] * head % PRIME
        ) % PRIME
    return True
