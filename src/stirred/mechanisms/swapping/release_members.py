"""Records that belong to a swapped one (the persons of a household) travel with it.

They are read once, packed into a few 64-bit words each and grouped by their household; within a household they stand
in the order of their content, so that the order of the input leaves no trace.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.compiled import compiled
from stirred.errors import DataError
from stirred.mechanisms.swapping.release_columns import Column, plain

if TYPE_CHECKING:
    from stirred.census import Census

Words = NDArray[np.uint64]
NOWHERE = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """One variable as a digit of a packed word: its place, and how to go back."""

    name: str
    type: pa.DataType
    word: int
    span: int
    low: int = 0
    values: pa.Array | None = None  # sorted; None when the digit is the integer less ``low``
    used: NDArray[np.uint64] | None = None  # places of values that some released record has; None: all

    def encode(self, array: pa.Array) -> Words:
        """The digit of each value; an empty value is the last one."""
        if self.values is None:
            if array.null_count:  # the digit of an empty value may lie beyond a narrow type
                array = array.cast(pa.uint64() if pa.types.is_unsigned_integer(array.type) else pa.int64())
            filled = array.fill_null(self.low + self.span - 1) if array.null_count else array
            numbers: Words = filled.to_numpy(zero_copy_only=False).astype(np.uint64)
            return numbers - np.uint64(self.low % 2**64)
        places = pc.index_in(plain(array), value_set=self.values).fill_null(len(self.values))
        digits: Words = places.to_numpy(zero_copy_only=False).astype(np.uint64)
        return digits

    def decode(self, digits: Words, *, holds_empty: bool) -> pa.Array:
        """The values of some digits."""
        empty = digits == np.uint64(self.span - 1) if holds_empty else None
        if self.values is None:
            numbers = (digits + np.uint64(self.low % 2**64)).astype(self.type.to_pandas_dtype())
            return pa.array(numbers, self.type, mask=empty)
        if self.used is None:
            return pa.DictionaryArray.from_arrays(pa.array(digits.astype(np.int32), mask=empty), self.values)
        places = np.searchsorted(self.used, digits).astype(np.int32)
        return pa.DictionaryArray.from_arrays(
            pa.array(places, mask=empty), self.values.take(pa.array(self.used))
        )


def layout(census: "Census", record_type: str, names: Sequence[str]) -> tuple[list[Digit], frozenset[str]]:
    """Digits for the named variables from one light pass, and which of them have empty values."""
    frame = census.scan(record_type, list(names))
    kinds = frame.collect_schema()
    whole = [name for name in names if kinds[name].is_integer()]
    asks = [pl.col(n).min().alias(f"{n}\x00low") for n in whole] + [
        pl.col(n).max().alias(f"{n}\x00high") for n in whole
    ]
    asks += [pl.col(n).null_count().alias(f"{n}\x00empty") for n in names]
    facts = frame.select(asks).collect(engine="streaming").row(0, named=True)
    kinds_arrow = (
        census.scan(record_type, list(names))
        .limit(0)
        .collect()
        .to_arrow(compat_level=pl.CompatLevel.oldest())
    )
    digits: list[Digit] = []
    empty: set[str] = set()
    word, room = 0, 2**64
    for name in names:
        gap = 1 if facts[f"{name}\x00empty"] else 0
        if gap:
            empty.add(name)
        values: pa.Array | None = None
        kind = kinds_arrow.schema.field(name).type
        low = 0
        if name in whole:
            low = facts[f"{name}\x00low"] or 0
            span = (facts[f"{name}\x00high"] or 0) - low + 1 + gap
        else:
            column = (
                frame.select(pl.col(name).drop_nulls().unique().sort())
                .collect(engine="streaming")
                .to_arrow(compat_level=pl.CompatLevel.oldest())[name]
            )
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type).unique().sort()
            values = plain(column.combine_chunks())
            values = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
            kind = values.type
            span = len(values) + gap
        span = max(span, 1)
        if span > room:
            word, room = word + 1, 2**64
        room //= span
        digits.append(Digit(name=name, type=kind, word=word, span=span, low=low, values=values))
    return digits, frozenset(empty)


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
    """Within each household by content: insertion, as households are small."""
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
            return  # consecutive numbers in order: subtraction finds the row
        if 0 < span <= 4 * ids.size:
            self.table = np.full(span, NOWHERE)
            self.table[ids - self.low] = np.arange(ids.size, dtype=np.uint32)
            return
        self.order = np.argsort(ids).astype(np.uint32)
        self.sorted = ids[self.order]

    def rows(self, links: NDArray[Any]) -> NDArray[np.uint32]:
        """The rows of the linked households; a link that leads nowhere is an error."""
        found = self.found(links)
        lost = int((found == NOWHERE).sum())
        if lost:
            raise DataError(
                f"{lost:,} records belong to no household", why="their link names none that exists"
            )
        return found

    def found(self, links: NDArray[Any]) -> NDArray[np.uint32]:
        """The rows of the linked households, NOWHERE where there is none."""
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
    refilled: tuple[str, ...]  # variables of the household that its members carry in their own file
    digits: tuple[Digit, ...]
    empty: frozenset[str]
    starts: NDArray[np.int64]
    words: Words

    def batches(
        self, order: NDArray[np.uint32], *, rows: int = 1 << 18
    ) -> Iterator[tuple[NDArray[np.int64], Words]]:
        """Members in the published order of their households: household's place from 0, and packed words."""
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
            for digit, numbers in _unpacked(self.digits, packed)
        }
        return {digit.name: result[digit.name] for digit in self.digits}

    def digest(self, key: Key, ids: NDArray[np.uint64]) -> bytes:
        """An order-free keyed digest of all members with the household each belongs to."""
        total = key.multiset()
        for start in range(0, ids.size, 1 << 18):
            stop = min(start + (1 << 18), ids.size)
            part = slice(int(self.starts[start]), int(self.starts[stop]))
            owners = np.repeat(ids[start:stop], np.diff(self.starts[start : stop + 1]))
            total.update(
                [owners, *(np.ascontiguousarray(self.words[part, w]) for w in range(self.words.shape[1]))]
            )
        labels = [
            f"{d.name}/{d.span}/{d.low}/{d.values.to_pylist() if d.values is not None else ''}"
            for d in self.digits
        ]
        return key.digest(total.value(), *(label.encode() for label in labels))


def _unpacked(digits: Sequence[Digit], packed: Words) -> Iterator[tuple[Digit, Words]]:
    """Each digit of some packed members, the last first."""
    rest = [np.ascontiguousarray(packed[:, w]) for w in range(packed.shape[1])]
    for digit in reversed(digits):
        numbers, place = rest[digit.word], np.uint64(digit.span)
        rest[digit.word] = numbers // place
        yield digit, numbers - rest[digit.word] * place


def _only_used(digits: Sequence[Digit], placed: Words) -> list[Digit]:
    """Digits that forget the values of records which were left out: a dictionary is published whole."""
    seen: dict[str, set[int]] = {digit.name: set() for digit in digits}
    for start in range(0, placed.shape[0], 1 << 20):
        for digit, numbers in _unpacked(digits, placed[start : start + (1 << 20)]):
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


def _links(array: pa.Array, owner: Column) -> NDArray[Any]:
    """Links as codes of the households' identifiers; one that names nothing is -1."""
    if array.null_count:
        raise DataError(f"{array.null_count:,} records belong to no household", why="their link is empty")
    if owner.values is None:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
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
        owners = rows_of(_links(batch.column(0), owner))
        _count(owners[owners != NOWHERE] if some_dropped else owners, counts)
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    width = 1 + max((digit.word for digit in digits), default=0)
    placed = np.zeros((int(starts[-1]), width), np.uint64)
    cursor = starts[:-1].copy()
    for batch in census.batches(record_type, [link, *names]):
        owners = rows_of(_links(batch.column(link), owner))
        words = np.zeros((owners.size, width), np.uint64)
        for digit in digits:
            words[:, digit.word] *= np.uint64(digit.span)
            words[:, digit.word] += digit.encode(batch.column(digit.name))
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
