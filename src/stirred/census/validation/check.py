"""Run all checks of a census: files, columns, then rules between columns, records and areas."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.census.codebook import parse
from stirred.census.codebook.schema import RecordSchema
from stirred.census.codebook.typed import list_absent
from stirred.census.failures import find_reason
from stirred.census.files import CensusFiles
from stirred.census.flat import DIFFERENT_VALUES_FIX, DIFFERENT_VALUES_RULE
from stirred.census.progress import Progress, silent
from stirred.census.readers.delimited import guess_separator
from stirred.census.readers.dispatch import find_format
from stirred.census.readers.parquet import PARQUET_ENDINGS
from stirred.census.readers.paths import is_remote, resolve_files
from stirred.census.validation.links import USED_TWICE_RULE, check_links
from stirred.census.validation.loose import loosen_census
from stirred.census.validation.problems import Problem, Problems
from stirred.census.validation.rules import check_linked_rules
from stirred.census.validation.single import PassCounts, SingleRecords, count_broken, rule_records
from stirred.census.validation.tree import check_geography
from stirred.errors import MissingExtraError, StirredError

_READING_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    OSError,
    StirredError,
)


def check(path: str | Path, *, progress: Progress | None = None) -> Problems:
    """Return all problems of the census that a census.toml describes; damaged files are problems, not errors."""
    path = Path(path)
    if path.is_dir():
        path = path / "census.toml"
    return validate(CensusFiles(schema=parse.load_schema(path), folder=path.parent), progress=progress)


def validate(census: CensusFiles, *, progress: Progress | None = None) -> Problems:
    """Return all problems of a census at once, by column, rule and count.

    >>> from stirred.census import Census
    >>> census = Census.of({"record": {"household": {"variables": {"size": "1..7"}}}}, {"household": {"size": [1, 9, 0]}})
    >>> print(validate(census))
    1 rule is broken
      household.size: values outside the listed levels (2 records)
    """
    report = progress or silent
    steps = len(census.schema.records) + 3
    found: list[Problem] = []
    records: dict[str, SingleRecords] = {}
    counts: dict[str, PassCounts] = {}
    census = split_person_files(census, found)
    for done, record in enumerate(census.schema.records):
        report(f"{record.name} records", done, steps)
        damaged = list(_check_files(census, record))
        found += damaged
        if damaged:
            continue
        try:
            lacking = list_absent(census.schema, record, census.file(record.name).collect_schema())
            found += _check_columns(census, record, lacking)
            records[record.name] = rule_records(census, record)
            counts[record.name] = _count_problems(records[record.name], found)
        except MissingExtraError:
            raise
        except _READING_ERRORS as error:
            records.pop(record.name, None)
            found.append(_make_unreadable(record.name, error))
    lenient = loosen_census(census, records)
    lenient._linkable.update(name for name, count in counts.items() if count.unique)
    between: dict[str, Callable[[], Iterable[Problem]]] = {
        "links": lambda: check_links(lenient, counts),
        "geography": lambda: check_geography(lenient),
        "rules": lambda: _check_rules(lenient, counts, found),
    }
    for done, (name, step) in enumerate(between.items(), start=len(census.schema.records)):
        report(name, done, steps)
        try:
            found += step()
        except _READING_ERRORS as error:
            found.append(_make_unreadable(name, error))
    report("done", steps, steps)
    return Problems(problems=tuple(found), checked={name: count.rows for name, count in counts.items()})


def _count_problems(records: SingleRecords, found: list[Problem]) -> PassCounts:
    """Count all rules of single records at once; where a rule cannot be computed, one stage after the other."""
    try:
        whole = count_broken(records)
    except pl.exceptions.PolarsError:
        whole = count_broken(records, ["columns"])
        for stage in ("links", "rules"):
            try:
                more = count_broken(records, [stage]).problems[stage]
            except _READING_ERRORS as error:
                more = (_make_unreadable(stage, error),)
            whole = replace(whole, problems={**whole.problems, stage: more})
    found += whole.problems["columns"]
    return whole


def _check_rules(
    census: CensusFiles, counts: Mapping[str, PassCounts], found: list[Problem]
) -> Iterator[Problem]:
    for record in census.schema.records:
        yield from counts[record.name].problems["rules"]
    yield from check_linked_rules(
        census, unlinked=[p.record_type for p in found if p.rule == USED_TWICE_RULE]
    )


def _check_columns(census: CensusFiles, record: RecordSchema, lacking: list[str]) -> Iterator[Problem]:
    hint = find_separator_hint(census, record) if lacking else ""
    for name in lacking:
        rule = "the file has no such column"
        yield Problem(record_type=record.name, column=name, rule=rule, count=1, of="columns", fix=hint)


def split_person_files(census: CensusFiles, found: list[Problem]) -> CensusFiles:
    """Return the census with households made from person files; columns that differ become problems.

    A file that cannot be read is left for the checks of its record type, which report it.
    """
    made: dict[str, pl.LazyFrame] = {}
    for record in census.schema.records:
        if record.household_from:
            with suppress(*_READING_ERRORS):
                homes = census.flat_households(record)
                made[record.name] = homes.frame.lazy()
                found += [
                    Problem(
                        record_type=record.name,
                        column=column,
                        rule=DIFFERENT_VALUES_RULE,
                        count=count,
                        of="households",
                        fix=DIFFERENT_VALUES_FIX,
                    )
                    for column, count in homes.uneven.items()
                ]
    if not made:
        return census
    persons = {
        record.name: census.file(record.name)
        for record in census.schema.records
        if record.linked_to in made and census.shares_file(record)
    }
    records = tuple(
        replace(record, household_from="") if record.name in made else record
        for record in census.schema.records
    )
    files = {**census.files, **made, **persons}
    return CensusFiles(schema=replace(census.schema, records=records), files=files, folder=census.folder)


def _check_files(census: CensusFiles, record: RecordSchema) -> Iterator[Problem]:
    """List the files that cannot be opened, by name."""
    if record.name in census.files or any(map(is_remote, record.source.files)):
        return  # tables, and addresses that only Spark can open
    try:
        kind = find_format(record.source, census.folder)
        if kind != "parquet":
            return
        for path in resolve_files(record.source.files, census.folder, PARQUET_ENDINGS):
            try:
                pq.read_metadata(path)
            except (pa.ArrowException, OSError, ValueError):
                rule = "the file is not a complete Parquet file"
                fix = "copy or write it again"
                yield Problem(
                    record_type=record.name, column=path.name, rule=rule, count=1, of="files", fix=fix
                )
    except (StirredError, IndexError) as error:
        why, fix = _explain_error(error)
        yield Problem(record_type=record.name, column="", rule=why, count=1, of="files", fix=fix)


def _make_unreadable(name: str, error: BaseException) -> Problem:
    why, fix = _explain_error(error)
    return Problem(record_type=name, column="", rule=why, count=1, of="files", fix=fix)


def _explain_error(error: BaseException) -> tuple[str, str]:
    if isinstance(error, StirredError) and error.what.startswith("cannot read the "):
        return error.why, error.fix  # the report names the records already
    if isinstance(error, StirredError):
        return (f"{error.what}: {error.why}" if error.why else error.what), error.fix
    return find_reason(error)


def find_separator_hint(census: CensusFiles, record: RecordSchema) -> str:
    """Return the setting that corrects a wrong separator, or empty text when it is right."""
    source = record.source
    try:
        if record.name in census.files or find_format(source, census.folder) != "csv":
            return ""
        path = resolve_files(source.files, census.folder)[0]
    except (StirredError, IndexError):
        return ""
    better = guess_separator(path)
    return f'separator = "{better}"' if source.separator and source.separator != better else ""
