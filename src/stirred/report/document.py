"""Define a report as plain data, before any HTML: a first screen of questions, then sections and charts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isfinite
from typing import Literal

import polars as pl

from stirred.errors import InputError
from stirred.languages import Language, Phrase, Value
from stirred.mechanisms.exhibits import format_value as format_value
from stirred.mechanisms.exhibits import round_digits as round_digits
from stirred.spec.card import Card, OddsBound
from stirred.spec.card.words import insert_labels

# Numbers and names inside sentences: few digits, and labels for codes.


def percent(share: float, digits: int = 2) -> Decimal:
    """Return a share in per cent with few digits."""
    return round_digits(100 * share, digits)


def relabel(text: str, labels: Mapping[str, str]) -> str:
    """Replace names of variables by labels; only names with an underscore, which are no words.

    >>> relabel("households by block_group × gq_type", {"gq_type": "type of group quarters"})
    'households by block group × type of group quarters'
    """
    if isinstance(text, Phrase):
        return Phrase(
            text.key, **{name: _relabel_value(value, labels) for name, value in text.values.items()}
        )
    return insert_labels(text, labels)


Levels = Mapping[str, Mapping[str, str]]  # variable → code → label
_CONDITION = re.compile(r"\b(\w+) = (\w+(?: (?:or|oder|ou|o) \w+)*)")


def label_codes(text: str, levels: Levels) -> str:
    """Replace the conditions in a text by the labels of their codes, where the codebook has them all.

    >>> label_codes("homes (kind = 2 or 3), b = 3", {"kind": {"2": "vacant", "3": "group quarters"}})
    'homes (vacant or group quarters), b = 3'
    """

    def replace_levels(found: re.Match[str]) -> str:
        labels = levels.get(found[1], {})
        parts = found[2].split(" ")
        if not all(part in labels for part in parts[::2]):
            return found[0]
        return " ".join(labels[part] if place % 2 == 0 else part for place, part in enumerate(parts))

    return _CONDITION.sub(replace_levels, text) if levels else text


def _relabel_value(value: Value, labels: Mapping[str, str]) -> Value:
    if isinstance(value, tuple):
        return tuple(_relabel_value(one, labels) for one in value)
    return relabel(value, labels) if isinstance(value, str) else value


def interval_reach() -> pl.Expr:
    """Return how far the truth can be from the estimate inside the interval, on the wider side."""
    below, above = pl.col("estimate") - pl.col("low"), pl.col("high") - pl.col("estimate")
    return pl.max_horizontal(below, above).alias("reach")


def add_exception(words: str, what: OddsBound) -> str:
    """Add to a sentence about odds the probability that they are exceeded, where there is one."""
    if not what.exception:
        return words
    rarely = Phrase("report.first.learn.exception", exception=what.exception)
    return Phrase("report.two", first=words, second=rarely)


# A report as plain data: a first screen of questions, then sections of text, facts, tables and charts, before any HTML.
#
# A text is a string, or a phrase of the catalog that the page translates into its language.

Audience = Literal["public", "internal"]
Chapter = Literal["promise", "exact", "accuracy", "risk", "method"]
CHAPTERS: tuple[Chapter, ...] = ("promise", "accuracy", "exact", "risk", "method")


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
class CardBlock:
    """A specification's card, in the language of the page."""

    card: Card = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """Blocks that a click opens, under a title."""

    title: str
    blocks: "tuple[Block, ...]"


Block = Paragraphs | Note | Facts | TableBlock | Chart | CardBlock | Fold


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part that starts with its finding in one sentence; the chapters stand in reading order."""

    title: str
    lead: str
    blocks: tuple[Block, ...] = ()
    chapter: Chapter = "accuracy"
    folded: bool = False  # only title and finding are seen until a click opens the blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAnswer:
    """The answer of one release: the figure to see first, and a sentence."""

    figure: str
    words: str = ""
    release: str = ""  # its name, where several are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A question of the first screen, its answer for each release, and the chapter with the details."""

    question: str
    answers: tuple[ReleaseAnswer, ...]
    chapter: Chapter
    more: tuple[str, ...] = ()  # sentences that are true of all releases
    table: TableBlock | None = None  # one line per published table


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
    first: tuple[Reply, ...] = ()
    language: Language = field(default_factory=lambda: Language.of("en"))
    levels: Levels = field(default_factory=dict, repr=False)  # words for the codes in its sentences

    def watermarks(self) -> tuple[str, ...]:
        """Return the watermarks of every page."""
        marks = () if self.private else ("NOT PRIVATE",)
        return (*marks, "INTERNAL") if self.audience == "internal" else marks

    def chapters(self) -> dict[Chapter, list[Section]]:
        """Return the sections by chapter, in reading order, without empty chapters."""
        found = {name: [part for part in self.sections if part.chapter == name] for name in CHAPTERS}
        return {name: parts for name, parts in found.items() if parts}

    def charts(self) -> tuple[Chart, ...]:
        """Return all charts, in reading order."""
        parts = [part for chapter in self.chapters().values() for part in chapter]
        found = [block for part in parts for block in unfold(part.blocks) if isinstance(block, Chart)]
        names = [chart.name for chart in found]
        if len(set(names)) < len(names):
            raise InputError(
                "two charts of a report have the same name",
                why="a chart is found by its name",
                fix="give each chart its own name",
            )
        return tuple(found)


def unfold(blocks: Sequence[Block]) -> Iterator[Block]:
    """Yield all blocks, those inside folds too."""
    for block in blocks:
        if isinstance(block, Fold):
            yield from unfold(block.blocks)
        else:
            yield block


def make_table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    numeric: Sequence[str] = (),
    digits: int | None = None,
) -> TableBlock:
    """Make a table from any values; floats have four or ``digits`` digits, all numbers thousands separators.

    Small floats of one column have the same decimals, so that they can be compared.

    >>> make_table("t", ["a", "n"], [["x", 12345]], numeric=["n"]).rows
    (('x', '12,345'),)
    >>> make_table("t", ["a"], [[0.12345], [1234.5]], digits=2).rows
    (('0.12',), ('1,234',))
    >>> make_table("t", ["a"], [[0.008607], [0.04264], [0.05]], numeric=["a"]).rows
    (('0.0086',), ('0.0426',), ('0.0500',))
    """

    decimals = [_common_decimals([row[place] for row in rows]) for place in range(len(columns))]

    def write_cell(value: object, place: int) -> str:
        shared = decimals[place]
        if digits is None and shared is not None and isinstance(value, float) and isfinite(value):
            return f"{value:,.{shared}f}".replace("-", "−")
        if digits is not None and isinstance(value, float) and isfinite(value) and value != int(value):
            return f"{round_digits(value, digits):,f}"
        if digits is not None and isinstance(value, float) and isfinite(value):
            return format_value(int(value))
        return value if isinstance(value, str) else format_value(value)

    return TableBlock(
        caption=caption,
        columns=tuple(columns),
        rows=tuple(tuple(write_cell(value, place) for place, value in enumerate(row)) for row in rows),
        numeric=frozenset(numeric),
    )


MAX_DECIMALS = 6  # of a column of numbers


def _common_decimals(values: Sequence[object]) -> int | None:
    """Return the decimals of a column of small floats: two digits of the smallest; None where each number has its own."""
    found = [abs(float(one)) for one in values if isinstance(one, float) and isfinite(one)]
    some = [one for one in found if one]
    whole = all(one == int(one) for one in found)
    if len(found) < 2 or len(found) < sum(one is not None for one in values) or whole or max(some) >= 100:
        return None
    needed = 1 - Decimal(repr(min(some))).adjusted()
    return max(1, needed) if needed <= MAX_DECIMALS else None
