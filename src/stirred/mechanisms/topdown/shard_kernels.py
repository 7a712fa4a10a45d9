"""What is done in a shard, part by part: survey it, estimate it upward, solve it. Every kernel is pure and picklable.

What travels between a shard and the process that holds the tree above it is one small message for each shard: arrays by
name, without pickled objects.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Local
from stirred.mechanisms.topdown import digest, gls
from stirred.mechanisms.topdown.feasibility import misfits
from stirred.mechanisms.topdown.shard import Plan, Shard
from stirred.mechanisms.topdown.shard_rows import SHARD
from stirred.mechanisms.topdown.spine import Allotment
from stirred.mechanisms.topdown.tabulate import Sparse
from stirred.mechanisms.topdown.targets import Informed, algebra_of, tree

Array = NDArray[Any]
Ints = NDArray[np.int64]
PAYLOAD = "_payload"
MESSAGE = pa.schema([(SHARD, pa.int32()), (PAYLOAD, pa.large_binary())])
ALONE = Local(workers=1)  # shards run side by side; inside one, everything is in order


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Arrays by name as bytes.

    >>> unpacked(packed({"a": np.arange(3)}))["a"].tolist()
    [0, 1, 2]
    """
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def unpacked(message: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of a message."""
    with np.load(io.BytesIO(message), allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def messages(made: Mapping[int, Mapping[str, Array]]) -> pa.Table:
    """A table of messages."""
    return pa.table(
        [pa.array(list(made), pa.int32()), pa.array([packed(m) for m in made.values()], pa.large_binary())],
        schema=MESSAGE,
    )


@dataclass(frozen=True, slots=True)
class Survey:
    """What the tree above must know: the histogram and bounds of the top, how many geounits, what does not fit."""

    plan: Plan
    key: Key

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        return messages({shard.number: self.of(shard) for shard in self.plan.shards(table)})

    def of(self, shard: Shard) -> dict[str, Array]:
        """The survey of one shard."""
        plan, held = self.plan, shard.constraints.held
        deep = [one for one in held if len(one.low) - 1 > plan.depth]
        broken, clash = misfits(shard.constraints, shard.truth, range(plan.depth + 1, plan.last + 1))
        bounds = [array[plan.depth][0] for one in deep for array in (one.low, one.high)]
        top = digest.climbed(self.key, shard.spine, shard.constraints, shard.truth[-1], plan.depth)
        cells, counts = shard.truth[plan.depth].at(0)
        return {
            "sizes": np.array([shard.spine.size(d) for d in range(len(plan.levels))]),
            "cells": cells,
            "counts": counts,
            "bounds": np.concatenate([*bounds, np.zeros(0, np.int64)]),
            "exact": np.array([bool((one.low[-1] == one.high[-1]).all()) for one in held], bool),
            "broken": broken,
            "clash": clash,
            "digest": np.frombuffer(b"".join(top), np.uint8),
            **frontier(shard.allotment, shard.truth, plan.depth),
        }


def frontier(allotment: Allotment, truth: list[Sparse], top: int) -> dict[str, Array]:
    """The geounits whose measurements stand for those above them that have none: down to the first that is measured."""
    spine = allotment.spine
    found: list[tuple[int, int, int]] = []
    layer = [0]
    for d in range(top, len(spine.levels) - 1):
        bare = [node for node in layer if allotment.start[d][node] < 0]
        layer = []
        for node in bare:
            children = range(*spine.first_child[d][node : node + 2])
            found += [(d + 1, child, node) for child in children]
            layer += children
    entries = [truth[d].at(node) for d, node, _ in found]
    return {
        "below": np.array(found, np.int64).reshape(-1, 3),
        "below_sizes": np.array([len(cells) for cells, _ in entries], np.int64),
        "below_cells": np.concatenate([np.zeros(0, np.int64), *(cells for cells, _ in entries)]),
        "below_counts": np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in entries)]),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A shard's measurements: the run's own key, and where its geounits stand in the whole tree."""

    plan: Plan
    key: Key | None  # None: no noise at all
    offsets: Ints  # shards × levels
    emphasis: int
    exact: tuple[bool, ...]  # which constraints are equalities in the whole tree

    def risen(self, shard: Shard) -> Informed:
        """Everything measured, and both what is known and how well, from the leaves up to its top."""
        constraints = shard.constraints_as(self.exact)
        measurements = shard.measurements(self.key, self.offsets[shard.number], self.emphasis)
        algebra = algebra_of(measurements, constraints)
        levels, leaves = tree(algebra, measurements, constraints, ALONE, self.plan.depth)
        gls.rise(algebra, levels, leaves, self.plan.depth)
        return Informed(algebra, measurements, levels, leaves)


@dataclass(frozen=True, slots=True)
class Rise:
    """The upward half of the tree estimate: what a shard's measurements say about its top, and its covariance."""

    measured: Measured

    def __call__(self, part: int, table: pa.Table) -> pa.Table:  # noqa: ARG002 — the protocol's
        plan = self.measured.plan
        return messages({shard.number: self.of(shard) for shard in plan.shards(table)})

    def of(self, shard: Shard) -> dict[str, Array]:
        """The message of one shard."""
        top = self.measured.risen(shard).levels[self.measured.plan.depth]
        return {"b": top.b[0], "C": top.C[0]}
