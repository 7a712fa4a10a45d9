"""Number the strata of the match variables, count their sizes, and find whether each holds one, two or more types."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.packing import Digits, digits_of, ranked

OUT = np.uint32(0xFFFFFFFF)  # the stratum of a record that takes no part
ROWS = 1 << 16
MANY = (
    3  # more than two types are not distinguished; only small strata have all margins counted (partitions.py)
)


@compiled
def _mark(codes: NDArray[np.uint32], present: NDArray[np.uint32]) -> None:
    for code in codes:
        if code != OUT:
            present[code] = np.uint32(1)


@compiled
def _renumber(codes: NDArray[np.uint32], places: NDArray[np.uint32], sizes: NDArray[np.uint32]) -> None:
    for i in range(codes.size):
        if codes[i] != OUT:
            place = places[codes[i]]
            codes[i] = place
            sizes[place] += np.uint32(1)


@compiled
def _types(
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
        if stratum == OUT:
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
    """Of each stratum: 1, 2 or 3 (many) distinct types, and how many records have the first of them."""

    types: NDArray[np.uint8]
    first_counts: NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCodes:
    """The stratum of every record (``OUT`` when it takes no part) and the size of every stratum."""

    codes: NDArray[np.uint32]
    sizes: NDArray[np.uint32]

    def types(self, columns: Sequence[Column]) -> Types:
        """How many distinct values of the given columns each stratum holds."""
        n = self.sizes.size
        found = Types(types=np.zeros(n, np.uint8), first_counts=np.zeros(n, np.uint32))
        if all(column.span <= 1 for column in columns):
            found.types[:] = 1
            found.first_counts[:] = self.sizes
            return found
        number = numbered(columns)
        firsts, seconds = np.empty(n, np.uint64), np.empty(n, np.uint64)
        full = 0
        for start in range(0, self.codes.size, ROWS):
            part = slice(start, start + ROWS)
            full += _types(
                self.codes[part], number.numbers(part), firsts, seconds, found.first_counts, found.types
            )
            if full == n:
                break
        return found


def numbered(columns: Sequence[Column]) -> Digits:
    """The columns as one number, equal for equal values."""
    varying = [column for column in columns if column.span > 1]
    packed = digits_of(varying)
    return packed[0] if len(packed) == 1 else Digits.of([ranked(varying)])


def strata(
    match: Sequence[Column], *, rows: int, taking_part: NDArray[np.bool_] | None = None
) -> StratumCodes:
    """Exact strata of the match variables; without match variables all records are one stratum.

    >>> import pyarrow as pa
    >>> size = Column(name="size", codes=np.array([2, 7, 2]), type=pa.int64())
    >>> strata([size], rows=3).sizes
    array([2, 1], dtype=uint32)
    """
    digits = Digits.of(match)
    if digits.range > max(1 << 22, 2 * rows):
        digits = Digits.of([ranked(match)])
    codes = np.empty(rows, np.uint32)
    present = np.zeros(digits.range, np.uint32)
    for start in range(0, rows, ROWS):
        part = slice(start, min(start + ROWS, rows))
        codes[part] = digits.numbers(part) if match else 0
        if taking_part is not None:
            codes[part][~taking_part[part]] = OUT
        _mark(codes[part], present)
    places = np.cumsum(present, dtype=np.uint32) - present
    sizes = np.zeros(int(present.sum(dtype=np.int64)), np.uint32)
    _renumber(codes, places, sizes)
    return StratumCodes(codes=codes, sizes=sizes)


@compiled
def _strata_count(strata: NDArray[np.uint32]) -> int:
    """One more than the largest code of a stratum; 0 when no record takes part."""
    largest = -1
    for stratum in strata:
        if stratum != OUT and stratum > largest:
            largest = int(stratum)
    return largest + 1


@compiled
def _sizes(strata: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    for stratum in strata:
        if stratum != OUT:
            counts[stratum] += np.uint32(1)


def stratum_sizes(strata: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """How many records every stratum has.

    >>> stratum_sizes(np.array([0, 1, 1], np.uint32))
    array([1, 2], dtype=uint32)
    """
    counts = np.zeros(_strata_count(strata), np.uint32)
    _sizes(strata, counts)
    return counts
