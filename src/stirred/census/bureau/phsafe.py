"""The input of PHSafe: person records, unit records, and one row of geography for each unit.

The Bureau's variables become those of the synthetic censuses. What is lost is said where it is lost: HHT 4 to 7 become two
types (living alone, or not), because the sex of the householder is in HHT2.
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

PERSONS, UNITS, AREAS = "persons.csv", "units.csv", "geo.csv"
COLUMNS = {
    PERSONS: ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"),
    UNITS: ("RTYPE", "MAFID", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"),
    AREAS: ("RTYPE", "MAFID", *BLOCKS),
}
OF_UNITS, OF_PERSONS = "phsafe-units", "phsafe-persons"  # formats of readers/dispatch.py
OCCUPIED, VACANT, QUARTERS = 1, 2, 3
IN_QUARTERS = (18, 41)  # relationships of residents: institutional (RELSHIP 37), other (38)
LIKE_HOUSEHOLD, LIKE_QUARTERS = "3", ("4", "5")  # RTYPE of persons in households; of facilities and residents
TYPES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "6": 4, "5": 5, "7": 5}  # HHT → type
COUPLES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 0}  # CPLT → couple
RELATIONSHIPS = {str(code): code - 19 for code in range(20, 37)}  # RELSHIP 20 (householder) → 1, …


def schema(folder: Path) -> Schema:
    """The schema of a folder with persons.csv, units.csv and geo.csv."""
    for file, names in COLUMNS.items():
        require_columns(folder / file, names, separator=",")
    units = RecordSchema(
        name="household",
        source=Source(files=(UNITS, AREAS), format=OF_UNITS),
        id="household_id",
        kinds=Kinds(column="kind", occupied=(OCCUPIED,), vacant=(VACANT,), group_quarters=(QUARTERS,)),
        variables=(
            _whole("kind", (OCCUPIED, VACANT, QUARTERS), "occupied, vacant or group quarters"),
            _whole("type", range(6), "household type (HHT)"),
            _whole("hht2", range(13), "household type with couples and own children (HHT2)"),
            _whole("couple", range(5), "householder's couple (CPLT)"),
            _whole("tenure", range(5), "tenure (TEN)"),
            _whole("race", range(64), "householder's race (HHRACE)"),
            _whole("hispanic", range(3), "householder's Hispanic origin (HHSPAN)"),
        ),
    )
    persons = RecordSchema(
        name="person",
        source=Source(files=(PERSONS, UNITS, AREAS), format=OF_PERSONS),
        household="household_id",
        linked_to="household",
        variables=(
            _whole("relationship", range(42), "relationship to the householder, or group quarters"),
            _whole("age", range(116), "age (QAGE)"),
            _whole("race", range(1, 64), "race (CENRACE)"),
            _whole("hispanic", (1, 2), "Hispanic origin (CENHISP)"),
        ),
    )
    return Schema(name="bureau", geography=Geography(spine=SPINE, typed_as="text"), records=(units, persons))


def scan(source: Source, folder: Path) -> pl.LazyFrame:
    """The unit records with their geography, or the person records; what has no single unit record is left out.

    A MAFID that names two units or two rows of geography is left out with all its persons, as are persons of no unit. No
    error says so: whether it happens is confidential.
    """
    if source.format == OF_UNITS:
        return _units(folder)
    persons, homes = _text(PERSONS, folder), _units(folder).select("household_id")
    own = pl.col("RELSHIP").replace_strict(RELATIONSHIPS, default=None, return_dtype=pl.Int64)
    resident = pl.when(pl.col("RELSHIP") == "37").then(IN_QUARTERS[0]).otherwise(IN_QUARTERS[1])
    return persons.select(
        pl.col("MAFID").alias("household_id"),
        pl.when(pl.col("RTYPE") == LIKE_HOUSEHOLD).then(own).otherwise(resident).alias("relationship"),
        _number("QAGE").alias("age"),
        _number("CENRACE").alias("race"),
        _number("CENHISP").alias("hispanic"),
    ).join(homes, on="household_id", how="semi", maintain_order="left")


def _units(folder: Path) -> pl.LazyFrame:
    units, areas = (_once(_text(name, folder)) for name in (UNITS, AREAS))
    areas = areas.select(
        "MAFID", *BLOCKS, pl.col("RTYPE").is_in(list(LIKE_QUARTERS)).alias("stirred:quarters")
    )
    quarters = pl.col("RTYPE").is_in(list(LIKE_QUARTERS)) | pl.col("stirred:quarters")
    home = pl.when(pl.col("HHT") == "0").then(VACANT).otherwise(OCCUPIED)
    return units.join(areas, on="MAFID", how="inner", maintain_order="left").select(
        pl.col("MAFID").alias("household_id"),
        *BLOCKS,
        pl.when(quarters).then(QUARTERS).otherwise(home).cast(pl.Int64).alias("kind"),
        pl.col("HHT").replace_strict(TYPES, default=None, return_dtype=pl.Int64).alias("type"),
        _number("HHT2").alias("hht2"),
        pl.col("CPLT").replace_strict(COUPLES, default=None, return_dtype=pl.Int64).alias("couple"),
        _number("TEN").alias("tenure"),
        _number("HHRACE").alias("race"),
        _number("HHSPAN").alias("hispanic"),
    )


def _text(file: str, folder: Path) -> pl.LazyFrame:
    return delimited.scan(Source(files=(file,), separator=","), folder).select(COLUMNS[file])


def _once(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The rows whose MAFID no other row has."""
    alone = frame.group_by("MAFID").len().filter(pl.col("len") == 1)
    return frame.join(alone, on="MAFID", how="semi", maintain_order="left")


def _number(name: str) -> pl.Expr:
    """A code as a whole number; what is none becomes empty, which validation counts."""
    return pl.col(name).str.strip_chars().cast(pl.Int64, strict=False)


def _whole(name: str, levels: Levels, label: str) -> VariableSchema:
    return VariableSchema(name=name, kind="integer", levels=levels, label=label)
