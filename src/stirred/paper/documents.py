"""Write what was computed from the paper: numbers beside the printed ones, charts, files and one page."""

import csv
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stirred._support import OptionalModule, path_in

# Numbers of the paper beside the computed ones: the difference, and where it comes from.

ROUNDED: Final = "the paper prints {places}"
DRAWN: Final = "random: another draw of the same law"
NOT_PRINTED: Final = "the paper draws it and prints no number"
UNEXPLAINED: Final = "not explained"


def compare_number(computed: float | Decimal, paper: str, *, reason: str = "") -> dict[str, Any]:
    """Compare a computed number with the printed one; half the last printed digit counts as rounding.

    >>> compare_number(Decimal("17.080082"), "17.08")
    {'computed': 17.080082, 'paper': 17.08, 'difference': 8.2e-05, 'reason': 'the paper prints 2 decimals'}
    >>> compare_number(13.48, "13.47")["reason"]
    'not explained'
    """
    printed = Decimal(paper.replace(",", ""))
    exact = Decimal(str(computed))
    difference = exact - printed
    digits = -int(printed.as_tuple().exponent)
    if not difference:
        reason = ""
    elif abs(difference) <= Decimal(1).scaleb(-digits) / 2:
        places = "whole numbers" if not digits else f"{digits} decimal{'s' if digits > 1 else ''}"
        reason = ROUNDED.format(places=places)
    return {
        "computed": _number(exact),
        "paper": _number(printed),
        "difference": _number(difference),
        "reason": reason or (UNEXPLAINED if difference else ""),
    }


def state_number(computed: float | Decimal, reason: str = NOT_PRINTED) -> dict[str, Any]:
    """Return a computed number that the paper does not print, with the reason."""
    return {"computed": _number(Decimal(str(computed))), "paper": None, "difference": None, "reason": reason}


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


# Figures of the paper as charts, and documents as files: JSON, CSV, PNG and SVG.

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


def stirring_chart(document: Mapping[str, Any]) -> Any:
    """Draw the loss of one exchange against the share that moves, for the PSA and for stirring."""
    return (
        alt.Chart(alt.InlineData(values=list(document["curve"])))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=alt.X("percent:Q", title="share of records that move (%)", scale=alt.Scale(domain=[0, 80])),
            y=alt.Y("loss:Q", title="ε of one exchange of two records"),
            color=alt.Color(
                "method:N",
                title=None,
                legend=alt.Legend(orient="top", labelLimit=400),
                scale=alt.Scale(scheme="dark2"),
            ),
        )
        .properties(
            width=480,
            height=300,
            title=f"At equal shares stirring loses half ({document['inputs']['curve']:,} records)",
        )
    )


def change_and_loss_chart(document: Mapping[str, Any]) -> Any:
    """Draw what one exchange loses against what a release changes, a line for each method and a point for each share."""
    return (
        alt.Chart(alt.InlineData(values=list(document["rows"])))
        .mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2)
        .encode(
            x=alt.X("computed:Q", title="MAPE of county × tenure", axis=alt.Axis(format="%")),
            y=alt.Y("loss:Q", title="ε of one exchange of two households"),
            order="percent:Q",
            color=alt.Color(
                "method:N",
                title=None,
                legend=alt.Legend(orient="top", labelLimit=400),
                scale=alt.Scale(scheme="dark2"),
            ),
        )
        .properties(width=480, height=300, title="The same change, a smaller loss: shares of 1 to 50 percent")
    )


CHARTS = {
    "figure-mape": mape_chart,
    "figure-budget": budget_chart,
    "beyond": stirring_chart,
    "beyond-mape": change_and_loss_chart,
}


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


# One page with everything computed from the paper: each number beside the printed one, figures included, offline.

STYLE: Final = """
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.5rem;border-top:1px solid #8886;padding-top:1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}
th,td{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #8883;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.why{color:#777}.open{font-weight:600;color:#b30000}img{max-width:100%;height:auto;background:#fff}
@media(prefers-color-scheme:dark){.why{color:#aaa}.open{color:#ff8a80}}
"""
LAST_COLUMNS: Final = ("computed", "paper", "difference", "reason")
MAX_ROWS_SHOWN: Final = 60  # rows of a figure are many: the page shows the chart and names the file


def write_page(documents: Sequence[Mapping[str, Any]], left: Mapping[str, str], folder: Path) -> Path:
    """Write ``index.html`` beside the files of the parts; ``left`` says why a part was not computed."""
    folder.mkdir(parents=True, exist_ok=True)
    body = [
        "<h1>The paper, computed</h1>",
        "<p>Bailie, Gong and Meng, <cite>A Refreshment Stirred, Not Shaken</cite>: every table, figure and number, ",
        "computed by Stirred, beside what the paper prints. A difference is followed by its reason.</p>",
        f"<p>{_summarise(documents)}</p>",
        "<ul>",
        *(f'<li><a href="#{escape(d["name"])}">{escape(d["title"])}</a></li>' for d in documents),
        *(f"<li>{escape(name)}: not computed ({escape(why)})</li>" for name, why in left.items()),
        "</ul>",
        *(_section(document) for document in documents),
    ]
    page = path_in(folder, "index", ".html")
    page.write_text(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The paper, computed</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
        f"{''.join(body)}</body></html>\n",
        encoding="utf-8",
    )
    return page


def _summarise(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence: how many printed numbers there are, and how the computed ones compare."""
    rows = [number for document in documents for row in document["rows"] for number in _split_row(row)]
    printed = [row for row in rows if row["paper"] is not None]
    rounding = [row for row in printed if row["reason"].startswith("the paper prints")]
    equal = sum(not row["difference"] for row in printed)
    unexplained = sum(row["reason"] == UNEXPLAINED for row in printed)
    named = len(printed) - equal - len(rounding) - unexplained
    return (
        f"{len(printed)} printed numbers: {equal} are equal, {len(rounding)} are equal as far as the paper prints them, "
        f"{named} differ for a reason that stands beside them, {unexplained} without one. "
        f"{len(rows) - len(printed)} more were computed that the paper draws and does not print."
    )


def _section(document: Mapping[str, Any]) -> str:
    """Render one part: where its numbers come from, its chart or its rows, its files."""
    name, rows = str(document["name"]), list(document["rows"])
    inputs = ", ".join(f"{key} = {_write_input(value)}" for key, value in document["inputs"].items())
    kinds = ("json", "csv", "png", "svg") if name in CHARTS else ("json", "csv")
    files = ", ".join(f'<a href="{name}.{kind}">{kind.upper()}</a>' for kind in kinds)
    shown = [f'<p><img src="{name}.svg" alt="{escape(document["title"])}"></p>'] if name in CHARTS else []
    if len(rows) <= MAX_ROWS_SHOWN:
        shown.append(_table(rows))
    return (
        f'<h2 id="{name}">{escape(document["title"])}</h2><p class="why">Source: {escape(document["source"])}. '
        f"Inputs: {escape(inputs)}. Files: {files}.</p>{''.join(shown)}"
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Render one HTML row per reproduced number."""
    rows = [row for one in rows for row in _split_row(one)]
    names = [
        key
        for key, value in rows[0].items()
        if key not in LAST_COLUMNS and not isinstance(value, Mapping | list)
    ]
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in names)
    head += '<th class="n">computed</th><th class="n">paper</th><th class="n">difference</th><th>reason</th>'
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(_text(row[name]))}</td>" for name in names)
        + "".join(f'<td class="n">{escape(_text(row[name]))}</td>' for name in LAST_COLUMNS[:3])
        + f'<td class="{"open" if row["reason"] == UNEXPLAINED else "why"}">{escape(row["reason"])}</td></tr>'
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _split_row(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one row for each number of a row: most compare one number, some compare several."""
    if not isinstance(row["computed"], Mapping):
        return [dict(row)]
    label = next(iter(row.items()))
    return [
        {
            label[0]: label[1],
            "number": name.replace("_", " "),
            "computed": value,
            "paper": row["paper"][name],
            "difference": row["difference"][name],
            "reason": row["reason"] if row["difference"][name] else "",
        }
        for name, value in row["computed"].items()
    ]


def _write_input(value: object) -> str:
    """Write an input as it was given: a small one (δ) is not rounded to 0."""
    return f"{value:g}" if isinstance(value, float) and 0 < abs(value) < 1e-6 else _text(value)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.6f}".rstrip("0").rstrip(".")
    if isinstance(value, list | tuple):
        return ", ".join(_text(one) for one in value)
    return str(value)
