"""Tables of a swap's release with the uncertainty of every cell, and where the swaps fell: public numbers alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pyarrow as pa

from stirred.census import Schema
from stirred.census.geography import attach_levels
from stirred.engine import Engine
from stirred.errors import InputError
from stirred.frames import collect_frame
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Series
from stirred.mechanisms.participation import Exchange
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import count_records, map_strata, require_schema, scan_records
from stirred.mechanisms.released_parts import StratumKernel, cells_schema
from stirred.mechanisms.swapping.numbers.closed_forms import effective_rate
from stirred.mechanisms.swapping.numbers.uncertainty import (
    SUM_COLUMNS,
    Units,
    finish_cells,
    keeps_table,
    lay_out_exact,
    sum_moments,
)
from stirred.mechanisms.swapping.roles import Roles, SwapChoice

MAX_POINTS_DRAWN = 400  # of a line in the report


def list_moving(choice: SwapChoice, schema: Schema) -> list[str]:
    """List the variables that move: the swap variables and the levels of geography that move along."""
    return [*choice.swap, *(level for level in schema.spine if level not in choice.match)]


def describe_exchange(choice: SwapChoice, release: Release) -> Exchange | None:
    """Return the law by which one record moves, or None if no records are released."""
    if choice.resolution not in release.microdata:
        return None
    there = scan_records(release.microdata[choice.resolution]).collect_schema().names()
    return Exchange(
        record_type=choice.resolution,
        match=choice.match,
        moving=tuple(
            name for name in dict.fromkeys(list_moving(choice, require_schema(release))) if name in there
        ),
        selected=lambda n: effective_rate(n, choice.rate),
    )


@dataclass(frozen=True, slots=True)
class Moments(StratumKernel):
    """Sum counts and moments of the cells of whole strata; with a weight, weighted sums too."""

    rate: Fraction
    weight: str = ""
    scale: Units = field(default_factory=Units)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Return the variables of the table, and the weight."""
        return tuple(dict.fromkeys([*self.by, *filter(None, [self.weight])]))

    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the counts, estimates and variances that these strata add to the cells."""
        return sum_moments(
            units,
            counted,
            by=self.by,
            match=self.match,
            swap=self.swap,
            rate=self.rate,
            weight=self.weight,
            scale=self.scale,
        )

    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """Return the schema of the cells with whole numbers."""
        return cells_schema(kinds, self.by, SUM_COLUMNS)


@dataclass(frozen=True, slots=True)
class Sizes(StratumKernel):
    """Count the strata of each size."""

    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the sizes and the number of strata of each."""
        del counted
        size = pl.len().cast(pl.Int64).alias("__size")
        sizes = units.group_by(list(self.match)).agg(size) if self.match else units.select(size)
        sizes = sizes.select(size=pl.col("__size")).filter(pl.col("size") > 0)
        return sizes.group_by("size").agg(strata=pl.len().cast(pl.Int64))

    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """Return the schema of two whole numbers."""
        del kinds
        return pa.schema([("size", pa.int64()), ("strata", pa.int64())])


def estimate_table(
    choice: SwapChoice,
    release: Release,
    by: Sequence[str],
    record_type: str,
    engine: Engine,
    *,
    weight: str = "",
) -> pl.DataFrame:
    r"""Count, unbiased estimate, standard error and 95 % interval of every cell.

    With a weight the cell is $N' = \sum_i w_i u_{g(i)}$, where $w_i$ is the sum of the weights that the records of unit
    $i$ add to it: the moments of ``numbers/moments.py`` hold for any $w_i \ge 0$ that stays with its record.
    """
    schema, swap = require_schema(release), list_moving(choice, require_schema(release))
    areas = [off.name for off in schema.geography.off_spine if off.of in swap and off.name in by]
    units = scan_records(release.microdata[choice.resolution])
    if areas and release.folder is not None:
        units = attach_levels(schema, units, areas, release.folder)
    names = units.collect_schema().names()
    swap = [name for name in dict.fromkeys([*swap, *areas]) if name in names]
    fixed = keeps_table(by, match=choice.match, swap=swap, weight=weight)
    if fixed and not weight:
        return lay_out_exact(count_records(release, by, record_type=record_type, engine=engine))
    scale = _choose_units(release, record_type, weight) if weight else Units()
    kernel = Moments(tuple(by), choice.match, tuple(swap), choice.rate, weight, scale)
    found = map_strata(
        release, kernel, record_type=record_type, resolution=choice.resolution, areas=areas, engine=engine
    )
    table = finish_cells([found], list(by), weight=weight, scale=scale)
    return lay_out_exact(table, "weighted") if fixed else table


def _choose_units(release: Release, record_type: str, weight: str) -> Units:
    """Choose the units of the released weights."""
    homes = require_schema(release).record(record_type).linked_to
    frames = [
        scan_records(release.microdata[kind]) for kind in (record_type, homes) if kind in release.microdata
    ]
    found = next((frame for frame in frames if weight in frame.collect_schema()), None)
    if found is None:
        raise InputError(
            f"the table needs the weight {weight}",
            why=f"the release has no such column for {record_type} records",
            fix="hold the weight in the swap, or leave weight out",
        )
    largest = collect_frame(found.select(pl.col(weight).cast(pl.Float64).max()), streaming=True).item()
    return Units.of(largest or 0.0)


def count_stratum_sizes(choice: SwapChoice, release: Release, engine: Engine) -> pl.DataFrame:
    """Count the strata of each size; sizes of strata are invariants."""
    own = choice.resolution
    kernel = Sizes((), choice.match, ())
    found = map_strata(release, kernel, record_type=own, resolution=own, areas=(), engine=engine)
    return found.group_by("size").agg(pl.col("strata").sum()).sort("size")


def exhibit_effective_rates(choice: SwapChoice, release: Release, engine: Engine) -> Exhibit:
    """Return the effective rate by stratum size as an exhibit."""
    found = count_stratum_sizes(choice, release, engine)
    sizes, number = found["size"].to_list(), found["strata"].to_list()
    effective = [float(q) for q in effective_rate(found["size"].to_numpy(), choice.rate)]
    records = [size * many for size, many in zip(sizes, number, strict=True)]
    weak = sum(r for r, q in zip(records, effective, strict=True) if q < float(choice.rate) / 2)
    x, y = Phrase("swap.exhibit.size"), Phrase("swap.exhibit.rate")
    rows: list[dict[str, object]] = [{x: s, y: q} for s, q in zip(sizes, effective, strict=True) if s > 0]
    if len(rows) > MAX_POINTS_DRAWN:
        rows = rows[:: max(1, len(rows) // MAX_POINTS_DRAWN)]
    share = f"{100 * weak / max(sum(records), 1):.1f}"
    series = Series(
        name="effective-rate",
        kind="line",
        title=Phrase("swap.exhibit.chart"),
        sentence=Phrase("swap.exhibit.largest", number=max(sizes, default=0)),
        rows=rows,
        x=x,
        y=y,
        log_x=True,
    )
    return Exhibit(
        title=Phrase("swap.exhibit.title"),
        finding=Phrase("swap.exhibit.finding", rate=choice.rate, share=Decimal(share)),
        parts=(series,) if rows else (),
    )


def require_held(roles: Roles, weight: str, record_type: str) -> None:
    """Raise an error if a weight does not stay with its record."""
    if weight not in {*roles.held_variables, *dict(roles.members).get(record_type, ())}:
        raise InputError(
            f"a table is weighted by {weight}, which the swap does not hold",
            why=f"it moves, it is dropped, or {record_type} records have no such variable",
            fix="hold it, or drop it and let [weights] recalibrate_to make new ones from public totals",
        )
