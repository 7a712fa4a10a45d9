"""Encode records as narrow columns of codes, with only the columns that a swap needs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.errors import DataError, InputError

if TYPE_CHECKING:
    from stirred.census import Census

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
    return {gatherer.name: gatherer.column().store_reach() for gatherer in gatherers}


def encode_table(table: pa.Table, names: Sequence[str]) -> dict[str, Column]:
    """Encode the named columns of a table."""
    found: dict[str, Column] = {}
    for name in names:
        gatherer = _Gatherer(name, table.schema.field(name).type, table.num_rows)
        for chunk in table.column(name).chunks:
            gatherer.add(chunk)
        found[name] = gatherer.column().store_reach()
    return found
