"""Leave records out that break a rule of the schema, by whole households.

A household goes out with all its persons when its record or the record of one of its persons breaks a rule, when its
identifier or that of one of its persons occurs twice, or when its size is not the number of its persons. Persons without
a household go out. Only the identifiers of what goes out are held in memory; the files are filtered while they stream.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from stirred.census.canonical import Forms, add_keys, apply_forms
from stirred.census.codebook.schema import RecordSchema
from stirred.census.files import CensusFiles
from stirred.census.flat import find_home
from stirred.census.validation.check import split_person_files
from stirred.census.validation.faulty import Households, add_place_rules, drop_found, find_faulty
from stirred.census.validation.loose import loosen_census
from stirred.census.validation.problems import Problems
from stirred.census.validation.single import SingleRecords, rule_file, rule_records
from stirred.errors import DataError
from stirred.frames import collect_frame

RAW_PREFIX = "\x00raw "


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanFiles:
    """What is left of the files of a census, with the forms of their columns."""

    files: Mapping[str, pl.LazyFrame]
    forms: Mapping[str, Forms]


def drop_invalid(census: CensusFiles, problems: Problems) -> CleanFiles:
    """Return the files without invalid records; refuse where more than single records is at fault."""
    _require_single(census, problems)
    whole = split_person_files(census, [])
    records = {record.name: rule_records(whole, record) for record in whole.schema.records}
    lenient = loosen_census(whole, records)
    records = {name: add_place_rules(some, lenient) for name, some in records.items()}
    rows = max(problems.checked.values(), default=0)
    files: dict[str, pl.LazyFrame] = {}
    for home in whole.schema.records:
        if home.linked_to:
            continue
        if not home.id:
            files[home.name] = _drop_from_file(census, home, records[home.name])
            continue
        households = Households.of(home, records, whole)
        found = find_faulty(lenient, records, households, rows)
        mixed = _list_mixed(census, home, households)
        found = found if mixed is None else pl.concat([found, mixed]).unique()
        for record, key in [(home, home.id), *((m, m.household) for m in households.members)]:
            declared = census.schema.record(record.name)
            if census.shares_file(declared):
                files[record.name] = _drop_from_person_file(census, declared, households, found)
            else:
                files[record.name] = _drop_from_file(
                    census, declared, records[record.name], households, key, found
                )
    forms = {
        name: census.find_column_forms(census.schema.record(name), frame) for name, frame in files.items()
    }
    return CleanFiles(files=files, forms=forms)


def require_mended(before: Problems, after: Problems) -> dict[str, int]:
    """Return how many records of each type were left out; raise where rules are still broken."""
    if after:
        raise DataError(
            "the records break rules that remain after households are left out",
            why="; ".join(map(str, after.worst())),
            fix="see all problems with: stirred data check census.toml",
        )
    return {name: count - after.checked.get(name, 0) for name, count in before.checked.items()}


def _require_single(census: CensusFiles, problems: Problems) -> None:
    unread = [problem for problem in problems.worst(len(problems)) if problem.of in ("files", "columns")]
    if unread:
        raise DataError(
            "the files break the schema, and leaving households out does not help",
            why="; ".join(map(str, unread[:3])),
            fix="see all problems with: stirred data check census.toml",
        )
    for record in census.schema.records:
        if record.linked_to and census.schema.record(record.linked_to).linked_to:
            raise DataError(
                "households cannot be left out of this census",
                why=f"{record.name} records are linked to {record.linked_to} records, which are linked to others",
                fix='correct the records, and keep invalid = "refuse"',
            )


def _drop_from_file(
    census: CensusFiles,
    record: RecordSchema,
    rules: SingleRecords,
    households: Households | None = None,
    key: str = "",
    found: pl.DataFrame | None = None,
) -> pl.LazyFrame:
    """Return the file as given, without invalid records and without the records of faulty households."""
    source = census.source(record.name)
    names = source.collect_schema().names()
    frame, beside = _add_raw_columns(census, record, source)
    some = rule_file(census.schema, record, frame, beside)
    rest = some.frame.filter(~rules.breaks_rule)
    if households is not None and found is not None:
        rest = drop_found(rest, households, key, found)
    return rest.select(pl.col(RAW_PREFIX + name).alias(name) for name in names)


def _drop_from_person_file(
    census: CensusFiles, record: RecordSchema, households: Households, found: pl.DataFrame
) -> pl.LazyFrame:
    """Return the person file without the persons of faulty households or of none."""
    source = census.source(record.name)
    names = source.collect_schema().names()
    frame, _ = _add_raw_columns(census, record, source)
    key = _find_home_record(census, record).household_from
    there = pl.col(key).is_not_null()
    if frame.collect_schema()[key] == pl.String:
        there &= pl.col(key) != ""
    rest = drop_found(frame.filter(there), households, key, found)
    return rest.select(pl.col(RAW_PREFIX + name).alias(name) for name in names)


def _find_home_record(census: CensusFiles, record: RecordSchema) -> RecordSchema:
    return record if record.household_from else find_home(census.schema, record) or record


def _add_raw_columns(
    census: CensusFiles, record: RecordSchema, source: pl.LazyFrame
) -> tuple[pl.LazyFrame, list[str]]:
    """Return the file with every value in its one form, and beside it the columns as they are given."""
    names = source.collect_schema().names()
    beside = [RAW_PREFIX + name for name in names]
    twice = source.with_columns(pl.col(name).alias(RAW_PREFIX + name) for name in names)
    frame = apply_forms(twice, {**census.forms(record.name), **dict.fromkeys(beside, "kept")})
    return add_keys(census.schema, record, frame), beside


def _list_mixed(census: CensusFiles, home: RecordSchema, households: Households) -> pl.DataFrame | None:
    """Return the households of a person file whose persons differ in a column of the household."""
    declared = census.schema.record(home.name)
    if not declared.household_from:
        return None
    mixed = census.flat_households(declared).mixed_keys
    if mixed is None:
        return None
    return collect_frame(households.keys(mixed.to_frame().lazy(), mixed.name))
