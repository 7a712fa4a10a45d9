"""Tables of what was released: records scanned where they lie, joined with their household, counted by variables."""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.census import Schema
from stirred.census.geography import attach_levels
from stirred.engine import Engine
from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.participation import takes_part
from stirred.mechanisms.release import Release
from stirred.mechanisms.released_parts import (
    TAKES,
    UNIT,
    ReleasedRecords,
    StratumKernel,
    as_frame,
    count_cells,
    count_in_parts,
)

PULL_KEY = b"stirred.pull"  # in a table's metadata: the chance that a record moved, where that alone pulled its counts
MEASURE_COLUMNS = ("count", "weighted", "estimate", "standard_error", "variance", "low", "high", "quote")


def scan_records(data: "pa.Table | pads.Dataset") -> pl.LazyFrame:
    """Scan released records where they lie and return a lazy frame."""
    if isinstance(data, pa.Table):
        return as_frame(data).lazy()
    files: list[str] = data.files
    return pl.scan_parquet(files)


def require_schema(release: Release) -> Schema:
    """Return the schema of a release, or raise an error where it has none."""
    if release.schema is None:
        raise InputError(
            "the release does not say what its variables are",
            why="the mechanism made it without the schema of the census",
            fix="Release(…, schema=census.schema, folder=census.folder)",
        )
    return release.schema


def join_household(release: Release, schema: Schema, record_type: str) -> pl.LazyFrame:
    """Return released records of a type, with the household's variables where they are linked to one."""
    if record_type not in release.microdata:
        raise InputError(
            f"the release has no {record_type} records",
            why="its mechanism did not publish them",
            fix=did_you_mean(record_type, release.microdata),
        )
    own = scan_records(release.microdata[record_type])
    record = schema.record(record_type)
    if not record.linked_to or record.linked_to not in release.microdata:
        return own
    other = schema.record(record.linked_to)
    there = set(own.collect_schema().names())
    if record.household not in there:  # persons and units that are two tables without a link
        return own
    home = scan_records(release.microdata[record.linked_to])
    wanted = [name for name in home.collect_schema().names() if name not in there or name == other.id]
    return own.join(home.select(wanted), left_on=record.household, right_on=other.id, how="left")


def filter_participants(schema: Schema, record_type: str, records: pl.LazyFrame) -> pl.LazyFrame:
    """Return the records that take part in a swap."""
    kinds = schema.record(record_type).kinds
    return records.filter(takes_part(kinds, records.collect_schema().names()))


def join_variables(release: Release, record_type: str, by: Sequence[str]) -> pl.LazyFrame:
    """Return the released records with every variable of a table, off-spine areas included."""
    schema = require_schema(release)
    frame = join_household(release, schema, record_type)
    there = frame.collect_schema().names()
    lacking = [name for name in by if name not in there]
    if lacking and release.folder is not None:
        frame = attach_levels(schema, frame, lacking, release.folder)
        there = frame.collect_schema().names()
    for name in by:
        if name not in there:
            raise InputError(
                f"a table of {record_type} records needs {name}",
                why=f"the mechanism does not release it for {record_type} records",
                fix=did_you_mean(name, there),
            )
    return frame


def open_records(release: Release, record_type: str, engine: Engine) -> ReleasedRecords:
    """Return the released records of a type, to be counted in memory or in parts."""
    return ReleasedRecords(
        engine=engine,
        release=release,
        schema=require_schema(release),
        record_type=record_type,
        folder=release.folder,
    )


def count_records(release: Release, by: Sequence[str], *, record_type: str, engine: Engine) -> pl.DataFrame:
    """Return how many records each cell has, sorted."""
    frame = join_variables(release, record_type, by)
    records = open_records(release, record_type, engine)
    if not records.fits_memory(len(frame.collect_schema())):
        return count_in_parts(records, by)
    return count_cells(frame, by).sort(list(by), nulls_last=False).collect()


def map_strata(
    release: Release,
    kernel: StratumKernel,
    *,
    record_type: str,
    resolution: str,
    areas: Sequence[str],
    engine: Engine,
) -> pl.DataFrame:
    """Return the rows that a kernel makes of whole strata, in memory or part by part.

    ``resolution`` is the record type whose records make the strata, ``areas`` are codes beside the spine that they need.
    """
    schema, by = require_schema(release), kernel.read_columns
    home = schema.record(resolution)
    records = open_records(release, record_type, engine)
    frame = join_variables(release, record_type, by)
    columns = len(frame.collect_schema()) if by else len(kernel.strata) + 1
    # members that are swapped by themselves have no household to meet, so their tables are made in memory
    if not records.fits_memory(columns) and not (by and home.linked_to):
        return records.map_strata(kernel)
    units = scan_records(release.microdata[resolution])
    if areas and release.folder is not None:
        units = attach_levels(schema, units, list(areas), release.folder)
    unit = (
        pl.col(home.id) if home.id else pl.int_range(pl.len())
    )  # without identifiers, their place tells records apart
    link = unit if record_type == resolution else pl.col(schema.record(record_type).household)
    own = frame.select(link.alias(UNIT), *by) if by else pl.LazyFrame()
    if by:
        units = units.with_columns(unit.alias(UNIT))
    taking = filter_participants(schema, resolution, units).with_columns(pl.lit(True).alias(TAKES))
    return kernel.of(_collect(taking.select(kernel.columns)), _collect(own))


def _collect(frame: pl.LazyFrame) -> pl.DataFrame:
    return pl.DataFrame(frame.collect())


def format_table(frame: pl.DataFrame, by: Sequence[str]) -> pa.Table:
    """Return a table as it is published: sorted, with dictionaries as plain text."""
    text = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return text.sort(list(by), nulls_last=False).to_arrow(compat_level=pl.CompatLevel.oldest())


def weigh(release: Release, by: Sequence[str], *, weight: str, record_type: str, engine: Engine) -> pa.Table:
    """Return counts and weighted totals of released records, without an interval."""
    found = count_records(release, [*by, weight], record_type=record_type, engine=engine)
    added = (pl.col("count") * pl.col(weight)).sum().alias("weighted")
    return format_table(found.group_by(list(by), maintain_order=True).agg(pl.col("count").sum(), added), by)


def find_own_table(release: Release, by: Sequence[str]) -> pl.DataFrame | None:
    """Return the mechanism's own table of exactly these variables, or None."""
    for table in release.tables.values():
        if {name for name in table.column_names if name not in MEASURE_COLUMNS} == set(by):
            names = [*by, *(name for name in MEASURE_COLUMNS if name in table.column_names)]
            return pl.DataFrame(pl.from_arrow(table.select(names)))
    return None


def count(release: Release, by: Sequence[str], *, record_type: str, engine: Engine) -> pa.Table:
    """Return counts of released records by variables, or the mechanism's own table of these variables."""
    if record_type not in release.microdata:
        found = find_own_table(release, by)
        if found is not None:
            return format_table(found, by)
    return format_table(count_records(release, by, record_type=record_type, engine=engine), by)
