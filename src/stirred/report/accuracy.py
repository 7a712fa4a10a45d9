"""Say how far numbers can be off, table by table and size by size; nothing is pooled over tables or over empty cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.assess.assessment import Assessment, TableAssessment
from stirred.assess.utility import CELL_BINS, Array, TablePair, bin_labels
from stirred.frames import median
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import round_digits
from stirred.report.document import TableBlock, interval_reach, percent

Tables = Mapping[str, tuple[Sequence[str], pa.Table]]
SIZE_STARTS = CELL_BINS  # classes of a cell's published count: empty cells are a class of their own
LARGE = 100  # from this count on an interval is told in per cent
NO_CELLS = "–"
WIDE = 1.5  # the widest interval of a class is told where it is so many times that of the middle cell
ERRORS = ("estimate", "standard_error", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """A published table: its name, variables and numbers."""

    name: str
    by: tuple[str, ...]
    frame: pl.DataFrame

    @staticmethod
    def of(name: str, by: Sequence[str], data: pa.Table) -> "PublishedTable":
        """Return a published table whose stated errors are floats."""
        frame = pl.DataFrame(pl.from_arrow(data))
        numbers = [column for column in ERRORS if column in frame.columns]
        frame = frame.with_columns(pl.col(numbers).cast(pl.Float64))
        if "low" in numbers:
            frame = frame.with_columns(pl.col("low", "high").fill_null(pl.col("estimate")))
        return PublishedTable(name=name, by=tuple(by), frame=frame)

    @property
    def has_no_error(self) -> bool:
        """Return whether nothing is said about the table's error."""
        return not set(ERRORS) <= set(self.frame.columns)

    @property
    def measure(self) -> str:
        """Return the column that holds what was released: counts, or sums of weights."""
        return "weighted" if "weighted" in self.frame.columns else "count"

    def uncertain(self) -> pl.DataFrame:
        """Return the cells that have an error: the reach of their interval, its share of the estimate, their class."""
        reach = interval_reach()
        noisy = (pl.col("standard_error") > 0) & pl.col("standard_error").is_finite()
        return self.frame.filter(noisy).with_columns(
            reach, (reach / pl.max_horizontal(pl.col("estimate"), 1.0)).alias("share"), self._class()
        )

    def select_class(self, index: int) -> pl.DataFrame:
        """Return all cells of one class of sizes."""
        return self.frame.filter(self._class() == index)

    def _class(self) -> pl.Expr:
        """Return the class of the published count; noise may make a count negative."""
        size = pl.col(self.measure)
        return pl.sum_horizontal((size >= start).cast(pl.Int64) for start in SIZE_STARTS[1:]).alias("class")

    def count_outside(self) -> tuple[int, int]:
        """Return how many uncertain counts lie outside their own interval, and how many are uncertain."""
        cells = self.uncertain()
        value = pl.col(self.measure).clip(lower_bound=0)  # no interval holds a negative count
        outside = cells.filter((value < pl.col("low")) | (value > pl.col("high")))
        return outside.height, cells.height


def read_published(tables: Tables) -> list[PublishedTable]:
    """Return all tables of a release."""
    return [PublishedTable.of(name, by, data) for name, (by, data) in tables.items()]


def size_names() -> list[str]:
    """Return the classes of sizes as heads of columns.

    >>> size_names()
    ['0', '1–9', '10–99', '100–999', '1,000+']
    """
    return bin_labels(SIZE_STARTS)


def summarize_intervals(found: Sequence[PublishedTable]) -> TableBlock:
    """Return one line per table: the 95 % interval of the middle cell and the widest, by published count."""
    filled = [
        index
        for index in range(len(SIZE_STARTS))
        if any(one.select_class(index).height for one in found) or not found
    ]
    rows = [(one.name, *(_write_reach(one, index, widest=True) for index in filled)) for one in found]
    columns = (Phrase("report.chart.table"), *(size_names()[index] for index in filled))
    return TableBlock(
        caption=Phrase("report.accuracy.intervals"),
        columns=columns,
        rows=tuple(rows),
        numeric=frozenset(columns[1:]),
    )


def _write_reach(one: PublishedTable, index: int, *, widest: bool = False) -> str:
    """Return how far the interval of the middle cell of a class reaches, "exact", or that there is no such cell.

    With ``widest`` the widest interval of the class stands beside it, where it is much wider.
    """
    cells = one.uncertain().filter(pl.col("class") == index)
    if not cells.height:
        return Phrase("report.accuracy.exact") if one.select_class(index).height else NO_CELLS
    reach, share, large = cells["reach"].to_numpy(), cells["share"].to_numpy(), SIZE_STARTS[index] >= LARGE
    middle = write_reach(reach, share, large=large)
    told = share if large else reach
    if widest and float(told.max()) >= WIDE * float(median(told)):
        return Phrase("report.accuracy.widest", middle=middle, widest=write_widest(reach, share, large=large))
    return middle


def write_widest(reach: Array, share: Array, *, large: bool) -> str:
    """Return the farthest reach, rounded up: a number, or per cent of large cells."""
    if large:
        return Phrase("report.accuracy.most_percent", percent=round_up(100 * float(share.max())))
    return Phrase("report.accuracy.most", number=round_up(float(reach.max())))


def round_up(value: float) -> Decimal:
    """Return a number with two significant digits, never below it.

    >>> [str(round_up(value)) for value in (4.4585, 0.5, 1.5, 12.1, 99.5)]
    ['4.5', '0.50', '1.5', '13', '100']
    """
    exact = Decimal(repr(float(value)))
    nearest = round_digits(value)
    if nearest >= exact:
        return nearest
    up = exact.quantize(nearest, ROUND_CEILING)
    return (
        Context(prec=2, rounding=ROUND_CEILING).plus(up)
        if up < 10
        else up.quantize(Decimal(1), ROUND_CEILING)
    )


def write_reach(reach: Array, share: Array, *, large: bool) -> str:
    """Return the reach of the middle cell: a number, or per cent of large cells."""
    if large:
        return Phrase("report.accuracy.plus_percent", percent=percent(median(share)))
    return Phrase("report.accuracy.plus", number=round_digits(median(reach)))


def detail_intervals(found: Sequence[PublishedTable]) -> TableBlock:
    """Return one line per table and class: cells, exact ones, error and interval of the middle cell, counts outside."""
    rows: list[tuple[str, ...]] = []
    for one in found:
        for index, name in enumerate(size_names()):
            cells = one.uncertain().filter(pl.col("class") == index)
            number = one.select_class(index).height
            if not number:
                continue
            outside, _ = PublishedTable(name=one.name, by=one.by, frame=cells).count_outside()
            error = f"{round_digits(median(cells['standard_error'].to_numpy())):,f}" if cells.height else "0"
            most = NO_CELLS
            if cells.height:
                widths = cells["reach"].to_numpy(), cells["share"].to_numpy()
                most = write_widest(*widths, large=SIZE_STARTS[index] >= LARGE)
            rows.append(
                (
                    *(one.name, name, f"{number:,}", f"{number - cells.height:,}", error),
                    *(_write_reach(one, index), most, f"{outside:,}"),
                )
            )
    heads = ("size", "cells", "exact_cells", "error", "interval", "widest", "outside")
    columns = (Phrase("report.chart.table"), *(Phrase(f"report.accuracy.head.{name}") for name in heads))
    return TableBlock(
        caption=Phrase("report.accuracy.detail"),
        columns=columns,
        rows=tuple(rows),
        numeric=frozenset(columns[2:]),
    )


# Several releases side by side: in a row all are compared over the same cells; what a release keeps exact is said instead.

Measured = Literal["quote", "count"]  # the number whose error is told


def compare_intervals(releases: Mapping[str, Tables]) -> TableBlock | None:
    """Return one line per table that several releases publish, with the interval of the middle cell of each."""
    found = {release: {one.name: one for one in read_published(ts)} for release, ts in releases.items()}
    rows = []
    for name in dict.fromkeys(name for tables in found.values() for name in tables):
        there = {release: tables.get(name) for release, tables in found.items()}
        stated = {release: one for release, one in there.items() if one is not None and not one.has_no_error}
        cells = {release: one.uncertain() for release, one in stated.items() if one.uncertain().height}
        if len(stated) < 2:
            continue
        shared = _shared_keys([(stated[release], frame) for release, frame in cells.items()])
        row = [name, f"{len(shared):,}" if cells else NO_CELLS]
        for release in releases:
            if release not in stated:
                row.append(NO_CELLS)
            elif release not in cells:
                row.append(Phrase("report.accuracy.exact"))
            else:
                own = _with_key(stated[release].by, cells[release]).filter(pl.col("key").is_in(shared))
                row.append(
                    Phrase("report.accuracy.plus", number=round_digits(median(own["reach"].to_numpy())))
                    if own.height
                    else NO_CELLS
                )
        rows.append(tuple(row))
    return _beside_cells(rows, list(releases), Phrase("report.accuracy.compared_intervals"))


def compare_errors(
    assessments: Sequence[Assessment], tables: Mapping[str, Tables], number: Measured = "quote"
) -> TableBlock | None:
    """Return one line per table with the mean absolute error of each release. Internal, unless the truth is public.

    ``number`` is the one whose error is told: the number to quote, or the count.
    """
    rows = []
    for name in dict.fromkeys(item.name for one in assessments for item in one.tables):
        items = {one.name: item for one in assessments for item in one.tables if item.name == name}
        erring = {release: item for release, item in items.items() if not item.promised}
        certain: set[str] = set()
        for release, item in erring.items():
            if name in tables.get(release, {}):
                one = PublishedTable.of(name, *tables[release][name])
                if not one.has_no_error:
                    zero = one.frame.filter(pl.col("standard_error") == 0)
                    certain |= set(_with_key(item.by, zero)["key"])
        errors: dict[str, str] = {}
        compared = 0
        for release, item in erring.items():
            frame = _with_key(item.by, _pair_of(item, number).frame)
            frame = frame.filter(~pl.col("key").is_in(list(certain)))
            compared = max(compared, frame.height)
            error = (frame["protected"] - frame["reference"]).abs().mean()
            errors[release] = NO_CELLS if error is None else f"{round_digits(float(str(error))):,f}"
        row = [name, f"{compared:,}" if erring else NO_CELLS]
        for one_release in assessments:
            if one_release.name not in items:
                row.append(NO_CELLS)
            else:
                row.append(errors.get(one_release.name, Phrase("report.accuracy.exact")))
        rows.append(tuple(row))
    caption = Phrase(f"report.accuracy.compared_{'errors' if number == 'quote' else 'counts'}")
    return _beside_cells(rows, [one.name for one in assessments], caption)


def _pair_of(item: TableAssessment, number: Measured) -> TablePair:
    """Return the cells before and after: the number to quote, or the count."""
    return item.quoted_pair() if number == "quote" else item.pair


def _beside_cells(
    rows: Sequence[tuple[str, ...]], releases: Sequence[str], caption: str
) -> TableBlock | None:
    """Return a table with the number of cells that are compared, and a column for each release."""
    if not rows:
        return None
    numbers = (Phrase("report.accuracy.head.cells"), *releases)
    columns = (Phrase("report.chart.table"), *numbers)
    return TableBlock(caption=caption, columns=columns, rows=tuple(rows), numeric=frozenset(numbers))


def _with_key(by: Sequence[str], frame: pl.DataFrame) -> pl.DataFrame:
    """Add the cell as text, so that releases that store codes differently are compared."""
    parts = [pl.col(name).cast(pl.String).fill_null("–") for name in by]
    return frame.with_columns((pl.concat_str(parts, separator="\x1f") if parts else pl.lit("")).alias("key"))


def _shared_keys(found: Sequence[tuple[PublishedTable, pl.DataFrame]]) -> list[str]:
    """Return the cells that are uncertain in all of these releases."""
    keys = [set(_with_key(one.by, cells)["key"]) for one, cells in found]
    return sorted(set.intersection(*keys)) if keys else []


def summarize_errors(assessment: Assessment, number: Measured = "quote") -> TableBlock | None:
    """Return one line per table of one release: the mean absolute error by the original count. Internal.

    ``number`` is the one whose error is told: the number to quote, or the count.
    """
    rows = []
    for item in assessment.tables:
        before, after = _pair_of(item, number).arrays()
        classes = np.searchsorted(np.asarray(SIZE_STARTS[1:]), before, side="right")
        row: list[str] = [item.name]
        for index in range(len(SIZE_STARTS)):
            chosen = np.abs(after - before)[classes == index]
            if item.promised and item.exact and chosen.size:
                row.append(Phrase("report.accuracy.exact"))
            else:
                row.append(f"{round_digits(float(chosen.mean())):,f}" if chosen.size else NO_CELLS)
        rows.append(tuple(row))
    if not rows:
        return None
    columns = (Phrase("report.chart.table"), *size_names())
    caption = Phrase(f"report.accuracy.{'errors' if number == 'quote' else 'errors_of_counts'}")
    return TableBlock(caption=caption, columns=columns, rows=tuple(rows), numeric=frozenset(columns[1:]))


# Counts outside their own interval, the worst table first.

MAX_TABLES_NAMED = 6


def list_outside(releases: Mapping[str, Tables]) -> str:
    """Return the tables with counts outside their own interval, by share, as text; "" where there is none.

    Of several releases each one's worst table stands before any second table.
    """
    found = []
    for release, tables in releases.items():
        own = []
        for one in read_published(tables):
            outside, cells = (0, 0) if one.has_no_error else one.count_outside()
            if outside:
                named = one.name if len(releases) == 1 else f"{release}, {one.name}"
                own.append((-outside / cells, named, outside, cells))
        found += [(rank, *line) for rank, line in enumerate(sorted(own))]
    if not found:
        return ""
    told = sorted(found) if len(releases) > 1 else found
    said: list[str] = [
        Phrase("report.accuracy.outside_of", table=name, outside=outside, cells=cells)
        for _, _, name, outside, cells in told[:MAX_TABLES_NAMED]
    ]
    if len(found) > MAX_TABLES_NAMED:
        said.append(Phrase("report.accuracy.outside_more", count=len(found) - MAX_TABLES_NAMED))
    listed = said[0]
    for one_more in said[1:]:
        listed = Phrase("lists.semicolon_pair", first=listed, second=one_more)
    return Phrase("report.accuracy.outside", tables=listed)
