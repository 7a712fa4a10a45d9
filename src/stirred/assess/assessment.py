"""Assess a release: compare its tables and relations with those of the confidential census.

Everything here is computed with confidential data. It is internal, or made on a stand-in, or published with noise
whose cost enters the ledger (the paper's Remark 6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.assess.conclusions import Conclusions
from stirred.assess.utility.relations import cramers_v, cross_table
from stirred.assess.utility.summary import detailed_summary
from stirred.assess.utility.tables import BLOCK_BINS, CELL_BINS, METRIC_SCHEMA, TablePair, errors
from stirred.census import Census


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAssessment:
    """One published table against the truth."""

    name: str
    record_type: str
    by: tuple[str, ...]
    pair: TablePair
    exact: bool  # an invariant of this release: listed separately, so that it does not improve the averages


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationAssessment:
    """The strength of the association of two variables before and after (Cramér's V)."""

    first: str
    second: str
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
        """All metrics in the long layout of the Bureau's Detailed Summary Metrics, exact tables left out."""
        frames = [
            errors(item.pair, table=item.name, level=item.by[0], edges=_edges(item.by))
            for item in self.tables
            if not item.exact
        ]
        return pl.concat(frames) if frames else pl.DataFrame(schema=METRIC_SCHEMA)

    def summary(self) -> pl.DataFrame:
        """One row for each table and size class in the Bureau's layout; exact tables too, with no error."""
        frames = [
            detailed_summary(item.pair, characteristic=item.name, geography=item.by[0], edges=_edges(item.by))
            for item in self.tables
        ]
        return pl.concat(frames) if frames else pl.DataFrame()

    def exact_tables(self) -> tuple[str, ...]:
        """The tables that did not change in any cell."""
        return tuple(item.name for item in self.tables if item.exact)


def _edges(by: Sequence[str]) -> Sequence[int]:
    """Totals of areas by the size of the area, other cells by their own."""
    return BLOCK_BINS if len(by) == 1 else CELL_BINS


def assess_tables(
    name: str, census: Census, tables: Mapping[str, tuple[str, Sequence[str], pa.Table]]
) -> Assessment:
    """Compare published tables (name → record type, variables, table) with the same tables of the census."""
    found = []
    for table, (record_type, by, published) in tables.items():
        truth = census.counts(record_type, list(by))
        pair = TablePair.align(truth, published.select([*by, "count"]), by=by)
        found.append(
            TableAssessment(name=table, record_type=record_type, by=tuple(by), pair=pair, exact=pair.exact)
        )
    return Assessment(name=name, tables=tuple(found))


def assess_relation(
    original: pl.DataFrame, protected: pl.DataFrame, pair: tuple[str, str], *, kept: bool
) -> RelationAssessment:
    """The association of two variables before and after; ``kept`` says that the mechanism leaves it exact."""
    first, second = pair
    return RelationAssessment(
        first=first,
        second=second,
        original=cramers_v(cross_table(original, first, second)),
        protected=cramers_v(cross_table(protected, first, second)),
        kept=kept,
    )


def five_numbers(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> dict[str, float]:
    """Minimum, quartiles and maximum, named as the boxplot needs them.

    >>> five_numbers(np.array([0.0, 1.0, 2.0, 3.0, 4.0]))["median"]
    2.0
    """
    low, q1, median, q3, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    return {"low": float(low), "q1": float(q1), "median": float(median), "q3": float(q3), "high": float(high)}
