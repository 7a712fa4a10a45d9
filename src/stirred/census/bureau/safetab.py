"""The input of SafeTab-P and SafeTab-H: person and household records, and the blocks with their places (GRF-C)."""

from pathlib import Path

from stirred.census.bureau.headers import require_columns
from stirred.census.codebook.schema import (
    Area,
    Areas,
    Geography,
    Levels,
    Missing,
    OffSpine,
    RecordSchema,
    Schema,
    Source,
    VariableSchema,
)

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
