"""The charts of the report, as Vega-Lite specifications made with Altair."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stirred.extras import OptionalModule
from stirred.report.document import Chart, table

if TYPE_CHECKING:
    import altair as alt
else:
    alt = OptionalModule("altair", "report", why="charts are drawn with it")

# Okabe and Ito's palette: its colours can be distinguished with every common colour vision.
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#999999"]
Rows = Sequence[Mapping[str, object]]


def _chart(rows: Rows) -> "alt.Chart":
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]))


def _spec(chart: Any, *, height: int | None = None) -> dict[str, object]:
    """Fill the column's width; a fixed height keeps the page steady while charts draw."""
    properties: dict[str, Any] = {"width": "container"}
    if height is not None:
        properties["height"] = height
    result: dict[str, object] = chart.properties(**properties).to_dict()
    result.pop("$schema", None)
    result.pop("config", None)
    return result


def _colour(field: str, title: str) -> "alt.Color":
    return alt.Color(f"{field}:N", title=title, scale=alt.Scale(range=PALETTE), sort=None)


def bars(
    name: str, title: str, sentence: str, rows: Rows, *, category: str, value: str, group: str | None = None
) -> Chart:
    """Grouped horizontal bars: one entry for each category, one colour for each group."""
    encoding: dict[str, Any] = {
        "y": alt.Y(f"{category}:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)),
        "x": alt.X(f"{value}:Q", title=value),
        "tooltip": [alt.Tooltip(f"{c}:N") for c in (category, group) if c]
        + [alt.Tooltip(f"{value}:Q", format=",.5~g")],
    }
    if group:
        encoding["yOffset"] = alt.YOffset(f"{group}:N", sort=None)
        encoding["color"] = _colour(group, group)
    categories = len({row[category] for row in rows})
    groups = len({row[group] for row in rows}) if group else 1
    height = max(90, categories * (10 + 14 * groups))
    columns = [category, *([group] if group else []), value]
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=_spec(_chart(rows).mark_bar(color=PALETTE[0]).encode(**encoding), height=height),
        data=table(title, columns, [[row[c] for c in columns] for row in rows], numeric=[value]),
    )


def dots(name: str, title: str, sentence: str, rows: Rows, *, category: str, value: str, group: str) -> Chart:
    """One dot for each category and group, on a symmetric logarithmic axis that shows zero and thousands."""
    largest = max([0.1, *(float(str(row[value])) for row in rows)])
    scale = alt.Scale(type="symlog", constant=0.1, nice=False, domain=[0, 1.25 * largest])
    base = _chart(rows).encode(
        y=alt.Y(f"{category}:N", sort=None, title=None, axis=alt.Axis(labelLimit=260, grid=True)),
        x=alt.X(
            f"{value}:Q", title=value, scale=scale, axis=alt.Axis(values=_ticks(rows, value), format=",.4~r")
        ),
        color=_colour(group, group),
        shape=alt.Shape(f"{group}:N", sort=None, title=group),
        tooltip=[
            alt.Tooltip(f"{category}:N"),
            alt.Tooltip(f"{group}:N"),
            alt.Tooltip(f"{value}:Q", format=",.4~g"),
        ],
    )
    columns = [category, group, value]
    height = max(110, 34 * len({row[category] for row in rows}))
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=_spec(base.mark_point(filled=True, size=110, opacity=0.9), height=height),
        data=table(title, columns, [[row[c] for c in columns] for row in rows], numeric=[value]),
    )


def _ticks(rows: Rows, value: str) -> list[float]:
    """Zero and the powers of ten that the values reach."""
    largest = max([0.0, *(float(str(row[value])) for row in rows)])
    ticks, power = [0.0], 0.1
    while power <= largest:
        ticks.append(power)
        power *= 10
    return [round(tick, 6) for tick in ticks]


def intervals(name: str, title: str, sentence: str, rows: Rows, *, label: str) -> Chart:
    """Published numbers (points), estimates (ticks) and their intervals (rules)."""
    base = _chart(rows).encode(y=alt.Y(f"{label}:N", sort=None, title=None, axis=alt.Axis(labelLimit=260)))
    rule = base.mark_rule(strokeWidth=2, color=PALETTE[0]).encode(
        x=alt.X("low:Q", title="count"), x2="high:Q"
    )
    tick = base.mark_tick(thickness=3, size=14, color=PALETTE[0]).encode(
        x="estimate:Q",
        tooltip=[
            alt.Tooltip(f"{label}:N"),
            *(alt.Tooltip(f"{c}:Q", format=",.1f") for c in ("estimate", "low", "high")),
        ],
    )
    point = base.mark_point(filled=True, size=50, color=PALETTE[1], opacity=1).encode(
        x="published:Q", tooltip=[alt.Tooltip(f"{label}:N"), alt.Tooltip("published:Q", format=",")]
    )
    columns = [label, "published", "estimate", "low", "high"]
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=_spec(rule + tick + point, height=max(90, 22 * len(rows))),
        data=table(title, columns, [[row[c] for c in columns] for row in rows], numeric=columns[1:]),
    )


def scatter(name: str, title: str, sentence: str, rows: Rows, *, group: str | None = None) -> Chart:
    """Protected against original counts on square-root axes (zeros have a place), with the line of equality."""
    top = max([1.0, *(float(str(row[c])) for row in rows for c in ("original", "protected"))])
    scale = alt.Scale(type="sqrt", domain=[0, top], nice=True)
    points = _chart(rows).mark_circle(size=26, opacity=0.55, color=PALETTE[0])
    encoding: dict[str, Any] = {
        "x": alt.X("original:Q", scale=scale, title="original count"),
        "y": alt.Y("protected:Q", scale=scale, title="protected count"),
        "tooltip": [alt.Tooltip("cell:N"), alt.Tooltip("original:Q"), alt.Tooltip("protected:Q")],
    }
    if group:
        encoding["color"] = _colour(group, group)
    line = alt.Chart(alt.InlineData(values=[{"v": 0.0}, {"v": top}])).mark_line(
        strokeDash=[5, 4], strokeWidth=1, color="#888888"
    )
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=_spec(
            line.encode(x=alt.X("v:Q", scale=scale), y=alt.Y("v:Q", scale=scale)) + points.encode(**encoding),
            height=380,
        ),
    )


def boxes(
    name: str, title: str, sentence: str, rows: Rows, *, category: str, value: str, group: str | None = None
) -> Chart:
    """Five-number summaries, already computed (low, q1, median, q3, high), as boxplots."""
    base = _chart(rows).encode(
        x=alt.X(f"{category}:N", sort=None, title=category, axis=alt.Axis(labelAngle=0))
    )
    if group:
        base = base.encode(xOffset=alt.XOffset(f"{group}:N", sort=None), color=_colour(group, group))
    whisker = base.mark_rule().encode(y=alt.Y("low:Q", title=value), y2="high:Q")
    box = base.mark_bar(size=14, opacity=0.75).encode(y="q1:Q", y2="q3:Q")
    middle = base.mark_tick(thickness=2, size=14).encode(y="median:Q")
    if not group:
        box, middle = base.mark_bar(size=18, color=PALETTE[0]).encode(y="q1:Q", y2="q3:Q"), middle
    columns = [category, *([group] if group else []), "low", "q1", "median", "q3", "high"]
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=_spec(whisker + box + middle, height=300),
        data=table(title, columns, [[row[c] for c in columns] for row in rows], numeric=columns[-5:]),
    )


def lines(
    name: str,
    title: str,
    sentence: str,
    rows: Rows,
    *,
    x: str,
    y: str,
    group: str | None = None,
    log_x: bool = False,
    log_y: bool = False,
) -> Chart:
    """One or more curves."""
    encoding: dict[str, Any] = {
        "x": alt.X(f"{x}:Q", title=x, scale=alt.Scale(type="log" if log_x else "linear", nice=False)),
        "y": alt.Y(f"{y}:Q", title=y, scale=alt.Scale(type="log" if log_y else "linear")),
        "tooltip": [alt.Tooltip(f"{c}:Q", format=",.5~g") for c in (x, y)],
    }
    if group:
        encoding["color"] = _colour(group, group)
    columns = [*([group] if group else []), x, y]
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=_spec(
            _chart(rows).mark_line(point=len(rows) < 60, color=PALETTE[0]).encode(**encoding), height=300
        ),
        data=table(title, columns, [[row[c] for c in columns] for row in rows], numeric=[x, y]),
    )


def tiles(name: str, title: str, sentence: str, rows: Rows, *, value: str, columns: int = 24) -> Chart:
    """Areas as a grid of tiles in the order of their codes, coloured by a signed value: a map without borders."""
    placed = [{**row, "_x": i % columns, "_y": i // columns} for i, row in enumerate(rows)]
    largest = max([1e-9, *(abs(float(str(row[value]))) for row in rows)])
    chart = (
        _chart(placed)
        .mark_rect(stroke="#88888844", strokeWidth=0.5)
        .encode(
            x=alt.X("_x:O", axis=None),
            y=alt.Y("_y:O", axis=None),
            color=alt.Color(
                f"{value}:Q",
                title=value,
                scale=alt.Scale(scheme="blueorange", domain=[-largest, largest], domainMid=0),
            ),
            tooltip=[alt.Tooltip("area:N"), alt.Tooltip(f"{value}:Q", format=",.4~g")],
        )
    )
    height = 18 * max(1, -(-len(rows) // columns))
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=_spec(chart, height=height),
        data=table(title, ["area", value], [[row["area"], row[value]] for row in rows], numeric=[value]),
    )
