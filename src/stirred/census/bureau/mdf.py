"""Microdata files in the layouts of DHC: persons (MPD) and units (MUD), each record with the codes of its block.

What the layouts do not say is not there: no record names the unit that a person lives in. Of a unit the kind, tenure,
vacancy and type of group quarters are read.
"""

from pathlib import Path

import polars as pl

from stirred.census.bureau.headers import require_columns
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
OF_PERSONS, OF_UNITS = "mdf-persons", "mdf-units"  # formats of readers/dispatch.py
OCCUPIED, VACANT, QUARTERS = 1, 2, 3
TYPES = (101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402, 403, 404, 405, 501, 601, 602, 701, 801, 802,
         900, 901, 997)  # fmt: skip
RESIDENT = 18  # the relationship of a resident of the first type
MAJOR = {f"{code:03}": min(code // 100, 7) for code in (0, *TYPES)}
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
            _whole("tenure", range(5), "tenure (TEN)"),
            _whole("vacancy", range(8), "why a unit is vacant (VACS)"),
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


def scan(source: Source, folder: Path) -> pl.LazyFrame:
    """The records of a file with Stirred's variables; a code that the layout does not have becomes empty."""
    file = UNITS if source.format == OF_UNITS else PERSONS
    table = delimited.scan(Source(files=(file,), separator="|"), folder).select(COLUMNS[file])
    major = pl.col("GQTYPE").replace_strict(MAJOR, default=None, return_dtype=pl.Int64).alias("gq_type")
    if file == UNITS:
        home = pl.when(pl.col("VACS") == "0").then(OCCUPIED).otherwise(VACANT)
        kind = pl.when(pl.col("RTYPE") == "4").then(QUARTERS).otherwise(home).cast(pl.Int64).alias("kind")
        return table.select(*BLOCKS, kind, major, _number("TEN", "tenure"), _number("VACS", "vacancy"))
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


def _number(code: str, name: str) -> pl.Expr:
    """A code as a whole number; what is none becomes empty, which validation counts."""
    return pl.col(code).str.strip_chars().cast(pl.Int64, strict=False).alias(name)


def _whole(name: str, levels: Levels, label: str) -> VariableSchema:
    return VariableSchema(name=name, kind="integer", levels=levels, label=label)
