"""Run all checks of a census: files, columns, rules between records and areas; and find what is doubtful."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.census import toml
from stirred.census.progress import Progress, silent
from stirred.census.readers.delimited import guess_separator
from stirred.census.readers.parquet import PARQUET_ENDINGS
from stirred.census.readers.sources import find_format, find_reason, is_remote, resolve_files
from stirred.census.records import DIFFERENT_VALUES_FIX, DIFFERENT_VALUES_RULE, CensusFiles
from stirred.census.schema import RecordSchema, VariableSchema
from stirred.census.validation.rules import (
    RULE_STAGES,
    PassCounts,
    Problem,
    Problems,
    RecordRule,
    SingleRecords,
    check_linked_rules,
    count_broken,
    count_linked,
    loosen_census,
    rule_records,
)
from stirred.census.validation.structure import (
    USED_TWICE_RULE,
    check_geography,
    check_links,
    count_twice,
    count_unlinked,
    list_places,
)
from stirred.census.variables import list_absent
from stirred.errors import ClusterError, MissingExtraError, StirredError
from stirred.frames import collect_frame

# Find what breaks no rule of the schema and is still doubtful: a person should look before the records are released.
#
# Doubts are counts about confidential records: they are shown to the office that runs a plan and stand in no public file.

HEAD_NAMES = re.compile(
    r"^(head|householder|head of (the )?household|household head|reference person|(chef|personne de référence)( .*)?"
    r"|jefe(/a)?( .*)?|persona de referencia|haushaltsvorstand|bezugsperson|capofamiglia|persona di riferimento)$",
    re.IGNORECASE,
)
MAX_PERSONS_GROUPED = 20_000_000  # households with two heads are looked for up to here: it takes memory
ROWS_TRIED_FIRST = 10_000  # in which nearly every file shows that its records differ


def find_doubts(census: CensusFiles) -> tuple[Problem, ...]:
    """Return what a person should look at, with counts; nothing here is refused.

    >>> from stirred.census import Census
    >>> homes = {"weight": [0.0, 1.0, 1.0], "rooms": [1, 2, 2]}
    >>> schema = {"record": {"household": {"weight": "weight"}}}
    >>> [str(doubt) for doubt in find_doubts(Census.of(schema, {"household": homes}))]
    ['household.weight: weights of 0 (1 record)']
    """
    return tuple(doubt for record in census.schema.records for doubt in _doubt_records(census, record))


def _doubt_records(census: CensusFiles, record: RecordSchema) -> Iterator[Problem]:
    frame = census.scan(record.name)
    if record.weight and record.weight in frame.collect_schema():
        count = _count_rows(frame.select((pl.col(record.weight) == 0).sum()))
        if count:
            yield Problem(record_type=record.name, column=record.weight, rule="weights of 0", count=count)
    for variable in record.variables:
        heads = _list_heads(variable)
        if record.household and heads and census.count(record.name) <= MAX_PERSONS_GROUPED:
            several = frame.filter(pl.col(variable.name).cast(pl.String).is_in(heads))
            several = several.group_by(record.household).len().filter(pl.col("len") > 1)
            count = _count_rows(several.select(pl.len()))
            if count:
                rule = "households with more than one head"
                yield Problem(
                    record_type=record.name, column=variable.name, rule=rule, count=count, of="households"
                )
    if not record.linked_to and _are_alike(census, record, frame):
        rule = "all records are alike in everything but their place"
        yield Problem(record_type=record.name, column="", rule=rule, count=1, of="record types")


def _list_heads(variable: VariableSchema) -> list[str]:
    """Return the levels that mean the head of a household, by their code or label."""
    labels = dict(variable.labels)
    levels = variable.levels if variable.levels is not None and not isinstance(variable.levels, range) else ()
    named = [str(level) for level in (*levels, *labels)]
    return sorted(
        {level for level in named if HEAD_NAMES.match(level) or HEAD_NAMES.match(labels.get(level, ""))}
    )


def _are_alike(census: CensusFiles, record: RecordSchema, frame: pl.LazyFrame) -> bool:
    """Return whether no variable but identifiers, places and weights has two values."""
    special = {record.id, record.household, record.weight, record.size, *census.schema.spine}
    special |= {off.name for off in census.schema.geography.off_spine}
    names = [name for name in frame.collect_schema().names() if name not in special]
    if not names:
        return False
    for part in (frame.head(ROWS_TRIED_FIRST), frame):
        values = collect_frame(part.select(pl.col(names).n_unique()), streaming=True)
        if values.height and max(values.row(0)) > 1:
            return False
    return _count_rows(frame.select(pl.len())) > 1


def _count_rows(frame: pl.LazyFrame) -> int:
    return int(collect_frame(frame, streaming=True).item())


# Run all checks of a census: files, columns, then rules between columns, records and areas.

_READING_ERRORS = (
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
    pa.ArrowException,
    OSError,
    StirredError,
)
# what ends the check: neither is a problem of the records
_OTHER_ERRORS = (MissingExtraError, ClusterError)


class Passes:
    """The passes of a validation over the records, made in this process; an engine may make them elsewhere."""

    def count_broken(self, records: SingleRecords, stages: Sequence[str] = RULE_STAGES) -> PassCounts:
        """Return how many records break each rule that they decide by themselves."""
        return count_broken(records, stages)

    def count_twice(self, census: CensusFiles, record: RecordSchema, rows: int) -> int:
        """Return how many identifiers were used before by another record."""
        return count_twice(census, record, rows)

    def count_unlinked(
        self, census: CensusFiles, record: RecordSchema, counts: Mapping[str, PassCounts]
    ) -> tuple[int, int]:
        """Return how many persons have no household, and how many households have another size than persons."""
        return count_unlinked(census, record, counts)

    def count_linked(
        self, census: CensusFiles, record: RecordSchema, rules: Sequence[RecordRule]
    ) -> Sequence[int]:
        """Return how many records break each rule across a link."""
        return count_linked(census, record, rules)

    def list_places(self, census: CensusFiles, record_type: str, named: list[str]) -> pl.DataFrame:
        """Return the places of the records, each combination of areas once."""
        return list_places(census, record_type, named)


def check(path: str | Path, *, progress: Progress | None = None) -> Problems:
    """Return all problems of the census that a census.toml describes; damaged files are problems, not errors."""
    path = Path(path)
    if path.is_dir():
        path = path / "census.toml"
    return validate(CensusFiles(schema=toml.load_schema(path), folder=path.parent), progress=progress)


def validate(
    census: CensusFiles, *, progress: Progress | None = None, passes: Passes | None = None
) -> Problems:
    """Return all problems of a census at once, by column, rule and count; ``passes`` says who counts.

    >>> from stirred.census import Census
    >>> census = Census.of({"record": {"household": {"variables": {"size": "1..7"}}}}, {"household": {"size": [1, 9, 0]}})
    >>> print(validate(census))
    1 rule is broken
      household.size: values outside the listed levels (2 records)
    """
    report, passes = progress or silent, passes or Passes()
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
            counts[record.name] = _count_problems(records[record.name], found, passes)
        except _OTHER_ERRORS:
            raise
        except _READING_ERRORS as error:
            records.pop(record.name, None)
            found.append(_make_unreadable(record.name, error))
    lenient = loosen_census(census, records)
    lenient._linkable.update(name for name, count in counts.items() if count.unique)
    between: dict[str, Callable[[], Iterable[Problem]]] = {
        "links": lambda: check_links(lenient, counts, passes.count_twice, passes.count_unlinked),
        "geography": lambda: check_geography(lenient, passes.list_places),
        "rules": lambda: _check_rules(lenient, counts, found, passes),
    }
    for done, (name, step) in enumerate(between.items(), start=len(census.schema.records)):
        report(name, done, steps)
        try:
            found += step()
        except _OTHER_ERRORS:
            raise
        except _READING_ERRORS as error:
            found.append(_make_unreadable(name, error))
    report("done", steps, steps)
    return Problems(problems=tuple(found), checked={name: count.rows for name, count in counts.items()})


def _count_problems(records: SingleRecords, found: list[Problem], passes: Passes) -> PassCounts:
    """Count all rules of single records at once; where a rule cannot be computed, one stage after the other."""
    try:
        whole = passes.count_broken(records)
    except pl.exceptions.PolarsError:
        whole = passes.count_broken(records, ["columns"])
        for stage in ("links", "rules"):
            try:
                more = passes.count_broken(records, [stage]).problems[stage]
            except _OTHER_ERRORS:
                raise
            except _READING_ERRORS as error:
                more = (_make_unreadable(stage, error),)
            whole = replace(whole, problems={**whole.problems, stage: more})
    found += whole.problems["columns"]
    return whole


def _check_rules(
    census: CensusFiles, counts: Mapping[str, PassCounts], found: list[Problem], passes: Passes
) -> Iterator[Problem]:
    for record in census.schema.records:
        yield from counts[record.name].problems["rules"]
    unlinked = [problem.record_type for problem in found if problem.rule == USED_TWICE_RULE]
    yield from check_linked_rules(census, passes.count_linked, unlinked=unlinked)


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
