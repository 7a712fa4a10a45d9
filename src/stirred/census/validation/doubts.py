"""Find what breaks no rule of the schema and is still doubtful: a person should look before the records are released.

Doubts are counts about confidential records: they are shown to the office that runs a plan and stand in no public file.
"""

import re
from collections.abc import Iterator

import polars as pl

from stirred.census.codebook.schema import RecordSchema, VariableSchema
from stirred.census.files import CensusFiles
from stirred.census.validation.problems import Problem
from stirred.frames import collect_frame

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
