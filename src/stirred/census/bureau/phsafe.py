"""The input of PHSafe: person records, unit records, and one row of geography for each unit.

The Bureau's variables become those of the synthetic censuses. What is lost is said where it is lost: HHT 4 to 7 become two
types (living alone, or not), because the sex of the householder is in HHT2.
"""

from pathlib import Path

import polars as pl

from stirred.census.bureau.headers import require_columns
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

PHSAFE_PERSONS_FILE, PHSAFE_UNITS_FILE, PHSAFE_AREAS_FILE = "persons.csv", "units.csv", "geo.csv"
PHSAFE_COLUMNS = {
    PHSAFE_PERSONS_FILE: ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"),
    PHSAFE_UNITS_FILE: ("RTYPE", "MAFID", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"),
    PHSAFE_AREAS_FILE: ("RTYPE", "MAFID", *BLOCK_COLUMNS),
}
PHSAFE_UNITS_FORMAT, PHSAFE_PERSONS_FORMAT = (
    "phsafe-units",
    "phsafe-persons",
)  # formats of readers/dispatch.py
PHSAFE_OCCUPIED, PHSAFE_VACANT, PHSAFE_QUARTERS = 1, 2, 3
GQ_RELATIONSHIPS = (18, 41)  # relationships of residents: institutional (RELSHIP 37), other (38)
HOUSEHOLD_RTYPE, GQ_RTYPES = "3", ("4", "5")  # RTYPE of persons in households; of facilities and residents
PHSAFE_HOUSEHOLD_TYPES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "6": 4, "5": 5, "7": 5}  # HHT → type
PHSAFE_COUPLES = {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "5": 0}  # CPLT → couple
PHSAFE_RELATIONSHIPS = {str(code): code - 19 for code in range(20, 37)}  # RELSHIP 20 (householder) → 1, …


def phsafe_schema(folder: Path) -> Schema:
    """Return the schema of a folder with persons.csv, units.csv and geo.csv."""
    for file, names in PHSAFE_COLUMNS.items():
        require_columns(folder / file, names, separator=",")
    units = RecordSchema(
        name="household",
        source=Source(files=(PHSAFE_UNITS_FILE, PHSAFE_AREAS_FILE), format=PHSAFE_UNITS_FORMAT),
        id="household_id",
        kinds=Kinds(
            column="kind",
            occupied=(PHSAFE_OCCUPIED,),
            vacant=(PHSAFE_VACANT,),
            group_quarters=(PHSAFE_QUARTERS,),
        ),
        variables=(
            _phsafe_variable(
                "kind",
                (PHSAFE_OCCUPIED, PHSAFE_VACANT, PHSAFE_QUARTERS),
                "occupied, vacant or group quarters",
            ),
            _phsafe_variable("type", range(6), "household type (HHT)"),
            _phsafe_variable("hht2", range(13), "household type with couples and own children (HHT2)"),
            _phsafe_variable("couple", range(5), "householder's couple (CPLT)"),
            _phsafe_variable("tenure", range(5), "tenure (TEN)"),
            _phsafe_variable("race", range(64), "householder's race (HHRACE)"),
            _phsafe_variable("hispanic", range(3), "householder's Hispanic origin (HHSPAN)"),
        ),
    )
    persons = RecordSchema(
        name="person",
        source=Source(
            files=(PHSAFE_PERSONS_FILE, PHSAFE_UNITS_FILE, PHSAFE_AREAS_FILE), format=PHSAFE_PERSONS_FORMAT
        ),
        household="household_id",
        linked_to="household",
        variables=(
            _phsafe_variable("relationship", range(42), "relationship to the householder, or group quarters"),
            _phsafe_variable("age", range(116), "age (QAGE)"),
            _phsafe_variable("race", range(1, 64), "race (CENRACE)"),
            _phsafe_variable("hispanic", (1, 2), "Hispanic origin (CENHISP)"),
        ),
    )
    return Schema(
        name="bureau", geography=Geography(spine=BLOCK_SPINE, typed_as="text"), records=(units, persons)
    )


def scan_phsafe(source: Source, folder: Path) -> pl.LazyFrame:
    """Return unit records with their geography, or person records; those without a single unit are left out.

    A MAFID that names two units or two rows of geography is left out with all its persons, as are persons of no unit. No
    error says so: whether it happens is confidential.
    """
    if source.format == PHSAFE_UNITS_FORMAT:
        return _scan_units(folder)
    persons, homes = _scan_text(PHSAFE_PERSONS_FILE, folder), _scan_units(folder).select("household_id")
    own = pl.col("RELSHIP").replace_strict(PHSAFE_RELATIONSHIPS, default=None, return_dtype=pl.Int64)
    resident = pl.when(pl.col("RELSHIP") == "37").then(GQ_RELATIONSHIPS[0]).otherwise(GQ_RELATIONSHIPS[1])
    return persons.select(
        pl.col("MAFID").alias("household_id"),
        pl.when(pl.col("RTYPE") == HOUSEHOLD_RTYPE).then(own).otherwise(resident).alias("relationship"),
        _cast_number("QAGE").alias("age"),
        _cast_number("CENRACE").alias("race"),
        _cast_number("CENHISP").alias("hispanic"),
    ).join(homes, on="household_id", how="semi", maintain_order="left")


def _scan_units(folder: Path) -> pl.LazyFrame:
    units, areas = (
        _drop_repeated(_scan_text(name, folder)) for name in (PHSAFE_UNITS_FILE, PHSAFE_AREAS_FILE)
    )
    areas = areas.select(
        "MAFID", *BLOCK_COLUMNS, pl.col("RTYPE").is_in(list(GQ_RTYPES)).alias("stirred:quarters")
    )
    quarters = pl.col("RTYPE").is_in(list(GQ_RTYPES)) | pl.col("stirred:quarters")
    home = pl.when(pl.col("HHT") == "0").then(PHSAFE_VACANT).otherwise(PHSAFE_OCCUPIED)
    return units.join(areas, on="MAFID", how="inner", maintain_order="left").select(
        pl.col("MAFID").alias("household_id"),
        *BLOCK_COLUMNS,
        pl.when(quarters).then(PHSAFE_QUARTERS).otherwise(home).cast(pl.Int64).alias("kind"),
        pl.col("HHT")
        .replace_strict(PHSAFE_HOUSEHOLD_TYPES, default=None, return_dtype=pl.Int64)
        .alias("type"),
        _cast_number("HHT2").alias("hht2"),
        pl.col("CPLT").replace_strict(PHSAFE_COUPLES, default=None, return_dtype=pl.Int64).alias("couple"),
        _cast_number("TEN").alias("tenure"),
        _cast_number("HHRACE").alias("race"),
        _cast_number("HHSPAN").alias("hispanic"),
    )


def _scan_text(file: str, folder: Path) -> pl.LazyFrame:
    return delimited.scan_delimited(Source(files=(file,), separator=","), folder).select(PHSAFE_COLUMNS[file])


def _drop_repeated(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the rows whose MAFID no other row has."""
    alone = frame.group_by("MAFID").len().filter(pl.col("len") == 1)
    return frame.join(alone, on="MAFID", how="semi", maintain_order="left")


def _cast_number(name: str) -> pl.Expr:
    """Return a code as a whole number; what is none becomes empty, which validation counts."""
    return pl.col(name).str.strip_chars().cast(pl.Int64, strict=False)


def _phsafe_variable(name: str, levels: Levels, label: str) -> VariableSchema:
    return VariableSchema(name=name, kind="integer", levels=levels, label=label)
