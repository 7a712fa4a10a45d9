"""Count the tables of PHSafe exactly: variables, tables, truncation, and one kernel over parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census.schema import Kinds
from stirred.chance.words import Hasher, cast_links, combine_chunks, hash_texts
from stirred.engine import Engine
from stirred.engine.tables import PART_COLUMN, PlaceRows
from stirred.frames import arrow_of, frame_of, series_of

if TYPE_CHECKING:
    from stirred.census import Census


# The variables that PHSafe reads, and which columns of a census hold them.
#
# | Bureau | here | in a synthetic census |
# |---|---|---|
# | RTYPE of a unit 2 (4: facility) | housing | a kind other than group quarters |
# | RTYPE of a person 3 (5: resident) | relationship below 18 | relationship below 18 |
# | HHT 1, 2, 3; 4 and 6; 5 and 7 | type 1, 2, 3; 4; 5 | type |
# | HHT2 00 to 12 | hht2 | from couple, children, type and the householder's sex |
# | CPLT 1 to 4 (5: none) | couple 1 to 4 (0: none) | couple |
# | TEN 1 to 4 | tenure 1 to 4 | tenure |
# | RELSHIP 20 to 36 | relationship 1 to 17 | relationship 1 to 17, and 0 for who lives alone |
# | HHRACE, HHSPAN | race, hispanic of the household | race, hispanic of the household |
# | CENRACE, CENHISP | race, hispanic of the person | race, hispanic of the person |

HOUSEHOLD_VARIABLES: Final = ("type", "hht2", "couple", "children", "sex", "tenure", "race", "hispanic")
PERSON_VARIABLES: Final = ("relationship", "age", "race", "hispanic")
MIN_RESIDENT_RELATIONSHIP: Final = 18  # relationships from here on are those of residents of group quarters
COUPLES = {1: 1, 2: 1, 3: 3, 4: 3}  # couple → HHT2 with own children under 18; one more without
UNIT_COLUMN, STATE_COLUMN, HOUSING_COLUMN, OCCUPIED_COLUMN = "unit", "state", "housing", "occupied"
OWN_COLUMNS = {
    name: f"own_{name}" for name in PERSON_VARIABLES
}  # a person's variables, beside those of the household


@dataclass(frozen=True, slots=True, kw_only=True)
class CensusColumns:
    """Which columns of a census hold what PHSafe reads; a variable that is absent is not among them."""

    state: str
    unit: str  # the identifier of a household
    link: str  # a person's household
    household: tuple[tuple[str, str], ...]  # variable, column
    person: tuple[tuple[str, str], ...]
    kinds: Kinds | None = None
    size: str = ""

    @classmethod
    def of(cls, census: "Census", given: Mapping[str, str], *, state: str) -> "CensusColumns":
        """Return the columns that exist and hold whole numbers; ``given`` names those called otherwise."""
        home, person = census.schema.record("household"), census.schema.record("person")
        found = {}
        for record, names, prefix in ((home, HOUSEHOLD_VARIABLES, ""), (person, PERSON_VARIABLES, "person.")):
            types = census.scan(record.name).collect_schema()
            columns = ((name, given.get(prefix + name, name)) for name in names)
            found[record.name] = tuple(
                (name, column)
                for name, column in columns
                if column in types and (types[column].is_integer() or types[column] == pl.Null)
            )
        return cls(
            state=state,
            unit=home.id,
            link=person.household,
            household=found["household"],
            person=found["person"],
            kinds=home.kinds,
            size=home.size,
        )

    @property
    def available(self) -> frozenset[str]:
        """Return the variables that tables can use; those of persons are named as ``person.age``."""
        home = {name for name, _ in self.household}
        if {"type", "couple", "children", "sex"} <= home:
            home.add("hht2")
        return frozenset(home | {f"person.{name}" for name, _ in self.person})

    @property
    def of_household(self) -> tuple[str, ...]:
        """Return the columns to read of household records."""
        beside = (self.kinds.column, self.size) if self.kinds else ()
        names = (self.unit, self.state, *(column for _, column in self.household), *filter(None, beside))
        return tuple(dict.fromkeys(names))

    @property
    def of_person(self) -> tuple[str, ...]:
        """Return the columns to read of person records."""
        return tuple(dict.fromkeys((self.link, *(column for _, column in self.person))))

    def homes(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return housing units with the variables that tables use; facilities are left out."""
        have = dict(self.household)
        frame = frame.select(
            pl.col(self.unit).alias(UNIT_COLUMN),
            pl.col(self.state).alias(STATE_COLUMN),
            self._is_housing().alias(HOUSING_COLUMN),
            self._is_occupied().alias(OCCUPIED_COLUMN),
            *(pl.col(column).cast(pl.Int16).alias(name) for name, column in have.items()),
        ).filter(HOUSING_COLUMN)
        if "hht2" not in have and "hht2" in self.available:
            frame = frame.with_columns(household_type_2())
        return frame.drop(HOUSING_COLUMN, *(name for name in ("children", "sex") if name in have))

    def persons(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return persons in households, their variables marked as their own."""
        own = (pl.col(column).cast(pl.Int16).alias(OWN_COLUMNS[name]) for name, column in self.person)
        made = frame.select(pl.col(self.link).alias(UNIT_COLUMN), *own)
        relationship = OWN_COLUMNS["relationship"]
        return (
            made.filter(pl.col(relationship) < MIN_RESIDENT_RELATIONSHIP)
            if relationship in made.columns
            else made
        )

    def _is_housing(self) -> pl.Expr:
        if self.kinds is None or not self.kinds.group_quarters:
            return pl.lit(True)
        return ~pl.col(self.kinds.column).is_in(list(self.kinds.group_quarters))

    def _is_occupied(self) -> pl.Expr:
        """Return whether HHT is not 0; without a household type, whether kind and size say so."""
        have = dict(self.household)
        if "type" in have:
            return pl.col(have["type"]) != 0
        if self.kinds is None:
            return pl.lit(True)
        lived_in = pl.col(self.size) > 0 if self.size else pl.lit(True)
        mixed = pl.col(self.kinds.column).is_in(list(self.kinds.housing_units)) & lived_in
        return pl.col(self.kinds.column).is_in(list(self.kinds.occupied)) | mixed


def household_type_2() -> pl.Expr:
    """Return HHT2 from the couple, the own children under 18, the type and the householder's sex.

    >>> toy = pl.DataFrame({"couple": [2, 3, 0, 0], "children": [1, 0, 0, 2], "type": [1, 5, 4, 3], "sex": [1, 1, 1, 2]})
    >>> toy.select(household_type_2())["hht2"].to_list()
    [1, 4, 9, 6]
    """
    couple, own, kind = pl.col("couple"), pl.col("children") > 0, pl.col("type")
    paired = couple.replace_strict(COUPLES, default=None, return_dtype=pl.Int16) + (~own).cast(pl.Int16)
    first = pl.when(pl.col("sex") == 1).then(9).when(pl.col("sex") == 2).then(5)  # living alone
    rest = pl.when(kind == 4).then(0).when(own).then(1).when(kind.is_in([2, 3])).then(2).otherwise(3)
    single = pl.when(kind > 0).then(first + rest).otherwise(0)
    return pl.when(couple > 0).then(paired).otherwise(single).cast(pl.Int16).alias("hht2")


# The nine tables that PHSafe measures: universe, cells, and what is published by race and ethnicity of whom.
#
# The cells are those of the S-DHC (PH1 to PH8). PH5_num is PH4 and PH8_num is a sum of PH7: they cost nothing.

ALL, RACES, ORIGINS = "*", "A-G", "H,I"
ITERATION_CODES: Final = {ALL: ("*",), RACES: tuple("ABCDEFG"), ORIGINS: ("H", "I")}  # by iteration level
RACE, ORIGIN = "race_group", "origin_group"  # positions in these, in the counts
USA, STATE = "USA", "STATE"
AGE, RELATIONSHIP = pl.col(OWN_COLUMNS["age"]), pl.col(OWN_COLUMNS["relationship"])
HHT2 = pl.col("hht2")
CHILDREN = (6, 7, 8)
FAMILY = (0, 1, 2, 4, *range(6, 15))  # RELSHIP 20, 21, 23, 25 to 33
WITH_CHILDREN = {
    1: 0,
    3: 1,
    10: 2,
    6: 3,
}  # HHT2 of families with own children: married, cohabiting, male, female


@dataclass(frozen=True, slots=True, kw_only=True)
class Tabulation:
    """A measured table; without ``tau`` it counts households, with it persons, at most tau of a household."""

    name: str
    title: str
    cells: tuple[int, ...]
    needs: tuple[str, ...]  # variables, in the names of ``CensusColumns.available``
    universe: pl.Expr
    cell: pl.Expr
    homes: pl.Expr = pl.lit(True)  # noqa: RUF009 - the households that persons are joined to
    persons: bool = True
    levels: tuple[str, ...] = (ALL, RACES, ORIGINS)
    own_race: bool = False  # by the person's race, not the householder's

    @property
    def race_columns(self) -> tuple[str, str]:
        """Return the columns of race and Hispanic origin that make iterations."""
        return (OWN_COLUMNS["race"], OWN_COLUMNS["hispanic"]) if self.own_race else ("race", "hispanic")

    def possible_levels(self, available: frozenset[str]) -> tuple[str, ...]:
        """Return the iteration levels that a census with these variables can have, or none."""
        if not set(self.needs) <= available:
            return ()
        prefix = "person." if self.own_race else ""
        need = {ALL: (), RACES: ("race",), ORIGINS: ("race", "hispanic")}
        return tuple(level for level in self.levels if {prefix + name for name in need[level]} <= available)


def _map_codes(column: pl.Expr, cells: dict[int, int]) -> pl.Expr:
    return column.replace_strict(cells, default=None, return_dtype=pl.Int16)


_ADULT = pl.when(AGE < 18).then(2).when(AGE >= 18).then(3)
_MINOR = AGE < 18
_COUPLES = {(1, 1): 3, (1, 2): 4, (2, 1): 3, (2, 2): 4, (3, 3): 6, (3, 4): 7, (4, 3): 6, (4, 4): 7}
_PAIRED = _map_codes(HHT2 * 8 + pl.col("couple"), {8 * a + b: cell for (a, b), cell in _COUPLES.items()})
_SINGLE = _map_codes(HHT2, {9: 9, 10: 10, 11: 10, 12: 10, 5: 12, 6: 13, 7: 13, 8: 13})
_CHILD = _map_codes(HHT2, {kind: 4 + place for kind, place in WITH_CHILDREN.items()})
_KIN = _map_codes(
    RELATIONSHIP,
    {**dict.fromkeys((0, 1, 2, 3, 4, 5, 15, 16, 17), 2), 11: 9, **dict.fromkeys((9, 10, 12, 13, 14), 10)},
)
_FIRST = _map_codes(HHT2, {kind: 3 + 5 * place for kind, place in WITH_CHILDREN.items()})
_AGES = pl.when(AGE < 4).then(0).when(AGE < 6).then(1).when(AGE < 12).then(2).otherwise(3)
_OWNER = {1: 2, 2: 2, 3: 3, 4: 3}
_LIVED_IN = pl.col(OCCUPIED_COLUMN)

TABULATIONS: Final = (
    Tabulation(
        name="PH1_num",
        title="population in households by age",
        cells=(2, 3),
        needs=("person.age",),
        universe=pl.lit(True),
        cell=_ADULT,
    ),
    Tabulation(
        name="PH1_denom",
        title="occupied housing units",
        cells=(1,),
        needs=(),
        universe=_LIVED_IN,
        cell=pl.lit(1),
        persons=False,
    ),
    Tabulation(
        name="PH2",
        title="household type for the population in households",
        cells=(3, 4, 6, 7, 9, 10, 12, 13),
        needs=("hht2", "couple"),
        universe=pl.lit(True),
        cell=pl.coalesce(_PAIRED, _SINGLE),
        levels=(ALL,),
    ),
    Tabulation(
        name="PH3",
        title="household type by relationship for the population under 18",
        cells=(2, 4, 5, 6, 7, 9, 10),
        needs=("hht2", "person.age", "person.relationship"),
        universe=_MINOR,
        cell=pl.when(RELATIONSHIP.is_in(CHILDREN)).then(_CHILD).otherwise(_KIN),
        own_race=True,
    ),
    Tabulation(
        name="PH4",
        title="population in families by age",
        cells=(2, 3),
        needs=("type", "person.age", "person.relationship"),
        universe=RELATIONSHIP.is_in(FAMILY),
        cell=_ADULT,
        homes=pl.col("type") <= 3,
    ),
    Tabulation(
        name="PH5_denom",
        title="families",
        cells=(1,),
        needs=("type",),
        universe=pl.col("type").is_in((1, 2, 3)),
        cell=pl.lit(1),
        persons=False,
    ),
    Tabulation(
        name="PH6",
        title="family type and age for own children under 18",
        cells=(3, 4, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 18, 19, 20, 21),
        needs=("hht2", "person.age", "person.relationship"),
        universe=RELATIONSHIP.is_in(CHILDREN) & _MINOR,
        cell=_FIRST + _AGES,
        levels=(ALL,),
    ),
    Tabulation(
        name="PH7",
        title="population in occupied housing units by tenure",
        cells=(2, 3, 4),
        needs=("tenure",),
        universe=pl.lit(True),
        cell=_map_codes(pl.col("tenure"), {1: 2, 2: 3, 3: 4, 4: 4}),
    ),
    Tabulation(
        name="PH8_denom",
        title="occupied housing units by tenure",
        cells=(2, 3),
        needs=("tenure",),
        universe=_LIVED_IN,
        cell=_map_codes(pl.col("tenure"), _OWNER),
        persons=False,
    ),
)
TABULATION_BY_NAME: Final = {table.name: table for table in TABULATIONS}


def race_group(race: str) -> pl.Expr:
    """Return the position of a race in A to G: six races alone, and two or more."""
    code = pl.col(race)
    inside = code.is_between(1, 63)
    return pl.when(inside).then(pl.min_horizontal(code - 1, pl.lit(6))).cast(pl.Int16).alias(RACE)


def origin_group(race: str, hispanic: str) -> pl.Expr:
    """Return 0 for H (Hispanic), 1 for I (White alone, not Hispanic), else null."""
    white = (pl.col(race) == 1) & (pl.col(hispanic) == 1)
    found = pl.when(pl.col(hispanic) == 2).then(0).when(white).then(1)
    return found.cast(pl.Int16).alias(ORIGIN)


# Keep at most τ persons of a household, in an order that no other record changes.
#
# The order is that of a keyed hash (SipHash-2-4) of the household, of all that is read of the person, and of a number
# that tells equal records apart. A person added or removed moves nobody else in it, so the kept persons change by one
# who comes and one who goes at most (proof.md, Lemma 1).

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Ranks:
    """The persons of some large households: their rows, their household, and their places in its order."""

    rows: Ints  # in ascending order
    place: Words

    def keep_first(self, inside: NDArray[np.bool_], homes: Ints, count: int, tau: int) -> NDArray[np.bool_]:
        """Return which persons inside a universe stay: those of the τ first places of their household."""
        many = np.bincount(homes[inside], minlength=count) > tau
        rows = self.rows[(inside & many[homes])[self.rows]]
        if not len(rows):
            return inside
        place = self.place[np.searchsorted(self.rows, rows)]
        order = np.lexsort((place, homes[rows]))
        sorted_homes = homes[rows][order]
        first = np.searchsorted(sorted_homes, sorted_homes, side="left")
        over = rows[order[np.arange(len(rows)) - first >= tau]]
        result = inside.copy()
        result[over] = False
        return result


def rank_persons(units: pa.Array, values: list[Ints], homes: Ints, least: int, hasher: Hasher) -> Ranks:
    """Return the order of the persons of every household with more than ``least`` of them.

    ``units`` are the identifiers of the households, ``values`` all that is read of a person, ``homes`` the positions of the
    persons' households.
    """
    large = np.bincount(homes, minlength=len(units)) > least
    rows = np.flatnonzero(large[homes])
    if not len(rows):  # nothing is hashed where nobody can be left out
        return Ranks(rows, np.empty(0, np.uint64))
    word: Words = np.zeros(len(units), np.uint64)
    word[large] = hasher.words(units.filter(pa.array(large)))
    own = homes[rows]
    columns = [column[rows].view(np.uint64) for column in values]
    # equal records of one household are numbered: which of them has which number changes nothing
    order = np.lexsort([*columns, own])
    new = np.ones(len(rows), bool)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in (own, *columns)], axis=0)
    start = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
    number: Words = np.empty(len(rows), np.uint64)
    number[order] = np.arange(len(rows)) - start
    hashed = _hash_persons([word[own], *columns, number], hasher)
    # ties of the hash, if any, are broken by the values, never by the order of the file
    by_hash = np.lexsort([number, *columns, hashed, own])
    place: Words = np.empty(len(rows), np.uint64)
    place[by_hash] = np.arange(len(rows), dtype=np.uint64)
    return Ranks(rows, place)


def _hash_persons(columns: list[Words], hasher: Hasher) -> Words:
    text = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8).reshape(-1)
    offsets = np.arange(len(columns[0]) + 1, dtype=np.int64) * 8 * len(columns)
    found: Words = np.empty(len(columns[0]), np.uint64)
    hash_texts(text, offsets, np.uint64(hasher.first), np.uint64(hasher.second), found)
    return found


# Count every table exactly, in memory or in parts: persons meet their household in one part, and cells come back.

TABLE, CELL, COUNT = "table", "cell", "count"
KEY_COLUMNS = (TABLE, STATE_COLUMN, CELL, RACE, ORIGIN)
HOME_COLUMN = "stirred:home"
BYTES_PER_VALUE = 24  # bytes of a value on its way, working space included


@dataclass(frozen=True, slots=True, kw_only=True)
class CountKernel:
    """Count the cells of whole households; the kernel is pure, so a part may be counted anywhere and twice."""

    columns: CensusColumns
    tau: tuple[tuple[str, int], ...]  # of the person tables that are made
    households: tuple[str, ...]  # the household tables that are made
    states: tuple[str, ...]  # as text
    hasher: Hasher

    def __call__(self, _: int, homes: pa.Table, persons: pa.Table) -> pa.Table:
        units = frame_of(homes)
        units = self.columns.homes(units.filter(pl.len().over(self.columns.unit) == 1))
        units = units.with_columns(pl.col(STATE_COLUMN).cast(pl.String)).filter(
            pl.col(STATE_COLUMN).is_in(self.states)
        )
        units = units.with_row_index(HOME_COLUMN)
        made = [_group_cells(units, TABULATION_BY_NAME[name]) for name in self.households]
        if self.tau:
            made += self._persons(units, persons)
        return arrow_of(pl.concat(made)) if made else _empty_cells()

    def _persons(self, units: pl.DataFrame, table: pa.Table) -> list[pl.DataFrame]:
        persons = self.columns.persons(frame_of(_cast_link(table, self.columns.link, units[UNIT_COLUMN])))
        joined = persons.join(units, on=UNIT_COLUMN, how="inner")
        homes = joined[HOME_COLUMN].to_numpy().astype(np.int64)
        read = [OWN_COLUMNS[name] for name, _ in self.columns.person]
        values: list[Ints] = [joined[name].cast(pl.Int64).fill_null(-1).to_numpy() for name in read]
        identifiers = combine_chunks(arrow_of(units.select(UNIT_COLUMN)).column(UNIT_COLUMN))
        ranks = rank_persons(identifiers, values, homes, min(tau for _, tau in self.tau), self.hasher)
        made = []
        for name, tau in self.tau:
            wanted = TABULATION_BY_NAME[name]
            inside = joined.select((wanted.universe & wanted.homes).fill_null(False).alias("in"))["in"]
            mask = np.broadcast_to(inside.to_numpy(), joined.height)
            kept = ranks.keep_first(np.array(mask), homes, units.height, tau)
            made.append(_group_cells(joined.filter(series_of(kept)), wanted, filtered=True))
        return made


def _cast_link(table: pa.Table, link: str, units: pl.Series) -> pa.Table:
    """Return the persons with their link in the type of the households' identifiers."""
    kind = arrow_of(units.to_frame()).schema.field(0).type
    column = cast_links(combine_chunks(table.column(link)), kind, name=link)
    return table.set_column(table.schema.get_field_index(link), link, column)


def _group_cells(frame: pl.DataFrame, wanted: Tabulation, *, filtered: bool = False) -> pl.DataFrame:
    """Return the cells of a table; a record that no cell takes is dropped without a count of these."""
    if not filtered:
        frame = frame.filter(wanted.universe & wanted.homes)
    race, hispanic = wanted.race_columns
    have = frame.columns
    none = pl.lit(None, pl.Int16)
    groups = [
        race_group(race) if race in have else none.alias(RACE),
        origin_group(race, hispanic) if {race, hispanic} <= set(have) else none.alias(ORIGIN),
    ]
    cells = frame.select(STATE_COLUMN, wanted.cell.cast(pl.Int16).alias(CELL), *groups)
    counted = cells.group_by(STATE_COLUMN, CELL, RACE, ORIGIN).agg(pl.len().cast(pl.Int64).alias(COUNT))
    named = counted.with_columns(pl.lit(wanted.name).alias(TABLE)).filter(pl.col(CELL).is_in(wanted.cells))
    return named.select(*KEY_COLUMNS, COUNT)


def _empty_cells() -> pa.Table:
    short = dict.fromkeys((CELL, RACE, ORIGIN), pl.Int16())
    types = {TABLE: pl.String(), STATE_COLUMN: pl.String(), **short, COUNT: pl.Int64()}
    return arrow_of(pl.DataFrame(schema=types))


def count_tables(census: "Census", kernel: CountKernel, engine: Engine) -> pl.DataFrame:
    """Return the exact counts by table, state, cell and groups of race and origin; confidential."""
    columns = kernel.columns
    sizes = [census.count(name) for name in ("household", "person")]
    size = BYTES_PER_VALUE * (
        sizes[0] * (len(columns.of_household) + 3)
        + sizes[1] * (len(columns.of_person) + len(columns.of_household))
    )
    if engine.fits(size):
        homes = _drop_dictionaries(census.table("household", columns.of_household))
        found = kernel(0, homes, _drop_dictionaries(census.table("person", columns.of_person)))
    else:
        found = _count_by_parts(census, kernel, engine, engine.parts_for(size))
    return frame_of(found).group_by(KEY_COLUMNS).agg(pl.col(COUNT).sum()).sort(KEY_COLUMNS, nulls_last=False)


def _count_by_parts(census: "Census", kernel: CountKernel, engine: Engine, parts: int) -> pa.Table:
    columns = kernel.columns
    flows = []
    for name, wanted, link in (
        ("household", columns.of_household, columns.unit),
        ("person", columns.of_person, columns.link),
    ):
        flow = engine.records(census, name, wanted)
        placed = PlaceByText(link, parts)
        flows.append(flow.map(placed, placed(flow.schema.empty_table()).schema))
    cells = engine.exchange(*flows, by=PART_COLUMN, parts=parts).map(kernel, _empty_cells().schema).flow()
    # a cell has a row in nearly every part: they are added up before they come here
    by_cell = PlaceRows(KEY_COLUMNS, parts)
    met = engine.exchange(cells.map(by_cell, by_cell.schema(cells.schema)), by=PART_COLUMN, parts=parts)
    return met.map(add_cells, cells.schema).gather()


def add_cells(_: int, cells: pa.Table) -> pa.Table:
    """Return the cells of a part, each once."""
    return arrow_of(frame_of(cells).group_by(KEY_COLUMNS).agg(pl.col(COUNT).sum()))


@dataclass(frozen=True, slots=True)
class PlaceByText:
    """Append the part number of each row, decided by the text of an identifier, whatever its type."""

    key: str
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        text = pa.table({self.key: combine_chunks(table.column(self.key)).cast(pa.large_string())})
        return table.append_column(PART_COLUMN, PlaceRows((self.key,), self.parts)(text).column(PART_COLUMN))


def _drop_dictionaries(table: pa.Table) -> pa.Table:
    """Return the table without dictionaries, through polars because an Arrow cast loads more modules."""
    if not any(pa.types.is_dictionary(field.type) for field in table.schema):
        return table
    texts = pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String)
    return arrow_of(frame_of(table).with_columns(texts))


def find_regions(census: "Census", columns: CensusColumns) -> tuple[str, ...]:
    """Return the states of the public file of areas, or those that have a housing unit (an invariant)."""
    if census.schema.geography.areas is not None and columns.state in census.schema.spine:
        from stirred.census.geography import read_ancestors

        found = read_ancestors(census.schema, census.folder).select(pl.col(columns.state).cast(pl.String))
        return tuple(sorted(found.unique().drop_nulls().collect()[columns.state].to_list()))
    counts = frame_of(census.counts("household", [columns.state], housing_unit_filter(columns)))
    return tuple(sorted(counts[columns.state].drop_nulls().cast(pl.String).to_list()))


def housing_unit_filter(columns: CensusColumns) -> Mapping[str, Sequence[str]] | None:
    """Return the restriction of household records to housing units."""
    kinds = columns.kinds
    if kinds is None or not kinds.group_quarters:
        return None
    homes = (*kinds.occupied, *kinds.vacant, *kinds.housing_units)
    return {kinds.column: [str(level) for level in homes]}
