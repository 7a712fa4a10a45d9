"""Count records and cells that are unique in a release, and compare them with the census."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.assess.assessment import TableAssessment, has_variables
from stirred.assess.risk import Baseline, RiskMeasure, name_measure, wilson_interval
from stirred.census import Census, Schema
from stirred.census.schema import Kinds
from stirred.engine import Engine
from stirred.engine.tables import PART_COLUMN, hash_rows
from stirred.errors import InputError
from stirred.frames import collect_frame, frame_of
from stirred.mechanisms.release import (
    Release,
    as_arrow,
    as_frame,
    choose_keys,
    join_household,
    join_variables,
    open_records,
    require_schema,
    scan_records,
    takes_part,
)

# How many records are alone with their values of the published variables: with place and without.


def measure_uniques(
    source: Release | Census,
    by: Sequence[str] | None = None,
    record_type: str = "household",
    *,
    place: bool = True,
) -> RiskMeasure:
    """Measure how many records of a release or a census are unique on these variables.

    Without ``place`` no area is among the variables. The number of a release is public, that of a census is not.

    >>> census = Census.of({"geography": {"spine": ["county"]}},
    ...                    {"household": {"county": ["a", "a", "b"], "size": [1, 1, 1]}})
    >>> measure_uniques(census, ["county", "size"]).value, measure_uniques(census, ["size"]).value
    (1.0, 0.0)
    """
    table = count_uniques(source, [by], record_type, place=place)
    return RiskMeasure(
        name=name_measure("unique"),
        about=f"{record_type} records, on {table['by'][0]}",
        kind="absolute",
        value=float(table["unique"][0]),
        unit="count",
        public=isinstance(source, Release),
    )


def count_uniques(
    source: Release | Census,
    asked: Sequence[Sequence[str] | None],
    record_type: str = "household",
    *,
    place: bool = True,
) -> pl.DataFrame:
    """Return one row for each list of variables: by, records, unique, share."""
    schema = require_schema(source) if isinstance(source, Release) else source.schema
    rows = []
    for by in asked:
        names = list(by) if by is not None else _published_variables(source, schema, record_type)
        names = [name for name in names if place or name not in _areas(schema)]
        if not names:
            raise InputError(
                "no variable is left to be unique on",
                why="only areas were named, and they are left out",
                fix="name a variable that is not an area, or leave place=True",
            )
        frame = (
            join_variables(source, record_type, names)
            if isinstance(source, Release)
            else source.scan(record_type, names, ordered=False)
        )
        sizes = frame.group_by(names).agg(pl.len().alias("many"))
        found = collect_frame(
            sizes.select(pl.col("many").sum().alias("all"), (pl.col("many") == 1).sum().alias("one"))
        )
        records, alone = int(found["all"][0] or 0), int(found["one"][0] or 0)
        rows.append((", ".join(names), records, alone, alone / records if records else 0.0))
    return pl.DataFrame(rows, schema=["by", "records", "unique", "share"], orient="row")


def _published_variables(source: Release | Census, schema: Schema, record_type: str) -> list[str]:
    """Return all variables of the records, with those of their household, but no identifier."""
    record = schema.record(record_type)
    if isinstance(source, Release):
        there = join_household(source, schema, record_type).collect_schema().names()
    else:
        home = source.columns(record.linked_to) if record.linked_to else ()
        there = list(dict.fromkeys([*source.columns(record_type), *home]))
    hidden = {record.id, record.household, *(other.id for other in schema.records)}
    return [name for name in there if name not in hidden]


def _areas(schema: Schema) -> set[str]:
    return {*schema.spine, *(off.name for off in schema.geography.off_spine)}


# Records that no other one is like, counted from marks: a word of 64 bits for the values of each list of variables.
#
# Records of equal values have equal marks. Among 20 million others two share one with a chance of about 1 in 100,000, and
# are not counted as alone then. Marks move as numbers, once for all lists, of which each holds the one before it.


@dataclass(frozen=True, slots=True)
class LoneCounts:
    """How many records of a release can be swapped, how many are alone, and how many are in the census and in both."""

    records: int
    alone: int
    before: int
    same: int


def count_lone(
    release: Release,
    asked: Sequence[Sequence[str]],
    *,
    record_type: str,
    engine: Engine,
    census: Census | None = None,
) -> list[LoneCounts]:
    """Count the records that no other one is like, for lists of variables of which each holds the one before it.

    In parts sums come back, and no record. Without a census nothing is counted of it.
    """
    if not asked:
        return []
    keys = tuple(asked[-1])
    frame = join_variables(release, record_type, keys)
    records = open_records(release, record_type, engine)
    kinds = records.schema.record(record_type).kinds
    columns, sides = len(frame.collect_schema()), 1 if census is None else 2
    fits, parts = records.fits_memory(columns), records.parts(sides * (len(keys) + 2))
    # in memory the release is held in one table; elsewhere it flows
    whole = as_arrow(collect_frame(frame.select(keys))) if fits else None
    shown = None if fits else choose_keys(records, keys, parts)
    true = None if census is None else engine.records(census, record_type, list(keys))
    schemas = [one.schema for one in (whole, shown, true) if one is not None]
    text = frozenset(
        name for name in keys if not _share_words([schema.field(name).type for schema in schemas])
    )
    mark = MarkRows(tuple(map(tuple, asked)), text, kinds, 1 if fits else parts)
    form = mark(schemas[0].empty_table()).schema
    kernel = CountMarks(len(asked))
    flows = [flow.map(mark, form) for flow in (shown, true) if flow is not None]
    if whole is None:
        met = engine.exchange(*flows, by=PART_COLUMN, parts=parts)
        found = as_frame(met.map(kernel, LONE_SCHEMA).gather()).group_by("question").sum().sort("question")
    else:
        found = as_frame(kernel(0, mark(whole), *(flow.gather() for flow in flows)))
    return [LoneCounts(*row) for row in found.drop("question").rows()]


def _share_words(kinds: Sequence[pa.DataType]) -> bool:
    """Return whether equal values of these types have equal words; otherwise they are compared as text."""
    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds]
    return all(kind == plain[0] for kind in plain) or any(
        all(is_one(kind) for kind in plain) for is_one in (pa.types.is_integer, _is_text)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _cast_text(name: str, kind: pl.DataType) -> pl.Expr:
    """Return the expression for values as text; numbers that are equal have one text, zeros with either sign too.

    >>> pl.DataFrame({"a": [0.0, -0.0, 1.5]}).select(_cast_text("a", pl.Float64()))["a"].to_list()
    ['0.0', '0.0', '1.5']
    """
    text = pl.col(name).cast(pl.String)
    return (
        pl.when(text == "-0.0").then(pl.lit("0.0")).otherwise(text).alias(name) if kind.is_float() else text
    )


ROWS_COLUMN = "rows"
LONE_SCHEMA = pa.schema([(name, pa.int64()) for name in ("question", "records", "alone", "before", "same")])
Marks = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class MarkRows:
    """Return the marks of some records that can be swapped; where they move, each once with its number and its part."""

    asked: tuple[tuple[str, ...], ...]
    text: frozenset[str]  # variables that are compared as text, because two files store them in two types
    kinds: Kinds | None  # of records that never take part
    parts: int  # 1: they stay in memory

    def __call__(self, table: pa.Table) -> pa.Table:
        frame = as_frame(table.select(self.asked[-1]))
        kept = frame.filter(takes_part(self.kinds, self.asked[-1])).with_columns(
            _cast_text(name, frame.schema[name]) for name in self.text
        )
        rows, done, marks = as_arrow(kept), 0, list[Marks]()
        for by in self.asked:
            marks.append(hash_rows(rows, by[done:], marks[-1] if marks else None))
            done = len(by)
        many = np.ones(kept.height, np.int64)
        if self.parts > 1:
            _, first, many = np.unique(marks[-1], return_index=True, return_counts=True)
            marks = [mark[first] for mark in marks]
        columns = {name_marks(number): mark for number, mark in enumerate(marks)}
        places = (marks[0] % np.uint64(self.parts)).astype(np.int32)
        return pa.table({**columns, ROWS_COLUMN: many.astype(np.int64, copy=False), PART_COLUMN: places})


def name_marks(number: int) -> str:
    """Return the name of the column that has the marks of a question."""
    return f"mark{number}"


@dataclass(frozen=True, slots=True)
class CountMarks:
    """Count the records of a part, those that are alone in the release, in the census, and in both with one mark."""

    questions: int

    def __call__(self, _: int, shown: pa.Table, true: pa.Table | None = None) -> pa.Table:
        records = int(shown.column(ROWS_COLUMN).to_numpy().sum())
        rows = []
        for number in range(self.questions):
            after = _find_lone(shown, number)
            before = after[:0] if true is None else _find_lone(true, number)
            same = np.intersect1d(before, after, assume_unique=True)
            rows.append((number, records, after.size, before.size, same.size))
        columns = dict(zip(LONE_SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True))
        return pa.table(columns, schema=LONE_SCHEMA)


def _find_lone(marked: pa.Table, question: int) -> Marks:
    """Return the marks that one record has."""
    marks, many = (marked.column(name).to_numpy() for name in (name_marks(question), ROWS_COLUMN))
    ordered = np.sort(
        np.concatenate([marks, marks[many > 1]])
    )  # what several have stands there twice or more
    edges = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    return np.asarray(ordered[edges[1:] & edges[:-1]] if ordered.size else ordered)


# How many records no other record is like, in a release and in the census that it was made from.

MAX_RECORDS = 20_000_000  # records of a type beyond which cells are as many as records, and are not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The unique records of a type on some variables; ``place`` is the area among them, or "".

    ``before`` is how many were alone in the census, ``as_shown`` how many of those the release shows alone with the same
    values: both are confidential, and None in what is computed from a release alone.
    """

    record_type: str
    by: tuple[str, ...]
    place: str
    records: int
    alone: int
    before: int | None = None
    as_shown: int | None = None

    @property
    def share(self) -> float:
        """Return the share of records that are unique."""
        return self.alone / self.records if self.records else 0.0

    def measures(self) -> tuple[RiskMeasure, ...]:
        """Return the numbers as measures of risk; those from the release alone are public."""
        about = f"{self.record_type} records, on {', '.join(self.by)}"
        found = [
            RiskMeasure(
                name=name_measure("alone"),
                about=about,
                kind="absolute",
                value=self.share,
                unit="share",
                public=True,
            )
        ]
        if self.before is not None and self.as_shown is not None:
            value = self.as_shown / self.before if self.before else None
            found.append(
                RiskMeasure(
                    name=name_measure("alone_shown"),
                    about=f"{self.record_type} records alone in the census on {', '.join(self.by)}",
                    kind="absolute",
                    value=value,
                    unit="share",
                    reason="" if self.before else "no record is alone in the census",
                )
            )
        return tuple(found)


def measure_uniqueness(
    release: Release, engine: Engine, *, most: int | None = MAX_RECORDS
) -> tuple[Uniqueness, ...]:
    """Count, for each type of released records, those that are unique without and with their place.

    Types with more than ``most`` records are left out; None counts all of them.
    """
    found: list[Uniqueness] = []
    for record_type in sorted(release.microdata):  # a release that was taken up again has its own order
        questions = choose_questions(release, record_type, most=most)
        counted = count_lone(release, [by for by, _ in questions], record_type=record_type, engine=engine)
        found += (
            Uniqueness(record_type=record_type, by=by, place=place, records=one.records, alone=one.alone)
            for (by, place), one in zip(questions, counted, strict=True)
        )
    return tuple(found)


def choose_questions(
    release: Release, record_type: str, *, most: int | None = MAX_RECORDS
) -> list[tuple[tuple[str, ...], str]]:
    """Return the variables to compare records on: their own, then these with the finest known area."""
    schema = require_schema(release)
    beyond = most is not None and _count_rows(release, record_type) > most
    if record_type not in schema.record_types or beyond:
        return []
    there = join_household(release, schema, record_type).collect_schema().names()
    record = schema.record(record_type)
    other = {record.id, record.household, *schema.spine, *(off.name for off in schema.geography.off_spine)}
    columns = scan_records(release.microdata[record_type]).collect_schema().names()
    own = tuple(name for name in columns if name not in other)
    place = next((level for level in reversed(schema.spine) if level in there), "")
    found = [(own, "")] if own else []
    return [*found, ((*own, place), place)] if place and own else found


def compare_with_census(
    found: Sequence[Uniqueness], release: Release, census: Census, engine: Engine
) -> tuple[Uniqueness, ...]:
    """Add the census to the counts: how many records were unique, and how many of them are unchanged."""
    held: list[Uniqueness] = []
    for record_type in dict.fromkeys(one.record_type for one in found):
        asked = []
        for one in (one for one in found if one.record_type == record_type):
            known = tuple(name for name in one.by if has_variables(census, record_type, [name]))
            if one.place in ("", *known) and known not in ((), (one.place,)):  # else the mechanism's own
                asked.append((one, known))
        counted = count_lone(
            release, [known for _, known in asked], record_type=record_type, engine=engine, census=census
        )
        held += (
            replace(one, by=known, alone=both.alone, before=both.before, as_shown=both.same)
            for (one, known), both in zip(asked, counted, strict=True)
        )
    return tuple(held)


def count_cells_of_one(tables: Mapping[str, tuple[Sequence[str], pa.Table]]) -> tuple[int, int]:
    """Return how many cells published tables have, and how many of them show a count of 1."""
    counts = [frame_of(table)["count"] for _, table in tables.values() if "count" in table.column_names]
    return sum(len(column) for column in counts), sum(int((column == 1).sum()) for column in counts)


def _count_rows(release: Release, record_type: str) -> int:
    data = release.microdata[record_type]
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())


# Cells that count one record: how many of them a release shows as they are, beside a guess from totals.

GUESS_NAME = "guess from the area's total"


def measure_singletons(item: TableAssessment) -> tuple[RiskMeasure, ...]:
    """Measure recall and precision of an attacker who takes a published 1 for one real record.

    The guess knows the total of the area, and how the whole census is divided among the other variables: a cell that it
    expects to hold λ records holds one with probability λe^{−λ} (Poisson).
    """
    before, after = item.pair.arrays()
    true, shown = before == 1, after == 1
    if not true.any():
        return ()
    both, about = int((true & shown).sum()), f"cells of {item.name} that count one record"
    guess = (Baseline(name=GUESS_NAME, value=float(_chance_of_one(item)[true].mean())),)
    return (
        _share_measure(name_measure("recall_ones"), about, both, int(true.sum()), guess),
        _share_measure(
            name_measure("precision_ones"), about.replace("count", "show"), both, int(shown.sum()), ()
        ),
    )


def _share_measure(
    name: str, about: str, hits: int, whole: int, guesses: tuple[Baseline, ...]
) -> RiskMeasure:
    low, high = wilson_interval(hits, whole) if whole else (None, None)
    return RiskMeasure(
        name=name,
        about=about,
        kind="absolute",
        value=hits / whole if whole else None,
        low=low,
        high=high,
        unit="share",
        baselines=guesses,
        reason="" if whole else "no cell shows one record",
    )


def _chance_of_one(item: TableAssessment) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Return the probability that each cell holds one record, from its area's total and overall shares."""
    frame, by = item.pair.frame, list(item.by)
    if len(by) < 2:
        return np.full(
            frame.height, exp(-1)
        )  # an area with one record: there is no better guess than a mean of one
    area, rest = by[0], by[1:]
    held = pl.col("reference")
    expected = held.sum().over(area) * held.sum().over(rest) / held.sum()
    rate = frame.select(expected.cast(pl.Float64).alias("rate"))["rate"].to_numpy()
    return np.asarray(rate * np.exp(-rate), dtype=np.float64)
