"""Identifiers that name one record each: a join by an identifier used twice would count persons twice."""

from collections.abc import Sequence

import polars as pl

from stirred.census.schema import RecordSchema
from stirred.errors import DataError

TIMES = "\x00times"


def each_once(frame: pl.LazyFrame, record: RecordSchema, columns: Sequence[str]) -> pl.LazyFrame:
    """One row per identifier with the columns asked for; an identifier used twice stops the query.

    >>> homes = pl.LazyFrame({"id": [1, 2, None, None], "county": ["a", "b", "c", "d"]})
    >>> each_once(homes, RecordSchema(name="household", id="id"), ["county"]).collect().height
    2
    """
    named = frame.filter(pl.col(record.id).is_not_null())
    values = [pl.first(name) for name in dict.fromkeys(columns) if name != record.id]
    counted = named.group_by(record.id).agg(*values, pl.len().alias(TIMES))
    once = pl.col(TIMES).map_batches(_Once(record), return_dtype=pl.Boolean, is_elementwise=True)
    return counted.filter(once).drop(TIMES)


class _Once:
    """True for every row, or an error that tells how many identifiers of a batch are used twice."""

    def __init__(self, record: RecordSchema) -> None:
        self.record = record

    def __call__(self, times: pl.Series) -> pl.Series:
        again = int((times > 1).sum())
        if again:
            raise DataError(
                f"{self.record.name}.{self.record.id}: {again} identifiers of a batch are used by several records",
                why="records linked to them would be counted more than once",
                fix="see all problems with: stirred data check census.toml",
            )
        return pl.repeat(value=True, n=len(times), eager=True, dtype=pl.Boolean)
