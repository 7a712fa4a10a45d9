"""Measure what the invariants alone reveal, in a census or in a release, and trade them against the budget."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log2
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.assess.universe.bounds import find_separators, keep_maximal, observed_bounds
from stirred.assess.universe.counting import MAX_MULTIPLICATIONS
from stirred.assess.universe.marks import sum_shape
from stirred.assess.universe.sizes import (
    CHOICES_COLUMN,
    COUNT_COLUMN,
    LogSize,
    Shape,
    bits_per_record,
    build_shape,
    log_labelled,
    log_places,
    log_unlabelled,
    outline_shape,
    size_strata,
)
from stirred.census import Census, Schema
from stirred.engine import Engine, Local
from stirred.errors import ClusterError, StirredError
from stirred.frames import frame_of
from stirred.mechanisms.release import Release, require_schema, scan_records
from stirred.spec import Margin, Multiverse, Specification
from stirred.spec.invariants import AtLeast, Invariant, pluralize

# What the invariants alone give away: measures and tables of the universe of a census.

BITS_UNIT = "bits per record"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniverseResult:
    """What the invariants alone reveal, by record type: measures, and tables for further study.

    ``tables`` has one of strata for each record type with two exact tables: sizes, types, logarithms of the number of data
    sets. All of it is computed from the invariants, which are published exactly.
    """

    measures: tuple[RiskMeasure, ...]
    tables: Mapping[str, pl.DataFrame] = field(repr=False)
    notes: tuple[str, ...] = ()

    def measure(self, name: str, record_type: str = "") -> RiskMeasure:
        """Return the measure of that name, of a record type where it has several."""
        return next(
            m
            for m in self.measures
            if m.name == name and (not record_type or pluralize(record_type) in m.about)
        )


def measure_universe(
    promise: Specification | Release | Multiverse,
    census: Census,
    *,
    record_types: Iterable[str] = (),
    variables: Mapping[str, Iterable[str]] | None = None,
    samples: int = 200,
    seed: int = 1,
    work: int = 3 * MAX_MULTIPLICATIONS,
    confidence: float = 0.95,
) -> UniverseResult:
    """Count the data sets that agree with a census on the invariants of a promise, and what all of them share.

    ``variables`` says what a record consists of, by record type; give the same for promises that are compared. By default
    these are the variables of the exact tables and those that leave: of the stated views and of the released records. Where
    none are stated and only one table is known of a record type, these are all its variables. ``work`` limits sampling;
    strata beyond it have wider bounds, which always hold.
    """
    released: dict[str, list[str]] = {}
    if isinstance(promise, Release):
        released = {
            name: scan_records(data).collect_schema().names() for name, data in promise.microdata.items()
        }
        promise = promise.specification
    multiverse = promise if isinstance(promise, Multiverse) else promise.multiverse
    views = () if isinstance(promise, Multiverse) else promise.views
    asked = list(record_types) or sorted(
        {m.record_type for i in multiverse for m in i.needs()} & {*census.schema.record_types}
    )
    measures: list[RiskMeasure] = []
    tables: dict[str, pl.DataFrame] = {}
    notes: list[str] = []
    for record_type in asked:
        if (
            not any(m.record_type == record_type for i in multiverse for m in _own_margins(i.needs(), census))
            and not record_types
        ):
            continue  # known only through the homes of its records
        here = {*census.columns(record_type), *census.schema.spine}
        stated = [
            v
            for view in views
            if view.record_type == record_type
            for v in (*view.by, *view.conditions())
            if v in here
        ]
        stated += [v for v in released.get(record_type, ()) if v not in _link_columns(census)]
        own = [m for i in multiverse for m in i.needs() if m.record_type == record_type]
        if variables is not None and record_type in variables:
            stated = list(variables[record_type])
        elif not stated and len({m.by for m in own}) <= 1:
            stated = [v for v in census.columns(record_type) if v not in _link_columns(census)] + [
                *census.schema.spine
            ]
        shape = build_shape(multiverse, census, record_type, variables=stated)
        strata = size_strata(shape, areas=census.schema.spine, samples=samples, seed=seed, work=work)
        measures += _measures(shape, strata, confidence, samples, seed)
        notes += shape.notes
        if strata is not None:
            tables[f"{record_type}-strata"] = strata
    return UniverseResult(measures=tuple(measures), tables=tables, notes=tuple(dict.fromkeys(notes)))


def _link_columns(census: Census) -> set[str]:
    """Return the columns that identify records."""
    return {name for record in census.schema.records for name in (record.id, record.household) if name}


def _own_margins(margins: Iterable[Margin], census: Census) -> list[Margin]:
    """Return the tables that are about the records without an identifier of a home."""
    return [margin for margin in margins if not _link_columns(census) & {*margin.by}]


def _measures(
    shape: Shape, strata: pl.DataFrame | None, confidence: float, samples: int = 200, seed: int = 1
) -> list[RiskMeasure]:
    about, n = pluralize(shape.record_type), shape.records
    nothing = Baseline(name=name_measure("nothing_known"), value=log2(max(shape.combinations, 1)))
    unknown_labelled = "the exact tables are not decomposable, and no closed form is known"
    unknown_tables = "three or more exact tables with so many cells that their data sets are not counted"
    found = [
        _size_measure(name_measure("labelled"), about, log_labelled(shape), n, unknown_labelled, nothing),
        _size_measure(
            name_measure("unlabelled"),
            about,
            log_unlabelled(shape, strata, confidence, samples=2 * samples, seed=seed),
            n,
            unknown_tables,
            None,
            confidence,
            "; of the variables of exact tables alone"
            if shape.has_free_variables and len(shape.tables) > 1
            else "",
        ),
    ]
    if strata is not None:
        found.append(
            _size_measure(
                name_measure("places"),
                about,
                log_places(shape, strata),
                n,
                "",
                None,
            )
        )
    if strata is not None and not shape.has_free_variables:
        single = strata.filter("single")
        found.append(
            _exact_measure(
                name_measure("single_strata"),
                f"strata of {about}",
                single.height / max(strata.height, 1),
                "share",
            )
        )
        found.append(
            _exact_measure(
                name_measure("single_records"),
                about,
                int(single["records"].sum()) / max(n, 1),
                "share",
            )
        )
    found.append(_measure_implied(shape, about, certain=False))
    found.append(_measure_implied(shape, about, certain=True))
    if shape.fixed:
        whole = n + shape.fixed
        found.append(_exact_measure(name_measure("fixed"), about, shape.fixed / whole, "share"))
    return found


def _exact_measure(name: str, about: str, value: float, unit: str) -> RiskMeasure:
    return RiskMeasure(
        name=name, about=about, kind="absolute", value=value, low=value, high=value, unit=unit, public=True
    )


def _size_measure(
    name: str,
    about: str,
    size: LogSize | None,
    records: int,
    unknown: str,
    baseline: Baseline | None,
    confidence: float = 0.95,
    only: str = "",
) -> RiskMeasure:
    baselines = () if baseline is None else (baseline,)
    if size is None:
        return RiskMeasure(
            name=name,
            about=about,
            kind="absolute",
            value=None,
            unit=BITS_UNIT,
            public=True,
            baselines=baselines,
            reason=unknown,
        )
    return RiskMeasure(
        name=name,
        about=about,
        kind="absolute",
        value=bits_per_record(size.value, records),
        low=bits_per_record(size.low, records),
        high=bits_per_record(size.high, records),
        unit=BITS_UNIT,
        confidence=confidence,
        public=True,
        baselines=baselines,
        reason="" if size.methods == ("closed form",) else "counted by: " + ", ".join(size.methods) + only,
    )


def _measure_implied(shape: Shape, about: str, *, certain: bool) -> RiskMeasure:
    """Measure the share of records whose cell is implied, or that certainly lie in a cell."""
    name = name_measure("certain_cell") if certain else name_measure("implied")
    if shape.shared is None:
        reason = "the exact tables are not decomposable; see cell_bounds for small tables"
        return RiskMeasure(
            name=name, about=about, kind="absolute", value=None, unit="share", public=True, reason=reason
        )
    if shape.has_free_variables:  # a variable that no table shows leaves every cell open
        return _exact_measure(name, about, 0.0, "share")
    cells = observed_bounds(shape.cells, shape.tables, shape.shared)
    chosen = cells["low"] if certain else cells.filter(pl.col("low") == pl.col("high"))[COUNT_COLUMN]
    return _exact_measure(name, about, int(chosen.sum()) / max(shape.records, 1), "share")


# What the exact numbers of a release give away, counted in the release alone.
#
# A release and the census that it was made from agree on every invariant, so both have one universe: each of its
# numbers is the same whether it is counted in the one or in the other.


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
    release: Release,
    *,
    tables: Sequence[pa.Table] = (),
    record_type: str = "",
    most: int = 2_000_000,
    engine: Engine | None = None,
) -> tuple[Disclosure, ...]:
    """Measure what exact numbers reveal, for each record type that they are about.

    ``tables`` are published tables of counts of ``record_type``, for types without released records. Types with more than
    ``most`` records, and those of which the release shows too little, have no ``values``. Records are read by the engine in
    batches, of which a few words for each record are held, or in parts where those do not fit.
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
                found.append(_measure_records(release, exact, census, kind, most, engine or Local()))
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
    release: Release,
    exact: tuple[Invariant, ...],
    census: Census,
    record_type: str,
    most: int,
    engine: Engine,
) -> Disclosure:
    records = census.count(record_type)
    blank = Disclosure(record_type=record_type, exact=exact, records=records)
    if records > most:
        return blank
    record = census.schema.record(record_type)
    columns = [name for name in census.columns(record_type) if name not in (record.id, record.household)]
    try:
        outline = outline_shape(release.specification.multiverse, census, record_type, variables=columns)
        sums = sum_shape(outline, census, release, engine)
    except ClusterError:
        raise
    except StirredError:
        return blank  # an exact number is about a variable that is not released
    limited = bool(outline.limited.conditions())  # then all others are no records of these tables
    return replace(
        blank,
        records=sums.records if limited else records,
        fixed=0 if limited else records - sums.records,
        certain=sums.certain,
        values=_mean_per_record(sums.values, sums.records),
        places=_mean_per_record(sums.places, sums.records),
    )


def _describe_shape(blank: Disclosure, shape: Shape) -> Disclosure:
    """Return the numbers of a shape, without the slow count of unlabelled data sets."""
    size = log_labelled(shape)
    strata = size_strata(shape, work=0, exactly=0)
    places = None if strata is None or shape.has_free_variables else log_places(shape, strata)
    return replace(
        blank,
        records=shape.records + shape.fixed,
        fixed=shape.fixed,
        certain=_count_certain(shape),
        values=_mean_per_record(None if size is None else size.value, shape.records),
        places=_mean_per_record(None if places is None else places.value, shape.records),
    )


def _mean_per_record(log_size: float | None, records: int) -> float | None:
    return None if log_size is None else exp(min(log_size / max(records, 1), 700.0))


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


# Invariants against budget: the same noise under invariants that differ by one, as data for a chart.

SIZE, LABELLED = "tables that agree with the invariants (unlabelled)", "ways to assign all values (labelled)"
IMPLIED, CERTAIN = "records in cells whose count is implied", "records that certainly stand in a cell"
Attack = Callable[[Multiverse], RiskMeasure | None]


def variations(multiverse: Multiverse, more: Iterable[Invariant] = ()) -> dict[str, Multiverse]:
    """Return the invariants as they are, without each in turn, with each of ``more`` in turn, and none.

    >>> from stirred.spec import Margin
    >>> list(variations(Multiverse.of(Margin("person", ("block",)), Margin("person", ("state",)))))
    ['as stated', 'without persons by block', 'without persons by state', 'none']
    """
    found = {"as stated": multiverse}
    for invariant in multiverse:
        rest = [other for other in multiverse if other != invariant]
        found[f"without {invariant}"] = Multiverse.of(*rest)
    for invariant in more:
        found[f"with {invariant}"] = multiverse & invariant
    found["none"] = Multiverse.none()
    return found


def trade(
    sets: Mapping[str, Multiverse],
    census: Census,
    *,
    record_type: str,
    variables: Iterable[str],
    attack: Attack | None = None,
    samples: int = 200,
    seed: int = 1,
) -> pl.DataFrame:
    """Return universe size, implied cells and attack success for each set of invariants; all else is equal.

    ``variables`` are all that a record consists of, the same for every set. ``attack`` runs a mechanism with the same noise
    under a set of invariants and measures what it finds; without it those columns are empty.
    """
    names = list(variables)
    rows = []
    for label, multiverse in sets.items():
        found = measure_universe(
            multiverse,
            census,
            record_types=[record_type],
            variables={record_type: names},
            samples=samples,
            seed=seed,
        )
        hit = attack(multiverse) if attack is not None else None
        rows.append(
            {
                "invariants": label,
                **_columns("bits", found, LABELLED),
                **_columns("bits_unlabelled", found, SIZE),
                "bits_without_invariants": found.measure(LABELLED).baselines[0].value,
                "implied": found.measure(IMPLIED).value,
                "certain": found.measure(CERTAIN).value,
                "attack": hit.value if hit is not None else None,
                "attack_low": hit.low if hit is not None else None,
                "attack_high": hit.high if hit is not None else None,
            }
        )
    numbers = {name: pl.Float64 for name in rows[0] if name != "invariants"} if rows else {}
    return pl.DataFrame(rows, schema_overrides=numbers)


def _columns(name: str, found: UniverseResult, measure: str) -> dict[str, float | None]:
    value = found.measure(measure)
    return {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
