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
from stirred.engine.local.released import GROUP
from stirred.mechanisms.swapping.draw.moves import Moves
from stirred.mechanisms.swapping.draw.order import shuffled
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, KeptReader, MemberReader, Scatter, slices
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.members import Members
from stirred.mechanisms.swapping.records.packing import digits_of

Logged = tuple[
    dict[str, Column], Mapping[str, pa.Table]
]  # columns after a draw, and what only the office may know


def swapped_columns(frame: Frame, moves: Moves, engine: Engine) -> dict[str, Column]:
    """The columns after the swap: the moving ones permuted together, all others the same arrays."""
    moving = list(frame.roles.moving)
    done = engine.map(lambda name: moves.apply(frame.columns[name].codes), moving)
    moved = {
        name: replace(frame.columns[name], codes=codes) for name, codes in zip(moving, done, strict=True)
    }
    return {**frame.columns, **moved}


@dataclass(slots=True)
class After:
    """The fingerprints of what is published, in the order of those of ``Before``."""

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
        order = shuffled(run, frame.ids, engine)
        return Publication(
            identifier=frame.roles.identifier,
            released=frame.roles.released,
            read=frame.read,
            columns=columns,
            ids=frame.ids[order] if frame.members else frame.ids[:0],
            order=order,
            members=frame.members,
            engine=engine,
        )

    def _homes(self, names: Sequence[str], progress: Progress) -> Iterator[tuple[int, dict[str, Column]]]:
        """Some columns in the published order, a row group at a time, with the position of the first row."""
        for start in range(0, max(self.order.size, 1), GROUP):
            rows = self.order[start : start + GROUP]
            progress("reorder", start, self.order.size)
            columns = self.engine.map(lambda name: self.columns[name].taken(rows), list(names))  # noqa: B023
            yield start, dict(zip(names, columns, strict=True))

    def _seen(self, start: int, taken: dict[str, Column], kept: KeptReader, after: After) -> None:
        ids = self.ids[start : start + GROUP]
        for part in slices(min(GROUP, self.order.size - start)):
            found = kept.prints(taken, part, ids[part])
            after.homes = [a + b for a, b in zip(after.homes, found, strict=True)]

    def look(self, kept: KeptReader, after: After) -> None:
        """Make the fingerprints of all that would be written."""
        for start, taken in self._homes(self.read, silent):
            self._seen(start, taken, kept, after)
        for group in self.members:
            reader, seen = MemberReader.of(kept.verifier.scatter, group), Fingerprint()
            for owner, packed in group.batches(self.order):
                seen += reader.prints(group.codes(packed), self.ids[owner])
            after.people.append(seen)

    def home_batches(
        self, *, first: int = 1, kept: KeptReader | None = None, after: After, progress: Progress = silent
    ) -> Iterator[pa.RecordBatch]:
        """Records a row group at a time, with numbers from ``first`` on; with ``kept`` their fingerprints are made too."""
        for start, taken in self._homes(self.released if kept is None else self.read, progress):
            if kept is not None:
                progress("verify", start, self.order.size)
                self._seen(start, taken, kept, after)
            progress("write", start, self.order.size)
            arrays = {name: taken[name].arrow() for name in self.released}
            rows = min(GROUP, self.order.size - start)
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
        after: After,
    ) -> Iterator[pa.RecordBatch]:
        """Members in the published order of their households, linked by the new identifier."""
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
                arrays[name] = self.columns[name].taken(self.order[owner]).arrow()
            arrays |= group.arrays(codes)
            first += owner.size
            yield pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
        after.people.append(seen)


def table(
    columns: dict[str, Column], names: Sequence[str], counts: NDArray[np.int64] | None = None
) -> pa.Table:
    """The contingency table of some variables: non-zero cells, sorted; a row counts as often as ``counts`` says."""
    chosen = [columns[name] for name in names]
    packed = digits_of(chosen)
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
        {**{column.name: column.taken(rows).arrow() for column in chosen}, "count": pa.array(totals)}
    )
