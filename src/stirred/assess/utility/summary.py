"""Errors in the layout of the Census Bureau's Detailed Summary Metrics: a row for each geography, size and table."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from stirred.assess.utility.metrics import (
    Array,
    coefficient_of_variation,
    mape,
    outlier_counts,
    percent_difference,
    total_variation,
)
from stirred.assess.utility.tables import CELL_BINS, TablePair, bin_labels


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
