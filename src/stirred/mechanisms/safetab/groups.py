"""Count population groups: for every region type and level, how many records each (region, iteration, cell) has.

One pass over the records. Distinct combinations of codes are mapped to iterations once; counts stay sparse, as sorted keys
(region · I + iteration) · cells + cell. In memory the census is one part; else batches are counted where they lie and
their counts added in parts.
"""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.engine import Engine, Local
from stirred.engine.placing import PART_COLUMN, PlaceRows
from stirred.engine.plain import to_plain
from stirred.frames import arrow_of, collect_frame, frame_of
from stirred.mechanisms.safetab.mapping import GroupMap
from stirred.mechanisms.safetab.regions import NATION_ID, Regions, RegionType

if TYPE_CHECKING:
    from stirred.census import Census

Ints = NDArray[np.int64]
COUNT, CELL, SET, GROUP = "\x00count", "\x00cell", "set", "key"
COUNT_SCHEMA = pa.schema([(SET, pa.int32()), (GROUP, pa.int64()), ("count", pa.int64())])
NO_CODES = ("", "0", "Null")
BYTES_PER_RECORD = 200  # of a record on its way to a count, roughly


class CellColumns(Protocol):
    """The cells inside a group, such as sex by age: how many, and the number of each record's, null where it has none."""

    @property
    def number(self) -> int:
        """Return how many cells there are."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that a record's cell is read from."""
        ...

    def expression(self) -> pl.Expr:
        """Return the number of a record's cell; the object must be picklable."""
        ...


@dataclass(frozen=True)
class GroupSet:
    """The groups of one region type and level: each pair of a region and an iteration, numbered."""

    kind: RegionType
    level: int
    regions: tuple[str, ...]
    mapping: GroupMap

    @property
    def iterations(self) -> int:
        """Return how many iterations each region has."""
        return len(self.mapping.codes)

    @property
    def number(self) -> int:
        """Return how many groups there are, most of them empty."""
        return len(self.regions) * self.iterations

    @cached_property
    def region_numbers(self) -> dict[str, int]:
        """Return the number of every region."""
        return {region: place for place, region in enumerate(self.regions)}


@dataclass(frozen=True, slots=True)
class GroupCounts:
    """The cells of a group set that have records: their keys, rising, and their counts."""

    keys: Ints
    counts: Ints
    cells: int

    def totals(self) -> tuple[Ints, Ints]:
        """Return the groups that have records, rising, and how many each has.

        >>> GroupCounts(np.array([3, 5, 6]), np.array([1, 2, 3]), cells=3).totals()
        (array([1, 2]), array([3, 3]))
        """
        return sum_by_key(self.keys // self.cells, self.counts)


@dataclass(frozen=True, kw_only=True)
class Tally:
    """What is counted: the sets, the columns of codes and of cells, and the records that take part."""

    sets: tuple[GroupSet, ...]
    regions: Regions
    races: tuple[str, ...]
    ethnicity: str  # empty where the census has none
    cells: CellColumns
    where: tuple[tuple[str, tuple[int | str, ...]], ...] = ()

    @property
    def codes(self) -> tuple[str, ...]:
        """Return the columns whose combinations are mapped to iterations."""
        return (*self.races, *filter(None, [self.ethnicity]))

    @property
    def areas(self) -> tuple[str, ...]:
        """Return the columns of the regions."""
        names = [self.regions.state, *(item.kind.column for item in self.sets)]
        return tuple(dict.fromkeys(filter(None, names)))

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all columns that are read of a record."""
        names = [*self.areas, *self.codes, *self.cells.columns, *(name for name, _ in self.where)]
        return tuple(dict.fromkeys(names))

    def group_records(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Count records that agree in everything; those without a cell, in no universe, are left out."""
        types = frame.collect_schema()
        for name, levels in self.where:
            values = [str(level) for level in levels]
            frame = frame.filter(pl.col(name).cast(pl.String).is_in(values))
        text = [
            pl.col(name).cast(pl.String) for name in (*self.areas, *self.codes) if types[name] != pl.String
        ]
        frame = frame.with_columns(self.cells.expression().cast(pl.Int64).alias(CELL)).drop_nulls(CELL)
        return (
            frame.with_columns(text)
            .group_by(*self.areas, *self.codes, CELL)
            .agg(pl.len().cast(pl.Int64).alias(COUNT))
        )

    def __call__(self, table: pa.Table) -> pa.Table:
        """Return the keys and counts of a batch of records."""
        found = self.expand_groups(collect_frame(self.group_records(frame_of(table).lazy())))
        return pa.table(
            {
                SET: np.repeat(np.arange(len(found), dtype=np.int32), [len(keys) for keys, _ in found]),
                GROUP: np.concatenate([np.zeros(0, np.int64), *(keys for keys, _ in found)]),
                "count": np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in found)]),
            },
            schema=COUNT_SCHEMA,
        )

    def expand_groups(self, frame: pl.DataFrame) -> list[tuple[Ints, Ints]]:
        """Return the keys and counts of grouped records, for each set."""
        profile, profiles = _number_profiles(frame, self.races, self.ethnicity)
        cell, count = _to_whole(frame[CELL]), _to_whole(frame[COUNT])
        state = self.regions.state
        island = (
            (frame[state] == self.regions.island).fill_null(False).to_numpy()
            if state
            else np.zeros(frame.height, bool)
        )
        tables: dict[int, tuple[Ints, Ints]] = {}
        areas: dict[str, tuple[Ints, list[str | None]]] = {}
        result = []
        for item in self.sets:
            if id(item.mapping) not in tables:
                starts, groups = item.mapping.table(profiles)
                tables[id(item.mapping)] = starts.astype(np.int64), groups.astype(np.int64)
            column = item.kind.column
            if column and column not in areas:
                areas[column] = (
                    _number_rows(frame, [column])[0],
                    frame[column].unique(maintain_order=True).to_list(),
                )
            region = _number_regions(item, areas, frame.height)
            taking = (region >= 0) & (island == item.kind.island)
            whole = (region[taking] * len(profiles) + profile[taking]) * self.cells.number + cell[taking]
            keys, counts = sum_by_key(whole, count[taking])
            result.append(
                _spread(keys, counts, tables[id(item.mapping)], item, len(profiles), self.cells.number)
            )
        return result


@dataclass(frozen=True, slots=True)
class KeySums:
    """Sum the counts of each key in a part."""

    def __call__(self, _part: int, table: pa.Table) -> pa.Table:
        """One row for each key."""
        frame = frame_of(table.drop_columns([PART_COLUMN]))
        return to_plain(arrow_of(frame.group_by(SET, GROUP).agg(pl.col("count").sum()))).cast(COUNT_SCHEMA)


def count_groups(
    census: "Census", tally: Tally, *, record_type: str = "person", engine: Engine | None = None
) -> list[GroupCounts]:
    """Return the counts of every set, on any engine."""
    engine = engine or Local()
    cells = tally.cells.number
    if engine.fits(0) and engine.fits(BYTES_PER_RECORD * census.count(record_type)):
        frame = census.scan(record_type, list(tally.columns), ordered=False)
        found = tally.expand_groups(collect_frame(tally.group_records(frame), streaming=True))
        return [GroupCounts(keys, counts, cells) for keys, counts in found]
    flow = engine.records(census, record_type, list(tally.columns)).map(tally, COUNT_SCHEMA)
    parts = engine.parts_for(BYTES_PER_RECORD * census.count(record_type))
    placed = PlaceRows((SET, GROUP), parts)
    spread = engine.exchange(flow.map(placed, placed.schema(COUNT_SCHEMA)), by=PART_COLUMN, parts=parts)
    rows = frame_of(spread.map(KeySums(), COUNT_SCHEMA).gather()).sort(SET, GROUP)
    result = []
    for place in range(len(tally.sets)):
        own = rows.filter(pl.col(SET) == place)
        result.append(GroupCounts(_to_whole(own[GROUP]), _to_whole(own["count"]), cells))
    return result


def sum_by_key(keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys, rising, each with the sum of its counts.

    >>> sum_by_key(np.array([7, 2, 7]), np.array([1, 5, 2]))
    (array([2, 7]), array([5, 3]))
    """
    if not len(keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[first], np.add.reduceat(counts, first)


def _spread(
    keys: Ints, counts: Ints, table: tuple[Ints, Ints], item: GroupSet, profiles: int, cells: int
) -> tuple[Ints, Ints]:
    """Return each count once for every iteration that its codes lead to."""
    starts, groups = table
    rest, cell = np.divmod(keys, cells)
    region, profile = np.divmod(rest, max(profiles, 1))
    length = starts[profile + 1] - starts[profile]
    row = np.repeat(np.arange(len(keys)), length)
    before = np.cumsum(length) - length
    group = groups[np.arange(len(row)) - before[row] + starts[profile[row]]]
    return sum_by_key((region[row] * item.iterations + group) * cells + cell[row], counts[row])


def _number_profiles(
    frame: pl.DataFrame, races: Sequence[str], ethnicity: str
) -> tuple[Ints, list[tuple[list[str], str]]]:
    """Return the number of each row's combination of codes, and the combinations."""
    names = [*races, *filter(None, [ethnicity])]
    if not names:
        return np.zeros(frame.height, np.int64), [([], "")]
    number, distinct = _number_rows(frame, names)
    rows = distinct.fill_null("").rows()
    if not ethnicity:
        return number, [(_list_codes(row), "") for row in rows]
    return number, [(_list_codes(row[:-1]), row[-1]) for row in rows]


def _list_codes(codes: Sequence[str]) -> list[str]:
    return [code for code in codes if code not in NO_CODES]


def _number_rows(frame: pl.DataFrame, names: list[str]) -> tuple[Ints, pl.DataFrame]:
    """Return each row's number among the distinct rows, and these in order of first appearance."""
    distinct = frame.select(names).unique(maintain_order=True)
    numbered = distinct.with_row_index(SET)
    joined = frame.select(names).join(numbered, on=names, how="left", nulls_equal=True, maintain_order="left")
    return _to_whole(joined[SET]), distinct


def _number_regions(item: GroupSet, areas: Table[str, tuple[Ints, list[str | None]]], rows: int) -> Ints:
    """Return the number of each row's region, -1 where it lies in none."""
    if not item.kind.column:
        return np.full(rows, item.region_numbers.get(NATION_ID, -1), np.int64)
    place, codes = areas[item.kind.column]
    numbers = np.array([item.region_numbers.get(code or "", -1) for code in codes] or [-1], np.int64)
    return numbers[place]


def _to_whole(column: pl.Series) -> Ints:
    return column.to_numpy().astype(np.int64)
