"""Facts about the columns of a file that decide their roles: kinds, empty fields, distinct values, uniqueness."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from stirred.census.codebook.schema import Source
from stirred.census.codebook.typed import normalise_digits
from stirred.census.once import count_used_again
from stirred.frames import collect_frame

MAX_CATEGORY_VALUES = 100  # a column with at most this many values is guessed to be a category
MIN_ROWS_FOR_UNIQUENESS = 20  # with fewer records a column may be unique by chance
WHOLE_NUMBER_PATTERN = r"^(0|-?[1-9]\d{0,17})$"
CODE_PATTERN = r"^[+-]?(0\d|\d{19})"  # 007, or longer than integers are stored: a code, not a number
EMPTY_MARKS = ("NA", ".", "NaN", "NULL")  # texts that stand for an empty field
EXACT_FLOAT_LIMIT = 2.0**53  # floating-point numbers below it are exact integers
POINT_PATTERN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
COMMA_PATTERN = r"^[+-]?(\d+,?\d*|,\d+)([eE][+-]?\d+)?$"

Shape = Literal["whole", "decimal", "text", "truth", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What the records say about one column; counts stay inside and are written only when asked for."""

    name: str
    dtype: pl.DataType
    shape: Shape
    comma: bool = False  # numbers are written with a decimal comma
    marks: tuple[str, ...] = ()  # texts in it that may stand for an empty field
    empty: int = 0
    distinct: int = 0
    lowest: float | None = None
    highest: float | None = None
    unique: bool = False

    @property
    def is_nested(self) -> bool:
        """Return whether the fields hold no single values, so that the column cannot be a variable."""
        return self.dtype.is_nested() or self.dtype in (pl.Binary, pl.Object)

    @property
    def may_be_code(self) -> bool:
        """Return whether the values can be codes or identifiers."""
        return self.shape in ("whole", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One file or table that is described: how it is read, and the facts about its columns."""

    name: str
    frame: pl.LazyFrame
    rows: int
    columns: Mapping[str, ColumnFacts]
    source: Source | None = None
    labels: Mapping[str, Mapping[str | int, str]] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # columns made of several, and those
    home_key: str = ""  # the one of them that tells households apart

    @property
    def has_enough_rows(self) -> bool:
        """Return whether there are enough records for uniqueness to mean something."""
        return self.rows >= MIN_ROWS_FOR_UNIQUENESS

    def match_names(self, pattern: re.Pattern[str]) -> list[ColumnFacts]:
        """Return the columns whose name fits a pattern of ``names``."""
        return [facts for facts in self.columns.values() if pattern.search(facts.name)]


def empty_to_null(value: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return text values with empty text as missing; other values unchanged."""
    if isinstance(dtype, pl.Categorical | pl.Enum):
        value = value.cast(pl.String)
    elif dtype != pl.String:
        return value
    return pl.when(value != "").then(value)


def read_values(facts: ColumnFacts) -> pl.Expr:
    """Return the values of a column, with the marks of empty fields as missing where it holds numbers."""
    value = empty_to_null(pl.col(facts.name), facts.dtype)
    return pl.when(~value.is_in(facts.marks)).then(value) if facts.marks and facts.shape != "text" else value


def find_facts(frame: pl.LazyFrame) -> tuple[int, dict[str, ColumnFacts]]:
    """Return the number of records and the facts about each column, by streaming passes.

    >>> rows, facts = find_facts(pl.LazyFrame({"w": ["0,5", "1"], "n": [1.0, 2.0]}))
    >>> rows, facts["w"].shape, facts["w"].comma, facts["n"].shape
    (2, 'decimal', True, 'whole')
    """
    schema = frame.collect_schema()
    asked = [pl.len().alias("")]
    for name, dtype in schema.items():
        asked += [
            expression.alias(f"{name}\x00{key}")
            for key, expression in _fact_expressions(empty_to_null(pl.col(name), dtype), dtype).items()
        ]
    row = collect_frame(frame.select(asked), streaming=True).row(0, named=True)
    rows = int(row[""])
    facts = {}
    for name, dtype in schema.items():
        found = {key.split("\x00")[-1]: value for key, value in row.items() if key.startswith(f"{name}\x00")}
        facts[name] = _make_facts(name, dtype, rows, found, frame)
    return rows, facts


def _fact_expressions(value: pl.Expr, dtype: pl.DataType) -> dict[str, pl.Expr]:
    asked = {"empty": value.null_count()}
    if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Null):
        return asked
    asked["distinct"] = value.approx_n_unique()
    if dtype == pl.String:
        asked |= {f"mark {mark}": (value == mark).sum() for mark in EMPTY_MARKS}
        filled = value.filter(~value.is_in(EMPTY_MARKS))
        asked["not_whole"] = (~normalise_digits(filled).str.contains(WHOLE_NUMBER_PATTERN)).sum()
        asked["not_point"] = (~filled.str.contains(POINT_PATTERN)).sum()
        asked["not_comma"] = (~filled.str.contains(COMMA_PATTERN)).sum()
        asked["padded"] = filled.str.contains(CODE_PATTERN).sum()
        number = filled.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        asked |= {"lowest": number.min(), "highest": number.max()}
    elif dtype.is_float():
        asked["not_whole"] = (~((value == value.floor()) & (value.abs() < EXACT_FLOAT_LIMIT))).sum()
        asked |= {"lowest": value.min(), "highest": value.max()}
    elif dtype.is_numeric():
        asked |= {"lowest": value.min().cast(pl.Float64), "highest": value.max().cast(pl.Float64)}
    return asked


def _make_facts(
    name: str, dtype: pl.DataType, rows: int, found: Mapping[str, int | float | None], frame: pl.LazyFrame
) -> ColumnFacts:
    empty, distinct = int(found["empty"] or 0), int(found.get("distinct") or 0)
    marked = {mark: int(found.get(f"mark {mark}") or 0) for mark in EMPTY_MARKS}
    shape, comma = _find_shape(dtype, found, rows - empty - sum(marked.values()))
    empty += 0 if shape == "text" else sum(marked.values())
    # the number of distinct values is an estimate: uniqueness is decided by comparing all of them
    likely = empty == 0 and rows > 0 and distinct >= rows * 0.7
    unique = likely and shape != "truth" and count_used_again(frame.select(name), rows) == 0
    lowest, highest = found.get("lowest"), found.get("highest")
    return ColumnFacts(
        name=name,
        dtype=dtype,
        shape=shape,
        comma=comma,
        marks=tuple(mark for mark, count in marked.items() if count),
        empty=empty,
        distinct=rows if unique else distinct,
        lowest=None if lowest is None else float(lowest),
        highest=None if highest is None else float(highest),
        unique=unique,
    )


def _find_shape(
    dtype: pl.DataType, found: Mapping[str, int | float | None], filled: int
) -> tuple[Shape, bool]:
    if dtype == pl.Boolean:
        return "truth", False
    if dtype.is_integer():
        return "whole", False
    if dtype.is_decimal():
        return "decimal", False
    if dtype.is_float():
        return ("decimal" if found["not_whole"] or not filled else "whole"), False
    if dtype == pl.String and filled:
        if not found["not_whole"]:
            return "whole", False
        if found["padded"]:
            return "text", False
        if not found["not_point"] or not found["not_comma"]:
            return "decimal", bool(found["not_point"])
    textual = dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)
    return ("text" if textual else "other"), False
