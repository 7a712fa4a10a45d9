"""The tables that a release shows: perturbed counts, weighted counts and totals; cells at 0 have no row."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.errors import PrivacyError
from stirred.mechanisms.cell_key.perturbation import Floats, Perturbation, estimate_counts
from stirred.mechanisms.cell_key.tables.magnitude import MagnitudeNoise
from stirred.mechanisms.cell_key.tables.tabulate import COUNT, SUM, WEIGHT
from stirred.mechanisms.cell_key.tables.totals import MAGNITUDE_UNITS, STEP, WEIGHT_UNITS, read_largest
from stirred.mechanisms.released import format_table


@dataclass(frozen=True, slots=True)
class ShownCells:
    """The cells of one table that are shown, with their perturbed counts; what they hold beside that is confidential."""

    cells: pl.DataFrame
    by: tuple[str, ...]
    counts: pl.Series

    @staticmethod
    def of(cells: pl.DataFrame, by: Sequence[str], table: Perturbation, threshold: int) -> "ShownCells":
        """Look the noise up; cells below the threshold, or at 0, are left out."""
        true = cells[COUNT].to_numpy()
        count = pl.Series(COUNT, true + table.noise(true, cells[SUM].to_numpy()))
        # a perturbed 0 is left out, as a cell without records is: which of the two it is must not be seen
        shown = count >= max(threshold, 1)
        return ShownCells(cells.filter(shown), tuple(by), count.filter(shown))

    def table(self) -> pa.Table:
        """Return the published table of counts."""
        return format_table(self._cells(), self.by)

    def weight_table(self, table: Perturbation, base: Fraction) -> pa.Table:
        """Return counts times the mean weight of their cell, rounded to a multiple of ``base``, with intervals.

        Without the rounding a weighted count divided by its count would be a ratio of true numbers, whose denominator is the
        true count. Error and interval are functions of the two published numbers: the mean weight is known to within half
        a base, divided by the count.
        """
        count = self.counts.to_numpy().astype(np.float64)
        unit = base * WEIGHT_UNITS
        # exact, as the proof has it: c · w / n in bases, rounded half up
        parts = zip(
            self.counts.to_list(), self.cells[WEIGHT].to_list(), self.cells[COUNT].to_list(), strict=True
        )
        bases = [
            (2 * c * w * unit.denominator + n * unit.numerator) // (2 * n * unit.numerator)
            for c, w, n in parts
        ]
        half = float(base / 2)
        shown = np.array([float(number * base) for number in bases], np.float64)
        error, low, high = estimate_counts(table, self.counts.to_numpy())
        found = self._cells().with_columns(
            pl.Series(WEIGHT, shown),
            estimate=shown,
            standard_error=np.hypot(error * shown / count, half / 3**0.5),
            low=low * np.maximum(shown - half, 0) / count,
            high=high * (shown + half) / count,
        )
        return format_table(found, self.by)

    def require_base(self, base: Fraction, weight: str, largest: float) -> None:
        """Raise an error unless every count that a shown count allows could have the same weighted count (proof.md)."""
        step = Fraction(int(self.cells[STEP].max() or 0), WEIGHT_UNITS)  # type: ignore[arg-type]
        if base < (ceil(largest) + 1) * step:
            raise PrivacyError(
                f"weight_base is too small for the variable {weight}",
                why="its weights lie on a coarse grid: a weighted count divided by its count would tell true counts",
                fix="weight_base must be at least (D + 1) times the step of the weights, "
                "for example 10 times the smallest difference of two weights",
            )

    def _cells(self) -> pl.DataFrame:
        return pl.DataFrame([*(self.cells[name] for name in self.by), self.counts])

    def total(self, place: int, contributors: Sequence[str], noise: MagnitudeNoise, few: int) -> pa.Table:
        """Return the totals of a magnitude; a cell with fewer than ``few`` records has the extra noise."""
        true = self.cells[f"__total{place}"].to_numpy() / MAGNITUDE_UNITS
        keys, sensitive = self.cells[SUM].to_numpy(), self.cells[COUNT].to_numpy() < few
        total = true + noise.noise(true, read_largest(self.cells, contributors), keys, sensitive)
        error, low, high = bound_total(total, noise)
        found = self._cells().with_columns(
            pl.Series(WEIGHT, total),
            estimate=total,
            standard_error=error,
            low=low,
            high=high,
        )
        return format_table(found, self.by)


def bound_total(total: Floats, noise: MagnitudeNoise) -> tuple[Floats, Floats, Floats]:
    """Return a bound of the standard error and a sure interval, from a published total alone.

    Contributions are at least 0 and add up to the total, so the noise is at most a known share of it. The error itself
    follows the largest contributor, which is confidential.
    """
    share, most = noise.share, noise.share * (noise.table.largest + noise.extra)
    high = total / (1 - most) if most < 1 else np.where(total > 0, np.inf, 0.0)
    error = np.minimum(share * (noise.deviation + noise.extra), most) * high
    return error, total / (1 + most), high
