"""Run the steps of a subtree as pure kernels over parts: survey, upward estimate, solve, published rows."""

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred._support import pads
from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.engine.base import PartKernel, Parts, Steps
from stirred.mechanisms.topdown import measurement_files
from stirred.mechanisms.topdown.counts import Sparse, reorder_leaves, stack_histograms, sum_upward
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import repair_leaves
from stirred.mechanisms.topdown.dhc_given_pl.parents import choose_estimator
from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.estimate.whole_tree import TreeEstimate, build_noisy_tree, require_algebra
from stirred.mechanisms.topdown.measure import ClassicTargets, Measurements, Targets
from stirred.mechanisms.topdown.prior import Guidance, UnitSpread, sum_leaf_moments
from stirred.mechanisms.topdown.rules import Findings, find_equalities, find_misfits
from stirred.mechanisms.topdown.run import records
from stirred.mechanisms.topdown.run.subtrees.batch import (
    CELL,
    COUNT,
    KIND,
    LEAF,
    NO_SUBTREE,
    NUMBER,
    SHARD,
    Division,
    SubtreeBatch,
    make_placeholder,
    to_frame,
)
from stirred.mechanisms.topdown.run.subtrees.gather import count_faults
from stirred.mechanisms.topdown.run.task import Checkpoint, digest_upward, solve_levels
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.parent import Certificate

# The steps of a subtree, part by part: survey it, estimate it upward, solve it. Every kernel is pure and picklable.
#
# A subtree and the process that holds the tree above it exchange one small message for each subtree: named arrays,
# without pickled objects.

Array = NDArray[Any]
Ints = NDArray[np.int64]
PAYLOAD_COLUMN = "_payload"
MESSAGE_SCHEMA = pa.schema([(SHARD, pa.int32()), (PAYLOAD_COLUMN, pa.large_binary())])
ONE_WORKER = Local(workers=1)  # parts run side by side; inside one, everything is in order


def pack_arrays(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays by name as bytes: names, types and shapes as text, then their numbers.

    >>> unpack_arrays(pack_arrays({"a": np.arange(3)}))["a"].tolist()
    [0, 1, 2]
    """
    parts = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    head = json.dumps([(name, part.dtype.str, part.shape) for name, part in parts.items()]).encode()
    return b"".join([len(head).to_bytes(4, "little"), head, *(part.tobytes() for part in parts.values())])


def unpack_arrays(message: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays of a message."""
    at = 4 + int.from_bytes(message[:4], "little")
    found: dict[str, NDArray[Any]] = {}
    for name, kind, shape in json.loads(message[4:at]):
        numbers = math.prod(shape)
        found[name] = np.frombuffer(message, kind, numbers, at).reshape(shape).copy()
        at += found[name].nbytes
    return found


def write_messages(made: Mapping[int, Mapping[str, Array]]) -> pa.Table:
    """Return a table of messages."""
    return pa.table(
        [
            pa.array(list(made), pa.int32()),
            pa.array([pack_arrays(m) for m in made.values()], pa.large_binary()),
        ],
        schema=MESSAGE_SCHEMA,
    )


@dataclass(frozen=True, slots=True)
class SubtreeSurvey:
    """A kernel for what the tree above needs: histogram and bounds of tops, geounits, violations.

    One more message for each part, of no subtree, counts the records without a cell or area.
    """

    division: Division
    key: Key

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        made: dict[int, dict[str, Array]] = {NO_SUBTREE: {"troubles": count_faults(table)}}
        for grove in self.division.split_batches(table):
            made |= self.of(grove)
        return write_messages(made)

    def of(self, grove: SubtreeBatch) -> dict[int, dict[str, Array]]:
        """Return the survey of neighbouring subtrees; violations are reported with the first of them."""
        division, held = self.division, grove.constraints.held
        deep = [one for one in held if len(one.low) - 1 > division.depth]
        misfits = find_misfits(
            grove.constraints, grove.spine, grove.truth, range(division.depth + 1, division.last + 1)
        ).arrays()
        tops = digest_upward(self.key, grove.spine, grove.constraints, grove.truth[-1], division.depth)
        equal = find_equalities(
            grove.constraints, len(grove.truth), range(division.depth + 1, division.last + 1)
        )
        sizes = np.stack([np.diff(starts) for starts in grove.starts], axis=1)
        made: dict[int, dict[str, Array]] = {}
        for i, number in enumerate(grove.numbers):
            cells, counts = grove.truth[division.depth].at(i)
            bounds = [array[division.depth][i] for one in deep for array in (one.low, one.high)]
            made[number] = {
                "sizes": sizes[i],
                "cells": cells,
                "counts": counts,
                "bounds": np.concatenate([*bounds, np.zeros(0, np.int64)]),
                "equal": equal,
                **(
                    misfits
                    if i == 0
                    else {name: np.zeros_like(misfits[name]) for name in ("broken", "clash")}
                ),
                "digest": np.frombuffer(tops[i], np.uint8),
                **list_frontier(grove, i),
            }
        return made


def list_frontier(grove: SubtreeBatch, shard: int) -> dict[str, Array]:
    """Return the first measured geounits below a subtree's top, which represent unmeasured ones above.

    Rows of ``below`` are depth, number and the parent's number, both within the subtree.
    """
    allotment, spine, top = grove.allotment, grove.spine, grove.division.depth
    found: list[tuple[int, int, int]] = []
    layer = [shard]
    for d in range(top, grove.division.last):
        bare = [node for node in layer if allotment.start[d][node] < 0]
        layer = []
        for node in bare:
            children = range(*spine.first_child[d][node : node + 2])
            found += [(d + 1, child, node) for child in children]
            layer += children
    entries = [grove.truth[d].at(node) for d, node, _ in found]
    none = np.zeros(0, np.int64)
    begin = [int(starts[shard]) for starts in grove.starts]
    numbers = [(d, node - begin[d - top], above - begin[d - 1 - top]) for d, node, above in found]
    return {
        "below": np.array(numbers, np.int64).reshape(-1, 3),
        "below_sizes": np.array([len(cells) for cells, _ in entries], np.int64),
        "below_cells": np.concatenate([none, *(cells for cells, _ in entries)]),
        "below_counts": np.concatenate([none, *(counts for _, counts in entries)]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMeasurements:
    """The measurements of subtrees: the run's key, and where their geounits are in the whole tree."""

    division: Division
    key: Key | None  # None: no noise at all
    offsets: Ints  # subtrees × levels
    emphasis: int
    exact: tuple[bool, ...]  # which constraints are equalities in the whole tree
    guided: bool = False

    def of(self, grove: SubtreeBatch) -> Measurements:
        """Return all measurements of a batch, drawn when needed."""
        return grove.measurements(self.key, self.offsets[grove.first], self.emphasis)

    def estimate_upward(self, grove: SubtreeBatch) -> TreeEstimate:
        """Return the estimates and covariances from the leaves up to the tops."""
        constraints, measurements = grove.build_constraints(self.exact), self.of(grove)
        algebra = require_algebra(measurements, constraints)
        levels, leaves = build_noisy_tree(algebra, measurements, constraints, ONE_WORKER, self.division.depth)
        whole_tree.run_upward(algebra, levels, leaves, self.division.depth)
        return TreeEstimate(algebra, measurements, levels, leaves)


@dataclass(frozen=True, slots=True)
class UpwardEstimate:
    """A kernel for the upward pass: the estimate of a subtree's top from its measurements, and its covariance."""

    measured: BatchMeasurements

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        division = self.measured.division
        made: dict[int, dict[str, Array]] = {}
        for grove in division.split_batches(table):
            informed = self.measured.estimate_upward(grove)
            tops = informed.levels[division.depth]
            made |= {number: {"b": tops.b[i], "C": tops.C[i]} for i, number in enumerate(grove.numbers)}
            if self.measured.guided:  # whole numbers, told with the first subtree
                found = sum_leaf_moments(informed, grove.build_constraints(self.measured.exact))
                for i, number in enumerate(grove.numbers):
                    made[number]["moments"] = found if i == 0 else np.zeros_like(found)
        return write_messages(made)


# Compute the integers of subtrees from those of their tops, level by level, and make what is published of them.

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
    tops: Mapping[int, bytes]
    schema: pa.Schema
    summarised: bool = True  # whether totals, estimates, certificates and findings are wanted

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
            guide = Guidance.of(targets, constraints, UnitSpread(told[0]["scatter"]))
        estimator = choose_estimator(Estimator.of(targets, constraints, guide=guide))
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
        whole_tree.run_downward(informed.algebra, informed.levels, informed.leaves, depth)
        informed.prepare()
        return informed

    def covariances(
        self, informed: TreeEstimate, told: Sequence[Mapping[str, Array]]
    ) -> list[NDArray[np.float64]]:
        """Return the covariances of the levels from the tops down to the parents of the leaves."""
        depth = self.measured.division.depth
        cover = np.stack([top["cover"] for top in told])
        return whole_tree.covariances(
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
            "noise": encode_table(records.tabulate_noise(grove.allotment, below)),
        }
        for d in range(division.depth + 1, len(released) - 1):
            summary[f"totals {d}"] = encode_table(
                records.tabulate_totals(grove.published_tree, d, released[d].totals)
            )
        if isinstance(targets, TreeEstimate):
            known = self.covariances(targets, told)
            for d in range(division.depth + 1, division.last):
                found = records.tabulate_level_estimates(
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


# Keep the finished subtrees of a run on disk: one that is killed goes on with the parts that are left.
#
# As of the levels above, only post-processed output is kept: the released counts of the leaves and the summary of each
# grove. The file of a part belongs to a number of parts, because a run with other memory divides the tree otherwise.

KEPT_COLUMNS = [KIND, SHARD, LEAF, NUMBER, COUNT, PAYLOAD_COLUMN]


@dataclass(frozen=True, slots=True)
class ResumedSolve:
    """The solve of a part, or what an interrupted run kept of it."""

    solve: SubtreeSolve
    checkpoint: Checkpoint
    parts: int

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        name = f"part-{part}-of-{self.parts}"
        kept = self.checkpoint.open_folder()
        if kept is None:
            return self.solve(part, table)
        place = kept.find_finished(f"{name}.parquet")
        ours = pl.col(KIND).is_in([CELL, SUMMARY_KIND])
        schema = self.solve.schema
        if place is not None:
            rest = to_frame(table).filter(~ours & (pl.col(SHARD) >= 0))
            whole = pl.concat([rest, to_frame(pq.read_table(place))], how="diagonal")
            return whole.select(schema.names).to_arrow().cast(schema)
        solved = self.solve(part, table)
        temporary = kept.folder / f"{name}.part"
        rows = to_frame(solved).filter(ours).select(KEPT_COLUMNS).to_arrow()
        pq.write_table(rows, temporary, compression="zstd")
        kept.adopt(f"{name}.parquet", temporary)
        return solved


def resume_solve(solve: SubtreeSolve, checkpoint: Checkpoint, parts: int, engine: Engine) -> PartKernel:
    """Return a solve that keeps what it finishes, if the parts run on the machine that has the folder."""
    here = checkpoint.folder is not None and engine.name == "local"
    return ResumedSolve(solve, checkpoint, parts) if here else solve


# Kernels over solved subtrees that make published rows: records, replicates, unbiased estimates, noisy measurements.

ROWS_PER_READ = 1 << 16  # read at a time
LIST_ROWS_PER_READ = 1 << 11  # where rows hold lists
DEPTH, TABLE = "_depth", "_table"  # which level a row is about, and which table of that level
TAG_SCHEMA = pa.schema([(DEPTH, pa.int16()), (TABLE, pa.int16())])


@dataclass(frozen=True, slots=True)
class ReleasedRows:
    """The released records of a part by area and cell: one row each, or with ``replicate`` one row for each cell."""

    division: Division
    schema: pa.Schema
    bureau: bool
    replicate: int | None = None

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        pieces = [
            piece.cast(self.schema)
            for grove in self.division.split_batches(table)
            for piece in self.of(grove)
        ]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: SubtreeBatch) -> Iterator[pa.Table]:
        """Yield the rows of neighbouring subtrees."""
        workload = self.division.base
        leaves = reorder_leaves(
            grove.published_tree, grove.spine, grove.published_leaves, workload.histogram.cells
        )
        if self.replicate is None:
            return records.make_microdata(workload, grove.published_tree, leaves, bureau=self.bureau)
        rows = records.tabulate_replicate(
            workload, grove.published_tree, leaves, self.replicate, bureau=self.bureau
        )
        return iter([rows])


def build_tagged_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns with the level and table of each row."""
    return pa.schema([*TAG_SCHEMA, *schema])


def tag_rows(table: pa.Table, depth: int, number: int) -> pa.Table:
    """Return the rows with their level and table."""
    for place, (name, value) in enumerate(((DEPTH, depth), (TABLE, number))):
        table = table.add_column(
            place, TAG_SCHEMA.field(name), pa.array(np.full(table.num_rows, value), pa.int16())
        )
    return table


@dataclass(frozen=True, slots=True)
class UnbiasedRows:
    """The unbiased estimates of a part's geounits, for every marginal of a level."""

    solve: SubtreeSolve
    schema: pa.Schema
    bureau: bool
    records: int  # of the whole census, which say what is kept of leaves

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        division = self.solve.measured.division
        pieces = [piece for grove in division.split_batches(table) for piece in self.of(grove)]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: SubtreeBatch) -> Iterator[pa.Table]:
        """Yield the rows of neighbouring subtrees."""
        division = self.solve.measured.division
        told = [unpack_arrays(self.solve.tops[number]) for number in grove.numbers]
        informed = self.solve.targets(grove, told)
        if not isinstance(informed, TreeEstimate):
            return
        known = self.solve.covariances(informed, told)
        for d in range(division.depth + 1, division.last):
            cover = known[d - division.depth]
            found = whole_tree.tabulate_level(
                division.workload, grove.spine, informed, d, cover, bureau=self.bureau
            )
            for number, rows in enumerate(found):
                yield tag_rows(rows, d, number).cast(self.schema)
        marginals = whole_tree.list_leaf_marginals(division.workload, self.records)
        found = whole_tree.tabulate_leaves(
            division.workload, grove.spine, informed, known[-1], marginals, bureau=self.bureau
        )
        for number, rows in enumerate(found):
            yield tag_rows(rows, division.last, number).cast(self.schema)


@dataclass(frozen=True, slots=True)
class MeasurementRows:
    """The noisy measurements of a part's geounits, or the bounds that hold in them, by level and table."""

    measured: BatchMeasurements
    schema: pa.Schema
    bounds: bool = False

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        division = self.measured.division
        pieces = [piece for grove in division.split_batches(table) for piece in self.of(grove)]
        return pa.concat_tables([self.schema.empty_table(), *pieces])

    def of(self, grove: SubtreeBatch) -> Iterator[pa.Table]:
        """Yield the rows of neighbouring subtrees."""
        division = self.measured.division
        measurements = None if self.bounds else self.measured.of(grove)
        for d in range(division.depth + 1, division.last + 1):
            if measurements is None:
                for number in measurement_files.list_bound_tables(grove.constraints, d):
                    rows = measurement_files.tabulate_bounds(
                        grove.constraints, grove.spine, division.workload, d, number
                    )
                    yield tag_rows(rows, d, number).cast(self.schema)
                continue
            for number in measurement_files.list_answer_tables(measurements, d):
                for rows in measurement_files.tabulate_answers(measurements, d, number):
                    yield tag_rows(rows, d, number).cast(self.schema)


def split_runs(table: pa.Table) -> Iterator[tuple[int, int, pa.Table]]:
    """Yield level, table and rows of each run of neighbouring rows of one table, without their tags."""
    depth, number = (table[name].to_numpy() for name in TAG_SCHEMA.names)
    rows = table.drop_columns(TAG_SCHEMA.names)
    cuts = np.flatnonzero((np.diff(depth) != 0) | (np.diff(number) != 0)) + 1
    for begin, end in pairwise([0, *cuts.tolist(), len(depth)]):
        if end > begin:
            yield int(depth[begin]), int(number[begin]), rows.slice(begin, end - begin)


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Rows of parts; with a folder they are files there, which are deleted at the end: one for each tagged table."""

    data: "pads.Dataset"
    place: Path | None
    sorted: Path | None = None  # the folder of files by level and table

    @staticmethod
    def of(rows: Parts, folder: Path | None, name: str, steps: Steps | None = None) -> "StoredRows":
        """Compute the rows and store them."""
        if folder is None:
            return StoredRows(pads.dataset(rows.gather(steps)), None)
        stored = StoredRows(rows.write(folder, name, steps), folder / f"{name}.parquet")
        if DEPTH not in stored.data.schema.names:
            return stored
        with stored:  # read once, not once for each table
            return StoredRows(stored.data, None, stored.sort_into_files(folder / f"{name}-tables"))

    def tables(self, depth: int | None = None, number: int | None = None) -> Iterator[pa.Table]:
        """Yield all rows, or those of one table of a level without its tags."""
        if self.sorted is not None and depth is not None:
            path = self.sorted / f"{depth}.{number}.parquet"
            if path.exists():
                with pq.ParquetFile(path) as file:
                    for group in range(file.num_row_groups):
                        yield file.read_row_group(group)
            return
        names = [name for name in self.data.schema.names if name not in TAG_SCHEMA.names]
        chosen = None
        if depth is not None:
            chosen = (pc.field(DEPTH) == depth) & (pc.field(TABLE) == number)
        yield from self._batches(names, chosen)

    def sort_into_files(self, place: Path) -> Path:
        """Write the rows to one file for each level and table, in their order, and return the folder."""
        place.mkdir()
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, place, ignore_errors=True)
            with ExitStack() as files:
                writers: dict[tuple[int, int], pq.ParquetWriter] = {}
                for table in self._batches(self.data.schema.names, None):
                    depth, number = (table[name].to_numpy() for name in TAG_SCHEMA.names)
                    rows = table.drop_columns(TAG_SCHEMA.names)
                    for tag in sorted(set(zip(depth.tolist(), number.tolist(), strict=True))):
                        if tag not in writers:
                            path = place / f"{tag[0]}.{tag[1]}.parquet"
                            writers[tag] = files.enter_context(
                                pq.ParquetWriter(path, rows.schema, compression="zstd")
                            )
                        own = (depth == tag[0]) & (number == tag[1])
                        writers[tag].write_table(rows.filter(pa.array(own)))
            stack.pop_all()
        return place

    def _batches(self, names: Sequence[str], chosen: pc.Expression | None) -> Iterator[pa.Table]:
        """Yield some rows at a time; long lists are not read ahead."""
        lists = any(pa.types.is_list(field.type) for field in self.data.schema)
        few = (
            {"batch_size": LIST_ROWS_PER_READ, "batch_readahead": 1, "fragment_readahead": 1} if lists else {}
        )
        for batch in self.data.to_batches(
            columns=names, filter=chosen, **{"batch_size": ROWS_PER_READ, **few}
        ):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])

    def __enter__(self) -> "StoredRows":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for place in (self.place, self.sorted):
            if place is not None and place.is_dir():
                shutil.rmtree(place)
            elif place is not None:
                place.unlink(missing_ok=True)
