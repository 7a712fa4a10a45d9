"""Tables made from what was released, each cell with its uncertainty, from public numbers alone."""

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads

from stirred.census import Census, Schema
from stirred.census.geography import attach
from stirred.engine import Engine, Local
from stirred.errors import PlanError, did_you_mean
from stirred.mechanisms.base import Mechanism, Release
from stirred.publish import sharded_tables
from stirred.publish.plan import TablePlan

UNIT = sharded_tables.UNIT


def lazy(data: "pa.Table | pads.Dataset") -> pl.LazyFrame:
    """Released records, scanned where they lie."""
    if isinstance(data, pads.Dataset):
        files: list[str] = data.files
        return pl.scan_parquet(files)
    frame = pl.from_arrow(data)
    assert isinstance(frame, pl.DataFrame)
    return frame.lazy()


def released(release: Release, record_type: str) -> pl.LazyFrame:
    """Released records of a type; persons bring the variables of their household along."""
    if record_type not in release.microdata:
        raise PlanError(
            f"the release has no {record_type} records", fix=did_you_mean(record_type, release.microdata)
        )
    return lazy(release.microdata[record_type])


def joined(release: Release, schema: Schema, record_type: str) -> pl.LazyFrame:
    """Released records with the household's variables where they are linked to one."""
    own = released(release, record_type)
    record = schema.record(record_type)
    if not record.linked_to or record.linked_to not in release.microdata:
        return own
    other = schema.record(record.linked_to)
    there = set(own.collect_schema().names())
    if record.household not in there:  # TopDown's persons and units are two tables without a link
        return own
    home = lazy(release.microdata[record.linked_to])
    wanted = [name for name in home.collect_schema().names() if name not in there or name == other.id]
    return own.join(home.select(wanted), left_on=record.household, right_on=other.id, how="left")


def taking_part(schema: Schema, record_type: str, records: pl.LazyFrame) -> pl.LazyFrame:
    """The records that a swap may move: all but vacant units and group quarters, which it publishes as they are."""
    kinds = schema.record(record_type).kinds
    if kinds is None or kinds.column not in records.collect_schema().names():
        return records
    still = [str(level) for level in (*kinds.vacant, *kinds.group_quarters)]
    return records.filter(~pl.col(kinds.column).cast(pl.String).is_in(still))


def check_variables(census: Census, table: TablePlan) -> None:
    """A table's variables must exist before anything runs."""
    census.schema.record(table.record_type)
    known = set(census.columns(table.record_type))
    record = census.schema.record(table.record_type)
    if record.linked_to:
        known |= set(census.columns(record.linked_to))
    known |= {off.name for off in census.schema.geography.off_spine}
    for name in table.by:
        if name not in known:
            raise PlanError(
                f"table {table.name} asks for an unknown variable {name}",
                why=f"{table.record_type} records have no such column",
                fix=did_you_mean(name, known),
            )


def tabulate(
    release: Release,
    schema: Schema,
    table: TablePlan,
    mechanism: Mechanism,
    *,
    folder: Path | None = None,
    engine: Engine | None = None,
) -> pa.Table:
    """The table with count, estimate, standard error and interval of every cell; ``folder`` holds the files of areas."""
    frame = _records(release, schema, table, folder)
    result = _uncertain(release, schema, table, mechanism, frame, folder, engine or Local())
    # text as text: what a file of dictionaries looks like depends on who wrote it
    text = result.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return text.sort(list(table.by), nulls_last=False).to_arrow(compat_level=pl.CompatLevel.oldest())


def counted(release: Release, schema: Schema, table: TablePlan, *, folder: Path | None = None) -> pa.Table:
    """The table of counts alone."""
    result = _counts(_records(release, schema, table, folder), list(table.by))
    return result.to_arrow(compat_level=pl.CompatLevel.oldest())


def _records(release: Release, schema: Schema, table: TablePlan, folder: Path | None) -> pl.LazyFrame:
    """The released records with every variable the table asks for."""
    frame = joined(release, schema, table.record_type)
    there = frame.collect_schema().names()
    lacking = [name for name in table.by if name not in there]
    if lacking and folder is not None:  # off-spine areas follow from the released places
        frame = attach(schema, frame, lacking, folder)
        there = frame.collect_schema().names()
    for name in table.by:
        if name not in there:
            raise PlanError(
                f"table {table.name} needs {name}",
                why=f"the mechanism does not release it for {table.record_type} records",
                fix=did_you_mean(name, there),
            )
    return frame


def _counts(frame: pl.LazyFrame, by: list[str]) -> pl.DataFrame:
    counts = (
        frame.group_by(by).agg(pl.len().cast(pl.Int64).alias("count")).sort(by, nulls_last=False).collect()
    )
    assert isinstance(counts, pl.DataFrame)
    return counts


def _uncertain(
    release: Release,
    schema: Schema,
    table: TablePlan,
    mechanism: Any,
    frame: pl.LazyFrame,
    folder: Path | None,
    engine: Engine,
) -> pl.DataFrame:
    by = list(table.by)
    records = sharded_tables.Records(
        engine=engine, release=release, schema=schema, record_type=table.record_type, folder=folder
    )
    whole = engine.fits(records.size(len(frame.collect_schema())))
    if mechanism.name == "permutation-swapping":
        from stirred.mechanisms.swapping.tables_uncertainty import exact, kept, table_uncertainty

        home = schema.record(mechanism.resolution)
        link = (
            home.id
            if table.record_type == mechanism.resolution
            else schema.record(table.record_type).household
        )
        moving = [*mechanism.swap, *(level for level in schema.spine if level not in mechanism.match)]
        off_spine = [off.name for off in schema.geography.off_spine if off.of in moving and off.name in by]
        units = lazy(release.microdata[mechanism.resolution])
        if off_spine and folder is not None:
            units = attach(schema, units, off_spine, folder)
        names = units.collect_schema().names()
        moving = [name for name in dict.fromkeys([*moving, *off_spine]) if name in names]
        if kept(by, match=mechanism.match, swap=moving):
            return exact(_counts(frame, by) if whole else sharded_tables.counts(records, by))
        if not whole and not home.linked_to:  # members that are swapped by themselves are counted in memory
            return sharded_tables.uncertain(
                records, by, match=mechanism.match, swap=moving, rate=mechanism.rate
            )
        counted = frame.select(pl.col(link).alias(UNIT), *by).collect()
        units = taking_part(schema, mechanism.resolution, units)
        swapped = units.select(pl.col(home.id).alias(UNIT), *mechanism.match, *moving).collect()
        assert isinstance(counted, pl.DataFrame)
        assert isinstance(swapped, pl.DataFrame)
        return table_uncertainty(
            swapped, counted, by=by, match=mechanism.match, swap=moving, rate=mechanism.rate
        )
    if mechanism.name == "topdown":
        from stirred.publish.topdown_tables import uncertain

        found = uncertain(release, schema, by, frame, folder)
        if found is not None:
            return found
    return _counts(frame, by) if whole else sharded_tables.counts(records, by)
