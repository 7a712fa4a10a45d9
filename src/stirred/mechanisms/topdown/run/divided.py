"""Run one workload by subtrees, without holding the census in one place.

    records ─→ parts by subtree ─→ survey ──────────┐
                     │        ─→ upward (gls) ────┐ │    one small message for each subtree
                     │                            ↓ ↓
                     │                    the tree above: its estimate and its integers
                     ↓                            │
                   solve ←────────────────────────┘
                     ↓
                  records, totals, estimates, certificates, checks

Every geounit is measured with the noise it has in the whole tree, every parent is solved by the same code from the
same numbers, and all sums run in the order of the spine: the release is the same, bit for bit, as that of ``run``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
from numpy.typing import NDArray

from stirred.engine import silent
from stirred.engine.base import Parts, Steps
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure.linear import Raw, Targets
from stirred.mechanisms.topdown.rules.checks import Findings
from stirred.mechanisms.topdown.rules.record import Record
from stirred.mechanisms.topdown.run import digest, output
from stirred.mechanisms.topdown.run.above import Upper
from stirred.mechanisms.topdown.run.checkpoint import Checkpoint
from stirred.mechanisms.topdown.run.subtrees.gather import Gathered, gather
from stirred.mechanisms.topdown.run.subtrees.rows import SHARD
from stirred.mechanisms.topdown.run.subtrees.solved import (
    ReleasedRows,
    Solve,
    Summaries,
    bytes_table,
    solved_schema,
)
from stirred.mechanisms.topdown.run.subtrees.survey import (
    MESSAGE,
    PAYLOAD,
    Measured,
    Rise,
    SubtreeSurvey,
    packed,
    unpacked,
)
from stirred.mechanisms.topdown.run.task import Made, Task
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.workload.histogram import column

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Sharded:
    """A run by subtrees; ``made`` performs it."""

    task: Task

    def made(self) -> Made | None:
        """The release; None if the tree cannot be divided: it has no area, or one."""
        self._say("tabulate", 0, 1)
        gathered = gather(self.task)
        if gathered is None:
            return None
        self._say("tabulate", 1, 1)
        try:
            return self._made(gathered)
        finally:
            gathered.parts.drop()

    def _made(self, gathered: Gathered) -> Made:
        plan, prepared, task = gathered.plan, gathered.parts, self.task
        reader = digest.reader(task.key)
        survey, others = _told(prepared.map(SubtreeSurvey(plan, reader), MESSAGE), self._steps("survey"))
        gathered.refuse(np.sum([told["troubles"] for told in others], axis=0).tolist(), task.workload)
        record = Record()
        record.tree(task.census)
        upper = Upper.of(plan, gathered.tops, survey, reader, record)
        own = self.task.key.bind("input", upper.input_digest)
        noise = None if self.task.settings.noiseless else own
        measured = Measured(
            plan=plan, key=noise, offsets=upper.offsets, exact=upper.constraints.exact or (),
            emphasis=self.task.settings.emphasis if self.task.mode == "gls" else 1,
        )  # fmt: skip
        measurements = upper.measurements(noise, measured.emphasis)
        targets: Targets = Raw(measurements)
        if self.task.mode == "gls":
            risen, _ = _told(prepared.map(Rise(measured), MESSAGE), self._steps("tree"))
            targets = upper.informed(measurements, risen)
        identity = own.digest(b"levels", repr(self.task.settings).encode()).hex()
        checkpoint = Checkpoint(
            None if self.task.resume is None else self.task.resume / self.task.workload.name, identity
        )
        checkpoint.begin()
        levels, certificates = self._levels(upper, targets, checkpoint)
        schema = solved_schema(plan.spine, gathered.schema)
        solve = Solve(measured, self.task.settings.solver, _tops(upper, targets, levels[plan.depth]), schema)
        solved = prepared.map(solve, schema).kept(self._steps("solve"))
        try:
            told, _ = _told(solved.map(Summaries(), MESSAGE), None)
            tables = self._tables(gathered, upper, targets, levels, certificates, told)
            found = Findings.of(upper.constraints, upper.spine, levels, range(plan.depth + 1))
            for one in told:
                possible, agree, entries = (int(number) for number in one["rest"])
                kept, numbers = one["kept"].tolist(), one["numbers"].tolist()
                found.join(Findings(kept, numbers, bool(possible), bool(agree), entries))
            checks = found.checks(plan.workload, upper.constraints)
            task.approve(checks, record)
            microdata = self._records(gathered, solved)
        finally:
            solved.drop()
        return Made(
            microdata=microdata, tables=tables, checks=checks, input_digest=upper.input_digest.hex(), checkpoint=checkpoint,
        )  # fmt: skip

    def _levels(
        self, upper: Upper, targets: Targets, checkpoint: Checkpoint
    ) -> tuple[list[Sparse], list[Certificate]]:
        """The integers from the root to the shards' tops; levels finished before are used again."""
        measurements = targets.measurements  # type: ignore[attr-defined]
        weights = {pair: measurements.solve_weights(*pair) for pair in upper.allotment.rho}
        estimator = Estimator(
            upper.allotment, upper.constraints, targets, weights, solver=self.task.settings.solver
        )
        levels: list[Sparse] = []
        certificates: list[Certificate] = []
        for depth in range(upper.plan.depth + 1):
            done = checkpoint.load(depth)
            if done is None:
                done = (
                    estimator.root()
                    if depth == 0
                    else estimator.level(depth, levels[-1], self.task.engine, self.task.progress)
                )
                checkpoint.save(depth, *done)
            levels.append(done[0])
            certificates.append(done[1])
        return levels, certificates

    def _tables(
        self, gathered: Gathered, upper: Upper, targets: Targets, levels: list[Sparse],
        certificates: list[Certificate], told: Sequence[Arrays],
    ) -> dict[str, pa.Table]:  # fmt: skip
        """Totals, estimates and certificates of every level: those from here, then those of the shards in order."""
        plan, name = upper.plan, self.task.workload.name
        top = range(plan.depth + 1)
        totals = [output.level_totals(gathered.published, d, levels[d].totals) for d in top]
        below = range(plan.depth + 1, len(plan.spine) + int(plan.root is not None) - 1)
        totals += [bytes_table(one[f"totals {d}"]) for d in below for one in told]
        solves = [*certificates]
        for i, level in enumerate(plan.levels[plan.depth + 1 :]):
            whole = Certificate(level)
            for one in told:
                p, distance, violation, *counts = one["certificates"][i].tolist()
                whole.join(Certificate(level, int(p), distance, violation, *(int(n) for n in counts)))
            solves.append(whole)
        tables = {
            f"{name}-totals": pa.concat_tables(totals).combine_chunks(),
            f"{name}-solves": output.certificates(solves),
        }
        if isinstance(targets, Informed):
            cover = gls.covariances(targets.algebra, targets.levels, targets.leaves, leaves_too=False)
            known = [
                output.level_estimates(upper.spine, d, targets, targets.levels[d].e, cover[d]) for d in top
            ]
            known += [
                bytes_table(one[f"estimates {d}"]) for d in range(plan.depth + 1, plan.last) for one in told
            ]
            tables[f"{name}-estimates"] = pa.concat_tables(known).combine_chunks()
        return tables

    def _records(self, gathered: Gathered, solved: Parts) -> pa.Table | pads.Dataset:
        """Write the released records where they are stored; without a folder they are collected in this process."""
        names = dict(self.task.workload.columns) if self.task.bureau else {}
        axes = tuple(column(axis, names) for axis in self.task.workload.histogram.axes)
        tops = gathered.published
        hidden = 0 if gathered.plan.root is not None else len(tops.levels) - len(output.shown(tops))
        spine = gathered.plan.spine[hidden:]
        fields = [gathered.schema.field(name) for name in spine]
        schema = pa.schema([*fields, *((name, pa.int16()) for name, _ in axes)])
        rows = solved.map(ReleasedRows(self.task.workload, spine, schema, axes), schema)
        if self.task.out is None:
            return rows.gathered()
        return rows.write(self.task.out, self.task.workload.record, self._steps("write"))

    def _say(self, step: str, done: int, total: int) -> None:
        (self.task.progress or silent)(f"{self.task.workload.name}: {step}", done, total)

    def _steps(self, step: str) -> Steps:
        return lambda done, total: self._say(step, done, total)


def _told(parts: Parts, steps: Steps | None) -> tuple[list[Arrays], list[Arrays]]:
    """The messages of all shards in the order of the spine, and those of no shard."""
    table = parts.gathered(steps)
    order = np.argsort(table[SHARD].to_numpy(), kind="stable")
    found = [(table[SHARD][i].as_py(), unpacked(table[PAYLOAD][i].as_py())) for i in order.tolist()]
    return [told for shard, told in found if shard >= 0], [told for shard, told in found if shard < 0]


def _tops(upper: Upper, targets: Targets, tops: Sparse) -> Mapping[int, bytes]:
    """The message to each shard: the integers of its top, and in the closed form its estimate and covariance."""
    made: dict[int, bytes] = {}
    cover = None
    if isinstance(targets, Informed):
        cover = gls.covariances(targets.algebra, targets.levels, targets.leaves, leaves_too=False)[-1]
    for number in range(len(upper.offsets)):
        cells, counts = tops.at(number)
        message: dict[str, NDArray[np.generic]] = {"cells": cells, "counts": counts}
        if isinstance(targets, Informed) and cover is not None:
            message |= {"e": targets.levels[upper.plan.depth].e[number], "cover": cover[number]}
        made[number] = packed(message)
    return made
