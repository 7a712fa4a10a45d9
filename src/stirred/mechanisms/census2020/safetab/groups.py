"""Count detailed population groups: their code lists, their regions, and the records of each group."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from hashlib import sha256
from importlib.resources import as_file, files
from itertools import accumulate, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.census.geography import area_record_types, attach_levels, read_ancestors
from stirred.chance import Key
from stirred.chance.keys import DigestStart
from stirred.engine import Engine, Flow, Local, Parts
from stirred.engine.tables import PART_COLUMN, to_plain
from stirred.errors import DataError, InputError
from stirred.frames import arrow_of, collect_frame, frame_of
from stirred.text_formats import CsvTable, require_plain

if TYPE_CHECKING:
    from stirred.census import Census


# The code lists of detailed race and ethnicity: which population groups there are, and which codes lead to each.
#
# A *characteristic iteration* is a group such as "Albanian alone" or "Albanian alone or in any combination". The lists are
# public files in the Bureau's format (facts: SafeTab-P documentation, Section 3): four texts with ``|`` between fields.

RACE_FILE = "race-characteristic-iterations.txt"
ETHNICITY_FILE = "ethnicity-characteristic-iterations.txt"
CODE_FILE = "race-and-ethnicity-codes.txt"
MAP_FILE = "race-and-ethnicity-code-to-iteration.txt"
FILE_COLUMNS = {
    RACE_FILE: ("ITERATION_CODE", "ITERATION_NAME", "LEVEL", "ALONE", "DETAILED_ONLY", "COARSE_ONLY"),
    ETHNICITY_FILE: ("ITERATION_CODE", "ITERATION_NAME", "LEVEL", "DETAILED_ONLY", "COARSE_ONLY"),
    CODE_FILE: ("RACE_ETH_CODE", "RACE_ETH_NAME"),
    MAP_FILE: ("ITERATION_CODE", "RACE_ETH_CODE"),
}
LEVELS = (1, 2)  # 1: regional groups, 2: detailed groups; level 0, the major races, is published elsewhere
_FLAGS = {"True": True, "False": False, "Null": False, "": False}


@dataclass(frozen=True, slots=True)
class Iteration:
    """A characteristic iteration; ``alone`` is None for an ethnicity."""

    code: str
    name: str
    level: int
    alone: bool | None
    detailed_only: bool = False
    coarse_only: bool = False

    def belongs(self, level: int, *, fine: bool) -> bool:
        """Return whether it is tabulated at a level, in regions with the fine or the coarse lists."""
        return self.level == level and not (self.coarse_only if fine else self.detailed_only)


@dataclass(frozen=True)
class CodeLists:
    """The iterations, and for each race or ethnicity code the iterations that it leads to."""

    iterations: tuple[Iteration, ...]
    leads_to: Mapping[str, frozenset[str]]
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require_once([item.code for item in self.iterations], "an iteration code")
        known = {item.code for item in self.iterations}
        both = sum(item.detailed_only and item.coarse_only for item in self.iterations)
        if both:
            raise DataError(
                f"{both} iterations are both DETAILED_ONLY and COARSE_ONLY",
                why="such an iteration would be tabulated nowhere",
                fix="set at most one of the two flags to True",
            )
        lost = sum(not targets <= known for targets in self.leads_to.values())
        if lost:
            raise DataError(
                f"{lost} race or ethnicity codes lead to an iteration that is not listed",
                why=f"{MAP_FILE} and the lists of iterations must belong together",
                fix="use the four files of one vintage",
            )

    @classmethod
    def own(cls) -> "CodeLists":
        """Return the package's own lists: invented groups for the codes of its synthetic censuses.

        >>> len(CodeLists.own().leads_to) >= 200
        True
        """
        with as_file(files(__package__) / "lists") as folder:
            return _read(folder)

    @classmethod
    def read(cls, folder: Path) -> "CodeLists":
        """Return the lists in the four files of a folder."""
        return _read(Path(folder))

    @classmethod
    def _of_files(cls, folder: Path) -> "CodeLists":
        races = [
            Iteration(row["ITERATION_CODE"], row["ITERATION_NAME"], _read_level(row), _read_flag(row, "ALONE"),
                      _read_flag(row, "DETAILED_ONLY"), _read_flag(row, "COARSE_ONLY"))
            for row in _read_rows(folder / RACE_FILE)
        ]  # fmt: skip
        ethnicities = [
            Iteration(row["ITERATION_CODE"], row["ITERATION_NAME"], _read_level(row), None,
                      _read_flag(row, "DETAILED_ONLY"), _read_flag(row, "COARSE_ONLY"))
            for row in _read_rows(folder / ETHNICITY_FILE)
        ]  # fmt: skip
        leads: dict[str, set[str]] = {row["RACE_ETH_CODE"]: set() for row in _read_rows(folder / CODE_FILE)}
        for row in _read_rows(folder / MAP_FILE):
            leads.setdefault(row["RACE_ETH_CODE"], set()).add(row["ITERATION_CODE"])
        return cls(
            iterations=(*races, *ethnicities),
            leads_to={code: frozenset(targets) for code, targets in leads.items()},
            names={row["RACE_ETH_CODE"]: row["RACE_ETH_NAME"] for row in _read_rows(folder / CODE_FILE)},
        )

    def digest(self) -> str:
        """Return the SHA-256 of the lists, so that products can check that they used the same ones."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        text = repr((self.iterations, sorted((code, sorted(to)) for code, to in self.leads_to.items())))
        return sha256(text.encode()).hexdigest()

    def list_iterations(self, level: int, *, fine: bool) -> tuple[Iteration, ...]:
        """Return the iterations of a level, in the order of the lists."""
        return self._iterations_by_level[level, fine]

    @cached_property
    def _iterations_by_level(self) -> dict[tuple[int, bool], tuple[Iteration, ...]]:
        return {
            (level, fine): tuple(item for item in self.iterations if item.belongs(level, fine=fine))
            for level, fine in product((0, *LEVELS), (True, False))
        }

    def sensitivity(self, level: int, *, fine: bool, most_codes: int) -> int:
        r"""The most groups of one region that one record can touch: $s = h_r \max(2, R) + h_e$.

        $h_r$ and $h_e$ are the largest numbers of "alone" race iterations and of ethnicity iterations that one code leads
        to; R is ``most_codes``. One code touches its "alone" and its "in combination" groups ($2 h_r$); with k codes the
        "alone" groups left are those that all codes share, and there are at most $k h_r$ groups (proof.md, Lemma 1).
        """
        of_races, of_ethnicities = self._heights[level, fine]
        return of_races * max(2, most_codes) + of_ethnicities

    @cached_property
    def _heights(self) -> dict[tuple[int, bool], tuple[int, int]]:
        """$h_r$ and $h_e$ of every level, for fine and for coarse regions."""
        kinds = {item.code: item for item in self.iterations}
        found = {}
        for level, fine in product((0, *LEVELS), (True, False)):
            most = {True: 0, False: 0, None: 0}
            for targets in self.leads_to.values():
                here = [kinds[to].alone for to in targets if kinds[to].belongs(level, fine=fine)]
                most = {kind: max(number, here.count(kind)) for kind, number in most.items()}
            found[level, fine] = max(most[True], most[False]), most[None]
        return found


def _read(folder: Path) -> CodeLists:
    """Return the lists of a folder, read once as long as no file changes."""
    told = [(folder / name).stat() for name in FILE_COLUMNS if (folder / name).exists()]
    return _read_files(folder, tuple((one.st_mtime_ns, one.st_size) for one in told))


@lru_cache(maxsize=8)
def _read_files(folder: Path, _files: tuple[tuple[int, int], ...]) -> CodeLists:
    return CodeLists._of_files(folder)


def _read_rows(path: Path) -> Iterator[dict[str, str]]:
    wanted = FILE_COLUMNS[path.name]
    try:
        require_plain(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = CsvTable(file, delimiter="|", quoting=csv.QUOTE_NONE)
            missing = [name for name in wanted if name not in table.header]
            if missing:
                raise DataError(
                    f"{path.name} lacks {', '.join(missing)}",
                    why="its first line must name the columns, with | between them",
                    fix=f"first line: {'|'.join(wanted)}",
                )
            for row in table.rows():
                yield {name: (row[name] or "").strip() for name in wanted}
    except FileNotFoundError:
        raise InputError(
            f"the folder of code lists has no {path.name}",
            why=f"the lists are four files: {', '.join(FILE_COLUMNS)}",
            fix="name the folder that holds all four with --codes",
        ) from None
    except (OSError, csv.Error):
        raise DataError(
            f"{path.name} cannot be read",
            why="it is no text file with | between fields, or its lines are longer than those of any code list",
            fix="give the file as the Bureau publishes it",
        ) from None
    except UnicodeDecodeError:
        raise DataError(
            f"{path.name} is not UTF-8", why="names need one encoding", fix="save it as UTF-8"
        ) from None


def _read_level(row: Mapping[str, str]) -> int:
    if row["LEVEL"] not in ("0", "1", "2"):
        raise DataError(
            "an iteration has a LEVEL other than 0, 1 or 2", why="these three exist", fix="correct it"
        )
    return int(row["LEVEL"])


def _read_flag(row: Mapping[str, str], name: str) -> bool:
    if row[name] not in _FLAGS:
        raise DataError(
            f"an iteration has a {name} other than True, False or Null", why="it is a flag", fix="correct it"
        )
    return _FLAGS[row[name]]


def _require_once(codes: Iterable[str], what: str) -> None:
    twice = sum(number > 1 for number in Counter(codes).values())
    if twice:
        raise DataError(
            f"{what} stands twice in the lists ({twice} of them)",
            why="the codes of race and ethnicity iterations must be disjoint",
            fix="give every iteration a code of its own",
        )


# From the codes of a record to its population groups: $(\bigcap_i A_i) \cup (\bigcup_i C_i) \cup E$.
#
# $A_i$ are the "alone" iterations of the i-th race code, $C_i$ its "alone or in any combination" ones, and E the
# iterations of the ethnicity (SafeTab-P documentation, Section 4).

Int32s = NDArray[np.int32]
NO_CODE = "Null"


@dataclass(frozen=True, slots=True)
class GroupMap:
    """The iterations of one level and granularity, numbered, with the map from codes to numbers."""

    codes: tuple[str, ...]  # of the iterations; the number is the position
    alone: dict[str, frozenset[int]]
    combined: dict[str, frozenset[int]]
    ethnic: dict[str, frozenset[int]]
    sensitivity: int

    @classmethod
    def of(cls, lists: CodeLists, level: int, *, fine: bool, most_codes: int) -> "GroupMap":
        """Return the part of the lists that one level tabulates."""
        kept = lists.list_iterations(level, fine=fine)
        number = {item.code: place for place, item in enumerate(kept)}
        kind = {item.code: item.alone for item in kept}

        def part(wanted: bool | None) -> dict[str, frozenset[int]]:
            found = {
                code: frozenset(number[to] for to in targets if to in number and kind[to] is wanted)
                for code, targets in lists.leads_to.items()
            }
            return {code: targets for code, targets in found.items() if targets}

        return cls(
            codes=tuple(item.code for item in kept),
            alone=part(True),
            combined=part(False),
            ethnic=part(None),
            sensitivity=lists.sensitivity(level, fine=fine, most_codes=most_codes),
        )

    def groups(self, races: Sequence[str], ethnicity: str) -> list[int]:
        """Return the numbers of a record's iterations, at most ``sensitivity`` of them.

        What goes beyond is cut, never trusted: a record touches no more groups than the promise says.
        """
        given = [code for code in dict.fromkeys(races) if code and code != NO_CODE]
        none: frozenset[int] = frozenset()
        alone = reduce(frozenset.__and__, (self.alone.get(code, none) for code in given)) if given else none
        combined = none.union(*(self.combined.get(code, none) for code in given))
        return sorted(alone | combined | self.ethnic.get(ethnicity, none))[: self.sensitivity]

    def table(self, profiles: Sequence[tuple[Sequence[str], str]]) -> tuple[Int32s, Int32s]:
        """Return where the groups of each combination of codes start, and the groups one after the other."""
        rows = [self.groups(races, ethnicity) for races, ethnicity in profiles]
        starts = np.zeros(len(rows) + 1, np.int32)
        starts[1:] = np.cumsum([len(row) for row in rows])
        return starts, np.array([group for row in rows for group in row], np.int32)


def make_group_maps(lists: CodeLists, most_codes: int) -> dict[tuple[int, bool], GroupMap]:
    """Return the map from codes to groups of each level, for fine and for coarse regions."""
    return {
        (level, fine): GroupMap.of(lists, level, fine=fine, most_codes=most_codes)
        for level in LEVELS
        for fine in (True, False)
    }


# Region types and their regions, which come from the public geography and never from a confidential record.
#
# Where a census has no public file of areas, its regions are those of the records with a home: whether an area holds
# such a record is then shown, and is an invariant of the specification (``topdown.tree.tree_invariants``).

NATION_ID = "1"  # the id of the only region of a type without a column
ISLAND_PREFIX = "PR-"


@dataclass(frozen=True, slots=True)
class RegionType:
    """A kind of region: its name in the products, the census column with the code, and which lists it tabulates.

    ``fine`` regions (nation, states) have the fine lists of groups and are never suppressed. Codes that end with ``outside``
    stand for no region, and so does 0 where there is such an ending. Types of Puerto Rico hold the records of its state code
    alone, all others hold the rest.

    >>> RegionType("PLACE", "place", outside="99999").match_nowhere(["0199999", "0122800", "0"])
    [True, False, True]
    """

    name: str
    column: str
    fine: bool = False
    outside: str = ""

    @property
    def island(self) -> bool:
        """Return whether it is a type of Puerto Rico, a program of its own with its own records."""
        return self.name.startswith(ISLAND_PREFIX)

    def match_nowhere(self, codes: Sequence[str]) -> list[bool]:
        """Return which codes stand for no region."""
        return [
            not code or bool(self.outside and (code == "0" or code.endswith(self.outside))) for code in codes
        ]


UNITED_STATES = (
    RegionType("USA", "", fine=True),
    RegionType("STATE", "state", fine=True),
    RegionType("COUNTY", "county"),
    RegionType("TRACT", "tract"),
    RegionType("PLACE", "place", outside="99999"),
    RegionType("AIANNH", "aiannh", outside="9999"),
)
PUERTO_RICO = (
    RegionType("PR-STATE", "state", fine=True),
    RegionType("PR-COUNTY", "county"),
    RegionType("PR-TRACT", "tract"),
    RegionType("PR-PLACE", "place", outside="99999"),
)
REGION_TYPES = {kind.name: kind for kind in (*UNITED_STATES, *PUERTO_RICO)}


def set_columns(own: Mapping[str, str]) -> dict[str, RegionType]:
    """Return the region types with the given columns in the place of their own."""
    for name in own:
        if name not in REGION_TYPES:
            raise InputError(
                f"there is no region type {name!r}",
                why="a column was given for it",
                fix=f"region types are {', '.join(REGION_TYPES)}",
            )
    return {name: replace(kind, column=own.get(name, kind.column)) for name, kind in REGION_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of every type that a census has, sorted, and the column and code that set Puerto Rico apart."""

    ids: Mapping[str, tuple[str, ...]]
    state: str = ""  # the column of the state, empty where the census has none
    island: str = "72"

    def of(self, kind: RegionType) -> tuple[str, ...]:
        """Return the ids of a type's regions."""
        return self.ids.get(kind.name, ())


def geographic_columns(census: "Census") -> tuple[str, ...]:
    """Return the columns of geography: the levels of the spine, and the areas beside it that a level decides."""
    beside = [off.name for off in census.schema.geography.off_spine if off.of]
    return (*census.schema.spine, *beside)


def choose_region_types(
    census: "Census", kinds: Sequence[RegionType], *, state: str = "state"
) -> tuple[RegionType, ...]:
    """Return the region types that a census has a column for, from its schema alone."""
    known = geographic_columns(census)
    return tuple(
        kind
        for kind in kinds
        if (not kind.column or kind.column in known) and (not kind.island or state in known)
    )


def find_regions(
    census: "Census",
    kinds: Sequence[RegionType],
    *,
    state: str = "state",
    island: str = "72",
    engine: Engine | None = None,
) -> Regions:
    """Return the regions of each type, from the public geography or, without one, from the records.

    >>> from stirred.census import Census
    >>> toy = Census.of({"geography": {"spine": ["state", "county"]}},
    ...                 {"household": {"state": ["01", "72"], "county": ["01003", "72001"]}})
    >>> dict(find_regions(toy, tuple(REGION_TYPES.values())).ids)
    {'USA': ('1',), 'STATE': ('01',), 'COUNTY': ('01003',), 'PR-STATE': ('72',), 'PR-COUNTY': ('72001',)}
    """
    kinds = choose_region_types(census, kinds, state=state)
    apart = state if state in geographic_columns(census) else ""
    columns = list(dict.fromkeys([*filter(None, [apart]), *(kind.column for kind in kinds if kind.column)]))
    table = _list_combinations(census, columns, engine)
    there = table[apart] == island if apart else pl.repeat(False, table.height, eager=True)
    found: dict[str, tuple[str, ...]] = {}
    for kind in kinds:
        rows = table.filter(there if kind.island else ~there)
        if not kind.column:
            found[kind.name] = (NATION_ID,) if rows.height or not columns else ()
            continue
        codes = rows[kind.column].drop_nulls().unique().sort().to_list()
        lost = kind.match_nowhere(codes)
        found[kind.name] = tuple(code for code, out in zip(codes, lost, strict=True) if not out)
    return Regions({name: ids for name, ids in found.items() if ids}, apart, island)


def _list_combinations(census: "Census", columns: list[str], engine: Engine | None) -> pl.DataFrame:
    """Return the public combinations of these areas, as text."""
    if not columns:
        return pl.DataFrame()
    text = [pl.col(name).cast(pl.String) for name in columns]
    schema = census.schema
    if schema.geography.areas is None:
        counting = engine.census(census) if engine else census
        owners = area_record_types(census.schema)
        frames = [frame_of(counting.counts(record, columns)).select(text) for record in owners]
        return pl.concat(frames).unique()
    without = [off.name for off in schema.geography.off_spine if off.name in columns and not off.files]
    if without:
        raise InputError(
            f"the areas of {without[0]} are not listed",
            why="a region is shown whether or not somebody lives there, so regions must come from a public file",
            fix=f"give [geography.off_spine.{without[0]}] its files, or give its region type a budget of 0",
        )
    areas = read_ancestors(schema, census.folder)
    beside = [name for name in columns if name not in schema.spine]
    frame = collect_frame(attach_levels(schema, areas, beside, census.folder).select(text).unique())
    return _cast_as_records(census, frame)


def _cast_as_records(census: "Census", frame: pl.DataFrame) -> pl.DataFrame:
    """Return codes as the records write them: where their column holds integers, "01" is 1."""
    record = next(record.name for record in census.schema.records if not record.linked_to)
    types = census.scan(record, frame.columns).collect_schema()
    whole = [name for name in frame.columns if types[name].is_integer()]
    return frame.with_columns(pl.col(whole).cast(pl.Int64, strict=False).cast(pl.String)) if whole else frame


# Count population groups: for every region type and level, how many records each (region, iteration, cell) has.
#
# One pass over the records. Distinct combinations of codes are mapped to iterations once; counts stay sparse, as
# sorted keys (region · I + iteration) · cells + cell. In memory the census is one part; else batches are counted where
# they lie and their counts added in parts.

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


# Counts in parts: each part has a range of all groups, so that noise is drawn where the counts are.

DIGEST_SCHEMA = pa.schema(
    [
        ("whole", pa.int32()),
        ("part", pa.int32()),
        (SET, pa.int32()),
        ("groups", pa.int64()),
        ("keys", pa.large_binary()),
        ("counts", pa.large_binary()),
    ]
)
SURVEY_SCHEMA = pa.schema(
    [("part", pa.int32()), (SET, pa.int32()), ("groups", pa.int64()), ("inner", pa.binary())]
)


@dataclass(frozen=True, slots=True)
class PlaceGroups:
    """Give each row the number of its part: parts are ranges of groups, one set after the other."""

    starts: tuple[int, ...]  # the number of the first group of each set, and of all groups
    cells: int
    parts: int

    @classmethod
    def of(cls, sets: Sequence[GroupSet], cells: int, parts: int) -> "PlaceGroups":
        """Return the ranges of so many parts."""
        return cls(tuple(accumulate((item.number for item in sets), initial=0)), cells, parts)

    def __call__(self, table: pa.Table) -> pa.Table:
        """The table and the numbers."""
        starts = np.array(self.starts, np.int64)
        group = starts[table.column(SET).to_numpy()] + table.column(GROUP).to_numpy() // self.cells
        number = group * self.parts // max(self.starts[-1], 1)
        return table.append_column(PART_COLUMN, pa.array(number.astype(np.int32)))

    def schema(self) -> pa.Schema:
        """Return the columns of counts with the number of their part."""
        return COUNT_SCHEMA.append(pa.field(PART_COLUMN, pa.int32()))

    def span(self, part: int, place: int) -> tuple[int, int]:
        """Return the first group of a set that lies in a part, and the one after the last.

        >>> [PlaceGroups((0, 5, 8), 1, 3).span(part, place) for part in range(3) for place in range(2)]
        [(0, 3), (0, 0), (3, 5), (0, 1), (5, 5), (1, 3)]
        """
        first, end = (-(-number * self.starts[-1] // self.parts) for number in (part, part + 1))
        low, high = self.starts[place], self.starts[place + 1]
        return min(max(first, low), high) - low, min(max(end, low), high) - low


@dataclass(frozen=True, slots=True)
class KeySums:
    """Sum the counts of each key in a part."""

    def __call__(self, _part: int, table: pa.Table) -> pa.Table:
        """One row for each key, in their order."""
        frame = frame_of(table.drop_columns([PART_COLUMN]))
        summed = frame.group_by(SET, GROUP).agg(pl.col("count").sum()).sort(SET, GROUP)
        return to_plain(arrow_of(summed)).cast(COUNT_SCHEMA)


def split_sets(table: pa.Table, sets: int, cells: int) -> list[GroupCounts]:
    """Return the counts of each set from rows in the order of sets and keys."""
    number, keys, counts = (table.column(name).to_numpy() for name in (SET, GROUP, "count"))
    edges = np.searchsorted(number, np.arange(sets + 1)).tolist()
    return [
        GroupCounts(keys[low:high].astype(np.int64), counts[low:high].astype(np.int64), cells)
        for low, high in pairwise(edges)
    ]


@dataclass(frozen=True, slots=True)
class PackCounts:
    """Pack the keys and counts of each set of a part as bytes."""

    sets: int
    cells: int

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        """One row for each set, with its number of groups that have records."""
        found = split_sets(table, self.sets, self.cells)
        return pa.table(
            {
                "whole": [0] * len(found),
                "part": [part] * len(found),
                SET: range(len(found)),
                "groups": [len(some.totals()[0]) for some in found],
                "keys": [some.keys.tobytes() for some in found],
                "counts": [some.counts.tobytes() for some in found],
            },
            schema=DIGEST_SCHEMA,
        )


@dataclass(frozen=True, slots=True)
class HashCounts:
    """Hash what all parts packed, in the order that one process would have: the keys of a set, then its counts."""

    start: DigestStart
    names: tuple[
        bytes, ...
    ]  # of the sets, before the keys of each; empty where they are not part of the digest

    def __call__(self, _part: int, table: pa.Table) -> pa.Table:
        """How many groups each part has of each set, and the inner hash."""
        if not table.num_rows:
            return SURVEY_SCHEMA.empty_table()
        table = table.take(pc.sort_indices(table, [(SET, "ascending"), ("part", "ascending")]))
        inner = self.start.hash_parts(self._list_parts(table))
        found = table.select(["part", SET, "groups"])
        return found.append_column("inner", pa.array([inner] + [b""] * (table.num_rows - 1))).cast(
            SURVEY_SCHEMA
        )

    def _list_parts(self, table: pa.Table) -> Iterator[list[memoryview | bytes]]:
        edges = np.flatnonzero(np.diff(table.column(SET).to_numpy(), prepend=-1, append=-1)).tolist()
        for place, (low, high) in enumerate(pairwise(edges)):
            if self.names:
                yield [self.names[place]]
            for name in ("keys", "counts"):
                yield [memoryview(one.as_buffer()) for one in table.column(name)[low:high]]


@dataclass(frozen=True)
class CountsInParts:
    """The counts of every set, in parts that are ranges of groups; they never meet in this process."""

    parts: Parts
    placed: PlaceGroups
    sets: int
    engine: Engine

    def digest(self, key: Key, names: Sequence[bytes] = ()) -> tuple[bytes, Ints]:
        """Return ``key.digest`` of the counts, and how many groups with records each part (row) has of each set.

        One task sees all counts for it, as bytes: 16 for each cell that has records.
        """
        packed = self.parts.map(PackCounts(self.sets, self.placed.cells), DIGEST_SCHEMA)
        met = self.engine.exchange(packed.flow(), by="whole", parts=1)
        told = met.map(HashCounts(key.begin_digest(), tuple(names)), SURVEY_SCHEMA).gather()
        met.drop()
        groups = np.zeros((self.parts.number, self.sets), np.int64)
        if not told.num_rows:  # no set, hence nothing that was packed
            return key.digest(), groups
        groups[told.column("part").to_numpy(), told.column(SET).to_numpy()] = told.column("groups").to_numpy()
        return key.end_digest(b"".join(told.column("inner").to_pylist())), groups


def place_counts(flow: Flow, tally: Tally, engine: Engine, parts: int) -> CountsInParts:
    """Return the sums of counts in parts, each a range of groups."""
    cells = tally.cells.number
    placed = PlaceGroups.of(tally.sets, cells, parts)
    spread = engine.exchange(flow.map(placed, placed.schema()), by=PART_COLUMN, parts=parts)
    summed = spread.map(KeySums(), COUNT_SCHEMA).keep()
    spread.drop()
    return CountsInParts(summed, placed, len(tally.sets), engine)


def count_groups(
    census: "Census", tally: Tally, *, record_type: str = "person", engine: Engine | None = None
) -> list[GroupCounts] | CountsInParts:
    """Return the counts of every set: as arrays where they fit in this process, else in parts."""
    engine = engine or Local()
    if engine.fits(0) and engine.fits(BYTES_PER_RECORD * census.count(record_type)):
        frame = census.scan(record_type, list(tally.columns), ordered=False)
        found = tally.expand_groups(collect_frame(tally.group_records(frame), streaming=True))
        return [GroupCounts(keys, counts, tally.cells.number) for keys, counts in found]
    flow = engine.records(census, record_type, list(tally.columns)).map(tally, COUNT_SCHEMA)
    return place_counts(flow, tally, engine, engine.parts_for(BYTES_PER_RECORD * census.count(record_type)))


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
