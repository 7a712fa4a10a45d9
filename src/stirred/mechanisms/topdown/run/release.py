"""Run one workload from the census to its release, with its replicates."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import make_file_name, pads, path_in
from stirred.chance import Key
from stirred.engine import Progress
from stirred.engine.base import Parts, Steps
from stirred.errors import InputError
from stirred.mechanisms.release import Check
from stirred.mechanisms.topdown import measurement_files
from stirred.mechanisms.topdown.counts import Sparse, count_histograms, sum_upward
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import repair_leaves
from stirred.mechanisms.topdown.dhc_given_pl.parents import choose_estimator
from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.estimate.uncertainty import MODE_METADATA
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate, has_closed_form
from stirred.mechanisms.topdown.measure import ClassicTargets, Measurements, Targets
from stirred.mechanisms.topdown.prior import Guidance, UnitSpread
from stirred.mechanisms.topdown.rules import Findings, Record
from stirred.mechanisms.topdown.run import records
from stirred.mechanisms.topdown.run.subtrees.batch import SHARD
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees, count_faults, estimate_bytes, gather
from stirred.mechanisms.topdown.run.subtrees.steps import (
    MESSAGE_SCHEMA,
    PAYLOAD_COLUMN,
    BatchMeasurements,
    MeasurementRows,
    ReleasedRows,
    StoredRows,
    SubtreeSolve,
    SubtreeSurvey,
    Summaries,
    UnbiasedRows,
    UpwardEstimate,
    build_solved_schema,
    build_tagged_schema,
    decode_table,
    pack_arrays,
    resume_solve,
    split_runs,
    unpack_arrays,
)
from stirred.mechanisms.topdown.run.task import (
    NOTHING_KEPT,
    Checkpoint,
    RunResult,
    Task,
    digest_key,
    solve_levels,
    wait_for_nothing,
)
from stirred.mechanisms.topdown.run.upper_tree import UpperTree, build_whole_tree, digest_input
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.parent import Certificate
from stirred.mechanisms.topdown.tree import Tree, list_leaves
from stirred.mechanisms.topdown.workload import WHOLE_TREE_MODES

# From counts to consistent integers, once: the steps that a run and each of its replicates have in common.
#
#     counts ─→ subtrees: upward estimate (gls) ─→ the tree above: its estimate and its integers ─→ subtrees: solve
#
# This process holds the tree from the root down to the cut (``UpperTree``); the subtrees below it lie in parts. Where
# the census fits in memory the cut is at the leaves and there are no subtrees. Every geounit is measured with the
# noise it has in the whole tree, every parent is solved by the same code from the same numbers, and all sums run in
# the order of the spine: the result is the same, bit for bit, wherever the tree is cut.

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Estimation:
    """The integers of every level: those down to the cut in this process, those of the subtrees in parts."""

    above: UpperTree
    targets: Targets
    levels: list[Sparse]  # from the root to the cut
    certificates: list[Certificate]
    subtrees: Subtrees | None  # with the released leaves in place of the census's
    solve: SubtreeSolve | None  # the kernel that solved them
    repairs: tuple[int, int] = (0, 0)  # exchanges and moves in the leaves that are here

    @cached_property
    def published_levels(self) -> list[Sparse]:
        """Return the levels down to the cut in the published geography."""
        return self.above.to_published(self.levels)

    @cached_property
    def summaries(self) -> list[Arrays]:
        """Return the summaries of the subtrees in the order of the spine."""
        return (
            []
            if self.subtrees is None
            else read_messages(self.subtrees.parts.map(Summaries(), MESSAGE_SCHEMA))[0]
        )

    def drop(self) -> None:
        """Delete the parts of the subtrees."""
        if self.subtrees is not None:
            self.subtrees.parts.drop()


def estimate_run(
    task: Task,
    above: UpperTree,
    subtrees: Subtrees | None,
    key: Key | None,
    *,
    checkpoint: Checkpoint = NOTHING_KEPT,
    summarised: bool = True,
) -> Estimation:
    """Measure with the noise of ``key`` (None: without noise), estimate, and solve level by level."""
    gls_mode, guided = task.mode in WHOLE_TREE_MODES, task.mode == "guided"
    # Emphasis is for the unbiased totals of the tree estimate; raw totals of a leaf are too noisy for it.
    emphasis = task.settings.emphasis if gls_mode else 1
    measurements = Measurements(above.allotment, above.truth, key, emphasis, above.place)
    measured = None
    if subtrees is not None:
        measured = BatchMeasurements(
            division=subtrees.division, key=key, offsets=above.offsets, exact=above.constraints.exact or (),
            emphasis=emphasis, guided=guided,
        )  # fmt: skip
    scatter = None
    targets: Targets = ClassicTargets(measurements)
    ready: Callable[[int], None] = wait_for_nothing
    if gls_mode:
        risen = None
        task.report_progress("tree", 0, 1)
        if subtrees is not None and measured is not None:
            risen, _ = read_messages(
                subtrees.parts.map(UpwardEstimate(measured), MESSAGE_SCHEMA), task.steps("tree")
            )
            if guided:
                scatter = UnitSpread.of(np.sum([top["moments"] for top in risen], axis=0))
        targets, ready = above.estimate_tree(measurements, task.engine, risen, complete=guided)
        if subtrees is None:
            task.report_progress("tree", 1, 1)
    guide = None
    if guided and isinstance(targets, TreeEstimate):
        guide = Guidance.of(targets, above.constraints, scatter)
    estimator = choose_estimator(Estimator.of(targets, above.constraints, guide=guide))
    levels, certificates = solve_levels(
        estimator, (), above.depth, task.engine,
        progress=task.progress, checkpoint=checkpoint, ready=ready,
    )  # fmt: skip
    ready(above.depth)  # also where every level was finished before
    if subtrees is None or measured is None:
        levels, repairs = repair_leaves(above.types, above.constraints, above.spine, levels)
        return Estimation(above, targets, levels, certificates, None, None, repairs)
    schema = build_solved_schema(subtrees.schema)
    tops = write_top_messages(above, targets, levels[-1], scatter)
    solve = SubtreeSolve(measured, tops, schema, summarised)
    kernel = resume_solve(solve, checkpoint, subtrees.parts.number, task.engine)
    solved = subtrees.parts.map(kernel, schema).keep(task.steps("solve"))
    return Estimation(above, targets, levels, certificates, subtrees.with_parts(solved, schema), solve)


def read_messages(parts: Parts, steps: Steps | None = None) -> tuple[list[Arrays], list[Arrays]]:
    """Return the messages of all subtrees in the order of the spine, and those of no subtree."""
    table = parts.gather(steps)
    order = np.argsort(table[SHARD].to_numpy(), kind="stable")
    found = [
        (table[SHARD][i].as_py(), unpack_arrays(table[PAYLOAD_COLUMN][i].as_py())) for i in order.tolist()
    ]
    return [one for shard, one in found if shard >= 0], [one for shard, one in found if shard < 0]


def write_top_messages(
    above: UpperTree, targets: Targets, whole: Sparse, scatter: UnitSpread | None
) -> Mapping[int, bytes]:
    """Return the message to each subtree: its top's integers, and in closed form estimate and covariance."""
    made: dict[int, bytes] = {}
    cover = None
    if isinstance(targets, TreeEstimate):
        cover = whole_tree.covariances(targets.algebra, targets.levels, targets.leaves, leaves_too=False)[-1]
    for number in range(len(above.offsets)):
        cells, counts = whole.at(number)
        message: dict[str, NDArray[np.generic]] = {"cells": cells, "counts": counts}
        if isinstance(targets, TreeEstimate) and cover is not None:
            message |= {"e": targets.levels[above.depth].e[number], "cover": cover[number]}
        if scatter is not None:
            message |= scatter.arrays()
        made[number] = pack_arrays(message)
    return made


# Estimate the uncertainty of a release from public numbers alone, by running the mechanism on its own output.
#
# The released leaf histogram takes the place of the census, the invariants are kept, fresh noise is drawn, and the same
# estimate is made: what a replicate does to the release shows what the release did to the census (a parametric
# bootstrap). Everything here is post-processing of the release and of numbers that are exact anyway, so it costs nothing.
#
# The noise of replicates comes from a child of the run's key bound to ("uncertainty", the digest of the released tree,
# the number of the replicate). The replicates are published, and with the release they reveal their own noise; that is
# safe, because a child key reveals nothing about its parent or siblings and is never used to measure the census. Bound
# to the release, not to the census, two censuses with one release get the same replicates.

STEP_SHARES = {"tree": (0, 30), "solve": (30, 69)}  # step → where it begins in 100, and how many it takes


def make_uncertainty_tables(
    task: Task,
    made: Estimation,
    counted: Subtrees | None,
    released: "pa.Table | pads.Dataset",
    checkpoint: Checkpoint = NOTHING_KEPT,
) -> dict[str, pa.Table]:
    """Return the tables for the uncertainty of any table: replicates, and unbiased marginals if any."""
    name, folder = task.workload.name, None if made.subtrees is None else task.out
    runs = records.assemble_pieces(_tabulate_replicates(task, made, checkpoint), folder)
    if task.mode == "guided":
        runs = runs.replace_schema_metadata({MODE_METADATA: b"guided"})
    result = {f"{name}-replicates": runs}
    known = estimate_release_tree(task, made, counted)
    if known is not None:
        listed = records.CellsToTabulate.of(task.workload, released, runs, bureau=task.bureau)
        result[f"{name}-unbiased"] = records.assemble_pieces(
            _estimate_unbiased(task, made, *known, counted, listed), folder
        )
    return result


def can_estimate_tree(task: Task) -> bool:
    """Return whether unbiased tables may be made: with replicates, where the closed form fits.

    A product that agrees with an earlier one has none: the tree estimate does not know the earlier counts.
    """
    workload = task.workload
    return (
        bool(task.replicates) and not workload.given and Algebra.of(workload.histogram, workload.queries).fits
    )


def estimate_release_tree(
    task: Task, made: Estimation, counted: Subtrees | None
) -> tuple[TreeEstimate, SubtreeSolve | None] | None:
    """Return the whole-tree estimate and its kernel for subtrees; None without a closed form.

    Mode classic publishes without it, but the same measurements have it: it shows what non-negativity took from areas.
    """
    if isinstance(made.targets, TreeEstimate):
        return made.targets, made.solve
    above, risen = made.above, None
    if not can_estimate_tree(task) or not has_closed_form(made.targets.measurements, above.constraints):
        return None
    if counted is not None and made.solve is not None:
        risen, _ = read_messages(counted.parts.map(UpwardEstimate(made.solve.measured), MESSAGE_SCHEMA))
    informed, _ = above.estimate_tree(made.targets.measurements, task.engine, risen, complete=True)
    if made.solve is None:
        return informed, None
    return informed, replace(made.solve, tops=write_top_messages(above, informed, made.levels[-1], None))


def run_replicates(task: Task, made: Estimation, start: int = 0) -> Iterator[tuple[int, Estimation]]:
    """Yield runs on the release from number ``start`` on; each is dropped when the next is asked for."""
    if start == task.replicates:
        return
    above = replace_census(task, made)
    own = task.key.bind("uncertainty", above.input_digest)
    for number in range(start, task.replicates):
        task.report_progress("replicates", 100 * number, 100 * task.replicates)
        quiet = replace(task, progress=_share_progress(task, number))
        noise = None if task.settings.noiseless else own.bind("replicate", number)
        one = estimate_run(quiet, above, made.subtrees, noise, summarised=False)
        try:
            yield number, one
        finally:
            one.drop()
    task.report_progress("replicates", 100 * task.replicates, 100 * task.replicates)


def _share_progress(task: Task, number: int) -> Progress:
    """Return the progress of one replicate as a share of all: three tenths for the tree, then the solve."""

    def progress(step: str, done: int, total: int) -> None:
        begins, share = STEP_SHARES.get(step.rpartition(": ")[2], (0, 0))
        if share:
            task.report_progress(
                "replicates", 100 * number + begins + share * done // max(total, 1), 100 * task.replicates
            )

    return progress


def replace_census(task: Task, made: Estimation) -> UpperTree:
    """Return the tree above with the released counts in place of the census's."""
    above, reader = made.above, digest_key(task.key)
    if made.subtrees is not None:
        survey, _ = read_messages(
            made.subtrees.parts.map(SubtreeSurvey(made.subtrees.division, reader), MESSAGE_SCHEMA)
        )
        return UpperTree.from_surveys(made.subtrees, survey, reader, above.constraints.record)
    leaves = made.levels[-1]
    truth = sum_upward(above.spine, leaves, above.allotment.workload.histogram.cells)
    return replace(
        above, truth=truth, input_digest=digest_input(reader, above.spine, leaves, above.constraints)
    )


def _tabulate_replicates(task: Task, made: Estimation, checkpoint: Checkpoint) -> Iterator[pa.Table]:
    """Yield replicates as rows: the columns of the microdata, ``replicate`` and ``count``.

    Those of a census in parts are kept when they are finished, as subtrees are: a run that is killed goes on with the next.
    """
    kept = checkpoint.open_folder() if made.subtrees is not None and task.engine.name == "local" else None
    start = 0
    while kept is not None and start < task.replicates:
        place = kept.find_finished(_name_file(task, start))
        if place is None:
            break
        yield from StoredRows(pads.dataset(place), None).tables()
        start += 1
    for number, one in run_replicates(task, made, start):
        if one.subtrees is None:
            leaves = one.published_levels[-1]
            yield records.tabulate_replicate(
                task.workload, one.above.published, leaves, number, bureau=task.bureau
            )
            continue
        schema = one.subtrees.row_schema(bureau=task.bureau, counted=True)
        kernel = ReleasedRows(one.subtrees.division, schema, task.bureau, number)
        with StoredRows.of(
            one.subtrees.parts.map(kernel, schema), task.out, f"{task.workload.name}-replicate-{number}"
        ) as rows:
            if kept is not None and rows.place is not None:
                kept.adopt(_name_file(task, number), rows.place)
                rows = StoredRows(pads.dataset(kept.folder / _name_file(task, number)), None)
            yield from rows.tables()


def _name_file(task: Task, number: int) -> str:
    return f"replicate-{number}{'-bureau' if task.bureau else ''}.parquet"


def _estimate_unbiased(
    task: Task,
    made: Estimation,
    informed: TreeEstimate,
    solve: SubtreeSolve | None,
    counted: Subtrees | None,
    listed: records.CellsToTabulate,
) -> Iterator[pa.Table]:
    """Yield unbiased estimates of every geounit: above the cut, then of the subtrees, level by level.

    Of the leaves there are totals, and the cells that a table can list.
    """
    workload, above = task.workload, made.above
    covariances = whole_tree.covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
    for depth in range(len(informed.levels)):
        cover = covariances[depth]
        yield from whole_tree.tabulate_level(
            workload, above.spine, informed, depth, cover, bureau=task.bureau
        )
    persons = int(made.levels[0].counts.sum())
    marginals = whole_tree.list_leaf_marginals(workload, persons)
    if counted is None or solve is None:
        found = whole_tree.tabulate_leaves(
            workload,
            above.spine,
            informed,
            covariances[-1] if covariances else None,
            marginals,
            bureau=task.bureau,
        )
        for query, rows in zip(marginals, found, strict=True):
            yield listed.select(rows, query, listed.list_cells(query))
        return
    schema = build_tagged_schema(whole_tree.build_schema(workload, bureau=task.bureau))
    kernel = UnbiasedRows(solve, schema, task.bureau, persons)
    parts, steps = counted.parts.map(kernel, schema), task.steps("unbiased estimates")
    with StoredRows.of(parts, task.out, f"{workload.name}-unbiased", steps) as rows:
        last = len(above.spine.levels) - 1
        for depth in range(above.depth + 1, last):
            for number in range(len(whole_tree.list_marginals(workload))):
                yield from rows.tables(depth, number)
        for number, query in enumerate(marginals):
            wanted = listed.list_cells(query)
            for piece in rows.tables(last, number):
                yield listed.select(piece, query, wanted)


# Run one workload from the census to its release.
#
#     census ─→ counts ─→ estimate ─→ checks ─→ records, tables, replicates, noisy measurements
#
# The counts lie in this process if they fit in memory, else in parts that hold whole subtrees (``estimate_run``).


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
    mode = "gls" if can_estimate_tree(task) else task.mode
    return fits_at_all and task.engine.fits(estimate_bytes(task.census, task.workload, mode))


def survey_subtrees(task: Task, subtrees: Subtrees) -> UpperTree:
    """Build the tree above from one message of each subtree."""
    reader = digest_key(task.key)
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
            records.write_mdf(task.workload, microdata, task.out, _count_quarters(task))
        if task.replicates:
            tables |= make_uncertainty_tables(task, made, subtrees, microdata, checkpoint)
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
        records.tabulate_totals(above.published, d, levels[d].totals)
        for d in range(min(above.depth + 1, last))
    ]
    tables = {
        f"{name}-totals": records.join_tables(
            totals, _list_tables_below(made, "totals", range(above.depth + 1, last)), pa.null()
        ),
        f"{name}-solves": records.tabulate_certificates(_join_certificates(made)),
    }
    if above.types is not None:
        repairs = [made.repairs, *(one["repairs"].tolist() for one in made.summaries)]
        tables[f"{name}-repairs"] = records.tabulate_repairs(above.types, repairs)
    if not task.settings.noiseless:
        below = [decode_table(one["noise"]) for one in made.summaries]
        here = records.tabulate_noise(above.allotment, range(above.depth + 1))
        tables[f"{name}-noise"] = records.sum_noise([here, *below], above.allotment)
    if isinstance(made.targets, TreeEstimate):
        known = records.tabulate_estimates(above.spine, made.targets)
        depths = range(above.depth + 1, len(above.spine.levels) - 1)
        tables[f"{name}-estimates"] = records.join_tables(
            known, _list_tables_below(made, "estimates", depths)
        )
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
        pieces = records.make_microdata(workload, above.published, leaves, bureau=task.bureau)
        return records.collect_pieces(
            pieces, None if out is None else path_in(out, workload.record, ".parquet")
        )
    schema = made.subtrees.row_schema(bureau=task.bureau)
    rows = made.subtrees.parts.map(ReleasedRows(made.subtrees.division, schema, task.bureau), schema)
    return rows.gather() if out is None else rows.write(out, workload.record, task.steps("write"))


def _count_quarters(task: Task) -> pl.DataFrame | None:
    """Count facilities by block where a rule of the release's persons makes them an invariant."""
    found = records.find_facility_rule(task.workload, task.beside)
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
    with measurement_files.MeasurementFiles(folder, above.spine.levels, workload, held, above.equal) as files:
        for depth in range(above.depth + 1):
            for number in measurement_files.list_answer_tables(measurements, depth):
                for rows in measurement_files.tabulate_answers(measurements, depth, number):
                    files.add(depth, number, rows)
            for number in measurement_files.list_bound_tables(above.constraints, depth):
                rows = measurement_files.tabulate_bounds(
                    above.constraints, above.spine, workload, depth, number
                )
                files.add(depth, number, rows)
        if counted is not None and made.solve is not None:
            for bounds in (False, True):
                schema = build_tagged_schema(
                    measurement_files.build_schema(workload, pa.int64() if bounds else pa.int32())
                )
                kernel = MeasurementRows(made.solve.measured, schema, bounds)
                parts = counted.parts.map(kernel, schema)
                steps = None if bounds else task.steps("measurements")
                for part in parts.stream(out, f"{workload.name}-measurements", steps):
                    for depth, number, rows in split_runs(part):
                        files.add(depth, number, rows)
    if task.bureau:
        measurement_files.rename_levels(folder, above.spine.levels, workload)


# The records of a workload without noise and without a solve: what TopDown would publish of a public file.

FAULT_SCHEMA = pa.schema([("strangers", pa.int64()), ("lost", pa.int64()), ("mixed", pa.int64())])


def tabulate_records(task: Task) -> "pa.Table | pads.Dataset":
    """Tabulate the records in the layout of a release, from the tree in memory or subtrees in parts."""
    task = replace(task, workload=replace(task.workload, rules=(), given=""))
    subtrees = None if fits_in_memory(task) else gather(task)
    if subtrees is not None:
        try:
            return _tabulate_parts(task, subtrees)
        finally:
            subtrees.parts.drop()
    census, workload = task.census, task.workload
    tree = Tree.of(list_leaves(census, workload), census.schema.spine, root=workload.levels[0])
    pieces = records.make_microdata(
        workload, tree, count_histograms(census, workload, tree)[-1], bureau=task.bureau
    )
    path = None if task.out is None else path_in(task.out, workload.record, ".parquet")
    return records.collect_pieces(pieces, path)


@dataclass(frozen=True, slots=True)
class Faults:
    """A kernel that counts how often each fault occurs in a part."""

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        return pa.table([[int(number)] for number in count_faults(table)], schema=FAULT_SCHEMA)


def _tabulate_parts(task: Task, subtrees: Subtrees) -> "pa.Table | pads.Dataset":
    found = subtrees.parts.map(Faults(), FAULT_SCHEMA).gather()
    subtrees.refuse([np.array(list(row.values())) for row in found.to_pylist()], task.workload)
    schema = subtrees.row_schema(bureau=task.bureau)
    rows = subtrees.parts.map(ReleasedRows(subtrees.division, schema, task.bureau), schema)
    return rows.gather() if task.out is None else rows.write(task.out, task.workload.record)
