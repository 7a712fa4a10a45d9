"""One page with everything computed from the paper: each number beside the printed one, figures included, offline."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from stirred.file_names import path_in
from stirred.paper.figures import CHARTS
from stirred.paper.printed import UNEXPLAINED

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
