"""The charts of the report, as Vega-Lite specifications; colours come from the page, which knows day, night and print."""

from collections.abc import Mapping, Sequence

from stirred.languages import Phrase
from stirred.mechanisms.exhibits import format_beside_error
from stirred.report.document import Chart, make_table

Rows = Sequence[Mapping[str, object]]
Spec = dict[str, object]


def make_spec(marks: Spec, rows: Sequence[Mapping[str, object]], *, height: int) -> Spec:
    """Return a specification that fills the column's width, with a fixed height."""
    return {"data": {"values": [dict(row) for row in rows]}, "width": "container", "height": height, **marks}


def quantity(field: str, title: str, **more: object) -> Spec:
    """Return a numeric channel."""
    return {"field": field, "type": "quantitative", "title": title, **more}


def _names(field: str, title: str | None, **more: object) -> Spec:
    return {"field": field, "type": "nominal", "title": title, "sort": None, **more}


def _tip(field: str, title: str, form: str = "") -> Spec:
    kind = {"type": "quantitative", "format": form} if form else {"type": "nominal"}
    return {"field": field, "title": title, **kind}


def _rows(rows: Rows, category: str, value: str, group: str | None) -> list[Spec]:
    """Return the same rows under short names, which no title can break."""
    return [
        {"c": row[category], "v": row[value], **({"g": row[group]} if group else {})}
        for row in rows
        if row[value] is not None
    ]


def _category(title: str | None = None) -> Spec:
    return _names("c", title, axis={"labelLimit": 280, "grid": True})


def bars(
    name: str, title: str, sentence: str, rows: Rows, *, category: str, value: str, group: str | None = None
) -> Chart:
    """Draw grouped horizontal bars: one entry for each category, one colour for each group."""
    channels: Spec = {
        "y": _category(),
        "x": quantity("v", value),
        "tooltip": [_tip("c", category), _tip("v", value, ",.3~g")],
    }
    if group:
        channels |= {"yOffset": {"field": "g", "sort": None}, "color": _names("g", group)}
    height = max(90, _number(rows, category) * (10 + 14 * (_number(rows, group) if group else 1)))
    columns = [category, *([group] if group else []), value]
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=make_spec(
            {"mark": "bar", "encoding": channels}, _rows(rows, category, value, group), height=height
        ),
        data=make_table(
            title, columns, [[row[c] for c in columns] for row in rows], numeric=[value], digits=2
        ),
    )


def dots(name: str, title: str, sentence: str, rows: Rows, *, category: str, value: str, group: str) -> Chart:
    """Draw one dot for each category and group, on a symmetric logarithmic axis that shows zero and thousands."""
    channels: Spec = {
        "y": _category(),
        "x": quantity("v", value, **from_zero([float(str(row[value])) for row in rows])),
        "color": _names("g", group),
        "shape": _names("g", group),
        "tooltip": [_tip("c", category), _tip("g", group), _tip("v", value, ",.3~g")],
    }
    columns = [category, group, value]
    mark = {"type": "point", "filled": True, "size": 110, "opacity": 0.9}
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=make_spec(
            {"mark": mark, "encoding": channels},
            _rows(rows, category, value, group),
            height=max(110, 34 * _number(rows, category)),
        ),
        data=make_table(
            title, columns, [[row[c] for c in columns] for row in rows], numeric=[value], digits=2
        ),
    )


def _number(rows: Rows, name: str | None) -> int:
    return len({row[name] for row in rows}) if name else 1


def from_zero(values: Sequence[float], constant: float = 0.1) -> Spec:
    """Return a symmetric logarithmic scale from zero, with marks at zero and at powers of ten."""
    largest = max([constant, *(value for value in values if value == value)])
    ticks, power = [0.0], constant
    while power <= largest:
        ticks.append(round(power, 6))
        power *= 10
    return {
        "scale": {"type": "symlog", "constant": constant, "nice": False, "domain": [0, 1.25 * largest]},
        "axis": {"values": ticks, "format": ",.4~r"},
    }


def ranges(
    name: str,
    title: str,
    sentence: str,
    rows: Rows,
    *,
    category: str,
    value: str,
    group: str,
    columns: Sequence[str],
) -> Chart:
    """Draw the middle (point) and a range (line) in per cent, from zero, for each category and group.

    A row has category, group, low, middle and high; ``columns`` are the titles of the last three in the table below.
    """
    rows = [row for row in rows if row["middle"] is not None]
    data = [
        {
            "c": row[category],
            "g": row[group],
            **{name: round(float(str(row[name])), 4) for name in ("low", "middle", "high")},
        }
        for row in rows
    ]
    offset: Spec = {"field": "g", "sort": None}
    shared: Spec = {"y": _category(category), "yOffset": offset}
    scale = from_zero([float(str(row["high"])) for row in rows])
    tips = [_tip("c", category), _tip("g", group)]
    tips += [
        _tip(field, shown, ",.2~r") for field, shown in zip(("low", "middle", "high"), columns, strict=True)
    ]
    line: Spec = {
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.55},
        "encoding": {
            "x": quantity("low", value, **scale),
            "x2": {"field": "high"},
            "stroke": _names("g", group, legend=None),
        },
    }
    point: Spec = {
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
        "encoding": {
            "x": quantity("middle", value, **scale),
            "color": _names("g", group),
            "shape": _names("g", group),
            "tooltip": tips,
        },
    }
    titles = [category, group, *columns]
    below = [[row[category], row[group], row["low"], row["middle"], row["high"]] for row in rows]
    step = 12 + 16 * _number(rows, group)
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=make_spec(
            {"layer": [line, point], "encoding": shared},
            data,
            height=max(110, _number(rows, category) * step),
        ),
        data=make_table(title, titles, below, numeric=list(columns), digits=2),
    )


def intervals(name: str, title: str, sentence: str, rows: Rows, *, label: str) -> Chart:
    """Draw published numbers (points), estimates (ticks) and their intervals (rules), with a legend."""
    published, estimated = Phrase("report.chart.published"), Phrase("report.chart.estimated")
    data = [
        {
            "c": row[label],
            "published": row["published"],
            **{name: round(float(str(row[name])), 2) for name in ("estimate", "low", "high")},
        }
        for row in rows
    ]
    count, cell = Phrase("report.chart.count"), Phrase("report.chart.cell")
    axis = quantity("low", count, scale={"zero": False, "nice": True})
    tips = [_tip("c", cell), _tip("published", published, ",")]
    tips += [_tip(field, Phrase(f"report.chart.{field}"), ",.1f") for field in ("estimate", "low", "high")]
    first: Spec = {"datum": published, "type": "nominal", "title": None}
    second: Spec = {"datum": estimated, "type": "nominal", "title": None}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 2.5},
            "encoding": {"x": axis, "x2": {"field": "high"}, "color": second},
        },
        {
            "mark": {"type": "tick", "thickness": 3, "size": 14},
            "encoding": {"x": quantity("estimate", count), "color": second, "tooltip": tips},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1},
            "encoding": {"x": quantity("published", count), "color": first, "tooltip": tips},
        },
    ]
    columns = [label, "published", "estimate", "low", "high"]
    below = [[row[label], row["published"], *_write_interval(row)] for row in rows]
    titles = [cell, published, *(Phrase(f"report.chart.{field}") for field in columns[2:])]
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=make_spec(
            {"layer": layers, "encoding": {"y": _category()}}, data, height=max(90, 22 * len(rows))
        ),
        data=make_table(title, titles, below, numeric=titles[1:]),
    )


def _write_interval(row: Mapping[str, object]) -> list[str]:
    """Estimate and interval, down to the last digit of the standard error that the interval's width shows."""
    estimate, low, high = (float(str(row[name])) for name in ("estimate", "low", "high"))
    return [format_beside_error(number, (high - low) / 4) for number in (estimate, low, high)]


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
    """Draw one or more curves."""
    scales = {True: {"type": "log", "nice": False}, False: {"type": "linear", "nice": False}}
    channels: Spec = {
        "x": quantity("c", x, scale=scales[log_x]),
        "y": quantity("v", y, scale=scales[log_y] if log_y else {"type": "linear"}),
        "tooltip": [_tip("c", x, ",.5~g"), _tip("v", y, ",.3~g")],
    }
    if group:
        channels["color"] = _names("g", group)
    columns = [*([group] if group else []), x, y]
    mark = {"type": "line", "point": len(rows) < 60}
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=make_spec({"mark": mark, "encoding": channels}, _rows(rows, x, y, group), height=300),
        data=make_table(title, columns, [[row[c] for c in columns] for row in rows], numeric=[x, y]),
    )
