"""Recognise and read folders in the formats of the Census Bureau's programs, without a census.toml."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stirred.census.readers import delimited
from stirred.census.schema import (
    Area,
    Areas,
    Geography,
    Kinds,
    Levels,
    Missing,
    OffSpine,
    RecordSchema,
    Schema,
    Source,
    VariableSchema,
)
from stirred.errors import DataError, InputError
from stirred.roots import require_readable

# Check the first line of a file, which must name the columns; what else it holds is never shown.

MAX_HEADER_BYTES = 1 << 20  # bytes of a header, as for every text file


def require_columns(path: Path, wanted: Sequence[str], *, separator: str = "|") -> None:
    """Raise one error if a file is empty, is not text, has no header, or lacks a column."""
    header = _read_names(path, separator)
    example = separator.join(wanted)
    if header == [""]:
        raise DataError(
            f"{path.name} is empty" if not path.stat().st_size else f"the first line of {path.name} is empty",
            why="its first line must name the columns",
            fix=f"first line: {example}",
        )
    if any("\x00" in name or "\ufffd" in name or "\r" in name for name in header):
        raise DataError(
            f"{path.name} is not a text file with one record per line",
            why="its first line is not UTF-8, or holds zero bytes or bare carriage returns",
            fix="save it as UTF-8 with line feeds",
        )
    lacking = [name for name in wanted if name not in header]
    if len(lacking) == len(wanted):  # its first line may be a record, which is not shown
        raise DataError(
            f"the first line of {path.name} names none of its columns",
            why=f"it must name the columns, with {separator} between them",
            fix=f"first line: {example}",
        )
    if lacking:
        raise DataError(
            f"{path.name} lacks {', '.join(lacking)}",
            why=f"its first line must name the columns, with {separator} between them",
            fix=f"first line: {example}",
        )
    twice = sorted(name for name in wanted if header.count(name) > 1)
    if twice:
        raise DataError(
            f"{path.name} names {', '.join(twice)} twice",
            why="it cannot be told which column holds the values",
            fix="remove one of them",
        )


def has_columns(path: Path, wanted: Sequence[str], *, separator: str = "|") -> bool:
    """Return whether the first line names all of these columns."""
    return set(wanted) <= set(_read_names(path, separator))


def _read_names(path: Path, separator: str) -> list[str]:
    """Return the names in the first line, read without Polars, which light commands do not load."""
    with require_readable(path).open("rb") as stream:
        line = stream.readline(MAX_HEADER_BYTES)
    text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
    return [name.strip().strip('"') for name in text.split(separator)]


# The input of SafeTab-P and SafeTab-H: person and household records, and the blocks with their places (GRF-C).

SAFETAB_PERSONS_FILE = "person-records.txt"
SAFETAB_HOUSEHOLDS_FILE = "household-records.txt"
SAFETAB_AREAS_FILE = "GRF-C.txt"
MAX_RACE_CODES = 8
NULL_CODE = "Null"

STATE, COUNTY, TRACT, BLOCK = "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK"
BLOCK_COLUMNS = (STATE, COUNTY, TRACT, BLOCK)
BLOCK_SPINE = (
    Area(name="state", columns=(STATE,)),
    Area(name="county", columns=BLOCK_COLUMNS[:2]),
    Area(name="tract", columns=BLOCK_COLUMNS[:3]),
    Area(name="block_group", columns=BLOCK_COLUMNS, first=12),
    Area(name="block", columns=BLOCK_COLUMNS),
)


def safetab_schema(folder: Path) -> Schema:
    """Return the schema of a folder with person records, household records or both, and GRF-C."""
    require_columns(folder / SAFETAB_AREAS_FILE, (*BLOCK_COLUMNS, "PLACEFP", "AIANNHCE"))
    records = []
    for file, record in (
        (SAFETAB_HOUSEHOLDS_FILE, _household_record()),
        (SAFETAB_PERSONS_FILE, _person_record()),
    ):
        if (folder / file).is_file():
            require_columns(
                folder / file, (*BLOCK_COLUMNS, *(variable.source for variable in record.variables))
            )
            records.append(record)
    return Schema(name="bureau", geography=safetab_geography(SAFETAB_AREAS_FILE), records=tuple(records))


def safetab_geography(file: str) -> Geography:
    """Return the spine from state to block, with places and American Indian areas, from one public file."""
    return Geography(
        spine=BLOCK_SPINE,
        off_spine=(
            OffSpine(
                name="place",
                of="block",
                nests_in="state",
                files=(file,),
                format="grf-c",
                key="code",
                label="place (empty: none)",
            ),
            OffSpine(
                name="aiannh",
                of="block",
                files=(file,),
                format="grf-c",
                key="code",
                label="American Indian, Alaska Native or Native Hawaiian area (empty: none)",
            ),
        ),
        areas=Areas(files=(file,), level="level", format="grf-c"),
        typed_as="text",
    )


def _person_record() -> RecordSchema:
    return RecordSchema(
        name="person",
        source=_text_source(SAFETAB_PERSONS_FILE),
        variables=(
            _safetab_variable("age", "QAGE", range(116), "age"),
            _safetab_variable("sex", "QSEX", (1, 2), "sex (1 male, 2 female)"),
            VariableSchema(
                name="householder",
                column="HOUSEHOLDER",
                kind="category",
                levels=("True", "False"),
                label="whether the person is the householder",
            ),
            _safetab_variable("race", "CENRACE", range(1, 64), "race (1 to 63)"),
            *_code_variables(),
        ),
    )


def _household_record() -> RecordSchema:
    return RecordSchema(
        name="household",
        source=_text_source(SAFETAB_HOUSEHOLDS_FILE),
        variables=(
            _safetab_variable("type", "HOUSEHOLD_TYPE", range(6), "household type"),
            _safetab_variable("tenure", "TEN", range(5), "tenure"),
            _safetab_variable("race", "HHRACE", range(64), "householder's race (1 to 63)"),
            *_code_variables(),
        ),
    )


def _text_source(file: str) -> Source:
    return Source(files=(file,), format="csv", separator="|")


def _safetab_variable(name: str, column: str, levels: Levels, label: str) -> VariableSchema:
    return VariableSchema(name=name, column=column, kind="integer", levels=levels, label=label)


def _code_variables() -> tuple[VariableSchema, ...]:
    """Return the detailed codes of race and ethnicity, which are numbers of four digits; Null stands for none.

    The codes that mean something are in lists that the census does not have, so the schema leaves the levels open.
    """
    none = Missing(policy="keep", codes=(NULL_CODE,))
    named = [
        (f"race_code_{i}", f"QRACE{i}", f"detailed race {i} (empty: none)")
        for i in range(1, MAX_RACE_CODES + 1)
    ]
    return tuple(
        VariableSchema(name=name, column=column, kind="integer", label=label, missing=none)
        for name, column, label in (*named, ("ethnicity_code", "QSPAN", "detailed ethnicity"))
    )


# Read GRF-C, the public list of blocks: every area of the spine with its parent, and the place and area of a block.

# level → how many of the four columns its code joins, cut to its length; the length tells a code with lost zeros
LEVEL_CODE_LENGTHS = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
GRF_FIELD_WIDTHS = {"TABBLKST": 2, "TABBLKCOU": 3, "TABTRACTCE": 6, "TABBLK": 4}
NO_PLACE, NO_AREA = "99999", "9999"


def scan_grf(source: Source, folder: Path) -> pl.LazyFrame:
    """Return one row per area: code, parent and level, and for blocks place and American Indian area.

    A block whose codes have not their fixed widths (leading zeros were lost) has no code, and validation counts it.
    """
    table = delimited.scan_delimited(Source(files=source.files, separator="|"), folder)
    whole = pl.all_horizontal(
        pl.col(name).str.len_chars() == width for name, width in GRF_FIELD_WIDTHS.items()
    )
    state, place, area = pl.col("TABBLKST"), pl.col("PLACEFP"), pl.col("AIANNHCE")
    blocks = table.select(
        pl.when(whole).then(pl.concat_str(list(GRF_FIELD_WIDTHS))).alias("code"),
        pl.when(place != NO_PLACE).then(pl.concat_str(state, place)).alias("place"),
        pl.when(area != NO_AREA).then(area).alias("aiannh"),
    )
    parts = []
    for (above, cut), (level, length) in zip(
        [("", 0), *LEVEL_CODE_LENGTHS.items()], LEVEL_CODE_LENGTHS.items(), strict=False
    ):
        code = pl.col("code").str.slice(0, length)
        parent = code.str.slice(0, cut) if above else pl.lit(None, dtype=pl.String)
        beside = (
            [pl.col("place"), pl.col("aiannh")]
            if level == "block"
            else [pl.lit(None, dtype=pl.String).alias(name) for name in ("place", "aiannh")]
        )
        areas = blocks.select(
            code.alias("code"), parent.alias("parent"), pl.lit(level).alias("level"), *beside
        )
        # every block is a row of its own, so that one that is listed twice is noticed
        parts.append(areas if level == "block" else areas.drop_nulls("code").unique(maintain_order=True))
    return pl.concat(parts)


# The input of PHSafe: person records, unit records, and one row of geography for each unit.
#
# The Bureau's variables become those of the synthetic censuses. What is lost is said where it is lost: HHT 4 to 7
# become two types (living alone, or not), because the sex of the householder is in HHT2.

PHSAFE_PERSONS_FILE, PHSAFE_UNITS_FILE, PHSAFE_AREAS_FILE = "persons.csv", "units.csv", "geo.csv"
PHSAFE_COLUMNS = {
    PHSAFE_PERSONS_FILE: ("RTYPE", "MAFID", "QAGE", "CENHISP", "CENRACE", "RELSHIP"),
    PHSAFE_UNITS_FILE: ("RTYPE", "MAFID", "HHSPAN", "HHRACE", "TEN", "HHT", "HHT2", "CPLT"),
    PHSAFE_AREAS_FILE: ("RTYPE", "MAFID", *BLOCK_COLUMNS),
}
PHSAFE_UNITS_FORMAT, PHSAFE_PERSONS_FORMAT = (
    "phsafe-units",
    "phsafe-persons",
)  # formats of census/readers/sources.py
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


# Microdata files in the layouts of DHC: persons (MPD) and units (MUD), each record with the codes of its block.
#
# What the layouts do not say is not there: no record names the unit that a person lives in. A householder's age is that at
# which its group begins, and the races of a householder are seven. A file of units may lack the columns about households.

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
MDF_HOUSEHOLD_COLUMNS = (
    "HHSIZE", "HHT", "CPLT", "MULTG", "HHLDRAGE", "HHSPAN", "HHRACE", "PAOC", "P18", "P60", "P65", "P75", "PAC", "HHSEX",
)  # fmt: skip
MDF_PERSONS_FORMAT, MDF_UNITS_FORMAT = "mdf-persons", "mdf-units"  # formats of census/readers/sources.py
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


# Folders in the formats of the Census Bureau's programs: recognised by their files, described without a census.toml.

CENSUS_TOML = "census.toml"  # a folder with this file is described by it, whatever else lies there


@dataclass(frozen=True, slots=True)
class BureauFormat:
    """A format: the files that a folder must have, and the schema that these describe; only their headers are read."""

    name: str
    files: tuple[str, ...]
    schema: Callable[[Path], Schema]


# the first one whose files are all there is taken
BUREAU_FORMATS: tuple[BureauFormat, ...] = (
    BureauFormat(
        "SafeTab-P and SafeTab-H", (SAFETAB_PERSONS_FILE, SAFETAB_HOUSEHOLDS_FILE, SAFETAB_AREAS_FILE), safetab_schema
    ),
    BureauFormat("SafeTab-P", (SAFETAB_PERSONS_FILE, SAFETAB_AREAS_FILE), safetab_schema),
    BureauFormat("SafeTab-H", (SAFETAB_HOUSEHOLDS_FILE, SAFETAB_AREAS_FILE), safetab_schema),
    BureauFormat("PHSafe", (PHSAFE_PERSONS_FILE, PHSAFE_UNITS_FILE, PHSAFE_AREAS_FILE), phsafe_schema),
    BureauFormat("DHC microdata", (MDF_PERSONS_FILE, MDF_UNITS_FILE), mdf_schema),
)  # fmt: skip


def recognise_folder(folder: Path) -> Schema | None:
    """Return the schema of a folder in one of the formats; None where none of their files of records is there.

    >>> recognise_folder(Path("no such folder")) is None
    True
    """
    require_readable(folder)
    there = [
        (kind, [name for name in kind.files if not (folder / name).is_file()]) for kind in BUREAU_FORMATS
    ]
    whole = next((kind for kind, lacking in there if not lacking), None)
    if whole is not None:
        return whole.schema(folder)
    partly = [(kind, lacking) for kind, lacking in there if len(lacking) < len(kind.files)]
    if not partly:
        return None
    kind, lacking = min(partly, key=lambda found: len(found[1]))
    raise InputError(
        f"the folder lacks {', '.join(lacking)}",
        why=f"its other files have the format of {kind.name}, which has {', '.join(kind.files)}",
        fix=f"add {', '.join(lacking)}, or describe the files that are there in a {CENSUS_TOML}",
    )
