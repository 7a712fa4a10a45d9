"""Count records and cells that are unique in a release, and compare them with the census."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.assess.assessment import TableAssessment, has_variables
from stirred.assess.attack.result import wilson_interval
from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.census import Census, Schema
from stirred.engine import Engine
from stirred.errors import InputError
from stirred.frames import collect_frame, frame_of
from stirred.mechanisms.release import (
    Release,
    compare_lone_in_parts,
    count_lone,
    count_records,
    filter_participants,
    join_household,
    join_variables,
    open_records,
    require_schema,
    scan_records,
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
    found = []
    for record_type in sorted(release.microdata):  # a release that was taken up again has its own order
        for by, place in choose_questions(release, record_type, most=most):
            records, alone = count_lone(release, by, record_type=record_type, engine=engine)
            found.append(
                Uniqueness(record_type=record_type, by=by, place=place, records=records, alone=alone)
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
    held = []
    for one in found:
        known = [name for name in one.by if has_variables(census, one.record_type, [name])]
        if one.place not in ("", *known) or known in ([], [one.place]):
            continue  # variables of the mechanism's own
        before, after, same = _compare_lone(census, release, one.record_type, known, engine)
        held.append(replace(one, by=tuple(known), alone=after, before=before, as_shown=same))
    return tuple(held)


def _compare_lone(
    census: Census, release: Release, record_type: str, by: Sequence[str], engine: Engine
) -> tuple[int, int, int]:
    """Return how many records are alone in the census, in the release, and in both with the same values."""
    records = open_records(release, record_type, engine)
    if not records.fits_memory(len(join_variables(release, record_type, by).collect_schema())):
        return compare_lone_in_parts(records, census, by)
    cells = count_records(release, by, record_type=record_type, engine=engine)
    after = _text(_select_alone(_swappable_cells(census.schema, record_type, cells)), by)
    cells = frame_of(census.counts(record_type, by))
    before = _text(_select_alone(_swappable_cells(census.schema, record_type, cells)), by)
    same = before.join(after, on=list(by), how="semi", nulls_equal=True)
    return before.height, after.height, same.height


def count_cells_of_one(tables: Mapping[str, tuple[Sequence[str], pa.Table]]) -> tuple[int, int]:
    """Return how many cells published tables have, and how many of them show a count of 1."""
    counts = [frame_of(table)["count"] for _, table in tables.values() if "count" in table.column_names]
    return sum(len(column) for column in counts), sum(int((column == 1).sum()) for column in counts)


def _swappable_cells(schema: Schema, record_type: str, cells: pl.DataFrame) -> pl.DataFrame:
    """Return the cells of records that can be swapped, where the schema says which."""
    return pl.DataFrame(filter_participants(schema, record_type, cells.lazy()).collect())


def _select_alone(cells: pl.DataFrame) -> pl.DataFrame:
    return cells.filter(pl.col("count") == 1)


def _text(cells: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    return cells.select(pl.col(name).cast(pl.String) for name in by)


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
