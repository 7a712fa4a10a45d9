r"""Estimate the uncertainty of a release from public numbers alone, by running the mechanism on its own output.

The released leaf histogram takes the place of the census, the invariants are kept, fresh noise is drawn, and the
same estimate is made: what a replicate does to the release shows what the release did to the census (a parametric
bootstrap). Everything here is post-processing of the release and of numbers that are exact anyway, so it costs nothing.

The noise of replicates comes from a child of the run's key bound to ("uncertainty", the digest of the released tree,
the number of the replicate). The replicates are published, and with the release they reveal their own noise; that is
safe, because a child key reveals nothing about its parent or siblings and is never used to measure the census. Bound to
the release, not to the census, two censuses with one release get the same replicates.
"""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from stirred.arrow import pads
from stirred.engine import Progress
from stirred.mechanisms.topdown.estimate import gls, unbiased
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate, has_closed_form
from stirred.mechanisms.topdown.estimate.uncertainty import MODE_METADATA
from stirred.mechanisms.topdown.run import digest, output
from stirred.mechanisms.topdown.run.above import UpperTree, digest_input
from stirred.mechanisms.topdown.run.estimation import (
    Estimation,
    estimate_run,
    read_messages,
    write_top_messages,
)
from stirred.mechanisms.topdown.run.levels import NOTHING_KEPT, Checkpoint
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees
from stirred.mechanisms.topdown.run.subtrees.published import (
    ReleasedRows,
    StoredRows,
    UnbiasedRows,
    build_tagged_schema,
)
from stirred.mechanisms.topdown.run.subtrees.solved import SubtreeSolve
from stirred.mechanisms.topdown.run.subtrees.survey import MESSAGE_SCHEMA, SubtreeSurvey, UpwardEstimate
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree.counts import sum_upward

STEP_SHARES = {"tree": (0, 30), "solve": (30, 69)}  # step → where it begins in 100, and how many it takes


def make_uncertainty_tables(
    task: Task, made: Estimation, counted: Subtrees | None, checkpoint: Checkpoint = NOTHING_KEPT
) -> dict[str, pa.Table]:
    """Return the tables for the uncertainty of any table: replicates, and unbiased marginals if any."""
    name, folder = task.workload.name, None if made.subtrees is None else task.out
    runs = output.assemble_pieces(_tabulate_replicates(task, made, checkpoint), folder)
    if task.mode == "guided":
        runs = runs.replace_schema_metadata({MODE_METADATA: b"guided"})
    result = {f"{name}-replicates": runs}
    known = estimate_release_tree(task, made, counted)
    if known is not None:
        result[f"{name}-unbiased"] = output.assemble_pieces(
            _estimate_unbiased(task, made, *known, counted), folder
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
    above, reader = made.above, digest.digest_key(task.key)
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
            yield output.tabulate_replicate(
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
    task: Task, made: Estimation, informed: TreeEstimate, solve: SubtreeSolve | None, counted: Subtrees | None
) -> Iterator[pa.Table]:
    """Yield unbiased estimates of every geounit: above the cut, then of the subtrees, level by level."""
    workload, above = task.workload, made.above
    covariances = gls.covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
    for depth in range(len(informed.levels)):
        cover = covariances[depth]
        yield from unbiased.tabulate_level(workload, above.spine, informed, depth, cover, bureau=task.bureau)
    if counted is None or solve is None:
        cover_above = covariances[-1] if covariances else None
        yield unbiased.tabulate_leaves(workload, above.spine, informed, cover_above, bureau=task.bureau)
        return
    schema = build_tagged_schema(unbiased.build_schema(workload, bureau=task.bureau))
    kernel = UnbiasedRows(solve, schema, task.bureau)
    parts, steps = counted.parts.map(kernel, schema), task.steps("unbiased estimates")
    with StoredRows.of(parts, task.out, f"{workload.name}-unbiased", steps) as rows:
        last = len(above.spine.levels) - 1
        for depth in range(above.depth + 1, last):
            for number in range(len(unbiased.list_marginals(workload))):
                yield from rows.tables(depth, number)
        yield from rows.tables(last, 0)
