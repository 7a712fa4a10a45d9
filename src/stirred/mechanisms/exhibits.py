"""Define what a mechanism shows in a report: sentences, tables and series as plain data.

It also holds the marks that tables carry in the metadata of their files; verbs that must start fast import it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal
from math import isfinite
from typing import Literal

# What tables say of themselves in the metadata of their files; imported by verbs that must start fast.

SELECTED_ROWS_KEY = (
    "stirred:selected rows"  # of a table that leaves rows out by their value: a missing row is then no 0
)


# What a mechanism shows in a report: sentences, tables and series as plain data, drawn by ``report``.


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


def format_value(value: object) -> str:
    """Return a value as findings and the report write it.

    >>> [format_value(v) for v in (1234567, 0.123456, 1234.5, float("nan"), None, "x")]
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


def round_digits(value: float, digits: int = 2) -> Decimal:
    """Return a number with that many significant digits and no decimals after a whole number.

    >>> [str(round_digits(value)) for value in (0.01234, 0.5, 1.96, 9.96, 12.4, 1876.3, 0.0)]
    ['0.012', '0.50', '2.0', '10', '12', '1876', '0']
    """
    if value != value:
        return Decimal("NaN")
    exact = Decimal(repr(float(value)))
    if abs(exact) >= 10 ** (digits - 1) or exact == 0:
        return exact.quantize(Decimal(1), ROUND_HALF_EVEN)
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).plus(exact)
    return rounded.quantize(Decimal(1).scaleb(min(0, rounded.adjusted() - digits + 1)))


def format_error(value: float, *, signed: bool = False) -> str:
    """Return an error as text with two significant digits.

    >>> format_error(0.012345), format_error(1234.5), format_error(0.25, signed=True), format_error(float("nan"))
    ('0.012', '1,234', '+0.25', '–')
    """
    if not isfinite(value):
        return format_value(value)
    return f"{round_digits(value):{'+' if signed and value else ''},f}".replace("-", "−")


def format_beside_error(value: float, error: float) -> str:
    """Return a number down to the last digit of its error; four digits where the error is 0 or unknown.

    >>> format_beside_error(0.105731, 0.0026), format_beside_error(1234.56, 41), format_beside_error(0.105731, 0.0)
    ('0.1057', '1,235', '0.1057')
    """
    if not isfinite(value) or not isfinite(error) or error == 0:
        return format_value(value)
    return f"{Decimal(repr(float(value))).quantize(round_digits(error), ROUND_HALF_EVEN):,f}"
