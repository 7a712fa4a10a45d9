"""Compute the integers of subtrees from those of their tops, level by level, and make what is published of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.guide.guide import Guidance
from stirred.mechanisms.topdown.guide.units import UnitSpread
from stirred.mechanisms.topdown.measure.linear import Raw, Targets
from stirred.mechanisms.topdown.rules.checks import Findings
from stirred.mechanisms.topdown.rules.repair import repaired
from stirred.mechanisms.topdown.run import output
from stirred.mechanisms.topdown.run.levels import descend
from stirred.mechanisms.topdown.run.subtrees.grove import Grove, unknown
from stirred.mechanisms.topdown.run.subtrees.rows import CELL, COUNT, KIND, LEAF, NUMBER, SHARD, frame_of
from stirred.mechanisms.topdown.run.subtrees.survey import (
    ALONE,
    MESSAGE,
    PAYLOAD,
    Array,
    Measured,
    packed,
    unpacked,
)
from stirred.mechanisms.topdown.solve.agreed.estimator import agreeing
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse, ordinary, stacked, upward

SUMMARY = 1 << 20  # the kind of a row that holds a grove's summary


def solved_schema(prepared: pa.Schema) -> pa.Schema:
    """The columns of solved parts: those of prepared parts, and one for the summary of each grove."""
    return prepared if PAYLOAD in prepared.names else prepared.append(pa.field(PAYLOAD, pa.large_binary()))


@dataclass(frozen=True, slots=True)
class Solve:
    """The top-down solve of every subtree of a part; ``tops`` are the messages from the tree above.

    A solved part has the rows of the prepared one, with the released counts of cells in place of the census's.
    """

    measured: Measured
    solver: str
    tops: Mapping[int, bytes]
    schema: pa.Schema
    summarised: bool = True  # whether totals, estimates, certificates and findings are wanted
    rounder: str = "own"

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        pieces = [self.of(grove) for grove in self.measured.division.groves(table)]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: Grove) -> pa.Table:
        """The result of neighbouring subtrees."""
        told = [unpacked(self.tops[number]) for number in grove.numbers]
        targets = self.targets(grove, told)
        constraints = grove.constraints_as(self.measured.exact)
        guide = None
        if self.measured.guided and isinstance(targets, Informed):
            guide = Guidance.of(targets, constraints, UnitSpread(*told[0]["scatter"]))
        estimator = agreeing(
            Estimator.of(
                targets, constraints, solver=self.solver, guide=guide, rounder=self.rounder,
                geounits=int(self.measured.offsets[-1].sum()),  # of all subtrees but the last
            )
        )  # fmt: skip
        division = self.measured.division
        above = [unknown()] * division.depth
        above.append(stacked([(top["cells"], top["counts"]) for top in told]))
        levels, certificates = descend(estimator, above, division.last, ALONE)
        levels, repairs = repaired(division.types, constraints, grove.spine, levels, division.depth)
        summary = None
        if self.summarised:
            summary = self._summary(grove, targets, levels, certificates, told, repairs)
        leaves = levels[-1] if division.types is None else division.types.shorter(levels[-1])
        return self._rows(grove, leaves, summary)

    def targets(self, grove: Grove, told: Sequence[Mapping[str, Array]]) -> Targets:
        """The linear terms of a grove, in the closed form from the estimates of its tops."""
        measured, depth = self.measured, self.measured.division.depth
        if "e" not in told[0]:
            return Raw(measured.of(grove))
        informed = measured.risen(grove)
        informed.levels[depth].e = np.stack([top["e"] for top in told])
        gls.fall(informed.algebra, informed.levels, informed.leaves, depth)
        informed.prepare()
        return informed

    def covariances(
        self, informed: Informed, told: Sequence[Mapping[str, Array]]
    ) -> list[NDArray[np.float64]]:
        """The covariances of the levels from the tops down to the parents of the leaves."""
        depth = self.measured.division.depth
        cover = np.stack([top["cover"] for top in told])
        return gls.covariances(
            informed.algebra, informed.levels[depth:], informed.leaves, leaves_too=False, top=cover
        )

    def _summary(
        self, grove: Grove, targets: Targets, levels: list[Sparse], certificates: Sequence[Certificate],
        told: Sequence[Mapping[str, Array]], repairs: tuple[int, int],
    ) -> bytes:  # fmt: skip
        """What the tree above needs of a grove: tables of its levels, certificates, findings."""
        division = self.measured.division
        size = division.workload.histogram.cells
        released = levels
        if grove.published is not grove.spine:
            released = upward(grove.published, ordinary(grove.published, grove.spine, levels[-1], size), size)
        below = range(division.depth + 1, division.last + 1)
        findings = Findings.of(grove.constraints, grove.spine, levels, below)
        summary: dict[str, Array] = {
            "certificates": np.array([[*_numbers(c)] for c in certificates]).reshape(len(certificates), -1),
            "kept": np.array(findings.kept, bool),
            "numbers": np.array(findings.numbers, np.int64),
            "rest": np.array([findings.possible, findings.agree, findings.entries], np.int64),
            "repairs": np.array(repairs, np.int64),
            "noise": table_bytes(output.noise(grove.allotment, below)),
        }
        for d in range(division.depth + 1, len(released) - 1):
            summary[f"totals {d}"] = table_bytes(output.level_totals(grove.published, d, released[d].totals))
        if isinstance(targets, Informed):
            known = self.covariances(targets, told)
            for d in range(division.depth + 1, division.last):
                found = output.level_estimates(
                    grove.spine, d, targets, targets.levels[d].e, known[d - division.depth]
                )
                summary[f"estimates {d}"] = table_bytes(found)
        return packed(summary)

    def _rows(self, grove: Grove, leaves: Sparse, summary: bytes | None) -> pa.Table:
        others = grove.rows.filter(pl.col(KIND) != CELL)
        shard, leaf = grove.within(leaves.nodes)
        cells = pl.DataFrame({SHARD: shard, LEAF: leaf, NUMBER: leaves.cells, COUNT: leaves.counts}).select(
            pl.lit(CELL, pl.Int32).alias(KIND), pl.col(SHARD, LEAF).cast(pl.Int32), NUMBER, COUNT
        )
        pieces = [others.filter(pl.col(KIND) != SUMMARY), cells]
        if summary is not None:
            one = {KIND: [SUMMARY], SHARD: [grove.first], PAYLOAD: [summary]}
            pieces.append(pl.DataFrame(one, schema={KIND: pl.Int32, SHARD: pl.Int32, PAYLOAD: pl.Binary}))
        whole = pl.concat(pieces, how="diagonal")
        if PAYLOAD not in whole.columns:
            whole = whole.with_columns(pl.lit(None, pl.Binary).alias(PAYLOAD))
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
    """The table of an array of bytes."""
    return pa.ipc.open_stream(pa.py_buffer(array.tobytes())).read_all()


@dataclass(frozen=True, slots=True)
class Summaries:
    """The summaries of a part's groves."""

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        found = frame_of(table).filter(pl.col(KIND) == SUMMARY).select(SHARD, PAYLOAD)
        return found.to_arrow().cast(MESSAGE)
