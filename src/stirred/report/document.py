"""A report as plain data: sections of text, facts, tables and charts, before any HTML."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from stirred.errors import InputError
from stirred.mechanisms.exhibits import shown as shown

Audience = Literal["public", "internal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraphs:
    """Paragraphs, plain text (no markup is interpreted)."""

    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """An important sentence."""

    text: str
    tone: Literal["warning", "good", "plain"] = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Terms and what they are, in two columns."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBlock:
    """Columns and rows of text; columns named in ``numeric`` are aligned right and sorted as numbers."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InputError(
                "the rows of a report table have different lengths",
                why=f"a row of {self.caption!r} has another number of cells than the header",
                fix="give every row as many cells as the table has columns",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A Vega-Lite specification with the sentence that says what it shows; its data also stands below it as a table."""

    name: str  # unique in the report; letters, digits and hyphens
    title: str
    sentence: str
    spec: dict[str, object] = field(repr=False)
    data: TableBlock | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Markup:
    """HTML made by another trusted part of Stirred (the specification card)."""

    html: str = field(repr=False)


Block = Paragraphs | Note | Facts | TableBlock | Chart | Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part that starts with its finding in one sentence."""

    title: str
    lead: str
    blocks: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report for one audience.

    >>> Report(title="t", subtitle="", audience="public", sections=()).watermarks()
    ()
    >>> Report(title="t", subtitle="", audience="internal", private=False, sections=()).watermarks()
    ('NOT PRIVATE', 'INTERNAL')
    """

    title: str
    subtitle: str
    audience: Audience
    sections: tuple[Section, ...]
    private: bool = True  # False: some packet in it was made with a test key

    def watermarks(self) -> tuple[str, ...]:
        """The watermarks of every page."""
        marks = () if self.private else ("NOT PRIVATE",)
        return (*marks, "INTERNAL") if self.audience == "internal" else marks

    def charts(self) -> tuple[Chart, ...]:
        """All charts, in reading order."""
        found = [block for section in self.sections for block in section.blocks if isinstance(block, Chart)]
        names = [chart.name for chart in found]
        if len(set(names)) < len(names):
            raise InputError(
                "two charts of a report have the same name",
                why="a chart is found by its name",
                fix="give each chart its own name",
            )
        return tuple(found)


def table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, numeric: Sequence[str] = ()
) -> TableBlock:
    """A table from any values; numbers are written with thousands separators, floats with four digits.

    >>> table("t", ["a", "n"], [["x", 12345]], numeric=["n"]).rows
    (('x', '12,345'),)
    """
    return TableBlock(
        caption=caption,
        columns=tuple(columns),
        rows=tuple(tuple(shown(value) for value in row) for row in rows),
        numeric=frozenset(numeric),
    )
