"""Tables of a release, each cell with its uncertainty: unbiased where that is known exactly, else by replicates.

Replicates are runs of the mechanism on its own output (``run.replicates``); they are public numbers.
"""

from collections.abc import Sequence
from math import sqrt
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import stdtrit

from stirred.census import Schema
from stirred.census.geography import attach
from stirred.mechanisms.release import Release
from stirred.mechanisms.released_parts import cells

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRIOR = 4.0  # degrees of freedom of the variance that is shared by cells of similar size
FEW = 5  # cells that a size class needs before its variance is shared
WHOLE = "_whole"  # represents the variables of a table that has none
CLASSES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000)
Z95 = 1.959963984540054
SHARPER = 0.5  # replicates are used where their standard error is below this part of the exact one
REPLICATES, UNBIASED = "-replicates", "-unbiased"
OWN = ("level", "code", "estimate", "standard_deviation")


def moments(count: Ints, again: Ints) -> tuple[Floats, Floats, Floats]:
    r"""Bias, standard error and degrees of freedom of every cell from its replicates (R × cells).

    Cells of similar size share variance, so that a cell that did not change by chance is not called exact:
    $s^2 = ((R-1)s_i^2 + 4 s_0^2)/(R+3)$ with $s_0^2$ the mean over the cells of its size class.

    >>> bias, error, _ = moments(np.array([10, 10]), np.array([[12, 10], [10, 10], [11, 10]]))
    >>> bias.tolist(), error.round(4).tolist()
    ([1.0, 0.0], [0.8165, 0.5774])
    """
    runs = len(again)
    bias = again.mean(axis=0) - count
    variance = again.var(axis=0, ddof=1) if runs > 1 else np.full(len(count), np.inf)
    place = np.digitize(count, CLASSES)
    members = np.maximum(np.bincount(place, minlength=1), 1)
    common = (np.bincount(place, variance) / members)[place]
    smooth = ((runs - 1) * variance + PRIOR * common) / (runs - 1 + PRIOR)
    return bias, np.sqrt(smooth), np.full(len(count), runs - 1 + PRIOR)


def intervals(count: Ints, again: Ints, *, level: float = 0.95) -> dict[str, Floats]:
    r"""Bias-corrected estimate $x - \hat b$, its standard error and interval; no count is below zero.

    The interval is $x - \hat b \pm t\,s\sqrt{1 + 1/R}$: the last factor is the error of the bias itself. A number
    published as 0 may come from a true 4, whose noise the replicates of a 0 do not show: the typical bias and spread of
    the size class in which the upper limit lies decide whether it reaches further.

    >>> found = intervals(np.array([100, 100]), np.array([[101, 98], [99, 102], [102, 99], [98, 101]]))
    >>> found["estimate"].tolist(), found["standard_error"].round(3).tolist()
    ([100.0, 100.0], [2.041, 2.041])
    """
    bias, spread, freedom = moments(count, again)
    wider = sqrt(1.0 + 1.0 / len(again))
    t = stdtrit(freedom, 0.5 + level / 2.0)
    high = count - bias + t * spread * wider
    place, upper = np.digitize(count, CLASSES), np.digitize(np.rint(high), CLASSES)
    members = np.bincount(place, minlength=len(CLASSES) + 1)
    typical_bias = np.bincount(place, bias, len(members)) / np.maximum(members, 1)
    typical_spread = np.sqrt(np.bincount(place, spread**2, len(members)) / np.maximum(members, 1))
    further = count - typical_bias[upper] + t * typical_spread[upper] * wider
    high = np.where(members[upper] >= FEW, np.maximum(high, further), high)
    return {
        "estimate": np.maximum(count - bias, 0.0),
        "standard_error": spread * wider,
        "low": np.maximum(count - bias - t * spread * wider, 0.0),
        "high": np.maximum(high, 0.0),
        "bias": bias,
    }


def tabulated(records: pl.LazyFrame, again: pl.LazyFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each cell that the release or a replicate has: count, estimate, standard_error, low, high and bias."""
    keys = list(by) or [WHOLE]
    published = cells(plain(records, keys), keys).collect()
    runs = plain(again, keys, "replicate", "count").group_by([*keys, "replicate"])
    sums = runs.agg(pl.col("count").cast(pl.Int64).sum()).collect(engine="streaming")
    counts = pl.concat([published, sums.select(*keys, pl.lit(0, pl.Int64).alias("count"))])
    every = counts.group_by(keys).agg(pl.col("count").sum()).sort(keys, nulls_last=False)
    number = every.select(keys).with_row_index("cell")
    place = sums.join(number, on=keys, nulls_equal=True)
    matrix = np.zeros((sums["replicate"].n_unique(), every.height), np.int64)
    matrix[place["replicate"].to_numpy(), place["cell"].to_numpy()] = place["count"].to_numpy()
    found = intervals(every["count"].to_numpy(), matrix)
    return every.select(*by, "count").with_columns(
        **{name: pl.Series(value) for name, value in found.items()}
    )


def plain(frame: pl.LazyFrame, keys: Sequence[str], *more: str) -> pl.LazyFrame:
    """The wanted columns, codes of areas as text: categories of two files cannot be compared."""
    frame = frame.with_columns(pl.lit(0).alias(WHOLE))
    types = frame.collect_schema()
    coded = [name for name in keys if isinstance(types[name], pl.Categorical | pl.Enum)]
    return frame.select(*keys, *more).with_columns(pl.col(coded).cast(pl.String))


def workload(release: Release, columns: Sequence[str]) -> str | None:
    """The workload that made the records with these columns, where the run made replicates of it."""
    for name, table in release.tables.items():
        if name.endswith(REPLICATES) and set(columns) <= set(table.column_names):
            return name.removesuffix(REPLICATES)
    return None


def uncertain(
    release: Release, schema: Schema, by: Sequence[str], frame: pl.LazyFrame, folder: Path | None
) -> pl.DataFrame | None:
    """Count, estimate, standard error and 95 % interval of every cell; None where the run made no replicates.

    The interval is for the true number, not for the published one. Where the table is a marginal of geounits that were
    measured, it is the unbiased estimate's, whose variance is exact, unless that is more than twice as wide as what the
    replicates show (blocks); elsewhere the mechanism is run again on its output.
    """
    here = frame.collect_schema().names()
    own = [name for name in here if name not in {off.name for off in schema.geography.off_spine}]
    name = workload(release, own)
    if name is None:
        return None
    found = pl.DataFrame(pl.from_arrow(release.tables[name + REPLICATES]))
    again = found.lazy()
    lacking = [name for name in by if name not in found.columns]
    if lacking and folder is not None:
        again = attach(schema, again, lacking, folder)
    result = tabulated(frame, again, by).drop("bias")
    exact = _unbiased(release.tables.get(name + UNBIASED), schema, by)
    if exact is None:
        return result
    keys = [name for name in by if name in exact.columns]
    exact = exact.cast({name: result.schema[name] for name in keys})
    joined = (
        result.join(exact, on=keys, how="left", nulls_equal=True, maintain_order="left")
        if keys
        else result.join(exact, how="cross")
    )
    # Decided for the table as a whole: cell by cell the shorter interval would cover too rarely.
    sharp = _spread(joined["standard_error"]) < SHARPER * _spread(joined["_sd"])
    known = (pl.col("_sd") == 0) if sharp else pl.col("_sd").is_not_null()
    margin = Z95 * pl.col("_sd")
    return joined.with_columns(
        estimate=pl.when(known).then("_estimate").otherwise("estimate"),
        standard_error=pl.when(known).then("_sd").otherwise("standard_error"),
        low=pl.when(known).then((pl.col("_estimate") - margin).clip(0.0)).otherwise("low"),
        high=pl.when(known).then((pl.col("_estimate") + margin).clip(0.0)).otherwise("high"),
    ).select(*by, "count", "estimate", "standard_error", "low", "high")


def _unbiased(table: pa.Table | None, schema: Schema, by: Sequence[str]) -> pl.DataFrame | None:
    """Estimates and standard deviations of the table's cells, keyed as the table is, where the tree estimate has them."""
    places = [name for name in schema.spine if name in by]
    axes = [name for name in by if name not in places]
    if table is None or not set(axes) <= set(table.column_names):
        return None
    frame = pl.DataFrame(pl.from_arrow(table))
    others = [name for name in frame.columns if name not in OWN and name not in axes]
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


def _spread(errors: pl.Series) -> float:
    """The root mean square of what is known and not exact; infinite when nothing is."""
    found = errors.drop_nulls()
    found = found.filter(found > 0)
    return float((found**2).mean() or 0.0) ** 0.5 if found.len() else float("inf")  # type: ignore[arg-type]
