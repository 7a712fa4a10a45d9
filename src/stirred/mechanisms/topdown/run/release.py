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
from stirred.file_names import file_name, path_in
from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure import bureau as names
from stirred.mechanisms.topdown.measure import nmf
from stirred.mechanisms.topdown.rules.checks import Findings
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.run import digest, mdf, output, replicates
from stirred.mechanisms.topdown.run.above import Above, whole
from stirred.mechanisms.topdown.run.estimation import Estimation, estimate, told
from stirred.mechanisms.topdown.run.levels import Checkpoint
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees, estimated, gather
from stirred.mechanisms.topdown.run.subtrees.published import (
    MeasurementRows,
    ReleasedRows,
    runs,
    tagged_schema,
)
from stirred.mechanisms.topdown.run.subtrees.solved import bytes_table
from stirred.mechanisms.topdown.run.subtrees.survey import MESSAGE, SubtreeSurvey
from stirred.mechanisms.topdown.run.task import Made, Task
from stirred.mechanisms.topdown.solve.problem import Certificate


def run(task: Task) -> Made:
    """Run one workload; finished levels of an interrupted run in the task's ``resume`` are used again."""
    if task.keep_nmf and task.out is None:
        raise InputError(
            "the noisy measurement file needs a folder",
            why="it is written to disk",
            fix="release(…, out=Path(…))",
        )
    task.say("tabulate", 0, 1)
    subtrees = None if fits(task) else gather(task)
    try:
        above = whole(task) if subtrees is None else surveyed(task, subtrees)
        task.say("tabulate", 1, 1)
        return _made(task, above, subtrees)
    finally:
        if subtrees is not None:
            subtrees.parts.drop()


def fits(task: Task) -> bool:
    """Whether the whole tree is held by this process; the bytes are estimated from counts, the leaves roughly."""
    fits_at_all = task.engine.fits(0)
    mode = "gls" if replicates.estimates_tree(task) else task.mode
    return fits_at_all and task.engine.fits(estimated(task.census, task.workload, mode))


def surveyed(task: Task, subtrees: Subtrees) -> Above:
    """The tree above, from one message of each subtree."""
    reader = digest.reader(task.key)
    kernel = SubtreeSurvey(subtrees.division, reader)
    survey, others = told(subtrees.parts.map(kernel, MESSAGE), task.steps("survey"))
    subtrees.refuse([one["troubles"] for one in others], task.workload)
    record = Record()
    record.tree(task.census)
    return Above.told(subtrees, survey, reader, record)


def _made(task: Task, above: Above, subtrees: Subtrees | None) -> Made:
    """Estimate, check, and only then write."""
    own = task.key.bind("input", above.input_digest)
    checkpoint = _checkpoint(task, own)
    noise = None if task.settings.noiseless else own
    made = estimate(task, above, subtrees, noise, checkpoint=checkpoint)
    try:
        checks = _checks(made)
        task.approve(checks, above.constraints.record)
        tables = _tables(task, made)
        microdata = _microdata(task, made)
        if task.bureau and task.out is not None:
            mdf.write(task.workload, microdata, task.out, _quarters(task))
        if task.replicates:
            tables |= replicates.tables(task, made, subtrees, checkpoint)
        if task.keep_nmf and task.out is not None:
            _write_measurements(task, task.out, made, subtrees)
    finally:
        made.drop()
    return Made(
        microdata=microdata,
        tables=tables,
        checks=checks,
        input_digest=above.input_digest.hex(),
        checkpoint=checkpoint,
    )


def _checkpoint(task: Task, own: Key) -> Checkpoint:
    """The folder of finished levels; it belongs to this key, census and these settings."""
    identity = own.digest(b"levels", repr(task.settings).encode()).hex()
    folder = None if task.resume is None else path_in(task.resume, file_name(task.workload.name), "")
    checkpoint = Checkpoint(folder, identity, own)
    checkpoint.begin()
    return checkpoint


def _checks(made: Estimation) -> tuple[Check, ...]:
    """Check every invariant, bound, structural zero and parent sum again on the integers."""
    above = made.above
    found = Findings.of(above.constraints, above.spine, made.levels, range(above.depth + 1))
    for one in made.told:
        possible, agree, entries = (int(number) for number in one["rest"])
        kept, numbers = one["kept"].tolist(), one["numbers"].tolist()
        found.join(Findings(kept, numbers, bool(possible), bool(agree), entries))
    return found.checks(above.allotment.workload, above.constraints)


def _tables(task: Task, made: Estimation) -> dict[str, pa.Table]:
    """Totals, estimates and certificates of every level: those from here, then those of the subtrees in order."""
    above, name = made.above, task.workload.name
    levels = made.released
    last = above.height - 1  # of the published levels; the records are its table
    totals = [
        output.level_totals(above.published, d, levels[d].totals) for d in range(min(above.depth + 1, last))
    ]
    tables = {
        f"{name}-totals": output.joined(
            totals, _below(made, "totals", range(above.depth + 1, last)), pa.null()
        ),
        f"{name}-solves": output.certificates(_certificates(made)),
    }
    if above.types is not None:
        repairs = [made.repairs, *(one["repairs"].tolist() for one in made.told)]
        tables[f"{name}-repairs"] = output.repairs(above.types, repairs)
    if not task.settings.noiseless:
        below = [bytes_table(one["noise"]) for one in made.told]
        here = output.noise(above.allotment, range(above.depth + 1))
        tables[f"{name}-noise"] = output.summed([here, *below], above.allotment)
    if isinstance(made.targets, Informed):
        known = output.estimates(above.spine, made.targets)
        depths = range(above.depth + 1, len(above.spine.levels) - 1)
        tables[f"{name}-estimates"] = output.joined(known, _below(made, "estimates", depths))
    return tables


def _below(made: Estimation, table: str, depths: range) -> list[pa.Table]:
    """A table of the levels below the cut, level by level, each in the order of the spine."""
    return [bytes_table(one[f"{table} {d}"]) for d in depths for one in made.told]


def _certificates(made: Estimation) -> list[Certificate]:
    """The certificates of every level."""
    solves = [*made.certificates]
    below = made.above.spine.levels[made.above.depth + 1 :]
    for i, level in enumerate(below):
        whole_level = Certificate(level)
        for one in made.told:
            parents, distance, violation, *counts = one["certificates"][i].tolist()
            numbers = (int(number) for number in counts)
            whole_level.join(Certificate(level, int(parents), distance, violation, *numbers))
        solves.append(whole_level)
    return solves


def _microdata(task: Task, made: Estimation) -> "pa.Table | pads.Dataset":
    """The released records, written where they are stored; without a folder they are collected in this process."""
    workload, out, above = task.workload, task.out, made.above
    if made.subtrees is None:
        leaves = made.released[-1]
        pieces = output.microdata(workload, above.published, leaves, bureau=task.bureau)
        return output.collected(pieces, None if out is None else path_in(out, workload.record, ".parquet"))
    schema = made.subtrees.row_schema(bureau=task.bureau)
    rows = made.subtrees.parts.map(ReleasedRows(made.subtrees.division, schema, task.bureau), schema)
    return rows.gathered() if out is None else rows.write(out, workload.record, task.steps("write"))


def _quarters(task: Task) -> pl.DataFrame | None:
    """Facilities by block where the release states them as an invariant: a rule of its persons counts them."""
    found = mdf.counted(task.workload, task.beside)
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
            for number in nmf.measured_tables(measurements, depth):
                for rows in nmf.answers(measurements, depth, number):
                    files.add(depth, number, rows)
            for number in nmf.bound_tables(above.constraints, depth):
                rows = nmf.bounds(above.constraints, above.spine, workload, depth, number)
                files.add(depth, number, rows)
        if counted is not None and made.solve is not None:
            for bounds in (False, True):
                schema = tagged_schema(nmf.schema(workload, pa.int64() if bounds else pa.int32()))
                kernel = MeasurementRows(made.solve.measured, schema, bounds)
                parts = counted.parts.map(kernel, schema)
                steps = None if bounds else task.steps("measurements")
                for part in parts.each(out, f"{workload.name}-measurements", steps):
                    for depth, number, rows in runs(part):
                        files.add(depth, number, rows)
    if task.bureau:
        names.rename(folder, above.spine.levels, workload)
