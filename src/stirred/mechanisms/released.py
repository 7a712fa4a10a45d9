"""Tables of what was released: records scanned where they lie, joined with their household, counted by variables."""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.census import Schema
from stirred.census.geography import attach
from stirred.engine import Engine
from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.participation import takes_part
from stirred.mechanisms.release import Release
from stirred.mechanisms.released_parts import (
    TAKES,
    UNIT,
    ReleasedRecords,
    StratumKernel,
    cells,
    counts,
    frame_of,
)

PULL = b"stirred.pull"  # in a table's metadata: the chance that a record moved, where that alone pulled its counts
MEASURES = ("count", "weighted", "estimate", "standard_error", "variance", "low", "high", "quote")


def lazy(data: "pa.Table | pads.Dataset") -> pl.LazyFrame:
    """Released records, scanned where they lie."""
    if isinstance(data, pa.Table):
        return frame_of(data).lazy()
    files: list[str] = data.files
    return pl.scan_parquet(files)


def schema_of(release: Release) -> Schema:
    """What the variables of a release are."""
    if release.schema is None:
        raise InputError(
            "the release does not say what its variables are",
            why="the mechanism made it without the schema of the census",
            fix="Release(…, schema=census.schema, folder=census.folder)",
        )
    return release.schema


def joined(release: Release, schema: Schema, record_type: str) -> pl.LazyFrame:
    """Released records of a type, with the household's variables where they are linked to one."""
    if record_type not in release.microdata:
        raise InputError(
            f"the release has no {record_type} records",
            why="its mechanism did not publish them",
            fix=did_you_mean(record_type, release.microdata),
        )
    own = lazy(release.microdata[record_type])
    record = schema.record(record_type)
    if not record.linked_to or record.linked_to not in release.microdata:
        return own
    other = schema.record(record.linked_to)
    there = set(own.collect_schema().names())
    if record.household not in there:  # persons and units that are two tables without a link
        return own
    home = lazy(release.microdata[record.linked_to])
    wanted = [name for name in home.collect_schema().names() if name not in there or name == other.id]
    return own.join(home.select(wanted), left_on=record.household, right_on=other.id, how="left")


def taking_part(schema: Schema, record_type: str, records: pl.LazyFrame) -> pl.LazyFrame:
    """The records that take part in a swap."""
    kinds = schema.record(record_type).kinds
    return records.filter(takes_part(kinds, records.collect_schema().names()))


def with_variables(release: Release, record_type: str, by: Sequence[str]) -> pl.LazyFrame:
    """The released records with every variable a table asks for; off-spine areas follow from the released places."""
    schema = schema_of(release)
    frame = joined(release, schema, record_type)
    there = frame.collect_schema().names()
    lacking = [name for name in by if name not in there]
    if lacking and release.folder is not None:
        frame = attach(schema, frame, lacking, release.folder)
        there = frame.collect_schema().names()
    for name in by:
        if name not in there:
            raise InputError(
                f"a table of {record_type} records needs {name}",
                why=f"the mechanism does not release it for {record_type} records",
                fix=did_you_mean(name, there),
            )
    return frame


def records_of(release: Release, record_type: str, engine: Engine) -> ReleasedRecords:
    """The released records of a type, to be counted in memory or in parts."""
    return ReleasedRecords(
        engine=engine,
        release=release,
        schema=schema_of(release),
        record_type=record_type,
        folder=release.folder,
    )


def counted(release: Release, by: Sequence[str], *, record_type: str, engine: Engine) -> pl.DataFrame:
    """How many records each cell has, sorted."""
    frame = with_variables(release, record_type, by)
    records = records_of(release, record_type, engine)
    if not records.fit(len(frame.collect_schema())):
        return counts(records, by)
    return cells(frame, by).sort(list(by), nulls_last=False).collect()


def in_strata(
    release: Release,
    kernel: StratumKernel,
    *,
    record_type: str,
    resolution: str,
    areas: Sequence[str],
    engine: Engine,
) -> pl.DataFrame:
    """The rows that a kernel makes of whole strata: of all at once in memory, or part by part.

    ``resolution`` is the record type whose records make the strata, ``areas`` are codes beside the spine that they need.
    """
    schema, by = schema_of(release), kernel.asked
    home = schema.record(resolution)
    records = records_of(release, record_type, engine)
    frame = with_variables(release, record_type, by)
    columns = len(frame.collect_schema()) if by else len(kernel.strata) + 1
    # members that are swapped by themselves have no household to meet, so their tables are made in memory
    if not records.fit(columns) and not (by and home.linked_to):
        return records.in_strata(kernel)
    units = lazy(release.microdata[resolution])
    if areas and release.folder is not None:
        units = attach(schema, units, list(areas), release.folder)
    unit = (
        pl.col(home.id) if home.id else pl.int_range(pl.len())
    )  # without identifiers, their place tells records apart
    link = unit if record_type == resolution else pl.col(schema.record(record_type).household)
    own = frame.select(link.alias(UNIT), *by) if by else pl.LazyFrame()
    if by:
        units = units.with_columns(unit.alias(UNIT))
    taking = taking_part(schema, resolution, units).with_columns(pl.lit(True).alias(TAKES))
    return kernel.of(_collected(taking.select(kernel.columns)), _collected(own))


def _collected(frame: pl.LazyFrame) -> pl.DataFrame:
    return pl.DataFrame(frame.collect())


def finished(frame: pl.DataFrame, by: Sequence[str]) -> pa.Table:
    """A table as it is published: sorted, text as text (what a dictionary looks like depends on who wrote it)."""
    text = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return text.sort(list(by), nulls_last=False).to_arrow(compat_level=pl.CompatLevel.oldest())


def weigh(release: Release, by: Sequence[str], *, weight: str, record_type: str, engine: Engine) -> pa.Table:
    """Counts and weighted totals of released records; without an interval, which only a law for the weights can give."""
    found = counted(release, [*by, weight], record_type=record_type, engine=engine)
    added = (pl.col("count") * pl.col(weight)).sum().alias("weighted")
    return finished(found.group_by(list(by), maintain_order=True).agg(pl.col("count").sum(), added), by)


def own_table(release: Release, by: Sequence[str]) -> pl.DataFrame | None:
    """The table that the mechanism itself made of just these variables, or None."""
    for table in release.tables.values():
        if {name for name in table.column_names if name not in MEASURES} == set(by):
            names = [*by, *(name for name in MEASURES if name in table.column_names)]
            return pl.DataFrame(pl.from_arrow(table.select(names)))
    return None


def count(release: Release, by: Sequence[str], *, record_type: str, engine: Engine) -> pa.Table:
    """The counts of released records by variables, or the mechanism's own table of these variables."""
    if record_type not in release.microdata:
        found = own_table(release, by)
        if found is not None:
            return finished(found, by)
    return finished(counted(release, by, record_type=record_type, engine=engine), by)
