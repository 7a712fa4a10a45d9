"""Number the cells of a table, and add up records by that number: compiled, in one pass over the records."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance.words import is_text
from stirred.compiled import compile_kernel

Ints = NDArray[np.int64]
MAX_KEY_SUM = 1 << 62  # sums of keys from here on are reduced at once: with one more key they still fit


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one variable in a list, in their order; a range of whole numbers has its first one alone."""

    size: int
    low: int = 0
    kind: pa.DataType | None = None
    values: pa.Array | None = None

    def at(self, places: NDArray[np.int32]) -> pa.Array:
        """Return the values at some places."""
        if self.values is not None:
            return self.values.take(pa.array(places))
        kind: pa.DataType = self.kind
        return pa.array((places.astype(np.int64) + self.low).astype(kind.to_pandas_dtype()), kind)


@dataclass(frozen=True, slots=True)
class CellPlaces:
    """For each record the number of its cell, where the last variable runs fastest; and the values of each variable."""

    numbers: NDArray[np.int32]
    axes: tuple[Axis, ...]

    @property
    def cells_possible(self) -> int:
        """Return how many cells there can be."""
        return int(np.prod([axis.size for axis in self.axes], dtype=np.int64))

    def columns(self, cells: Ints) -> list[pa.Array]:
        """Return the values of each variable in some cells."""
        found, rest = [], cells.astype(np.int32)  # narrow numbers are divided much quicker
        for axis in reversed(self.axes):
            above = rest // np.int32(axis.size)
            found.append(axis.at(rest - above * np.int32(axis.size)))
            rest = above
        return found[::-1]


def number_cells(columns: list[pa.Array], most: int, *, in_order: bool = False) -> CellPlaces | None:
    """Return the cells of some records, or None where there can be more than ``most``.

    With ``in_order`` cells with a larger number come later in a sorted table; None where the order of values is not known.
    """
    numbers, room = np.zeros(0, np.int32), 1
    axes: list[Axis] = []
    for column in columns:
        codes, axis = _encode_column(column, most, in_order=in_order) or (None, None)
        if codes is None or axis is None or room * axis.size > min(most, np.iinfo(np.int32).max):
            return None
        room *= axis.size
        place = codes.astype(np.int32) if not axis.low else (codes - np.int64(axis.low)).astype(np.int32)
        if not axes:
            numbers = place
        else:
            numbers *= np.int32(axis.size)
            numbers += place
        axes.append(axis)
    return CellPlaces(numbers, tuple(axes))


def _encode_column(
    column: pa.Array, most: int, *, in_order: bool
) -> tuple[NDArray[np.signedinteger], Axis] | None:
    """Return each value as a place in a list of values: a range of whole numbers, or those that occur."""
    kind = column.type
    if pa.types.is_integer(kind) and kind != pa.uint64() and not column.null_count:
        numbers = column.to_numpy(zero_copy_only=False)
        low, high = int(numbers.min()), int(numbers.max())
        if high - low < most:
            if kind == pa.uint32():  # it does not fit the type of the differences
                numbers = numbers.astype(np.int64)
            return numbers, Axis(high - low + 1, low, kind)
    if in_order and (column.null_count or not is_text(kind)):
        return None
    coded = column if pa.types.is_dictionary(kind) else column.dictionary_encode("encode")
    if coded.indices.null_count:
        coded = column.cast(kind.value_type).dictionary_encode("encode")
    values, codes = coded.dictionary, coded.indices.to_numpy(zero_copy_only=False)
    if in_order:
        order = pc.array_sort_indices(values)
        rank = np.empty(len(values), np.int32)
        rank[order.to_numpy()] = np.arange(len(values), dtype=np.int32)
        values, codes = values.take(order), rank[codes]
    return codes, Axis(len(values), values=values)


def sum_keys(found: CellPlaces, keys: Ints, modulus: int) -> tuple[Ints, Ints, Ints]:
    """Return the cells that have records, their counts, and the sums of their keys."""
    rows = len(found.numbers)
    shift = (rows * (modulus - 1)).bit_length()
    if shift + rows.bit_length() > 64:
        return merge_sums(found, np.ones(rows, np.int64), keys, modulus)
    cells = np.zeros(found.cells_possible, np.uint64)
    _pack(found.numbers, keys.view(np.uint64), np.uint64(1 << shift), cells)
    full = np.flatnonzero(cells)
    return full, *_unpack(cells, full, np.uint64(shift), np.uint64(modulus))


def merge_sums(found: CellPlaces, counts: Ints, keys: Ints, modulus: int) -> tuple[Ints, Ints, Ints]:
    """Return the same for rows that each stand for several records."""
    cells = np.zeros((2, found.cells_possible), np.int64)
    _add(found.numbers, counts, keys, modulus, cells)
    full = np.flatnonzero(cells[0])
    return full, cells[0, full], cells[1, full] % modulus


@compile_kernel
def _pack(
    numbers: NDArray[np.int32],
    keys: NDArray[np.uint64],
    one: np.uint64,
    cells: NDArray[np.uint64],
) -> None:
    """Add each record to its cell; the count stands in the upper bits of a word, the sum of the keys in the lower ones."""
    for i in range(numbers.size):
        cells[numbers[i]] += one + keys[i]


@compile_kernel
def _unpack(cells: NDArray[np.uint64], full: Ints, shift: np.uint64, modulus: np.uint64) -> tuple[Ints, Ints]:
    counts, sums = np.empty(len(full), np.int64), np.empty(len(full), np.int64)
    lower = (np.uint64(1) << shift) - np.uint64(1)
    for i in range(len(full)):
        counts[i] = np.int64(cells[full[i]] >> shift)
        sums[i] = np.int64((cells[full[i]] & lower) % modulus)
    return counts, sums


@compile_kernel
def _add(numbers: NDArray[np.int32], counts: Ints, keys: Ints, modulus: int, cells: Ints) -> None:
    for i in range(numbers.size):
        place = numbers[i]
        cells[0, place] += counts[i]
        total = cells[1, place] + keys[i]
        cells[1, place] = total if total < MAX_KEY_SUM else total % modulus


@compile_kernel
def scale_words(words: NDArray[np.uint64], modulus: int) -> Ints:
    """Return the upper 53 bits as a fraction of the modulus; a key is uniform to within modulus / 2⁵³."""
    found = np.empty(len(words), np.int64)
    for i in range(len(words)):
        found[i] = np.int64(np.floor(np.float64(words[i, 0] >> np.uint64(11)) * 2.0**-53 * modulus))
    return found
