"""Public totals that new weights are made to meet: read, and held against what a plan releases."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stirred.errors import PlanError, did_you_mean
from stirred.publish.plan.description import WeightsPlan
from stirred.toml_text import read_plain_text

TOTAL_COLUMN = "total"
RELATIVE_TOLERANCE = 1e-6  # how far the sums of two public tables may differ, relative to the sum


@dataclass(frozen=True, slots=True)
class PublicTotals:
    """A public table: variables, and a total for each of their combinations."""

    name: str
    variables: tuple[str, ...]
    frame: pl.DataFrame  # the variables as text, and the total

    @property
    def sum(self) -> float:
        """Return the total of all cells."""
        return float(self.frame[TOTAL_COLUMN].sum())


def read_totals(weights: WeightsPlan, folder: Path) -> tuple[PublicTotals, ...]:
    """Read the public tables that a plan names; refuse unreadable or contradictory ones."""
    found = tuple(_read(folder / name) for name in weights.recalibrate_to)
    sums = [table.sum for table in found]
    if max(sums) - min(sums) > RELATIVE_TOLERANCE * max(sums):
        raise PlanError(
            "the public totals contradict each other",
            why=f"they sum to {min(sums):,.6g} in one file and to {max(sums):,.6g} in another",
            fix="correct the files: all of them must count the same population",
        )
    return found


def _read(path: Path) -> PublicTotals:
    try:
        frame = pl.read_csv(read_plain_text(path).encode(), infer_schema=False)
        frame = frame.with_columns(pl.col(TOTAL_COLUMN).str.strip_chars().cast(pl.Float64))
    except (OSError, UnicodeDecodeError, pl.exceptions.PolarsError):
        frame = pl.DataFrame()
    variables = tuple(name for name in frame.columns if name != TOTAL_COLUMN)
    wrong = (
        frame.is_empty()
        or not variables
        or frame[TOTAL_COLUMN].null_count() > 0
        or bool((~frame[TOTAL_COLUMN].is_finite()).any())
    )
    if wrong or frame[TOTAL_COLUMN].min() < 0 or frame[TOTAL_COLUMN].sum() <= 0:  # type: ignore[operator]
        raise PlanError(
            f"{path.name} holds no public totals",
            why="it is not there, or it lacks a column of variables or a column total with numbers of at least 0",
            fix="write CSV with a column for each variable and the column total, such as region,total",
        )
    if frame.select(variables).is_duplicated().any():
        raise PlanError(
            f"{path.name} has two totals for one cell",
            why="a combination of its variables stands in two rows",
            fix="give every combination one row",
        )
    return PublicTotals(path.name, variables, frame)


def require_totals(totals: Sequence[PublicTotals], weights: WeightsPlan, released: Sequence[str]) -> None:
    """Refuse public totals with variables that are not released, or with a column that exists already."""
    for table in totals:
        for name in table.variables:
            if name not in released:
                raise PlanError(
                    f"{table.name} has totals by {name}, which is not released",
                    why=f"the released {weights.record_type} records have no such variable",
                    fix=did_you_mean(name, released),
                )
    if weights.column in released:
        raise PlanError(
            f"the new weights cannot be called {weights.column}",
            why=f"{weights.record_type} records are released with a variable of this name",
            fix=f'drop = ["{weights.column}"] in the mechanism, or another column in [weights]',
        )
