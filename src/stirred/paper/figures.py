"""Figures of the paper as charts, and documents as files: JSON, CSV, PNG and SVG."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred.extras import OptionalModule

if TYPE_CHECKING:
    import altair as alt
else:
    alt = OptionalModule("altair", "paper", why="figures are drawn with it")

Rows = Sequence[Mapping[str, Any]]


def mape_chart(document: Mapping[str, Any]) -> Any:
    """Draw boxplots of the MAPE by swap rate."""
    return (
        alt.Chart(alt.InlineData(values=list(document["rows"])))
        .mark_boxplot(extent="min-max", size=24, median={"color": "black"})
        .encode(
            x=alt.X("percent:O", title="swap rate (%)", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("mape:Q", title="MAPE of county × tenure", axis=alt.Axis(format="%")),
        )
        .properties(width=480, height=300, title="What swapping changes, 20 runs at each rate")
    )


def budget_chart(document: Mapping[str, Any]) -> Any:
    """Swap rate against ε, a curve for each b, with diamonds at the smallest ε."""
    x = alt.X("epsilon:Q", title="ε", scale=alt.Scale(domain=[0, 22]))
    y = alt.Y("percent:Q", title="swap rate (%)")
    color = alt.Color("b:O", title="b", scale=alt.Scale(scheme="viridis"), legend=alt.Legend(symbolOpacity=1))
    curves = alt.Chart(alt.InlineData(values=list(document["rows"]))).mark_line(clip=True)
    curves = curves.encode(x=x, y=y, color=color, order="percent:Q")
    diamonds = alt.Chart(alt.InlineData(values=list(document["diamonds"]))).mark_point(
        shape="diamond", filled=True, size=90, opacity=1
    )
    diamonds = diamonds.encode(x=x, y=y, color=color)
    dotted = alt.Chart(alt.InlineData(values=[{"percent": p} for p in document["dotted_percent"]]))
    rules = dotted.mark_rule(strokeDash=[3, 3], color="grey").encode(y="percent:Q")
    return alt.layer(curves, diamonds, rules).properties(
        width=480, height=320, title="Every ε above the smallest has two swap rates"
    )


CHARTS = {"figure-mape": mape_chart, "figure-budget": budget_chart}


def write_files(document: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write the document as JSON, its rows as CSV, and its chart where it has one; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    name = str(document["name"])
    paths = [folder / f"{name}.json", folder / f"{name}.csv"]
    paths[0].write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    rows: Rows = document["rows"]
    flat = [{key: value for key, value in row.items() if not isinstance(value, Mapping)} for row in rows]
    with paths[1].open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(flat[0]) if flat else [])
        writer.writeheader()
        writer.writerows(flat)
    if name in CHARTS:
        chart = CHARTS[name](document)
        for kind in ("png", "svg"):
            paths.append(folder / f"{name}.{kind}")
            chart.save(str(paths[-1]))
    return paths
