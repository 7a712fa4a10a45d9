"""Measure the error of a protected table against its reference, by size, geography and replicate run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from stirred.errors import InputError

# Error metrics of a protected table against its reference, with the Census Bureau's published definitions.
#
# Throughout, ``difference = protected − reference`` cell by cell.

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number, how many cells it is computed from, and how many are left out."""

    name: str
    value: float
    cells: int
    left_out: int = 0


def mean_absolute_error(reference: Array, protected: Array) -> float:
    """Return the mean of |difference| (MAE).

    >>> mean_absolute_error(np.array([1.0, 5.0]), np.array([2.0, 2.0]))
    2.0
    """
    return float(np.abs(protected - reference).mean())


def root_mean_squared_error(reference: Array, protected: Array) -> float:
    """Return the root of the mean squared difference (RMSE).

    >>> root_mean_squared_error(np.array([0.0, 0.0]), np.array([3.0, 4.0]))
    3.5355339059327378
    """
    return float(np.sqrt(np.square(protected - reference).mean()))


def mape(reference: Array, protected: Array) -> tuple[float, int]:
    """Return the paper's MAPE as a share, over cells with a nonzero reference, and how many are left out.

    >>> mape(np.array([10.0, 0.0]), np.array([12.0, 1.0]))
    (0.2, 1)
    """
    defined = reference != 0
    left_out = int(reference.size - defined.sum())
    if not defined.any():
        return float("nan"), left_out
    return float((np.abs(protected - reference)[defined] / reference[defined]).mean()), left_out


def percent_difference(reference: Array, protected: Array) -> Array:
    """Return the Bureau's percent difference; at a zero reference 0 if d = 0, else ±200.

    >>> percent_difference(np.array([10.0, 0.0, 0.0]), np.array([12.0, 0.0, 7.0])).tolist()
    [20.0, 0.0, 200.0]
    """
    difference = protected - reference
    base = np.where(reference == 0, (reference + protected) / 2, reference)
    result: Array = np.divide(100 * difference, base, out=np.zeros_like(difference), where=base != 0)
    return result


def mape_bureau(reference: Array, protected: Array) -> float:
    """Return the Bureau's MAPE in percent: the mean of |percent difference| with its rule for zeros.

    >>> mape_bureau(np.array([10.0, 0.0]), np.array([12.0, 7.0]))
    110.0
    """
    return float(np.abs(percent_difference(reference, protected)).mean())


def malpe(reference: Array, protected: Array) -> float:
    """Return the mean algebraic percent error in percent, which shows bias (MALPE).

    >>> malpe(np.array([10.0, 10.0]), np.array([12.0, 8.0]))
    0.0
    """
    return float(percent_difference(reference, protected).mean())


def coefficient_of_variation(reference: Array, protected: Array) -> float:
    """Return 100·RMSE over the mean reference (CV).

    >>> coefficient_of_variation(np.array([2.0, 2.0]), np.array([3.0, 1.0]))
    50.0
    """
    mean = float(reference.mean())
    return 100 * root_mean_squared_error(reference, protected) / mean if mean else float("nan")


def total_variation(reference: Array, protected: Array) -> float:
    """Return half the sum of absolute differences of shares (TVD); twice it is the Bureau's TAES.

    >>> total_variation(np.array([1.0, 1.0]), np.array([2.0, 0.0]))
    0.5
    """
    a, b = reference.sum(), protected.sum()
    if a == 0 or b == 0:
        return 0.0 if a == b else 1.0
    return float(np.abs(reference / a - protected / b).sum() / 2)


def outlier_counts(reference: Array, protected: Array) -> dict[str, int]:
    """Count cells with |percent| in [2, 5], above 5 and above 10, and with |difference| above 200.

    >>> outlier_counts(np.array([100.0, 1000.0]), np.array([103.0, 1300.0]))
    {'percent 2 to 5': 1, 'percent over 5': 1, 'percent over 10': 1, 'difference over 200': 1}
    """
    percent = np.abs(percent_difference(reference, protected))
    return {
        "percent 2 to 5": int(((percent >= 2) & (percent <= 5)).sum()),
        "percent over 5": int((percent > 5).sum()),
        "percent over 10": int((percent > 10).sum()),
        "difference over 200": int((np.abs(protected - reference) > 200).sum()),
    }


def false_zeros(reference: Array, protected: Array) -> tuple[int, int]:
    """Count cells emptied (positive before, zero after) and cells filled (zero before, positive after).

    >>> false_zeros(np.array([3.0, 0.0, 1.0]), np.array([0.0, 2.0, 1.0]))
    (1, 1)
    """
    return int(((reference > 0) & (protected == 0)).sum()), int(((reference == 0) & (protected > 0)).sum())


def rank_changes(reference: Array, protected: Array, *, top: int = 10) -> tuple[float, int]:
    """Return Spearman's rank correlation, and how many of the ``top`` largest cells left the top.

    >>> rank_changes(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0]), top=2)
    (0.5, 1)
    """
    if reference.size < 2:
        return float("nan"), 0
    a, b = _rank(reference), _rank(protected)
    constant = np.ptp(a) == 0 or np.ptp(b) == 0
    spearman = float("nan") if constant else round(float(np.corrcoef(a, b)[0, 1]), 12)
    count = min(top, reference.size)
    before = set(np.argsort(-reference, kind="stable")[:count].tolist())
    after = set(np.argsort(-protected, kind="stable")[:count].tolist())
    return spearman, len(before - after)


def _rank(values: Array) -> Array:
    """Return the rank of each value, and to equal values the mean of their ranks; NaN throughout where one is NaN.

    ``scipy.stats.rankdata`` gives the same, and takes most of a second to import.
    """
    if np.isnan(values).any():
        return np.full(values.shape, np.nan)
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Array = (2 * last - counts + 1) / 2
    return means[place]


_PLAIN_METRICS: dict[str, Callable[[Array, Array], float]] = {
    "MAE": mean_absolute_error,
    "RMSE": root_mean_squared_error,
    "MAPE (Bureau, %)": mape_bureau,
    "MALPE (%)": malpe,
    "CV (%)": coefficient_of_variation,
    "TVD": total_variation,
    "bias": lambda reference, protected: float((protected - reference).mean()),
}


def all_metrics(reference: Array, protected: Array) -> list[Metric]:
    """Compute every cell-wise metric, in the order in which the report shows them.

    >>> [m.name for m in all_metrics(np.array([4.0, 0.0]), np.array([5.0, 0.0]))][:3]
    ['MAE', 'RMSE', 'MAPE (Bureau, %)']
    """
    cells = int(reference.size)
    if cells == 0:
        return []
    result = [Metric(name=n, value=f(reference, protected), cells=cells) for n, f in _PLAIN_METRICS.items()]
    share, left_out = mape(reference, protected)
    emptied, filled = false_zeros(reference, protected)
    spearman, churn = rank_changes(reference, protected)
    result += [
        Metric(name="MAPE (paper)", value=share, cells=cells - left_out, left_out=left_out),
        Metric(name="cells emptied", value=emptied, cells=cells),
        Metric(name="cells filled", value=filled, cells=cells),
        Metric(name="rank correlation", value=spearman, cells=cells),
        Metric(name="left the top ten", value=churn, cells=cells),
    ]
    result += [Metric(name=n, value=v, cells=cells) for n, v in outlier_counts(reference, protected).items()]
    return result


# Compare two tables of counts cell by cell, with errors by geography and size.

# The Bureau's population-size classes for areas, and the classes of a cell's own count.
AREA_BINS = (0, 1_000, 5_000, 10_000, 50_000, 100_000)
CELL_BINS = (0, 1, 10, 100, 1_000)  # empty cells are a class of their own
BLOCK_BINS = (0, 1, 10, 50, 100, 250, 500, 1_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePair:
    """A reference and a protected table aligned on the same cells (absent cells count zero).

    >>> a = pa.table({"county": ["a", "b"], "count": [3, 4]})
    >>> b = pa.table({"county": ["b", "c"], "count": [5, 1]})
    >>> TablePair.align(a, b, by=["county"]).frame.rows()
    [('a', 3, 0), ('b', 4, 5), ('c', 0, 1)]
    """

    by: tuple[str, ...]
    frame: pl.DataFrame  # by…, reference, protected; sorted by the by-columns

    @staticmethod
    def align(reference: pa.Table, protected: pa.Table, *, by: Sequence[str]) -> "TablePair":
        """Join both tables on all cells, with zeros where a side has no row."""
        keys = list(by)
        for table, side in ((reference, "reference"), (protected, "protected")):
            missing = [name for name in [*keys, "count"] if name not in table.column_names]
            if missing:
                raise InputError(
                    f"the {side} table cannot be compared",
                    why=f"it has no column {', '.join(missing)}",
                    fix="give both tables the classifying columns and a column named count",
                )
        left = _counts(reference, keys, "reference")
        right = _counts(protected, keys, "protected")
        joined = (
            left.join(right, on=keys, how="full", coalesce=True, nulls_equal=True)
            if keys
            else pl.concat([left, right], how="horizontal")
        )
        return TablePair(
            by=tuple(keys), frame=joined.fill_null(0).sort(keys) if keys else joined.fill_null(0)
        )

    def arrays(self) -> tuple[Array, Array]:
        """Return reference and protected counts as floats, in the frame's order."""
        return _floats(self.frame, "reference"), _floats(self.frame, "protected")

    def drop_empty(self) -> "TablePair":
        """Return the cells that hold a record on at least one side.

        >>> zero = pa.table({"county": ["a", "b"], "count": [0, 4]})
        >>> TablePair.align(zero, zero, by=["county"]).drop_empty().frame.rows()
        [('b', 4, 4)]
        """
        held = (pl.col("reference") != 0) | (pl.col("protected") != 0)
        return TablePair(by=self.by, frame=self.frame.filter(held)) if self.by else self

    def align_with(self, others: Sequence["TablePair"]) -> "TablePair":
        """Return this pair on all cells of others; a cell that it lacks is empty on both sides."""
        keys = list(self.by)
        if not keys:
            return self
        cells = pl.concat([other.frame.select(keys) for other in (self, *others)]).unique()
        whole = cells.join(self.frame, on=keys, how="left", nulls_equal=True)
        counts = pl.col("reference", "protected").fill_null(0)
        return TablePair(by=self.by, frame=whole.with_columns(counts).sort(keys))

    @property
    def exact(self) -> bool:
        """Return whether the two tables agree in every cell."""
        return bool((self.frame["reference"] == self.frame["protected"]).all())


def _counts(table: pa.Table, keys: list[str], name: str) -> pl.DataFrame:
    frame = pl.DataFrame(pl.from_arrow(table.select([*keys, "count"])))
    frame = frame.with_columns(pl.col(keys).cast(pl.String)) if keys else frame
    if not keys:
        return frame.select(pl.col("count").sum().alias(name))
    return frame.group_by(keys).agg(pl.col("count").sum().alias(name))


def _floats(frame: pl.DataFrame, name: str) -> Array:
    return frame[name].to_numpy().astype(np.float64)


def bin_labels(edges: Sequence[int]) -> list[str]:
    """Return the names of the size classes.

    >>> bin_labels((0, 1, 10, 100))
    ['0', '1–9', '10–99', '100+']
    """
    last = f"{edges[-1]:,}+"
    names = [str(a) if b == a + 1 else f"{a:,}–{b - 1:,}" for a, b in pairwise(edges)]
    return [*names, last]


def measure_errors(
    pair: TablePair,
    *,
    table: str,
    level: str = "",
    area: Sequence[str] = (),
    edges: Sequence[int] = CELL_BINS,
) -> pl.DataFrame:
    """Return the metrics of one table: of all cells, and by size class of the area or of the cell.

    Columns: table, level, size, metric, value, cells, left_out; the class comes from the *reference*, so this frame
    is computed from confidential data and stays internal.

    >>> a = pa.table({"g": ["a", "b"], "count": [3, 400]}); b = pa.table({"g": ["a", "b"], "count": [4, 398]})
    >>> measure_errors(TablePair.align(a, b, by=["g"]), table="t").filter(pl.col("metric") == "MAE")["value"].to_list()
    [1.5, 1.0, 2.0]
    """
    labels = bin_labels(edges)
    size = pl.col("reference").sum().over(list(area)) if area else pl.col("reference")
    sizes = pair.frame.select(size.alias("size"))["size"].to_numpy()
    classes = np.searchsorted(np.asarray(edges[1:]), sizes, side="right")
    reference, protected = pair.arrays()
    groups = [("all", np.ones(len(sizes), dtype=np.bool_))]
    groups += [(label, classes == index) for index, label in enumerate(labels)]
    rows = [
        (table, level, label, metric.name, metric.value, metric.cells, metric.left_out)
        for label, chosen in groups
        for metric in all_metrics(reference[chosen], protected[chosen])
    ]
    return pl.DataFrame(rows, schema=METRIC_SCHEMA, orient="row")


METRIC_SCHEMA: dict[str, type[pl.DataType]] = {
    "table": pl.String,
    "level": pl.String,
    "size": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "cells": pl.Int64,
    "left_out": pl.Int64,
}


# Errors in the layout of the Census Bureau's Detailed Summary Metrics: a row for each geography, size and table.


def detailed_summary(
    pair: TablePair, *, characteristic: str, geography: str, edges: Sequence[int] = CELL_BINS
) -> pl.DataFrame:
    """Return counts, differences, absolute and percent errors by size class, named as by the Bureau.

    Percent differences follow the Bureau's rule at a zero reference; ``Cells_Undefined`` counts the cells that the
    paper's MAPE leaves out.

    >>> import pyarrow as pa
    >>> a = pa.table({"g": ["a", "b"], "count": [3, 400]}); b = pa.table({"g": ["a", "b"], "count": [4, 398]})
    >>> detailed_summary(TablePair.align(a, b, by=["g"]), characteristic="t", geography="g")["MAE"].to_list()
    [1.5, 1.0, 2.0]
    """
    reference, protected = pair.arrays()
    classes = np.searchsorted(np.asarray(edges[1:]), reference, side="right")
    groups = [("All", np.ones(reference.size, dtype=np.bool_))]
    groups += [(label, classes == index) for index, label in enumerate(bin_labels(edges))]
    rows = [
        {
            "Geography": geography,
            "Size_Category": label,
            "Characteristic": characteristic,
            **_row(reference[c], protected[c]),
        }
        for label, c in groups
        if c.any()
    ]
    order = ["Geography", "Size_Category", "Characteristic"]
    return pl.DataFrame(rows).select(*order, pl.exclude(order)) if rows else pl.DataFrame()


def _row(reference: Array, protected: Array) -> dict[str, float | int]:
    difference = protected - reference
    absolute = np.abs(difference)
    percent = percent_difference(reference, protected)
    share, undefined = mape(reference, protected)
    outliers = outlier_counts(reference, protected)
    return {
        "N": int(reference.size),
        "Min_Diff": float(difference.min()),
        "Mean_Diff": float(difference.mean()),
        "Median_Diff": float(np.median(difference)),
        "Max_Diff": float(difference.max()),
        "MAE": float(absolute.mean()),
        "Median_AE": float(np.median(absolute)),
        "AE_P90": float(np.quantile(absolute, 0.9)),
        "AE_P95": float(np.quantile(absolute, 0.95)),
        "RMSE": float(np.sqrt(np.square(difference).mean())),
        "CV": coefficient_of_variation(reference, protected),
        "MAPE": float(np.abs(percent).mean()),
        "MALPE": float(percent.mean()),
        "APE_P90": float(np.quantile(np.abs(percent), 0.9)),
        "APE_P95": float(np.quantile(np.abs(percent), 0.95)),
        "MAPE_Cellwise": 100 * share,
        "Cells_Undefined": undefined,
        "TAES": 2 * total_variation(reference, protected),
        "Pct_2_to_5": outliers["percent 2 to 5"],
        "Pct_Over_5": outliers["percent over 5"],
        "Pct_Over_10": outliers["percent over 10"],
        "Diff_Over_200": outliers["difference over 200"],
        "Zero_Created": int(((reference > 0) & (protected == 0)).sum()),
        "Zero_Destroyed": int(((reference == 0) & (protected > 0)).sum()),
    }


# Bias, spread and coverage over replicate runs of a mechanism on the same stand-in.


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicate:
    """One run's cells beside the truth; ``low`` and ``high`` are the published interval, where there is one."""

    reference: Array
    protected: Array
    low: Array | None = None
    high: Array | None = None


def replicate_errors(
    runs: Sequence[Replicate], *, table: str, edges: Sequence[int] = CELL_BINS, confidence: float = 0.95
) -> pl.DataFrame:
    """Return by size class: bias with its interval, MAE, RMSE and the coverage of the intervals.

    The bias of a class is the mean difference over its cells; its interval is Student's over the runs, which are
    independent (cells of one run are not).

    >>> runs = [Replicate(reference=np.array([5.0, 50.0]), protected=np.array([5.0 + d, 50.0 - d])) for d in (-1, 0, 1)]
    >>> replicate_errors(runs, table="t").select("size", "bias", "MAE").rows()[0]
    ('all', 0.0, 0.6666666666666666)
    """
    reference = runs[0].reference
    labels = bin_labels(edges)
    classes = np.searchsorted(np.asarray(edges[1:]), reference, side="right")
    groups = [("all", np.ones(reference.size, dtype=np.bool_))]
    groups += [(label, classes == index) for index, label in enumerate(labels)]
    rows = []
    for label, chosen in groups:
        if not chosen.any():
            continue
        differences = np.stack([(run.protected - run.reference)[chosen] for run in runs])
        by_run = differences.mean(axis=1)
        half = _half_width(by_run, confidence)
        covered = [_coverage(run, chosen) for run in runs if run.low is not None]
        rows.append(
            {
                "table": table,
                "size": label,
                "cells": int(chosen.sum()),
                "runs": len(runs),
                "bias": float(by_run.mean()),
                "bias_low": float(by_run.mean() - half),
                "bias_high": float(by_run.mean() + half),
                "MAE": float(np.abs(differences).mean()),
                "RMSE": float(np.sqrt(np.square(differences).mean())),
                "coverage": float(np.mean(covered)) if covered else None,
            }
        )
    return pl.DataFrame(rows)


def _half_width(values: Array, confidence: float) -> float:
    from scipy import stats  # a second to import, and only a rehearsal needs it

    if values.size < 2:
        return float("inf")
    return float(
        stats.t.ppf((1 + confidence) / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    )


def _coverage(run: Replicate, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    assert run.low is not None
    assert run.high is not None
    inside = (run.low <= run.reference) & (run.reference <= run.high)
    return float(inside[chosen].mean())
