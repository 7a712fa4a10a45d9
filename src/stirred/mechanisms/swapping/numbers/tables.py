"""Tables of a swap's release with the uncertainty of every cell, and where the swaps fell: public numbers alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from stirred.census import Schema
from stirred.census.geography import attach
from stirred.engine import Engine
from stirred.mechanisms.exhibits import Exhibit, Series
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import cells, lazy, parts_of, schema_of, taking_part, with_variables
from stirred.mechanisms.released_parts import UNIT, counts
from stirred.mechanisms.swapping.numbers import tables_parts
from stirred.mechanisms.swapping.numbers.closed_forms import effective_rate
from stirred.mechanisms.swapping.numbers.uncertainty import exact, kept, table_uncertainty

if TYPE_CHECKING:
    from stirred.mechanisms.swapping.mechanism import PermutationSwapping

MOST_POINTS = 400  # of a line in the report


def moving(mechanism: "PermutationSwapping", schema: Schema) -> list[str]:
    """The variables that move: those swapped, and the levels of geography that move along."""
    return [*mechanism.swap, *(level for level in schema.spine if level not in mechanism.match)]


def uncertain(
    mechanism: "PermutationSwapping", release: Release, by: Sequence[str], record_type: str, engine: Engine
) -> pl.DataFrame:
    """Count, unbiased estimate, standard error and 95 % interval of every cell."""
    schema = schema_of(release)
    frame = with_variables(release, record_type, by)
    records = parts_of(release, record_type, engine)
    whole = engine.fits(records.size(len(frame.collect_schema())))
    home = schema.record(mechanism.resolution)
    link = home.id if record_type == mechanism.resolution else schema.record(record_type).household
    swap = moving(mechanism, schema)
    off_spine = [off.name for off in schema.geography.off_spine if off.of in swap and off.name in by]
    units = lazy(release.microdata[mechanism.resolution])
    if off_spine and release.folder is not None:
        units = attach(schema, units, off_spine, release.folder)
    names = units.collect_schema().names()
    swap = [name for name in dict.fromkeys([*swap, *off_spine]) if name in names]
    if kept(by, match=mechanism.match, swap=swap):
        return exact(cells(frame, by) if whole else counts(records, by))
    if not whole and not home.linked_to:  # members that are swapped by themselves are counted in memory
        return tables_parts.uncertain(records, by, match=mechanism.match, swap=swap, rate=mechanism.rate)
    counted = frame.select(pl.col(link).alias(UNIT), *by).collect()
    taking = taking_part(schema, mechanism.resolution, units)
    swapped = taking.select(pl.col(home.id).alias(UNIT), *mechanism.match, *swap).collect()
    return table_uncertainty(swapped, counted, by=by, match=mechanism.match, swap=swap, rate=mechanism.rate)


def strata(mechanism: "PermutationSwapping", release: Release, engine: Engine) -> pl.DataFrame:
    """How many strata of each size there are; sizes of strata are invariants."""
    schema = schema_of(release)
    records = parts_of(release, mechanism.resolution, engine)
    if not engine.fits(records.size(len(mechanism.match) + 1)):
        return tables_parts.strata(records, mechanism.match)
    units = taking_part(schema, mechanism.resolution, lazy(release.microdata[mechanism.resolution]))
    match = [pl.col(name).alias(f"match {index}") for index, name in enumerate(mechanism.match)]
    sizes = units.group_by(match).agg(pl.len().alias("size")) if match else units.select(size=pl.len())
    return sizes.group_by("size").agg(pl.len().alias("strata")).sort("size").collect()


def where_swaps_fell(mechanism: "PermutationSwapping", release: Release, engine: Engine) -> Exhibit:
    """The effective rate by stratum size."""
    found = strata(mechanism, release, engine)
    sizes, number = found["size"].to_list(), found["strata"].to_list()
    effective = [float(q) for q in effective_rate(found["size"].to_numpy(), mechanism.rate)]
    records = [size * many for size, many in zip(sizes, number, strict=True)]
    weak = sum(r for r, q in zip(records, effective, strict=True) if q < float(mechanism.rate) / 2)
    rows = [{"stratum size": s, "effective rate": q} for s, q in zip(sizes, effective, strict=True) if s > 0]
    if len(rows) > MOST_POINTS:
        rows = rows[:: max(1, len(rows) // MOST_POINTS)]
    series = Series(
        name="effective-rate",
        kind="line",
        title="Effective swap rate by stratum size.",
        sentence=f"A stratum of one record is never swapped; the largest stratum holds {max(sizes, default=0):,} records.",
        rows=rows,
        x="stratum size",
        y="effective rate",
        log_x=True,
    )
    return Exhibit(
        title="Where the swaps fell",
        finding=f"At a swap rate of {mechanism.rate} a record in a large stratum moves with about that probability; in "
        f"small strata it moves less. {100 * weak / max(sum(records), 1):.1f} % of the records lie in strata where the "
        "effective rate is below half of it.",
        parts=(series,) if rows else (),
    )
