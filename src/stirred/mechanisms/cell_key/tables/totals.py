"""Count cells with their keys, weights and the totals of magnitudes, each with its largest contributors."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.engine import Flow
from stirred.engine.plain import to_plain
from stirred.errors import DataError
from stirred.frames import arrow_of, frame_of
from stirred.mechanisms.cell_key.tables.tabulate import COUNT, SUM, WEIGHT, RecordKeys, key_sum

WEIGHT_UNITS = (
    10**6
)  # weights are added in millionths, as whole numbers: a sum of floats would depend on the batches
MAGNITUDE_UNITS = 10**3  # magnitudes in thousandths
MAX_TOTAL = float(1 << 62)
# of a batch: its smallest weight, and the largest number that all differences of weights are multiples of
LEAST, STEP = "__least_weight", "__weight_step"


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalCells:
    """A batch of records as cells: counts, sums of keys, sums of weights, and totals with their largest contributors.

    With a ``weight`` a contribution is the record's value times its weight.
    """

    by: tuple[str, ...]
    keys: RecordKeys
    weight: str = ""
    magnitudes: tuple[str, ...] = ()
    contributors: int = 1

    def __call__(self, table: pa.Table) -> pa.Table:
        names = dict.fromkeys([*self.by, *filter(None, [self.weight]), *self.magnitudes])
        frame = frame_of(table.select(list(names)))
        weight = self._read_numbers(frame, self.weight) if self.weight else None
        columns = [pl.Series(SUM, self.keys.of(table))]
        if weight is not None:
            columns.append(_to_units(WEIGHT, weight, WEIGHT_UNITS))
        for place, name in enumerate(self.magnitudes):
            value = self._read_numbers(frame, name)
            columns.append(
                _to_units(
                    f"__total{place}", value if weight is None else value * weight, MAGNITUDE_UNITS, name=name
                )
            )
        frame = frame.select(self.by).with_columns(columns) if self.by else pl.DataFrame(columns)
        made = [pl.len().cast(pl.Int64).alias(COUNT), key_sum(self.keys.modulus)]
        if self.weight:
            least, step = _find_step(frame[WEIGHT])
            made += [
                pl.col(WEIGHT).sum(),
                *(pl.lit(x, pl.Int64).alias(name) for x, name in ((least, LEAST), (step, STEP))),
            ]
        for place in range(len(self.magnitudes)):
            made += [pl.col(f"__total{place}").sum(), *self._largest_values(place, pl.col(f"__total{place}"))]
        return to_plain(arrow_of(self._group_cells(frame, made)))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the columns of the table that a batch gives."""
        return self(before.empty_table()).schema

    def merge(self, parts: pl.DataFrame) -> pl.DataFrame:
        """Return all cells of some batches, sorted."""
        made = [pl.col(COUNT).sum(), key_sum(self.keys.modulus)]
        if self.weight:
            _require_fits(parts[WEIGHT], self.weight)
            full = parts.filter(pl.col(COUNT) > 0)
            steps = np.concatenate([np.diff(np.sort(full[LEAST].to_numpy())), full[STEP].to_numpy()])
            step = int(np.gcd.reduce(steps)) if steps.size else 0
            made += [pl.col(WEIGHT).sum(), pl.lit(step, pl.Int64).alias(STEP)]
        for place, name in enumerate(self.magnitudes):
            _require_fits(parts[f"__total{place}"], name)
            together = pl.concat_list(self.largest(place)).explode()
            made += [pl.col(f"__total{place}").sum(), *self._largest_values(place, together)]
        found = self._group_cells(parts, made)
        return found.sort(list(self.by), nulls_last=False) if self.by else found

    def largest(self, place: int) -> list[str]:
        """Return the columns of the largest contributors of a magnitude."""
        return [f"__top{place}_{j}" for j in range(self.contributors)]

    def _largest_values(self, place: int, values: pl.Expr) -> list[pl.Expr]:
        kept = values.drop_nulls().sort(descending=True)
        return [kept.get(j, null_on_oob=True).alias(name) for j, name in enumerate(self.largest(place))]

    def _group_cells(self, frame: pl.DataFrame, made: Sequence[pl.Expr]) -> pl.DataFrame:
        return frame.group_by(list(self.by)).agg(made) if self.by else frame.select(made)

    def _read_numbers(self, frame: pl.DataFrame, name: str) -> pl.Series:
        """Return a variable as numbers of at least 0; an empty value counts as 0."""
        column = frame[name]
        if not (column.dtype.is_numeric() or column.dtype == pl.Null):
            raise DataError(
                f"{name} cannot be added up",
                why=f"its values are of type {column.dtype}, not numbers",
                fix="name a variable of numbers in weight and magnitudes",
            )
        found = column.cast(pl.Float64).fill_null(0.0)
        bad = int((~(found >= 0) | found.is_infinite()).sum())
        if bad:
            raise DataError(
                f"{name} is below 0 or not a finite number in {bad} records of a batch",
                why="noise in proportion to the largest contributors bounds the error of a total only where none is below 0",
                fix=f"publish gains and losses of {name} as two variables",
            )
        return found


def _find_step(weights: pl.Series) -> tuple[int, int]:
    """Return the smallest weight, and the largest number that all differences of weights are multiples of (0: all equal)."""
    values = weights.to_numpy()
    if not values.size:
        return 0, 0
    least = int(values.min())
    return least, int(np.gcd.reduce(values - least))


def total_cells(flow: Flow, cells: TotalCells) -> pl.DataFrame:
    """Return all cells that have records, sorted, with their totals."""
    return cells.merge(frame_of(flow.map(cells, cells.schema(flow.schema)).gather()))


def _to_units(column: str, values: pl.Series, units: int, *, name: str = "") -> pl.Series:
    scaled = (values * units).round()
    _require_fits(scaled, name or column)
    return scaled.cast(pl.Int64).alias(column)


def _require_fits(values: pl.Series, name: str) -> None:
    if float(values.cast(pl.Float64).sum() or 0.0) >= MAX_TOTAL:
        raise DataError(
            f"the totals of {name} are too large",
            why="they are added as whole numbers of 64 bits, in thousandths (weights in millionths)",
            fix=f"measure {name} in thousands or in millions",
        )


def read_largest(
    found: pl.DataFrame, columns: Sequence[str]
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return the largest contributors of each cell, in the unit of the variable; 0 where there are fewer."""
    return np.asarray(found.select(pl.col(columns).fill_null(0) / MAGNITUDE_UNITS).to_numpy(), np.float64)
