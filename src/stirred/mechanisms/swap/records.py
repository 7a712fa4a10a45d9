"""Encode records as columns of codes, pack linked records into words, and find the records that take no part."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance.words import cast_links, combine_chunks
from stirred.errors import DataError, InputError, PrivacyError
from stirred.kernels import compile_kernel
from stirred.languages import Phrase, unit
from stirred.mechanisms.release import list_staying_levels
from stirred.spec import Margin
from stirred.spec.invariants import describe_condition

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.census.schema import Kinds, RecordSchema
    from stirred.engine.base import PartRows
    from stirred.mechanisms.swap.config import Roles


# Encode records as narrow columns of codes, with only the columns that a swap needs.

Codes = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One variable: integers as they are, anything else as positions in its sorted values (the empty one last)."""

    name: str
    codes: Codes
    type: pa.DataType
    values: pa.Array | None = None
    reach: tuple[int, int] | None = (
        None  # smallest and largest code, where known; may be wider than the codes
    )

    def take_rows(self, rows: NDArray[np.uint32]) -> "Column":
        """Return the column of the listed rows."""
        return replace(self, codes=self.codes[rows])

    def arrow(self, rows: slice = slice(None)) -> pa.Array:
        """Return the values of some rows; the dictionary is sorted, so it does not reveal the order of records."""
        if self.values is None:
            return pa.array(self.codes[rows], self.type)
        missing = len(self.values) - 1 if self.values.null_count else -1
        codes = self.codes[rows]
        return pa.DictionaryArray.from_arrays(
            pa.array(codes, pa.int32(), mask=codes == missing if missing >= 0 else None),
            self.values.drop_null(),
        )

    @property
    def low(self) -> int:
        """Return the smallest code."""
        if self.reach is not None:
            return self.reach[0]
        return int(self.codes.min()) if self.codes.size else 0

    @property
    def span(self) -> int:
        """Return the number of codes from the smallest to the largest, both included."""
        if self.reach is not None:
            return self.reach[1] - self.reach[0] + 1
        return int(self.codes.max()) - self.low + 1 if self.codes.size else 1

    def drop_unused_values(self) -> "Column":
        """Return the column without unused values, because the whole dictionary is published."""
        if self.values is None:
            return replace(self, reach=None)
        used = np.unique(self.codes)
        held = self.values.take(pa.array(used))
        if pa.types.is_integer(self.type) and not held.null_count:
            # no empty values are left: the integers are stored directly, as in a column without empty values
            numbers = self.values.fill_null(0).to_numpy(zero_copy_only=False)[self.codes]
            return replace(self, codes=numbers, values=None, reach=None)
        codes = np.searchsorted(used, self.codes).astype(self.codes.dtype)
        return replace(self, codes=codes, values=held, reach=None)

    def store_reach(self) -> "Column":
        """Return the column with its reach stored, so that it is computed once."""
        low = self.low
        return replace(self, reach=(low, low + self.span - 1))


def find_level_codes(column: Column, levels: Sequence[str]) -> NDArray[Any]:
    """Return the codes of some levels of a column, in order, without levels that no record has."""
    try:
        if column.values is None:
            return np.array([int(level) for level in levels], np.int64)
        wanted = pa.array(list(levels), pa.string()).cast(column.values.type)
    except (ValueError, pa.ArrowInvalid):
        raise InputError(
            f"a level among {', '.join(map(repr, levels))} is not a number",
            why="the column holds numbers",
            fix='name levels as the column writes them, such as "1"',
        ) from None
    return np.asarray(pc.index_in(wanted, value_set=column.values).drop_null().to_numpy())


def canonical_values(array: pa.Array) -> pa.Array:
    """Return the values without a dictionary and without −0.0.

    −0.0 sorts equal to 0.0, so the order of the input could remain visible.
    """
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    return pc.add(array, pa.scalar(0, array.type)) if pa.types.is_floating(array.type) else array


class _Gatherer:
    """Collect one column batch by batch into one array."""

    def __init__(self, name: str, kind: pa.DataType, n: int) -> None:
        self.name, self.type, self.at = name, kind, 0
        self.plain = pa.types.is_integer(kind)
        self.codes: Codes = np.empty(n, kind.to_pandas_dtype() if self.plain else np.int32)
        self.missing: NDArray[np.bool_] | None = None
        self.reach: tuple[int, int] | None = None
        self.parts: list[tuple[int, int, pa.Array]] = []

    def add(self, array: pa.Array) -> None:
        start, stop = self.at, self.at + len(array)
        if stop > self.codes.size:
            raise DataError(
                "the records changed while they were read",
                why=f"more than {self.codes.size:,} were found",
                fix="run again when no other program writes to the files",
            )
        self.at = stop
        if self.plain:
            if array.null_count:
                if self.missing is None:
                    self.missing = np.zeros(self.codes.size, np.bool_)
                self.missing[start:stop] = array.is_null().to_numpy(zero_copy_only=False)
                array = array.fill_null(0)
            numbers = array.to_numpy(zero_copy_only=False)
            self.codes[start:stop] = numbers
            if numbers.size:
                # computed here, while the batch is in the cache
                low, high = int(numbers.min()), int(numbers.max())
                self.reach = (
                    (low, high) if self.reach is None else (min(low, self.reach[0]), max(high, self.reach[1]))
                )
            return
        coded = canonical_values(array).dictionary_encode(null_encoding="encode")
        self.codes[start:stop] = coded.indices.to_numpy(zero_copy_only=False)
        self.parts.append((start, stop, coded.dictionary))

    def column(self) -> Column:
        if self.at != self.codes.size:
            raise DataError(
                "the records changed while they were read",
                why=f"fewer than {self.codes.size:,} were found",
                fix="run again when no other program writes to the files",
            )
        if self.plain and self.missing is None:
            return Column(name=self.name, codes=self.codes, type=self.type, reach=self.reach)
        if self.missing is not None:
            values = pa.array(np.unique(self.codes[~self.missing]), self.type)
            codes = np.searchsorted(values.to_numpy(), self.codes).astype(np.int32)
            codes[self.missing] = len(values)
            return Column(
                name=self.name,
                codes=codes,
                type=self.type,
                values=pa.concat_arrays([values, pa.nulls(1, self.type)]),
            )
        own = self.type.value_type if pa.types.is_dictionary(self.type) else self.type
        kind = self.parts[0][2].type if self.parts else own
        seen = pa.chunked_array([part for _, _, part in self.parts], kind).unique()
        ordered = seen.take(pc.sort_indices(seen))
        ordered = ordered.combine_chunks() if isinstance(ordered, pa.ChunkedArray) else ordered
        narrow = np.min_scalar_type(max(len(ordered), 1))
        codes = np.empty(self.codes.size, narrow)
        for start, stop, part in self.parts:
            place = pc.index_in(part, value_set=ordered).to_numpy(zero_copy_only=False).astype(narrow)
            codes[start:stop] = place[self.codes[start:stop]]
        return Column(name=self.name, codes=codes, type=kind, values=ordered)


def gather_columns(census: "Census", record_type: str, names: Sequence[str]) -> dict[str, Column]:
    """Read the named columns of all records of a type once, batch by batch."""
    n = census.count(record_type)
    gatherers: list[_Gatherer] = []
    for batch in census.batches(record_type, list(names)) if n and names else ():
        if not gatherers:
            gatherers = [_Gatherer(field.name, field.type, n) for field in batch.schema]
        for gatherer, array in zip(gatherers, batch.columns, strict=True):
            gatherer.add(array)
    if not gatherers:
        kinds = census.table(record_type, list(names)).schema if names else pa.schema([])
        gatherers = [_Gatherer(field.name, field.type, 0) for field in kinds]
    return _make_columns(gatherers)


def _make_columns(gatherers: list[_Gatherer]) -> dict[str, Column]:
    """Return the columns of gatherers, each of which is dropped when its column is made."""
    found: dict[str, Column] = {}
    while gatherers:
        gatherer = gatherers.pop(0)
        found[gatherer.name] = gatherer.column().store_reach()
    return found


def encode_table(table: pa.Table, names: Sequence[str]) -> dict[str, Column]:
    """Encode the named columns of a table."""
    found: dict[str, Column] = {}
    for name in names:
        gatherer = _Gatherer(name, table.schema.field(name).type, table.num_rows)
        for chunk in table.column(name).chunks:
            gatherer.add(chunk)
        found[name] = gatherer.column().store_reach()
    return found


def encode_rows(rows: "PartRows", names: Sequence[str]) -> dict[str, Column]:
    """Encode the named columns of the rows of a part, which are read once, some at a time."""
    gatherers = [_Gatherer(name, rows.schema.field(name).type, rows.number) for name in names]
    for piece in rows.read():
        for gatherer in gatherers:
            for chunk in piece.column(gatherer.name).chunks:
                gatherer.add(chunk)
    return _make_columns(gatherers)


# Pack variables as digits of a few 64-bit words, exactly: columns of records, and all variables of linked records.

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Digits:
    """Combine several columns as the digits of one number, exactly and without collisions."""

    columns: tuple[Column, ...]
    lows: tuple[int, ...]
    spans: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> "Digits":
        """Return the digits of the given columns, each as wide as its own range."""
        return cls(tuple(columns), tuple(c.low for c in columns), tuple(c.span for c in columns))

    @property
    def range(self) -> int:
        """Return how many numbers the digits can write."""
        product = 1
        for span in self.spans:
            product *= span
        return product

    @property
    def fits(self) -> bool:
        """Return whether every number fits a 64-bit word."""
        return self.range <= 2**64

    def numbers(self, rows: slice = slice(None)) -> NDArray[np.uint64]:
        """Return the number of each row."""
        n = len(range(*rows.indices(self.columns[0].codes.size))) if self.columns else 0
        total = np.zeros(n, np.uint64)
        for column, low, span in zip(self.columns, self.lows, self.spans, strict=True):
            if span == 1:
                continue
            _append_digit(total, column.codes[rows], np.uint64(low % 2**64), np.uint64(span % 2**64))
        return total


@compile_kernel
def _append_digit(total: NDArray[np.uint64], codes: Codes, low: np.uint64, span: np.uint64) -> None:
    """Write one more digit behind each number; modulo 2⁶⁴ the difference is right for signed codes too."""
    for i in range(total.size):
        total[i] = total[i] * span + (np.uint64(codes[i]) - low)


def rank_columns(columns: Sequence[Column]) -> Column:
    """Join columns into one of dense ranks, exact for any width, if digits do not fit in a word."""
    joined: list[Column] = []
    for column in columns:
        pair = (*joined, column)
        digits = Digits.of(pair)
        if not digits.fits:
            dense = [Column(name=c.name, codes=_rank_densely(c.codes), type=pa.uint32()) for c in pair]
            digits = Digits.of(dense)
        joined = [Column(name=column.name, codes=_rank_densely(digits.numbers()), type=pa.uint32())]
    return joined[0]


def _rank_densely(numbers: Codes) -> NDArray[np.uint32]:
    return np.unique(numbers, return_inverse=True)[1].astype(np.uint32).ravel()


def pack_columns(columns: Sequence[Column]) -> tuple[Digits, ...]:
    """Pack the columns exactly into as few 64-bit words as hold them."""
    packed: list[list[Column]] = [[]]
    room = 2**64
    for column in columns:
        span = column.span
        if span > room:
            packed.append([])
            room = 2**64
        packed[-1].append(column)
        room //= span
    return tuple(Digits.of(group) for group in packed if group)


@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """One variable as a digit of a packed word: its position, and how to decode it."""

    name: str
    type: pa.DataType
    word: int
    span: int
    low: int = 0
    values: pa.Array | None = None  # sorted; None when the digit is the integer less ``low``
    used: NDArray[np.uint64] | None = None  # places of values that some released record has; None: all

    def encode(self, array: pa.Array) -> Words:
        """Return the digit of each value; an empty value is the last one."""
        if self.values is None:
            if array.null_count:  # the digit of an empty value may lie beyond a narrow type
                array = array.cast(pa.uint64() if pa.types.is_unsigned_integer(array.type) else pa.int64())
            filled = array.fill_null(self.low + self.span - 1) if array.null_count else array
            numbers: Words = filled.to_numpy(zero_copy_only=False).astype(np.uint64)
            return numbers - np.uint64(self.low % 2**64)
        places = pc.index_in(canonical_values(array), value_set=self.values).fill_null(len(self.values))
        digits: Words = places.to_numpy(zero_copy_only=False).astype(np.uint64)
        return digits

    def decode(self, digits: Words, *, holds_empty: bool) -> pa.Array:
        """Return the values of some digits."""
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


class _Layout:
    """Put variables one after the other into words."""

    def __init__(self) -> None:
        self.digits: list[Digit] = []
        self.word, self.room = 0, 2**64

    def add(self, name: str, kind: pa.DataType, span: int, low: int, values: pa.Array | None) -> None:
        """Add a variable, in a new word if the last one is full."""
        span = max(span, 1)
        if span > self.room:
            self.word, self.room = self.word + 1, 2**64
        self.room //= span
        self.digits.append(Digit(name=name, type=kind, word=self.word, span=span, low=low, values=values))


def lay_out_census(
    census: "Census", record_type: str, names: Sequence[str]
) -> tuple[list[Digit], frozenset[str]]:
    """Lay out the named variables as digits, from their ranges or values; return also which have empty values."""
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
    found = _Layout()
    for name in names:
        gap = 1 if facts[f"{name}\x00empty"] else 0
        if name in whole:
            low = facts[f"{name}\x00low"] or 0
            span = (facts[f"{name}\x00high"] or 0) - low + 1 + gap
            found.add(name, kinds_arrow.schema.field(name).type, span, low, None)
            continue
        column = (
            frame.select(pl.col(name).drop_nulls().unique().sort())
            .collect(engine="streaming")
            .to_arrow(compat_level=pl.CompatLevel.oldest())[name]
        )
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type).unique().sort()
        values = canonical_values(combine_chunks(column))
        found.add(name, values.type, len(values) + gap, 0, values)
    return found.digits, frozenset(name for name in names if facts[f"{name}\x00empty"])


def lay_out_table(table: pa.Table, names: Sequence[str]) -> tuple[list[Digit], frozenset[str]]:
    """Lay out the named variables of a table; the order of records is that of any wider digits."""
    found = _Layout()
    for name in names:
        column = table.column(name)
        gap = 1 if column.null_count else 0
        if pa.types.is_integer(column.type):
            reach = pc.min_max(column).as_py()
            low = reach["min"] or 0
            found.add(name, column.type, (reach["max"] or 0) - low + 1 + gap, low, None)
            continue
        values = canonical_values(combine_chunks(column)).unique().drop_null()
        values = values.take(pc.sort_indices(values))
        found.add(name, values.type, len(values) + gap, 0, values)
    return found.digits, frozenset(name for name in names if table.column(name).null_count)


def pack_words(digits: Sequence[Digit], records: pa.RecordBatch | pa.Table, width: int) -> Words:
    """Pack the variables of some records into words."""
    words = np.zeros((records.num_rows, width), np.uint64)
    for digit in digits:
        words[:, digit.word] *= np.uint64(digit.span)
        words[:, digit.word] += digit.encode(combine_chunks(records.column(digit.name)))
    return words


def unpack_digits(digits: Sequence[Digit], packed: Words) -> Iterator[tuple[Digit, Words]]:
    """Iterate over the digits of some packed members, the last first."""
    rest = [np.ascontiguousarray(packed[:, w]) for w in range(packed.shape[1])]
    for digit in reversed(digits):
        numbers, place = rest[digit.word], np.uint64(digit.span)
        rest[digit.word] = numbers // place
        yield digit, numbers - rest[digit.word] * place


# Move linked records (the persons of a household) together with the swapped record.
#
# They are read once, packed into a few 64-bit words each and grouped by their household; within a household they are
# sorted by content, so that nothing of the order of the input remains.

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


# Records that never take part: they are published unchanged and are therefore invariants, or left out completely.
#
# The schema alone decides who takes part. A level that only records show would make the invariants, and so the
# meaning of the promise, depend on the data.

Where = dict[str, tuple[str, ...]]
BY_KIND: Final = "kind"  # why records take no part
IMPUTED: Final = "imputed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """The records with one of these levels of a variable, which no swap touches."""

    column: str
    levels: tuple[str, ...]
    codes: NDArray[Any]
    records: int
    why: Literal["kind", "imputed"]

    @property
    def where(self) -> Where:
        """Return the same levels as a restriction of a table."""
        return {self.column: self.levels}

    def words(self, subject: str) -> Phrase:
        """Return what is invariant, short enough for a sentence."""
        levels = describe_condition(self.column, self.levels)
        return Phrase(f"swap.stay.{self.why}", subject=subject, condition=levels)

    def describe(self, record_type: str) -> str:
        """Describe how many records these are and what happens to them."""
        return Phrase(f"swap.stay.{self.why}_told", number=self.records, records=unit(record_type, "records"))


def find_stay(kinds: "Kinds | None", columns: dict[str, Column]) -> Stay | None:
    """Return vacant units and group quarters as records that stay, or None if the schema has no such kinds.

    They are listed even if the census has none.
    """
    levels = list_staying_levels(kinds)
    if kinds is None or not levels:
        return None
    column = columns[kinds.column]
    codes = find_level_codes(column, levels)
    return Stay(
        column=kinds.column,
        levels=levels,
        codes=codes,
        records=int(np.isin(column.codes, codes).sum()),
        why=BY_KIND,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRule:
    """The rule for which records are released if others are left out: by listed levels, or all but some levels.

    With ``levels`` a record whose level is empty or not listed is left out. Without (the schema lists no level that
    takes part) every record is released but those of ``left_out``. Either rule covers every data set of the domain.
    """

    column: str
    levels: tuple[str, ...] | None
    left_out: tuple[str, ...]

    @property
    def among(self) -> Phrase:
        """Return the rule in words."""
        if self.levels is None:
            return Phrase("invariant.without", condition=describe_condition(self.column, self.left_out))
        return Phrase("invariant.only", condition=describe_condition(self.column, self.levels))

    def find_released(self, column: Column) -> NDArray[np.bool_]:
        """Return which records are released."""
        if self.levels is None:
            return ~np.isin(column.codes, find_level_codes(column, self.left_out))
        return np.isin(column.codes, find_level_codes(column, self.levels))

    def keep_released(self, columns: dict[str, Column]) -> dict[str, Column]:
        """Return the columns of the records that are released.

        Values that only other records have are removed too, because the whole dictionary of a column is published.
        """
        rows = np.flatnonzero(self.find_released(columns[self.column])).astype(np.uint32)
        return {
            name: held.take_rows(rows).drop_unused_values().store_reach() for name, held in columns.items()
        }

    def margins(
        self, record_type: str, by: tuple[str, ...], *, where: Mapping[str, tuple[str, ...]], label: str
    ) -> tuple[Margin, ...]:
        """Return a table of the released records as invariants.

        A restriction lists levels. Where the released levels have no list, the table of all records and the table of those
        left out determine it together: it is their difference.
        """
        if self.levels is not None:
            only = _intersect(where, {self.column: self.levels})
            return (Margin(record_type, by, where=only, label=_limit_label(label, self.among)),)
        rest = Phrase("invariant.only", condition=describe_condition(self.column, self.left_out))
        return (
            Margin(record_type, by, where=where, label=label),
            Margin(
                record_type,
                by,
                where=_intersect(where, {self.column: self.left_out}),
                label=_limit_label(label, rest),
            ),
        )

    def describe_others(self, record_type: str) -> str:
        """Describe what happens to records with no level, or with a level that the schema does not list."""
        if self.levels is None:
            levels, key = describe_condition(self.column, self.left_out), "swap.note.some_left_out"
        else:
            levels, key = describe_condition(self.column, self.levels), "swap.note.only_released"
        records = unit(record_type, "records")
        return Phrase(key, records=records, condition=levels, variable=self.column)


def _limit_label(label: str, among: Phrase) -> str:
    """Add the rule of who is counted to the name of a table; leave an empty name empty."""
    return label and Phrase("invariant.limited", table=label, among=among)


def _intersect(one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]) -> Where:
    """Combine two restrictions."""
    return {
        name: tuple(
            level for level in one.get(name, other.get(name, ())) if name not in other or level in other[name]
        )
        for name in (*one, *(name for name in other if name not in one))
    }


def find_release_rule(record: "RecordSchema", untouched: str) -> ReleaseRule | None:
    """Return which records a swap with ``untouched="drop"`` releases, or None if none is left out.

    The levels that take part are those of occupied homes and housing units; without these, the declared levels of the
    variable except vacant units and group quarters.
    """
    kinds, others = record.kinds, list_staying_levels(record.kinds)
    if untouched != "drop" or kinds is None or not others:
        return None
    named = tuple(str(level) for level in (*kinds.occupied, *kinds.housing_units))
    for variable in record.variables:
        if variable.name == kinds.column and not named:
            named = tuple(str(level) for level in variable.all_levels or () if str(level) not in others)
    return ReleaseRule(column=kinds.column, levels=named or None, left_out=others)


def refuse_staying(stays: Sequence[Stay], record_type: str) -> None:
    """Raise an error if vacant units or group quarters would be published unchanged."""
    records = sum(stay.records for stay in stays if stay.why == BY_KIND)
    if records:
        raise PrivacyError(
            f"{records:,} {record_type} records would be published untouched",
            why="they are vacant units or group quarters, which the swap never moves",
            fix='untouched="publish" lists them among the invariants, untouched="drop" leaves them out',
        )
