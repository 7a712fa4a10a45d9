"""Compute a shard's integers from those of its top, level by level, and make what is published of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure.linear import Raw, Targets
from stirred.mechanisms.topdown.rules.checks import Findings
from stirred.mechanisms.topdown.run import output
from stirred.mechanisms.topdown.run.subtrees.grove import Grove, unknown
from stirred.mechanisms.topdown.run.subtrees.prepare import FIXED
from stirred.mechanisms.topdown.run.subtrees.rows import (
    AREA,
    CELL,
    COUNT,
    KIND,
    LEAF,
    NUMBER,
    SHARD,
    frame_of,
)
from stirred.mechanisms.topdown.run.subtrees.survey import ALONE, PAYLOAD, Array, Measured, packed, unpacked
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse, ordinary, stacked, upward
from stirred.mechanisms.topdown.workload.workload import Workload

SUMMARY = 9  # the kind of a row that holds a grove's summary
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def solved_schema(spine: tuple[str, ...], areas: pa.Schema) -> pa.Schema:
    """The columns of what is kept: leaves with their codes, released cells, one summary for each grove."""
    codes = [areas.field(name) for name in spine]
    return pa.schema([*FIXED, *codes, (PAYLOAD, pa.large_binary())])


@dataclass(frozen=True, slots=True)
class Solve:
    """The top-down solve of every shard of a part; ``tops`` are the messages from the tree above."""

    measured: Measured
    solver: str
    tops: Mapping[int, bytes]
    schema: pa.Schema

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        pieces = [self.of(grove) for grove in self.measured.plan.groves(table)]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: Grove) -> pa.Table:
        """The result of neighbouring shards."""
        plan = self.measured.plan
        told = [unpacked(self.tops[number]) for number in grove.numbers]
        targets = self._targets(grove, told)
        levels, certificates = self._levels(grove, targets, told)
        size = plan.workload.histogram.cells
        leaves = ordinary(grove.published, grove.spine, levels[-1], size)
        released = levels if grove.published is grove.spine else upward(grove.published, leaves, size)
        below = range(plan.depth + 1, plan.last + 1)
        findings = Findings.of(grove.constraints, grove.spine, levels, below)
        summary: dict[str, Array] = {
            "certificates": np.array([[*_numbers(c)] for c in certificates]).reshape(len(certificates), -1),
            "kept": np.array(findings.kept, bool),
            "numbers": np.array(findings.numbers, np.int64),
            "rest": np.array([findings.possible, findings.agree, findings.entries], np.int64),
        }
        for d in range(plan.depth + 1, len(released) - 1):
            summary[f"totals {d}"] = table_bytes(output.level_totals(grove.published, d, released[d].totals))
        if isinstance(targets, Informed):
            cover = np.stack([top["cover"] for top in told])
            known = gls.covariances(
                targets.algebra, targets.levels[plan.depth :], targets.leaves, leaves_too=False, top=cover
            )
            for d in range(plan.depth + 1, plan.last):
                summary[f"estimates {d}"] = table_bytes(
                    output.level_estimates(
                        grove.spine, d, targets, targets.levels[d].e, known[d - plan.depth]
                    )
                )
        return self._rows(grove, leaves, packed(summary))

    def _targets(self, grove: Grove, told: Sequence[Mapping[str, Array]]) -> Targets:
        measured, depth = self.measured, self.measured.plan.depth
        if "e" not in told[0]:
            return Raw(measured.of(grove))
        informed = measured.risen(grove)
        informed.levels[depth].e = np.stack([top["e"] for top in told])
        gls.fall(informed.algebra, informed.levels, informed.leaves, depth)
        informed.prepare()
        return informed

    def _levels(
        self, grove: Grove, targets: Targets, told: Sequence[Mapping[str, Array]]
    ) -> tuple[list[Sparse], list[Certificate]]:
        plan = self.measured.plan
        measurements = targets.measurements  # type: ignore[attr-defined]
        weights = {pair: measurements.solve_weights(*pair) for pair in grove.allotment.rho}
        constraints = grove.constraints_as(self.measured.exact)
        estimator = Estimator(grove.allotment, constraints, targets, weights, solver=self.solver)
        levels = [unknown()] * plan.depth
        levels.append(stacked([(top["cells"], top["counts"]) for top in told]))
        certificates = []
        for depth in range(plan.depth + 1, plan.last + 1):
            level, certificate = estimator.level(depth, levels[-1], ALONE)
            levels.append(level)
            certificates.append(certificate)
        return levels, certificates

    def _rows(self, grove: Grove, leaves: Sparse, summary: bytes) -> pa.Table:
        spine = list(self.measured.plan.spine)
        areas = grove.areas.sort(spine).select(
            pl.lit(AREA, pl.Int32).alias(KIND), pl.int_range(pl.len(), dtype=pl.Int32).alias(LEAF), *spine
        )
        cells = pl.DataFrame({LEAF: leaves.nodes, NUMBER: leaves.cells, COUNT: leaves.counts}).with_columns(
            pl.lit(CELL, pl.Int32).alias(KIND), pl.col(LEAF).cast(pl.Int32)
        )
        last = pl.DataFrame(
            {KIND: [SUMMARY], PAYLOAD: [summary]}, schema={KIND: pl.Int32, PAYLOAD: pl.Binary}
        )
        whole = pl.concat([areas, cells, last], how="diagonal")
        whole = whole.with_columns(pl.lit(grove.first, pl.Int32).alias(SHARD))
        return whole.select(self.schema.names).to_arrow().cast(self.schema)


def _numbers(certificate: Certificate) -> list[float]:
    """The numbers of a certificate, without its level."""
    return [float(getattr(certificate, name)) for name in Certificate.__slots__[1:]]


def table_bytes(table: pa.Table) -> NDArray[np.uint8]:
    """A table as an array of bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def bytes_table(array: NDArray[np.generic]) -> pa.Table:
    """The table again."""
    return pa.ipc.open_stream(pa.py_buffer(array.tobytes())).read_all()


@dataclass(frozen=True, slots=True)
class Summaries:
    """The summaries of a part's groves."""

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        return frame_of(table).filter(pl.col(KIND) == SUMMARY).select(SHARD, PAYLOAD).to_arrow()


@dataclass(frozen=True, slots=True)
class ReleasedRows:
    """The released records of a part, one row each, by area and cell."""

    workload: Workload
    spine: tuple[str, ...]
    schema: pa.Schema
    names: tuple[tuple[str, int], ...]  # of the axes: column and what is added to a level

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        frame = frame_of(table)
        areas = frame.filter(pl.col(KIND) == AREA).select(SHARD, LEAF, *self.spine)
        cells = frame.filter(pl.col(KIND) == CELL).select(SHARD, LEAF, NUMBER, COUNT)
        cells = cells.join(areas, on=[SHARD, LEAF]).sort(SHARD, LEAF, NUMBER)
        rows = np.repeat(np.arange(cells.height), cells[COUNT].to_numpy())
        codes = cells.select(self.spine).to_arrow()
        columns = {name: codes[name].take(pa.array(rows)) for name in self.spine}
        levels = self.workload.histogram.coordinates(cells[NUMBER].to_numpy())
        for (name, offset), level in zip(self.names, levels, strict=True):
            columns[name] = pa.array(level[rows] + offset, pa.int16())
        return pa.table({name: columns[name] for name in self.schema.names}).cast(self.schema)
