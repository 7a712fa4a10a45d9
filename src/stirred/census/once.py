"""Check that identifiers are unique: a join by an identifier that occurs twice would count persons twice."""

import polars as pl

from stirred.census.codebook.schema import RecordSchema
from stirred.errors import DataError
from stirred.frames import collect_frame

IDS_PER_PART = 20_000_000  # identifiers held at once


def count_used_again(ids: pl.LazyFrame, rows: int) -> int:
    """Count the records whose identifier occurred in an earlier record; empty identifiers do not count.

    Identifiers in increasing order are found to be unique in one streaming pass; others are compared in parts by
    their hash, so that memory stays bounded in both cases.

    >>> count_used_again(pl.LazyFrame({"id": [1, 2, 5, None]}), 4), count_used_again(pl.LazyFrame({"id": [5, 2, 5, 5]}), 4)
    (0, 2)
    """
    return 0 if _is_rising(ids.drop_nulls()) else count_duplicates(ids, rows)


def count_duplicates(ids: pl.LazyFrame, rows: int) -> int:
    """Return how many identifiers repeat an earlier one, comparing them in parts by their hash."""
    named = ids.drop_nulls()
    key = pl.first()
    parts = max(1, -(-rows // IDS_PER_PART))
    found = 0
    for part in range(parts):
        some = named if parts == 1 else named.filter(key.hash() % parts == part)
        counted = collect_frame(
            some.select(pl.len().cast(pl.Int64) - key.n_unique().cast(pl.Int64)), streaming=True
        )
        found += int(counted.item())
    return found


def require_once(ids: pl.LazyFrame, rows: int, record: RecordSchema) -> None:
    """Raise an error when two records of a type share an identifier."""
    again = count_used_again(ids, rows)
    if again:
        raise DataError(
            f"{record.name}.{record.id}: {again:,} identifiers were used before by another record",
            why="records linked to them would be counted more than once",
            fix="see all problems with: stirred data check census.toml",
        )


def _is_rising(ids: pl.LazyFrame) -> bool:
    # the first record has none before it: its comparison is null, which counts as increasing
    return bool(collect_frame(ids.select((pl.first() > pl.first().shift()).all()), streaming=True).item())
