"""From counts to consistent integers, once: the steps that a run and each of its replicates have in common.

    counts ─→ subtrees: upward estimate (gls) ─→ the tree above: its estimate and its integers ─→ subtrees: solve

This process holds the tree from the root down to the cut (``UpperTree``); the subtrees below it lie in parts. Where the
census fits in memory the cut is at the leaves and there are no subtrees. Every geounit is measured with the noise it
has in the whole tree, every parent is solved by the same code from the same numbers, and all sums run in the order
of the spine: the result is the same, bit for bit, wherever the tree is cut.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine.base import Parts, Steps
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.guide.guide import Guidance
from stirred.mechanisms.topdown.guide.units import UnitSpread
from stirred.mechanisms.topdown.measure.linear import ClassicTargets, Targets
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.repair import repair_leaves
from stirred.mechanisms.topdown.run.above import UpperTree
from stirred.mechanisms.topdown.run.levels import NOTHING_KEPT, Checkpoint, solve_levels, wait_for_nothing
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees
from stirred.mechanisms.topdown.run.subtrees.resumed import resume_solve
from stirred.mechanisms.topdown.run.subtrees.rows import SHARD
from stirred.mechanisms.topdown.run.subtrees.solved import SubtreeSolve, Summaries, build_solved_schema
from stirred.mechanisms.topdown.run.subtrees.survey import (
    MESSAGE_SCHEMA,
    PAYLOAD_COLUMN,
    BatchMeasurements,
    UpwardEstimate,
    pack_arrays,
    unpack_arrays,
)
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.solve.agreed.estimator import choose_estimator
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.workload.workload import WHOLE_TREE_MODES

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
    solver, rounder = task.settings.solver, task.settings.rounder
    estimator = choose_estimator(
        Estimator.of(targets, above.constraints, solver=solver, guide=guide, rounder=rounder)
    )
    levels, certificates = solve_levels(
        estimator, (), above.depth, task.engine,
        progress=task.progress, checkpoint=checkpoint, ready=ready,
    )  # fmt: skip
    ready(above.depth)  # also where every level was finished before
    if subtrees is None or measured is None:
        levels, repairs = repair_leaves(above.types, above.constraints, above.spine, levels)
        return Estimation(above, targets, levels, certificates, None, None, repairs)
    schema = build_solved_schema(subtrees.schema)
    solve = SubtreeSolve(
        measured, solver, write_top_messages(above, targets, levels[-1], scatter), schema, summarised, rounder
    )
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
        cover = gls.covariances(targets.algebra, targets.levels, targets.leaves, leaves_too=False)[-1]
    for number in range(len(above.offsets)):
        cells, counts = whole.at(number)
        message: dict[str, NDArray[np.generic]] = {"cells": cells, "counts": counts}
        if isinstance(targets, TreeEstimate) and cover is not None:
            message |= {"e": targets.levels[above.depth].e[number], "cover": cover[number]}
        if scatter is not None:
            message |= scatter.arrays()
        made[number] = pack_arrays(message)
    return made
