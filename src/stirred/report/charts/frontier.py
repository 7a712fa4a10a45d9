"""Risk against error: a point for each release, with its specification on hover, and guesses as lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from stirred.report.charts.marks import Spec, from_zero, make_spec, quantity
from stirred.report.document import Chart, make_table

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
