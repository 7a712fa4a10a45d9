r"""How many tables of counts have three or more given margins: exactly where that is quick, else by sampling.

Cells are filled one after another. Counting exactly, fillings that leave the same margins are counted together. Sampling
(sequential importance sampling, Chen, Dinwoodie and Sullivant 2006), a cell gets the count x with probability proportional
to $\prod_t \binom{r_t - x + m_t - 2}{m_t - 2}$ over its margins, of which $r_t$ records in $m_t$ cells are left: as many
ways as the rest of each margin by itself could be filled. Counts outside the bounds that the margins imply have none. A
filling that cannot be completed weighs 0, so that the mean of 1 / probability is unbiased.
"""

from math import log

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.reconstruction.propagation import propagate_bounds, tighten_bounds
from stirred.assess.log_gamma import log_gamma
from stirred.assess.universe.sampling import MIN_SAMPLES, SampledCount, mean_weight
from stirred.assess.universe.shape import COUNT_COLUMN, Shape
from stirred.compiled import compile_kernel

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
Floats = NDArray[np.float64]
MAX_STRATUM_CELLS = 600  # of one stratum
MAX_CANDIDATES = 200_000  # cells of all strata together
MAX_PARTIAL_MARGINS = 20_000  # margins that are left, held at once in exact counting


def count_several(members: Codes, margins: Counts, *, states: int = MAX_PARTIAL_MARGINS) -> int | None:
    """Count the tables with these margins; None where more than ``states`` partial margins would be held.

    ``members[t, j]`` is the place in ``margins`` of the number of table t that counts cell j.

    >>> members = np.array([[0, 0, 1, 1], [2, 3, 2, 3]], dtype=np.int32)
    >>> count_several(members, np.array([2, 2, 2, 2]))
    3
    """
    last = {int(row): cell for cell in range(members.shape[1]) for row in members[:, cell]}
    found: dict[tuple[int, ...], int] = {tuple(int(one) for one in margins): 1}
    for cell in range(members.shape[1]):
        rows = [int(row) for row in members[:, cell]]
        closing = [row for row in rows if last[row] == cell]
        ahead: dict[tuple[int, ...], int] = {}
        for left, ways in found.items():
            most = min(left[row] for row in rows)
            forced = {left[row] for row in closing}
            counts = range(most + 1) if not forced else (x for x in forced if len(forced) == 1 and x <= most)
            for count in counts:
                rest = list(left)
                for row in rows:
                    rest[row] -= count
                key = tuple(rest)
                ahead[key] = ahead.get(key, 0) + ways
        if len(ahead) > states:
            return None
        found = ahead
    return sum(ways for left, ways in found.items() if not any(left))


def sample_several(
    members: Codes, margins: Counts, *, samples: int = 400, seed: int = 1
) -> SampledCount | None:
    """Estimate the logarithm of the number of tables with these margins; None where too few fillings are completed.

    >>> cells = np.indices((3, 3, 3)).reshape(3, -1)
    >>> pairs = [cells[0] * 3 + cells[1], 9 + cells[1] * 3 + cells[2], 18 + cells[0] * 3 + cells[2]]
    >>> found = sample_several(np.array(pairs, dtype=np.int32), np.full(27, 2))
    >>> exact = count_several(np.array(pairs, dtype=np.int32), np.full(27, 2))
    >>> bool(abs(found.log_count - log(exact)) < 4 * found.error)
    True
    """
    low, high, possible = propagate_bounds(members, margins)
    if not possible:
        return None
    if (low == high).all():
        return SampledCount(log_count=0.0, error=0.0, samples=0)
    draws = np.random.default_rng(seed).random((samples, members.shape[1]))
    own = np.ascontiguousarray(members)
    tables = log_gamma(np.arange(int(margins.max()) + members.shape[1] + 2, dtype=np.float64) + 1)
    weights = [float(_fill_cells(own, margins, low.copy(), high.copy(), row, tables)) for row in draws]
    if sum(np.isfinite(weights)) < MIN_SAMPLES:
        return None
    value, error = mean_weight(weights)
    return SampledCount(log_count=value, error=error, samples=samples)


@compile_kernel
def _fill_cells(
    members: Codes, margins: Counts, low: Counts, high: Counts, uniform: Floats, factorials: Floats
) -> float:
    """Fill the cells, and return the logarithm of 1 / probability; −∞ where the filling cannot be completed."""
    tables, cells = members.shape
    left = margins.copy()
    many = np.zeros(margins.size, dtype=np.int64)
    for table in range(tables):
        for cell in range(cells):
            many[members[table, cell]] += 1
    lost = 0.0
    for cell in range(cells):
        if low[cell] < high[cell]:
            size = high[cell] - low[cell] + 1
            weights = np.zeros(size)
            for place in range(size):
                for table in range(tables):
                    row = members[table, cell]
                    rest, other = left[row] - low[cell] - place, many[row] - 2
                    if other > 0:
                        weights[place] += factorials[rest + other] - factorials[rest] - factorials[other]
            weights = np.exp(weights - weights.max())
            weights /= weights.sum()
            reached, chosen = 0.0, size - 1
            for place in range(size):
                reached += weights[place]
                if reached >= uniform[cell]:
                    chosen = place
                    break
            lost += np.log(weights[chosen])
            low[cell] += chosen
            high[cell] = low[cell]
            if not tighten_bounds(members, margins, low, high):
                return -np.inf
        for table in range(tables):
            left[members[table, cell]] -= low[cell]
            many[members[table, cell]] -= 1
    return -lost


def count_many_margins(
    shape: Shape, *, samples: int = 400, seed: int = 1
) -> tuple[float, float, tuple[str, ...]] | None:
    """Return the log number of tables with three or more margins, its standard error, and the methods.

    The variables that all margins share make strata, which are counted by themselves. None where one has too many cells.
    """
    shown = [
        shape.margin(table).rename({COUNT_COLUMN: f"{COUNT_COLUMN}{i}"})
        for i, table in enumerate(shape.tables)
    ]
    cells = shown[0]
    for other in shown[1:]:
        on = [name for name in other.columns if name in cells.columns]
        cells = cells.join(other, on=on, nulls_equal=True) if on else cells.join(other, how="cross")
        if cells.height > MAX_CANDIDATES:
            return None
    common = sorted(frozenset[str].intersection(*shape.tables))
    strata = cells.partition_by(common, maintain_order=True) if common else [cells]
    total, spread, methods = 0.0, 0.0, set[str]()
    for number, part in enumerate(strata):
        if part.height > MAX_STRATUM_CELLS:
            return None
        members, margins = _encode_cells(part, shape)
        exact = count_several(members, margins)
        if exact is not None:
            total += log(exact)
            methods.add("exact")
            continue
        found = sample_several(members, margins, samples=samples, seed=seed + number)
        if found is None:
            return None
        total, spread = total + found.log_count, spread + found.error**2
        methods.add("sampled")
    return total, spread**0.5, tuple(sorted(methods))


def _encode_cells(part: pl.DataFrame, shape: Shape) -> tuple[Codes, Counts]:
    """Return the cells of a stratum as places in one vector of all margins."""
    members, margins, start = [], [], 0
    ordered = part.sort(sorted(frozenset[str]().union(*shape.tables)))
    for number, table in enumerate(shape.tables):
        codes = ordered.select(pl.struct(sorted(table)).rank("dense").cast(pl.Int64) - 1).to_series()
        counts = np.zeros(int(codes.n_unique()), np.int64)
        counts[codes.to_numpy()] = ordered[f"{COUNT_COLUMN}{number}"].to_numpy()
        members.append(codes.to_numpy() + start)
        margins.append(counts)
        start += counts.size
    return np.array(members, dtype=np.int32), np.concatenate(margins)
