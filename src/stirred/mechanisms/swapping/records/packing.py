"""Pack variables as digits of a few 64-bit words, exactly: columns of records, and all variables of linked records."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance.words import combine_chunks
from stirred.compiled import compile_kernel
from stirred.mechanisms.swapping.records.columns import Codes, Column, canonical_values

if TYPE_CHECKING:
    from stirred.census import Census

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
