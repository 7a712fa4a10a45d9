"""Run one workload from the census to its release.

    census ─→ counts ─→ estimate ─→ checks ─→ records, tables, replicates, noisy measurements

The counts lie in this process if they fit in memory, else in parts that hold whole subtrees (``estimation``).
"""

from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.chance import Key
from stirred.errors import InputError
from stirred.file_names import make_file_name, path_in
from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.measure import bureau as names
from stirred.mechanisms.topdown.measure import nmf
from stirred.mechanisms.topdown.rules.checks import Findings
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.run import digest, mdf, output, replicates
from stirred.mechanisms.topdown.run.above import UpperTree, build_whole_tree
from stirred.mechanisms.topdown.run.estimation import Estimation, estimate_run, read_messages
from stirred.mechanisms.topdown.run.levels import Checkpoint
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees, estimate_bytes, gather
from stirred.mechanisms.topdown.run.subtrees.published import (
    MeasurementRows,
    ReleasedRows,
    build_tagged_schema,
    split_runs,
)
from stirred.mechanisms.topdown.run.subtrees.solved import decode_table
from stirred.mechanisms.topdown.run.subtrees.survey import MESSAGE_SCHEMA, SubtreeSurvey
from stirred.mechanisms.topdown.run.task import RunResult, Task
from stirred.mechanisms.topdown.solve.problem import Certificate


def run_workload(task: Task) -> RunResult:
    """Run one workload; finished levels of an interrupted run in the task's ``resume`` are used again."""
    if task.keep_nmf and task.out is None:
        raise InputError(
            "the noisy measurement file needs a folder",
            why="it is written to disk",
            fix="release(…, out=Path(…))",
        )
    task.report_progress("tabulate", 0, 1)
    subtrees = None if fits_in_memory(task) else gather(task)
    try:
        above = build_whole_tree(task) if subtrees is None else survey_subtrees(task, subtrees)
        task.report_progress("tabulate", 1, 1)
        return _make_release(task, above, subtrees)
    finally:
        if subtrees is not None:
            subtrees.parts.drop()


def fits_in_memory(task: Task) -> bool:
    """Return whether the whole tree fits in this process, by an estimate of its bytes."""
    fits_at_all = task.engine.fits(0)
    mode = "gls" if replicates.can_estimate_tree(task) else task.mode
    return fits_at_all and task.engine.fits(estimate_bytes(task.census, task.workload, mode))


def survey_subtrees(task: Task, subtrees: Subtrees) -> UpperTree:
    """Build the tree above from one message of each subtree."""
    reader = digest.digest_key(task.key)
    kernel = SubtreeSurvey(subtrees.division, reader)
    survey, others = read_messages(subtrees.parts.map(kernel, MESSAGE_SCHEMA), task.steps("survey"))
    subtrees.refuse([one["troubles"] for one in others], task.workload)
    record = Record()
    record.tree(task.census)
    return UpperTree.from_surveys(subtrees, survey, reader, record)


def _make_release(task: Task, above: UpperTree, subtrees: Subtrees | None) -> RunResult:
    """Estimate, check, and only then write."""
    own = task.key.bind("input", above.input_digest)
    checkpoint = _open_checkpoint(task, own)
    noise = None if task.settings.noiseless else own
    made = estimate_run(task, above, subtrees, noise, checkpoint=checkpoint)
    try:
        checks = _check_release(made)
        task.approve(checks, above.constraints.record)
        tables = _make_tables(task, made)
        microdata = _write_microdata(task, made)
        if task.bureau and task.out is not None:
            mdf.write_mdf(task.workload, microdata, task.out, _count_quarters(task))
        if task.replicates:
            tables |= replicates.make_uncertainty_tables(task, made, subtrees, checkpoint)
        if task.keep_nmf and task.out is not None:
            _write_measurements(task, task.out, made, subtrees)
    finally:
        made.drop()
    return RunResult(
        microdata=microdata,
        tables=tables,
        checks=checks,
        input_digest=above.input_digest.hex(),
        checkpoint=checkpoint,
    )


def _open_checkpoint(task: Task, own: Key) -> Checkpoint:
    """Open the folder of finished levels, which belongs to this key, census and these settings."""
    identity = own.digest(b"levels", repr(task.settings).encode()).hex()
    folder = None if task.resume is None else path_in(task.resume, make_file_name(task.workload.name), "")
    checkpoint = Checkpoint(folder, identity, own)
    checkpoint.begin()
    return checkpoint


def _check_release(made: Estimation) -> tuple[Check, ...]:
    """Check every invariant, bound, structural zero and parent sum again on the integers."""
    above = made.above
    found = Findings.of(above.constraints, above.spine, made.levels, range(above.depth + 1))
    for one in made.summaries:
        possible, agree, entries = (int(number) for number in one["rest"])
        kept, numbers = one["kept"].tolist(), one["numbers"].tolist()
        found.join(Findings(kept, numbers, bool(possible), bool(agree), entries))
    return found.checks(above.allotment.workload, above.constraints)


def _make_tables(task: Task, made: Estimation) -> dict[str, pa.Table]:
    """Return totals, estimates and certificates of every level: first from here, then from the subtrees."""
    above, name = made.above, task.workload.name
    levels = made.published_levels
    last = above.height - 1  # of the published levels; the records are its table
    totals = [
        output.tabulate_totals(above.published, d, levels[d].totals)
        for d in range(min(above.depth + 1, last))
    ]
    tables = {
        f"{name}-totals": output.join_tables(
            totals, _list_tables_below(made, "totals", range(above.depth + 1, last)), pa.null()
        ),
        f"{name}-solves": output.tabulate_certificates(_join_certificates(made)),
    }
    if above.types is not None:
        repairs = [made.repairs, *(one["repairs"].tolist() for one in made.summaries)]
        tables[f"{name}-repairs"] = output.tabulate_repairs(above.types, repairs)
    if not task.settings.noiseless:
        below = [decode_table(one["noise"]) for one in made.summaries]
        here = output.tabulate_noise(above.allotment, range(above.depth + 1))
        tables[f"{name}-noise"] = output.sum_noise([here, *below], above.allotment)
    if isinstance(made.targets, TreeEstimate):
        known = output.tabulate_estimates(above.spine, made.targets)
        depths = range(above.depth + 1, len(above.spine.levels) - 1)
        tables[f"{name}-estimates"] = output.join_tables(known, _list_tables_below(made, "estimates", depths))
    return tables


def _list_tables_below(made: Estimation, table: str, depths: range) -> list[pa.Table]:
    """Return a table of the levels below the cut, level by level, in the order of the spine."""
    return [decode_table(one[f"{table} {d}"]) for d in depths for one in made.summaries]


def _join_certificates(made: Estimation) -> list[Certificate]:
    """Return the certificates of every level."""
    solves = [*made.certificates]
    below = made.above.spine.levels[made.above.depth + 1 :]
    for i, level in enumerate(below):
        whole_level = Certificate(level)
        for one in made.summaries:
            parents, distance, violation, *counts = one["certificates"][i].tolist()
            numbers = (int(number) for number in counts)
            whole_level.join(Certificate(level, int(parents), distance, violation, *numbers))
        solves.append(whole_level)
    return solves


def _write_microdata(task: Task, made: Estimation) -> "pa.Table | pads.Dataset":
    """Write the released records where they are stored, or collect them here without a folder."""
    workload, out, above = task.workload, task.out, made.above
    if made.subtrees is None:
        leaves = made.published_levels[-1]
        pieces = output.make_microdata(workload, above.published, leaves, bureau=task.bureau)
        return output.collect_pieces(
            pieces, None if out is None else path_in(out, workload.record, ".parquet")
        )
    schema = made.subtrees.row_schema(bureau=task.bureau)
    rows = made.subtrees.parts.map(ReleasedRows(made.subtrees.division, schema, task.bureau), schema)
    return rows.gather() if out is None else rows.write(out, workload.record, task.steps("write"))


def _count_quarters(task: Task) -> pl.DataFrame | None:
    """Count facilities by block where a rule of the release's persons makes them an invariant."""
    found = mdf.find_facility_rule(task.workload, task.beside)
    if found is None:
        return None
    workload, rule = found
    record = Record()
    counts = record.quarters(task.census, rule, workload, task.census.schema.spine[-1])
    task.approve((), record)
    return counts


def _write_measurements(task: Task, out: Path, made: Estimation, counted: Subtrees | None) -> None:
    """Write the noisy measurement file: measurements from here, then those of the subtrees, level by level."""
    above, measurements = made.above, made.targets.measurements
    workload = above.allotment.workload
    folder = out / f"nmf-{workload.name}"
    held = above.constraints.held
    with nmf.MeasurementFiles(folder, above.spine.levels, workload, held, above.equal) as files:
        for depth in range(above.depth + 1):
            for number in nmf.list_answer_tables(measurements, depth):
                for rows in nmf.tabulate_answers(measurements, depth, number):
                    files.add(depth, number, rows)
            for number in nmf.list_bound_tables(above.constraints, depth):
                rows = nmf.tabulate_bounds(above.constraints, above.spine, workload, depth, number)
                files.add(depth, number, rows)
        if counted is not None and made.solve is not None:
            for bounds in (False, True):
                schema = build_tagged_schema(nmf.build_schema(workload, pa.int64() if bounds else pa.int32()))
                kernel = MeasurementRows(made.solve.measured, schema, bounds)
                parts = counted.parts.map(kernel, schema)
                steps = None if bounds else task.steps("measurements")
                for part in parts.stream(out, f"{workload.name}-measurements", steps):
                    for depth, number, rows in split_runs(part):
                        files.add(depth, number, rows)
    if task.bureau:
        names.rename_levels(folder, above.spine.levels, workload)
