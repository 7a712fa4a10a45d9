"""Number the strata of the match variables, count their sizes, and find whether each holds one, two or more types."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.packing import Digits, pack_columns, rank_columns

NO_STRATUM = np.uint32(0xFFFFFFFF)  # the stratum of a record that takes no part
ROWS_PER_CALL = 1 << 16
MANY_TYPES = (
    3  # more than two types are not distinguished; only small strata have all margins counted (partitions.py)
)


@compile_kernel
def _mark(codes: NDArray[np.uint32], present: NDArray[np.uint32]) -> None:
    for code in codes:
        if code != NO_STRATUM:
            present[code] = np.uint32(1)


@compile_kernel
def _renumber(codes: NDArray[np.uint32], places: NDArray[np.uint32], sizes: NDArray[np.uint32]) -> None:
    for i in range(codes.size):
        if codes[i] != NO_STRATUM:
            place = places[codes[i]]
            codes[i] = place
            sizes[place] += np.uint32(1)


@compile_kernel
def _count_types(
    strata: NDArray[np.uint32],
    numbers: NDArray[np.uint64],
    firsts: NDArray[np.uint64],
    seconds: NDArray[np.uint64],
    first_counts: NDArray[np.uint32],
    types: NDArray[np.uint8],
) -> int:
    """Count the types of each stratum as one, two or many; returns the strata that have many."""
    full = 0
    for i in range(strata.size):
        stratum = strata[i]
        if stratum == NO_STRATUM:
            continue
        seen = types[stratum]
        if seen == 3:
            continue
        number = numbers[i]
        if seen == 0:
            firsts[stratum] = number
            types[stratum] = 1
            first_counts[stratum] = 1
        elif number == firsts[stratum]:
            first_counts[stratum] += np.uint32(1)
        elif seen == 1:
            seconds[stratum] = number
            types[stratum] = 2
        elif number != seconds[stratum]:
            types[stratum] = 3
            full += 1
    return full


@dataclass(frozen=True, slots=True, kw_only=True)
class Types:
    """For each stratum: 1, 2 or 3 (many) distinct types, and the number of records with the first of them."""

    types: NDArray[np.uint8]
    first_counts: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCodes:
    """The stratum of every record (``NO_STRATUM`` if it takes no part) and the size of every stratum."""

    codes: NDArray[np.uint32]
    sizes: NDArray[np.uint32]

    def types(self, columns: Sequence[Column]) -> Types:
        """Count the distinct values of the given columns in each stratum, as one, two or many."""
        n = self.sizes.size
        found = Types(types=np.zeros(n, np.uint8), first_counts=np.zeros(n, np.uint32))
        if all(column.span <= 1 for column in columns):
            found.types[:] = 1
            found.first_counts[:] = self.sizes
            return found
        number = number_rows(columns)
        firsts, seconds = np.empty(n, np.uint64), np.empty(n, np.uint64)
        full = 0
        for start in range(0, self.codes.size, ROWS_PER_CALL):
            part = slice(start, start + ROWS_PER_CALL)
            full += _count_types(
                self.codes[part], number.numbers(part), firsts, seconds, found.first_counts, found.types
            )
            if full == n:
                break
        return found


def number_rows(columns: Sequence[Column]) -> Digits:
    """Pack the columns into one number for each row, equal for equal values."""
    varying = [column for column in columns if column.span > 1]
    packed = pack_columns(varying)
    return packed[0] if len(packed) == 1 else Digits.of([rank_columns(varying)])


def form_strata(
    match: Sequence[Column], *, rows: int, taking_part: NDArray[np.bool_] | None = None
) -> StratumCodes:
    """Form the exact strata of the match variables; without match variables all records are one stratum.

    >>> import pyarrow as pa
    >>> size = Column(name="size", codes=np.array([2, 7, 2]), type=pa.int64())
    >>> form_strata([size], rows=3).sizes
    array([2, 1], dtype=uint32)
    """
    digits = Digits.of(match)
    if digits.range > max(1 << 22, 2 * rows):
        digits = Digits.of([rank_columns(match)])
    codes = np.empty(rows, np.uint32)
    present = np.zeros(digits.range, np.uint32)
    for start in range(0, rows, ROWS_PER_CALL):
        part = slice(start, min(start + ROWS_PER_CALL, rows))
        codes[part] = digits.numbers(part) if match else 0
        if taking_part is not None:
            codes[part][~taking_part[part]] = NO_STRATUM
        _mark(codes[part], present)
    places = np.cumsum(present, dtype=np.uint32) - present
    sizes = np.zeros(int(present.sum(dtype=np.int64)), np.uint32)
    _renumber(codes, places, sizes)
    return StratumCodes(codes=codes, sizes=sizes)


@compile_kernel
def _count_strata(strata: NDArray[np.uint32]) -> int:
    """Return one more than the largest stratum code, or 0 if no record takes part."""
    largest = -1
    for stratum in strata:
        if stratum != NO_STRATUM and stratum > largest:
            largest = int(stratum)
    return largest + 1


@compile_kernel
def _count_sizes(strata: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    for stratum in strata:
        if stratum != NO_STRATUM:
            counts[stratum] += np.uint32(1)


def count_sizes(strata: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Count the records of every stratum.

    >>> count_sizes(np.array([0, 1, 1], np.uint32))
    array([1, 2], dtype=uint32)
    """
    counts = np.zeros(_count_strata(strata), np.uint32)
    _count_sizes(strata, counts)
    return counts
