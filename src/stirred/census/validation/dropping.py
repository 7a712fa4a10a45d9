"""Leave records out that break a rule of the schema, by whole households.

A household goes out with all its persons when its record or the record of one of its persons breaks a rule, when its
identifier or that of one of its persons occurs twice, or when its size is not the number of its persons. Persons without
a household go out. Only the identifiers of what goes out are held in memory; the files are filtered while they stream.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from stirred.census.canonical import Forms, keyed, shaped
from stirred.census.codebook.schema import RecordSchema
from stirred.census.files import CensusFiles
from stirred.census.flat import home_of
from stirred.census.validation.check import split
from stirred.census.validation.faulty import Households, faulty, unknown_places, without
from stirred.census.validation.loose import loose
from stirred.census.validation.problems import Problems
from stirred.census.validation.single import SingleRecords, single, singled
from stirred.errors import DataError
from stirred.frames import collected

RAW = "\x00raw "


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """What is left of the files of a census, with the forms of their columns."""

    files: Mapping[str, pl.LazyFrame]
    forms: Mapping[str, Forms]


def cleaned(census: CensusFiles, problems: Problems) -> Cleaned:
    """The files without the records that break a rule; refused where more than single records is at fault."""
    _require_single(census, problems)
    whole = split(census, [])
    records = {record.name: single(whole, record) for record in whole.schema.records}
    lenient = loose(whole, records)
    records = {name: unknown_places(some, lenient) for name, some in records.items()}
    rows = max(problems.checked.values(), default=0)
    files: dict[str, pl.LazyFrame] = {}
    for home in whole.schema.records:
        if home.linked_to:
            continue
        if not home.id:
            files[home.name] = _kept(census, home, records[home.name])
            continue
        households = Households.of(home, records, whole)
        found = faulty(lenient, records, households, rows)
        mixed = _mixed(census, home, households)
        found = found if mixed is None else pl.concat([found, mixed]).unique()
        for record, key in [(home, home.id), *((m, m.household) for m in households.members)]:
            declared = census.schema.record(record.name)
            if census.shared(declared):
                files[record.name] = _rest(census, declared, households, found)
            else:
                files[record.name] = _kept(census, declared, records[record.name], households, key, found)
    forms = {name: census.forms_in(census.schema.record(name), frame) for name, frame in files.items()}
    return Cleaned(files=files, forms=forms)


def require_mended(before: Problems, after: Problems) -> dict[str, int]:
    """How many records of each type went out; refused where rules are still broken."""
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


def _kept(
    census: CensusFiles,
    record: RecordSchema,
    rules: SingleRecords,
    households: Households | None = None,
    key: str = "",
    found: pl.DataFrame | None = None,
) -> pl.LazyFrame:
    """The file of a record type as it is given, without the records that break a rule or lie in a faulty household."""
    source = census.source(record.name)
    names = source.collect_schema().names()
    frame, beside = _with_raw(census, record, source)
    some = singled(census.schema, record, frame, beside)
    rest = some.frame.filter(~rules.broken)
    if households is not None and found is not None:
        rest = without(rest, households, key, found)
    return rest.select(pl.col(RAW + name).alias(name) for name in names)


def _rest(
    census: CensusFiles, record: RecordSchema, households: Households, found: pl.DataFrame
) -> pl.LazyFrame:
    """The person file that households are made from, without the persons of faulty households or of none."""
    source = census.source(record.name)
    names = source.collect_schema().names()
    frame, _ = _with_raw(census, record, source)
    key = _home(census, record).household_from
    there = pl.col(key).is_not_null()
    if frame.collect_schema()[key] == pl.String:
        there &= pl.col(key) != ""
    rest = without(frame.filter(there), households, key, found)
    return rest.select(pl.col(RAW + name).alias(name) for name in names)


def _home(census: CensusFiles, record: RecordSchema) -> RecordSchema:
    return record if record.household_from else home_of(census.schema, record) or record


def _with_raw(
    census: CensusFiles, record: RecordSchema, source: pl.LazyFrame
) -> tuple[pl.LazyFrame, list[str]]:
    """The file with every value in its one form, and beside it the columns as they are given."""
    names = source.collect_schema().names()
    beside = [RAW + name for name in names]
    twice = source.with_columns(pl.col(name).alias(RAW + name) for name in names)
    frame = shaped(twice, {**census.forms(record.name), **dict.fromkeys(beside, "kept")})
    return keyed(census.schema, record, frame), beside


def _mixed(census: CensusFiles, home: RecordSchema, households: Households) -> pl.DataFrame | None:
    """The households of a person file whose persons differ in a column of the household."""
    declared = census.schema.record(home.name)
    if not declared.household_from:
        return None
    mixed = census.homes(declared).mixed
    if mixed is None:
        return None
    return collected(households.keys(mixed.to_frame().lazy(), mixed.name))
