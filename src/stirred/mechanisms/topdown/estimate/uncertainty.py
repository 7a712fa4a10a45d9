"""Compute an estimate, a standard error and an interval for every cell of a released table."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, sqrt
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from stirred.census import Schema
from stirred.census.geography import attach_levels
from stirred.mechanisms.release import Release, count_cells

# How much more the estimate changed the census than a replicate changes the release, by size of the area.
#
# Non-negativity lifts near-empty cells of small areas, and large ones pay. What they lost is no longer in the
# release, so replicates y of the published totals x show less of it: a smaller bias, and a smaller spread. The
# unbiased totals e show all of it. In a size class $E[c - x] = E[e - x] - E[e - c]$ for the true totals c, and the
# noise of e there is that of x, which is its projection: its mean is that of $y - E y$ where y lies in the class.
# What is left is $\delta(x) = b\,(\sqrt x - m)$ with $\sum \delta = 0$, since areas share a known sum; b is fitted to
# all areas, with exact variances.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MIN_FITTED_TOTAL = 20  # totals from which the bias is fitted; below, it is taken in proportion to the total
# b in parts of the slope that replicates show, before anything is seen, and its standard deviation; 0.05 to 1.6 were seen.
PRIOR_BIAS = 0.6, 0.6
BIAS_WITHOUT_TOTALS = 1.0  # the same without unbiased totals
MIN_SLOPE_PERSONS = 0.05  # no slope of the replicates is taken for less, in persons
# Of the totals' slope: below, a table has no such bias; above, as much as totals in proportion.
BIAS_SLOPE_LIMITS = 0.2, 0.5
# The factor of the spread less one, what b adds per natural logarithm of the size, and from which size.
SPREAD_FACTORS = 0.04, 0.04, 7.4
DRIFT_FACTOR = (
    0.5  # what a replicate's drift, in parts of its noise (both as variances), adds to the spread's factor
)
MAX_SHRINKAGE = 0.8  # no more of a number is taken to be drawn to its mean
# of totals that only their cells tell: the drift from the census in parts of the replicates' (variances)
ROUGH_VARIANCE_RATIO = 4.0
MIN_CELLS_PER_CLASS = 30  # cells of a size class from which its own drift is taken, and not that of the table


@dataclass(frozen=True, slots=True)
class UnseenBias:
    """What replicates do not show of a table: its bias b, the slope that they show, and b relative to it."""

    least = 5  # numbers below this are left as they are

    slope: float
    middle: float
    flat: float
    ratio: float
    part: float = 1.0  # how far the table is like the totals

    def shift(self, count: Ints) -> Floats:
        """Return what to add to the true number that replicates suggest."""
        return self.slope * _profile(count, self.middle)

    def factor(self, count: Ints) -> Floats:
        """Return the factor by which the differences are wider."""
        more = np.log(np.maximum(count, SPREAD_FACTORS[2]) / SPREAD_FACTORS[2])
        return np.asarray(1.0 + self.part * SPREAD_FACTORS[0] + SPREAD_FACTORS[1] * self.ratio * more)


@dataclass(frozen=True, slots=True)
class Drift:
    """The factor by which differences are wider in each size class, where the estimate shrinks areas."""

    classes: tuple[int, ...]
    factors: Floats
    least: int = 1  # numbers below this are left as they are

    def shift(self, count: Ints) -> Floats:
        """Return zero: areas of one size drift up and down alike."""
        return np.zeros(len(count))

    def factor(self, count: Ints) -> Floats:
        """Return the factor by which the differences are wider."""
        return np.asarray(self.factors[np.digitize(count, self.classes)])


def estimate_drift(
    count: Ints, again: Ints, classes: tuple[int, ...], *, least: int = 1, by_cells: bool = False
) -> Drift:
    r"""Estimate the drift from the published numbers and their replicates (R × cells, at least two).

    A replicate y differs from x by noise, with variance B over replicates, and by a drift to what the prior says, or
    non-negativity: a mean square A, with $E(\bar y - x)^2 = A + B/R$. The census had further to drift than the release,
    which lies nearer to that already: numbers that are drawn to their mean by the best part g have $A/B = 1 - g = u$ and
    $1/(1 - u^2)$ times the replicates' variance. The differences are wider by the root of that, and at least by
    $1 + u/2$, which was measured. A total that its own measurement hardly tells (``by_cells``) is the sum of cells that
    all drifted, in either direction: in the release little of that is left to see, and the differences have
    $(1 + 4u)/(1 + u)$ times their variance; the four was measured.

    >>> estimate_drift(np.array([10, 10]), np.array([[9, 11], [11, 9]]), (5,)).factors.tolist()
    [1.0, 1.0]
    """
    noise = again.var(axis=0, ddof=1)
    moved = (again.mean(axis=0) - count) ** 2 - noise / len(again)
    own, number = np.digitize(count, classes), len(classes) + 1
    cells = np.bincount(own, minlength=number)
    over, under = np.bincount(own, moved, number), np.bincount(own, noise, number)
    over, under = (np.where(cells < MIN_CELLS_PER_CLASS, each.sum(), each) for each in (over, under))
    part = np.maximum(over, 0.0) / np.maximum(under, 1e-12)
    if by_cells:
        return Drift(classes, np.sqrt((1.0 + ROUGH_VARIANCE_RATIO * part) / (1.0 + part)), least)
    best = 1.0 / np.sqrt(1.0 - np.minimum(part, MAX_SHRINKAGE) ** 2)
    return Drift(classes, np.maximum(1.0 + DRIFT_FACTOR * np.minimum(part, 2.0), best), least)


def estimate_bias(
    count: Ints,
    again: Ints,
    place: Ints,
    own: Ints,
    estimate: Floats | None = None,
    error: Floats | None = None,
    *,
    totals: UnseenBias | None = None,
) -> UnseenBias:
    """Estimate the bias from published numbers, replicates (R × cells) and unbiased numbers if known.

    Where only the totals of the areas are known so, b of another table is in proportion to that of the ``totals``.

    >>> count = np.arange(20, 400)
    >>> again = np.stack([count - 0.1 * (count - 210), count - 0.1 * (count - 210)]).astype(int)
    >>> one = np.zeros_like(count)
    >>> found = estimate_bias(count, again, np.zeros_like(again), one)
    >>> round(found.slope, 2), round(found.ratio, 1)  # one class shows no slope
    (0.05, 1.0)
    """
    large = count >= MIN_FITTED_TOTAL
    taper = np.where(large, 1.0, count / MIN_FITTED_TOTAL)
    middle = float((taper * np.sqrt(np.maximum(count, MIN_FITTED_TOTAL))).sum() / max(taper.sum(), 1.0))
    used = large if error is None else large & (error > 0)
    h = np.where(used, _profile(count, middle), 0.0)
    known = max(float((h**2).sum()), 1e-12)
    number = max(int(place.max(initial=0)), int(own.max(initial=0))) + 1
    apart = _means(place, count - again, number)[own]
    flat = max(float((h * apart).sum()) / known, MIN_SLOPE_PERSONS)
    if totals is not None:
        part = min(
            max(
                (flat / totals.flat - BIAS_SLOPE_LIMITS[0]) / (BIAS_SLOPE_LIMITS[1] - BIAS_SLOPE_LIMITS[0]),
                0.0,
            ),
            1.0,
        )
        return UnseenBias(part * totals.ratio * flat, middle, flat, part * totals.ratio, part)
    slope, doubt = BIAS_WITHOUT_TOTALS * flat, PRIOR_BIAS[1] * flat
    if estimate is not None and error is not None and len(again) > 1:
        noise = (again - again.mean(axis=0)) * (len(again) / (len(again) - 1))
        seen = float((h * (estimate - count - apart - _means(place, noise, number)[own])).sum()) / known
        variance = float((h**2 * error**2).sum()) / known**2
        slope = (seen * doubt**2 + PRIOR_BIAS[0] * flat * variance) / (variance + doubt**2)
    slope = min(max(slope, 0.0), 2.0 * flat)
    return UnseenBias(slope, middle, flat, slope / flat)


def _profile(count: Ints, middle: float) -> Floats:
    inside = np.sqrt(np.maximum(count, MIN_FITTED_TOTAL)) - middle
    return np.asarray(inside * np.minimum(count / MIN_FITTED_TOTAL, 1.0))


def _means(place: Ints, values: NDArray[np.generic], number: int) -> Floats:
    """Return the mean of the values in every class, 0 where there are none."""
    sums = np.zeros(number)
    np.add.at(sums, place.ravel(), np.asarray(values, np.float64).ravel())
    return sums / np.maximum(np.bincount(place.ravel(), minlength=number), 1)


# Tables of a release, each cell with its uncertainty: unbiased where that is known exactly, else by replicates.
#
# Replicates are runs of the mechanism on its own output (``run_replicates``); they are public numbers.

MIN_ONE_TAILED_COUNT = 5  # published numbers below this keep both tails of their interval
MIN_CLASS_NUMBERS = (
    60  # numbers that a size class of the replicates needs; with fewer it is joined with its neighbours
)
WHOLE_COLUMN = "_whole"  # represents the variables of a table that has none
SIZE_CLASS_LIMITS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000)
SHARP_ERROR_SHARE = (
    0.5  # below this part of the exact standard error, cells tell a total and not its own measurement
)
# of tables by leaf: below this part of it the unbiased interval is too long to say anything, as for totals that hardly
# anything is spent on, and the replicates' is taken
MIN_LEAF_ERROR_SHARE = 0.25
ROUNDING = 1e-9  # in persons: a limit so near to a whole number is that number
MIN_DRIFT_NUMBERS = 20  # numbers above leaves from which the drift of replicates counts
# of areas beside the spine: they are smoother than in the census, so this part of the misses is allowed
SMOOTH_MISS_SHARE = 0.6
# numbers of all replicates from which a table is judged by them, where the tree estimate knows it too
MIN_REPLICATE_NUMBERS = 400
REPLICATES, UNBIASED = "-replicates", "-unbiased"
MODE_METADATA = b"mode"  # in the metadata of the replicates, where the mode is guided
ESTIMATE_COLUMNS = ("level", "code", "estimate", "standard_deviation")


def compute_intervals(
    count: Ints, again: Ints, *, level: float = 0.95, unseen: UnseenBias | Drift | None = None
) -> dict[str, Floats]:
    r"""Return estimate, standard error and interval of every cell from its count and replicates.

    A replicate y was made from the release x as x was made from the census, so $d = x - y$ shows by how much the true
    number differs from a number published as y. The cells of all replicates with y in one size class are taken together: the
    estimate is $x + \bar d$, the standard error the spread of d, and the interval leaves half of $1 - level$ of the
    differences on either side, by ranks as in conformal prediction. Below ``MIN_ONE_TAILED_COUNT`` it is not trimmed to just
    the share ``level``: the few true numbers above 0 that are published as 0 all lie at its upper end. A class that never
    changed is exact. No number is below zero. Where replicates show too little (``unseen``), differences are shifted and
    made wider.

    >>> found = compute_intervals(np.array([100, 100]), np.array([[101, 98], [99, 102], [102, 99], [98, 101]]))
    >>> found["estimate"].tolist(), found["standard_error"].round(3).tolist()
    ([100.0, 100.0], [1.581, 1.581])
    """
    apart, place, own = (
        count - again,
        np.digitize(again, SIZE_CLASS_LIMITS),
        np.digitize(count, SIZE_CLASS_LIMITS),
    )
    members = np.bincount(place.ravel(), minlength=len(SIZE_CLASS_LIMITS) + 1)
    changed = np.bincount(own, (apart != 0).any(axis=0), len(SIZE_CLASS_LIMITS) + 1) > 0
    centre, error, low, high = (np.zeros(len(SIZE_CLASS_LIMITS) + 1) for _ in range(4))
    for size in np.unique(own[changed[own]]):
        reach = 0
        while True:  # neighbouring classes are added until there is something to see
            near = slice(max(size - reach, 0), size + reach + 1)
            here = apart[(place >= near.start) & (place < near.stop)]
            if (members[near].sum() >= MIN_CLASS_NUMBERS and here.any()) or reach > len(SIZE_CLASS_LIMITS):
                break
            reach += 1
        centre[size], error[size] = here.mean(), here.std()
        low[size], high[size] = find_limits(
            here, level, trimmed=size >= np.digitize(MIN_ONE_TAILED_COUNT, SIZE_CLASS_LIMITS)
        )
    middle, own_error, lower, upper = centre[own], error[own], low[own], high[own]
    if unseen is not None:
        sized = (own_error > 0) & (count >= unseen.least)
        wide = np.where(sized, unseen.factor(count), 1.0)
        shift = np.where(sized, unseen.shift(count), 0.0)
        lower, upper = (np.rint(middle + shift + wide * (one - middle)) for one in (lower, upper))
        middle, own_error = middle + shift, wide * own_error
    below, above = np.maximum(count + lower, 0.0), np.maximum(count + upper, 0.0)
    return {
        "estimate": np.clip(count + middle, below, above),
        "standard_error": own_error,
        "low": below,
        "high": above,
    }


def find_limits(differences: Ints, level: float, *, trimmed: bool = True) -> tuple[float, float]:
    r"""Limits with at most half of $1 - level$ of the differences beyond each, by their ranks in n + 1.

    Whole numbers leave less than that outside; ``trimmed`` then takes off an end while the share ``level`` stays inside.
    Where n is too small for ranks, the limits are the mean ± $t_{n-1} s \sqrt{1 + 1/n}$, and hold all differences.

    >>> find_limits(np.arange(1, 100), 0.9)
    (5.0, 95.0)
    >>> few = np.repeat([-2, -1, 0, 1, 2], [4, 20, 52, 20, 3])
    >>> find_limits(few, 0.9, trimmed=False), find_limits(few, 0.9)
    ((-1.0, 1.0), (-1.0, 1.0))
    """
    n, outside = len(differences), (1.0 - level) / 2.0
    rank = floor((n + 1) * outside + 1e-9)
    if rank < 1:
        margin = float(stdtrit(n - 1, 1.0 - outside)) * float(differences.std(ddof=1)) * sqrt(1.0 + 1.0 / n)
        middle = float(differences.mean())
        return min(middle - margin, float(differences.min())), max(middle + margin, float(differences.max()))
    values, numbers = np.unique(differences, return_counts=True)
    first = int(np.searchsorted(np.cumsum(numbers), rank))
    last = len(values) - 1 - int(np.searchsorted(np.cumsum(numbers[::-1]), rank))
    spare = int(numbers[first : last + 1].sum()) - ceil((n + 1) * level - 1e-9) - 1
    while trimmed and first < last and spare >= min(numbers[first], numbers[last]):
        if numbers[first] < numbers[last]:
            spare, first = spare - int(numbers[first]), first + 1
        else:
            spare, last = spare - int(numbers[last]), last - 1
    return float(values[first]), float(values[last])


def tabulate_replicates(
    records: pl.LazyFrame, again: pl.LazyFrame, by: Sequence[str]
) -> tuple[pl.DataFrame, Ints]:
    """Return every cell of release or replicates with its count, and its replicates (R × cells)."""
    keys = list(by) or [WHOLE_COLUMN]
    published = count_cells(select_as_text(records, keys), keys).collect()
    runs = select_as_text(again, keys, "replicate", "count").group_by([*keys, "replicate"])
    sums = runs.agg(pl.col("count").cast(pl.Int64).sum()).collect(engine="streaming")
    counts = pl.concat([published, sums.select(*keys, pl.lit(0, pl.Int64).alias("count"))])
    every = counts.group_by(keys).agg(pl.col("count").sum()).sort(keys, nulls_last=False)
    number = every.select(keys).with_row_index("cell")
    place = sums.join(number, on=keys, nulls_equal=True)
    matrix = np.zeros((sums["replicate"].n_unique(), every.height), np.int64)
    matrix[place["replicate"].to_numpy(), place["cell"].to_numpy()] = place["count"].to_numpy()
    return every.select(*by, "count"), matrix


def select_as_text(frame: pl.LazyFrame, keys: Sequence[str], *more: str) -> pl.LazyFrame:
    """Select the wanted columns, with codes of areas as text, so that two files can be compared."""
    frame = frame.with_columns(pl.lit(0).alias(WHOLE_COLUMN))
    types = frame.collect_schema()
    coded = [name for name in keys if isinstance(types[name], pl.Categorical | pl.Enum)]
    return frame.select(*keys, *more).with_columns(pl.col(coded).cast(pl.String))


def find_workload(release: Release, columns: Sequence[str]) -> str | None:
    """Return the name of the workload that made these records, if the run made replicates of it."""
    for name, table in release.tables.items():
        if name.endswith(REPLICATES) and set(columns) <= set(table.column_names):
            return name.removesuffix(REPLICATES)
    return None


def tabulate_uncertainty(
    release: Release,
    schema: Schema,
    by: Sequence[str],
    frame: pl.LazyFrame,
    folder: Path | None,
    *,
    level: float = 0.95,
) -> pl.DataFrame | None:
    """Return count, estimate, standard error and interval of every cell; None without replicates.

    The interval is for the true number, not for the published one. In a table by leaf it is that of the unbiased estimate,
    whose variance is exact, so that it holds in blocks of every kind; estimate and standard error are by the replicates,
    which know more about most cells. Elsewhere it comes from the replicates, and from the unbiased estimate where the table
    has few numbers. Where replicates alone tell, the release is smoother than the census, and the intervals are moved and
    made wider.
    """
    here = frame.collect_schema().names()
    own = [name for name in here if name not in {off.name for off in schema.geography.off_spine}]
    name = find_workload(release, own)
    if name is None:
        return None
    found = pl.DataFrame(pl.from_arrow(release.tables[name + REPLICATES]))
    again = found.lazy()
    lacking = [name for name in by if name not in found.columns]
    if lacking and folder is not None:
        again = attach_levels(schema, again, lacking, folder)
    table, runs = tabulate_replicates(frame, again, by)
    beside = {off.name for off in schema.geography.off_spine}
    guided = (release.tables[name + REPLICATES].schema.metadata or {}).get(MODE_METADATA) == b"guided"
    if not beside.isdisjoint(by):  # areas that are not made of measured ones above leaves
        smooth = not guided and {*schema.spine, *beside}.issuperset(by)
        return _add_intervals(table, runs, 1.0 - SMOOTH_MISS_SHARE * (1.0 - level) if smooth else level)
    exact = _select_unbiased(release.tables.get(name + UNBIASED), schema, by)
    leaves = [name for name in by if name in schema.spine]
    of_leaves, several, count = schema.spine[-1] in by, len(runs) > 1, table["count"].to_numpy()
    # Decided for the table as a whole: cell by cell the shorter interval would cover too rarely.
    ratio = (
        1.0 if exact is None else _compare_errors(_join_estimates(_add_intervals(table, runs, level), exact))
    )
    sharp = ratio < SHARP_ERROR_SHARE
    seen: UnseenBias | Drift | None = None  # what replicates do not show
    if of_leaves and not guided:
        whole = _select_unbiased(release.tables.get(name + UNBIASED), schema, leaves)
        seen = _measure_leaf_bias(table, runs, tabulate_replicates(frame, again, leaves), whole)
    elif several and of_leaves:
        seen = estimate_drift(count, runs, SIZE_CLASS_LIMITS, by_cells=sharp and len(leaves) == len(by))
    elif several:
        seen = estimate_drift(count, runs, SIZE_CLASS_LIMITS, least=MIN_DRIFT_NUMBERS)
    joined = _add_intervals(table, runs, level, seen)
    if exact is None:
        return joined
    joined = _join_estimates(joined, exact)
    margin = float(ndtri(0.5 + level / 2.0)) * pl.col("_sd")
    low, high = ((pl.col("_estimate") + side * margin).clip(0.0) for side in (-1.0, 1.0))
    asked = [*by, "count", "estimate", "standard_error", "low", "high"]
    if of_leaves and ratio >= MIN_LEAF_ERROR_SHARE:
        # Whoever lives in a block, and whatever the estimate took from such blocks, these intervals hold at their level.
        # Taking in more loses nothing of that: the count, and what replicates say of small ones, of which few are seen to
        # be wrong (a block published as 0 is mostly one whose noise was far below).
        small = (pl.col("count") < MIN_ONE_TAILED_COUNT) & (pl.col("_sd") > 0)
        least, most = (pl.when(small).then(name).otherwise("count") for name in ("low", "high"))
        low = pl.min_horizontal((low - ROUNDING).ceil().abs(), least, "count")
        high = pl.max_horizontal((high + ROUNDING).floor(), most, "count")
        known = pl.col("_sd").is_not_null()
        joined = joined.with_columns(
            standard_error=pl.when(pl.col("_sd") == 0).then(0.0).otherwise("standard_error"),
            low=pl.when(known).then(low).otherwise("low"),
            high=pl.when(known).then(high).otherwise("high"),
        )
        return joined.with_columns(pl.col("estimate").clip("low", "high")).select(asked)
    # The exact interval holds for every single cell: it is taken where it is not longer, or where numbers are few.
    better = (
        _root_mean_square(joined["_sd"]) <= _root_mean_square(joined["standard_error"])
        or runs.size < MIN_REPLICATE_NUMBERS
    )
    known = pl.col("_sd").is_not_null() if better and not sharp else (pl.col("_sd") == 0)
    return joined.with_columns(
        estimate=pl.when(known).then("_estimate").otherwise("estimate"),
        standard_error=pl.when(known).then("_sd").otherwise("standard_error"),
        low=pl.when(known).then(low).otherwise("low"),
        high=pl.when(known).then(high).otherwise("high"),
    ).select(asked)


def _join_estimates(result: pl.DataFrame, exact: pl.DataFrame) -> pl.DataFrame:
    """Join the tree estimates to the cells."""
    keys = [name for name in result.columns if name in exact.columns]
    if not keys:
        return result.join(exact, how="cross")
    exact = exact.cast({name: result.schema[name] for name in keys})
    return result.join(exact, on=keys, how="left", nulls_equal=True, maintain_order="left")


def _compare_errors(joined: pl.DataFrame) -> float:
    """Return the replicates' standard errors in parts of the exact ones, as root mean squares."""
    exact = _root_mean_square(joined["_sd"])
    return _root_mean_square(joined["standard_error"]) / exact if exact < float("inf") else 1.0


def _measure_leaf_bias(
    table: pl.DataFrame, runs: Ints, totals: tuple[pl.DataFrame, Ints], known: pl.DataFrame | None
) -> UnseenBias | None:
    """Estimate from leaf totals what replicates of a table by leaf do not show; None if nothing."""
    whole, again = totals
    if known is not None:
        whole = _join_estimates(_add_intervals(whole, again, 0.95), known)
        if _compare_errors(whole) >= SHARP_ERROR_SHARE:
            return None
    seen = _measure_bias(whole, again)
    return seen if table.columns == totals[0].columns else _measure_bias(table, runs, seen)


def _measure_bias(table: pl.DataFrame, runs: Ints, totals: UnseenBias | None = None) -> UnseenBias:
    """Estimate what the replicates do not show, from the unbiased numbers where the table has them."""
    count = table["count"].to_numpy()
    own, place = np.digitize(count, SIZE_CLASS_LIMITS), np.digitize(runs, SIZE_CLASS_LIMITS)
    if "_sd" not in table.columns:
        return estimate_bias(count, runs, place, own, totals=totals)
    known = table.select(pl.col("_estimate", "_sd").fill_null(0.0))
    return estimate_bias(count, runs, place, own, known["_estimate"].to_numpy(), known["_sd"].to_numpy())


def _add_intervals(
    table: pl.DataFrame, runs: Ints, level: float, seen: UnseenBias | Drift | None = None
) -> pl.DataFrame:
    """Add the intervals by replicates to the cells."""
    found = compute_intervals(table["count"].to_numpy(), runs, level=level, unseen=seen)
    return table.with_columns(**{name: pl.Series(value) for name, value in found.items()})


def _select_unbiased(table: pa.Table | None, schema: Schema, by: Sequence[str]) -> pl.DataFrame | None:
    """Return estimates and standard deviations of the table's cells, where the tree estimate has them."""
    places = [name for name in schema.spine if name in by]
    axes = [name for name in by if name not in places]
    if table is None or not set(axes) <= set(table.column_names):
        return None
    frame = pl.DataFrame(pl.from_arrow(table))
    others = [name for name in frame.columns if name not in ESTIMATE_COLUMNS and name not in axes]
    level = places[-1] if places else str(frame["level"][0])
    rows = frame.filter(
        pl.col("level") == level,
        *(pl.col(name).is_not_null() for name in axes),
        *(pl.col(name).is_null() for name in others),
    )
    if rows.is_empty() or (not places and rows["code"].n_unique() > 1):
        return None
    return rows.select(
        *(pl.col("code").alias(name) for name in places[-1:]),  # the finest area decides those above it
        *axes,
        pl.col("estimate").alias("_estimate"),
        pl.col("standard_deviation").alias("_sd"),
    )


def _root_mean_square(errors: pl.Series) -> float:
    """Return the root mean square of the known errors that are not zero; infinite when there is none."""
    found = errors.drop_nulls()
    found = found.filter(found > 0)
    return float((found**2).mean() or 0.0) ** 0.5 if found.len() else float("inf")  # type: ignore[arg-type]
