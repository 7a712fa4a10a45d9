"""Sum up what exact tables leave open in released records, from marks: a word of 64 bits for the values in each table.

Records of equal values have equal marks; among two million, two others share one with a chance of one in ten million.
What a report says are sums over cells, and cells of one count are summed once: no value is held, and the sums do not
depend on how records are divided into batches or parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, log

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.assess.universe.bounds import Shown, find_separators
from stirred.assess.universe.counting import log_gamma
from stirred.assess.universe.sizes import MEMBERS_COLUMN, Outline, count_known_levels
from stirred.census import Census
from stirred.chance.words import cast_links, combine_chunks
from stirred.engine import Engine, Flow, PartKernel
from stirred.engine.local import return_free_memory
from stirred.engine.tables import PART_COLUMN, hash_rows, mix_words, plain_type
from stirred.errors import InputError
from stirred.frames import arrow_of, frame_of
from stirred.mechanisms.release import Release, ReleasedRecords, choose_keys, open_records

Marks = NDArray[np.uint64]
UNIT_COLUMN, ROWS_COLUMN, MEMBERS_SUM = "unit", "rows", "sum"


def name_mark(number: int) -> str:
    """Return the name of the column with the marks of a set of variables."""
    return f"mark{number}"


# Kernels: batches become marks, and marks become sums. Rows of equal marks are one row with a number as early as possible.

SUMS_SCHEMA = pa.schema([("what", pa.int64()), ("count", pa.int64()), ("many", pa.int64())])
CERTAIN = -1  # in the column "what", where others have the number of a set


@dataclass(frozen=True, slots=True)
class MarkRecords:
    """Return the marks of records that exact tables are about, each once with its number and its part.

    Of records with a ``unit``, whose members are not yet in their marks, each is returned with the word of its identifier.
    """

    outline: Outline
    sets: tuple[Shown, ...]  # of variables; all hold those of the first
    unit: str
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        table = settle_missing(table, [*self.outline.columns, self.unit])
        counted = find_counted(self.outline, table)
        common = {*self.sets[0]} - {MEMBERS_COLUMN}
        start = hash_rows(table, sorted(common))
        marks = [
            hash_rows(table, sorted({*one} - common - {MEMBERS_COLUMN}), start)[counted] for one in self.sets
        ]
        if not self.unit:
            return group_alike(marks, self.parts)
        units = hash_rows(table, [self.unit])[counted]
        columns = {name_mark(number): mark for number, mark in enumerate(marks)}
        return pa.table({**columns, UNIT_COLUMN: units, PART_COLUMN: place_marks(units, self.parts)})


@dataclass(frozen=True, slots=True)
class SumMembers:
    """Sum the marks of members by their household; the sum does not depend on their order, and wraps around."""

    link: str
    own: tuple[str, ...]
    kind: pa.DataType  # of the identifiers that the link names
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        table = settle_missing(table, [self.link, *self.own])
        table = table.filter(table.column(self.link).is_valid())
        link = cast_links(combine_chunks(table.column(self.link)), self.kind, name=self.link)
        units = hash_rows(pa.table({self.link: link}), [self.link])
        # from 1, so that a member of whom nothing is told counts as one
        units, sums = sum_alike(units, hash_rows(table, self.own, np.ones(table.num_rows, np.uint64)))
        return pa.table({UNIT_COLUMN: units, MEMBERS_SUM: sums, PART_COLUMN: place_marks(units, self.parts)})


@dataclass(frozen=True, slots=True)
class AddMembers:
    """Put the members of each record into its marks, and return each once with its number and its part."""

    sets: tuple[Shown, ...]
    parts: int

    def __call__(self, _: int, records: pa.Table, *members: pa.Table) -> pa.Table:
        units = read_words(records, UNIT_COLUMN)
        told = [
            find_sums(units, read_words(one, UNIT_COLUMN), read_words(one, MEMBERS_SUM)) for one in members
        ]
        marks = []
        for number, one in enumerate(self.sets):
            mark = read_words(records, name_mark(number)).copy()
            for sums in told if MEMBERS_COLUMN in one else ():
                mix_words(mark, sums)
            marks.append(mark)
        return group_alike(marks, self.parts)


@dataclass(frozen=True, slots=True)
class SumMargins:
    """Count how many cells of each table have which count, and the records that are certainly in their cell.

    ``signs`` says how often a set of variables is a table, less how often two tables share it: the least number of records
    of a cell is the sum of its counts with these signs (Dobra and Fienberg 2000).
    """

    signs: tuple[int, ...]

    def __call__(self, _: int, marked: pa.Table) -> pa.Table:
        rows = np.asarray(marked.column(ROWS_COLUMN).to_numpy())
        low, cell = np.zeros(rows.size, np.int64), np.zeros(rows.size, np.uint64)
        found = []
        for number, sign in enumerate(self.signs):
            mark = read_words(marked, name_mark(number))
            mix_words(cell, mark)
            place = np.unique(mark, return_inverse=True)[1]
            del mark  # of a large part every column counts
            margin = np.bincount(place, rows).astype(np.int64)
            if sign:
                low += sign * margin[place]
            del place
            found += [
                (number, *pair)
                for pair in zip(*map(np.ndarray.tolist, np.unique(margin, return_counts=True)), strict=True)
            ]
        first = np.unique(cell, return_index=True)[1]
        found.append((CERTAIN, int(np.maximum(low[first], 0).sum()), 1))
        return make_sums(found)


@dataclass(frozen=True, slots=True)
class FindLevels:
    """Find the values of some variables in a batch, as marks with the number of the variable."""

    outline: Outline
    names: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        table = settle_missing(table, self.outline.columns)
        counted = find_counted(self.outline, table)
        found = [np.unique(hash_rows(table, [name])[counted]) for name in self.names]
        marks = np.concatenate(found)
        what = np.repeat(np.arange(len(found)), [one.size for one in found])
        return pa.table({"what": what, name_mark(0): marks, PART_COLUMN: place_marks(marks, self.parts)})


def count_levels(_: int, found: pa.Table) -> pa.Table:
    """Return how many values each variable has in a part."""
    what, marks = np.asarray(found.column("what").to_numpy()), read_words(found, name_mark(0))
    return make_sums([(one, 1, np.unique(marks[what == one]).size) for one in np.unique(what).tolist()])


@dataclass(frozen=True, slots=True)
class MarkAreas:
    """Return the marks of areas and of those above them, each pair once with its number of records and its part."""

    outline: Outline
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        table = settle_missing(table, self.outline.columns)
        counted = find_counted(self.outline, table)
        above = hash_rows(table, [name for name in [self.outline.above] if name])
        pair = hash_rows(table, [self.outline.finest], above)
        return group_alike([above[counted], pair[counted]], self.parts)


def sum_areas(_: int, marked: pa.Table) -> pa.Table:
    """Return how many records have how many areas within the one above."""
    above, pair = (read_words(marked, name_mark(number)) for number in range(2))
    first = np.unique(pair, return_index=True)[1]
    marks, areas = np.unique(above[first], return_counts=True)
    records = np.bincount(np.searchsorted(marks, above), marked.column(ROWS_COLUMN).to_numpy(), marks.size)
    return make_sums(
        [(0, *one) for one in zip(areas.tolist(), records.astype(np.int64).tolist(), strict=True)]
    )


def settle_missing(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return columns of a table with NaN and empty text as empty values, as a census has them.

    >>> settle_missing(pa.table({"a": ["", "x"], "b": [1, 2]}), ["a"]).to_pydict()
    {'a': [None, 'x']}
    """
    frame = frame_of(table.select([name for name in table.column_names if name in names]))
    changed = [
        pl.col(name).fill_nan(None)
        if kind.is_float()
        else pl.when(pl.col(name) != "").then(pl.col(name)).alias(name)
        for name, kind in frame.schema.items()
        if kind.is_float() or (kind == pl.String and (frame[name] == "").any())
    ]
    return arrow_of(frame.with_columns(changed)) if changed else table.select(frame.columns)


def find_counted(outline: Outline, table: pa.Table) -> "NDArray[np.bool_] | slice":
    """Return which records the exact tables are about, other than those that are published exactly."""
    if not outline.full and not outline.limited.conditions():
        return slice(None)
    conditions = [name for one in (*outline.full, outline.limited) for name in one.conditions()]
    frame = frame_of(table.select(list(dict.fromkeys(conditions))))
    return np.asarray(frame.select(outline.counted()).to_series().to_numpy())


def place_marks(marks: Marks, parts: int) -> NDArray[np.int32]:
    """Return the part of each mark."""
    return np.asarray((marks % np.uint64(parts)).astype(np.int32))


def read_words(table: pa.Table, name: str) -> Marks:
    """Return a column of words."""
    return np.asarray(table.column(name).to_numpy())


def group_alike(marks: Sequence[Marks], parts: int) -> pa.Table:
    """Return rows that differ in some mark, each with its number and with the part of its first mark.

    >>> group_alike([np.array([7, 7, 7], np.uint64), np.array([1, 2, 1], np.uint64)], 2)["rows"].to_numpy().tolist().count(2)
    1
    """
    cell = np.zeros(marks[0].size, np.uint64)
    for mark in marks:
        mix_words(cell, mark)
    _, first, many = np.unique(cell, return_index=True, return_counts=True)
    columns = {name_mark(number): mark[first] for number, mark in enumerate(marks)}
    places = place_marks(columns[name_mark(0)], parts)
    return pa.table({**columns, ROWS_COLUMN: many.astype(np.int64, copy=False), PART_COLUMN: places})


def sum_alike(units: Marks, words: Marks) -> tuple[Marks, Marks]:
    """Return the units, each once and sorted, and the sums of their words.

    >>> [part.tolist() for part in sum_alike(np.array([5, 3, 5], np.uint64), np.array([1, 2, 4], np.uint64))]
    [[3, 5], [2, 5]]
    """
    if not (units[1:] > units[:-1]).all():
        order = np.argsort(units, kind="stable")
        units, words = units[order], words[order]
        edges = np.flatnonzero(np.concatenate([[True], units[1:] != units[:-1]]))
        units, words = units[edges], np.add.reduceat(words, edges)
    return units, words


def find_sums(units: Marks, others: Marks, words: Marks) -> Marks:
    """Return the sum of the words of each unit, 0 for one that is not among the others."""
    others, words = sum_alike(others, words)
    if not others.size:
        return np.zeros(units.size, np.uint64)
    place = np.minimum(np.searchsorted(others, units), others.size - 1)
    return np.where(others[place] == units, words[place], np.uint64(0))


def make_sums(rows: Sequence[tuple[int, int, int]]) -> pa.Table:
    """Return sums as a table."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    return pa.table(dict(zip(SUMS_SCHEMA.names, columns, strict=True)), schema=SUMS_SCHEMA)


# Where the records are read: in memory batch by batch, of which marks are left, or in parts, of which sums come back.

WORDS_BESIDE = 2  # words of a record beside its marks: the number, and the sum of its members
MARK_COPIES = 2  # times that a mark, half a value long, is held: as it is read and as it is sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkedRecords:
    """Released records of a type, to be counted by marks; ``census`` has them in the place of a census."""

    outline: Outline
    census: Census
    records: ReleasedRecords

    @property
    def engine(self) -> Engine:
        """Return where the work runs."""
        return self.records.engine

    def sum_margins(self, sets: Sequence[Shown], signs: Sequence[int]) -> pl.DataFrame:
        """Return how many cells of each set of variables have which count, and how many records are certain."""
        columns = MARK_COPIES * (len(sets) + WORDS_BESIDE)
        parts = self._choose_parts(columns)
        marks, kernel = tuple(sets), SumMargins(tuple(signs))
        if not any(MEMBERS_COLUMN in one for one in sets):
            return self._sum(
                self._map(MarkRecords(self.outline, marks, "", parts or 1), parts), kernel, parts
            )
        record = self.census.schema.record(self.records.record_type)
        if record.id not in self.census.columns(record.name):
            raise InputError(
                f"{record.name} records have no identifier",
                why="an exact number is about their members",
                fix="release the identifier of the records",
            )
        add = AddMembers(marks, parts or 1)
        homes = self._map(MarkRecords(self.outline, marks, record.id, parts or 1), parts)
        members = self._sum_members(record.id, parts or 1)
        empty = add(0, homes.schema.empty_table(), *(flow.schema.empty_table() for flow in members)).schema
        if parts is None:
            # each batch meets the sums of all members, so that of records marks alone are left
            sums = [self._gather_sums(flow) for flow in members]
            return self._sum(homes.map(lambda batch: add(0, batch, *sums), empty), kernel, parts)
        met = self.engine.exchange(homes, *members, by=PART_COLUMN, parts=parts).map(add, empty)
        return self._sum(met.flow(), kernel, parts)

    def count_levels(self, names: Sequence[str]) -> list[int]:
        """Return how many values some variables have."""
        if not names:
            return []
        parts = self._choose_parts(len(names))
        flow = self._map(FindLevels(self.outline, tuple(names), parts or 1), parts)
        found = dict(self._sum(flow, count_levels, parts).select("what", "many").rows())
        return [max(found.get(number, 0), 1) for number in range(len(names))]

    def sum_areas(self) -> list[tuple[int, int]]:
        """Return numbers of areas that stand in no exact table, each with the records for which there are so many."""
        parts = self._choose_parts(MARK_COPIES * 2)
        found = self._sum(self._map(MarkAreas(self.outline, parts or 1), parts), sum_areas, parts)
        return list(found.select("count", "many").rows())

    def _choose_parts(self, columns: int) -> int | None:
        """Return how many parts there are, or None where marks stay in memory."""
        return None if self.records.fits_memory(columns) else self.records.parts(columns)

    def _map(self, kernel: MarkRecords | FindLevels | MarkAreas, parts: int | None) -> Flow:
        """Return what a kernel makes of the records, each with the variables of its household."""
        data, asked = self.records.release.microdata[self.records.record_type], self.outline.columns
        columns = [name for name in asked if name != MEMBERS_COLUMN]
        if isinstance(kernel, MarkRecords) and kernel.unit:
            columns.append(kernel.unit)
        if {*columns} <= {*data.schema.names} or not self.records.home:
            flow = self.engine.stream_released(data)
        elif parts is None:
            flow = self.engine.records(self.census, self.records.record_type, columns)
        else:
            flow = choose_keys(self.records, tuple(columns), parts)
        return flow.map(kernel, kernel(flow.schema.empty_table()).schema)

    def _sum_members(self, unit: str, parts: int) -> list[Flow]:
        """Return a flow of the sums of the members, for each type of them."""
        release, home, found = self.records.release, self.records.record_type, []
        kind = plain_type(release.microdata[home].schema.field(unit).type)
        for other in self.census.schema.records:
            if other.linked_to == home:
                own = [
                    name
                    for name in self.census.columns(other.name)
                    if name in self.outline.members and name not in (other.id, other.household)
                ]
                flow = self.engine.stream_released(release.microdata[other.name])
                kernel = SumMembers(other.household, tuple(own), kind, parts)
                found.append(flow.map(kernel, kernel(flow.schema.empty_table()).schema))
        return found

    def _gather_sums(self, flow: Flow) -> pa.Table:
        found = _gather_freely(flow)
        units, sums = sum_alike(read_words(found, UNIT_COLUMN), read_words(found, MEMBERS_SUM))
        return pa.table({UNIT_COLUMN: units, MEMBERS_SUM: sums})

    def _sum(self, flow: Flow, kernel: PartKernel, parts: int | None) -> pl.DataFrame:
        """Return the sums of marks, whose parts are those of the first mark."""
        if parts is None:
            found = kernel(0, _gather_freely(flow))
        else:
            found = self.engine.exchange(flow, by=PART_COLUMN, parts=parts).map(kernel, SUMS_SCHEMA).gather()
        return frame_of(found).group_by("what", "count").agg(pl.col("many").sum())


def _gather_freely(flow: Flow) -> pa.Table:
    """Collect marks, and return to the system what the batches took, of which they are a small part."""
    found = flow.gather()
    return_free_memory()
    return found


# The sums of which a report tells.


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeSums:
    """What the exact tables of a record type leave open, summed over its cells; None where that is not known.

    ``values`` is the logarithm of the number of ways to assign all values, ``places`` of those to assign places to records
    whose other values are known; ``certain`` records have values that follow from the tables.
    """

    records: int
    certain: int | None
    values: float | None
    places: float | None


def sum_shape(outline: Outline, census: Census, release: Release, engine: Engine) -> ShapeSums:
    """Sum up the shape of released records; ``census`` has them in the place of a census."""
    records = open_records(release, outline.limited.record_type, engine)
    marked = MarkedRecords(outline=outline, census=census, records=records)
    shown = outline.shown
    shared = find_separators(shown)
    tables = [] if shared is None else [*shown, *shared]
    common = frozenset[str].intersection(*shown) if tables else frozenset[str]()
    sets = list(dict.fromkeys([common, *tables]))
    signs = [shown.count(one) - (shared or []).count(one) for one in sets]
    found = marked.sum_margins(sets, signs if tables else [0])
    counted = int(found.filter(pl.col("what") == 0).select(pl.col("count") * pl.col("many")).sum().item())
    choices = _count_choices(marked, counted)
    free = any(ways > 1 for ways, many in choices if many)
    if shared is None:
        return ShapeSums(records=counted, certain=0 if free else None, values=None, places=None)
    logs = {one: list(_log_factorials(found, number)) for number, one in enumerate(sets)}
    # the number of records is the same in all tables, and there is one more of them than of what two share
    values = [float(log_gamma(counted + 1)), *(many * log(ways) for ways, many in choices)]
    values += [-sign * value for one, sign in zip(sets, signs, strict=True) for value in logs[one]]
    places = None
    if len(shown) == 2 and not free:
        moving = max(reversed(shown), key=lambda one: len(one & {*census.schema.spine}))
        places = fsum([*logs[shared[0]], *(-value for value in logs[moving])])
    sure = found.filter(pl.col("what") == CERTAIN).select(pl.col("count") * pl.col("many")).sum().item()
    return ShapeSums(records=counted, certain=0 if free else int(sure), values=fsum(values), places=places)


def _log_factorials(found: pl.DataFrame, number: int) -> list[float]:
    r"""Return $m \ln n!$ for each count n that m cells of a table have."""
    own = found.filter(pl.col("what") == number)
    return list((own["many"].to_numpy() * log_gamma(own["count"].to_numpy() + 1)).tolist())


def _count_choices(marked: MarkedRecords, records: int) -> list[tuple[float, int]]:
    """Return in how many ways the variables that no table shows can be filled in, each with its number of records."""
    outline = marked.outline
    known = {name: count_known_levels(marked.census, outline.limited, name) for name in outline.free}
    asked = [name for name, levels in known.items() if levels is None]
    found = dict(zip(asked, marked.count_levels(asked), strict=True))
    choices = []
    for areas, many in marked.sum_areas() if outline.finest else [(1, records)]:
        ways = float(areas)
        for name in outline.free:
            ways *= known[name] or found[name]
        choices.append((ways, many))
    return choices
