"""Measure population groups in two stages, and make the tables T1 and T2 with the interval of every row."""

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.frames import arrow_of
from stirred.mechanisms.census2020.noise import CellNoise
from stirred.mechanisms.census2020.safetab.groups import (
    REGION_TYPES,
    SET,
    GroupCounts,
    GroupSet,
    PlaceGroups,
    split_sets,
)
from stirred.mechanisms.exhibits import SELECTED_ROWS_KEY

# Sex by age: the finest cells of a group, and the three coarser sets of ages that a group may get.

Ints = NDArray[np.int64]
MAX_AGE = 115
AGE4 = (18, 45, 65)
AGE9 = (5, 18, 25, 35, 45, 55, 65, 75)
AGE23 = (5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
AGE_EDGES = ((), AGE4, AGE9, AGE23)  # by the level of detail: 0 is the total alone


def age_classes(detail: int) -> list[tuple[int, int]]:
    """Return the first and last age of every class.

    >>> age_classes(1)
    [(0, 17), (18, 44), (45, 64), (65, 115)]
    """
    edges = AGE_EDGES[detail]
    return list(zip((0, *edges), (*(edge - 1 for edge in edges), MAX_AGE), strict=True))


def count_cells(detail: int) -> int:
    """Return how many cells a group has: 1, 8, 18 or 46.

    >>> [count_cells(detail) for detail in range(4)]
    [1, 8, 18, 46]
    """
    return 2 * len(age_classes(detail)) if detail else 1


@cache
def map_to_coarser(detail: int) -> Ints:
    """Return the cell of a level of detail that each of the 46 finest cells lies in.

    >>> map_to_coarser(1)[[0, 3, 4, 23]].tolist()
    [0, 0, 1, 4]
    """
    place = np.searchsorted(AGE_EDGES[detail], [first for first, _ in age_classes(3)], side="right")
    return np.concatenate([place, place + len(age_classes(detail))]).astype(np.int64)


@dataclass(frozen=True)
class SexByAge:
    """The 46 cells of sex by 23 ages; a record with another sex or age has none, and is in no table."""

    sex: str
    sexes: tuple[str, ...]
    age: str

    @property
    def number(self) -> int:
        """Return the number of cells, 46."""
        return count_cells(3)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of sex and age."""
        return (self.sex, self.age)

    def expression(self) -> pl.Expr:
        """Return the number of a record's cell, null where it has none."""
        sex = pl.col(self.sex).cast(pl.String)
        first = pl.when(sex == self.sexes[0]).then(0).when(sex == self.sexes[1]).then(len(AGE23) + 1)
        age = pl.col(self.age).cast(pl.Float64, strict=False)
        place = pl.sum_horizontal([(age >= edge).cast(pl.Int64) for edge in AGE23])
        return first + pl.when(age.is_between(0, MAX_AGE)).then(place)


# Measure the groups of one region type and level: the first look, then a total or cells, each count with its noise.
#
# Groups without records that would be suppressed are never drawn: how many of them survive, which ones and with which
# noise is drawn instead, with the law that drawing all of them would give (proof.md, Lemma 4).

FINEST_CELLS = 46


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """The noise of a group set: of the first look, of what follows it, and of groups that get a total without a look."""

    first: CellNoise
    second: CellNoise
    whole: CellNoise
    thresholds: tuple[int, ...]
    cut: int | None = None  # totals up to this one are not shown; None: all are shown

    @property
    def sparse(self) -> bool:
        """Return whether nearly all groups without records vanish, so that they need no draw each."""
        return self.cut is not None and self.cut >= 0 and self.thresholds[0] > 0


@dataclass(frozen=True, slots=True)
class MeasuredGroups:
    """The published part of a group set: totals of groups, rising, and cells of groups by detail."""

    totals: Ints
    total_counts: Ints
    looked: NDArray[
        np.bool_
    ]  # whether a total followed a first look, with the smaller part of the budget for it
    cells: dict[int, tuple[Ints, Ints]]  # by level of detail: the groups, and one row of counts for each


@dataclass(frozen=True, slots=True)
class EmptyGroups:
    """The groups without records that are shown, by their places among all of these, rising, and what was drawn."""

    passing: Ints  # those that pass the first look
    seen: Ints  # how that look sees them
    left: Ints  # those of the others whose total is above the cut
    totals: Ints


def draw_empty(item: GroupSet, present: int, stages: Stages, key: Key) -> EmptyGroups:
    """Draw which groups without records are shown, where so many groups have records."""
    if not stages.sparse:
        return EmptyGroups(*(np.zeros(0, np.int64) for _ in range(4)))
    name, empty = (item.kind.name, item.level), item.number - present
    passing, seen = stages.first.above(key, ("first empty", *name), empty, stages.thresholds[0] - 1)
    cut = -1 if stages.cut is None else stages.cut
    places, noise = stages.second.above(key, ("total empty", *name), empty - len(passing), cut)
    return EmptyGroups(passing, seen, absent_numbers(passing, places), noise)


@dataclass(frozen=True, slots=True)
class GroupSpan:
    """The groups of a set that are measured together: a range of numbers, and how many with records lie before it."""

    first: int
    end: int
    before: int
    empty: EmptyGroups

    def find_absent(self, present: Ints, places: Ints) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the numbers of the absent groups at some places of all absent ones, and which of these lie in the span.

        >>> span = GroupSpan(3, 8, 2, EmptyGroups(*[np.zeros(0, int)] * 4))  # of 0 to 9, where 0, 2, 4 and 5 are present
        >>> span.find_absent(np.array([4, 5]), np.arange(6))
        (array([3, 6, 7]), array([False,  True,  True,  True, False, False]))
        """
        low = self.first - self.before
        inside = (places >= low) & (places < low + self.end - self.first - len(present))
        return self.before + absent_numbers(present - self.before, places[inside]), inside


def measure_groups(
    item: GroupSet,
    counts: GroupCounts,
    detailed: Ints,
    stages: Stages,
    key: Key,
    span: GroupSpan | None = None,
) -> MeasuredGroups:
    """Run both stages; ``detailed`` are the numbers of iterations that get a total without a first look.

    Without a ``span`` all groups are measured. Noise belongs to the number of a group, so spans together give the same.
    """
    name = (item.kind.name, item.level)
    groups, true = counts.totals()
    if span is None:
        span = GroupSpan(0, item.number, 0, draw_empty(item, len(groups), stages, key))
    if not stages.sparse:
        dense = np.zeros(span.end - span.first, np.int64)
        dense[groups - span.first] = true
        groups, true = np.arange(span.first, span.end, dtype=np.int64), dense
    alone = np.isin(groups % max(item.iterations, 1), detailed)
    numbers = groups.astype(np.uint64)
    plain = true[alone] + stages.whole.at(key, ("whole", *name), numbers[alone])
    seen = true[~alone] + stages.first.at(key, ("first", *name), numbers[~alone])
    detail = np.searchsorted(stages.thresholds, seen, side="right")
    low = groups[~alone][detail == 0]
    totals = true[~alone][detail == 0] + stages.second.at(key, ("total", *name), low.astype(np.uint64))
    chosen = {level: groups[~alone][detail == level] for level in (1, 2, 3)}
    if stages.sparse:
        low, totals, chosen = _add_empty(groups, low, totals, chosen, stages, span)
    merged = np.concatenate([groups[alone], low])
    figures = np.concatenate([plain, totals])
    looked = np.concatenate([np.zeros(len(plain), bool), np.ones(len(totals), bool)])
    kept = np.ones(len(merged), bool) if stages.cut is None else figures > stages.cut
    order = np.argsort(merged[kept], kind="stable")
    cells = {
        level: (np.sort(some), _measure_cells(np.sort(some), counts, level, stages, key, name))
        for level, some in chosen.items()
        if len(some)
    }
    return MeasuredGroups(merged[kept][order], figures[kept][order], looked[kept][order], cells)


def _add_empty(
    groups: Ints, low: Ints, totals: Ints, chosen: dict[int, Ints], stages: Stages, span: GroupSpan
) -> tuple[Ints, Ints, dict[int, Ints]]:
    """Add the groups without records that pass the first look, and those whose total is above the cut."""
    number, inside = span.find_absent(groups, span.empty.passing)
    detail = np.searchsorted(stages.thresholds, span.empty.seen[inside], side="right")
    chosen = {level: np.concatenate([some, number[detail == level]]) for level, some in chosen.items()}
    left, inside = span.find_absent(groups, span.empty.left)
    return np.concatenate([low, left]), np.concatenate([totals, span.empty.totals[inside]]), chosen


def absent_numbers(present: Ints, places: Ints) -> Ints:
    """Return the numbers at some places of the rising list of all numbers that are not present.

    >>> absent_numbers(np.array([1, 2, 5]), np.array([0, 1, 2, 3]))
    array([0, 3, 4, 6])
    """
    before = present - np.arange(len(present))
    return places + np.searchsorted(before, places, side="right")


def _measure_cells(
    groups: Ints, counts: GroupCounts, level: int, stages: Stages, key: Key, name: tuple[str, int]
) -> Ints:
    """Return one row of cells for each group: the counts, with noise on every cell."""
    width = count_cells(level)
    rows = np.zeros((len(groups), width), np.int64)
    owner, cell = np.divmod(counts.keys, counts.cells)
    place = np.searchsorted(groups, owner)
    inside = place < len(groups)
    inside[inside] = groups[place[inside]] == owner[inside]
    np.add.at(rows, (place[inside], map_to_coarser(level)[cell[inside]]), counts.counts[inside])
    numbers = (groups[:, None] * FINEST_CELLS + np.arange(width)[None, :]).astype(np.uint64).ravel()
    return rows + stages.second.at(key, ("cells", *name), numbers).reshape(rows.shape)


# The same for counts in parts: what is published of a part is all that leaves it.

MEASURED_SCHEMA = pa.schema(
    [
        (SET, pa.int32()),
        ("detail", pa.int32()),  # 0: a total
        ("group", pa.int64()),
        ("looked", pa.bool_()),
        ("counts", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class MeasurePersons:
    """Measure the groups of every set that lie in a part."""

    sets: tuple[GroupSet, ...]
    stages: tuple[Stages, ...]
    detailed: tuple[Ints, ...]
    empty: tuple[EmptyGroups, ...]
    before: Ints  # groups with records in the parts before, by part and set
    placed: PlaceGroups
    key: Key

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        """Totals and cells, each set in the order of its groups."""
        found = [MEASURED_SCHEMA.empty_table()]
        for place, counts in enumerate(split_sets(table, len(self.sets), self.placed.cells)):
            span = GroupSpan(*self.placed.span(part, place), int(self.before[part, place]), self.empty[place])
            found += pack_measured(
                place,
                measure_groups(
                    self.sets[place], counts, self.detailed[place], self.stages[place], self.key, span
                ),
            )
        return pa.concat_tables(found)


def pack_measured(place: int, made: MeasuredGroups) -> Iterator[pa.Table]:
    """Yield what is published of a set as rows: totals, then cells by level of detail."""
    yield _pack_rows(place, 0, made.totals, made.looked, made.total_counts[:, None])
    for detail, (groups, rows) in made.cells.items():
        yield _pack_rows(place, detail, groups, np.ones(len(groups), bool), rows)


def _pack_rows(place: int, detail: int, groups: Ints, looked: NDArray[np.bool_], rows: Ints) -> pa.Table:
    offsets = np.arange(len(groups) + 1, dtype=np.int32) * rows.shape[1]
    columns = {
        SET: np.full(len(groups), place, np.int32),
        "detail": np.full(len(groups), detail, np.int32),
        "group": groups,
        "looked": looked,
        "counts": pa.ListArray.from_arrays(offsets, rows.ravel()),
    }
    return pa.table(columns, schema=MEASURED_SCHEMA)


def unpack_measured(place: int, table: pa.Table) -> MeasuredGroups:
    """Return what is published of a set from the rows of all parts, in the order of the parts."""

    def rows(detail: int) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        chosen = pc.and_(pc.equal(table.column(SET), place), pc.equal(table.column("detail"), detail))
        some = table.filter(chosen)
        counts = some.column("counts").combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return some.column("group").to_numpy(), counts, some.column("looked").to_numpy().astype(bool)

    groups, totals, looked = rows(0)
    found = {detail: rows(detail) for detail in (1, 2, 3)}
    cells = {
        detail: (some, counts.reshape(len(some), count_cells(detail)))
        for detail, (some, counts, _) in found.items()
        if len(some)
    }
    return MeasuredGroups(groups, totals, looked, cells)


# The published tables T1 and T2 with the variance and interval of every row, and the Bureau's files of them.

T1 = ("region_type", "region", "iteration")
T2 = (*T1, "sex", "age_start", "age_end")
FIGURE_COLUMNS = ("count", "estimate", "standard_error", "variance", "low", "high")
BUREAU_COLUMNS = {
    "region": "REGION_ID",
    "region_type": "REGION_TYPE",
    "iteration": "ITERATION_CODE",
    "age_start": "AGESTART",
    "age_end": "AGEEND",
    "sex": "SEX",
    "count": "COUNT",
}
ALL_AGES = "*"
LISTS_KEY = b"stirred:code lists"
Z95 = 1.959963984540054
CHANCE_ONE_SIDE = Fraction(39, 40)  # P(noise ≤ k) ≥ 0.975 on both sides


@dataclass(frozen=True, slots=True)
class NoisyRows:
    """Counts that have one law of noise: how many independent draws each sums, and the draw."""

    noise: CellNoise
    draws: int = 1

    @property
    def variance(self) -> float:
        """Return the variance of each count."""
        return float(self.noise.variance) * self.draws

    @property
    def half_width(self) -> int:
        """Return half of the 95 % interval: exact for one draw, normal and rounded up for a sum."""
        if self.noise.budget is None:
            return 0
        return self.noise.cut(CHANCE_ONE_SIDE) if self.draws == 1 else ceil(Z95 * self.variance**0.5)

    def figures(self, counts: Ints) -> dict[str, object]:
        """Return the columns of a table: counts with their uncertainty."""
        size = len(counts)
        return {
            "count": counts,
            "estimate": counts.astype(float),
            "standard_error": np.full(size, self.variance**0.5),
            "variance": np.full(size, self.variance),
            "low": np.maximum(counts - self.half_width, 0).astype(float),
            "high": np.maximum(counts + self.half_width, 0).astype(float),
        }


def make_tables(
    found: Sequence[tuple[GroupSet, Stages, MeasuredGroups]],
    sexes: Sequence[str],
    *,
    clamp: bool,
    digest: str,
) -> dict[str, pa.Table]:
    """Return T1 (totals and sums of all groups in T2) and T2 (sex by age, and all ages of each sex)."""
    totals, cells = [_empty_frame(T1)], [_empty_frame(T2)]
    for item, stages, made in found:
        for looked, noise in ((False, stages.whole), (True, stages.second)):
            some = made.looked == looked
            counts = _clamp(made.total_counts[some], clamp=clamp)
            totals.append(_frame_rows(item, made.totals[some], NoisyRows(noise).figures(counts)))
        for detail, (groups, rows) in made.cells.items():
            rows = _clamp(rows, clamp=clamp)
            classes = len(age_classes(detail))
            totals.append(
                _frame_rows(item, groups, NoisyRows(stages.second, 2 * classes).figures(rows.sum(axis=1)))
            )
            by_sex = rows.reshape(len(groups) * 2, classes)
            marginal = NoisyRows(stages.second, classes).figures(by_sex.sum(axis=1))
            cells.append(_frame_rows(item, groups, marginal, _name_cells(sexes, [(ALL_AGES, ALL_AGES)])))
            inner = [(str(first), str(last)) for first, last in age_classes(detail)]
            cells.append(
                _frame_rows(
                    item, groups, NoisyRows(stages.second).figures(rows.ravel()), _name_cells(sexes, inner)
                )
            )
    order = {name: place for place, name in enumerate(REGION_TYPES)}
    made_tables = {}
    for name, frames in (("t1", totals), ("t2", cells)):
        kind = pl.col("region_type").replace_strict(order, return_dtype=pl.Int64)
        age = [pl.col("sex"), pl.col("age_start").cast(pl.Int64, strict=False)] if name == "t2" else []
        table = arrow_of(pl.concat(frames).sort([kind, "region", "iteration", *age], nulls_last=False))
        made_tables[name] = table.replace_schema_metadata(
            {LISTS_KEY: digest.encode(), SELECTED_ROWS_KEY.encode(): b"yes"}
        )
    return made_tables


def _name_cells(sexes: Sequence[str], classes: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Return the cells of one group, in the order of its row."""
    rows = [(sex, first, last) for sex in sexes for first, last in classes]
    return pl.DataFrame(rows, schema=T2[3:], orient="row")


def _clamp(counts: Ints, *, clamp: bool) -> Ints:
    return np.maximum(counts, 0) if clamp else counts


def _frame_rows(
    item: GroupSet, groups: Ints, figures: Table[str, object], names: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return rows of a table: one for each group, or one for each group and name."""
    width = 1 if names is None else names.height
    region, iteration = np.divmod(np.repeat(groups, width), max(item.iterations, 1))
    columns: dict[str, object] = {
        "region_type": pl.Series([item.kind.name], dtype=pl.String).new_from_index(0, len(region)),
        "region": pl.Series(item.regions, dtype=pl.String).gather(region),
        "iteration": pl.Series(item.mapping.codes, dtype=pl.String).gather(iteration),
    }
    if names is not None:
        place = np.tile(np.arange(width), len(groups))
        columns |= {name: names[name].gather(place) for name in names.columns}
    return pl.DataFrame(columns | dict(figures))


def _empty_frame(by: Sequence[str]) -> pl.DataFrame:
    numbers = {name: pl.Float64() for name in FIGURE_COLUMNS}
    return pl.DataFrame(schema={name: pl.String() for name in by} | numbers | {"count": pl.Int64()})


def write_files(tables: Table[str, pa.Table], out: Path, digest: str) -> tuple[Path, ...]:
    """Write T1 and T2 as the Bureau does, with the digest of the code lists beside T1; return the paths."""
    written = []
    for name, table in tables.items():
        columns = [column for column in BUREAU_COLUMNS if column in table.column_names]
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        rows = to_frame(table.select(columns)).rename({old: BUREAU_COLUMNS[old] for old in columns})
        rows.write_csv(folder / "part-00000.csv", separator="|")
        written.append(folder)
    lists = out / "t1.lists"
    lists.write_text(f"{digest}\n", encoding="ascii")
    return (*written, lists)


def to_frame(table: pa.Table) -> pl.DataFrame:
    """Return a published table as a polars frame."""
    return pl.DataFrame(pl.from_arrow(table))


def sum_groups(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the sum of the cells of each group, without the rows of all ages."""
    inner = cells.filter(pl.col("age_start") != ALL_AGES)
    return inner.group_by(T1, maintain_order=True).agg(pl.col("count").sum().alias("sum"))
