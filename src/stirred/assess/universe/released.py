"""What the exact numbers of a release give away, counted in the release alone.

A release and the census that it was made from agree on every invariant, so both have one universe: each of its numbers is
the same whether it is counted in the one or in the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.assess.universe.bounds import find_separators, keep_maximal, observed_bounds
from stirred.assess.universe.shape import CHOICES_COLUMN, COUNT_COLUMN, Shape, build_shape
from stirred.assess.universe.sizes import log_labelled, log_places, size_strata
from stirred.census import Census, Schema
from stirred.errors import StirredError
from stirred.frames import frame_of
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import require_schema, scan_records
from stirred.spec import Margin, Multiverse
from stirred.spec.multiverse import AtLeast, Invariant


@dataclass(frozen=True, slots=True, kw_only=True)
class Disclosure:
    """What exact numbers reveal of one record type; ``records`` is None if none is released.

    ``fixed`` records are exact with all their values; of the others ``certain`` have values that follow from exact
    numbers, and ``values`` is how many combinations of values those leave open for a record, as a geometric mean.
    ``places`` is the same for one of whom all but the place is known.
    """

    record_type: str
    exact: tuple[Invariant, ...]
    records: int | None = None
    fixed: int = 0
    certain: int | None = None
    values: float | None = None
    places: float | None = None


def measure_disclosure(
    release: Release, *, tables: Sequence[pa.Table] = (), record_type: str = "", most: int = 2_000_000
) -> tuple[Disclosure, ...]:
    """Measure what exact numbers reveal, for each record type that they are about.

    ``tables`` are published tables of counts of ``record_type``, for types without released records. Types with more than
    ``most`` records, and those of which the release shows too little, have no ``values``.
    """
    multiverse = release.specification.multiverse
    about = dict.fromkeys(margin.record_type for invariant in multiverse for margin in invariant.needs())
    census = census_from_release(release)
    found = []
    for kind in sorted(about):
        exact = tuple(i for i in multiverse if any(m.record_type == kind for m in i.needs()))
        blank = Disclosure(record_type=kind, exact=exact)
        if all(isinstance(i, AtLeast) for i in exact):
            found.append(blank)
        elif kind in census.schema.record_types:
            if _is_own(exact, kind, census.schema):  # others are told with the homes of their records
                found.append(_measure_records(multiverse, exact, census, kind, most))
        else:
            shapes = [build_table_shape(multiverse, kind, frame_of(table)) for table in tables]
            shown = [one for one in shapes if one is not None and kind == record_type]
            found.append(_describe_shape(blank, shown[0]) if shown else blank)
    return tuple(found)


def census_from_release(release: Release) -> Census:
    """Return the released records in the place of a census, with the columns as they are published."""
    schema = require_schema(release)
    files = {
        name: scan_records(data) for name, data in release.microdata.items() if name in schema.record_types
    }
    there = {name: set(frame.collect_schema().names()) for name, frame in files.items()}
    records = []
    for record in schema.records:
        if record.name not in files:
            continue
        own = there[record.name]
        linked = record.linked_to in files and record.household in own
        kinds = record.kinds if record.kinds is not None and record.kinds.column in own else None
        records.append(
            replace(
                record,
                variables=(),
                id=record.id if record.id in own else "",
                household=record.household if linked else "",
                linked_to=record.linked_to if linked else "",
                household_from="",
                size="",
                weight="",
                kinds=kinds,
                where=(),
            )
        )
    return Census(
        schema=replace(schema, records=tuple(records), rules=()),
        files=files,
        folder=release.folder or Path(),
    )


def _is_own(exact: Sequence[Invariant], record_type: str, schema: Schema) -> bool:
    """Return whether an exact number is about the records without an identifier of their homes."""
    record = schema.record(record_type)
    links = {name for name in (record.id, record.household) if name}
    return any(
        m.record_type == record_type and not links & {*m.by}
        for invariant in exact
        if not isinstance(invariant, AtLeast)
        for m in invariant.needs()
    )


def _measure_records(
    multiverse: Multiverse, exact: tuple[Invariant, ...], census: Census, record_type: str, most: int
) -> Disclosure:
    records = census.count(record_type)
    blank = Disclosure(record_type=record_type, exact=exact, records=records)
    if records > most:
        return blank
    record = census.schema.record(record_type)
    columns = [name for name in census.columns(record_type) if name not in (record.id, record.household)]
    try:
        shape = build_shape(multiverse, census, record_type, variables=columns)
    except StirredError:
        return blank  # an exact number is about a variable that is not released
    return _describe_shape(blank, shape, census.schema.spine)


def _describe_shape(blank: Disclosure, shape: Shape, areas: Sequence[str] = ()) -> Disclosure:
    """Return the numbers of a shape, without the slow count of unlabelled data sets."""
    whole = max(shape.records, 1)
    size = log_labelled(shape)
    strata = size_strata(shape, areas=areas, work=0, exactly=0)
    places = None if strata is None or shape.has_free_variables else log_places(shape, strata)
    return replace(
        blank,
        records=shape.records + shape.fixed,
        fixed=shape.fixed,
        certain=_count_certain(shape),
        values=None if size is None else _mean_per_record(size.value, whole),
        places=None if places is None else _mean_per_record(places.value, whole),
    )


def _mean_per_record(log_size: float, records: int) -> float:
    return exp(min(log_size / records, 700.0))


def _count_certain(shape: Shape) -> int | None:
    """Count the records that lie in a cell in every data set of the universe: the sum of all lower bounds."""
    if shape.has_free_variables:
        return 0
    if shape.shared is None:
        return None
    return int(observed_bounds(shape.cells, shape.tables, shape.shared)["low"].sum())


def build_table_shape(multiverse: Multiverse, record_type: str, table: pl.DataFrame) -> Shape | None:
    """Return the shape of a published table with exact margins; None where it does not show all of them.

    Cells of the table may have noise, also below zero: only their sums are used.
    """
    margins = [
        m
        for invariant in multiverse
        if isinstance(invariant, Margin)
        for m in invariant.needs()
        if m.record_type == record_type
    ]
    shown = keep_maximal([frozenset(m.by) for m in margins if m.where is None])
    by = sorted(frozenset[str]().union(*shown))
    if not by or not {*by, COUNT_COLUMN} <= {*table.columns} or any(m.where is not None for m in margins):
        return None
    shared = find_separators(shown)
    cells = table.group_by(by).agg(pl.col(COUNT_COLUMN).sum().cast(pl.Int64)).sort(by)
    return Shape(
        record_type=record_type,
        tables=tuple(shown),
        shared=None if shared is None else tuple(shared),
        cells=cells.with_columns(pl.lit(1.0).alias(CHOICES_COLUMN)),
        fixed=0,
        combinations=float(cells.height),
        notes=(),
    )
