"""Charts as Vega-Lite specifications: marks for numbers, and pictures of areas."""

from stirred.report.charts.frontier import FrontierPoint, frontier
from stirred.report.charts.marks import bars, dots, intervals, lines, ranges
from stirred.report.charts.spatial import Ground, areas

__all__ = [
    "FrontierPoint",
    "Ground",
    "areas",
    "bars",
    "dots",
    "frontier",
    "intervals",
    "lines",
    "ranges",
]
