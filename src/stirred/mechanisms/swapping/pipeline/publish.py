"""Publish swapped records with a new order and new identifiers, so that nothing of the input's order remains.

Each function takes one part: all records in memory, or a part of the published order. Parts one after the other are
the published order, so only the numbers of the first records differ.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine, Progress, silent
from stirred.engine.local.released import ROWS_PER_GROUP
from stirred.mechanisms.swapping.draw.moves import Moves
from stirred.mechanisms.swapping.draw.order import shuffle_rows
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.verify import (
    Fingerprint,
    KeptReader,
    MemberReader,
    Scatter,
    slice_rows,
)
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.members import Members
from stirred.mechanisms.swapping.records.packing import pack_columns

ColumnsAndLog = tuple[
    dict[str, Column], Mapping[str, pa.Table]
]  # columns after a draw, and what only the office may know


def apply_moves(frame: Frame, moves: Moves, engine: Engine) -> dict[str, Column]:
    """Return the columns after the swap: the moving ones permuted together, all others unchanged."""
    moving = list(frame.roles.moving_variables)
    done = engine.map(lambda name: moves.apply(frame.columns[name].codes), moving)
    moved = {
        name: replace(frame.columns[name], codes=codes) for name, codes in zip(moving, done, strict=True)
    }
    return {**frame.columns, **moved}


@dataclass(slots=True)
class OutputFingerprints:
    """The fingerprints of what is published, in the order of those of the input."""

    homes: list[Fingerprint]
    people: list[Fingerprint] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The swapped records of one part in their published order."""

    identifier: str
    released: tuple[str, ...]
    read: tuple[str, ...]  # the released variables, and those that decide who takes part
    columns: dict[str, Column]
    ids: NDArray[np.uint64]  # in the published order, where linked records move along; else empty
    order: NDArray[np.uint32]
    members: tuple[Members, ...]
    engine: Engine

    @staticmethod
    def of(frame: Frame, columns: dict[str, Column], run: Key, engine: Engine) -> "Publication":
        """Put the records of a frame in their published order."""
        order = shuffle_rows(run, frame.ids, engine)
        return Publication(
            identifier=frame.roles.identifier,
            released=frame.roles.released_variables,
            read=frame.read,
            columns=columns,
            ids=frame.ids[order] if frame.members else frame.ids[:0],
            order=order,
            members=frame.members,
            engine=engine,
        )

    def _batch_homes(
        self, names: Sequence[str], progress: Progress
    ) -> Iterator[tuple[int, dict[str, Column]]]:
        """Iterate over row groups in the published order, each with the position of its first row."""
        for start in range(0, max(self.order.size, 1), ROWS_PER_GROUP):
            rows = self.order[start : start + ROWS_PER_GROUP]
            progress("reorder", start, self.order.size)
            columns = self.engine.map(lambda name: self.columns[name].take_rows(rows), list(names))  # noqa: B023
            yield start, dict(zip(names, columns, strict=True))

    def _add_prints(
        self, start: int, taken: dict[str, Column], kept: KeptReader, after: OutputFingerprints
    ) -> None:
        ids = self.ids[start : start + ROWS_PER_GROUP]
        for part in slice_rows(min(ROWS_PER_GROUP, self.order.size - start)):
            found = kept.prints(taken, part, ids[part])
            after.homes = [a + b for a, b in zip(after.homes, found, strict=True)]

    def take_fingerprints(self, kept: KeptReader, after: OutputFingerprints) -> None:
        """Take the fingerprints of all that would be written."""
        for start, taken in self._batch_homes(self.read, silent):
            self._add_prints(start, taken, kept, after)
        for group in self.members:
            reader, seen = MemberReader.of(kept.verifier.scatter, group), Fingerprint()
            for owner, packed in group.batches(self.order):
                seen += reader.prints(group.codes(packed), self.ids[owner])
            after.people.append(seen)

    def home_batches(
        self,
        *,
        first: int = 1,
        kept: KeptReader | None = None,
        after: OutputFingerprints,
        progress: Progress = silent,
    ) -> Iterator[pa.RecordBatch]:
        """Iterate over records by row group, numbered from ``first``; with ``kept``, take their fingerprints."""
        for start, taken in self._batch_homes(self.released if kept is None else self.read, progress):
            if kept is not None:
                progress("verify", start, self.order.size)
                self._add_prints(start, taken, kept, after)
            progress("write", start, self.order.size)
            arrays = {name: taken[name].arrow() for name in self.released}
            rows = min(ROWS_PER_GROUP, self.order.size - start)
            if self.identifier:
                fresh = pa.array(np.arange(first + start, first + start + rows, dtype=np.int64))
                arrays = {self.identifier: fresh, **arrays}
            yield pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
            progress("write", start + rows, self.order.size)

    def member_batches(
        self,
        group: Members,
        *,
        first_home: int = 1,
        first: int = 1,
        scatter: Scatter | None = None,
        after: OutputFingerprints,
    ) -> Iterator[pa.RecordBatch]:
        """Iterate over members in the published order of households, linked by the new identifier."""
        reader = None if scatter is None else MemberReader.of(scatter, group)
        seen = Fingerprint()
        kind = group.kind
        for owner, packed in group.batches(self.order):
            codes = group.codes(packed)
            if reader is not None:
                seen += reader.prints(codes, self.ids[owner])
            arrays: dict[str, pa.Array] = {}
            if kind.identifier:
                arrays[kind.identifier] = pa.array(np.arange(first, first + owner.size, dtype=np.int64))
            arrays[kind.link] = pa.array(owner + first_home)
            for name in kind.refilled:
                arrays[name] = self.columns[name].take_rows(self.order[owner]).arrow()
            arrays |= group.arrays(codes)
            first += owner.size
            yield pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
        after.people.append(seen)


def count_table(
    columns: dict[str, Column], names: Sequence[str], counts: NDArray[np.int64] | None = None
) -> pa.Table:
    """Return the contingency table of some variables, sorted, without zeros; ``counts`` weights the rows."""
    chosen = [columns[name] for name in names]
    packed = pack_columns(chosen)
    if not packed:
        return pa.table({"count": pa.array([], pa.int64())})
    numbers = np.stack([digits.numbers() for digits in packed], axis=1)
    by = numbers[:, 0] if numbers.shape[1] == 1 else numbers
    axis = None if by.ndim == 1 else 0
    if counts is None:
        _, first, totals = np.unique(by, axis=axis, return_index=True, return_counts=True)
    else:
        _, first, places = np.unique(by, axis=axis, return_index=True, return_inverse=True)
        totals = np.zeros(first.size, np.int64)
        np.add.at(totals, places.ravel(), counts)
    rows = first.astype(np.uint32)
    return pa.table(
        {**{column.name: column.take_rows(rows).arrow() for column in chosen}, "count": pa.array(totals)}
    )
