"""What the invariants alone give away: measures and tables of the universe of a census."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log2

import polars as pl

from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.assess.universe.bounds import observed_bounds
from stirred.assess.universe.sampling import MAX_MULTIPLICATIONS
from stirred.assess.universe.shape import COUNT_COLUMN, Shape, build_shape
from stirred.assess.universe.sizes import (
    LogSize,
    bits_per_record,
    log_labelled,
    log_places,
    log_unlabelled,
    size_strata,
)
from stirred.census import Census
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import scan_records
from stirred.spec import Margin, Multiverse, Specification
from stirred.spec.multiverse import pluralize

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
