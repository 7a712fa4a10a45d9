"""Assess a release: compare its tables and relations with those of the confidential census.

Everything here is computed with confidential data. It is internal, or made on a stand-in, or published with noise
whose cost enters the ledger (the paper's Remark 6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl
import pyarrow as pa

from stirred.assess.conclusions import Conclusions, cramers_v, cross_table
from stirred.assess.utility import (
    METRIC_SCHEMA,
    TablePair,
    detailed_summary,
    measure_errors,
)
from stirred.census import Census


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAssessment:
    """One published table against the truth."""

    name: str
    record_type: str
    by: tuple[str, ...]
    pair: TablePair
    exact: (
        bool  # equal to the truth in every cell: listed separately, so that it does not improve the averages
    )
    promised: bool = False  # whether the release states that every cell is exact
    quoted: pl.DataFrame | None = field(
        default=None, repr=False
    )  # the number to quote of every published cell

    def quoted_pair(self) -> TablePair:
        """Return the same cells with the number to quote in the place of the count; the count where nothing else is."""
        if self.quoted is None:
            return self.pair
        keys, counted = list(self.by), self.pair.frame.drop("protected")
        joined = (
            counted.join(self.quoted, on=keys, how="left", nulls_equal=True)
            if keys
            else pl.concat([counted, self.quoted], how="horizontal")
        )
        return TablePair(by=self.by, frame=joined.with_columns(pl.col("protected").fill_null(0.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationAssessment:
    """The strength of the association of two variables before and after (Cramér's V)."""

    first: str
    second: str
    about: str  # the records that it is about
    original: float
    protected: float
    kept: bool  # whether the mechanism promises to keep it exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The results for one release."""

    name: str
    tables: tuple[TableAssessment, ...]
    relations: tuple[RelationAssessment, ...] = ()
    conclusions: Conclusions = field(default_factory=Conclusions)

    def metrics(self) -> pl.DataFrame:
        """Return all metrics in the long layout of the Bureau's Detailed Summary Metrics, without exact tables."""
        frames = [
            measure_errors(item.pair, table=item.name, level=item.by[0])
            for item in self.tables
            if not item.exact
        ]
        return pl.concat(frames) if frames else pl.DataFrame(schema=METRIC_SCHEMA)

    def summary(self) -> pl.DataFrame:
        """Return one row for each table, number and size class in the Bureau's layout; exact tables have error 0.

        ``Number`` is the count, or the number to quote where it is another one; ``Cell_Set`` says which cells are held
        against the census.
        """
        frames = [
            detailed_summary(pair, characteristic=item.name, geography=item.by[0]).with_columns(
                pl.lit(number).alias("Number"), pl.lit(CELL_SET).alias("Cell_Set")
            )
            for item in self.tables
            for number, pair in (("count", item.pair), ("quote", item.quoted_pair()))
            if (number == "count" or item.quoted is not None) and pair.frame.height
        ]
        # a table of records that do not exist has no cell, and no class of sizes
        frames = [frame for frame in frames if frame.height]
        return pl.concat(frames) if frames else pl.DataFrame()

    def exact_tables(self, *, promised: bool | None = None) -> tuple[str, ...]:
        """Return the unchanged tables; ``promised`` selects those that had to be exact, or those by chance."""
        return tuple(t.name for t in self.tables if t.exact and promised in (None, t.promised))

    def broken_tables(self) -> tuple[str, ...]:
        """Return the tables that the release states to be exact and that are not."""
        return tuple(t.name for t in self.tables if t.promised and not t.exact)


CELL_SET = "cells with a record in the census or in this release"


def assess_tables(
    name: str, census: Census, tables: Mapping[str, tuple[str, Sequence[str], pa.Table]]
) -> Assessment:
    """Compare published tables (name → record type, variables, table) with the same tables of the census.

    Cells that are empty on both sides are left out of the comparison: a table may list many or none of them. A table by
    variables of the mechanism's own, such as population groups, has no such table in the census and is left out.
    """
    found = []
    for table, (record_type, by, published) in tables.items():
        if not has_variables(census, record_type, by):
            continue
        truth = census.counts(record_type, list(by))
        pair = TablePair.align(truth, published.select([*by, "count"]), by=by).drop_empty()
        found.append(
            TableAssessment(
                name=table,
                record_type=record_type,
                by=tuple(by),
                pair=pair,
                exact=pair.exact,
                promised=_states_exact(published),
                quoted=_find_quoted(published, by),
            )
        )
    return Assessment(name=name, tables=tuple(found))


def _find_quoted(published: pa.Table, by: Sequence[str]) -> pl.DataFrame | None:
    """Return the number to quote of every cell as ``protected``, or None where it is the count."""
    if "estimate" not in published.column_names or "weighted" in published.column_names:
        return None
    frame = pl.DataFrame(pl.from_arrow(published))
    count = pl.col("count").cast(pl.Float64)
    number = pl.coalesce(pl.col("estimate").cast(pl.Float64), count)
    if "quote" in frame.columns:
        number = pl.when(pl.col("quote") == "estimate").then(number).otherwise(count)
    keys = [pl.col(name).cast(pl.String) for name in by]
    return frame.select(*keys, number.alias("protected"))


def has_variables(census: Census, record_type: str, by: Sequence[str]) -> bool:
    """Return whether a census has all variables of a table."""
    record = census.schema.record(record_type)
    known = {*census.columns(record_type), *census.schema.spine}
    known |= {off.name for off in census.schema.geography.off_spine}
    known |= set(census.columns(record.linked_to)) if record.linked_to else set()
    return set(by) <= known


def _states_exact(published: pa.Table) -> bool:
    """Return whether a published table states that all its cells are exact: all standard errors are 0."""
    if "standard_error" not in published.column_names or not published.num_rows:
        return False
    errors = published["standard_error"]
    return errors.null_count == 0 and all(error == 0 for error in errors.to_pylist())


def align_cells(assessments: Sequence[Assessment]) -> list[Assessment]:
    """Return the assessments with each table on all cells that the census or any release fills."""
    cells: dict[tuple[str, str, tuple[str, ...]], list[TablePair]] = {}
    for assessment in assessments:
        for item in assessment.tables:
            cells.setdefault((item.name, item.record_type, item.by), []).append(item.pair)
    return [
        replace(
            assessment,
            tables=tuple(
                replace(item, pair=item.pair.align_with(cells[item.name, item.record_type, item.by]))
                for item in assessment.tables
            ),
        )
        for assessment in assessments
    ]


def assess_relation(
    original: pl.DataFrame, protected: pl.DataFrame, pair: tuple[str, str], *, kept: bool, about: str
) -> RelationAssessment:
    """Compare the association of two variables before and after; ``kept`` says that it stays exact."""
    first, second = pair
    return RelationAssessment(
        first=first,
        second=second,
        about=about,
        original=cramers_v(cross_table(original, first, second)),
        protected=cramers_v(cross_table(protected, first, second)),
        kept=kept,
    )
