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
from stirred.mechanisms.topdown.estimate.informed import Informed, has_closed_form
from stirred.mechanisms.topdown.estimate.uncertainty import MODE
from stirred.mechanisms.topdown.run import digest, output
from stirred.mechanisms.topdown.run.above import Above, input_digest
from stirred.mechanisms.topdown.run.estimation import Estimation, estimate, told, tops
from stirred.mechanisms.topdown.run.levels import NOTHING_KEPT, Checkpoint
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees
from stirred.mechanisms.topdown.run.subtrees.published import (
    ReleasedRows,
    Stored,
    UnbiasedRows,
    tagged_schema,
)
from stirred.mechanisms.topdown.run.subtrees.solved import Solve
from stirred.mechanisms.topdown.run.subtrees.survey import MESSAGE, Rise, SubtreeSurvey
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.tree.counts import upward

SHARES = {"tree": (0, 30), "solve": (30, 69)}  # step → where it begins in 100, and how many it takes


def tables(
    task: Task, made: Estimation, counted: Subtrees | None, checkpoint: Checkpoint = NOTHING_KEPT
) -> dict[str, pa.Table]:
    """The data of a release for the uncertainty of any table: replicates, and unbiased marginals if there are any."""
    name, folder = task.workload.name, None if made.subtrees is None else task.out
    runs = output.assembled(_replicates(task, made, checkpoint), folder)
    if task.mode == "guided":
        runs = runs.replace_schema_metadata({MODE: b"guided"})
    result = {f"{name}-replicates": runs}
    known = tree_estimate(task, made, counted)
    if known is not None:
        result[f"{name}-unbiased"] = output.assembled(_unbiased(task, made, *known, counted), folder)
    return result


def estimates_tree(task: Task) -> bool:
    """Whether unbiased tables may be made: with replicates, where the closed form fits, also in mode classic.

    A product that agrees with an earlier one has none: the tree estimate does not know the earlier counts.
    """
    workload = task.workload
    return (
        bool(task.replicates) and not workload.given and Algebra.of(workload.histogram, workload.queries).fits
    )


def tree_estimate(
    task: Task, made: Estimation, counted: Subtrees | None
) -> tuple[Informed, Solve | None] | None:
    """The estimate over the whole tree and what tells it to subtrees; None where the closed form does not fit.

    Mode classic publishes without it, but the same measurements have it: it shows what non-negativity took from areas.
    """
    if isinstance(made.targets, Informed):
        return made.targets, made.solve
    above, risen = made.above, None
    if not estimates_tree(task) or not has_closed_form(made.targets.measurements, above.constraints):
        return None
    if counted is not None and made.solve is not None:
        risen, _ = told(counted.parts.map(Rise(made.solve.measured), MESSAGE))
    informed, _ = above.informed(made.targets.measurements, task.engine, risen, complete=True)
    if made.solve is None:
        return informed, None
    return informed, replace(made.solve, tops=tops(above, informed, made.levels[-1], None))


def replicates(task: Task, made: Estimation, start: int = 0) -> Iterator[tuple[int, Estimation]]:
    """Runs on the release from number ``start`` on; each is dropped when the next one is asked for."""
    if start == task.replicates:
        return
    above = in_place_of_census(task, made)
    own = task.key.bind("uncertainty", above.input_digest)
    for number in range(start, task.replicates):
        task.say("replicates", 100 * number, 100 * task.replicates)
        quiet = replace(task, progress=_share(task, number))
        noise = None if task.settings.noiseless else own.bind("replicate", number)
        one = estimate(quiet, above, made.subtrees, noise, summarised=False)
        try:
            yield number, one
        finally:
            one.drop()
    task.say("replicates", 100 * task.replicates, 100 * task.replicates)


def _share(task: Task, number: int) -> Progress:
    """Progress of one replicate as a share of all: of its time about three tenths go to the tree, the rest to the solve."""

    def progress(step: str, done: int, total: int) -> None:
        begins, share = SHARES.get(step.rpartition(": ")[2], (0, 0))
        if share:
            task.say(
                "replicates", 100 * number + begins + share * done // max(total, 1), 100 * task.replicates
            )

    return progress


def in_place_of_census(task: Task, made: Estimation) -> Above:
    """The tree above with the released counts in place of the census's."""
    above, reader = made.above, digest.reader(task.key)
    if made.subtrees is not None:
        survey, _ = told(made.subtrees.parts.map(SubtreeSurvey(made.subtrees.division, reader), MESSAGE))
        return Above.told(made.subtrees, survey, reader, above.constraints.record)
    leaves = made.levels[-1]
    truth = upward(above.spine, leaves, above.allotment.workload.histogram.cells)
    return replace(
        above, truth=truth, input_digest=input_digest(reader, above.spine, leaves, above.constraints)
    )


def _replicates(task: Task, made: Estimation, checkpoint: Checkpoint) -> Iterator[pa.Table]:
    """Replicates as rows: the columns of the microdata, ``replicate`` and ``count``.

    Those of a census in parts are kept when they are finished, as subtrees are: a run that is killed goes on with the next.
    """
    kept = checkpoint.kept() if made.subtrees is not None and task.engine.name == "local" else None
    start = 0
    while kept is not None and start < task.replicates:
        place = kept.finished(_file(task, start))
        if place is None:
            break
        yield from Stored(pads.dataset(place), None).tables()
        start += 1
    for number, one in replicates(task, made, start):
        if one.subtrees is None:
            leaves = one.released[-1]
            yield output.replicate(task.workload, one.above.published, leaves, number, bureau=task.bureau)
            continue
        schema = one.subtrees.row_schema(bureau=task.bureau, counted=True)
        kernel = ReleasedRows(one.subtrees.division, schema, task.bureau, number)
        with Stored.of(
            one.subtrees.parts.map(kernel, schema), task.out, f"{task.workload.name}-replicate-{number}"
        ) as rows:
            if kept is not None and rows.place is not None:
                kept.adopt(_file(task, number), rows.place)
                rows = Stored(pads.dataset(kept.folder / _file(task, number)), None)
            yield from rows.tables()


def _file(task: Task, number: int) -> str:
    return f"replicate-{number}{'-bureau' if task.bureau else ''}.parquet"


def _unbiased(
    task: Task, made: Estimation, informed: Informed, solve: Solve | None, counted: Subtrees | None
) -> Iterator[pa.Table]:
    """Unbiased estimates of every geounit: those above the cut, then those of the subtrees, level by level."""
    workload, above = task.workload, made.above
    covariances = gls.covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
    for depth in range(len(informed.levels)):
        cover = covariances[depth]
        yield from unbiased.of_level(workload, above.spine, informed, depth, cover, bureau=task.bureau)
    if counted is None or solve is None:
        cover_above = covariances[-1] if covariances else None
        yield unbiased.of_leaves(workload, above.spine, informed, cover_above, bureau=task.bureau)
        return
    schema = tagged_schema(unbiased.schema(workload, bureau=task.bureau))
    kernel = UnbiasedRows(solve, schema, task.bureau)
    parts, steps = counted.parts.map(kernel, schema), task.steps("unbiased estimates")
    with Stored.of(parts, task.out, f"{workload.name}-unbiased", steps) as rows:
        last = len(above.spine.levels) - 1
        for depth in range(above.depth + 1, last):
            for number in range(len(unbiased.marginals(workload))):
                yield from rows.tables(depth, number)
        yield from rows.tables(last, 0)
