"""The steps of a subtree, part by part: survey it, estimate it upward, solve it. Every kernel is pure and picklable.

A subtree and the process that holds the tree above it exchange one small message for each subtree: named arrays,
without pickled objects.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate, build_noisy_tree, require_algebra
from stirred.mechanisms.topdown.guide.guide import sum_leaf_moments
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.checks import count_misfits, find_equalities
from stirred.mechanisms.topdown.run import digest
from stirred.mechanisms.topdown.run.subtrees.grove import Division, SubtreeBatch
from stirred.mechanisms.topdown.run.subtrees.prepare import count_faults
from stirred.mechanisms.topdown.run.subtrees.rows import NO_SUBTREE, SHARD

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
        broken, clash = count_misfits(
            grove.constraints, grove.truth, range(division.depth + 1, division.last + 1)
        )
        tops = digest.digest_upward(self.key, grove.spine, grove.constraints, grove.truth[-1], division.depth)
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
                "broken": broken if i == 0 else np.zeros_like(broken),
                "clash": clash if i == 0 else np.zeros_like(clash),
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
        gls.run_upward(algebra, levels, leaves, self.division.depth)
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
