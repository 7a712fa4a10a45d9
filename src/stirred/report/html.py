"""Write a report as one HTML file that needs no network, in the report's language."""

import contextlib
import json
import os
from dataclasses import replace
from functools import lru_cache
from html import escape
from importlib.metadata import version
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from stirred._support import import_optional, require_extra
from stirred.languages import Language, Phrase
from stirred.report.document import (
    CHAPTERS,
    CardBlock,
    Chart,
    Facts,
    Fold,
    Levels,
    Note,
    Paragraphs,
    Report,
    TableBlock,
    label_codes,
)
from stirred.spec.card.card import write_styled_fragment
from stirred.spec.card.template_cache import TemplateCache

LIBRARY_REASON = "it brings the scripts that draw the charts"
_KINDS = {
    Paragraphs: "words",
    Note: "note",
    Facts: "facts",
    TableBlock: "table",
    Chart: "chart",
    CardBlock: "card",
    Fold: "fold",
}


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the templates of the report, which the workbench uses too."""
    result = Environment(
        loader=PackageLoader("stirred.report", "templates"),
        bytecode_cache=TemplateCache(__file__),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    result.tests["kind"] = lambda block, name: _KINDS[type(block)] == name
    return result


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, inlined once per report."""
    require_extra("report", why=LIBRARY_REASON)
    return _cached_bundle(version("vl-convert-python")).replace("</script", "<\\/script")


def _cached_bundle(number: str) -> str:
    """Return the script bundle of an installed version from the cache in ``__pycache__``, made on first use."""
    place = Path(__file__).parent / "__pycache__" / f"vega-{number}.js"
    with contextlib.suppress(OSError):
        return place.read_bytes().decode()
    library = import_optional("vl_convert", "report", why=LIBRARY_REASON)
    bundle: str = library.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    temporary = place.with_suffix(f".{os.getpid()}")
    with contextlib.suppress(
        OSError
    ):  # a folder that cannot be written to, a full disk: made anew the next time
        place.parent.mkdir(exist_ok=True)
        try:
            temporary.write_bytes(bundle.encode())
            temporary.replace(place)
        finally:
            temporary.unlink(missing_ok=True)
    return bundle


def embed_json(value: object) -> str:
    """Return JSON that is safe inside a script element.

    >>> embed_json({"a": "</script>"})
    '{"a":"\\\\u003c/script>"}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).replace(
        "<", "\\u003c"
    )


def translate_values(value: object, language: Language) -> object:
    """Return a chart's specification with its phrases in the page's language."""
    if isinstance(value, dict):
        return {key: translate_values(inner, language) for key, inner in value.items()}
    if isinstance(value, list):
        return [translate_values(inner, language) for inner in value]
    return language.translate(value) if isinstance(value, str) else value


def render(report: Report) -> str:
    """Return the HTML text; the same report gives the same bytes."""
    language = report.language
    charts = {chart.name: translate_values(_describe_chart(chart), language) for chart in report.charts()}
    page = environment().get_template("report.html.j2")
    return page.render(
        report=report,
        language=language,
        said=lambda text: label_codes(language.translate(text), report.levels),
        say=language.say,
        names={name: Phrase(f"report.chapter.{name}") for name in CHAPTERS},
        card=lambda card: card_in_words(
            write_styled_fragment(replace(card, language=language.code)), report.levels
        ),
        locale=embed_json(_locale(language)),
        charts=embed_json(charts) if charts else "",
        library=chart_library() if charts else "",
    )


def card_in_words(html: str, levels: Levels) -> str:
    """Return the HTML of a card with labels for the codes of its conditions."""
    return label_codes(
        html,
        {name: {code: escape(label) for code, label in labels.items()} for name, labels in levels.items()},
    )


def _describe_chart(chart: Chart) -> dict[str, object]:
    """Return the specification with a description of the chart for screen readers."""
    return {**chart.spec, "description": Phrase("report.two", first=chart.title, second=chart.sentence)}


def _locale(language: Language) -> dict[str, object]:
    """Return how the charts write numbers."""
    numerals = language.numerals
    return {
        "decimal": numerals.decimal,
        "thousands": numerals.thousands,
        "grouping": [3],
        "currency": ["", ""],
        "percent": numerals.percent,
        "minus": "−",
    }
