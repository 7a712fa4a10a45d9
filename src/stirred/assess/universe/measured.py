"""What the invariants alone give away: measures and tables of the universe of a census."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import log2

import polars as pl

from stirred.assess.risk import Baseline, RiskMeasure, named
from stirred.assess.universe.bounds import observed_bounds
from stirred.assess.universe.sampling import MOST_WORK
from stirred.assess.universe.shape import COUNT, Shape, shape_of
from stirred.assess.universe.sizes import (
    LogSize,
    bits,
    log_labelled,
    log_places,
    log_unlabelled,
    strata_of,
)
from stirred.census import Census
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import lazy
from stirred.spec import Margin, Multiverse, Specification
from stirred.spec.multiverse import plural

BITS = "bits per record"


@dataclass(frozen=True, slots=True, kw_only=True)
class UniverseResult:
    """What the invariants alone give away, by record type: measures, and tables to look further.

    ``tables`` has one of strata for each record type with two exact tables: sizes, types, logarithms of the number of data
    sets. All of it is computed from the invariants, which are published exactly.
    """

    measures: tuple[RiskMeasure, ...]
    tables: Mapping[str, pl.DataFrame] = field(repr=False)
    notes: tuple[str, ...] = ()

    def measure(self, name: str, record_type: str = "") -> RiskMeasure:
        """The measure of that name, of a record type where it has several."""
        return next(
            m for m in self.measures if m.name == name and (not record_type or plural(record_type) in m.about)
        )


def universe(
    promise: Specification | Release | Multiverse,
    census: Census,
    *,
    record_types: Iterable[str] = (),
    variables: Mapping[str, Iterable[str]] | None = None,
    samples: int = 200,
    seed: int = 1,
    work: int = 3 * MOST_WORK,
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
        released = {name: lazy(data).collect_schema().names() for name, data in promise.microdata.items()}
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
            not any(m.record_type == record_type for i in multiverse for m in _own(i.needs(), census))
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
        stated += [v for v in released.get(record_type, ()) if v not in _links(census)]
        own = [m for i in multiverse for m in i.needs() if m.record_type == record_type]
        if variables is not None and record_type in variables:
            stated = list(variables[record_type])
        elif not stated and len({m.by for m in own}) <= 1:
            stated = [v for v in census.columns(record_type) if v not in _links(census)] + [
                *census.schema.spine
            ]
        shape = shape_of(multiverse, census, record_type, variables=stated)
        strata = strata_of(shape, areas=census.schema.spine, samples=samples, seed=seed, work=work)
        measures += _measures(shape, strata, confidence, samples, seed)
        notes += shape.notes
        if strata is not None:
            tables[f"{record_type}-strata"] = strata
    return UniverseResult(measures=tuple(measures), tables=tables, notes=tuple(dict.fromkeys(notes)))


def _links(census: Census) -> set[str]:
    """The columns that identify records."""
    return {name for record in census.schema.records for name in (record.id, record.household) if name}


def _own(margins: Iterable[Margin], census: Census) -> list[Margin]:
    """The tables that say something without an identifier of a home."""
    return [margin for margin in margins if not _links(census) & {*margin.by}]


def _measures(
    shape: Shape, strata: pl.DataFrame | None, confidence: float, samples: int = 200, seed: int = 1
) -> list[RiskMeasure]:
    about, n = plural(shape.record_type), shape.records
    nothing = Baseline(name=named("nothing_known"), value=log2(max(shape.combinations, 1)))
    unknown_labelled = "the exact tables are not decomposable, and no closed form is known"
    unknown_tables = "three or more exact tables with so many cells that their data sets are not counted"
    found = [
        _size(named("labelled"), about, log_labelled(shape), n, unknown_labelled, nothing),
        _size(
            named("unlabelled"),
            about,
            log_unlabelled(shape, strata, confidence, samples=2 * samples, seed=seed),
            n,
            unknown_tables,
            None,
            confidence,
            "; of the variables of exact tables alone" if shape.free and len(shape.tables) > 1 else "",
        ),
    ]
    if strata is not None:
        found.append(
            _size(
                named("places"),
                about,
                log_places(shape, strata),
                n,
                "",
                None,
            )
        )
    if strata is not None and not shape.free:
        single = strata.filter("single")
        found.append(
            _exact(
                named("single_strata"),
                f"strata of {about}",
                single.height / max(strata.height, 1),
                "share",
            )
        )
        found.append(
            _exact(
                named("single_records"),
                about,
                int(single["records"].sum()) / max(n, 1),
                "share",
            )
        )
    found.append(_implied(shape, about, certain=False))
    found.append(_implied(shape, about, certain=True))
    if shape.fixed:
        whole = n + shape.fixed
        found.append(_exact(named("fixed"), about, shape.fixed / whole, "share"))
    return found


def _exact(name: str, about: str, value: float, unit: str) -> RiskMeasure:
    return RiskMeasure(
        name=name, about=about, kind="absolute", value=value, low=value, high=value, unit=unit, public=True
    )


def _size(
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
            unit=BITS,
            public=True,
            baselines=baselines,
            reason=unknown,
        )
    return RiskMeasure(
        name=name,
        about=about,
        kind="absolute",
        value=bits(size.value, records),
        low=bits(size.low, records),
        high=bits(size.high, records),
        unit=BITS,
        confidence=confidence,
        public=True,
        baselines=baselines,
        reason="" if size.methods == ("closed form",) else "counted by: " + ", ".join(size.methods) + only,
    )


def _implied(shape: Shape, about: str, *, certain: bool) -> RiskMeasure:
    """The share of records whose cell is implied, or that certainly stand in a cell (the sum of all lower bounds)."""
    name = named("certain_cell") if certain else named("implied")
    if shape.shared is None:
        reason = "the exact tables are not decomposable; see cell_bounds for small tables"
        return RiskMeasure(
            name=name, about=about, kind="absolute", value=None, unit="share", public=True, reason=reason
        )
    if shape.free:  # a variable that no table shows leaves every cell open
        return _exact(name, about, 0.0, "share")
    cells = observed_bounds(shape.cells, shape.tables, shape.shared)
    chosen = cells["low"] if certain else cells.filter(pl.col("low") == pl.col("high"))[COUNT]
    return _exact(name, about, int(chosen.sum()) / max(shape.records, 1), "share")
