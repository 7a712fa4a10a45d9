"""Check identifiers and links: duplicates, persons without a household, and sizes of households."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census.records import IDS_PER_PART, CensusFiles, count_duplicates
from stirred.census.schema import RecordSchema
from stirred.census.validation.problems import Problem
from stirred.census.validation.rules import PassCounts
from stirred.frames import collect_frame, series_of

# Compare links with identifiers when both files are in the order of the identifier: one pass, two batches in memory.

ROWS_PER_BATCH = 1 << 20


def merge_sorted(links: pl.LazyFrame, homes: pl.LazyFrame) -> tuple[int, int]:
    """Return how many links no household has, and how many households have another size than persons.

    Both are in rising order, no household occurs twice, and no identifier is empty; a size may be.

    >>> homes = pl.LazyFrame({"id": [1, 2, 4], "size": [1, 2, None]})
    >>> merge_sorted(pl.LazyFrame({"id": [1, 2, 3, 3]}), homes)
    (2, 1)
    """
    persons = _read_batches(links)
    waiting = next(persons, None)
    orphans = wrong = 0
    for some in _read_batches(homes):
        ids, sizes = some["id"].to_numpy(), some["size"]
        counts = np.zeros(ids.size, np.int64)
        while waiting is not None:
            values = waiting["id"].to_numpy()
            here = int(np.searchsorted(values, ids[-1], side="right"))
            orphans += _add_counts(values[:here], ids, counts)
            if here < values.size:
                waiting = waiting[here:]
                break
            waiting = next(persons, None)
        wrong += int((sizes != series_of(counts)).sum())
    while waiting is not None:
        orphans += waiting.height
        waiting = next(persons, None)
    return orphans, wrong


def _add_counts(values: NDArray[np.generic], ids: NDArray[np.generic], counts: NDArray[np.int64]) -> int:
    """Add how often each identifier occurs in rising values; returns how many values are not identifiers."""
    if not values.size:
        return 0
    starts = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    times = np.diff(starts, append=values.size)
    found = values[starts]
    first = int(np.searchsorted(ids, found[0]))  # every value is at most the last identifier
    if np.array_equal(ids[first : first + found.size], found):  # every household has its persons, as usual
        counts[first : first + found.size] += times
        return 0
    at = np.searchsorted(ids, found)
    known = ids[at] == found
    counts[at[known]] += times[known]
    return int(times[~known].sum())


def _read_batches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    for batch in frame.collect_batches(
        chunk_size=ROWS_PER_BATCH, maintain_order=True, lazy=True, engine="streaming"
    ):
        if batch.height:
            yield batch


# Check identifiers and links: duplicates, orphans, and household sizes against the persons.
#
# Files in the order of their identifiers are compared in one streaming pass; otherwise identifiers are compared in
# parts by their hash. Memory stays bounded in both cases, for any census.

USED_TWICE_RULE = "identifiers used before by another record"
ID, SIZE, PERSONS = "id", "size", "persons"
MERGEABLE_TYPES = (
    pl.Int8,
    pl.Int16,
    pl.Int32,
    pl.Int64,
    pl.UInt8,
    pl.UInt16,
    pl.UInt32,
    pl.UInt64,
)  # as in numpy


CountTwice = Callable[[CensusFiles, RecordSchema, int], int]
CountUnlinked = Callable[[CensusFiles, RecordSchema, Mapping[str, PassCounts]], tuple[int, int]]


def check_links(
    census: CensusFiles, counts: Mapping[str, PassCounts], twice: CountTwice, unlinked: CountUnlinked
) -> Iterator[Problem]:
    """Yield problems of identifiers and links: duplicates, persons without household, wrong sizes."""
    for record in census.schema.records:
        found = counts[record.name]
        yield from found.problems["links"]
        if record.id and not found.unique:
            again = twice(census, record, found.rows)
            if again:
                yield Problem(record_type=record.name, column=record.id, rule=USED_TWICE_RULE, count=again)
    for record in census.schema.records:
        if not record.household or record.linked_to not in counts:
            continue
        home = census.schema.record(record.linked_to)
        orphans, wrong = unlinked(census, record, counts) if home.id else (0, 0)
        if orphans:
            rule = f"no {home.name} has this identifier (orphans)"
            yield Problem(record_type=record.name, column=record.household, rule=rule, count=orphans)
        if wrong:
            rule = f"not the number of its {record.name} records"
            yield Problem(record_type=home.name, column=home.size, rule=rule, count=wrong)


def count_parts(rows: int) -> int:
    """Return how many parts identifiers are compared in."""
    return max(1, -(-rows // IDS_PER_PART))


def select_part(frame: pl.LazyFrame, key: str, part: int, parts: int) -> pl.LazyFrame:
    """Return the rows of one part by the hash of their identifier; rows without an identifier are skipped."""
    frame = frame.filter(pl.col(key).is_not_null())
    return frame if parts == 1 else frame.filter(pl.col(key).hash() % parts == part)


def count_twice(census: CensusFiles, record: RecordSchema, rows: int) -> int:
    """Return how many identifiers of a record type were used before by another record."""
    return count_duplicates(census.scan(record.name).select(record.id), rows)


def scan_sides(census: CensusFiles, record: RecordSchema) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Return the links of the persons (id), and the identifiers of the households with their sizes (id, size)."""
    home = census.schema.record(record.linked_to)
    links = census.scan(record.name).select(pl.col(record.household).alias(ID))
    homes = census.scan(home.name).select(
        pl.col(home.id).alias(ID),
        (pl.col(home.size).cast(pl.Int64) if home.size else pl.lit(None, dtype=pl.Int64)).alias(SIZE),
    )
    types = links.collect_schema()[ID], homes.collect_schema()[ID]
    if types[0] != types[1]:
        one = choose_link_type(*types)
        links, homes = (frame.with_columns(pl.col(ID).cast(one)) for frame in (links, homes))
    return links, homes


def choose_link_type(one: pl.DataType, other: pl.DataType) -> pl.DataType:
    """Return the type in which links and identifiers of two types are compared."""
    signed = all(dtype.is_signed_integer() and dtype != pl.Int128 for dtype in (one, other))
    return pl.Int64() if signed else pl.String()


def find_orphans(links: pl.LazyFrame, homes: pl.LazyFrame) -> pl.LazyFrame:
    """Return the links that no household has (id, persons)."""
    return count_persons(links).join(homes.select(ID), on=ID, how="anti")


def find_wrong_sizes(links: pl.LazyFrame, homes: pl.LazyFrame) -> pl.LazyFrame:
    """Return the households whose size is not the number of their persons."""
    both = homes.join(count_persons(links), on=ID, how="left").with_columns(pl.col(PERSONS).fill_null(0))
    return both.filter(pl.col(SIZE) != pl.col(PERSONS))


def count_persons(links: pl.LazyFrame) -> pl.LazyFrame:
    """Return how many persons have each link."""
    return links.group_by(ID).agg(pl.len().cast(pl.Int64).alias(PERSONS))


def count_unlinked(
    census: CensusFiles, record: RecordSchema, counts: Mapping[str, PassCounts]
) -> tuple[int, int]:
    """Return how many persons have no household, and how many households have another size than persons."""
    home = census.schema.record(record.linked_to)
    links, homes = scan_sides(census, record)
    ordered = record.household in counts[record.name].rising and counts[home.name].unique
    if ordered and links.collect_schema()[ID] in MERGEABLE_TYPES:
        return merge_sorted(links, homes)
    orphans = wrong = 0
    parts = count_parts(max(counts[record.name].rows, counts[home.name].rows))
    for part in range(parts):
        some, there = select_part(links, ID, part, parts), select_part(homes, ID, part, parts)
        orphans += _collect_number(find_orphans(some, there).select(pl.col(PERSONS).sum()))
        if home.size:
            wrong += _collect_number(find_wrong_sizes(some, there).select(pl.len()))
    return orphans, wrong


def _collect_number(frame: pl.LazyFrame) -> int:
    result = collect_frame(frame, streaming=True)
    return int(result.item() or 0)
