"""The published tables T1 and T2 with the variance and interval of every row, and the Bureau's files of them."""

from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.frames import arrow_of
from stirred.mechanisms.marks import SELECTED_ROWS_KEY
from stirred.mechanisms.safetab.groups import GroupSet
from stirred.mechanisms.safetab.noise import CellNoise
from stirred.mechanisms.safetab.persons.ages import age_classes
from stirred.mechanisms.safetab.persons.measure import MeasuredGroups, Stages
from stirred.mechanisms.safetab.regions import REGION_TYPES

Ints = NDArray[np.int64]
T1 = ("region_type", "region", "iteration")
T2 = (*T1, "sex", "age_start", "age_end")
FIGURE_COLUMNS = ("count", "estimate", "standard_error", "variance", "low", "high")
BUREAU_COLUMNS = {
    "region": "REGION_ID",
    "region_type": "REGION_TYPE",
    "iteration": "ITERATION_CODE",
    "age_start": "AGESTART",
    "age_end": "AGEEND",
    "sex": "SEX",
    "count": "COUNT",
}
ALL_AGES = "*"
LISTS_KEY = b"stirred:code lists"
Z95 = 1.959963984540054
CHANCE_ONE_SIDE = Fraction(39, 40)  # P(noise ≤ k) ≥ 0.975 on both sides


@dataclass(frozen=True, slots=True)
class NoisyRows:
    """Counts that have one law of noise: how many independent draws each sums, and the draw."""

    noise: CellNoise
    draws: int = 1

    @property
    def variance(self) -> float:
        """Return the variance of each count."""
        return float(self.noise.variance) * self.draws

    @property
    def half_width(self) -> int:
        """Return half of the 95 % interval: exact for one draw, normal and rounded up for a sum."""
        if self.noise.budget is None:
            return 0
        return self.noise.cut(CHANCE_ONE_SIDE) if self.draws == 1 else ceil(Z95 * self.variance**0.5)

    def figures(self, counts: Ints) -> dict[str, object]:
        """Return the columns of a table: counts with their uncertainty."""
        size = len(counts)
        return {
            "count": counts,
            "estimate": counts.astype(float),
            "standard_error": np.full(size, self.variance**0.5),
            "variance": np.full(size, self.variance),
            "low": np.maximum(counts - self.half_width, 0).astype(float),
            "high": np.maximum(counts + self.half_width, 0).astype(float),
        }


def make_tables(
    found: Sequence[tuple[GroupSet, Stages, MeasuredGroups]],
    sexes: Sequence[str],
    *,
    clamp: bool,
    digest: str,
) -> dict[str, pa.Table]:
    """Return T1 (totals and sums of all groups in T2) and T2 (sex by age, and all ages of each sex)."""
    totals, cells = [_empty_frame(T1)], [_empty_frame(T2)]
    for item, stages, made in found:
        for looked, noise in ((False, stages.whole), (True, stages.second)):
            some = made.looked == looked
            counts = _clamp(made.total_counts[some], clamp=clamp)
            totals.append(_frame_rows(item, made.totals[some], NoisyRows(noise).figures(counts)))
        for detail, (groups, rows) in made.cells.items():
            rows = _clamp(rows, clamp=clamp)
            classes = len(age_classes(detail))
            totals.append(
                _frame_rows(item, groups, NoisyRows(stages.second, 2 * classes).figures(rows.sum(axis=1)))
            )
            by_sex = rows.reshape(len(groups) * 2, classes)
            marginal = NoisyRows(stages.second, classes).figures(by_sex.sum(axis=1))
            cells.append(_frame_rows(item, groups, marginal, _name_cells(sexes, [(ALL_AGES, ALL_AGES)])))
            inner = [(str(first), str(last)) for first, last in age_classes(detail)]
            cells.append(
                _frame_rows(
                    item, groups, NoisyRows(stages.second).figures(rows.ravel()), _name_cells(sexes, inner)
                )
            )
    order = {name: place for place, name in enumerate(REGION_TYPES)}
    made_tables = {}
    for name, frames in (("t1", totals), ("t2", cells)):
        kind = pl.col("region_type").replace_strict(order, return_dtype=pl.Int64)
        age = [pl.col("sex"), pl.col("age_start").cast(pl.Int64, strict=False)] if name == "t2" else []
        table = arrow_of(pl.concat(frames).sort([kind, "region", "iteration", *age], nulls_last=False))
        made_tables[name] = table.replace_schema_metadata(
            {LISTS_KEY: digest.encode(), SELECTED_ROWS_KEY.encode(): b"yes"}
        )
    return made_tables


def _name_cells(sexes: Sequence[str], classes: Sequence[tuple[str, str]]) -> pl.DataFrame:
    """Return the cells of one group, in the order of its row."""
    rows = [(sex, first, last) for sex in sexes for first, last in classes]
    return pl.DataFrame(rows, schema=T2[3:], orient="row")


def _clamp(counts: Ints, *, clamp: bool) -> Ints:
    return np.maximum(counts, 0) if clamp else counts


def _frame_rows(
    item: GroupSet, groups: Ints, figures: Table[str, object], names: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Return rows of a table: one for each group, or one for each group and name."""
    width = 1 if names is None else names.height
    region, iteration = np.divmod(np.repeat(groups, width), max(item.iterations, 1))
    columns: dict[str, object] = {
        "region_type": pl.Series([item.kind.name], dtype=pl.String).new_from_index(0, len(region)),
        "region": pl.Series(item.regions, dtype=pl.String).gather(region),
        "iteration": pl.Series(item.mapping.codes, dtype=pl.String).gather(iteration),
    }
    if names is not None:
        place = np.tile(np.arange(width), len(groups))
        columns |= {name: names[name].gather(place) for name in names.columns}
    return pl.DataFrame(columns | dict(figures))


def _empty_frame(by: Sequence[str]) -> pl.DataFrame:
    numbers = {name: pl.Float64() for name in FIGURE_COLUMNS}
    return pl.DataFrame(schema={name: pl.String() for name in by} | numbers | {"count": pl.Int64()})


def write_files(tables: Table[str, pa.Table], out: Path, digest: str) -> tuple[Path, ...]:
    """Write T1 and T2 as the Bureau does, with the digest of the code lists beside T1; return the paths."""
    written = []
    for name, table in tables.items():
        columns = [column for column in BUREAU_COLUMNS if column in table.column_names]
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        rows = to_frame(table.select(columns)).rename({old: BUREAU_COLUMNS[old] for old in columns})
        rows.write_csv(folder / "part-00000.csv", separator="|")
        written.append(folder)
    lists = out / "t1.lists"
    lists.write_text(f"{digest}\n", encoding="ascii")
    return (*written, lists)


def to_frame(table: pa.Table) -> pl.DataFrame:
    """Return a published table as a polars frame."""
    return pl.DataFrame(pl.from_arrow(table))


def sum_groups(cells: pl.DataFrame) -> pl.DataFrame:
    """Return the sum of the cells of each group, without the rows of all ages."""
    inner = cells.filter(pl.col("age_start") != ALL_AGES)
    return inner.group_by(T1, maintain_order=True).agg(pl.col("count").sum().alias("sum"))
