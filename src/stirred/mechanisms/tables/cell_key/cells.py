"""Count cells with the sums of their records' keys, and perturb them for the tables that are shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.words import Hasher, combine_chunks, is_text
from stirred.engine import Engine, Flow
from stirred.engine.tables import PART_COLUMN, PlaceRows, plain_schema, plain_type, to_plain
from stirred.errors import DataError, PrivacyError
from stirred.frames import arrow_of, frame_of
from stirred.kernels import compile_kernel
from stirred.mechanisms.release import format_table
from stirred.mechanisms.tables.cell_key.perturbation import (
    Floats,
    MagnitudeNoise,
    Perturbation,
    estimate_counts,
)

if TYPE_CHECKING:
    from stirred.census import Census


# Number the cells of a table, and add up records by that number: compiled, in one pass over the records.

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


# Count cells together with the sum of their records' keys, in one pass over the records, on any engine.

COUNT, SUM, WEIGHT = "count", "__keys", "weighted"
MAX_SHORT_KEY = 10**9  # of longer keys a sum over a large cell would not fit 64 bits
CELLS_PER_ROW = 4  # where there can be more cells than this for each record, records are grouped instead


@dataclass(frozen=True, slots=True)
class RecordKeys:
    """A key below ``modulus`` for each record, from its identifier and a secret; or a column that holds permanent keys.

    The same identifier has the same key in every table and on every engine, so that the same set of records has the same
    noise in every table.
    """

    secret: Key
    column: str  # the identifier, or the column of permanent keys
    modulus: int
    permanent: bool = False

    def of(self, table: pa.Table) -> NDArray[np.int64]:
        """Return the keys of some records."""
        column = combine_chunks(table.column(self.column))
        if self.permanent:
            return self._read_keys(column)
        names = Hasher.of(self.secret, "record").words(column)
        words = self.secret.blocks("cell-key/record", names)
        if self.modulus & (self.modulus - 1) == 0:
            return (words[:, 0] & np.uint64(self.modulus - 1)).astype(np.int64)
        return scale_words(words, self.modulus)

    def _read_keys(self, column: pa.Array) -> NDArray[np.int64]:
        if pa.types.is_floating(column.type):
            units = np.rint(column.to_numpy(zero_copy_only=False) * self.modulus)
            return np.asarray(np.nan_to_num(units).astype(np.int64) % self.modulus)
        whole = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        if self.modulus & (self.modulus - 1) == 0:  # much quicker than a remainder, and the same
            return np.asarray(whole & (self.modulus - 1))
        return np.asarray(whole % self.modulus)


def find_key_column(census: "Census", record_type: str, permanent: str | None) -> str:
    """Return the column of permanent keys, or the identifier that keys are made from."""
    record = census.schema.record(record_type)
    if permanent is not None:
        return permanent
    if not record.id:
        raise DataError(
            f"{record_type} records have no identifier",
            why="a record's key is made from it, so that the same record has the same key in every table",
            fix=f'name it in census.toml: id = "…" under [record.{record_type}], or name a column of keys: record_key',
        )
    return record.id


@dataclass(frozen=True, slots=True)
class KeyedCells:
    """Counts and sums of keys of a batch of records, by variables."""

    by: tuple[str, ...]
    keys: RecordKeys

    def __call__(self, table: pa.Table) -> pa.Table:
        quick = self._count_by_place(table)
        if quick is not None:
            return quick
        frame = frame_of(table.select(list(self.by))).with_columns(pl.Series(SUM, self.keys.of(table)))
        sums = [pl.len().cast(pl.Int64).alias(COUNT), key_sum(self.keys.modulus)]
        found = frame.group_by(list(self.by)).agg(sums) if self.by else frame.select(sums)
        return to_plain(arrow_of(found))

    def _count_by_place(self, table: pa.Table) -> pa.Table | None:
        """Count with a table of all combinations, or return None where there are many more of them than records."""
        if not self.by or not table.num_rows:
            return None
        found = number_cells(
            [combine_chunks(table.column(name)) for name in self.by], CELLS_PER_ROW * table.num_rows
        )
        if found is None:
            return None
        return to_plain(self._fill_cells(found, sum_keys(found, self.keys.of(table), self.keys.modulus)))

    def merge(self, parts: pa.Table) -> pl.DataFrame:
        """Return all cells of some batches, sorted."""
        quick = self._merge_by_place(parts)
        if quick is not None:
            return quick
        sums = [pl.col(COUNT).sum(), key_sum(self.keys.modulus)]
        if not self.by:
            return frame_of(parts).select(sums)
        return frame_of(parts).group_by(list(self.by)).agg(sums).sort(list(self.by), nulls_last=False)

    def _merge_by_place(self, parts: pa.Table) -> pl.DataFrame | None:
        """Return all cells of some batches, sorted, or None where there are too many combinations."""
        if not self.by or not parts.num_rows:
            return None
        columns = [combine_chunks(parts.column(name)) for name in self.by]
        found = number_cells(columns, CELLS_PER_ROW * parts.num_rows, in_order=True)
        if found is None:
            return None
        counts, sums = (combine_chunks(parts.column(name)).to_numpy() for name in (COUNT, SUM))
        return frame_of(self._fill_cells(found, merge_sums(found, counts, sums, self.keys.modulus)))

    def _fill_cells(self, found: CellPlaces, cells: tuple[Ints, Ints, Ints]) -> pa.Table:
        full, counts, sums = cells
        values = dict(zip(self.by, found.columns(full), strict=True))
        return pa.table({**values, COUNT: pa.array(counts), SUM: pa.array(sums)})

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the columns of the table that a batch gives."""
        own = [before.field(name) for name in self.by]
        if not all(_is_simple(plain_type(field.type)) for field in own):
            return self(before.empty_table()).schema
        return plain_schema(pa.schema([*own, *(pa.field(name, pa.int64()) for name in (COUNT, SUM))]))


def key_sum(modulus: int) -> pl.Expr:
    """Return the expression for the sum of keys modulo a number; long keys are added in two parts."""
    if modulus <= MAX_SHORT_KEY:
        return pl.col(SUM).sum() % modulus
    upper, lower = (pl.col(SUM) // MAX_SHORT_KEY).sum(), (pl.col(SUM) % MAX_SHORT_KEY).sum()
    return ((upper % (modulus // MAX_SHORT_KEY)) * MAX_SHORT_KEY + lower) % modulus


def _is_simple(kind: pa.DataType) -> bool:
    """Return whether a type stays the same after conversion through polars."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)) or (
        is_text(kind)
    )


def count_keyed_cells(flow: Flow, cells: KeyedCells) -> pl.DataFrame:
    """Return all cells that have records, sorted: the variables, the count and the cell key."""
    return cells.merge(flow.map(cells, cells.schema(flow.schema)).gather())


# Count cells with their keys, weights and the totals of magnitudes, each with its largest contributors.

WEIGHT_UNITS = (
    10**6
)  # weights are added in millionths, as whole numbers: a sum of floats would depend on the batches
MAGNITUDE_UNITS = 10**3  # magnitudes in thousandths
MAX_TOTAL = float(1 << 62)
# of a batch: its smallest weight, and the largest number that all differences of weights are multiples of
LEAST, STEP = "__least_weight", "__weight_step"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalCells:
    """A batch of records as cells: counts, sums of keys, sums of weights, and totals with their largest contributors.

    With a ``weight`` a contribution is the record's value times its weight.
    """

    by: tuple[str, ...]
    keys: RecordKeys
    weight: str = ""
    magnitudes: tuple[str, ...] = ()
    contributors: int = 1

    def __call__(self, table: pa.Table) -> pa.Table:
        names = dict.fromkeys([*self.by, *filter(None, [self.weight]), *self.magnitudes])
        frame = frame_of(table.select(list(names)))
        weight = self._read_numbers(frame, self.weight) if self.weight else None
        columns = [pl.Series(SUM, self.keys.of(table))]
        if weight is not None:
            columns.append(_to_units(WEIGHT, weight, WEIGHT_UNITS))
        for place, name in enumerate(self.magnitudes):
            value = self._read_numbers(frame, name)
            columns.append(
                _to_units(
                    f"__total{place}", value if weight is None else value * weight, MAGNITUDE_UNITS, name=name
                )
            )
        frame = frame.select(self.by).with_columns(columns) if self.by else pl.DataFrame(columns)
        made = [pl.len().cast(pl.Int64).alias(COUNT), key_sum(self.keys.modulus)]
        if self.weight:
            least, step = _find_step(frame[WEIGHT])
            made += [
                pl.col(WEIGHT).sum(),
                *(pl.lit(x, pl.Int64).alias(name) for x, name in ((least, LEAST), (step, STEP))),
            ]
        for place in range(len(self.magnitudes)):
            made += [pl.col(f"__total{place}").sum(), *self._largest_values(place, pl.col(f"__total{place}"))]
        return to_plain(arrow_of(self._group_cells(frame, made)))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the columns of the table that a batch gives."""
        return self(before.empty_table()).schema

    def merge(self, parts: pl.DataFrame) -> pl.DataFrame:
        """Return all cells of some batches, sorted."""
        self.require_fits(parts)
        found = self.add_step(self.add_up(parts), parts)
        return found.sort(list(self.by), nulls_last=False) if self.by else found

    @property
    def sum_columns(self) -> dict[str, str]:
        """Return the columns of sums, with the variable that each adds up."""
        weights = {WEIGHT: self.weight} if self.weight else {}
        return weights | {f"__total{place}": name for place, name in enumerate(self.magnitudes)}

    def require_fits(self, parts: pl.DataFrame) -> None:
        """Raise an error where the sum of a variable over all records does not fit; ``parts`` may be its sums."""
        for column, name in self.sum_columns.items():
            _require_fits(parts[column], name)

    def add_up(self, parts: pl.DataFrame) -> pl.DataFrame:
        """Return all cells of some batches; a sum of a cell fits where that of all cells does."""
        made = [pl.col(COUNT).sum(), key_sum(self.keys.modulus)]
        if self.weight:
            made.append(pl.col(WEIGHT).sum())
        for place in range(len(self.magnitudes)):
            together = pl.concat_list(self.largest(place)).explode()
            made += [pl.col(f"__total{place}").sum(), *self._largest_values(place, together)]
        return self._group_cells(parts, made)

    def add_step(self, cells: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame:
        """Append the step of the weights of all records, which ``parts`` have with their smallest weights."""
        if not self.weight:
            return cells
        return cells.with_columns(pl.lit(join_steps(parts)[1], pl.Int64).alias(STEP))

    def largest(self, place: int) -> list[str]:
        """Return the columns of the largest contributors of a magnitude."""
        return [f"__top{place}_{j}" for j in range(self.contributors)]

    def _largest_values(self, place: int, values: pl.Expr) -> list[pl.Expr]:
        kept = values.drop_nulls().sort(descending=True)
        return [kept.get(j, null_on_oob=True).alias(name) for j, name in enumerate(self.largest(place))]

    def _group_cells(self, frame: pl.DataFrame, made: Sequence[pl.Expr]) -> pl.DataFrame:
        return frame.group_by(list(self.by)).agg(made) if self.by else frame.select(made)

    def _read_numbers(self, frame: pl.DataFrame, name: str) -> pl.Series:
        """Return a variable as numbers of at least 0; an empty value counts as 0."""
        column = frame[name]
        if not (column.dtype.is_numeric() or column.dtype == pl.Null):
            raise DataError(
                f"{name} cannot be added up",
                why=f"its values are of type {column.dtype}, not numbers",
                fix="name a variable of numbers in weight and magnitudes",
            )
        found = column.cast(pl.Float64).fill_null(0.0)
        bad = int((~(found >= 0) | found.is_infinite()).sum())
        if bad:
            raise DataError(
                f"{name} is below 0 or not a finite number in {bad} records of a batch",
                why="noise in proportion to the largest contributors bounds the error of a total only where none is below 0",
                fix=f"publish gains and losses of {name} as two variables",
            )
        return found


def _find_step(weights: pl.Series) -> tuple[int, int]:
    """Return the smallest weight, and the largest number that all differences of weights are multiples of (0: all equal)."""
    values = weights.to_numpy()
    if not values.size:
        return 0, 0
    least = int(values.min())
    return least, int(np.gcd.reduce(values - least))


def join_steps(parts: pl.DataFrame) -> tuple[int, int]:
    """Return the smallest weight of some batches, and the number that all differences of their weights are multiples of.

    Differences within a batch are multiples of its step, those between two batches of their steps and the difference of
    their smallest weights: the number is the same however records are divided.

    >>> join_steps(pl.DataFrame({COUNT: [2, 2], LEAST: [10, 16], STEP: [4, 8]}))
    (10, 2)
    """
    full = parts.filter(pl.col(COUNT) > 0)
    least = np.sort(full[LEAST].to_numpy())
    if not least.size:
        return 0, 0
    return int(least[0]), int(np.gcd.reduce(np.concatenate([np.diff(least), full[STEP].to_numpy()])))


def total_cells(flow: Flow, cells: TotalCells) -> pl.DataFrame:
    """Return all cells that have records, sorted, with their totals."""
    return cells.merge(frame_of(flow.map(cells, cells.schema(flow.schema)).gather()))


def _to_units(column: str, values: pl.Series, units: int, *, name: str = "") -> pl.Series:
    scaled = (values * units).round()
    _require_fits(scaled, name or column)
    return scaled.cast(pl.Int64).alias(column)


def _require_fits(values: pl.Series, name: str) -> None:
    if float(values.cast(pl.Float64).sum() or 0.0) >= MAX_TOTAL:
        raise DataError(
            f"the totals of {name} are too large",
            why="they are added as whole numbers of 64 bits, in thousandths (weights in millionths)",
            fix=f"measure {name} in thousands or in millions",
        )


def read_largest(
    found: pl.DataFrame, columns: Sequence[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the largest contributors of each cell, in the unit of the variable; 0 where there are fewer."""
    return np.asarray(found.select(pl.col(columns).fill_null(0) / MAGNITUDE_UNITS).to_numpy(), np.float64)


# The tables that a release shows: perturbed counts, weighted counts and totals; cells at 0 have no row.

SHOWN = "__shown"


@dataclass(frozen=True, slots=True)
class ShowCells:
    """The cells of a part that are shown, with their perturbed counts; true counts only where totals need them."""

    cells: KeyedCells | TotalCells
    table: Perturbation
    threshold: int

    def __call__(self, _: int, batches: pa.Table) -> pa.Table:
        by = list(self.cells.by)
        if isinstance(self.cells, TotalCells):
            merged = self.cells.add_up(frame_of(batches))
            shown = ShownCells.of(merged, by, self.table, self.threshold)
            found = shown.cells
        else:
            shown = ShownCells.of(self.cells.merge(batches), by, self.table, self.threshold)
            found = shown.cells.select(by)
        return to_plain(arrow_of(found.with_columns(shown.counts.cast(pl.Int64).alias(SHOWN))))


@dataclass(frozen=True, slots=True)
class SumWeights:
    """The sums of a part, which must fit, and the smallest weight with the step of the weights."""

    cells: TotalCells

    def __call__(self, _: int, batches: pa.Table) -> pa.Table:
        parts = frame_of(batches)
        made = {COUNT: pl.Series([parts.height], dtype=pl.Int64)}
        for column in self.cells.sum_columns:
            total = float(parts[column].cast(pl.Float64).sum() or 0.0)
            made[column] = pl.Series([total], dtype=pl.Float64)
        if self.cells.weight:
            for column, number in zip((LEAST, STEP), join_steps(parts), strict=True):
                made[column] = pl.Series([number], dtype=pl.Int64)
        return arrow_of(pl.DataFrame(made))


@dataclass(frozen=True, slots=True)
class ShownCells:
    """The cells of one table that are shown, with their perturbed counts; what they hold beside that is confidential."""

    cells: pl.DataFrame
    by: tuple[str, ...]
    counts: pl.Series

    @staticmethod
    def of(cells: pl.DataFrame, by: Sequence[str], table: Perturbation, threshold: int) -> "ShownCells":
        """Look the noise up; cells below the threshold, or at 0, are left out."""
        true = cells[COUNT].to_numpy()
        count = pl.Series(COUNT, true + table.noise(true, cells[SUM].to_numpy()))
        # a perturbed 0 is left out, as a cell without records is: which of the two it is must not be seen
        shown = count >= max(threshold, 1)
        return ShownCells(cells.filter(shown), tuple(by), count.filter(shown))

    @staticmethod
    def in_parts(
        flow: Flow,
        cells: "KeyedCells | TotalCells",
        table: Perturbation,
        threshold: int,
        engine: Engine,
        parts: int,
    ) -> "ShownCells":
        """Count and perturb cells in parts, each whole in one of them; only those that are shown come here."""
        placed, batches = PlaceRows(cells.by, parts), flow.map(cells, cells.schema(flow.schema))
        met = engine.exchange(
            batches.map(placed, placed.schema(batches.schema)), by=PART_COLUMN, parts=parts
        ).keep()
        try:
            kernel = ShowCells(cells, table, threshold)
            sample = kernel(0, batches.schema.empty_table())
            found = frame_of(met.map(kernel, sample.schema).gather())
            if isinstance(cells, TotalCells):
                sums = SumWeights(cells)
                summed = frame_of(met.map(sums, sums(0, batches.schema.empty_table()).schema).gather())
                cells.require_fits(summed)
                found = cells.add_step(found, summed)
        finally:
            met.drop()
        return ShownCells(found.drop(SHOWN), cells.by, found[SHOWN].alias(COUNT))

    def table(self) -> pa.Table:
        """Return the published table of counts."""
        return format_table(self._cells(), self.by)

    def weight_table(self, table: Perturbation, base: Fraction) -> pa.Table:
        """Return counts times the mean weight of their cell, rounded to a multiple of ``base``, with intervals.

        Without the rounding a weighted count divided by its count would be a ratio of true numbers, whose denominator is the
        true count. Error and interval are functions of the two published numbers: the mean weight is known to within half
        a base, divided by the count.
        """
        count = self.counts.to_numpy().astype(np.float64)
        unit = base * WEIGHT_UNITS
        # exact, as the proof has it: c · w / n in bases, rounded half up
        parts = zip(
            self.counts.to_list(), self.cells[WEIGHT].to_list(), self.cells[COUNT].to_list(), strict=True
        )
        bases = [
            (2 * c * w * unit.denominator + n * unit.numerator) // (2 * n * unit.numerator)
            for c, w, n in parts
        ]
        half = float(base / 2)
        shown = np.array([float(number * base) for number in bases], np.float64)
        error, low, high = estimate_counts(table, self.counts.to_numpy())
        found = self._cells().with_columns(
            pl.Series(WEIGHT, shown),
            estimate=shown,
            standard_error=np.hypot(error * shown / count, half / 3**0.5),
            low=low * np.maximum(shown - half, 0) / count,
            high=high * (shown + half) / count,
        )
        return format_table(found, self.by)

    def require_base(self, base: Fraction, weight: str, largest: float) -> None:
        """Raise an error unless every count that a shown count allows could have the same weighted count (proof.md)."""
        step = Fraction(int(self.cells[STEP].max() or 0), WEIGHT_UNITS)  # type: ignore[arg-type]
        if base < (ceil(largest) + 1) * step:
            raise PrivacyError(
                f"weight_base is too small for the variable {weight}",
                why="its weights lie on a coarse grid: a weighted count divided by its count would tell true counts",
                fix="weight_base must be at least (D + 1) times the step of the weights, "
                "for example 10 times the smallest difference of two weights",
            )

    def _cells(self) -> pl.DataFrame:
        return pl.DataFrame([*(self.cells[name] for name in self.by), self.counts])

    def total(self, place: int, contributors: Sequence[str], noise: MagnitudeNoise, few: int) -> pa.Table:
        """Return the totals of a magnitude; a cell with fewer than ``few`` records has the extra noise."""
        true = self.cells[f"__total{place}"].to_numpy() / MAGNITUDE_UNITS
        keys, sensitive = self.cells[SUM].to_numpy(), self.cells[COUNT].to_numpy() < few
        total = true + noise.noise(true, read_largest(self.cells, contributors), keys, sensitive)
        error, low, high = bound_total(total, noise)
        found = self._cells().with_columns(
            pl.Series(WEIGHT, total),
            estimate=total,
            standard_error=error,
            low=low,
            high=high,
        )
        return format_table(found, self.by)


def bound_total(total: Floats, noise: MagnitudeNoise) -> tuple[Floats, Floats, Floats]:
    """Return a bound of the standard error and a sure interval, from a published total alone.

    Contributions are at least 0 and add up to the total, so the noise is at most a known share of it. The error itself
    follows the largest contributor, which is confidential.
    """
    share, most = noise.share, noise.share * (noise.table.largest + noise.extra)
    high = total / (1 - most) if most < 1 else np.where(total > 0, np.inf, 0.0)
    error = np.minimum(share * (noise.deviation + noise.extra), most) * high
    return error, total / (1 + most), high
