"""Compute the integers of subtrees from those of their tops, level by level, and make what is published of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.guide.guide import Guidance
from stirred.mechanisms.topdown.guide.units import UnitSpread
from stirred.mechanisms.topdown.measure.linear import ClassicTargets, Targets
from stirred.mechanisms.topdown.rules.checks import Findings
from stirred.mechanisms.topdown.rules.repair import repair_leaves
from stirred.mechanisms.topdown.run import output
from stirred.mechanisms.topdown.run.levels import solve_levels
from stirred.mechanisms.topdown.run.subtrees.grove import SubtreeBatch, make_placeholder
from stirred.mechanisms.topdown.run.subtrees.rows import CELL, COUNT, KIND, LEAF, NUMBER, SHARD, to_frame
from stirred.mechanisms.topdown.run.subtrees.survey import (
    MESSAGE_SCHEMA,
    ONE_WORKER,
    PAYLOAD_COLUMN,
    Array,
    BatchMeasurements,
    pack_arrays,
    unpack_arrays,
)
from stirred.mechanisms.topdown.solve.agreed.estimator import choose_estimator
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse, reorder_leaves, stack_histograms, sum_upward

SUMMARY_KIND = 1 << 20  # the kind of a row that holds a grove's summary


def build_solved_schema(prepared: pa.Schema) -> pa.Schema:
    """Return the columns of solved parts: those of prepared parts, and the summary of each batch."""
    return (
        prepared
        if PAYLOAD_COLUMN in prepared.names
        else prepared.append(pa.field(PAYLOAD_COLUMN, pa.large_binary()))
    )


@dataclass(frozen=True, slots=True)
class SubtreeSolve:
    """The top-down solve of every subtree of a part; ``tops`` are the messages from the tree above.

    A solved part has the rows of the prepared one, with the released counts of cells in place of the census's.
    """

    measured: BatchMeasurements
    solver: str
    tops: Mapping[int, bytes]
    schema: pa.Schema
    summarised: bool = True  # whether totals, estimates, certificates and findings are wanted
    rounder: str = "own"

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        pieces = [self.of(grove) for grove in self.measured.division.split_batches(table)]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: SubtreeBatch) -> pa.Table:
        """Return the solved rows of neighbouring subtrees."""
        told = [unpack_arrays(self.tops[number]) for number in grove.numbers]
        targets = self.targets(grove, told)
        constraints = grove.build_constraints(self.measured.exact)
        guide = None
        if self.measured.guided and isinstance(targets, TreeEstimate):
            guide = Guidance.of(targets, constraints, UnitSpread(*told[0]["scatter"]))
        estimator = choose_estimator(
            Estimator.of(
                targets, constraints, solver=self.solver, guide=guide, rounder=self.rounder,
                geounits=int(self.measured.offsets[-1].sum()),  # of all subtrees but the last
            )
        )  # fmt: skip
        division = self.measured.division
        above = [make_placeholder()] * division.depth
        above.append(stack_histograms([(top["cells"], top["counts"]) for top in told]))
        levels, certificates = solve_levels(estimator, above, division.last, ONE_WORKER)
        levels, repairs = repair_leaves(division.types, constraints, grove.spine, levels, division.depth)
        summary = None
        if self.summarised:
            summary = self._summary(grove, targets, levels, certificates, told, repairs)
        leaves = levels[-1] if division.types is None else division.types.shorten_leaves(levels[-1])
        return self._rows(grove, leaves, summary)

    def targets(self, grove: SubtreeBatch, told: Sequence[Mapping[str, Array]]) -> Targets:
        """Return the linear terms of a batch, in the closed form from the estimates of its tops."""
        measured, depth = self.measured, self.measured.division.depth
        if "e" not in told[0]:
            return ClassicTargets(measured.of(grove))
        informed = measured.estimate_upward(grove)
        informed.levels[depth].e = np.stack([top["e"] for top in told])
        gls.run_downward(informed.algebra, informed.levels, informed.leaves, depth)
        informed.prepare()
        return informed

    def covariances(
        self, informed: TreeEstimate, told: Sequence[Mapping[str, Array]]
    ) -> list[NDArray[np.float64]]:
        """Return the covariances of the levels from the tops down to the parents of the leaves."""
        depth = self.measured.division.depth
        cover = np.stack([top["cover"] for top in told])
        return gls.covariances(
            informed.algebra, informed.levels[depth:], informed.leaves, leaves_too=False, top=cover
        )

    def _summary(
        self, grove: SubtreeBatch, targets: Targets, levels: list[Sparse], certificates: Sequence[Certificate],
        told: Sequence[Mapping[str, Array]], repairs: tuple[int, int],
    ) -> bytes:  # fmt: skip
        """Return what the tree above needs of a batch: tables of its levels, certificates, findings."""
        division = self.measured.division
        size = division.workload.histogram.cells
        released = levels
        if grove.published_tree is not grove.spine:
            released = sum_upward(
                grove.published_tree,
                reorder_leaves(grove.published_tree, grove.spine, levels[-1], size),
                size,
            )
        below = range(division.depth + 1, division.last + 1)
        findings = Findings.of(grove.constraints, grove.spine, levels, below)
        summary: dict[str, Array] = {
            "certificates": np.array([[*_list_numbers(c)] for c in certificates]).reshape(
                len(certificates), -1
            ),
            "kept": np.array(findings.kept, bool),
            "numbers": np.array(findings.numbers, np.int64),
            "rest": np.array([findings.possible, findings.agree, findings.entries], np.int64),
            "repairs": np.array(repairs, np.int64),
            "noise": encode_table(output.tabulate_noise(grove.allotment, below)),
        }
        for d in range(division.depth + 1, len(released) - 1):
            summary[f"totals {d}"] = encode_table(
                output.tabulate_totals(grove.published_tree, d, released[d].totals)
            )
        if isinstance(targets, TreeEstimate):
            known = self.covariances(targets, told)
            for d in range(division.depth + 1, division.last):
                found = output.tabulate_level_estimates(
                    grove.spine, d, targets, targets.levels[d].e, known[d - division.depth]
                )
                summary[f"estimates {d}"] = encode_table(found)
        return pack_arrays(summary)

    def _rows(self, grove: SubtreeBatch, leaves: Sparse, summary: bytes | None) -> pa.Table:
        others = grove.rows.filter(pl.col(KIND) != CELL)
        shard, leaf = grove.within(leaves.nodes)
        cells = pl.DataFrame({SHARD: shard, LEAF: leaf, NUMBER: leaves.cells, COUNT: leaves.counts}).select(
            pl.lit(CELL, pl.Int32).alias(KIND), pl.col(SHARD, LEAF).cast(pl.Int32), NUMBER, COUNT
        )
        pieces = [others.filter(pl.col(KIND) != SUMMARY_KIND), cells]
        if summary is not None:
            one = {KIND: [SUMMARY_KIND], SHARD: [grove.first], PAYLOAD_COLUMN: [summary]}
            pieces.append(
                pl.DataFrame(one, schema={KIND: pl.Int32, SHARD: pl.Int32, PAYLOAD_COLUMN: pl.Binary})
            )
        whole = pl.concat(pieces, how="diagonal")
        if PAYLOAD_COLUMN not in whole.columns:
            whole = whole.with_columns(pl.lit(None, pl.Binary).alias(PAYLOAD_COLUMN))
        return whole.select(self.schema.names).to_arrow().cast(self.schema)


def _list_numbers(certificate: Certificate) -> list[float]:
    """Return the numbers of a certificate, without its level."""
    return [float(getattr(certificate, name)) for name in Certificate.__slots__[1:]]


def encode_table(table: pa.Table) -> NDArray[np.uint8]:
    """Return a table as an array of bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def decode_table(array: NDArray[np.generic]) -> pa.Table:
    """Return the table of an array of bytes."""
    return pa.ipc.open_stream(pa.py_buffer(array.tobytes())).read_all()


@dataclass(frozen=True, slots=True)
class Summaries:
    """A kernel that returns the summaries of a part's batches."""

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        found = to_frame(table).filter(pl.col(KIND) == SUMMARY_KIND).select(SHARD, PAYLOAD_COLUMN)
        return found.to_arrow().cast(MESSAGE_SCHEMA)
