"""A line chart as SVG text: attributes only, because the pages allow no style inside themselves."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 14, 46

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """A curve with its name, and the point on it that is marked."""

    name: str
    points: Sequence[Point]
    marked: Point | None = None
    strong: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAxis:
    """An axis: its title, its ends, and where its ticks stand."""

    title: str
    low: float
    high: float
    ticks: Sequence[float]

    def place(self, value: float, start: float, end: float) -> float:
        """Return where a value stands between two coordinates.

        >>> ChartAxis(title="", low=0, high=10, ticks=()).place(5, 0, 100)
        50.0
        """
        share = (value - self.low) / (self.high - self.low)
        return start + share * (end - start)


def ticks_up_to(high: float, most: int = 6) -> tuple[float, ...]:
    """Round numbers from 0 to a largest one.

    >>> ticks_up_to(23)
    (0.0, 5.0, 10.0, 15.0, 20.0)
    """
    rough = high / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough)
    return tuple(step * number for number in range(int(high / step + 1e-9) + 1))


def line_chart(title: str, x: ChartAxis, y: ChartAxis, lines: Sequence[ChartLine], here: Point | None) -> str:
    """Draw curves, their marked points, and where the reader stands."""

    def at(point: Point) -> tuple[float, float]:
        return (
            x.place(point[0], LEFT, WIDTH - RIGHT),
            y.place(min(point[1], y.high), HEIGHT - BOTTOM, TOP),
        )

    parts = [
        f'<svg class="curve" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}" '
        'xmlns="http://www.w3.org/2000/svg">',
        *_ticks(x, y),
    ]
    for number, line in enumerate(lines):
        parts += _draw_line(line, number, at)
    parts += [_label_line(line, number, at) for number, line in enumerate(lines)]  # above all lines
    if here is not None:
        across, down = at(here)
        parts.append(
            f'<line class="here" x1="{across:.1f}" x2="{across:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        )
        parts.append(f'<circle class="here" cx="{across:.1f}" cy="{down:.1f}" r="6"/>')
    return "".join([*parts, "</svg>"])


def _ticks(x: ChartAxis, y: ChartAxis) -> list[str]:
    parts = []
    for tick in x.ticks:
        place = x.place(tick, LEFT, WIDTH - RIGHT)
        parts.append(
            f'<text class="tick" x="{place:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:g}</text>'
        )
    for tick in y.ticks:
        place = y.place(tick, HEIGHT - BOTTOM, TOP)
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{place:.1f}" y2="{place:.1f}"/>'
            f'<text class="tick" x="{LEFT - 8}" y="{place + 4:.1f}" text-anchor="end">{tick:g}</text>'
        )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">'
        f"{escape(x.title)}</text>"
        f'<text class="axis" x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">'
        f"{escape(y.title)}</text>"
    )
    return parts


def _label_line(line: ChartLine, number: int, at: Callable[[Point], tuple[float, float]]) -> str:
    kind = "strong" if line.strong else f"line-{number % 8}"
    across, down = at(line.points[len(line.points) // (2 if line.strong else 8)])
    return f'<text class="{kind} name" x="{across + 4:.1f}" y="{down - 5:.1f}">{escape(line.name)}</text>'


def _draw_line(line: ChartLine, number: int, at: Callable[[Point], tuple[float, float]]) -> list[str]:
    kind = "strong" if line.strong else f"line-{number % 8}"
    shown = " ".join(f"{across:.1f},{down:.1f}" for across, down in map(at, line.points))
    parts = [f'<polyline class="{kind}" points="{shown}"><title>{escape(line.name)}</title></polyline>']
    if line.marked is not None:
        across, down = at(line.marked)
        diamond = f"{across:.1f},{down - 6:.1f} {across + 6:.1f},{down:.1f} {across:.1f},{down + 6:.1f}"
        parts.append(f'<polygon class="{kind} least" points="{diamond} {across - 6:.1f},{down:.1f}"/>')
    return parts
