"""From counts to consistent integers, once: the steps that a run and each of its replicates have in common.

    counts ─→ subtrees: upward estimate (gls) ─→ the tree above: its estimate and its integers ─→ subtrees: solve

This process holds the tree from the root down to the cut (``Above``); the subtrees below it lie in parts. Where the
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
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.guide.guide import Guidance
from stirred.mechanisms.topdown.guide.units import UnitSpread
from stirred.mechanisms.topdown.measure.linear import Raw, Targets
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.repair import repaired
from stirred.mechanisms.topdown.run.above import Above
from stirred.mechanisms.topdown.run.levels import NOTHING_KEPT, Checkpoint, at_once, descend
from stirred.mechanisms.topdown.run.subtrees.gather import Subtrees
from stirred.mechanisms.topdown.run.subtrees.resumed import resumed
from stirred.mechanisms.topdown.run.subtrees.rows import SHARD
from stirred.mechanisms.topdown.run.subtrees.solved import Solve, Summaries, solved_schema
from stirred.mechanisms.topdown.run.subtrees.survey import (
    MESSAGE,
    PAYLOAD,
    Measured,
    Rise,
    packed,
    unpacked,
)
from stirred.mechanisms.topdown.run.task import Task
from stirred.mechanisms.topdown.solve.agreed.estimator import agreeing
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.workload.workload import TREE

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Estimation:
    """The integers of every level: those down to the cut in this process, those of the subtrees in parts."""

    above: Above
    targets: Targets
    levels: list[Sparse]  # from the root to the cut
    certificates: list[Certificate]
    subtrees: Subtrees | None  # with the released leaves in place of the census's
    solve: Solve | None  # the kernel that solved them
    repairs: tuple[int, int] = (0, 0)  # exchanges and moves in the leaves that are here

    @cached_property
    def released(self) -> list[Sparse]:
        """The levels down to the cut in the published geography."""
        return self.above.released(self.levels)

    @cached_property
    def told(self) -> list[Arrays]:
        """The summaries of the subtrees in the order of the spine."""
        return [] if self.subtrees is None else told(self.subtrees.parts.map(Summaries(), MESSAGE))[0]

    def drop(self) -> None:
        """Delete the parts of the subtrees."""
        if self.subtrees is not None:
            self.subtrees.parts.drop()


def estimate(
    task: Task,
    above: Above,
    subtrees: Subtrees | None,
    key: Key | None,
    *,
    checkpoint: Checkpoint = NOTHING_KEPT,
    summarised: bool = True,
) -> Estimation:
    """Measure with the noise of ``key`` (None: without noise), estimate, and solve level by level."""
    gls_mode, guided = task.mode in TREE, task.mode == "guided"
    # Emphasis is for the unbiased totals of the tree estimate; raw totals of a leaf are too noisy for it.
    emphasis = task.settings.emphasis if gls_mode else 1
    measurements = Measurements(above.allotment, above.truth, key, emphasis, above.place)
    measured = None
    if subtrees is not None:
        measured = Measured(
            division=subtrees.division, key=key, offsets=above.offsets, exact=above.constraints.exact or (),
            emphasis=emphasis, guided=guided,
        )  # fmt: skip
    scatter = None
    targets: Targets = Raw(measurements)
    ready: Callable[[int], None] = at_once
    if gls_mode:
        risen = None
        task.say("tree", 0, 1)
        if subtrees is not None and measured is not None:
            risen, _ = told(subtrees.parts.map(Rise(measured), MESSAGE), task.steps("tree"))
            if guided:
                scatter = UnitSpread.of(np.sum([top["moments"] for top in risen], axis=0))
        targets, ready = above.informed(measurements, task.engine, risen, complete=guided)
        if subtrees is None:
            task.say("tree", 1, 1)
    guide = None
    if guided and isinstance(targets, Informed):
        guide = Guidance.of(targets, above.constraints, scatter)
    solver, rounder = task.settings.solver, task.settings.rounder
    estimator = agreeing(
        Estimator.of(targets, above.constraints, solver=solver, guide=guide, rounder=rounder)
    )
    levels, certificates = descend(
        estimator, (), above.depth, task.engine,
        progress=task.progress, checkpoint=checkpoint, ready=ready,
    )  # fmt: skip
    ready(above.depth)  # also where every level was finished before
    if subtrees is None or measured is None:
        levels, repairs = repaired(above.types, above.constraints, above.spine, levels)
        return Estimation(above, targets, levels, certificates, None, None, repairs)
    schema = solved_schema(subtrees.schema)
    solve = Solve(measured, solver, tops(above, targets, levels[-1], scatter), schema, summarised, rounder)
    kernel = resumed(solve, checkpoint, subtrees.parts.number, task.engine)
    solved = subtrees.parts.map(kernel, schema).kept(task.steps("solve"))
    return Estimation(above, targets, levels, certificates, subtrees.with_parts(solved, schema), solve)


def told(parts: Parts, steps: Steps | None = None) -> tuple[list[Arrays], list[Arrays]]:
    """The messages of all subtrees in the order of the spine, and those of no subtree."""
    table = parts.gathered(steps)
    order = np.argsort(table[SHARD].to_numpy(), kind="stable")
    found = [(table[SHARD][i].as_py(), unpacked(table[PAYLOAD][i].as_py())) for i in order.tolist()]
    return [one for shard, one in found if shard >= 0], [one for shard, one in found if shard < 0]


def tops(above: Above, targets: Targets, whole: Sparse, scatter: UnitSpread | None) -> Mapping[int, bytes]:
    """The message to each subtree: the integers of its top, and in the closed form its estimate and covariance."""
    made: dict[int, bytes] = {}
    cover = None
    if isinstance(targets, Informed):
        cover = gls.covariances(targets.algebra, targets.levels, targets.leaves, leaves_too=False)[-1]
    for number in range(len(above.offsets)):
        cells, counts = whole.at(number)
        message: dict[str, NDArray[np.generic]] = {"cells": cells, "counts": counts}
        if isinstance(targets, Informed) and cover is not None:
            message |= {"e": targets.levels[above.depth].e[number], "cover": cover[number]}
        if scatter is not None:
            message |= scatter.arrays()
        made[number] = packed(message)
    return made
