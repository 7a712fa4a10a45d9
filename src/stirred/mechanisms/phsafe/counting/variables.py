"""The variables that PHSafe reads, and which columns of a census hold them.

| Bureau | here | in a synthetic census |
|---|---|---|
| RTYPE of a unit 2 (4: facility) | housing | a kind other than group quarters |
| RTYPE of a person 3 (5: resident) | relationship below 18 | relationship below 18 |
| HHT 1, 2, 3; 4 and 6; 5 and 7 | type 1, 2, 3; 4; 5 | type |
| HHT2 00 to 12 | hht2 | from couple, children, type and the householder's sex |
| CPLT 1 to 4 (5: none) | couple 1 to 4 (0: none) | couple |
| TEN 1 to 4 | tenure 1 to 4 | tenure |
| RELSHIP 20 to 36 | relationship 1 to 17 | relationship 1 to 17, and 0 for who lives alone |
| HHRACE, HHSPAN | race, hispanic of the household | race, hispanic of the household |
| CENRACE, CENHISP | race, hispanic of the person | race, hispanic of the person |
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from stirred.census.codebook.schema import Kinds

if TYPE_CHECKING:
    from stirred.census import Census

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
