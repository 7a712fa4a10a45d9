"""The report: one offline HTML file of text, charts and tables."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.report.document import Chart as Chart
    from stirred.report.document import Facts as Facts
    from stirred.report.document import Note as Note
    from stirred.report.document import Paragraphs as Paragraphs
    from stirred.report.document import Report as Report
    from stirred.report.document import Section as Section
    from stirred.report.document import TableBlock as TableBlock
    from stirred.report.html import render as render

__all__ = ["Chart", "Facts", "Note", "Paragraphs", "Report", "Section", "TableBlock", "render"]

__getattr__ = load_on_demand(
    __name__,
    {
        "document": (
            "Chart",
            "Facts",
            "Note",
            "Paragraphs",
            "Report",
            "Section",
            "TableBlock",
        ),
        "html": ("render",),
    },
)
