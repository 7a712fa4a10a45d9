"""Draws what a mechanism shows of itself: any exhibit becomes a section of the report."""

from stirred.mechanisms.exhibits import Exhibit, Listing, Series
from stirred.report import charts
from stirred.report.document import Block, Chart, Note, Section, make_table


def draw_exhibit(exhibit: Exhibit, *, mark: str = "") -> Section:
    """Return the section of an exhibit; ``mark`` keeps the charts of two mechanisms apart.

    >>> draw_exhibit(Exhibit(title="Noise", finding="Its variance is 4.")).lead
    'Its variance is 4.'
    """
    blocks: list[Block] = [
        make_table(part.caption, part.columns, part.rows, numeric=part.numeric)
        if isinstance(part, Listing)
        else _chart(part, mark)
        for part in exhibit.parts
    ]
    if exhibit.note:
        blocks.append(Note(text=exhibit.note, tone="plain"))
    return Section(title=exhibit.title, lead=exhibit.finding, blocks=tuple(blocks), chapter=exhibit.chapter)


def _chart(series: Series, mark: str) -> Chart:
    named = (series.name + mark, series.title, series.sentence, list(series.rows))
    if series.kind == "line":
        return charts.lines(*named, x=series.x, y=series.y, group=series.group, log_x=series.log_x)
    return charts.dots(*named, category=series.x, value=series.y, group=series.group or series.x)
