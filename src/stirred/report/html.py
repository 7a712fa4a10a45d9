"""Write a report as one HTML file that needs no network."""

import json
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from stirred.extras import optional
from stirred.report.document import Chart, Facts, Markup, Note, Paragraphs, Report, TableBlock

_KINDS = {
    Paragraphs: "words",
    Note: "note",
    Facts: "facts",
    TableBlock: "table",
    Chart: "chart",
    Markup: "markup",
}


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates of the report; the workbench uses the same."""
    result = Environment(
        loader=PackageLoader("stirred.report", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.tests["kind"] = lambda block, name: _KINDS[type(block)] == name
    return result


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, inlined once per report."""
    library = optional("vl_convert", "report", why="it brings the scripts that draw the charts")
    bundle: str = library.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def embedded(value: object) -> str:
    """JSON that is safe inside a script element.

    >>> embedded({"a": "</script>"})
    '{"a":"\\\\u003c/script>"}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).replace(
        "<", "\\u003c"
    )


def render(report: Report) -> str:
    """The HTML text; the same report gives the same bytes."""
    charts = {chart.name: chart.spec for chart in report.charts()}
    page = environment().get_template("report.html.j2")
    return page.render(
        report=report,
        charts=embedded(charts) if charts else "",
        library=chart_library() if charts else "",
    )
