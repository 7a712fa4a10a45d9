"""What a mechanism shows in a report: sentences, tables and series as plain data, drawn by ``report``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Numbers to draw: a line of ``y`` over ``x``, or dots of ``y`` for each category ``x``; ``group`` by colour."""

    name: str  # letters, digits and hyphens
    kind: Literal["line", "dots"]
    title: str
    sentence: str
    rows: Sequence[Mapping[str, object]]
    x: str
    y: str
    group: str | None = None
    log_x: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A table to show: columns named in ``numeric`` hold numbers."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    numeric: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One section of a report: the finding in one sentence, then what shows it.

    >>> Exhibit(title="Noise", finding="Its variance is 4.").parts
    ()
    """

    title: str
    finding: str
    parts: tuple[Series | Listing, ...] = ()
    note: str = ""
    chapter: Literal["accuracy", "risk", "method"] = "method"  # of the report that it stands in


def shown(value: object) -> str:
    """A value as findings and the report write it.

    >>> [shown(v) for v in (1234567, 0.123456, 1234.5, float("nan"), None, "x")]
    ['1,234,567', '0.1235', '1,234.5', '–', '–', 'x']
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        if value != value:
            return "–"
        if abs(value) == float("inf"):
            return "∞" if value > 0 else "−∞"
        return (
            f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4g}"
        )
    return str(value)
