"""Move linked records (the persons of a household) together with the swapped record.

They are read once, packed into a few 64-bit words each and grouped by their household; within a household they are
sorted by content, so that nothing of the order of the input remains.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.multiset import MultisetDigest
from stirred.chance.words import comparable, null_bits
from stirred.compiled import compiled
from stirred.engine import Engine
from stirred.errors import DataError
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.digest import Digested, hashers, value_tables
from stirred.mechanisms.swapping.records.packing import Digit, Words, layout, packed_words, unpacked
from stirred.mechanisms.swapping.values import comparable, null_bits

if TYPE_CHECKING:
    from stirred.census import Census

ROWS = 1 << 16  # households whose members are digested together: their words stay in the cache
NOWHERE = np.uint32(0xFFFFFFFF)


@compiled
def _count(owners: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    for owner in owners:
        counts[owner] += np.uint32(1)


@compiled
def _place(owners: NDArray[np.uint32], words: Words, cursor: NDArray[np.int64], placed: Words) -> None:
    for i in range(owners.size):
        at = cursor[owners[i]]
        cursor[owners[i]] = at + 1
        for w in range(words.shape[1]):
            placed[at, w] = words[i, w]


@compiled
def _sort(starts: NDArray[np.int64], placed: Words) -> None:
    """Sort each household by content, with insertion sort because households are small."""
    width = placed.shape[1]
    held = np.empty(width, np.uint64)
    for h in range(starts.size - 1):
        for i in range(starts[h] + 1, starts[h + 1]):
            held[:] = placed[i]
            j = i
            while j > starts[h]:
                later = False
                for w in range(width):
                    if placed[j - 1, w] != held[w]:
                        later = placed[j - 1, w] > held[w]
                        break
                if not later:
                    break
                placed[j] = placed[j - 1]
                j -= 1
            placed[j] = held


@compiled
def _collect(
    rows: NDArray[np.uint32],
    starts: NDArray[np.int64],
    placed: Words,
    first: int,
    out: Words,
    owner: NDArray[np.int64],
) -> None:
    at = 0
    for i in range(rows.size):
        for j in range(starts[rows[i]], starts[rows[i] + 1]):
            for w in range(placed.shape[1]):  # by single words: a row as a slice costs several times as much
                out[at, w] = placed[j, w]
            owner[at] = first + i
            at += 1


class Owners:
    """Finds the row of the household that an identifier names."""

    def __init__(self, ids: NDArray[Any]) -> None:
        self.order: NDArray[np.uint32] | None = None
        self.low = int(ids.min()) if ids.size else 0
        span = int(ids.max()) - self.low + 1 if ids.size else 0
        self.sorted: NDArray[Any] = ids
        self.table: NDArray[np.uint32] | None = None
        if span == ids.size and ids.size and bool((ids[:-1] < ids[1:]).all()):
            return  # consecutive sorted numbers: subtraction gives the row
        if 0 < span <= 4 * ids.size:
            self.table = np.full(span, NOWHERE)
            self.table[ids - self.low] = np.arange(ids.size, dtype=np.uint32)
            return
        self.order = np.argsort(ids).astype(np.uint32)
        self.sorted = ids[self.order]

    def rows(self, links: NDArray[Any]) -> NDArray[np.uint32]:
        """The rows of the linked households; a link that names no household is an error."""
        found = self.found(links)
        lost = int((found == NOWHERE).sum())
        if lost:
            raise DataError(
                f"{lost:,} records belong to no household",
                why="their link names no household in the census",
                fix="correct the link, or add the households",
            )
        return found

    def found(self, links: NDArray[Any]) -> NDArray[np.uint32]:
        """The rows of the linked households, NOWHERE if there is none."""
        if not self.sorted.size:
            return np.full(links.size, NOWHERE)
        if self.order is not None:
            at = np.minimum(np.searchsorted(self.sorted, links), self.sorted.size - 1)
            return np.where(self.sorted[at] == links, self.order[at], NOWHERE)
        size = self.sorted.size if self.table is None else self.table.size
        place = links - self.low
        inside = (place >= 0) & (place < size)
        safe = np.where(inside, place, 0)
        rows = safe.astype(np.uint32) if self.table is None else self.table[safe]
        return np.where(inside, rows, NOWHERE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """All records of one linked type, packed and grouped by the record they belong to."""

    record_type: str
    link: str
    identifier: str
    refilled: tuple[str, ...]  # variables of the household that are also in the members' own file
    digits: tuple[Digit, ...]
    empty: frozenset[str]
    starts: NDArray[np.int64]
    words: Words

    def batches(
        self, order: NDArray[np.uint32], *, rows: int = 1 << 18
    ) -> Iterator[tuple[NDArray[np.int64], Words]]:
        """Members in the published order of their households: position of the household from 0, and packed words."""
        for start in range(0, max(order.size, 1), rows):
            part = order[start : start + rows]
            total = int((self.starts[part.astype(np.int64) + 1] - self.starts[part]).sum())
            out, owner = np.empty((total, self.words.shape[1]), np.uint64), np.empty(total, np.int64)
            _collect(part, self.starts, self.words, start, out, owner)
            yield owner, out

    def arrays(self, packed: Words) -> dict[str, pa.Array]:
        """The variables of packed members."""
        result = {
            digit.name: digit.decode(numbers, holds_empty=digit.name in self.empty)
            for digit, numbers in unpacked(self.digits, packed)
        }
        return {digit.name: result[digit.name] for digit in self.digits}

    def digested(self, key: Key, ids: NDArray[np.uint64], engine: Engine) -> Digested:
        """All members by value, each with the household it belongs to, in no order."""
        both = hashers(key)
        tables = {d.name: value_tables(d.values, both) for d in self.digits if d.values is not None}

        def some(start: int) -> MultisetDigest:
            total = key.multiset()
            stop = min(start + ROWS, ids.size)
            part = slice(int(self.starts[start]), int(self.starts[stop]))
            if part.stop > part.start:
                owners = np.repeat(ids[start:stop], np.diff(self.starts[start : stop + 1]))
                total.update([owners, *self._value_words(self.words[part], tables)])
            return total

        whole = key.multiset()
        for total in engine.map(some, range(0, ids.size, ROWS)):
            whole.merge(total)
        return Digested(self.record_type, (self.link, *(digit.name for digit in self.digits)), whole)

    def _value_words(self, packed: Words, tables: dict[str, tuple[Words, ...]]) -> list[Words]:
        """The values of packed members as words, with the bits of the empty ones at the end."""
        found: dict[str, list[Words]] = {}
        gone: dict[str, NDArray[np.bool_] | None] = {}
        for digit, numbers in unpacked(self.digits, packed):
            empty = numbers == np.uint64(digit.span - 1) if digit.name in self.empty else None
            if digit.name in tables:
                found[digit.name] = [table[numbers] for table in tables[digit.name]]
            else:
                found[digit.name] = [numbers + np.uint64(digit.low % 2**64)]
                if empty is not None:
                    found[digit.name][0][empty] = 0
            gone[digit.name] = empty
        words = [word for digit in self.digits for word in found[digit.name]]
        return words + null_bits([gone[digit.name] for digit in self.digits], packed.shape[0])


def _only_used(digits: Sequence[Digit], placed: Words) -> list[Digit]:
    """Digits without the values of records that were left out, because the whole dictionary is published."""
    seen: dict[str, set[int]] = {digit.name: set() for digit in digits}
    for start in range(0, placed.shape[0], 1 << 20):
        for digit, numbers in unpacked(digits, placed[start : start + (1 << 20)]):
            if digit.values is not None:
                seen[digit.name].update(np.unique(numbers).tolist())
    found = []
    for digit in digits:
        if digit.values is None:
            found.append(digit)
        else:
            held = sorted(place for place in seen[digit.name] if place < len(digit.values))
            found.append(replace(digit, used=np.array(held, np.uint64)))
    return found


def grouped(owners: NDArray[np.uint32], words: Words, rows: int) -> tuple[NDArray[np.int64], Words]:
    """Members grouped by household and sorted by content: the start of each household, and the words."""
    counts = np.zeros(rows, np.uint32)
    _count(owners, counts)
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    placed = np.empty((owners.size, words.shape[1]), np.uint64)
    _place(owners, words, starts[:-1].copy(), placed)
    _sort(starts, placed)
    return starts, placed


def _links(array: pa.Array, owner: Column, name: str) -> NDArray[Any]:
    """Links as codes of the households' identifiers; a link that names no household is -1."""
    if array.null_count:
        raise DataError(
            f"{array.null_count:,} records belong to no household",
            why="their link is empty",
            fix="fill the link column, or remove these records",
        )
    array = comparable(array, owner.type if owner.values is None else owner.values.type, name=name)
    if owner.values is None:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return np.asarray(pc.index_in(array, value_set=owner.values.cast(array.type)).fill_null(-1).to_numpy())


def members(
    census: "Census",
    record_type: str,
    names: Sequence[str],
    owner: Column,
    moving: Sequence[str],
    *,
    some_dropped: bool = False,
) -> Members:
    """Read and group the linked records; ``owner`` holds the identifiers of the households in row order.

    ``some_dropped`` says that households were left out: their members are left out with them.
    """
    record = census.schema.record(record_type)
    link = record.household
    digits, empty = layout(census, record_type, names)
    owners_of = Owners(owner.codes)
    rows_of = owners_of.found if some_dropped else owners_of.rows
    counts = np.zeros(owner.codes.size, np.uint32)
    for batch in census.batches(record_type, [link]):
        owners = rows_of(_links(batch.column(0), owner, link))
        _count(owners[owners != NOWHERE] if some_dropped else owners, counts)
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    width = 1 + max((digit.word for digit in digits), default=0)
    placed = np.zeros((int(starts[-1]), width), np.uint64)
    cursor = starts[:-1].copy()
    for batch in census.batches(record_type, [link, *names]):
        owners = rows_of(_links(batch.column(link), owner, link))
        words = packed_words(digits, batch, width)
        if some_dropped:
            owners, words = owners[owners != NOWHERE], words[owners != NOWHERE]
        _place(owners, words, cursor, placed)
    _sort(starts, placed)
    if some_dropped:
        digits = _only_used(digits, placed)
    there = census.columns(record_type)
    return Members(
        record_type=record_type,
        link=link,
        identifier=record.id,
        refilled=tuple(name for name in moving if name in there),
        digits=tuple(digits),
        empty=empty,
        starts=starts,
        words=placed,
    )
