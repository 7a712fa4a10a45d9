"""Write the section on published numbers: their uncertainty by size, in large and small cells, and by area."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from stirred.languages import Phrase
from stirred.mechanisms.effect import CLASS_NAMES, NOMINAL_PERCENT, TRUE_SIZE_COVERAGE, write_range
from stirred.mechanisms.registry import list_coverage_of
from stirred.report import charts
from stirred.report.accuracy import (
    PublishedTable,
    Tables,
    detail_intervals,
    list_outside,
    read_published,
    round_up,
    size_names,
)
from stirred.report.charts import Ground, areas
from stirred.report.document import (
    Block,
    Chart,
    Fold,
    Note,
    Paragraphs,
    Section,
    make_table,
    percent,
)

MAX_CELLS_DRAWN = 10  # cells that are drawn of each kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """The words for codes of each variable and of its levels."""

    variables: Mapping[str, str] = field(default_factory=dict)
    levels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def cell(self, by: Sequence[str]) -> pl.Expr:
        """Return the cell in words."""
        parts = [
            pl.col(name).cast(pl.String).replace(dict(self.levels.get(name, {}))).fill_null("–")
            for name in by
        ]
        return pl.concat_str(parts, separator=" · ") if parts else pl.lit("–")

    def level(self, variable: str, code: object) -> str:
        return dict(self.levels.get(variable, {})).get(str(code), str(code))


def write_published(
    tables: Tables,
    *,
    labels: Labels | None = None,
    ground: Ground | None = None,
    methods: Sequence[str] = (),
) -> Section:
    """Write the section on published tables and their uncertainty, from public numbers alone.

    ``methods`` are the names of the mechanisms that made the tables: what was measured of others is left out.
    """
    labels = labels or Labels()
    found = read_published(tables)
    noisy = [one for one in found if not one.has_no_error]
    blocks: list[Block] = []
    if any(one.uncertain().height for one in noisy):
        blocks.append(Note(text=Phrase("report.published.quote"), tone="plain"))
        blocks.append(detail_intervals(noisy))
        if outside := list_outside({"": tables}):
            blocks.append(Note(text=outside))
        blocks.append(_by_size(noisy))
        blocks += _coverage(methods)
    certain = tuple(one.name for one in noisy if not one.uncertain().height)
    if certain:
        blocks.append(Note(text=Phrase("report.published.certain", tables=certain), tone="good"))
    blocks += [
        Fold(title=Phrase("report.published.cells", table=one.name), blocks=tuple(_cells(one, labels)))
        for one in noisy
        if one.name not in certain
    ]
    if ground is not None:
        blocks += draw_uncertain_areas(noisy, labels, ground)
    blocks += [
        Fold(title=Phrase("report.published.cells", table=one.name), blocks=(_plain(one, labels),))
        for one in found
        if one.has_no_error
    ]
    return Section(
        title=Phrase("report.published.title"),
        lead=_lead(found, noisy),
        blocks=tuple(blocks),
        chapter="accuracy",
    )


def _lead(found: Sequence[PublishedTable], noisy: Sequence[PublishedTable]) -> str:
    """Name the tables that are exact, and the one whose counts lie outside their intervals most often."""
    if not found:
        return Phrase("report.published.none")
    if not noisy:
        return Phrase("report.published.unstated")
    certain = sum(not one.uncertain().height for one in noisy)
    if certain == len(noisy):
        return Phrase("report.published.exact")
    return Phrase("report.published.lead", certain=certain, tables=len(noisy))


def _by_size(found: Sequence[PublishedTable]) -> Chart:
    """Draw the reach of intervals in per cent of the estimate, by table and published count; 0 has no per cent."""
    rows: list[dict[str, object]] = []
    size, name = Phrase("report.chart.size"), Phrase("report.chart.table")
    cells = [(one.name, one.uncertain().sort("share")) for one in found]
    for index, label in list(enumerate(size_names()))[1:]:
        for shown, frame in cells:
            shares = 100 * frame.filter(pl.col("class") == index)["share"].to_numpy()
            if shares.size:
                low, middle, high = np.interp([0.1, 0.5, 0.9], np.linspace(0, 1, shares.size), shares)
                rows.append({size: label, name: shown, "low": low, "middle": middle, "high": high})
    columns = [Phrase(f"report.chart.{part}") for part in ("tenth", "half", "ninety")]
    return charts.ranges(
        "uncertainty-by-size",
        Phrase("report.published.by_size"),
        Phrase("report.published.by_size_words"),
        rows,
        category=size,
        value=Phrase("report.chart.share"),
        group=name,
        columns=columns,
    )


def _coverage(methods: Sequence[str]) -> list[Block]:
    """Return how many of 100 intervals held the true number, by method, level and published size, where it was measured."""
    columns = [Phrase("report.coverage.method"), Phrase("report.coverage.level"), *CLASS_NAMES]
    rows = [
        [
            Phrase(f"report.coverage.{one.key}"),
            Phrase(f"report.coverage.{level.replace(' ', '_')}"),
            *map(write_range, row),
        ]
        for one in list_coverage_of(methods)
        for level, row in one.levels.items()
    ]
    if not rows:
        return [Paragraphs(paragraphs=(Phrase("report.coverage.unmeasured", nominal=NOMINAL_PERCENT),))]
    fewest, most = TRUE_SIZE_COVERAGE
    words = Phrase("report.coverage.words", nominal=NOMINAL_PERCENT, fewest=fewest, most=most)
    caption = Phrase("report.coverage.caption")
    shown = make_table(caption, columns, rows, numeric=columns[2:])
    return [Fold(title=caption, blocks=(shown, Paragraphs(paragraphs=(words,))))]


def _cells(one: PublishedTable, labels: Labels) -> list[Block]:
    """Draw the largest cells and small ones, each on an axis of its own."""
    frame = one.frame.with_columns(
        labels.cell(one.by).alias("cell"), pl.col(one.measure).alias("published")
    ).sort("estimate", "cell", descending=[True, False])
    uncertain = frame.filter(pl.col("standard_error") > 0)
    blocks: list[Block] = []
    large = frame.head(MAX_CELLS_DRAWN)
    share = uncertain.height / max(frame.height, 1)
    words = Phrase(
        "report.published.uncertain", number=uncertain.height, cells=frame.height, percent=percent(share)
    )
    blocks.append(_draw_cells(one, large, "large", words))
    rest = uncertain.filter(pl.col("estimate") < pl.lit(large["estimate"].min()))
    some = rest.filter(pl.col("estimate") >= 1)  # most cells of a large table are nearly empty
    small = some if some.height >= MAX_CELLS_DRAWN else rest
    small = small.tail(small.height // 2)
    if small.height > MAX_CELLS_DRAWN:  # spread over the smaller half, the same every time
        small = small.gather_every(small.height // MAX_CELLS_DRAWN).tail(MAX_CELLS_DRAWN)
    if small.height:
        blocks.append(_draw_cells(one, small, "small", Phrase("report.published.small_words")))
    return blocks


def _draw_cells(one: PublishedTable, frame: pl.DataFrame, kind: str, words: str) -> Chart:
    return charts.intervals(
        f"table-{one.name}-{kind}",
        Phrase(f"report.published.{kind}", table=one.name),
        words,
        frame.rows(named=True),
        label="cell",
    )


def _plain(one: PublishedTable, labels: Labels) -> Block:
    """Return the largest cells of a table without stated error."""
    measures = [name for name in ("count", "weighted") if name in one.frame.columns]
    top = one.frame.sort("count", descending=True).head(2 * MAX_CELLS_DRAWN)
    top = top.select(labels.cell(one.by).alias("cell"), *measures)
    columns = [Phrase("report.chart.cell"), *(Phrase(f"report.chart.{name}") for name in measures)]
    return make_table(
        Phrase("report.published.large", table=one.name), columns, top.rows(), numeric=columns[1:]
    )


def draw_uncertain_areas(found: Sequence[PublishedTable], labels: Labels, ground: Ground) -> list[Block]:
    """Draw the uncertainty of one category of one table, area by area."""
    fitting = [one for one in found if one.by and one.by[0] in ground.levels and len(one.by) <= 2]
    fitting = [one for one in fitting if one.uncertain().height]
    if not fitting:
        return []
    one = min(fitting, key=lambda t: (t.by[0] != ground.drawn_level, len(t.by), -t.uncertain().height))
    cells, what = one.uncertain(), ""
    if len(one.by) == 2:
        most = cells.group_by(one.by[1]).agg(pl.col("estimate").sum()).sort("estimate", one.by[1]).row(-1)[0]
        cells = cells.filter(pl.col(one.by[1]).eq_missing(pl.lit(most)))
        what = labels.level(one.by[1], most)
    values = {str(code): 100 * share for code, share in cells.select(one.by[0], "share").rows()}
    title = Phrase("report.published.areas", table=one.name, area=one.by[0])
    if what:
        title = Phrase("report.published.areas_of", table=one.name, area=one.by[0], what=what)
    sentence = Phrase(
        "report.published.areas_words",
        percent=round_up(float(np.median(list(values.values())))),
        number=len(values),
    )
    drawn = areas(
        "areas-uncertain",
        title,
        sentence,
        values,
        ground=ground,
        level=one.by[0],
        value=Phrase("report.chart.share"),
    )
    return [drawn] if drawn else []
