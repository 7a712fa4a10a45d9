"""Values by area: a map where the census has shapes, else tiles by nesting, ordered so that neighbours are near."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from stirred.census.shapes import BorderLines
from stirred.languages import Phrase
from stirred.report.charts.marks import Spec, make_spec, quantity
from stirred.report.charts.placing import place_tiles
from stirred.report.document import Chart, make_table

FEWEST, MOST = 6, 2_500  # areas that are worth a picture, and those that a page can hold
TILE, WIDE = 52, 1_080  # pixels: the largest tile, the widest picture
MAX_AREAS_LISTED = 60  # areas in the table below the picture
MAX_PARENTS_NAMED = 24  # parents whose names are written on the tiles


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
) -> Chart | None:
    """Draw one number for each area, or return None for too few or too many areas."""
    values = {code: number for code, number in values.items() if number == number}
    if not FEWEST <= len(values) <= MOST:
        return None
    largest = max(1e-9, float(np.quantile(np.abs(list(values.values())), 0.98)))
    largest = float(f"{largest:.2g}")
    colour = _colour(value, largest, signed=signed)
    borders = ground.borders if level == ground.drawn_level else None
    mapped = borders is not None and any(code in borders.areas for code in values)
    spec = (
        _map(borders, values, colour, level, value)
        if borders is not None and mapped
        else _tiles(ground, values, colour, level, value)
    )
    how = Phrase("report.areas.map" if mapped else "report.areas.tiles", end=_digits(largest))
    rows = sorted(values.items(), key=lambda item: -abs(item[1]))[:MAX_AREAS_LISTED]
    caption = Phrase("report.areas.listed", title=title, number=len(rows))
    return Chart(
        name=name,
        title=title,
        sentence=Phrase("report.two", first=sentence, second=how),
        spec=spec,
        data=make_table(caption, [level, value], rows, numeric=[value], digits=2),
    )


def _digits(value: float) -> Decimal:
    return Decimal(f"{value:g}")  # a number, so that each language writes it


def _colour(title: str, largest: float, *, signed: bool) -> Spec:
    """Return the colour channel, which ends at the 98th percentile of the values."""
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


def _tiles(ground: Ground, values: Mapping[str, float], colour: Spec, level: str, value: str) -> Spec:
    codes = ground.order(level, list(values))
    places = place_tiles(len(codes), shape=2.2)
    rows = [
        {"area": code, "v": round(values[code], 3), "x": x, "y": y, "p": ground.parent(level, code)}
        for code, (x, y) in zip(codes, places, strict=True)
    ]
    across, down = 1 + max(x for x, _ in places), 1 + max(y for _, y in places)
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
    layers: list[Spec] = [rect]
    parents = sorted({str(row["p"]) for row in rows if row["p"]})
    if 1 < len(parents) <= MAX_PARENTS_NAMED:
        layers += _border_lines(rows, ends)
    side = min(
        TILE, WIDE // across
    )  # tiles are square on a wide page; the page shrinks what is wider than it
    return {**make_spec({"layer": layers}, rows, height=side * down), "width": side * across}


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
