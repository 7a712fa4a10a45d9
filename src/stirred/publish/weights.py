"""Compute new weights for released records from public totals, by raking (iterative proportional fitting)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred._support import pads
from stirred.engine import Engine
from stirred.errors import InputError, PlanError, did_you_mean
from stirred.frames import frame_of
from stirred.mechanisms.release import Release, count_records
from stirred.publish.plan.description import WeightsPlan
from stirred.text_formats import read_plain_text

# Public totals that new weights are made to meet: read, and held against what a plan releases.

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


# New weights for released records from public totals: raking, also called iterative proportional fitting.
#
# Every released record starts with weight 1; the weights are multiplied by $T_c / \sum_{i \in c} w_i$ for each cell
# $c$ of each public table in turn, until all totals $T_c$ are met (Deming and Stephan, 1940). Only the released file
# and public numbers are read, so the weights are post-processing and cost no budget.

ROUNDS, CLOSE = 1_000, 1e-9  # rounds of raking, and how near every total must be met


def rake(cells: pl.DataFrame, totals: Sequence[PublicTotals]) -> NDArray[np.float64]:
    """Return the weight of a record in each cell; ``cells`` has variables as text and numbers of records.

    >>> cells = pl.DataFrame({"region": ["a", "a", "b"], "sex": ["f", "m", "f"], "count": [1, 1, 2]})
    >>> region = PublicTotals("r.csv", ("region",), pl.DataFrame({"region": ["a", "b"], "total": [30.0, 10.0]}))
    >>> rake(cells, [region]).tolist()
    [15.0, 15.0, 5.0]
    """
    count = cells["count"].to_numpy().astype(np.float64)
    steps = [_step(cells, table) for table in totals]
    weight = np.ones(len(count))
    for _ in range(ROUNDS):
        for index, wanted in steps:
            have = np.bincount(index, weights=weight * count, minlength=len(wanted))
            weight = weight * np.divide(wanted, have, out=np.zeros_like(wanted), where=have > 0)[index]
        off = max(_measure_miss(weight * count, *step) for step in steps)
        if off <= CLOSE:
            return weight
    raise InputError(
        "no weights meet all public totals",
        why=f"after {ROUNDS:,} rounds of raking a total is still missed by {100 * off:.2g}% of the population",
        fix="use coarser totals: where combinations have no released record, totals can contradict each other",
    )


def _measure_miss(
    shares: NDArray[np.float64], index: NDArray[np.int64], wanted: NDArray[np.float64]
) -> float:
    """Return by how much the worst total is missed, as a share of the population."""
    have = np.bincount(index, weights=shares, minlength=len(wanted))
    return float(np.max(np.abs(have - wanted)) / wanted.sum())


def _step(cells: pl.DataFrame, table: PublicTotals) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the index of each cell in a public table, and the totals."""
    keys = list(table.variables)
    wanted = table.frame.with_row_index("_row")
    index = cells.join(wanted, on=keys, how="left", maintain_order="left")["_row"]
    if index.null_count():
        records = int(cells.filter(index.is_null())["count"].sum())
        raise InputError(
            f"{table.name} lacks totals",
            why=f"{records:,} released records have a combination of {', '.join(keys)} that it does not list",
            fix="add a row for every combination; a total may be 0",
        )
    empty = wanted.filter(~pl.col("_row").is_in(index.unique().to_list()) & (pl.col(TOTAL_COLUMN) > 0)).height
    if empty:
        raise InputError(
            f"{table.name} has totals that no record can carry",
            why=f"{empty:,} of its combinations of {', '.join(keys)} have no released record",
            fix="join these rows with others, or leave the variable out",
        )
    return index.to_numpy().astype(np.int64), table.frame[TOTAL_COLUMN].to_numpy().astype(np.float64)


def recalibrate(
    release: Release, totals: Sequence[PublicTotals], weights: WeightsPlan, work: Path, engine: Engine
) -> Release:
    """Return the release with a column of weights that meet the totals; write record files in ``work``."""
    if weights.record_type not in release.microdata:
        raise InputError(
            f"the release has no {weights.record_type} records to weight",
            why="its mechanism publishes tables alone",
            fix="leave [weights] out of the plan, or release records",
        )
    keys = list(dict.fromkeys(name for table in totals for name in table.variables))
    found = count_records(release, keys, record_type=weights.record_type, engine=engine)
    cells = found.with_columns(pl.col(keys).cast(pl.String)).group_by(keys).agg(pl.col("count").sum())
    cells = cells.sort(keys, nulls_last=False)
    looked_up = cells.with_columns(pl.Series(weights.column, rake(cells, totals)))
    data = release.microdata[weights.record_type]
    if isinstance(data, pa.Table):
        made: pa.Table | pads.Dataset = _add_weights(data, keys, looked_up, weights.column)
    else:
        files = [Path(name) for name in data.files]
        for path in files:
            _write_again(path, keys, looked_up, weights.column, work)
        made = pads.dataset([str(path) for path in files])
    digests = ", ".join(f"{table.name} (SHA-256 {_digest(table)})" for table in totals)
    note = f"{weights.column} was computed from the released records and public totals alone: {digests}"
    return replace(
        release,
        microdata={**release.microdata, weights.record_type: made},
        notes=(*release.notes, note),
    )


def _digest(table: PublicTotals) -> str:
    return hashlib.sha256(table.frame.write_csv().encode()).hexdigest()[:16]


def _add_weights(table: pa.Table, keys: list[str], cells: pl.DataFrame, column: str) -> pa.Table:
    own = frame_of(table.select(keys)).with_columns(pl.col(keys).cast(pl.String))
    joined = own.join(cells, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return table.append_column(column, joined[column].to_arrow())


def _write_again(path: Path, keys: list[str], cells: pl.DataFrame, column: str, work: Path) -> None:
    """Write the file with one more column, batch by batch; keep the old file until the new one is whole."""
    temporary = work / f"{path.name}.weighted"
    with pq.ParquetFile(path) as source:
        kind = source.schema_arrow.append(pa.field(column, pa.float64()))
        with pq.ParquetWriter(temporary, kind) as writer:
            for batch in source.iter_batches(batch_size=1 << 18):
                writer.write_table(
                    _add_weights(pa.Table.from_batches([batch]), keys, cells, column).cast(kind)
                )
    temporary.replace(path)
