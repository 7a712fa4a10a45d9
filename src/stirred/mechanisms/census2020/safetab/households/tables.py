"""Measure households of the groups that SafeTab-P published, and make the tables T3 and T4.

The level of a group is the number of thresholds that its published total reaches. At a level every household of a group
falls into exactly one cell, so that it changes one count of the group by 1 (SafeTab-H documentation, Section 4).

Census Bureau, DAS_2020_DDHCB_Production_Code (SafeTab-H 3.0.0), production configuration: ρ² per household added or
removed.

Where the census has a record for each household with the householder's codes, that record is counted. Else the codes are
those of the person who is the householder; a household in which not exactly one person is, is in no group, so that a
household counts at most once whatever its records say.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.census.readers.delimited import guess_separator, read_header
from stirred.census.readers.sources import redact_errors
from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.engine.tables import PART_COLUMN, PlaceRows, to_plain
from stirred.errors import DataError, InputError, did_you_mean
from stirred.frames import arrow_of, collect_frame, frame_of
from stirred.languages import Phrase
from stirred.mechanisms.census2020.noise import CellNoise
from stirred.mechanisms.census2020.safetab.base import ProductSettings
from stirred.mechanisms.census2020.safetab.groups import (
    BYTES_PER_RECORD,
    COUNT_SCHEMA,
    REGION_TYPES,
    CountsInParts,
    GroupCounts,
    GroupSet,
    PlaceGroups,
    Tally,
    count_groups,
    place_counts,
    split_sets,
)
from stirred.mechanisms.exhibits import SELECTED_ROWS_KEY
from stirred.mechanisms.release import Check
from stirred.roots import require_readable

if TYPE_CHECKING:
    from stirred.census import Census


# The cells of T3 (household type) and T4 (tenure) at every statistics level, and the sums that are published with them.

Ints = NDArray[np.int64]
TableName = Literal["T3", "T4"]
TYPES, TENURES = 5, 4  # codes 1 to 5 of a household's type, 1 to 4 of its tenure; 0: none of these


@dataclass(frozen=True)
class StatisticsLevel:
    """One level: the file it is published in, the cell of each source code, and the sums of these cells."""

    file: str
    cells: Mapping[int, tuple[int, ...]]  # measured cell → the source codes that it counts
    sums: Mapping[int, tuple[int, ...]]  # cell of a sum → the measured cells that it adds

    @cached_property
    def published_cells(self) -> tuple[int, ...]:
        """Return all published cells, rising."""
        return tuple(sorted((*self.cells, *self.sums)))

    @cached_property
    def counting_matrix(self) -> Ints:
        """Return a 0/1 matrix: one row per measured cell, one column per source code that it counts."""
        codes = 1 + max(code for source in self.cells.values() for code in source)
        return np.array(
            [[code in source for code in range(codes)] for source in self.cells.values()], np.int64
        )

    @cached_property
    def adding_matrix(self) -> Ints:
        """Return a 0/1 matrix: one row per published cell, one column per measured cell that it adds."""
        measured = tuple(self.cells)
        parts = {cell: (cell,) for cell in measured} | dict(self.sums)
        return np.array(
            [[part in parts[cell] for part in measured] for cell in self.published_cells], np.int64
        )

    @cached_property
    def terms(self) -> Ints:
        """Return how many measured cells each published one adds, hence the factor of its variance."""
        return np.asarray(self.adding_matrix.sum(axis=1), np.int64)


T3 = (
    StatisticsLevel("T03001", {0: (1, 2, 3, 4, 5)}, {}),
    StatisticsLevel("T03002", {1: (1, 2, 3), 6: (4, 5)}, {0: (1, 6)}),
    StatisticsLevel(
        "T03003",
        {2: (1,), 3: (2, 3), 7: (4,), 8: (5,)},
        {0: (2, 3, 7, 8), 1: (2, 3), 6: (7, 8)},
    ),
    StatisticsLevel(
        "T03004",
        {2: (1,), 4: (2,), 5: (3,), 7: (4,), 8: (5,)},
        {0: (2, 4, 5, 7, 8), 1: (2, 4, 5), 3: (4, 5), 6: (7, 8)},
    ),
)
T4 = (
    StatisticsLevel("T04001", {0: (1, 2, 3, 4)}, {}),
    StatisticsLevel("T04002", {1: (1,), 2: (2,), 3: (3, 4)}, {0: (1, 2, 3)}),
)
LEVELS: Mapping[TableName, tuple[StatisticsLevel, ...]] = {"T3": T3, "T4": T4}
LABELS: Mapping[TableName, Mapping[int, str]] = {
    "T3": {
        0: "all households",
        1: "family households",
        2: "married couple families",
        3: "other families",
        4: "male householder, no spouse",
        5: "female householder, no spouse",
        6: "nonfamily households",
        7: "householder living alone",
        8: "householder not living alone",
    },
    "T4": {
        0: "all households",
        1: "owned with a mortgage",
        2: "owned free and clear",
        3: "rented or no rent paid",
    },
}


def find_levels(totals: Ints, thresholds: tuple[int, ...]) -> Ints:
    """Return the number of thresholds that each published total reaches.

    >>> find_levels(np.array([-3, 10, 25, 99]), (10, 20, 30)).tolist()
    [0, 1, 2, 3]
    """
    return np.searchsorted(np.array(thresholds, np.int64), totals, side="right").astype(np.int64)


@dataclass(frozen=True, slots=True)
class TypeAndTenure:
    """A household's type and tenure as one number, type · 5 + tenure; a table that is not made has an empty column.

    ``types`` and ``tenures`` name the source code of each level of the census; without them a level is its own code. A value
    that has no code is 0, and a household without either is in no universe.
    """

    type: str
    tenure: str
    types: tuple[tuple[str, int], ...] = ()
    tenures: tuple[tuple[str, int], ...] = ()

    @property
    def number(self) -> int:
        """Return how many joint numbers there are."""
        return (TYPES + 1) * (TENURES + 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that it reads."""
        return tuple(filter(None, (self.type, self.tenure)))

    def expression(self) -> pl.Expr:
        """Return the joint number, null for a household in no universe."""
        kind, tenure = (
            _encode_column(self.type, self.types, TYPES),
            _encode_column(self.tenure, self.tenures, TENURES),
        )
        joint = kind * (TENURES + 1) + tenure
        return pl.when(joint > 0).then(joint)

    def counts(self, table: TableName, joint: Ints) -> Ints:
        """Return counts by type (T3) or by tenure (T4) from counts by joint number, one row a group."""
        cube = joint.reshape(-1, TYPES + 1, TENURES + 1)
        return np.asarray(cube.sum(axis=2 if table == "T3" else 1), np.int64)


def _encode_column(column: str, levels: tuple[tuple[str, int], ...], most: int) -> pl.Expr:
    if not column:
        return pl.lit(0, dtype=pl.Int64)
    text = pl.col(column).cast(pl.String)
    if levels:
        named = dict(levels)
        return text.replace_strict(
            list(named), list(named.values()), default=0, return_dtype=pl.Int64
        ).fill_null(0)
    code = text.cast(pl.Int64, strict=False)
    return pl.when(code.is_between(1, most)).then(code).otherwise(0)


# The settings of published products as exact constants: the Detailed DHC-B of 2020.

Place = tuple[TableName, str, int]  # a table, a region type and a level
TABLES: tuple[TableName, ...] = ("T3", "T4")
THRESHOLDS_PER_TABLE: Mapping[TableName, int] = {"T3": 3, "T4": 1}  # how many thresholds a table has
PLACES: tuple[Place, ...] = tuple(
    (table, kind, level) for table in TABLES for kind in REGION_TYPES for level in (1, 2)
)


def _preset_budget(kind: str, level: int) -> Fraction:
    if level == 1:
        return Fraction(0) if kind == "AIANNH" else Fraction("0.006915")
    return Fraction("1.9208") if REGION_TYPES[kind].fine else Fraction("0.142869")


def _preset_thresholds(kind: str, level: int) -> tuple[int, ...]:
    fine = REGION_TYPES[kind].fine
    if level == 2:
        return (471, 971, 6971) if fine else (971, 4971, 19971)
    if kind == "AIANNH":
        return (971, 4971, 19971)
    return (4971, 19971, 149971) if fine else (4971, 19971, 149970)


DDHC_B_2020: ProductSettings[Place] = ProductSettings(
    budgets={place: _preset_budget(*place[1:]) for place in PLACES},
    thresholds={place: _preset_thresholds(*place[1:])[: THRESHOLDS_PER_TABLE[place[0]]] for place in PLACES},
)
PRESETS: Mapping[str, ProductSettings[Place]] = {"": ProductSettings(), "ddhc-b-2020": DDHC_B_2020}


def parse_places(text: str) -> tuple[Place, ...]:
    """Return the tables, region type and level that a text names; without a table, both tables.

    >>> parse_places("T3-PR-STATE-2")
    (('T3', 'PR-STATE', 2),)
    >>> len(parse_places("USA-1"))
    2
    """
    table, _, rest = text.partition("-")
    named = tuple(name for name in TABLES if name == table)
    name, _, level = (rest if named else text).rpartition("-")
    if name not in REGION_TYPES or level not in ("1", "2"):
        known = [f"{table}-{name}-{level}" for table, name, level in PLACES]
        raise InputError(
            f"{text!r} is no table, region type and level",
            why="a budget and thresholds belong to one of each",
            fix=did_you_mean(text, known),
        )
    return tuple((table, name, int(level)) for table in named or TABLES)


# Read the published totals of SafeTab-P (T1): a packet, a table of one, or a file in the Bureau's format; all public.

LISTS_KEY = b"stirred:code lists"  # the key of the code lists' digest in the metadata of a T1 table
LISTS_FILE = "t1.lists"  # the file with this digest that lies beside a T1 in text
COLUMN_NAMES = {
    "REGION_ID": "region",
    "REGION_TYPE": "region_type",
    "ITERATION_CODE": "iteration",
    "COUNT": "count",
}
TOTALS_PATHS = (
    "data*/mechanism/t1.parquet",
    "tables/t1.parquet",
    "t1.parquet",
    "t1/*.csv",
    "t1.csv",
    "t1.txt",
    "pop-group-totals.txt",
)


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """The published total of every group that SafeTab-P published, and the digest of the code lists it was made with."""

    frame: pl.DataFrame  # region_type, region, iteration (text), count
    lists: str = ""

    def of(self, kind: str, iterations: tuple[str, ...]) -> tuple[tuple[str, ...], Ints, Ints]:
        """Return the regions of a type, the keys region · I + iteration of its groups, and their totals.

        Groups whose iteration is not one of ``iterations`` are left out.
        """
        number = pl.DataFrame({"iteration": iterations, "place": np.arange(len(iterations), dtype=np.int64)},
                              schema={"iteration": pl.String, "place": pl.Int64})  # fmt: skip
        rows = self.frame.filter(pl.col("region_type") == kind).join(number, on="iteration", how="inner")
        regions = tuple(rows["region"].unique().sort())
        region = pl.DataFrame({"region": regions, "number": np.arange(len(regions), dtype=np.int64)},
                              schema={"region": pl.String, "number": pl.Int64})  # fmt: skip
        key = (pl.col("number") * len(iterations) + pl.col("place")).alias("key")
        found = rows.join(region, on="region", how="inner").select(key, "count").sort("key")
        return regions, found["key"].to_numpy(), found["count"].to_numpy()

    def digest(self) -> str:
        """Return the SHA-256 of the totals, whatever order they were given in."""
        rows = self.frame.sort("region_type", "region", "iteration")
        return sha256(rows.write_csv(separator="|").encode()).hexdigest()


def require_there(path: Path) -> None:
    """Raise an error if there is nothing at the path; what is there may still be made."""
    if not path.exists():
        raise InputError(
            "the totals are not there",
            why=f"there is no {path.name}",
            fix="--totals a packet of stirred safetab-p, its table t1, or a pop-group-totals.txt",
        )


def is_made(path: Path) -> bool:
    """Return whether a path leads to totals already; in a plan an earlier [[mechanism]] makes them."""
    return path.is_file() or bool(_find_files(path))


def read_totals(path: Path) -> GroupTotals:
    """Return the totals at a path."""
    require_there(path)
    files = [path] if path.is_file() else _find_files(path)
    if not files:
        raise InputError(
            "the totals are not there",
            why=f"{path.name} holds no table t1",
            fix="--totals a packet of stirred safetab-p, its table t1, or a pop-group-totals.txt",
        )
    with redact_errors("totals"):
        frame = pl.concat([_read_rows(require_readable(file)) for file in files])
    _check_rows(frame)
    return GroupTotals(frame, _read_digest(files[0]))


def _find_files(folder: Path) -> list[Path]:
    public = folder / "public" if (folder / "public").is_dir() else folder
    for place in TOTALS_PATHS:
        found = sorted(file for file in public.glob(place) if file.name != "headers.csv")
        if found:
            several = len(found) > 1 and place.endswith(".parquet")
            if several:
                raise InputError(
                    "the packet has several tables t1",
                    why=f"{len(found)} of its mechanisms made one",
                    fix="--totals the table itself: " + str(found[0].relative_to(folder)),
                )
            return found
    return []


def _read_rows(file: Path) -> pl.DataFrame:
    if file.suffix.lower() in (".parquet", ".pq"):
        frame = pl.scan_parquet(file)
    else:
        separator = guess_separator(file)
        named = set(read_header(file, separator)) & {*COLUMN_NAMES, *COLUMN_NAMES.values()}
        header = _read_header(file) if not named else None
        frame = pl.scan_csv(
            file, separator=separator, infer_schema=False, has_header=header is None, new_columns=header
        )
    there = frame.collect_schema().names()
    frame = frame.rename(
        {name: own for name, own in COLUMN_NAMES.items() if name in there and own not in there}
    )
    lacking = [name for name in COLUMN_NAMES.values() if name not in frame.collect_schema().names()]
    if lacking:
        raise DataError(
            f"the totals lack {', '.join(lacking)}",
            why=f"{file.name} must have the columns of SafeTab-P's T1",
            fix=f"first line: {'|'.join(COLUMN_NAMES)}",
        )
    text = [pl.col(name).cast(pl.String) for name in ("region_type", "region", "iteration")]
    return collect_frame(frame.select(*text, pl.col("count").cast(pl.Int64, strict=False)))


def _read_header(file: Path) -> list[str]:
    """Return the names of the columns where a program wrote them to a file of their own."""
    beside = file.with_name("headers.csv")
    return read_header(beside, "|") if beside.is_file() else list(COLUMN_NAMES)


def _check_rows(frame: pl.DataFrame) -> None:
    problems = {
        "have no whole number as their count": int(frame["count"].null_count()),
        "have an unknown region type": int((~frame["region_type"].is_in(list(REGION_TYPES))).sum()),
        "lack a region or an iteration": int(
            frame.select(pl.any_horizontal(pl.col("region", "iteration").fill_null("") == "").sum()).item()
        ),
        "stand there twice": frame.height
        - frame.select("region_type", "region", "iteration").unique().height,
    }
    for words, number in problems.items():
        if number:
            raise DataError(
                f"{number:,} of the totals {words}",
                why="every population group has one total",
                fix=f"give the T1 that SafeTab-P wrote; region types are {', '.join(REGION_TYPES)}",
            )


def _read_digest(file: Path) -> str:
    """Return the digest of the code lists that a T1 carries, empty where it carries none."""
    if file.suffix.lower() in (".parquet", ".pq"):
        return str((pq.read_schema(file).metadata or {}).get(LISTS_KEY, b"").decode())
    for side in (file.with_name(LISTS_FILE), file.parent.parent / LISTS_FILE):
        if side.is_file():
            words = side.read_text(encoding="utf-8").split()
            return words[0] if words else ""
    return ""


# Count households by the groups of their householder, each household once, on every engine.


def count_households(
    census: "Census", tally: Tally, *, record_type: str, link: str, engine: Engine | None = None
) -> list[GroupCounts] | CountsInParts:
    """Return the counts of every set; ``link`` names a person's household, empty where households are counted."""
    engine = engine or Local()
    if not link:
        return count_groups(census, tally, record_type=record_type, engine=engine)
    columns = list(dict.fromkeys([*tally.columns, link]))
    size = BYTES_PER_RECORD * census.count(record_type)
    if engine.fits(size):
        frame = keep_single(census.scan(record_type, columns, ordered=False), tally, link)
        found = tally.expand_groups(collect_frame(tally.group_records(frame), streaming=True))
        return [GroupCounts(keys, counts, tally.cells.number) for keys, counts in found]
    flow = engine.records(census, record_type, columns)
    chosen = flow.map(HouseholdersOfBatch(tally), flow.schema)
    parts = engine.parts_for(size)
    placed = PlaceRows((link,), parts)
    met = engine.exchange(chosen.map(placed, placed.schema(flow.schema)), by=PART_COLUMN, parts=parts)
    made = place_counts(met.map(CountHouseholds(tally, link), COUNT_SCHEMA).flow(), tally, engine, parts)
    met.drop()
    return made


def filter_householders(frame: pl.LazyFrame, tally: Tally) -> pl.LazyFrame:
    """Return the persons who are householders."""
    for name, levels in tally.where:
        frame = frame.filter(pl.col(name).cast(pl.String).is_in([str(level) for level in levels]))
    return frame


def keep_single(frame: pl.LazyFrame, tally: Tally, link: str) -> pl.LazyFrame:
    """Return the householders of households that have exactly one."""
    return filter_householders(frame, tally).filter(pl.len().over(link) == 1)


@dataclass(frozen=True, slots=True)
class HouseholdersOfBatch:
    """Select the householders of a batch."""

    tally: Tally

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same columns."""
        return to_plain(
            arrow_of(collect_frame(filter_householders(frame_of(table).lazy(), self.tally)))
        ).cast(table.schema)


@dataclass(frozen=True, slots=True)
class CountHouseholds:
    """Count the keys of a part, in which all persons of a household meet."""

    tally: Tally
    link: str

    def __call__(self, _part: int, table: pa.Table) -> pa.Table:
        """One row for each key."""
        frame = frame_of(table.drop_columns([PART_COLUMN])).lazy()
        return self.tally(arrow_of(collect_frame(keep_single(frame, self.tally, self.link))))


# Measure the groups that SafeTab-P published: counts at their statistics level, noise on every cell, then the sums.

CELLS_PER_GROUP = (
    9  # more than any cell number of T3 or T4: the place of a count in its noise is group · 9 + cell
)
GROUPS_PER_BLOCK = 1 << 18  # groups held as dense counts at once
VARIABLES = ("region_type", "region", "iteration")
ROW_SCHEMA = pl.Schema(
    {
        "region_type": pl.String(),
        "region": pl.String(),
        "iteration": pl.String(),
        "level": pl.Int64(),
        "cell": pl.Int64(),
        "count": pl.Int64(),
        "terms": pl.Int64(),
        "file": pl.String(),
    }
)


@dataclass(frozen=True)
class PublishedGroups:
    """The groups of one region type and level that SafeTab-P published, rising, with their totals."""

    item: GroupSet
    groups: Ints
    totals: Ints


@dataclass(frozen=True)
class Measurement:
    """One table at one region type and level: its thresholds, its noise, and whether negative counts are cut to 0."""

    table: TableName
    thresholds: tuple[int, ...]
    noise: CellNoise
    clamp: bool = False

    def rows(
        self, published: PublishedGroups, counts: GroupCounts, cells: TypeAndTenure, key: Key
    ) -> Iterator[pl.DataFrame]:
        """Yield the published rows, block by block, with their counts and how many cells each adds."""
        for number, groups, noisy in self.measure(published, counts, cells, key):
            yield self.frame(published.item, number, groups, noisy)

    def measure(
        self, published: PublishedGroups, counts: GroupCounts, cells: TypeAndTenure, key: Key
    ) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield, block by block, statistics levels with their groups and one row of published cells for each."""
        label = (self.table, published.item.kind.name, str(published.item.level))
        for start in range(0, len(published.groups), GROUPS_PER_BLOCK):
            groups = published.groups[start : start + GROUPS_PER_BLOCK]
            source = cells.counts(self.table, dense_counts(groups, counts))
            reached = find_levels(published.totals[start : start + GROUPS_PER_BLOCK], self.thresholds)
            for number, level in enumerate(LEVELS[self.table]):
                chosen = np.flatnonzero(reached == number)
                if len(chosen):
                    noisy = self.add_noise(level, groups[chosen], source[chosen], key, label)
                    yield number, groups[chosen], noisy

    def add_noise(
        self, level: StatisticsLevel, groups: Ints, source: Ints, key: Key, label: tuple[str, ...]
    ) -> Ints:
        """Return the cells of these groups as they are published: noise, cut, then sums."""
        measured = source @ level.counting_matrix.T
        places = groups[:, None] * CELLS_PER_GROUP + np.array(list(level.cells), np.int64)
        noise = self.noise.at(key, label, places.ravel().astype(np.uint64)).reshape(measured.shape)
        found = measured + noise
        if self.clamp:
            found = np.maximum(found, 0)  # before the sums, which stay sums
        return found @ level.adding_matrix.T

    def frame(self, item: GroupSet, number: int, groups: Ints, noisy: Ints) -> pl.DataFrame:
        """Return the published rows of groups at a statistics level."""
        level = LEVELS[self.table][number]
        cells, rows = len(level.published_cells), len(groups)
        place = np.repeat(groups, cells)
        regions, iterations = (
            pl.Series(item.regions, dtype=pl.String),
            pl.Series(item.mapping.codes, dtype=pl.String),
        )
        return pl.DataFrame(
            {
                "region_type": pl.repeat(item.kind.name, rows * cells, eager=True, dtype=pl.String),
                "region": regions.gather(place // item.iterations),
                "iteration": iterations.gather(place % item.iterations),
                "level": pl.repeat(item.level, rows * cells, eager=True, dtype=pl.Int64),
                "cell": np.tile(np.array(level.published_cells, np.int64), rows),
                "count": noisy.ravel(),
                "terms": np.tile(level.terms, rows),
                "file": pl.repeat(level.file, rows * cells, eager=True, dtype=pl.String),
            },
            schema=ROW_SCHEMA,
        )


def measure_rows(
    groups: Sequence[PublishedGroups],
    counts: Sequence[GroupCounts],
    cells: TypeAndTenure,
    measurements: Mapping[Place, Measurement],
    key: Key,
) -> dict[TableName, pl.DataFrame]:
    """Return the published rows of each table that the census has the column for."""
    tables: tuple[tuple[TableName, str], ...] = (("T3", cells.type), ("T4", cells.tenure))
    found: dict[TableName, pl.DataFrame] = {}
    for table, column in tables:
        if not column:
            continue
        frames = [pl.DataFrame(schema=ROW_SCHEMA)]
        for item, own in zip(groups, counts, strict=True):
            made = measurements.get((table, item.item.kind.name, item.item.level))
            if made is not None:
                frames += made.rows(item, own, cells, key)
        found[table] = pl.concat(frames)
    return found


# The same for counts in parts: what is published of a part is all that leaves it.

MEASURED_SCHEMA = pa.schema(
    [("place", pa.int32()), ("level", pa.int32()), ("group", pa.int64()), ("counts", pa.list_(pa.int64()))]
)


@dataclass(frozen=True)
class MeasureHouseholds:
    """Measure the published groups of a part for every table, region type and level."""

    groups: tuple[PublishedGroups, ...]
    measured: tuple[tuple[int, Measurement], ...]  # with the place of their groups
    cells: TypeAndTenure
    placed: PlaceGroups
    key: Key

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        """One row for each group and table, with its published cells."""
        counts = split_sets(table, len(self.groups), self.placed.cells)
        found = [MEASURED_SCHEMA.empty_table()]
        for place, (number, made) in enumerate(self.measured):
            whole = self.groups[number]
            low, high = np.searchsorted(whole.groups, self.placed.span(part, number))
            here = PublishedGroups(whole.item, whole.groups[low:high], whole.totals[low:high])
            for level, groups, rows in made.measure(here, counts[number], self.cells, self.key):
                offsets = np.arange(len(groups) + 1, dtype=np.int32) * rows.shape[1]
                columns = {
                    "place": np.full(len(groups), place, np.int32),
                    "level": np.full(len(groups), level, np.int32),
                    "group": groups,
                    "counts": pa.ListArray.from_arrays(offsets, rows.ravel()),
                }
                found.append(pa.table(columns, schema=MEASURED_SCHEMA))
        return pa.concat_tables(found)


def measure_in_parts(
    groups: Sequence[PublishedGroups],
    counts: CountsInParts,
    cells: TypeAndTenure,
    measurements: Mapping[Place, Measurement],
    key: Key,
) -> dict[TableName, pl.DataFrame]:
    """Return the same rows as ``measure_rows`` with the noise drawn in the parts."""
    tables: tuple[tuple[TableName, str], ...] = (("T3", cells.type), ("T4", cells.tenure))
    found = {table: [pl.DataFrame(schema=ROW_SCHEMA)] for table, column in tables if column}
    measured = [
        (number, made)
        for table in found
        for number, item in enumerate(groups)
        if (made := measurements.get((table, item.item.kind.name, item.item.level))) is not None
    ]
    kernel = MeasureHouseholds(tuple(groups), tuple(measured), cells, counts.placed, key)
    rows = counts.parts.map(kernel, MEASURED_SCHEMA).gather()
    counts.parts.drop()
    for place, (number, made) in enumerate(measured):
        for level in range(len(LEVELS[made.table])):
            some = rows.filter(
                pc.and_(pc.equal(rows.column("place"), place), pc.equal(rows.column("level"), level))
            )
            if some.num_rows:
                noisy = some.column("counts").combine_chunks().flatten().to_numpy()
                frame = made.frame(groups[number].item, level, some.column("group").to_numpy(), noisy)
                found[made.table].append(frame)
    return {table: pl.concat(frames) for table, frames in found.items()}


def check_rows(rows: Mapping[TableName, pl.DataFrame], totals: GroupTotals) -> tuple[Check, ...]:
    """Check that only groups of the totals are published, each in one file, and that sums are sums."""
    groups = totals.frame.select(VARIABLES)
    found = []
    for table, frame in rows.items():
        own = frame.select(*VARIABLES, "file").unique()
        once = own.height == own.select(VARIABLES).unique().height
        known = own.join(groups, on=list(VARIABLES), how="anti").is_empty()
        measured = frame.filter(pl.col("terms") == 1)
        parts = measured.group_by(*VARIABLES).agg(pl.col("count").sum().alias("sum"))
        whole = frame.filter(pl.col("cell") == 0).join(parts, on=list(VARIABLES), how="left")
        adds = bool((whole["count"] == whole["sum"]).all())
        told = Phrase("safetab_h.check.groups", table=table), Phrase("safetab_h.check.sums", table=table)
        found.append(Check(invariant=told[0], kept=once and known, numbers=own.height))
        found.append(Check(invariant=told[1], kept=adds, numbers=whole.height))
    return tuple(found)


def dense_counts(groups: Ints, counts: GroupCounts) -> Ints:
    """Return the counts of these groups, rising, by cell; leave counts of other groups out."""
    found = np.zeros((len(groups), counts.cells), np.int64)
    first, last = np.searchsorted(counts.keys // counts.cells, [groups[0], groups[-1] + 1])
    keys = counts.keys[first:last]
    owner, cell = np.divmod(keys, counts.cells)
    place = np.searchsorted(groups, owner)
    known = groups[place] == owner
    found[place[known], cell[known]] = counts.counts[first:last][known]
    return found


# What is published: T3 and T4 with the interval of every row, and the same counts in the files of the Bureau's program.

Z95 = 1.959963984540054
LAPLACE95 = 2.1183  # ln 20 / √2: of one Laplace draw, which reaches farther than a sum
CHANCE_ONE_SIDE = Fraction(39, 40)
MAX_LISTED_DEVIATION = 10_000  # a standard deviation beyond which no law is listed
REGION_ORDER = {name: place for place, name in enumerate(REGION_TYPES)}


def cell_column(table: TableName) -> str:
    """Return the name of the column with the cell of a table."""
    return f"{table.lower()}_cell"


def half_width(noise: CellNoise, terms: int) -> float:
    """Return a whole number that the noise of a sum of cells exceeds with a probability of 5 % at most.

    It is exact for one cell; a sum of Gaussian noise is taken as normal and rounded up, that of geometric noise is computed.
    Noise so wide that its steps do not matter is taken as continuous.
    """
    if noise.budget is None:
        return 0.0
    spread = float(terms * noise.variance) ** 0.5
    if terms == 1 and spread < MAX_LISTED_DEVIATION:
        return float(noise.cut(CHANCE_ONE_SIDE))
    if noise.definition == "zcdp" or spread >= MAX_LISTED_DEVIATION:
        return float(ceil((Z95 if noise.definition == "zcdp" else LAPLACE95) * spread))
    reach = int(40 * noise.scale * terms**0.5) + 8
    steps = np.abs(np.arange(-reach, reach + 1))
    one = np.exp(-steps / noise.scale)
    size = 1 << (terms * (len(one) - 1) + 1).bit_length()
    law = np.fft.irfft(np.fft.rfft(one / one.sum(), size) ** terms, size)
    middle = terms * reach
    inside = np.cumsum(np.concatenate([law[middle : middle + 1], 2 * law[middle + 1 : 2 * middle + 1]]))
    return float(np.argmax(inside >= 0.95))


def make_table(table: TableName, rows: pl.DataFrame, noises: Mapping[Place, CellNoise]) -> pa.Table:
    """Return the rows with their uncertainty, sorted; ``rows`` have the level of their iterations."""
    errors = pl.DataFrame(
        [
            (name, level, terms, float(terms * noise.variance), half_width(noise, terms))
            for (asked, name, level), noise in noises.items()
            if asked == table
            for terms in sorted({int(term) for item in LEVELS[table] for term in item.terms})
        ],
        schema={"region_type": pl.String, "level": pl.Int64, "terms": pl.Int64, "variance": pl.Float64, "width": pl.Float64},
        orient="row",
    )  # fmt: skip
    count = pl.col("count").cast(pl.Float64)
    found = (
        rows.join(errors, on=["region_type", "level", "terms"], how="left")
        .sort(*row_order())
        .select(
            *VARIABLES,
            pl.col("cell").alias(cell_column(table)),
            "count",
            count.alias("estimate"),
            pl.col("variance").sqrt().alias("standard_error"),
            (count - pl.col("width")).clip(lower_bound=0.0).alias("low"),
            (count + pl.col("width")).clip(lower_bound=0.0).alias("high"),
            "variance",
        )
    )
    # a group without a published total is not shown, so a missing row is no count of 0
    return arrow_of(found).replace_schema_metadata({SELECTED_ROWS_KEY.encode(): b"yes"})


def row_order() -> tuple[pl.Expr, ...]:
    """Return the order of rows: by region type, region, iteration and cell."""
    kind = pl.col("region_type").replace_strict(REGION_ORDER, return_dtype=pl.Int64)
    return (kind, pl.col("region"), pl.col("iteration"), pl.col("cell"))


def write_files(out: Path, rows: Mapping[TableName, pl.DataFrame]) -> tuple[Path, ...]:
    """Write the Bureau's files, one folder a table and one file a statistics level; return the paths."""
    folders = []
    for table, frame in rows.items():
        folder = out / table.lower()
        for level in LEVELS[table]:
            place = folder / level.file
            place.mkdir(parents=True, exist_ok=True)
            own = frame.filter(pl.col("file") == level.file).sort(*row_order())
            own.select(
                pl.col("region").alias("REGION_ID"),
                pl.col("region_type").alias("REGION_TYPE"),
                pl.col("iteration").alias("ITERATION_CODE"),
                pl.col("cell").alias(f"{table}_DATA_CELL"),
                pl.col("count").alias("COUNT"),
            ).write_csv(place / f"{level.file}.csv", separator="|", quote_style="never")
        folders.append(folder)
    return tuple(folders)
