"""Tables of a swap's release with the uncertainty of every cell, and where the swaps fell: public numbers alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import polars as pl
import pyarrow as pa

from stirred.census import Schema
from stirred.census.geography import attach
from stirred.engine import Engine
from stirred.errors import InputError
from stirred.frames import collected
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Series
from stirred.mechanisms.participation import Exchange
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import counted, in_strata, lazy, schema_of
from stirred.mechanisms.released_parts import StratumKernel, cells_schema
from stirred.mechanisms.swapping.numbers.closed_forms import effective_rate
from stirred.mechanisms.swapping.numbers.uncertainty import SUMS, Units, exact, finished, kept, parted
from stirred.mechanisms.swapping.roles import Roles, SwapChoice

MOST_POINTS = 400  # of a line in the report


def moving(choice: SwapChoice, schema: Schema) -> list[str]:
    """The variables that move: those swapped, and the levels of geography that move along."""
    return [*choice.swap, *(level for level in schema.spine if level not in choice.match)]


def exchange(choice: SwapChoice, release: Release) -> Exchange | None:
    """The law of one record: selected with the effective rate of its stratum; None where no records are released."""
    if choice.resolution not in release.microdata:
        return None
    there = lazy(release.microdata[choice.resolution]).collect_schema().names()
    return Exchange(
        record_type=choice.resolution,
        match=choice.match,
        moving=tuple(name for name in dict.fromkeys(moving(choice, schema_of(release))) if name in there),
        selected=lambda n: effective_rate(n, choice.rate),
    )


@dataclass(frozen=True, slots=True)
class Moments(StratumKernel):
    """Counts and moments of the cells of whole strata; with a weight, weighted sums and their moments too."""

    rate: Fraction
    weight: str = ""
    scale: Units = field(default_factory=Units)

    @property
    def asked(self) -> tuple[str, ...]:
        """The variables of the table, and the weight."""
        return tuple(dict.fromkeys([*self.by, *filter(None, [self.weight])]))

    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """The counts, estimates and variances that these strata add to the cells."""
        return parted(
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
        """The cells with whole numbers."""
        return cells_schema(kinds, self.by, SUMS)


@dataclass(frozen=True, slots=True)
class Sizes(StratumKernel):
    """How many strata of each size there are."""

    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Sizes, and the number of strata that have each."""
        del counted
        size = pl.len().cast(pl.Int64).alias("__size")
        sizes = units.group_by(list(self.match)).agg(size) if self.match else units.select(size)
        sizes = sizes.select(size=pl.col("__size")).filter(pl.col("size") > 0)
        return sizes.group_by("size").agg(strata=pl.len().cast(pl.Int64))

    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """Two whole numbers."""
        del kinds
        return pa.schema([("size", pa.int64()), ("strata", pa.int64())])


def uncertain(
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
    schema, swap = schema_of(release), moving(choice, schema_of(release))
    areas = [off.name for off in schema.geography.off_spine if off.of in swap and off.name in by]
    units = lazy(release.microdata[choice.resolution])
    if areas and release.folder is not None:
        units = attach(schema, units, areas, release.folder)
    names = units.collect_schema().names()
    swap = [name for name in dict.fromkeys([*swap, *areas]) if name in names]
    fixed = kept(by, match=choice.match, swap=swap, weight=weight)
    if fixed and not weight:
        return exact(counted(release, by, record_type=record_type, engine=engine))
    scale = _scale(release, record_type, weight) if weight else Units()
    kernel = Moments(tuple(by), choice.match, tuple(swap), choice.rate, weight, scale)
    found = in_strata(
        release, kernel, record_type=record_type, resolution=choice.resolution, areas=areas, engine=engine
    )
    table = finished([found], list(by), weight=weight, scale=scale)
    return exact(table, "weighted") if fixed else table


def _scale(release: Release, record_type: str, weight: str) -> Units:
    """The units of the released weights."""
    homes = schema_of(release).record(record_type).linked_to
    frames = [lazy(release.microdata[kind]) for kind in (record_type, homes) if kind in release.microdata]
    found = next((frame for frame in frames if weight in frame.collect_schema()), None)
    if found is None:
        raise InputError(
            f"the table needs the weight {weight}",
            why=f"the release has no such column for {record_type} records",
            fix="hold the weight in the swap, or leave weight out",
        )
    largest = collected(found.select(pl.col(weight).cast(pl.Float64).max()), streaming=True).item()
    return Units.of(largest or 0.0)


def strata(choice: SwapChoice, release: Release, engine: Engine) -> pl.DataFrame:
    """How many strata of each size there are; sizes of strata are invariants."""
    own = choice.resolution
    kernel = Sizes((), choice.match, ())
    found = in_strata(release, kernel, record_type=own, resolution=own, areas=(), engine=engine)
    return found.group_by("size").agg(pl.col("strata").sum()).sort("size")


def where_swaps_fell(choice: SwapChoice, release: Release, engine: Engine) -> Exhibit:
    """The effective rate by stratum size."""
    found = strata(choice, release, engine)
    sizes, number = found["size"].to_list(), found["strata"].to_list()
    effective = [float(q) for q in effective_rate(found["size"].to_numpy(), choice.rate)]
    records = [size * many for size, many in zip(sizes, number, strict=True)]
    weak = sum(r for r, q in zip(records, effective, strict=True) if q < float(choice.rate) / 2)
    x, y = Phrase("swap.exhibit.size"), Phrase("swap.exhibit.rate")
    rows: list[dict[str, object]] = [{x: s, y: q} for s, q in zip(sizes, effective, strict=True) if s > 0]
    if len(rows) > MOST_POINTS:
        rows = rows[:: max(1, len(rows) // MOST_POINTS)]
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
    if weight not in {*roles.held, *dict(roles.members).get(record_type, ())}:
        raise InputError(
            f"a table is weighted by {weight}, which the swap does not hold",
            why=f"it moves, it is dropped, or {record_type} records have no such variable",
            fix="hold it, or drop it and let [weights] recalibrate_to make new ones from public totals",
        )
