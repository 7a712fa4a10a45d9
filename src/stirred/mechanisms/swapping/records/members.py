"""Move linked records (the persons of a household) together with the swapped record.

They are read once, packed into a few 64-bit words each and grouped by their household; within a household they are
sorted by content, so that nothing of the order of the input remains.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance.words import cast_links, combine_chunks
from stirred.compiled import compile_kernel
from stirred.errors import DataError
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.packing import Digit, Words, pack_words, unpack_digits

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.mechanisms.swapping.roles import Roles

NO_ROW = np.uint32(0xFFFFFFFF)


@compile_kernel
def _count_members(owners: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    for owner in owners:
        counts[owner] += np.uint32(1)


@compile_kernel
def _place_members(
    owners: NDArray[np.uint32], words: Words, cursor: NDArray[np.int64], placed: Words
) -> None:
    for i in range(owners.size):
        at = cursor[owners[i]]
        cursor[owners[i]] = at + 1
        for w in range(words.shape[1]):
            placed[at, w] = words[i, w]


@compile_kernel
def _sort_members(starts: NDArray[np.int64], placed: Words) -> None:
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


@compile_kernel
def _collect_members(
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
    """Find the row of the household that an identifier names."""

    def __init__(self, ids: NDArray[Any]) -> None:
        self.order: NDArray[np.uint32] | None = None
        self.low = int(ids.min()) if ids.size else 0
        span = int(ids.max()) - self.low + 1 if ids.size else 0
        self.sorted: NDArray[Any] = ids
        self.table: NDArray[np.uint32] | None = None
        if span == ids.size and ids.size and bool((ids[:-1] < ids[1:]).all()):
            return  # consecutive sorted numbers: subtraction gives the row
        if 0 < span <= 4 * ids.size:
            self.table = np.full(span, NO_ROW)
            self.table[ids - self.low] = np.arange(ids.size, dtype=np.uint32)
            return
        self.order = np.argsort(ids).astype(np.uint32)
        self.sorted = ids[self.order]

    def find_rows(self, links: NDArray[Any]) -> NDArray[np.uint32]:
        """Return the household row of each link, or NO_ROW."""
        if not self.sorted.size:
            return np.full(links.size, NO_ROW)
        if self.order is not None:
            at = np.minimum(np.searchsorted(self.sorted, links), self.sorted.size - 1)
            return np.where(self.sorted[at] == links, self.order[at], NO_ROW)
        size = self.sorted.size if self.table is None else self.table.size
        place = links - self.low
        inside = (place >= 0) & (place < size)
        safe = np.where(inside, place, 0)
        rows = safe.astype(np.uint32) if self.table is None else self.table[safe]
        return np.where(inside, rows, NO_ROW)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedType:
    """A linked record type: its columns, and the variables that its records take from their household."""

    record_type: str
    link: str
    identifier: str
    variables: tuple[str, ...]
    refilled: tuple[str, ...]  # variables of the household that are also in the members' own file
    unseen: tuple[str, ...] = ()  # read for the draw, never released

    @property
    def read(self) -> tuple[str, ...]:
        """Return all variables that are read; the unseen come last, so that no released order depends on them."""
        return (*self.variables, *self.unseen)


def find_linked_types(census: "Census", roles: "Roles") -> tuple[LinkedType, ...]:
    """Return the record types that move with the swapped one."""
    found = []
    for record_type, variables in roles.members:
        record, there = census.schema.record(record_type), census.columns(record_type)
        refilled = tuple(name for name in roles.moving_variables + roles.match if name in there)
        found.append(
            LinkedType(
                record_type=record_type,
                link=record.household,
                identifier=record.id,
                variables=variables,
                refilled=refilled,
                unseen=dict(roles.unseen_along).get(record_type, ()),
            )
        )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """All records of one linked type, packed and grouped by the record they belong to."""

    kind: LinkedType
    digits: tuple[Digit, ...]
    empty: frozenset[str]
    starts: NDArray[np.int64]
    words: Words
    lost: int  # records whose link names no household here: they are left out

    def batches(
        self, order: NDArray[np.uint32], *, rows: int = 1 << 18
    ) -> Iterator[tuple[NDArray[np.int64], Words]]:
        """Iterate over members in the published order of households: household positions and packed words."""
        for start in range(0, max(order.size, 1), rows):
            part = order[start : start + rows]
            total = int((self.starts[part.astype(np.int64) + 1] - self.starts[part]).sum())
            out, owner = np.empty((total, self.words.shape[1]), np.uint64), np.empty(total, np.int64)
            _collect_members(part, self.starts, self.words, start, out, owner)
            yield owner, out

    def codes(self, packed: Words) -> dict[str, Words]:
        """Return the digits of packed members by variable."""
        found = {digit.name: numbers for digit, numbers in unpack_digits(self.digits, packed)}
        return {digit.name: found[digit.name] for digit in self.digits}

    def arrays(self, codes: dict[str, Words]) -> dict[str, pa.Array]:
        """Decode the variables of members from their digits."""
        return {
            digit.name: digit.decode(codes[digit.name], holds_empty=digit.name in self.empty)
            for digit in self.digits
            if digit.name not in self.kind.unseen
        }


def require_owners(lost: int) -> None:
    """Raise an error if the links of some records name no household."""
    if lost:
        raise DataError(
            f"{lost:,} records belong to no household",
            why="their link names no household in the census",
            fix="correct the link, or add the households",
        )


def require_links(empty: int) -> None:
    """Raise an error if some records have no link."""
    if empty:
        raise DataError(
            f"{empty:,} records belong to no household",
            why="their link is empty",
            fix="fill the link column, or remove these records",
        )


def _drop_unused(digits: Sequence[Digit], placed: Words) -> list[Digit]:
    """Return the digits without values of records that were left out, because the dictionary is published."""
    seen: dict[str, set[int]] = {digit.name: set() for digit in digits}
    for start in range(0, placed.shape[0], 1 << 20):
        for digit, numbers in unpack_digits(digits, placed[start : start + (1 << 20)]):
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


def _code_links(array: pa.Array, owner: Column, name: str) -> NDArray[Any]:
    """Return links as codes of the households' identifiers, −1 where a link names no household."""
    require_links(array.null_count)
    array = cast_links(array, owner.type if owner.values is None else owner.values.type, name=name)
    if owner.values is None:
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return np.asarray(pc.index_in(array, value_set=owner.values.cast(array.type)).fill_null(-1).to_numpy())


def group_members(
    kind: LinkedType,
    read: Callable[[Sequence[str]], Iterable[pa.RecordBatch | pa.Table]],
    layout: tuple[Sequence[Digit], frozenset[str]],
    owner: Column,
    *,
    some_dropped: bool = False,
) -> Members:
    """Group linked records by household and sort them by content; ``read`` gives batches of the named columns.

    ``owner`` holds the identifiers of the households in row order. ``some_dropped`` says that households were left out:
    the digits of their members must not be published.
    """
    digits, empty = layout
    owners_of = Owners(owner.codes)
    counts, lost = np.zeros(owner.codes.size, np.uint32), 0
    for batch in read([kind.link]):
        owners = owners_of.find_rows(_code_links(combine_chunks(batch.column(0)), owner, kind.link))
        there = owners[owners != NO_ROW]
        lost += owners.size - there.size
        _count_members(there, counts)
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    width = 1 + max((digit.word for digit in digits), default=0)
    placed = np.zeros((int(starts[-1]), width), np.uint64)
    cursor = starts[:-1].copy()
    for batch in read([kind.link, *kind.read]):
        owners = owners_of.find_rows(_code_links(combine_chunks(batch.column(kind.link)), owner, kind.link))
        words = pack_words(digits, batch, width)
        if lost:
            there = owners != NO_ROW
            owners, words = owners[there], words[there]
        _place_members(owners, words, cursor, placed)
    _sort_members(starts, placed)
    if some_dropped:
        digits = _drop_unused(digits, placed)
    return Members(kind=kind, digits=tuple(digits), empty=empty, starts=starts, words=placed, lost=lost)
