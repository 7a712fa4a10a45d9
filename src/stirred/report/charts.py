"""Draw the charts of a report as Vega-Lite specifications: marks for numbers, pictures of areas."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from itertools import takewhile
from math import ceil, sqrt

import numpy as np

from stirred.census.geography import BorderLines
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import format_beside_error, round_digits
from stirred.report.document import Chart, make_table

# The charts of the report, as Vega-Lite specifications; colours come from the page, which knows day, night and print.

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
    return _names("c", title, axis={"grid": True})


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


# Risk against error: a point for each release, with its specification on hover, and guesses as lines.

ERROR, RISK = "mean absolute error of a cell", "risk"
MIN_LABEL_DISTANCE = 0.03  # of the whole axis: names of lines nearer than this would overlap


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontierPoint:
    """One release: its method, its setting, its specification in a line, its error and its risk with an interval."""

    method: str
    setting: str
    specification: str
    error: float
    risk: float
    low: float | None = None
    high: float | None = None


def frontier(
    name: str,
    title: str,
    sentence: str,
    points: Sequence[FrontierPoint],
    *,
    risk: str = RISK,
    guesses: Sequence[tuple[str, float]] = (),
    methods: Sequence[str] = (),
) -> Chart:
    """Draw the points, joined by method in the order of their error; ``guesses`` are horizontal lines.

    A method has the same colour in all charts that are given the same ``methods``.
    """
    ordered = sorted(points, key=lambda one: (one.method, one.error))
    rows = [
        {
            "m": one.method,
            "s": one.setting,
            "p": one.specification,
            "e": one.error,
            "r": one.risk,
            **({} if one.low is None or one.high is None else {"l": one.low, "h": one.high}),
        }
        for one in ordered
    ]
    error = quantity("e", ERROR, **from_zero([one.error for one in points]))
    level = quantity("r", risk, scale={"domain": [0, 1]}, axis={"format": ".0%"})
    colour: Spec = {"field": "m", "type": "nominal", "title": "method", "sort": None}
    if methods:
        colour["scale"] = {"domain": list(methods)}
    line: Spec = {**colour, "legend": None}
    tips = [
        {"field": field, "title": shown, "type": "nominal"}
        for field, shown in (("m", "method"), ("s", "setting"), ("p", "specification"))
    ]
    tips += [
        {"field": "e", "title": ERROR, "type": "quantitative", "format": ",.3~g"},
        {"field": "r", "title": risk, "type": "quantitative", "format": ".1%"},
    ]
    layers: list[Spec] = [
        {"mark": {"type": "line", "opacity": 0.35}, "encoding": {"x": error, "y": level, "stroke": line}},
        {
            "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.6},
            "encoding": {"x": error, "y": quantity("l", risk), "y2": {"field": "h"}, "stroke": line},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 110, "opacity": 0.95},
            "encoding": {"x": error, "y": level, "color": colour, "shape": colour, "tooltip": tips},
        },
    ]
    if guesses:
        layers += _lines(guesses)
    columns = ["method", "setting", ERROR, risk, "low", "high", "specification"]
    below = [
        [one.method, one.setting, one.error, one.risk, one.low, one.high, one.specification]
        for one in ordered
    ]
    return Chart(
        name=name,
        title=title,
        sentence=sentence,
        spec=make_spec({"layer": layers, "resolve": {"legend": {"stroke": "independent"}}}, rows, height=380),
        data=make_table(title, columns, below, numeric=columns[2:6], digits=2),
    )


def _lines(guesses: Sequence[tuple[str, float]]) -> list[Spec]:
    data = {"values": [{"g": name, "r": value} for name, value in guesses]}
    words = {"values": [{"g": names, "r": value} for names, value in join_near_labels(guesses)]}
    level: Spec = {"field": "r", "type": "quantitative"}
    tip = [{"field": "g", "title": "guess", "type": "nominal"}, {**level, "format": ".1%", "title": "finds"}]
    return [
        {
            "data": data,
            "mark": {"type": "rule", "strokeDash": [6, 4]},
            "encoding": {"y": level, "tooltip": tip},
        },
        {
            "data": words,
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "bottom",
                "dx": 4,
                "dy": -3,
                "fontSize": 11,
            },
            "encoding": {"y": level, "x": {"value": 0}, "text": {"field": "g"}},
        },
    ]


def join_near_labels(guesses: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Join the names of lines that are so near that their names would overlap.

    >>> join_near_labels([("modal guess", 0.0), ("majority", 0.01), ("the truth", 1.0)])
    [('modal guess, majority', 0.01), ('the truth', 1.0)]
    """
    found: list[tuple[str, float]] = []
    for name, value in sorted(guesses, key=lambda one: one[1]):
        if found and value - found[-1][1] < MIN_LABEL_DISTANCE:
            found[-1] = (f"{found[-1][0]}, {name}", value)
        else:
            found.append((name, value))
    return found


# Places for areas on a page without a map: along a curve that keeps neighbours of the list near each other.


def walk_curve(width: int, height: int) -> Iterator[tuple[int, int]]:
    """Yield every place of a rectangle once, each next to the one before (a generalised Hilbert curve).

    The recursion is J. Červený's generalized Hilbert curve: halve the longer side, walk the halves one after the other.

    >>> list(walk_curve(2, 2))
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    if width >= height:
        yield from _walk(0, 0, width, 0, 0, height)
    else:
        yield from _walk(0, 0, 0, height, width, 0)


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def _half(value: int) -> int:
    """Return half of a signed length, rounded toward minus infinity."""
    return value // 2


def _walk(x: int, y: int, ax: int, ay: int, bx: int, by: int) -> Iterator[tuple[int, int]]:
    """Walk the rectangle spanned by the long side a and the short side b."""
    width, height = abs(ax + ay), abs(bx + by)
    dax, day, dbx, dby = _sign(ax), _sign(ay), _sign(bx), _sign(by)
    if height == 1:
        yield from ((x + i * dax, y + i * day) for i in range(width))
        return
    if width == 1:
        yield from ((x + i * dbx, y + i * dby) for i in range(height))
        return
    ax2, ay2, bx2, by2 = _half(ax), _half(ay), _half(bx), _half(by)
    if 2 * width > 3 * height:
        if abs(ax2 + ay2) % 2 and width > 2:
            ax2, ay2 = ax2 + dax, ay2 + day
        yield from _walk(x, y, ax2, ay2, bx, by)
        yield from _walk(x + ax2, y + ay2, ax - ax2, ay - ay2, bx, by)
        return
    if abs(bx2 + by2) % 2 and height > 2:
        bx2, by2 = bx2 + dbx, by2 + dby
    yield from _walk(x, y, bx2, by2, ax2, ay2)
    yield from _walk(x + bx2, y + by2, ax, ay, bx - bx2, by - by2)
    yield from _walk(
        x + (ax - dax) + (bx2 - dbx),
        y + (ay - day) + (by2 - dby),
        -bx2,
        -by2,
        -(ax - ax2),
        -(ay - ay2),
    )


def place_tiles(number: int, *, shape: float = 1.7) -> list[tuple[int, int]]:
    """Return places for that many tiles in a rectangle about ``shape`` times as wide as high.

    >>> places = place_tiles(10)
    >>> len(places), max(abs(a - c) + abs(b - d) for (a, b), (c, d) in zip(places, places[1:]))
    (10, 1)
    """
    if number < 1:
        return []
    height = max(1, ceil(sqrt(number / shape)))
    width = ceil(number / height)
    return [place for place, _ in zip(walk_curve(width, height), range(number), strict=False)]


# Values by area: a map where the census has shapes, else tiles by nesting, ordered so that neighbours are near.

FEWEST, MOST = 6, 2_500  # areas that are worth a picture, and those that a page can hold
TILE, WIDE = 52, 1_080  # pixels: the largest tile, the widest picture
MAX_AREAS_LISTED = 60  # areas in the table below the picture
MAX_PARENTS_NAMED = 24  # parents between which lines are drawn
TILE_NAME_LETTERS = 7  # that fit on a tile
LETTER = 5.5  # pixels: the width of a letter of a tile's name
FAR_OUT = 1.5  # times the 98th percentile: colours do not reach for single values beyond it


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The areas that numbers belong to: levels, coarsest first, ancestors, and borders where known."""

    levels: tuple[str, ...] = ()
    ancestors: Mapping[str, Mapping[str, tuple[str, ...]]] = field(
        default_factory=dict
    )  # level → code → above it
    borders: BorderLines | None = None
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # variable → code → word

    @property
    def drawn_level(self) -> str:
        """Return the level that has borders."""
        return self.borders.level if self.borders else ""

    def order(self, level: str, codes: Sequence[str]) -> list[str]:
        """Return the areas in the order of the spine: those of one parent together.

        >>> Ground(ancestors={"block": {"2": ("a",), "3": ("b",), "4": ("a",)}}).order("block", ["2", "3", "4"])
        ['2', '4', '3']
        """
        above = self.ancestors.get(level, {})
        return sorted(codes, key=lambda code: (above.get(code, ()), code))

    def parent(self, level: str, code: str) -> str:
        above = self.ancestors.get(level, {}).get(code, ())
        return above[-1] if above else ""


def areas(
    name: str,
    title: str,
    sentence: str,
    values: Mapping[str, float],
    *,
    ground: Ground,
    level: str,
    value: str,
    signed: bool = False,
    end: float = 0.0,
) -> Chart | None:
    """Draw one number for each area, or return None for too few or too many areas.

    ``end`` is where the colours end; pictures that are compared are given the same one.
    """
    values = {code: number for code, number in values.items() if number == number}
    if not FEWEST <= len(values) <= MOST:
        return None
    largest = end or colour_end(list(values.values()))
    colour = _colour(value, largest, signed=signed)
    borders = ground.borders if level == ground.drawn_level else None
    mapped = borders is not None and any(code in borders.areas for code in values)
    spec = (
        _map(borders, values, colour, level, value)
        if borders is not None and mapped
        else _tiles(ground, values, colour, level, value, turn=_turn_names(largest, signed=signed))
    )
    parents = {ground.parent(level, code) for code in values} - {""}
    above = ground.levels[ground.levels.index(level) - 1] if level in ground.levels[1:] else ""
    lined = above and 1 < len(parents) <= MAX_PARENTS_NAMED
    how = (
        Phrase("report.areas.map", end=_digits(largest))
        if mapped
        else Phrase("report.areas.tiles_lined", level=level, above=above, end=_digits(largest))
        if lined
        else Phrase("report.areas.tiles", level=level, end=_digits(largest))
    )
    beyond = sum(abs(number) > largest for number in values.values())
    if beyond:
        widest = round_digits(max(map(abs, values.values())))
        how = Phrase("report.two", first=how, second=Phrase("report.areas.beyond", count=beyond, most=widest))
    rows = sorted(values.items(), key=lambda item: -abs(item[1]))[:MAX_AREAS_LISTED]
    caption = Phrase("report.areas.listed", title=title, number=len(rows))
    return Chart(
        name=name,
        title=title,
        sentence=Phrase("report.two", first=sentence, second=how),
        spec=spec,
        data=make_table(caption, [level, value], rows, numeric=[value], digits=2),
    )


def colour_end(values: Sequence[float]) -> float:
    """Return the largest size of the values, with two digits, rounded up; a few that stand far out are beyond it.

    >>> colour_end([1.0, -2.0, 3.21]), colour_end([1.0] * 99 + [50.0])
    (3.3, 1.0)
    """
    sizes = np.abs(values)
    largest, most = float(sizes.max()), float(np.quantile(sizes, 0.98))
    shown = largest if largest <= FAR_OUT * most else most
    if not shown:
        return 1e-9
    unit = Decimal(1).scaleb(Decimal(repr(shown)).adjusted() - 1)
    return float(Decimal(repr(shown)).quantize(unit, ROUND_CEILING))


def _digits(value: float) -> Decimal:
    return Decimal(f"{value:g}")  # a number, so that each language writes it


def _colour(title: str, largest: float, *, signed: bool) -> Spec:
    """Return the colour channel; values beyond its ends have the last colour."""
    halves = [-largest, -largest / 2, 0, largest / 2, largest] if signed else [0, largest / 2, largest]
    domain = [-largest, 0, largest] if signed else [0, largest]
    legend = {
        "values": halves,
        "orient": "bottom",
        "gradientLength": 260,
        "format": ",.3~r",
        "titleLimit": 400,
    }
    scale = {
        "domain": domain,
        "range": "diverging" if signed else "ramp",
        "clamp": True,
        "interpolate": "rgb",
    }
    return quantity("v", title, scale=scale, legend=legend)


def _tips(level: str, value: str) -> list[Spec]:
    return [
        {"field": "area", "type": "nominal", "title": level},
        {"field": "v", "type": "quantitative", "title": value, "format": ",.2~r"},
    ]


def _map(borders: BorderLines, values: Mapping[str, float], colour: Spec, level: str, value: str) -> Spec:
    features = []
    for feature in borders.features():
        code = str(feature["properties"]["code"])  # type: ignore[index]
        number = values.get(code)
        features.append(
            {**feature, "area": code, "v": None if number is None else round(number, 3), "properties": {}}
        )
    mark = {"type": "geoshape", "strokeWidth": 0.5, "stroke": "#8886"}
    height = max(160, round(720 * borders.height / max(borders.width, 1)))
    return make_spec(
        {
            "projection": {"type": "identity"},
            "mark": mark,
            "encoding": {"color": colour, "tooltip": _tips(level, value)},
        },
        features,
        height=min(height, 620),
    )


def _turn_names(largest: float, *, signed: bool) -> str:
    """Return the condition under which a tile is so coloured that its name has the colour of the page, by day and night."""
    if signed:
        return f"night ? abs(datum.v) > {0.5 * largest:g} : datum.v < {-0.85 * largest:g}"
    return f"datum.v > (night ? {0.45 * largest:g} : {0.6 * largest:g})"


def _tiles(
    ground: Ground, values: Mapping[str, float], colour: Spec, level: str, value: str, *, turn: str
) -> Spec:
    codes = ground.order(level, list(values))
    names = name_tiles({code: ground.parent(level, code) for code in codes})
    places = place_tiles(len(codes), shape=2.2)
    across, down = 1 + max(x for x, _ in places), 1 + max(y for _, y in places)
    side = min(
        TILE, WIDE // across
    )  # tiles are square on a wide page; the page shrinks what is wider than it
    named = LETTER * max(map(len, names.values())) <= side
    rows = [
        {
            "area": code,
            "v": round(values[code], 3),
            "x": x,
            "y": y,
            "p": ground.parent(level, code),
            **({"n": names[code]} if named else {}),
        }
        for code, (x, y) in zip(codes, places, strict=True)
    ]
    ends: Spec = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "axis": None,
            "scale": {"domain": [0, across], "nice": False},
        },
        "y": {
            "field": "y",
            "type": "quantitative",
            "axis": None,
            "scale": {"domain": [down, 0], "nice": False},
        },
    }
    rect: Spec = {
        "transform": [{"calculate": "datum.x + 1", "as": "x2"}, {"calculate": "datum.y + 1", "as": "y2"}],
        "mark": {"type": "rect", "strokeWidth": 0.5, "stroke": "#8886"},
        "encoding": {
            **ends,
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "color": colour,
            "tooltip": _tips(level, value),
        },
    }
    written: Spec = {
        "name": "names",  # the page leaves them out where tiles are too small for them
        "transform": [
            {"calculate": "datum.x + 0.5", "as": "xm"},
            {"calculate": "datum.y + 0.5", "as": "ym"},
        ],
        "mark": {"type": "text", "fontSize": 9.5, "tooltip": False},
        "encoding": {
            "x": {**ends["x"], "field": "xm"},  # type: ignore[dict-item]
            "y": {**ends["y"], "field": "ym"},  # type: ignore[dict-item]
            "text": {"field": "n", "type": "nominal"},
            "color": {"condition": {"test": turn, "value": {"expr": "night ? '#14181b' : '#ffffff'"}}},
        },
    }
    layers: list[Spec] = [rect, written] if named else [rect]
    parents = sorted({str(row["p"]) for row in rows if row["p"]})
    if 1 < len(parents) <= MAX_PARENTS_NAMED:
        layers += _border_lines(rows, ends)
    night = {"name": "night", "value": False}  # the page sets it
    return {
        **make_spec({"layer": layers, "params": [night]}, rows, height=side * down),
        "width": side * across,
    }


def tile_name(code: str, parent: str) -> str:
    """Return the short name of an area on its tile: its code without that of its parent and without leading zeros.

    >>> tile_name("91001000300", "91001"), tile_name("12", "7"), tile_name("000", "")
    ('300', '12', '000')
    """
    short = code.removeprefix(parent).lstrip("0") or code
    return short if len(short) <= TILE_NAME_LETTERS else short[-TILE_NAME_LETTERS:]


def name_tiles(parents: Mapping[str, str]) -> dict[str, str]:
    """Return a name for every tile, from area → parent; where short names repeat, that of the parent stands before.

    >>> name_tiles({"91001000100": "91001", "91003000100": "91003", "91003000200": "91003"})
    {'91001000100': '1-100', '91003000100': '3-100', '91003000200': '3-200'}
    >>> name_tiles({"91001000100": "91001", "91001000200": "91001"})
    {'91001000100': '100', '91001000200': '200'}
    """
    short = {code: tile_name(code, parent) for code, parent in parents.items()}
    if len(set(short.values())) == len(short):
        return short
    letters = zip(*sorted(set(parents.values())), strict=False)
    shared = "".join(same[0] for same in takewhile(lambda each: len(set(each)) == 1, letters))
    return {code: f"{tile_name(parent, shared)}-{short[code]}" for code, parent in parents.items()}


def _border_lines(rows: Sequence[Mapping[str, object]], ends: Spec) -> list[Spec]:
    """Return the lines between tiles of different parents."""
    there = {(int(str(row["x"])), int(str(row["y"]))): row["p"] for row in rows}
    cuts = []
    for (x, y), parent in there.items():
        if there.get((x + 1, y), parent) != parent:
            cuts.append({"x": x + 1, "y": y, "x2": x + 1, "y2": y + 1})
        if there.get((x, y + 1), parent) != parent:
            cuts.append({"x": x, "y": y + 1, "x2": x + 1, "y2": y + 1})
    line: Spec = {
        "data": {"values": cuts},
        "mark": {"type": "rule", "strokeWidth": 2.5},
        "encoding": {**ends, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
    }
    return [line] if cuts else []
