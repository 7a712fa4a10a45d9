"""Publish a swapped frame with a new order and new identifiers, so that nothing of the input's order remains."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.engine import Engine, Progress
from stirred.engine.local.flow import GROUP
from stirred.mechanisms.base import Check
from stirred.mechanisms.swapping.draw.moves import Moves
from stirred.mechanisms.swapping.pipeline import verify
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Margin
from stirred.mechanisms.swapping.records.columns import Column, words
from stirred.mechanisms.swapping.records.members import Members

HELD = 1  # the position of the margin of all held variables among the margins


class Destination:
    """Where the batches of one record type go: memory, or one Parquet file, written while the next batch is made."""

    def __init__(self, out: Path | None, name: str, counted: Sequence[str] = ()) -> None:
        self.counted = [column for column in counted if column]  # ascending numbers: their steps are stored
        self.path = None if out is None else out / f"{name.replace(' ', '_')}.parquet"
        self.batches: list[pa.RecordBatch] = []
        self.writer: pq.ParquetWriter | None = None
        self.hand = ThreadPoolExecutor(1)  # one thread: batches are written in the order in which they arrive
        self.writing: Future[None] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add one batch; its schema has no metadata of the input."""
        if self.path is None:
            self.batches.append(batch)
            return
        if self.writer is None:
            others = [name for name in batch.schema.names if name not in self.counted]
            steps = dict.fromkeys(self.counted, "DELTA_BINARY_PACKED")
            self.writer = pq.ParquetWriter(
                self.path,
                batch.schema,
                compression="snappy",
                use_dictionary=others,
                column_encoding=steps or None,
            )
        self._finish()  # never more than one batch waits in memory
        self.writing = self.hand.submit(self.writer.write_batch, batch, row_group_size=GROUP)

    def _finish(self) -> None:
        if self.writing is not None:
            self.writing.result()
            self.writing = None

    def close(self) -> pa.Table | pads.Dataset:
        """All that was written."""
        if self.path is None:
            return pa.Table.from_batches(self.batches)
        self._finish()
        self.hand.shutdown()
        if self.writer is not None:
            self.writer.close()
        return pads.dataset(self.path)

    def discard(self) -> None:
        """Delete everything that was written."""
        self.hand.shutdown()
        if self.writer is not None:
            self.writer.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def swapped_columns(frame: Frame, moves: Moves, engine: Engine) -> dict[str, Column]:
    """The columns after the swap: the moving ones permuted together, all others the same arrays."""
    moving = list(frame.roles.moving)
    done = engine.map(lambda name: moves.apply(frame.columns[name].codes), moving)
    moved = {
        name: replace(frame.columns[name], codes=codes) for name, codes in zip(moving, done, strict=True)
    }
    return {**frame.columns, **moved}


def _household_batches(
    frame: Frame,
    columns: dict[str, Column],
    order: NDArray[np.uint32],
    engine: Engine,
    prints: "Prints",
    progress: Progress,
) -> Iterator[tuple[slice, pa.RecordBatch]]:
    """Records in their published order, a row group at a time, each added to the checks before it is written."""
    names, read = frame.roles.released, frame.read

    for start in range(0, max(order.size, 1), GROUP):
        rows = order[start : start + GROUP]
        progress("reorder", start, order.size)
        taken = dict(zip(read, engine.map(lambda name: columns[name].taken(rows), list(read)), strict=True))  # noqa: B023
        progress("verify", start, order.size)
        prints.add(taken, rows.size)
        progress("write", start, order.size)
        arrays = [taken[name].arrow() for name in names]
        if frame.roles.identifier:
            fresh = pa.array(np.arange(start + 1, start + rows.size + 1, dtype=np.int64))
            arrays, labels = [fresh, *arrays], [frame.roles.identifier, *names]
        else:
            labels = list(names)
        yield slice(start, start + rows.size), pa.RecordBatch.from_arrays(arrays, labels)


class Prints:
    """The fingerprints of the margins of all records written so far.

    ``owners`` keeps a word for each record, of what is held; of a record that takes no part, of its place too.
    """

    def __init__(self, margins: Sequence[Margin], owners: NDArray[np.uint64] | None) -> None:
        self.margins = margins
        self.found = [Fingerprint() for _ in margins]
        self.owners = owners
        self.at = 0

    def add(self, columns: dict[str, Column], rows: int) -> None:
        """Add some records."""
        if not rows:
            return
        for i, margin in enumerate(self.margins):
            mixed = margin.scattered(columns, slice(0, rows))
            self.found[i] += Fingerprint.of(mixed)
            if self.owners is not None and i == HELD:
                self.owners[self.at : self.at + rows] = mixed
            elif self.owners is not None and i > HELD:
                self.owners[self.at + margin.places(columns, slice(0, rows))] = mixed
        self.at += rows


def _member_batches(
    group: Members, order: NDArray[np.uint32], columns: dict[str, Column], prints: "MemberPrint"
) -> Iterator[pa.RecordBatch]:
    """Members in the published order of their households, linked by the new identifier."""
    first = 1
    for owner, packed in group.batches(order):
        prints.add(owner, packed)
        arrays: dict[str, pa.Array] = {}
        if group.identifier:
            arrays[group.identifier] = pa.array(np.arange(first, first + owner.size, dtype=np.int64))
        arrays[group.link] = pa.array(owner + 1)
        rows = order[owner]
        for name in group.refilled:
            arrays[name] = columns[name].taken(rows).arrow()
        arrays |= group.arrays(packed)
        first += owner.size
        yield pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


class MemberPrint:
    """Fingerprint of (member, all that its household holds): a member that left its household changes it."""

    def __init__(self, owners: NDArray[np.uint64]) -> None:
        self.owners = owners
        self.found = Fingerprint()

    def add(self, owner: NDArray[np.int64], packed: NDArray[np.uint64]) -> None:
        """Add some members."""
        self.found += Fingerprint.of(verify.joined(self.owners[owner], packed))

    @classmethod
    def of_input(cls, owners: NDArray[np.uint64], group: Members) -> "MemberPrint":
        """The fingerprint of the members before the swap, in their order in memory."""
        seen = cls(owners)
        for start in range(0, owners.size, GROUP):
            stop = min(start + GROUP, owners.size)
            counts = np.diff(group.starts[start : stop + 1])
            part = group.words[group.starts[start] : group.starts[stop]]
            seen.found += Fingerprint.of(verify.joined(np.repeat(owners[start:stop], counts), part))
        return seen


def _owner_words(frame: Frame, margins: Sequence[Margin]) -> NDArray[np.uint64]:
    """The words of ``Prints.owners`` for the records before the swap."""
    found = np.empty(frame.rows, np.uint64)
    for start in range(0, frame.rows, GROUP):
        rows = slice(start, min(start + GROUP, frame.rows))
        found[rows] = margins[HELD].scattered(frame.columns, rows)
        for margin in margins[HELD + 1 :]:
            found[start + margin.places(frame.columns, rows)] = margin.scattered(frame.columns, rows)
    return found


def told_of(record_type: str, frame: Frame) -> str:
    """The invariant of linked records that is verified, in words."""
    place = ", with the place of those not swapped" if frame.stays else ""
    owner = frame.roles.record_type
    return f"{record_type} records by all their variables and all held variables of their {owner}{place}"


@contextmanager
def _all_or_nothing() -> Iterator[list[Destination]]:
    """Open destinations that are deleted if anything fails, including an invariant that is not kept."""
    destinations: list[Destination] = []
    try:
        yield destinations
    except BaseException:
        for destination in destinations:
            destination.discard()
        raise


def publish(
    frame: Frame,
    columns: dict[str, Column],
    order: NDArray[np.uint32],
    *,
    margins: Sequence[Margin],
    before: Sequence[Fingerprint],
    engine: Engine,
    out: Path | None,
    progress: Progress,
) -> tuple[dict[str, pa.Table | pads.Dataset], tuple[Check, ...]]:
    """Write the records in their published order and verify the invariants on what was written."""
    with _all_or_nothing() as destinations:
        prints = Prints(margins, np.empty(frame.rows, np.uint64) if frame.members else None)
        destination = Destination(out, frame.roles.record_type, [frame.roles.identifier])
        destinations.append(destination)
        for rows, batch in _household_batches(frame, columns, order, engine, prints, progress):
            destination.add(batch)
            progress("write", rows.stop, order.size)
        microdata = {frame.roles.record_type: destination.close()}
        checks = [
            margin.check(was, now) for margin, was, now in zip(margins, before, prints.found, strict=True)
        ]
        if frame.members:
            owners_before = _owner_words(frame, margins)
        for group in frame.members:
            destination = Destination(out, group.record_type, [group.identifier, group.link])
            destinations.append(destination)
            assert prints.owners is not None
            was, now = MemberPrint.of_input(owners_before, group), MemberPrint(prints.owners)
            for batch in _member_batches(group, order, columns, now):
                destination.add(batch)
                progress(f"write {group.record_type}", now.found.rows, group.words.shape[0])
            microdata[group.record_type] = destination.close()
            told = told_of(group.record_type, frame)
            checks.append(Check(invariant=told, kept=was.found == now.found, numbers=now.found.rows))
        return microdata, verify.all_kept(checks)


def table(
    columns: dict[str, Column], names: Sequence[str], counts: NDArray[np.int64] | None = None
) -> pa.Table:
    """The contingency table of some variables: non-zero cells, sorted; a row counts as often as ``counts`` says."""
    chosen = [columns[name] for name in names]
    packed = words(chosen)
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
