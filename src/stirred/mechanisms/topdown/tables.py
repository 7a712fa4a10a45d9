"""Tables of a TopDown release, each cell with its uncertainty: unbiased where that is known exactly, else by replicates."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.census import Schema
from stirred.census.geography import attach
from stirred.mechanisms.release import Release
from stirred.mechanisms.topdown.uncertainty import tabulated

Z95 = 1.959963984540054
SHARPER = 0.5  # replicates are used where their standard error is below this part of the exact one
REPLICATES, UNBIASED = "-replicates", "-unbiased"
OWN = ("level", "code", "estimate", "standard_deviation")


def workload(release: Release, columns: Sequence[str]) -> str | None:
    """The workload that made the records with these columns, where the run made replicates of it."""
    for name, table in release.tables.items():
        if name.endswith(REPLICATES) and set(columns) <= set(table.column_names):
            return name.removesuffix(REPLICATES)
    return None


def uncertain(
    release: Release, schema: Schema, by: Sequence[str], frame: pl.LazyFrame, folder: Path | None
) -> pl.DataFrame | None:
    """Count, estimate, standard error and 95 % interval of every cell; None where the run made no replicates.

    The interval is for the true number, not for the published one. Where the table is a marginal of geounits that were
    measured, it is the unbiased estimate's, whose variance is exact, unless that is more than twice as wide as what the
    replicates show (blocks); elsewhere the mechanism is run again on its output.
    """
    here = frame.collect_schema().names()
    own = [name for name in here if name not in {off.name for off in schema.geography.off_spine}]
    name = workload(release, own)
    if name is None:
        return None
    found = pl.DataFrame(pl.from_arrow(release.tables[name + REPLICATES]))
    again = found.lazy()
    lacking = [name for name in by if name not in found.columns]
    if lacking and folder is not None:
        again = attach(schema, again, lacking, folder)
    result = tabulated(frame, again, by).drop("bias")
    exact = _unbiased(release.tables.get(name + UNBIASED), schema, by)
    if exact is None:
        return result
    keys = [name for name in by if name in exact.columns]
    exact = exact.cast({name: result.schema[name] for name in keys})
    joined = (
        result.join(exact, on=keys, how="left", nulls_equal=True, maintain_order="left")
        if keys
        else result.join(exact, how="cross")
    )
    # Decided for the table as a whole: cell by cell the shorter interval would cover too rarely.
    sharp = _spread(joined["standard_error"]) < SHARPER * _spread(joined["_sd"])
    known = (pl.col("_sd") == 0) if sharp else pl.col("_sd").is_not_null()
    margin = Z95 * pl.col("_sd")
    return joined.with_columns(
        estimate=pl.when(known).then("_estimate").otherwise("estimate"),
        standard_error=pl.when(known).then("_sd").otherwise("standard_error"),
        low=pl.when(known).then((pl.col("_estimate") - margin).clip(0.0)).otherwise("low"),
        high=pl.when(known).then((pl.col("_estimate") + margin).clip(0.0)).otherwise("high"),
    ).select(*by, "count", "estimate", "standard_error", "low", "high")


def _unbiased(table: pa.Table | None, schema: Schema, by: Sequence[str]) -> pl.DataFrame | None:
    """Estimates and standard deviations of the table's cells, keyed as the table is, where the tree estimate has them."""
    places = [name for name in schema.spine if name in by]
    axes = [name for name in by if name not in places]
    if table is None or not set(axes) <= set(table.column_names):
        return None
    frame = pl.DataFrame(pl.from_arrow(table))
    others = [name for name in frame.columns if name not in OWN and name not in axes]
    level = places[-1] if places else str(frame["level"][0])
    rows = frame.filter(
        pl.col("level") == level,
        *(pl.col(name).is_not_null() for name in axes),
        *(pl.col(name).is_null() for name in others),
    )
    if rows.is_empty() or (not places and rows["code"].n_unique() > 1):
        return None
    return rows.select(
        *(pl.col("code").alias(name) for name in places[-1:]),  # the finest area decides those above it
        *axes,
        pl.col("estimate").alias("_estimate"),
        pl.col("standard_deviation").alias("_sd"),
    )


def _spread(errors: pl.Series) -> float:
    """The root mean square of what is known and not exact; infinite when nothing is."""
    found = errors.drop_nulls()
    found = found.filter(found > 0)
    return float((found**2).mean() or 0.0) ** 0.5 if found.len() else float("inf")  # type: ignore[arg-type]
