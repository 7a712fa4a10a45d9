"""The report: one offline HTML file of text, charts and tables."""

from stirred.report.document import Chart, Facts, Note, Paragraphs, Report, Section, TableBlock
from stirred.report.html import render

__all__ = ["Chart", "Facts", "Note", "Paragraphs", "Report", "Section", "TableBlock", "render"]
