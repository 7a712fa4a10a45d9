"""Microdata files in the layouts of DHC: persons (MPD) and units (MUD), each record with the codes of its block.

What the layouts do not say is not there: no record names the unit that a person lives in. A householder's age is that at
which its group begins, and the races of a householder are seven. A file of units may lack the columns about households.
"""

from pathlib import Path

import polars as pl

from stirred.census.bureau.headers import has_columns, require_columns
from stirred.census.bureau.safetab import BLOCKS, SPINE
from stirred.census.codebook.schema import (
    Geography,
    Kinds,
    Levels,
    RecordSchema,
    Schema,
    Source,
    VariableSchema,
)
from stirred.census.readers import delimited

PERSONS, UNITS = "mdf-person.txt", "mdf-unit.txt"
COLUMNS = {
    PERSONS: (*BLOCKS, "RTYPE", "GQTYPE", "RELSHIP", "QSEX", "QAGE", "CENHISP", "CENRACE", "LIVE_ALONE"),
    UNITS: (*BLOCKS, "RTYPE", "GQTYPE", "TEN", "VACS"),
}
HOUSEHOLD = ("HHSIZE", "HHT", "CPLT", "MULTG", "HHLDRAGE", "HHSPAN", "HHRACE", "PAOC", "P18", "P60", "P65", "P75", "PAC",
             "HHSEX")  # fmt: skip
OF_PERSONS, OF_UNITS = "mdf-persons", "mdf-units"  # formats of readers/dispatch.py
OCCUPIED, VACANT, QUARTERS = 1, 2, 3
TYPES = (101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402, 403, 404, 405, 501, 601, 602, 701, 801, 802,
         900, 901, 997)  # fmt: skip
RESIDENT = 18  # the relationship of a resident of the first type
MAJOR = {f"{code:03}": min(code // 100, 7) for code in (0, *TYPES)}
DETAILED = {f"{code:03}": code for code in (0, *TYPES)}
AGES = dict(zip("0123456789", (0, 15, 25, 35, 45, 55, 60, 65, 75, 85), strict=True))  # HHLDRAGE → age
KINDS = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "6": 4, "5": 5, "7": 5}  # HHT → type
FAMILIES = {"0": 0, "1": 1, "2": 1, "3": 1, "4": 0, "5": 0, "6": 0, "7": 0}  # HHT → relatives
COUPLES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 0}  # CPLT → couple
CHILDREN = {"0": 0, "1": 1, "2": 3, "3": 2, "4": 0}  # PAOC → children, PAC → minors
GENERATIONS = {"0": 0, "1": 0, "2": 1}  # MULTG → multigenerational
RELATIONSHIPS = {str(code): code - 19 for code in range(21, 37)}  # RELSHIP 21 (spouse) → 2, …


def schema(folder: Path) -> Schema:
    """The schema of a folder with a file of persons and a file of units."""
    for file, names in COLUMNS.items():
        require_columns(folder / file, names)
    types = _whole("gq_type", range(8), "major type of group quarters (0: none)")
    units = RecordSchema(
        name="household",
        source=Source(files=(UNITS,), format=OF_UNITS),
        kinds=Kinds(column="kind", occupied=(OCCUPIED,), vacant=(VACANT,), group_quarters=(QUARTERS,)),
        variables=(
            _whole("kind", (OCCUPIED, VACANT, QUARTERS), "occupied, vacant or group quarters"),
            types,
            _whole("gq_code", (0, *TYPES), "detailed type of group quarters (GQTYPE; 0: none)"),
            _whole("tenure", range(5), "tenure (TEN)"),
            _whole("vacancy", range(8), "why a unit is vacant (VACS)"),
            *(_described() if has_columns(folder / UNITS, HOUSEHOLD) else ()),
        ),
    )
    persons = RecordSchema(
        name="person",
        source=Source(files=(PERSONS,), format=OF_PERSONS),
        variables=(
            types,
            _whole("relationship", range(42), "relationship to the householder, or type of group quarters"),
            _whole("sex", (1, 2), "sex (1 male, 2 female)"),
            _whole("age", range(116), "age (QAGE)"),
            _whole("hispanic", (1, 2), "Hispanic origin (CENHISP)"),
            _whole("race", range(1, 64), "race (CENRACE)"),
        ),
    )
    return Schema(name="bureau", geography=Geography(spine=SPINE, typed_as="text"), records=(units, persons))


def _described() -> tuple[VariableSchema, ...]:
    """The variables of a household."""
    return (
        _whole("size", range(8), "persons, at most 7 (HHSIZE)"),
        _whole("type", range(6), "household type (HHT)"),
        _whole("couple", range(5), "householder's couple (CPLT)"),
        _whole("children", range(4), "householder's own children under 18 (PAOC)"),
        _whole("relatives", (0, 1), "relatives of the householder (HHT)"),
        _whole(
            "minors", range(4), "ages under 18 of all but the householder and the spouse or partner (PAC)"
        ),
        _whole("young", (0, 1), "anybody under 18 (P18)"),
        _whole("multigenerational", (0, 1), "three or more generations of relatives (MULTG)"),
        _whole("elderly", range(4), "age of the oldest person (P60, P65, P75)"),
        _whole("sex", range(3), "householder's sex (HHSEX)"),
        _whole("age", tuple(AGES.values()), "where the householder's age group begins (HHLDRAGE)"),
        _whole("hispanic", range(3), "householder's Hispanic origin (HHSPAN)"),
        _whole("race", range(8), "householder's race (HHRACE)"),
    )


def scan(source: Source, folder: Path) -> pl.LazyFrame:
    """The records of a file with Stirred's variables; a code that the layout does not have becomes empty."""
    file = UNITS if source.format == OF_UNITS else PERSONS
    table = delimited.scan(Source(files=(file,), separator="|"), folder)
    major = _coded("GQTYPE", "gq_type", MAJOR)
    if file == UNITS:
        home = pl.when(pl.col("VACS") == "0").then(OCCUPIED).otherwise(VACANT)
        kind = pl.when(pl.col("RTYPE") == "4").then(QUARTERS).otherwise(home).cast(pl.Int64).alias("kind")
        names = table.collect_schema().names()
        there = _household() if set(HOUSEHOLD) <= set(names) else ()
        return table.select(*BLOCKS, kind, major, *_unit(), *there)
    residents = {f"{code:03}": RESIDENT + i for i, code in enumerate(TYPES)}
    resident = pl.col("GQTYPE").replace_strict(residents, default=None, return_dtype=pl.Int64)
    other = pl.col("RELSHIP").replace_strict(RELATIONSHIPS, default=None, return_dtype=pl.Int64)
    alone = pl.when(pl.col("LIVE_ALONE") == "1").then(0).otherwise(1)
    own = pl.when(pl.col("RELSHIP") == "20").then(alone).otherwise(other)
    return table.select(
        *BLOCKS,
        major,
        pl.when(pl.col("RTYPE") == "5").then(resident).otherwise(own).cast(pl.Int64).alias("relationship"),
        _number("QSEX", "sex"),
        _number("QAGE", "age"),
        _number("CENHISP", "hispanic"),
        _number("CENRACE", "race"),
    )


def _unit() -> tuple[pl.Expr, ...]:
    """What a unit file says of every unit."""
    return _coded("GQTYPE", "gq_code", DETAILED), _number("TEN", "tenure"), _number("VACS", "vacancy")


def _household() -> tuple[pl.Expr, ...]:
    """What it says of a household; zeros where there is none."""
    old = sum((_number(name, name) for name in ("P60", "P65", "P75")), pl.lit(0, pl.Int64))
    return (
        _number("HHSIZE", "size"),
        _coded("HHT", "type", KINDS),
        _coded("CPLT", "couple", COUPLES),
        _coded("PAOC", "children", CHILDREN),
        _coded("HHT", "relatives", FAMILIES),
        _coded("PAC", "minors", CHILDREN),
        _number("P18", "young"),
        _coded("MULTG", "multigenerational", GENERATIONS),
        old.alias("elderly"),
        _number("HHSEX", "sex"),
        _coded("HHLDRAGE", "age", AGES),
        _number("HHSPAN", "hispanic"),
        _number("HHRACE", "race"),
    )


def _coded(code: str, name: str, values: dict[str, int]) -> pl.Expr:
    """A code in Stirred's numbers; one that the layout does not have becomes empty."""
    return pl.col(code).replace_strict(values, default=None, return_dtype=pl.Int64).alias(name)


def _number(code: str, name: str) -> pl.Expr:
    """A code as a whole number; what is none becomes empty, which validation counts."""
    return pl.col(code).str.strip_chars().cast(pl.Int64, strict=False).alias(name)


def _whole(name: str, levels: Levels, label: str) -> VariableSchema:
    return VariableSchema(name=name, kind="integer", levels=levels, label=label)
