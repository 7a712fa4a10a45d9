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
from stirred.census.codebook.typed import absent
from stirred.census.failures import reason
from stirred.census.files import CensusFiles
from stirred.census.flat import DIFFERENT, MOVE
from stirred.census.progress import Progress, silent
from stirred.census.readers.delimited import guess_separator
from stirred.census.readers.dispatch import format_of
from stirred.census.readers.parquet import ENDINGS
from stirred.census.readers.paths import far, resolve
from stirred.census.validation.links import USED_TWICE, check_links
from stirred.census.validation.loose import loose
from stirred.census.validation.problems import Problem, Problems
from stirred.census.validation.rules import check_linked_rules
from stirred.census.validation.single import Counted, SingleRecords, counted, single
from stirred.census.validation.tree import check_geography
from stirred.errors import MissingExtraError, StirredError

_READING = (pl.exceptions.PolarsError, pl.exceptions.PanicException, pa.ArrowException, OSError, StirredError)


def check(path: str | Path, *, progress: Progress | None = None) -> Problems:
    """All problems of the census that a census.toml describes; damaged files are problems, not errors."""
    path = Path(path)
    if path.is_dir():
        path = path / "census.toml"
    return validate(CensusFiles(schema=parse.load(path), folder=path.parent), progress=progress)


def validate(census: CensusFiles, *, progress: Progress | None = None) -> Problems:
    """All problems of a census at once, by column, rule and count.

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
    counts: dict[str, Counted] = {}
    census = split(census, found)
    for done, record in enumerate(census.schema.records):
        report(f"{record.name} records", done, steps)
        damaged = list(_files(census, record))
        found += damaged
        if damaged:
            continue
        try:
            lacking = absent(census.schema, record, census.file(record.name).collect_schema())
            found += _lacking(census, record, lacking)
            records[record.name] = single(census, record)
            counts[record.name] = _counted(records[record.name], found)
        except MissingExtraError:
            raise
        except _READING as error:
            records.pop(record.name, None)
            found.append(_unreadable(record.name, error))
    lenient = loose(census, records)
    lenient._linkable.update(name for name, count in counts.items() if count.unique)
    between: dict[str, Callable[[], Iterable[Problem]]] = {
        "links": lambda: check_links(lenient, counts),
        "geography": lambda: check_geography(lenient),
        "rules": lambda: _rules(lenient, counts, found),
    }
    for done, (name, step) in enumerate(between.items(), start=len(census.schema.records)):
        report(name, done, steps)
        try:
            found += step()
        except _READING as error:
            found.append(_unreadable(name, error))
    report("done", steps, steps)
    return Problems(problems=tuple(found), checked={name: count.rows for name, count in counts.items()})


def _counted(records: SingleRecords, found: list[Problem]) -> Counted:
    """Count all rules of single records at once; where a rule cannot be computed, one stage after the other."""
    try:
        whole = counted(records)
    except pl.exceptions.PolarsError:
        whole = counted(records, ["columns"])
        for stage in ("links", "rules"):
            try:
                more = counted(records, [stage]).problems[stage]
            except _READING as error:
                more = (_unreadable(stage, error),)
            whole = replace(whole, problems={**whole.problems, stage: more})
    found += whole.problems["columns"]
    return whole


def _rules(census: CensusFiles, counts: Mapping[str, Counted], found: list[Problem]) -> Iterator[Problem]:
    for record in census.schema.records:
        yield from counts[record.name].problems["rules"]
    yield from check_linked_rules(census, unlinked=[p.record_type for p in found if p.rule == USED_TWICE])


def _lacking(census: CensusFiles, record: RecordSchema, lacking: list[str]) -> Iterator[Problem]:
    hint = separator_hint(census, record) if lacking else ""
    for name in lacking:
        rule = "the file has no such column"
        yield Problem(record_type=record.name, column=name, rule=rule, count=1, of="columns", fix=hint)


def split(census: CensusFiles, found: list[Problem]) -> CensusFiles:
    """The census with the households of person files made; columns that differ within households are problems.

    A file that cannot be read is left for the checks of its record type, which report it.
    """
    made: dict[str, pl.LazyFrame] = {}
    for record in census.schema.records:
        if record.household_from:
            with suppress(*_READING):
                homes = census.homes(record)
                made[record.name] = homes.frame.lazy()
                found += [
                    Problem(
                        record_type=record.name,
                        column=column,
                        rule=DIFFERENT,
                        count=count,
                        of="households",
                        fix=MOVE,
                    )
                    for column, count in homes.uneven.items()
                ]
    if not made:
        return census
    persons = {
        record.name: census.file(record.name)
        for record in census.schema.records
        if record.linked_to in made and census.shared(record)
    }
    records = tuple(
        replace(record, household_from="") if record.name in made else record
        for record in census.schema.records
    )
    files = {**census.files, **made, **persons}
    return CensusFiles(schema=replace(census.schema, records=records), files=files, folder=census.folder)


def _files(census: CensusFiles, record: RecordSchema) -> Iterator[Problem]:
    """List the files that cannot be opened, by name."""
    if record.name in census.files or any(map(far, record.source.files)):
        return  # tables, and addresses that only Spark can open
    try:
        kind = format_of(record.source, census.folder)
        if kind != "parquet":
            return
        for path in resolve(record.source.files, census.folder, ENDINGS):
            try:
                pq.read_metadata(path)
            except (pa.ArrowException, OSError, ValueError):
                rule = "the file is not a complete Parquet file"
                fix = "copy or write it again"
                yield Problem(
                    record_type=record.name, column=path.name, rule=rule, count=1, of="files", fix=fix
                )
    except (StirredError, IndexError) as error:
        why, fix = _why(error)
        yield Problem(record_type=record.name, column="", rule=why, count=1, of="files", fix=fix)


def _unreadable(name: str, error: BaseException) -> Problem:
    why, fix = _why(error)
    return Problem(record_type=name, column="", rule=why, count=1, of="files", fix=fix)


def _why(error: BaseException) -> tuple[str, str]:
    if isinstance(error, StirredError) and error.what.startswith("cannot read the "):
        return error.why, error.fix  # the report names the records already
    if isinstance(error, StirredError):
        return (f"{error.what}: {error.why}" if error.why else error.what), error.fix
    return reason(error)


def separator_hint(census: CensusFiles, record: RecordSchema) -> str:
    """The setting that corrects a wrong separator of a delimited file; empty when the separator is right."""
    source = record.source
    try:
        if record.name in census.files or format_of(source, census.folder) != "csv":
            return ""
        path = resolve(source.files, census.folder)[0]
    except (StirredError, IndexError):
        return ""
    better = guess_separator(path)
    return f'separator = "{better}"' if source.separator and source.separator != better else ""
