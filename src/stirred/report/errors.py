"""Charts of errors against the truth: relative error by size of the cell, and change by area. Internal."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from stirred.assess.assessment import Assessment
from stirred.assess.utility.metrics import Array
from stirred.assess.utility.tables import bin_labels
from stirred.mechanisms.exhibits import format_error
from stirred.report import charts
from stirred.report.charts.spatial import Ground, areas
from stirred.report.document import Chart

SIZE_CLASS_STARTS = (
    1,
    10,
    100,
    1_000,
    10_000,
)  # classes of a cell's own count; empty cells have no relative error
QUANTILES = ("10 of 100 below", "half below", "90 of 100 below")


def chart_by_size(assessments: Sequence[Assessment]) -> list[Chart]:
    """Draw the absolute difference in per cent of the original count, by size of the cell and release."""
    rows: list[dict[str, object]] = []
    labels = bin_labels(SIZE_CLASS_STARTS)
    found = {a.name: _relative(a) for a in assessments}
    for index, label in enumerate(labels):
        for name, (size, error) in found.items():
            classes = np.searchsorted(np.asarray(SIZE_CLASS_STARTS[1:]), size, side="right")
            chosen = 100 * error[classes == index]
            if chosen.size:
                low, middle, high = np.quantile(chosen, [0.1, 0.5, 0.9])
                rows.append(
                    {"original count": label, "release": name, "low": low, "middle": middle, "high": high}
                )
    if not rows:
        return []
    return [
        charts.ranges(
            "error-by-size",
            "Relative error by size of the cell.",
            "Absolute difference in per cent of the original count: the point is the middle cell, the line goes from the "
            "tenth to the ninetieth of a hundred.",
            rows,
            category="original count",
            value="difference, % of the original",
            group="release",
            columns=QUANTILES,
        )
    ]


def _relative(assessment: Assessment) -> tuple[Array, Array]:
    """Return original counts above 0 of all tables that are not exact, and their relative errors."""
    pairs = [item.pair.arrays() for item in assessment.tables if not item.exact]
    if not pairs:
        return np.zeros(0), np.zeros(0)
    size = np.concatenate([pair[0] for pair in pairs])
    after = np.concatenate([pair[1] for pair in pairs])
    some = size > 0
    return size[some], np.abs(after - size)[some] / size[some]


def chart_by_area(assessments: Sequence[Assessment], ground: Ground) -> list[Chart]:
    """Draw for each release the change of one category of one table, area by area."""
    return [chart for number, one in enumerate(assessments, 1) for chart in _changes(one, ground, number)]


def _changes(assessment: Assessment, ground: Ground, number: int) -> list[Chart]:
    items = [item for item in assessment.tables if not item.exact and 1 <= len(item.by) <= 2]
    if ground.levels:
        items = [item for item in items if item.by[0] in ground.levels]
    if not items:
        return []
    item = max(items, key=lambda one: (one.by[0] == ground.drawn_level, len(one.by), one.pair.frame.height))
    area, frame, what = item.by[0], item.pair.frame, ""
    if len(item.by) == 2:
        largest = frame.group_by(item.by[1]).agg(pl.col("reference").sum()).sort("reference", item.by[1])
        most = largest.row(-1)[0]
        frame = frame.filter(pl.col(item.by[1]).eq_missing(pl.lit(most)))
        what = f", {ground.labels.get(item.by[1], {}).get(str(most), f'{item.by[1]} {most}')}"
    changes = {
        str(code): 100 * (after - before) / before
        for code, before, after in frame.select(area, "reference", "protected").rows()
        if before  # of an empty area there is no percent
    }
    if not changes:
        return []
    middle = float(np.median(np.abs(list(changes.values()))))
    drawn = areas(
        f"areas-{number}",
        f"{item.name}{what}: change by {area}, {assessment.name}.",
        f"Half of the {len(changes):,} areas moved by at most {format_error(middle)} %.",
        changes,
        ground=ground,
        level=area,
        value="change, %",
        signed=True,
    )
    return [drawn] if drawn else []
