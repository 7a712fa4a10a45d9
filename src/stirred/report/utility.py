"""Write the sections that compare a release with the truth: errors by size and area, relations. Internal."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from stirred.assess.assessment import CELL_SET, Assessment, RelationAssessment
from stirred.assess.conclusions import Conclusions
from stirred.assess.utility import CELL_BINS, Array, TablePair, bin_labels
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import format_beside_error, format_error
from stirred.report import charts
from stirred.report.accuracy import Measured, Tables, compare_errors, round_up, summarize_errors
from stirred.report.charts import Ground, areas
from stirred.report.document import Block, Chart, Facts, Fold, Note, Paragraphs, Section, make_table

# Charts of errors against the truth: relative error by size of the cell, and change by area. Internal.

SIZE_CLASS_STARTS = CELL_BINS[1:]  # classes of a cell's own count; empty cells have no relative error
QUANTILES = ("middle 80% from", "middle cell", "middle 80% to")


def chart_by_size(assessments: Sequence[Assessment]) -> list[Chart]:
    """Draw the absolute difference in per cent of the original count, by size of the cell: a chart for each table.

    Releases are drawn side by side where they may change the table; a release that keeps it exact has no error to draw.
    """
    drawn = []
    for name in dict.fromkeys(item.name for one in assessments for item in one.tables):
        rows: list[dict[str, object]] = []
        found = {a.name: _relative(a, name) for a in assessments}
        for index, label in enumerate(bin_labels(SIZE_CLASS_STARTS)):
            for release, (size, error) in found.items():
                classes = np.searchsorted(np.asarray(SIZE_CLASS_STARTS[1:]), size, side="right")
                chosen = 100 * error[classes == index]
                if chosen.size:
                    low, middle, high = np.quantile(chosen, [0.1, 0.5, 0.9])
                    rows.append(
                        {
                            "original count": label,
                            "release": release,
                            "low": low,
                            "middle": middle,
                            "high": high,
                        }
                    )
        if rows:
            drawn.append(
                charts.ranges(
                    f"error-by-size-{name}",
                    f"{name}: relative error by size of the cell.",
                    "Absolute difference of the number to quote from the original count, in per cent of it: the point is "
                    "the middle cell, the line covers the middle 80% of cells.",
                    rows,
                    category="original count",
                    value="difference, % of the original",
                    group="release",
                    columns=QUANTILES,
                )
            )
    return drawn


def _relative(assessment: Assessment, name: str) -> tuple[Array, Array]:
    """Return the original counts above 0 of one table, and their relative errors; none of an exact table."""
    pairs = [
        item.quoted_pair().arrays() for item in assessment.tables if item.name == name and not item.exact
    ]
    if not pairs:
        return np.zeros(0), np.zeros(0)
    size, after = pairs[0]
    some = size > 0
    return size[some], np.abs(after - size)[some] / size[some]


def chart_by_area(assessments: Sequence[Assessment], ground: Ground) -> list[Chart]:
    """Draw the change of one category of one table, area by area: for each release the same one, in the same colours."""
    fitting = [
        {item.name: item for item in one.tables if not item.exact and 1 <= len(item.by) <= 2}
        for one in assessments
    ]
    shared = [name for name in fitting[0] if all(name in items for items in fitting)] if fitting else []
    items = [fitting[0][name] for name in shared]
    if ground.levels:
        items = [item for item in items if item.by[0] in ground.levels]
    if not items:
        return []
    item = max(items, key=lambda one: (one.by[0] == ground.drawn_level, len(one.by), one.pair.frame.height))
    area, what, most = item.by[0], "", None
    if len(item.by) == 2:
        sums = item.pair.frame.group_by(item.by[1]).agg(pl.col("reference").sum())
        most = sums.sort("reference", item.by[1]).row(-1)[0]
        what = f", {ground.labels.get(item.by[1], {}).get(str(most), f'{item.by[1]} {most}')}"
    changes = {}
    for one, own in zip(assessments, fitting, strict=True):
        frame = own[item.name].quoted_pair().frame
        if len(item.by) == 2:
            frame = frame.filter(pl.col(item.by[1]).eq_missing(pl.lit(most)))
        changes[one.name] = {
            str(code): 100 * (after - before) / before
            for code, before, after in frame.select(area, "reference", "protected").rows()
            if before  # of an empty area there is no percent
        }
    ends = [charts.colour_end(list(values.values())) for values in changes.values() if values]
    drawn = [
        areas(
            f"areas-{number}",
            f"{item.name}{what}: change by {area}, {name}.",
            f"The number to quote beside the original count: in half of the {len(values):,} areas it differs by at most "
            f"{round_up(float(np.median(np.abs(list(values.values())))))}%.",
            values,
            ground=ground,
            level=area,
            value="change, %",
            signed=True,
            end=max(ends),
        )
        for number, (name, values) in enumerate(changes.items(), 1)
        if values
    ]
    return [chart for chart in drawn if chart is not None]


# Report sections on errors: by table and size, scatter plots, tiles and relations. Internal.

MEASURED: tuple[Measured, ...] = ("quote", "count")
METRICS = {
    "MAE": "mean absolute error, the mean of |protected − original|",
    "RMSE": "root of the mean squared error",
    "MAPE (paper)": "mean of |protected − original| / original, cells with records only",
    "bias": "mean of protected − original",
    "TVD": "total variation distance: the share of the table that would have to move to undo the change",
}  # what the heads of the table of metrics mean


def write_utility(
    assessments: Sequence[Assessment],
    ground: Ground | None = None,
    tables: Mapping[str, Tables] | None = None,
) -> Section:
    """Write the section on errors by table and size class; one colour for each release. Internal."""
    blocks: list[Block] = []
    lead = "No table was held against the truth."
    several = len(assessments) > 1
    both = [
        compare_errors(assessments, tables or {}, number)
        if several
        else next((summarize_errors(one, number) for one in assessments), None)
        for number in MEASURED
    ]
    shown = [one for one in both if one is not None]
    if shown:
        lead = Phrase(f"report.accuracy.note.{'compared_errors' if several else 'errors'}")
        blocks += shown
    blocks += _note_kept(assessments)
    blocks += [note for assessment in assessments for note in _exact(assessment)]
    blocks += [
        Fold(title=chart.title, blocks=(chart,)) if number else chart
        for number, chart in enumerate(chart_by_size(assessments))
    ]
    blocks += chart_by_area(assessments, ground or Ground())
    measured: list[Block] = [
        _metric_table(assessment) for assessment in assessments if assessment.metrics().height
    ]
    if measured:
        about = f"About the counts, over {CELL_SET}; metrics.csv has the numbers to quote beside them."
        if several:
            about = "About the counts, over cells with a record in the census or in one of these releases."
        words = Paragraphs(paragraphs=(about, "; ".join(f"{k}: {v}" for k, v in METRICS.items()) + "."))
        blocks.append(Fold(title="All metrics, by table and size", blocks=(*measured, words)))
    return Section(title="How far the numbers moved", lead=lead, blocks=tuple(blocks))


def _exact(assessment: Assessment) -> list[Note]:
    """Return notes on tables that equal the truth: by promise, by chance, and those that should and do not."""
    kept, lucky = assessment.exact_tables(promised=True), assessment.exact_tables(promised=False)
    notes = []
    if kept:
        text = f"{assessment.name} is exact in every cell of these tables, as promised: {', '.join(kept)}."
        notes.append(Note(text=text, tone="good"))
    if lucky:
        text = f"{assessment.name} changed no cell of these tables, though it does not promise so: {', '.join(lucky)}."
        notes.append(Note(text=text, tone="plain"))
    if broken := assessment.broken_tables():
        text = f"{assessment.name} states that these tables are exact, and they are not: {', '.join(broken)}."
        notes.append(Note(text=text, tone="warning"))
    return notes


def _note_kept(assessments: Sequence[Assessment]) -> list[Block]:
    """Count for each release and table that is not exact the unchanged cells."""
    rows = [
        (f"{assessment.name}, {item.name}", _count_unchanged(item.pair))
        for assessment in assessments
        for item in assessment.tables
        if not item.exact
    ]
    return (
        [Fold(title="Cells that did not change, by table", blocks=(Facts(rows=tuple(rows)),))] if rows else []
    )


def _count_unchanged(pair: TablePair) -> str:
    """Return how many cells with records kept their count, and how many empty ones were filled."""
    reference, protected = pair.arrays()
    held = reference > 0
    kept = int((reference == protected)[held].sum())
    filled = int((protected[~held] > 0).sum())
    share = (
        f"{100 * kept / held.sum():.0f}% of the {int(held.sum()):,} cells with records in the census"
        if held.any()
        else ""
    )
    first = f"{share} did not change" if share else "The census has no records here"
    return f"{first}; {filled:,} empty cells got records."


def _metric_table(assessment: Assessment) -> Block:
    wanted = [
        "MAE",
        "RMSE",
        "MAPE (paper)",
        "bias",
        "TVD",
        "cells emptied",
        "cells filled",
    ]
    frame = assessment.metrics().filter(pl.col("metric").is_in(wanted))
    wide = frame.pivot(
        on="metric", index=["table", "size", "cells"], values="value", aggregate_function="first"
    )
    wide = wide.group_by("table", "size", maintain_order=True).agg(
        pl.col("cells").max(), pl.exclude("cells").drop_nulls().first()
    )
    columns = ["table", "size", "cells", *[name for name in wanted if name in wide.columns]]
    rows = wide.select(columns).rows()
    return make_table(
        f"Metrics of the counts of {assessment.name}", columns, rows, numeric=columns[2:], digits=2
    )


def write_relations(found: Sequence[tuple[str, RelationAssessment]]) -> Section:
    """Write the section on associations before and after, split by whether the mechanism keeps them."""
    eroded = [(name, r) for name, r in found if not r.kept]
    lead = "The mechanism keeps every relation that was looked at."
    if eroded:
        name, worst = min(
            eroded, key=lambda item: item[1].protected / item[1].original if item[1].original else 1.0
        )
        share = worst.protected / worst.original if worst.original else 1.0
        lead = (
            f"The association of {worst.first} with {worst.second} among {worst.about} suffers most: {name} leaves "
            f"{100 * share:.0f}% of its strength (Cramér's V from {format_error(worst.original)} to "
            f"{format_error(worst.protected)})."
        )
    rows = [
        [name, r.first, r.second, r.about, r.original, r.protected, "kept" if r.kept else "eroded"]
        for name, r in found
    ]
    block = make_table(
        "Cramér's V before and after",
        ["release", "first", "second", "among", "original", "protected", "by the mechanism"],
        rows,
        numeric=["original", "protected"],
        digits=2,
    )
    return Section(title="Relations between variables", lead=lead, blocks=(block,), folded=True)


def write_conclusions(found: Sequence[tuple[str, Conclusions]]) -> Section:
    """Write the section on segregation, districts and regressions, before and after."""
    changes = [(name, change) for name, item in found for change in item.changes]
    fits = [(name, fit) for name, item in found for fit in item.coefficients]
    blocks: list[Block] = []
    lead = "No conclusion that was looked at changes."
    moved = [(name, c) for name, c in changes if c.original and c.original != c.protected]
    if moved:
        name, worst = max(moved, key=lambda item: abs(item[1].protected / item[1].original - 1))
        share = format_error(100 * (worst.protected / worst.original - 1), signed=True)
        before, after = (
            format_beside_error(number, worst.change) for number in (worst.original, worst.protected)
        )
        moved_by = f"by {share}% in {name} ({before} to {after})"
        lead = f"This number changes most: {worst.label}, {moved_by}."
    if changes:
        # one question after the other, with the answers of all releases that were asked
        order = list(dict.fromkeys(c.label for _, c in changes))
        changes.sort(key=lambda item: order.index(item[1].label))
        rows = [
            [
                *(c.what, c.about, name),
                *(format_beside_error(number, c.change) for number in (c.original, c.protected)),
                format_error(c.change, signed=True),
            ]
            for name, c in changes
        ]
        columns = ["what", "among", "release", "original", "protected", "change"]
        blocks.append(make_table("Numbers users would publish", columns, rows, numeric=columns[3:]))
    if fits:
        rows = [
            [
                *(n, f.model, f.about, f.original.name),
                *(format_beside_error(number.value, number.error) for number in (f.original, f.protected)),
                *(format_error(number) for number in (f.protected.error, f.overlap)),
            ]
            for n, f in fits
        ]
        columns = [
            "release",
            "model",
            "among",
            "coefficient",
            "original",
            "protected",
            "standard error",
            "overlap of intervals",
        ]
        blocks.append(make_table("Regressions, robust 95% intervals", columns, rows, numeric=columns[4:]))
    odd = [[name, o.name, o.reference, o.protected] for name, item in found for o in item.oddities]
    if odd:
        columns = ["release", "kind of area", "original", "protected"]
        blocks.append(make_table("Impossible and improbable areas", columns, odd, numeric=columns[2:]))
    return Section(title="What users would conclude", lead=lead, blocks=tuple(blocks), folded=True)


def write_truth_sections(
    assessments: Sequence[Assessment],
    *,
    ground: Ground | None = None,
    tables: Mapping[str, Tables] | None = None,
) -> list[Section]:
    """Return every section that compares with the truth, for one or more releases."""
    parts = [write_utility(assessments, ground, tables)]
    found = [(a.name, relation) for a in assessments for relation in a.relations]
    if found:
        parts.append(write_relations(found))
    concluded = [(a.name, a.conclusions) for a in assessments if a.conclusions != Conclusions()]
    if concluded:
        parts.append(write_conclusions(concluded))
    return parts
