"""Tables as text: a cell may be wrapped between its words, and nothing is ever cut."""

import re
import textwrap
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GAP_SPACES = 3  # spaces between columns
MIN_WIDTH_COLUMNS = 12  # a column of words is not made narrower than this
_NUMBER = re.compile(r"[≥≤<>×+\-−–~ ]*[0-9][0-9.,:/e+\-− ]*( ?%)?|[∞–—]|any factor|")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A title, the heads of the columns and rows of cells."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def lines(self, width: int) -> Iterator[str]:
        """Yield the lines; they exceed ``width`` only where a number or a word needs it.

        >>> print(*TextTable(title="Homes", columns=("county", "count"), rows=(("Kauai", "19,432"),)).lines(9), sep="\\n")
        Homes
        <BLANKLINE>
         county    count
         ───────────────
         Kauai    19,432
        <BLANKLINE>
        """
        widths = self._widths(width)
        if self.title:
            yield self.title
            yield ""
        if any(self.columns):
            yield from self._row(self.columns, widths)
            yield " " + "─" * (sum(widths) + GAP_SPACES * (len(widths) - 1))
        for row in self.rows:
            yield from self._row(row, widths)
        yield ""

    def _cells(self, column: int) -> list[str]:
        return [row[column] for row in self.rows]

    def _numeric(self, column: int) -> bool:
        return bool(self.rows) and all(_NUMBER.fullmatch(cell) for cell in self._cells(column))

    def _widths(self, width: int) -> list[int]:
        """Return the widths of columns; shrink the widest column of words first where they are too many."""
        natural, least = [], []
        for column, head in enumerate(self.columns):
            cells = [*self._cells(column), head]
            natural.append(max(map(columns_of, cells)))
            words = self._cells(column) if self._numeric(column) else [w for c in cells for w in c.split(" ")]
            longest = max(map(columns_of, [*words, *head.split(" ")]), default=0)
            least.append(min(natural[-1], max(longest, MIN_WIDTH_COLUMNS)))
        while sum(natural) + GAP_SPACES * (len(natural) - 1) + 1 > width:
            free = [column for column, found in enumerate(natural) if found > least[column]]
            if not free:
                break
            natural[max(free, key=natural.__getitem__)] -= 1
        return natural

    def _row(self, cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
        wrapped = [_wrap_cell(cell, width) for cell, width in zip(cells, widths, strict=True)]
        right = [self._numeric(column) for column in range(len(widths))]
        for place in range(max(map(len, wrapped))):
            parts = []
            for lines, width, at_right in zip(wrapped, widths, right, strict=True):
                text = lines[place] if place < len(lines) else ""
                blank = " " * (width - columns_of(text))
                parts.append(blank + text if at_right else text + blank)
            yield (" " + (" " * GAP_SPACES).join(parts)).rstrip()


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text fills.

    >>> columns_of("ε = 2"), columns_of("東京")
    (5, 4)
    """
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def _wrap_cell(cell: str, width: int) -> list[str]:
    if columns_of(cell) <= width:
        return [cell]
    return textwrap.wrap(cell, width, break_long_words=False, break_on_hyphens=False) or [""]
