"""Check that identifiers are unique: a join by an identifier that occurs twice would count persons twice."""

import polars as pl

from stirred.census.codebook.schema import RecordSchema
from stirred.errors import DataError
from stirred.frames import collected

PART = 20_000_000  # identifiers held at once
BATCH = 1 << 20


def used_again(ids: pl.LazyFrame, rows: int) -> int:
    """Count the records whose identifier occurred in an earlier record; empty identifiers do not count.

    Identifiers in increasing order are found to be unique in one streaming pass; others are compared in parts by
    their hash, so that memory stays bounded in both cases.

    >>> used_again(pl.LazyFrame({"id": [1, 2, 5, None]}), 4), used_again(pl.LazyFrame({"id": [5, 2, 5, 5]}), 4)
    (0, 2)
    """
    named = ids.drop_nulls()
    if _rising(named):
        return 0
    key = pl.first()
    parts = max(1, -(-rows // PART))
    surplus = 0
    for part in range(parts):
        some = named if parts == 1 else named.filter(key.hash() % parts == part)
        counted = collected(
            some.select(pl.len().cast(pl.Int64) - key.n_unique().cast(pl.Int64)), streaming=True
        )
        surplus += int(counted.item())
    return surplus


def require_once(ids: pl.LazyFrame, rows: int, record: RecordSchema) -> None:
    """Raise an error when two records of a type share an identifier."""
    again = used_again(ids, rows)
    if again:
        raise DataError(
            f"{record.name}.{record.id}: {again:,} identifiers were used before by another record",
            why="records linked to them would be counted more than once",
            fix="see all problems with: stirred data check census.toml",
        )


def _rising(ids: pl.LazyFrame) -> bool:
    last: pl.Series | None = None
    for batch in ids.collect_batches(chunk_size=BATCH, maintain_order=True, lazy=True, engine="streaming"):
        values = batch.to_series()
        values = values if last is None else pl.concat([last, values])
        if not (
            values > values.shift()
        ).all():  # the first record has none before it, so its comparison is null and must count as increasing
            return False
        last = values.tail(1)
    return True
