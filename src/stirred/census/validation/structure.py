"""Check the structure of a census: the geography is a tree, identifiers are unique, and records belong to each other."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census.geography import read_areas, read_crosswalk
from stirred.census.records import IDS_PER_PART, CensusFiles, count_duplicates
from stirred.census.schema import RecordSchema
from stirred.census.validation.rules import PassCounts, Problem
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


# Find codes of areas that look the same and are not: one place would become two.

ALIKE_RULE = (
    "codes that look like another one: case, spaces at the ends, letters in two forms, or signs of no width"
)
ALIKE_FIX = "write every code in one way (one case, no spaces at the ends, Unicode NFC, no signs of no width)"
NO_WIDTH_SIGNS = "[\u00ad\u200b-\u200f\u2060\ufeff]"


def check_alike(distinct: pl.DataFrame, record_type: str, levels: Sequence[str]) -> Iterator[Problem]:
    """Yield problems where two codes of a level are the same to the eye.

    >>> [problem.count for problem in check_alike(pl.DataFrame({"lau": ["Cé", "Ce\u0301", "D"]}), "household", ["lau"])]
    [1]
    >>> [problem.count for problem in check_alike(pl.DataFrame({"lau": ["A1", "a1", "A1 ", "B"]}), "household", ["lau"])]
    [2]
    """
    for level in levels:
        if distinct.schema[level].is_integer():
            continue
        codes = distinct[level].drop_nulls().cast(pl.String).unique()
        plain = codes
        if (codes.str.len_bytes() != codes.str.len_chars()).any():  # plain letters have one form
            plain = codes.str.normalize("NFC").str.replace_all(NO_WIDTH_SIGNS, "")
        count = codes.len() - plain.str.strip_chars().str.to_lowercase().n_unique()
        if count:
            yield Problem(
                record_type=record_type, column=level, rule=ALIKE_RULE, count=count, of="areas", fix=ALIKE_FIX
            )


# Check that the geography is a tree: every area has one parent, there is no cycle, every code is known.

TWO_PARENTS_RULE = "areas that lie in two areas of the level above"
TWO_PARENTS_FIX = (
    'if codes repeat between parents, join them: [geography.level.NAME] columns = ["parent", "child"]'
)


ListPlaces = Callable[[CensusFiles, str, list[str]], pl.DataFrame]


def list_places(census: CensusFiles, record_type: str, named: list[str]) -> pl.DataFrame:
    """Return the places of the records, each combination of areas once."""
    frame = census.scan(record_type).select(named)
    # files lie in the order of their places: a record in the place of the one before it tells nothing new
    moved = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift()) for name in named)
    return collect_frame(frame.filter(moved).unique(), streaming=True)


def check_geography(census: CensusFiles, places: ListPlaces) -> Iterator[Problem]:
    """Check the spine of the records, the geographies beside it, and the file of areas."""
    if census.schema.geography.areas is not None:
        yield from _check_areas(census)
    for record in census.schema.records:
        yield from _check_spine(census, record.name, places)


def _check_spine(census: CensusFiles, record_type: str, places: ListPlaces) -> Iterator[Problem]:
    geography = census.schema.geography
    there = census.columns(record_type)
    levels = [name for name in census.schema.spine if name in there]
    beside = [off for off in geography.off_spine if not off.files and off.name in there]
    named = [*levels, *(off.name for off in beside)]
    finest = census.schema.spine[-1:]
    looked_up = [off.of for off in geography.off_spine if off.files]
    looked_up += finest if geography.areas is not None else []
    determined = any(off.of in levels or off.nests_in in named for off in beside)
    frame = census.scan(record_type).select(named)
    written = any(dtype == pl.String for dtype in frame.collect_schema().dtypes())
    if named and (len(levels) > 1 or determined or looked_up or written):
        distinct = places(census, record_type, named)
        yield from check_alike(distinct, record_type, levels)
        for coarse, fine in pairwise(levels):
            yield from _check_function(distinct, record_type, fine, coarse, TWO_PARENTS_RULE, TWO_PARENTS_FIX)
        for off in beside:
            if off.of in levels:
                rule = f"areas that lie in two areas of {off.name}"
                yield from _check_function(
                    distinct, record_type, off.of, off.name, rule, "leave out of = … if it may cut them"
                )
            if off.nests_in in named:
                rule = f"areas that cross the borders of {off.nests_in}"
                yield from _check_function(
                    distinct, record_type, off.name, off.nests_in, rule, "leave out nests_in = …"
                )
        yield from _check_known(census, record_type, distinct)


def _check_function(
    distinct: pl.DataFrame, record_type: str, fine: str, coarse: str, rule: str, fix: str
) -> Iterator[Problem]:
    """Yield problems where ``fine`` does not determine ``coarse``."""
    pairs = distinct.lazy().select(fine, coarse).drop_nulls().unique()
    twice = pairs.group_by(fine).agg(pl.len().alias("parents")).filter(pl.col("parents") > 1)
    count = int(twice.select(pl.len()).collect().item())
    if count:
        yield Problem(record_type=record_type, column=fine, rule=rule, count=count, of="areas", fix=fix)


def _check_known(census: CensusFiles, record_type: str, distinct: pl.DataFrame) -> Iterator[Problem]:
    """Yield problems for codes of records that the files of areas or other geographies do not know."""
    schema, folder = census.schema, census.folder
    finest = schema.spine[-1] if schema.spine else ""
    if schema.geography.areas is not None and finest in distinct.columns:
        known = read_areas(schema, folder).select(pl.col("code").alias(finest))
        yield from _report_unknown(
            distinct, record_type, finest, known, "codes that the file of areas does not know"
        )
    for off in schema.geography.off_spine:
        if off.files:
            table = read_crosswalk(schema, off.name, folder)
            table = table.with_columns(pl.col(off.of).cast(pl.String))
            pairs = table.unique().group_by(off.of).agg(pl.len().alias("n")).filter(pl.col("n") > 1)
            twice = int(pairs.select(pl.len()).collect().item())
            if twice:
                rule = f"areas of {off.of} that its file puts in two areas"
                yield Problem(record_type="geography", column=off.name, rule=rule, count=twice, of="areas")
            if off.of in distinct.columns:
                rule = f"codes that the file of {off.name} does not know"
                yield from _report_unknown(distinct, record_type, off.of, table.select(off.of), rule)


def find_unknown_codes(census: CensusFiles, record_type: str) -> dict[str, pl.Series]:
    """Return the codes of records, as text, that the files of areas or of off-spine geographies do not know."""
    schema, folder = census.schema, census.folder
    files: list[tuple[str, pl.LazyFrame]] = []
    if schema.geography.areas is not None and schema.spine:
        files.append((schema.spine[-1], read_areas(schema, folder).select(pl.col("code"))))
    files += [
        (off.of, read_crosswalk(schema, off.name, folder).select(pl.col(off.of).cast(pl.String)))
        for off in schema.geography.off_spine
        if off.files
    ]
    found: dict[str, pl.Series] = {}
    for column, known in files:
        if column in census.columns(record_type):
            codes = census.scan(record_type).select(pl.col(column).cast(pl.String)).drop_nulls().unique()
            lost = codes.join(known, left_on=column, right_on=known.collect_schema().names()[0], how="anti")
            some = collect_frame(lost, streaming=True).to_series()
            found[column] = pl.concat([found[column], some]).unique() if column in found else some
    return {column: codes for column, codes in found.items() if len(codes)}


def _report_unknown(
    distinct: pl.DataFrame, record_type: str, column: str, known: pl.LazyFrame, rule: str
) -> Iterator[Problem]:
    codes = distinct.lazy().select(pl.col(column).cast(pl.String)).drop_nulls().unique()
    count = int(codes.join(known, on=column, how="anti").select(pl.len()).collect().item())
    if count:
        yield Problem(record_type=record_type, column=column, rule=rule, count=count, of="areas")


def _check_areas(census: CensusFiles) -> Iterator[Problem]:
    table = collect_frame(read_areas(census.schema, census.folder), streaming=True)
    spine = census.schema.spine
    pairs = table.select("code", "parent").drop_nulls("code").unique(maintain_order=True)
    parents = pairs.group_by("code").agg(pl.len().alias("n")).filter(pl.col("n") > 1).height
    nowhere = (
        pairs.drop_nulls("parent")
        .join(pairs.select("code"), left_on="parent", right_on="code", how="anti")
        .height
    )
    repeated = table.height - table.unique().height
    endless, depth = _measure_depths(pairs.unique(subset="code", keep="first", maintain_order=True))
    found = [
        ("code", "areas without a code", table["code"].null_count()),
        ("code", "areas listed twice", repeated),
        ("parent", "areas with two parents", parents),
        ("parent", "areas whose parent is not listed", nowhere),
        ("parent", "areas whose chain of parents is a cycle", endless),
        (
            "parent",
            f"areas deeper than the {len(spine)} levels of the spine",
            int((depth >= len(spine)).sum()),
        ),
    ]
    level = table.select("code", "parent", "level").drop_nulls("level")
    if level.height:
        rank = {name: index for index, name in enumerate(spine)}
        found.append(
            ("level", "levels that the spine does not name", int((~level["level"].is_in(list(rank))).sum()))
        )
        above = level.select(pl.col("code").alias("parent"), pl.col("level").alias("above")).unique(
            subset="parent"
        )
        both = level.join(above, on="parent", how="inner")
        order = both.select(
            pl.col(name).replace_strict(rank, default=None, return_dtype=pl.Int64)
            for name in ("level", "above")
        )
        found.append(
            (
                "level",
                "areas whose parent is not one level up",
                int((order["level"] != order["above"] + 1).sum()),
            )
        )
    for column, rule, count in found:
        if count:
            yield Problem(record_type="geography", column=column, rule=rule, count=count, of="areas")


def _measure_depths(pairs: pl.DataFrame) -> tuple[int, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """Return how many areas lead into a cycle, and the depth of all others (the top has depth 0)."""
    count = pairs.height
    index = pl.DataFrame({"parent": pairs["code"], "at": pl.int_range(count, dtype=pl.Int64(), eager=True)})
    at = pairs.join(index, on="parent", how="left", maintain_order="left")["at"].fill_null(count).to_numpy()
    # Pointer doubling: after k rounds each area has followed 2^k parents; an area still below the top is in a cycle.
    jump = np.append(at, count)
    depth = np.append(np.where(at == count, 0, 1), 0)
    for _ in range(max(1, count.bit_length())):
        depth, jump = depth + np.where(jump == count, 0, depth[jump]), jump[jump]
        if (jump == count).all():
            break
    ended = jump[:count] == count
    return int((~ended).sum()), depth[:count][ended]
