"""Check identifiers and links: duplicates, orphans, and household sizes against the persons.

Identifiers are compared in parts by their hash, so that memory stays bounded for any census.
"""

from collections.abc import Iterator

import polars as pl

from stirred.census.codebook.domain import largest_household
from stirred.census.codebook.schema import RecordSchema
from stirred.census.files import CensusFiles
from stirred.census.once import PART, used_again
from stirred.census.validation.problems import Problem
from stirred.frames import collected

USED_TWICE = "identifiers used before by another record"


def check_links(census: CensusFiles, counts: dict[str, int]) -> Iterator[Problem]:
    """Duplicate identifiers, persons without household, sizes that are not the number of persons."""
    for record in census.schema.records:
        if record.id:
            yield from _duplicates(census, record, counts[record.name])
        yield from _sizes_alone(census, record)
    for record in census.schema.records:
        if record.household and record.linked_to in counts:
            yield from _linked(census, record, counts)


def _parts(rows: int) -> int:
    return max(1, -(-rows // PART))


def _part(frame: pl.LazyFrame, key: str, part: int, parts: int) -> pl.LazyFrame:
    frame = frame.filter(pl.col(key).is_not_null())
    return frame if parts == 1 else frame.filter(pl.col(key).hash() % parts == part)


def _one(frame: pl.LazyFrame) -> int:
    result = collected(frame, streaming=True)
    return int(result.item() or 0)


def _duplicates(census: CensusFiles, record: RecordSchema, rows: int) -> Iterator[Problem]:
    surplus = used_again(census.scan(record.name).select(record.id), rows)
    if surplus:
        yield Problem(record_type=record.name, column=record.id, rule=USED_TWICE, count=surplus)


def _sizes_alone(census: CensusFiles, record: RecordSchema) -> Iterator[Problem]:
    if not record.size:
        return
    size = pl.col(record.size)
    tests: list[tuple[str, pl.Expr]] = []
    largest = largest_household(census.schema)
    ordinary = pl.lit(value=True)
    kinds = record.kinds
    if kinds is not None:
        kind = pl.col(kinds.column)
        if kinds.group_quarters:
            ordinary = ~kind.is_in(list(kinds.group_quarters))
        if kinds.vacant:
            tests.append(("vacant units with persons", kind.is_in(list(kinds.vacant)) & (size > 0)))
        if kinds.occupied:
            tests.append(("occupied units without persons", kind.is_in(list(kinds.occupied)) & (size == 0)))
        tests.append((f"{kinds.column} names no kind of unit", ~kind.is_in(list(kinds.listed))))
    if largest is not None:
        tests.append(("more persons than the largest household", ordinary & (size > largest)))
    if not tests:
        return
    frame = census.scan(record.name).select(test.sum().alias(str(i)) for i, (_, test) in enumerate(tests))
    result = collected(frame, streaming=True)
    for (rule, _), count in zip(tests, result.row(0), strict=True):
        if count:
            yield Problem(record_type=record.name, column=record.size, rule=rule, count=int(count))


def _linked(census: CensusFiles, record: RecordSchema, counts: dict[str, int]) -> Iterator[Problem]:
    home = census.schema.record(record.linked_to)
    if not home.id:
        return
    links = census.scan(record.name).select(pl.col(record.household).alias("id"))
    homes = census.scan(home.name).select(
        pl.col(home.id).alias("id"),
        (pl.col(home.size).cast(pl.Int64) if home.size else pl.lit(None, dtype=pl.Int64)).alias("size"),
    )
    if links.collect_schema()["id"] != homes.collect_schema()["id"]:
        links, homes = (frame.with_columns(pl.col("id").cast(pl.String)) for frame in (links, homes))
    parts = _parts(max(counts[record.name], counts[home.name]))
    orphans = uneven = 0
    for part in range(parts):
        some, there = _part(links, "id", part, parts), _part(homes, "id", part, parts)
        persons = some.group_by("id").agg(pl.len().cast(pl.Int64).alias("persons"))
        alone = persons.join(there.select("id"), on="id", how="anti")
        orphans += _one(alone.select(pl.col("persons").sum()))
        if home.size:
            both = there.join(persons, on="id", how="left").with_columns(pl.col("persons").fill_null(0))
            uneven += _one(both.select((pl.col("size") != pl.col("persons")).sum()))
    if orphans:
        rule = f"no {home.name} has this identifier (orphans)"
        yield Problem(record_type=record.name, column=record.household, rule=rule, count=orphans)
    if uneven:
        rule = f"not the number of its {record.name} records"
        yield Problem(record_type=home.name, column=home.size, rule=rule, count=uneven)
