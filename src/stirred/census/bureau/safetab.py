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

PERSONS = "person-records.txt"
HOUSEHOLDS = "household-records.txt"
AREAS = "GRF-C.txt"
MOST_CODES = 8
NONE = "Null"

STATE, COUNTY, TRACT, BLOCK = "TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK"
BLOCKS = (STATE, COUNTY, TRACT, BLOCK)
SPINE = (
    Area(name="state", columns=(STATE,)),
    Area(name="county", columns=BLOCKS[:2]),
    Area(name="tract", columns=BLOCKS[:3]),
    Area(name="block_group", columns=BLOCKS, first=12),
    Area(name="block", columns=BLOCKS),
)


def schema(folder: Path) -> Schema:
    """The schema of a folder with person records, household records or both, and GRF-C."""
    require_columns(folder / AREAS, (*BLOCKS, "PLACEFP", "AIANNHCE"))
    records = []
    for file, record in ((HOUSEHOLDS, _household()), (PERSONS, _person())):
        if (folder / file).is_file():
            require_columns(folder / file, (*BLOCKS, *(variable.source for variable in record.variables)))
            records.append(record)
    return Schema(name="bureau", geography=geography(AREAS), records=tuple(records))


def geography(file: str) -> Geography:
    """The spine from state to block, with places and American Indian areas beside it, all from one public file."""
    return Geography(
        spine=SPINE,
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


def _person() -> RecordSchema:
    return RecordSchema(
        name="person",
        source=_source(PERSONS),
        variables=(
            _whole("age", "QAGE", range(116), "age"),
            _whole("sex", "QSEX", (1, 2), "sex (1 male, 2 female)"),
            VariableSchema(
                name="householder",
                column="HOUSEHOLDER",
                kind="category",
                levels=("True", "False"),
                label="whether the person is the householder",
            ),
            _whole("race", "CENRACE", range(1, 64), "race (1 to 63)"),
            *_codes(),
        ),
    )


def _household() -> RecordSchema:
    return RecordSchema(
        name="household",
        source=_source(HOUSEHOLDS),
        variables=(
            _whole("type", "HOUSEHOLD_TYPE", range(6), "household type"),
            _whole("tenure", "TEN", range(5), "tenure"),
            _whole("race", "HHRACE", range(64), "householder's race (1 to 63)"),
            *_codes(),
        ),
    )


def _source(file: str) -> Source:
    return Source(files=(file,), format="csv", separator="|")


def _whole(name: str, column: str, levels: Levels, label: str) -> VariableSchema:
    return VariableSchema(name=name, column=column, kind="integer", levels=levels, label=label)


def _codes() -> tuple[VariableSchema, ...]:
    """The detailed codes of race and ethnicity, which are numbers of four digits; Null stands for none.

    The codes that mean something are in lists that the census does not have, so the schema leaves the levels open.
    """
    none = Missing(policy="keep", codes=(NONE,))
    named = [
        (f"race_code_{i}", f"QRACE{i}", f"detailed race {i} (empty: none)") for i in range(1, MOST_CODES + 1)
    ]
    return tuple(
        VariableSchema(name=name, column=column, kind="integer", label=label, missing=none)
        for name, column, label in (*named, ("ethnicity_code", "QSPAN", "detailed ethnicity"))
    )
