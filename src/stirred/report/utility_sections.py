"""Report sections on errors: by table and size, scatter plots, tiles and relations. Internal."""

from collections.abc import Sequence

import polars as pl

from stirred.assess.assessment import Assessment, RelationAssessment
from stirred.assess.conclusions import Conclusions
from stirred.assess.utility.tables import TablePair
from stirred.mechanisms.exhibits import as_error, beside
from stirred.report import charts, errors
from stirred.report.charts.spatial import Ground
from stirred.report.document import Block, Facts, Note, Paragraphs, Section, table

METRICS = {
    "MAE": "mean absolute error, the mean of |protected − original|",
    "RMSE": "root of the mean squared error",
    "MAPE (paper)": "mean of |protected − original| / original, cells with records only",
    "bias": "mean of protected − original",
    "TVD": "total variation distance: the share of the table that would have to move to undo the change",
}  # what the heads of the table of metrics mean


def utility(assessments: Sequence[Assessment], ground: Ground | None = None) -> Section:
    """Errors by table and size class; one colour for each release. Internal."""
    rows = []
    for assessment in assessments:
        frame = assessment.metrics()
        overall = frame.filter((pl.col("metric") == "MAE") & (pl.col("size") == "all"))
        rows += [
            {"table": name, "mean absolute error": value, "release": assessment.name}
            for name, value in overall.select("table", "value").rows()
        ]
    blocks: list[Block] = []
    lead = "No table was held against the truth."
    if rows:
        worst = max(rows, key=lambda row: float(str(row["mean absolute error"])))
        lead = (
            f"The largest mean absolute error is {as_error(float(str(worst['mean absolute error'])))} a cell, "
            f"in {worst['table']} of {worst['release']}."
        )
        blocks.append(
            charts.dots(
                "error-by-table",
                "Mean absolute error by table.",
                "Invariant tables have none and are listed apart.",
                rows,
                category="table",
                value="mean absolute error",
                group="release",
            )
        )
    blocks += _kept(assessments)
    blocks += errors.by_size(assessments)
    blocks += errors.by_area(assessments, ground or Ground())
    blocks += [note for assessment in assessments for note in _exact(assessment)]
    measured = [_metric_table(assessment) for assessment in assessments if assessment.metrics().height]
    blocks += measured
    if measured:
        blocks.append(Paragraphs(paragraphs=("; ".join(f"{k}: {v}" for k, v in METRICS.items()) + ".",)))
    return Section(title="How far the numbers moved", lead=lead, blocks=tuple(blocks))


def _exact(assessment: Assessment) -> list[Note]:
    """The tables of one release that equal the truth: those that had to, those by chance, and those that should have."""
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


def _kept(assessments: Sequence[Assessment]) -> list[Block]:
    """For each release, in its largest table that is not exact, how many cells kept their count."""
    rows = []
    for assessment in assessments:
        items = [item for item in assessment.tables if not item.exact]
        if items:
            item = max(items, key=lambda one: one.pair.frame.height)
            rows.append((f"{assessment.name}, {item.name}", _unchanged(item.pair)))
    return [Facts(rows=tuple(rows))] if rows else []


def _unchanged(pair: TablePair) -> str:
    """How many cells with records kept their count, and how many empty ones did not stay empty."""
    reference, protected = pair.arrays()
    held = reference > 0
    kept = int((reference == protected)[held].sum())
    filled = int((protected[~held] > 0).sum())
    share = (
        f"{100 * kept / held.sum():.0f} % of the {int(held.sum()):,} cells with records in the census"
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
    return table(f"Metrics of {assessment.name}", columns, rows, numeric=columns[2:], digits=2)


def relations(found: Sequence[tuple[str, RelationAssessment]]) -> Section:
    """Associations before and after, split into those that the mechanism keeps and those that it erodes."""
    eroded = [(name, r) for name, r in found if not r.kept]
    lead = "The mechanism keeps every relation that was looked at."
    if eroded:
        name, worst = min(
            eroded, key=lambda item: item[1].protected / item[1].original if item[1].original else 1.0
        )
        share = worst.protected / worst.original if worst.original else 1.0
        lead = (
            f"The association of {worst.first} with {worst.second} among {worst.about} suffers most: {name} leaves "
            f"{100 * share:.0f} % of its strength (Cramér's V from {as_error(worst.original)} to "
            f"{as_error(worst.protected)})."
        )
    rows = [
        [name, r.first, r.second, r.about, r.original, r.protected, "kept" if r.kept else "eroded"]
        for name, r in found
    ]
    block = table(
        "Cramér's V before and after",
        ["release", "first", "second", "among", "original", "protected", "by the mechanism"],
        rows,
        numeric=["original", "protected"],
        digits=2,
    )
    return Section(title="Relations between variables", lead=lead, blocks=(block,))


def conclusions(found: Sequence[tuple[str, Conclusions]]) -> Section:
    """Segregation, districts, regressions: what users would write down before and after."""
    changes = [(name, change) for name, item in found for change in item.changes]
    fits = [(name, fit) for name, item in found for fit in item.coefficients]
    blocks: list[Block] = []
    lead = "No conclusion that was looked at changes."
    moved = [(name, c) for name, c in changes if c.original and c.original != c.protected]
    if moved:
        name, worst = max(moved, key=lambda item: abs(item[1].protected / item[1].original - 1))
        share = as_error(100 * (worst.protected / worst.original - 1), signed=True)
        before, after = (beside(number, worst.change) for number in (worst.original, worst.protected))
        moved_by = f"by {share} % in {name} ({before} to {after})"
        lead = f"This number changes most: {worst.label}, {moved_by}."
    if changes:
        # one question after the other, with the answers of all releases that were asked
        order = list(dict.fromkeys(c.label for _, c in changes))
        changes.sort(key=lambda item: order.index(item[1].label))
        rows = [
            [
                *(c.what, c.about, name),
                *(beside(number, c.change) for number in (c.original, c.protected)),
                as_error(c.change, signed=True),
            ]
            for name, c in changes
        ]
        columns = ["what", "among", "release", "original", "protected", "change"]
        blocks.append(table("Numbers users would publish", columns, rows, numeric=columns[3:]))
    if fits:
        rows = [
            [
                *(n, f.model, f.about, f.original.name),
                *(beside(number.value, number.error) for number in (f.original, f.protected)),
                *(as_error(number) for number in (f.protected.error, f.overlap)),
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
        blocks.append(table("Regressions, robust 95 % intervals", columns, rows, numeric=columns[4:]))
    odd = [[name, o.name, o.reference, o.protected] for name, item in found for o in item.oddities]
    if odd:
        columns = ["release", "kind of area", "original", "protected"]
        blocks.append(table("Impossible and improbable areas", columns, odd, numeric=columns[2:]))
    return Section(title="What users would conclude", lead=lead, blocks=tuple(blocks))


def all_sections(assessments: Sequence[Assessment], *, ground: Ground | None = None) -> list[Section]:
    """Every section that compares with the truth, for one or more releases."""
    parts = [utility(assessments, ground)]
    found = [(a.name, relation) for a in assessments for relation in a.relations]
    if found:
        parts.append(relations(found))
    concluded = [(a.name, a.conclusions) for a in assessments if a.conclusions != Conclusions()]
    if concluded:
        parts.append(conclusions(concluded))
    return parts
