r"""Units of every leaf as prior knowledge of its persons, with a spread that is estimated from the noisy data.

Counts of units by kind are invariants, so whatever is computed from them and from noisy answers is post-processing.
Persons of kind a (households, a type of group quarters) in leaf b of parent p have the prior mean
$M_b = P_a n_b / N_p$, with $P_a$ the parent's persons and $n_b / N_p$ the leaf's share of its units, and the variance
$M_b + \beta M_b^2$; a cell with mean m has the variance $\varphi m$. Both numbers come from second moments: the
squared difference of a noisy count from its prior mean, less the known variance of the noise.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.estimate.informed import LEAVES_PER_CHUNK, TreeEstimate
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.workload.histogram import Query
from stirred.mechanisms.topdown.workload.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
HOMES, QUARTERS = 0, 1  # units that may be empty, and units that always hold somebody
# What is taken for φ and β before anything is seen, and how much that weighs: 2 / weight is its variance.
PRIOR_MOMENTS = np.array([[3.0, 2.0, 0.02, 5_000.0], [3.0, 2.0, 1.0, 2.0]])
SPREAD_LIMITS = ((1.0, 50.0), (0.0025, 4.0))  # of φ and of β
MIN_SURE_DEVIATIONS = 4.0  # standard deviations by which a parent's cell must exceed zero to be used
OUTLIER_VARIANCES = 16.0  # a squared difference of so many variances is an outlier and is dropped
MOMENTS_PER_UNIT = (
    1 << 16
)  # moments are whole multiples of 1/FINE, so that their sum is the same in any order


@dataclass(frozen=True, slots=True)
class LeafUnits:
    """The numbers of units of every leaf and of its parents, by answer of the query that sorts them."""

    query: Query
    leaf: Ints  # leaves × answers
    above: Ints  # parents × answers
    kind: Ints  # answer → HOMES or QUARTERS

    @staticmethod
    def of(workload: Workload, constraints: Constraints, last: int) -> "LeafUnits | None":
        """Return the units that a rule about facilities counts, or None where there is no such rule."""
        for rule in workload.rules:
            if rule.kind != "facilities" or not last:
                continue
            held = next(one for one in constraints.held if one.name == rule.name)
            lower = np.array(rule.lower or (0,) * held.query.size)
            leaf, above = (held.high[d] // rule.largest for d in (last, last - 1))
            return LeafUnits(held.query, leaf, above, np.where(lower > 0, QUARTERS, HOMES))
        return None


@dataclass(frozen=True, slots=True)
class UnitSpread:
    """The spread of leaves around their prior means, by kind: φ of cells and β of totals."""

    cells: Floats
    totals: Floats

    @staticmethod
    def of(moments: Ints) -> "UnitSpread":
        """Estimate the spread from summed moments (kinds × 4); without data, return the prior values.

        >>> UnitSpread.of(np.zeros((2, 4), np.int64)).cells.tolist()
        [3.0, 3.0]
        """
        seen = moments / MOMENTS_PER_UNIT
        found = [
            np.clip(
                (seen[:, i] + PRIOR_MOMENTS[:, i] * PRIOR_MOMENTS[:, i + 1])
                / (seen[:, i + 1] + PRIOR_MOMENTS[:, i + 1]),
                *limits,
            )
            for i, limits in zip((0, 2), SPREAD_LIMITS, strict=True)
        ]
        return UnitSpread(*found)

    def arrays(self) -> dict[str, Floats]:
        """Return the numbers by name."""
        return {"scatter": np.stack([self.cells, self.totals])}


def sum_moments(informed: TreeEstimate, units: LeafUnits) -> Ints:
    """Sum numerators and denominators of φ and β by kind over the leaves, as whole multiples of a unit."""
    algebra, leaves = informed.algebra, informed.leaves
    result = np.zeros((2, 4), np.int64)
    if not informed.levels:
        return result
    level = informed.levels[-1]
    answer = units.query.of(algebra.layout[:, 0])
    doubt = compute_cell_variances(algebra, level.C)
    for pattern in leaves.patterns:
        own = compute_cell_variances(algebra, pattern.C[None])[0]
        for a in np.unique(answer[pattern.act]):
            inside = np.flatnonzero(answer[pattern.act] == a)
            rows = pattern.act[inside]
            spread = algebra.S * float(pattern.C[0][np.ix_(inside, inside)].sum())
            for at in range(0, len(pattern.members), LEAVES_PER_CHUNK):
                part = slice(at, at + LEAVES_PER_CHUNK)
                members, b = pattern.members[part], pattern.b[part][:, inside]
                parent = leaves.parent[members]
                share = units.leaf[members, a] / np.maximum(units.above[parent, a], 1)
                # A leaf that has all units of its parent differs from it by the noise alone.
                part_of = (share > 0) & (share < 1)
                share, parent, b = share[part_of], parent[part_of], b[part_of]
                above = level.b[parent][:, rows]
                result[units.kind[a]] += _sum_cell_moments(
                    b, above, share, own[inside], doubt[parent][:, rows]
                )
                result[units.kind[a]] += _sum_total_moments(
                    gls.sum_in_order(b), share * gls.sum_in_order(above), spread
                )
    return result


def _sum_cell_moments(b: Floats, above: Floats, share: Floats, own: Floats, doubt: Floats) -> Ints:
    """Return the two sums for φ: squared differences regressed on means, with weights best at φ = 2."""
    m = above * share[:, None, None]
    variance = np.broadcast_to(own[None, :, None] + (share[:, None] ** 2 * doubt)[:, :, None], m.shape)
    squared = (b - m) ** 2
    used = (above > MIN_SURE_DEVIATIONS * np.sqrt(doubt)[:, :, None]) & (
        squared <= OUTLIER_VARIANCES * (variance + 3.0 * m)
    )
    weight = np.where(used, m / (variance + 2.0 * np.maximum(m, 0.0)) ** 2, 0.0)
    return _round_moments(weight * (squared - variance), weight * m, first=0)


def _sum_total_moments(total: Floats, mean: Floats, spread: float) -> Ints:
    """Return the two sums for β: squared differences beyond the mean regressed on squared means."""
    squared = (total - mean) ** 2
    used = (mean > 0) & (squared <= OUTLIER_VARIANCES * (spread + mean + 0.05 * mean**2))
    weight = np.where(used, mean**2 / (spread + np.abs(mean) + 0.02 * mean**2) ** 2, 0.0)
    return _round_moments(weight * (squared - spread - mean), weight * mean**2, first=2)


def _round_moments(over: Floats, under: Floats, *, first: int) -> Ints:
    result = np.zeros(4, np.int64)
    for i, values in enumerate((over, under)):
        result[first + i] = int(np.rint(MOMENTS_PER_UNIT * gls.sum_in_order(values)).astype(np.int64).sum())
    return result


def compute_cell_variances(algebra: Algebra, C: Floats) -> Floats:
    """Return the variance of one cell by node and matrix row, from covariances (N, F, K, K)."""
    result = np.zeros((len(C), C.shape[-1]))
    for f in range(algebra.parts):
        factor = 1.0
        for bit, i in enumerate(algebra.symmetric):
            n = algebra.histogram.shape[i]
            factor *= 1.0 - 1.0 / n if f >> bit & 1 else 1.0 / n
        result += factor * np.diagonal(C[:, f], axis1=-2, axis2=-1)
    return result
