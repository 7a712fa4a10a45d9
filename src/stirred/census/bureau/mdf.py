"""Microdata files in the layouts of DHC: persons (MPD) and units (MUD), each record with the codes of its block.

What the layouts do not say is not there: no record names the unit that a person lives in. A householder's age is that at
which its group begins, and the races of a householder are seven. A file of units may lack the columns about households.
"""

from pathlib import Path

import polars as pl

from stirred.census.bureau.headers import has_columns, require_columns
from stirred.census.bureau.safetab import BLOCK_COLUMNS, BLOCK_SPINE
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

MDF_PERSONS_FILE, MDF_UNITS_FILE = "mdf-person.txt", "mdf-unit.txt"
MDF_COLUMNS = {
    MDF_PERSONS_FILE: (
        *BLOCK_COLUMNS,
        "RTYPE",
        "GQTYPE",
        "RELSHIP",
        "QSEX",
        "QAGE",
        "CENHISP",
        "CENRACE",
        "LIVE_ALONE",
    ),
    MDF_UNITS_FILE: (*BLOCK_COLUMNS, "RTYPE", "GQTYPE", "TEN", "VACS"),
}
MDF_HOUSEHOLD_COLUMNS = ("HHSIZE", "HHT", "CPLT", "MULTG", "HHLDRAGE", "HHSPAN", "HHRACE", "PAOC", "P18", "P60", "P65", "P75", "PAC",
             "HHSEX")  # fmt: skip
MDF_PERSONS_FORMAT, MDF_UNITS_FORMAT = "mdf-persons", "mdf-units"  # formats of readers/dispatch.py
MDF_OCCUPIED, MDF_VACANT, MDF_QUARTERS = 1, 2, 3
GQ_TYPE_CODES = (101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402, 403, 404, 405, 501, 601, 602, 701, 801, 802,
         900, 901, 997)  # fmt: skip
RESIDENT_RELATIONSHIP = 18  # the relationship of a resident of the first type
MAJOR_GQ_TYPES = {f"{code:03}": min(code // 100, 7) for code in (0, *GQ_TYPE_CODES)}
DETAILED_GQ_TYPES = {f"{code:03}": code for code in (0, *GQ_TYPE_CODES)}
HOUSEHOLDER_AGES = dict(
    zip("0123456789", (0, 15, 25, 35, 45, 55, 60, 65, 75, 85), strict=True)
)  # HHLDRAGE → age
MDF_HOUSEHOLD_TYPES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "6": 4, "5": 5, "7": 5}  # HHT → type
FAMILY_FLAGS = {"0": 0, "1": 1, "2": 1, "3": 1, "4": 0, "5": 0, "6": 0, "7": 0}  # HHT → relatives
MDF_COUPLES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 0}  # CPLT → couple
CHILDREN = {"0": 0, "1": 1, "2": 3, "3": 2, "4": 0}  # PAOC → children, PAC → minors
GENERATIONS = {"0": 0, "1": 0, "2": 1}  # MULTG → multigenerational
MDF_RELATIONSHIPS = {str(code): code - 19 for code in range(21, 37)}  # RELSHIP 21 (spouse) → 2, …


def mdf_schema(folder: Path) -> Schema:
    """Return the schema of a folder with a file of persons and a file of units."""
    for file, names in MDF_COLUMNS.items():
        require_columns(folder / file, names)
    types = _mdf_variable("gq_type", range(8), "major type of group quarters (0: none)")
    units = RecordSchema(
        name="household",
        source=Source(files=(MDF_UNITS_FILE,), format=MDF_UNITS_FORMAT),
        kinds=Kinds(
            column="kind", occupied=(MDF_OCCUPIED,), vacant=(MDF_VACANT,), group_quarters=(MDF_QUARTERS,)
        ),
        variables=(
            _mdf_variable(
                "kind", (MDF_OCCUPIED, MDF_VACANT, MDF_QUARTERS), "occupied, vacant or group quarters"
            ),
            types,
            _mdf_variable(
                "gq_code", (0, *GQ_TYPE_CODES), "detailed type of group quarters (GQTYPE; 0: none)"
            ),
            _mdf_variable("tenure", range(5), "tenure (TEN)"),
            _mdf_variable("vacancy", range(8), "why a unit is vacant (VACS)"),
            *(_household_variables() if has_columns(folder / MDF_UNITS_FILE, MDF_HOUSEHOLD_COLUMNS) else ()),
        ),
    )
    persons = RecordSchema(
        name="person",
        source=Source(files=(MDF_PERSONS_FILE,), format=MDF_PERSONS_FORMAT),
        variables=(
            types,
            _mdf_variable(
                "relationship", range(42), "relationship to the householder, or type of group quarters"
            ),
            _mdf_variable("sex", (1, 2), "sex (1 male, 2 female)"),
            _mdf_variable("age", range(116), "age (QAGE)"),
            _mdf_variable("hispanic", (1, 2), "Hispanic origin (CENHISP)"),
            _mdf_variable("race", range(1, 64), "race (CENRACE)"),
        ),
    )
    return Schema(
        name="bureau", geography=Geography(spine=BLOCK_SPINE, typed_as="text"), records=(units, persons)
    )


def _household_variables() -> tuple[VariableSchema, ...]:
    """Return the schemas of the variables of a household."""
    return (
        _mdf_variable("size", range(8), "persons, at most 7 (HHSIZE)"),
        _mdf_variable("type", range(6), "household type (HHT)"),
        _mdf_variable("couple", range(5), "householder's couple (CPLT)"),
        _mdf_variable("children", range(4), "householder's own children under 18 (PAOC)"),
        _mdf_variable("relatives", (0, 1), "relatives of the householder (HHT)"),
        _mdf_variable(
            "minors", range(4), "ages under 18 of all but the householder and the spouse or partner (PAC)"
        ),
        _mdf_variable("young", (0, 1), "anybody under 18 (P18)"),
        _mdf_variable("multigenerational", (0, 1), "three or more generations of relatives (MULTG)"),
        _mdf_variable("elderly", range(4), "age of the oldest person (P60, P65, P75)"),
        _mdf_variable("sex", range(3), "householder's sex (HHSEX)"),
        _mdf_variable(
            "age", tuple(HOUSEHOLDER_AGES.values()), "where the householder's age group begins (HHLDRAGE)"
        ),
        _mdf_variable("hispanic", range(3), "householder's Hispanic origin (HHSPAN)"),
        _mdf_variable("race", range(8), "householder's race (HHRACE)"),
    )


def scan_mdf(source: Source, folder: Path) -> pl.LazyFrame:
    """Return the records of a file with Stirred's variables; codes unknown to the layout become empty."""
    file = MDF_UNITS_FILE if source.format == MDF_UNITS_FORMAT else MDF_PERSONS_FILE
    table = delimited.scan_delimited(Source(files=(file,), separator="|"), folder)
    major = _recode_column("GQTYPE", "gq_type", MAJOR_GQ_TYPES)
    if file == MDF_UNITS_FILE:
        home = pl.when(pl.col("VACS") == "0").then(MDF_OCCUPIED).otherwise(MDF_VACANT)
        kind = pl.when(pl.col("RTYPE") == "4").then(MDF_QUARTERS).otherwise(home).cast(pl.Int64).alias("kind")
        names = table.collect_schema().names()
        there = _household_columns() if set(MDF_HOUSEHOLD_COLUMNS) <= set(names) else ()
        return table.select(*BLOCK_COLUMNS, kind, major, *_unit_columns(), *there)
    residents = {f"{code:03}": RESIDENT_RELATIONSHIP + i for i, code in enumerate(GQ_TYPE_CODES)}
    resident = pl.col("GQTYPE").replace_strict(residents, default=None, return_dtype=pl.Int64)
    other = pl.col("RELSHIP").replace_strict(MDF_RELATIONSHIPS, default=None, return_dtype=pl.Int64)
    alone = pl.when(pl.col("LIVE_ALONE") == "1").then(0).otherwise(1)
    own = pl.when(pl.col("RELSHIP") == "20").then(alone).otherwise(other)
    return table.select(
        *BLOCK_COLUMNS,
        major,
        pl.when(pl.col("RTYPE") == "5").then(resident).otherwise(own).cast(pl.Int64).alias("relationship"),
        _recode_number("QSEX", "sex"),
        _recode_number("QAGE", "age"),
        _recode_number("CENHISP", "hispanic"),
        _recode_number("CENRACE", "race"),
    )


def _unit_columns() -> tuple[pl.Expr, ...]:
    """Return the expressions of the variables of every unit."""
    return (
        _recode_column("GQTYPE", "gq_code", DETAILED_GQ_TYPES),
        _recode_number("TEN", "tenure"),
        _recode_number("VACS", "vacancy"),
    )


def _household_columns() -> tuple[pl.Expr, ...]:
    """Return the expressions of the variables of a household; zeros where there is none."""
    old = sum((_recode_number(name, name) for name in ("P60", "P65", "P75")), pl.lit(0, pl.Int64))
    return (
        _recode_number("HHSIZE", "size"),
        _recode_column("HHT", "type", MDF_HOUSEHOLD_TYPES),
        _recode_column("CPLT", "couple", MDF_COUPLES),
        _recode_column("PAOC", "children", CHILDREN),
        _recode_column("HHT", "relatives", FAMILY_FLAGS),
        _recode_column("PAC", "minors", CHILDREN),
        _recode_number("P18", "young"),
        _recode_column("MULTG", "multigenerational", GENERATIONS),
        old.alias("elderly"),
        _recode_number("HHSEX", "sex"),
        _recode_column("HHLDRAGE", "age", HOUSEHOLDER_AGES),
        _recode_number("HHSPAN", "hispanic"),
        _recode_number("HHRACE", "race"),
    )


def _recode_column(code: str, name: str, values: dict[str, int]) -> pl.Expr:
    """Return a code in Stirred's numbers; one that the layout does not have becomes empty."""
    return pl.col(code).replace_strict(values, default=None, return_dtype=pl.Int64).alias(name)


def _recode_number(code: str, name: str) -> pl.Expr:
    """Return a code as a whole number; what is none becomes empty, which validation counts."""
    return pl.col(code).str.strip_chars().cast(pl.Int64, strict=False).alias(name)


def _mdf_variable(name: str, levels: Levels, label: str) -> VariableSchema:
    return VariableSchema(name=name, kind="integer", levels=levels, label=label)
