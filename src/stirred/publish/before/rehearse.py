"""A rehearsal: the plan run many times on a public stand-in, to see its bias, spread and the coverage of its intervals."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.assess.utility.replicates import Replicate, replicate_errors
from stirred.assess.utility.tables import TablePair
from stirred.census import Census
from stirred.chance import Key
from stirred.closed_files import closed_file
from stirred.engine import Progress
from stirred.errors import PlanError
from stirred.frames import arrow_of, collect_frame
from stirred.publish.before.refusals import check_variables
from stirred.publish.plan.description import Plan, TablePlan


def rehearse(
    plan: Plan, stand_in: Census, *, runs: int = 20, seed: int = 1, progress: Progress | None = None
) -> pl.DataFrame:
    """Return errors by table and size class over ``runs`` replicates, each with streams of its own.

    Tables with weights that are made after a release are left out: their totals are met by construction.
    """
    tables = [table for table in plan.tables if not table.calibrated]
    if not tables:
        raise PlanError("there is nothing to rehearse", why="the plan has no [[table]]", fix="add one")
    for table in tables:
        check_variables(stand_in, table)
    mechanism = plan.mechanisms[0]
    truths = {table.name: _truth(stand_in, table) for table in tables}
    found: dict[str, list[pl.DataFrame]] = {table.name: [] for table in tables}
    for index in range(runs):
        if progress:
            progress("rehearse", index, runs)
        release = mechanism.release(stand_in, key=Key.for_tests(seed).bind("rehearse", index))
        for table in tables:
            made = table.tabulate(release, mechanism)
            found[table.name].append(_align_cells(truths[table.name], made, table))
    if progress:
        progress("rehearse", runs, runs)
    frames = [replicate_errors(_replicates(found[table.name], table), table=table.name) for table in tables]
    return pl.concat(frames)


def _truth(stand_in: Census, table: TablePlan) -> pa.Table:
    """Return the counts of the stand-in, or its weighted totals."""
    if not table.weight:
        return stand_in.counts(table.record_type, list(table.by))
    by, weight = list(table.by), pl.col(table.weight).cast(pl.Float64)
    summed = stand_in.scan(table.record_type, table.variables).group_by(by).agg(weight.sum().alias("count"))
    return arrow_of(collect_frame(summed, streaming=True))


def _align_cells(truth: pa.Table, made: pa.Table, table: TablePlan) -> pl.DataFrame:
    """Join truth and run on the same cells, with the intervals of the run."""
    by = list(table.by)
    measure = "weighted" if table.weight else "count"
    shown = made.select([*by, measure]).rename_columns([*by, "count"])
    pair = TablePair.align(truth, shown, by=by).frame
    extra = [name for name in ("low", "high") if name in made.column_names]
    if not extra:
        return pair
    limits = pl.DataFrame(pl.from_arrow(made.select([*by, *extra]))).with_columns(pl.col(by).cast(pl.String))
    return pair.join(limits, on=by, how="left", nulls_equal=True).with_columns(pl.col(extra).fill_null(0.0))


def _replicates(frames: Sequence[pl.DataFrame], table: TablePlan) -> list[Replicate]:
    """Return all runs on the union of their cells; a cell absent from a run counts zero there."""
    by = list(table.by)
    cells = pl.concat([frame.select(by) for frame in frames]).unique().sort(by, nulls_last=False)
    truth = (
        pl.concat([frame.select(*by, "reference") for frame in frames])
        .group_by(by)
        .agg(pl.col("reference").max())
    )
    cells = cells.join(truth, on=by, how="left", nulls_equal=True).sort(by, nulls_last=False)
    runs = []
    for frame in frames:
        whole = cells.join(frame.drop("reference"), on=by, how="left", nulls_equal=True).fill_null(0)
        whole = whole.sort(by, nulls_last=False)
        values = {name: whole[name].to_numpy().astype(float) for name in whole.columns if name not in by}
        runs.append(
            Replicate(
                reference=values["reference"],
                protected=values["protected"],
                low=values.get("low"),
                high=values.get("high"),
            )
        )
    return runs


def write_rehearsal(frame: pl.DataFrame, out: Path) -> None:
    """Write errors as CSV, whole or not at all; closed to others, because the stand-in may be the census itself."""
    with closed_file(out) as place:
        frame.write_csv(place)
