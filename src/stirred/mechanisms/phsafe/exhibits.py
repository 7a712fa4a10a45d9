"""What a report shows of PHSafe: the noise of every table, the averages that follow, and what truncation leaves out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.phsafe.amounts import MeasuredTable
from stirred.mechanisms.phsafe.counting.tables import ALL
from stirred.mechanisms.phsafe.measure import (
    ITERATION,
    REGION,
    REGION_TYPE,
    VARIANCE,
    Z95,
    cell_column,
    find_margin,
)

MAX_REGIONS_SHOWN = 60  # rows of averages in the report
AVERAGES: tuple[tuple[str, str, str, tuple[int, ...], int], ...] = (
    ("household", "PH1_num", "PH1_denom", (2, 3), 1),
    ("family", "PH5_num", "PH5_denom", (2, 3), 1),
    ("owner", "PH8_num", "PH8_denom", (2,), 2),
    ("renter", "PH8_num", "PH8_denom", (3,), 3),
)  # name, table and cells of the persons, table and cell of the households


@dataclass(frozen=True, slots=True)
class Average:
    """A ratio of two noisy counts with its 95 % interval; without one where the denominator may be 0."""

    value: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, top: float, top_variance: float, bottom: float, bottom_variance: float) -> "Average":
        r"""The interval of Fieller: all r with $(a - rb)^2 \le z^2 (v_a + r^2 v_b)$.

        >>> Average.of(250.0, 0.0, 100.0, 0.0)
        Average(value=2.5, low=2.5, high=2.5)
        >>> Average.of(250.0, 9.0, 3.0, 9.0).value is None
        True
        """
        square = bottom**2 - Z95**2 * bottom_variance
        if bottom <= 0 or square <= 0:
            return cls(None, None, None)
        middle = top * bottom / square
        inside = middle**2 - (top**2 - Z95**2 * top_variance) / square
        reach = max(inside, 0.0) ** 0.5
        return cls(top / bottom, middle - reach, middle + reach)


def show_noise(measured: Sequence[MeasuredTable], tau: Mapping[str, int]) -> Exhibit:
    """Return the standard deviation and margin of error of every table, by region type and level."""
    rows = [
        (
            item.table,
            item.region_type,
            item.level,
            tau.get(item.table, "–"),
            item.sensitivity,
            "∞" if item.budget is None else f"{float(item.budget):.8f}".rstrip("0").rstrip("."),
            round(float(item.noise.variance) ** 0.5, 2),
            find_margin(item.noise),
        )
        for item in measured
    ]
    head = ("table", "region", "level", "tau", "sensitivity", "budget", "deviation", "margin")
    columns = [Phrase(f"phsafe.head.{name}") for name in head]
    widest = max((row[-1] for row in rows), default=0.0)
    narrowest = min((row[-1] for row in rows), default=0.0)
    return Exhibit(
        title=Phrase("phsafe.noise.title"),
        finding=Phrase("phsafe.noise.finding", low=f"{narrowest:,.0f}", high=f"{widest:,.0f}"),
        parts=(
            Listing(caption=Phrase("phsafe.noise.caption"), columns=columns, rows=rows, numeric=columns[3:]),
        ),
        note=Phrase("phsafe.noise.note"),
        chapter="accuracy",
    )


def show_truncation(tau: Mapping[str, int]) -> Exhibit:
    """Return what at most τ persons of a household means for the counts; the number left out is secret."""
    columns = [Phrase("phsafe.head.table"), Phrase("phsafe.head.tau")]
    return Exhibit(
        title=Phrase("phsafe.truncation.title"),
        finding=Phrase("phsafe.truncation.finding", most=max(tau.values(), default=0)),
        parts=(
            Listing(
                caption=Phrase("phsafe.truncation.caption"),
                columns=columns,
                rows=sorted(tau.items()),
                numeric=columns[1:],
            ),
        ),
        note=Phrase("phsafe.truncation.note"),
        chapter="accuracy",
    )


def compute_averages(tables: Mapping[str, pl.DataFrame]) -> list[tuple[str, str, Average]]:
    """Return the averages of every region for which both counts were published, over all races."""
    found = []
    for name, top, bottom, cells, cell in AVERAGES:
        if top not in tables or bottom not in tables:
            continue
        persons = _sum_cells(tables[top], top, cells)
        homes = _sum_cells(tables[bottom], bottom, (cell,))
        for region, (count, variance) in persons.items():
            if region in homes:
                found.append((name, region, Average.of(count, variance, *homes[region])))
    return found


def _sum_cells(table: pl.DataFrame, name: str, cells: Sequence[int]) -> dict[str, tuple[float, float]]:
    chosen = table.filter((pl.col(ITERATION) == ALL) & pl.col(cell_column(name)).is_in(list(cells)))
    label = pl.concat_str(REGION_TYPE, pl.lit(" "), REGION).alias("label")
    rows = chosen.group_by(label, maintain_order=True).agg(pl.col("count", VARIANCE).sum())
    return {region: (float(count), float(variance)) for region, count, variance in rows.iter_rows()}


def show_averages(tables: Mapping[str, pl.DataFrame]) -> Exhibit | None:
    """Return average sizes of households and families, which follow from published counts at no cost."""
    found = compute_averages(tables)
    if not found:
        return None
    head = ("average", "region_id", "size", "low", "high")
    columns = [Phrase(f"phsafe.head.{name}") for name in head]
    rows = [
        (Phrase(f"phsafe.average.{name}"), region, *(_round_digits(v) for v in (a.value, a.low, a.high)))
        for name, region, a in found
    ]
    known = sum(average.value is not None for _, _, average in found)
    return Exhibit(
        title=Phrase("phsafe.averages.title"),
        finding=Phrase("phsafe.averages.finding", known=f"{known:,}", all=f"{len(found):,}"),
        parts=(
            Listing(
                caption=Phrase("phsafe.averages.caption"),
                columns=columns,
                rows=rows[:MAX_REGIONS_SHOWN],
                numeric=columns[2:],
            ),
        ),
        note=Phrase("phsafe.averages.note"),
        chapter="accuracy",
    )


def _round_digits(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
