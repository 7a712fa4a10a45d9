"""The nine tables that PHSafe measures: universe, cells, and what is published by race and ethnicity of whom.

The cells are those of the S-DHC (PH1 to PH8). PH5_num is PH4 and PH8_num is a sum of PH7: they cost nothing.
"""

from dataclasses import dataclass
from typing import Final

import polars as pl

from stirred.mechanisms.phsafe.counting.variables import OCCUPIED_COLUMN, OWN_COLUMNS

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
