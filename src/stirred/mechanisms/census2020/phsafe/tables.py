"""Add noise to the complete tables, derive what follows from them, and write them as the Bureau's program does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.frames import series_of
from stirred.mechanisms.census2020.factors import Definition
from stirred.mechanisms.census2020.noise import CellNoise
from stirred.mechanisms.census2020.phsafe.budgets import MeasuredTable
from stirred.mechanisms.census2020.phsafe.counting import (
    ALL,
    CELL,
    COUNT,
    ITERATION_CODES,
    ORIGIN,
    ORIGINS,
    RACE,
    RACES,
    STATE,
    TABLE,
    TABULATION_BY_NAME,
    USA,
)

# Add noise to the complete tables, derive what follows from them, and state the uncertainty of every row.

NATION_ID = "1"  # the region of the United States
REGION_TYPE, REGION, ITERATION, VARIANCE = "region_type", "region", "iteration", "variance"
MEASURE_COLUMNS = (COUNT, "estimate", "standard_error", "low", "high", VARIANCE)
COVERAGE, Z95 = 0.95, 1.959963984540054
MAX_EXACT_DEVIATION = 200  # standard deviations up to here are treated as laws of whole numbers
DERIVED_TABLES = {
    "PH5_num": ("PH4", {2: 2, 3: 3}),
    "PH8_num": ("PH7", {2: 2, 3: 2, 4: 3}),
}  # cell of the source → cell
TABLE_ORDER = (
    "PH1_num", "PH1_denom", "PH2", "PH3", "PH4", "PH5_num", "PH5_denom", "PH6", "PH7", "PH8_num", "PH8_denom",
)  # fmt: skip
Ints = NDArray[np.int64]


def cell_column(table: str) -> str:
    """Return the variable of a table's cells; each table has its own, so that its variables name it."""
    return f"{table.lower()}_cell"


def list_variables(table: str) -> tuple[str, ...]:
    """Return the variables of a published table."""
    source = DERIVED_TABLES[table][0] if table in DERIVED_TABLES else table
    iteration = () if TABULATION_BY_NAME[source].levels == (ALL,) else (ITERATION,)
    return (REGION_TYPE, REGION, *iteration, cell_column(table))


@dataclass(frozen=True, slots=True)
class Answers:
    """The exact counts of one measurement: regions × iteration codes × cells, zeros included."""

    measured: MeasuredTable
    regions: tuple[str, ...]
    counts: Ints

    @classmethod
    def of(cls, counts: pl.DataFrame, measured: MeasuredTable, states: Sequence[str]) -> "Answers":
        """Return the complete table of one region type and iteration level."""
        cells, codes = TABULATION_BY_NAME[measured.table].cells, ITERATION_CODES[measured.level]
        regions = (NATION_ID,) if measured.region_type == USA else tuple(states)
        found = np.zeros((len(regions), len(codes), len(cells)), np.int64)
        code = {RACES: RACE, ORIGINS: ORIGIN}.get(measured.level)
        kept = (pl.col(TABLE) == measured.table) & pl.col(STATE.lower()).is_in(states)
        wanted = counts.filter(kept if code is None else kept & pl.col(code).is_not_null())
        place = {cell: position for position, cell in enumerate(cells)}
        row = {name: 0 if measured.region_type == USA else i for i, name in enumerate(states)}
        at = (
            np.array([row[name] for name in wanted[STATE.lower()]], np.int64),
            np.zeros(wanted.height, np.int64) if code is None else wanted[code].to_numpy().astype(np.int64),
            np.array([place[cell] for cell in wanted[CELL]], np.int64),
        )
        np.add.at(found, at, wanted[COUNT].to_numpy())
        return cls(measured, regions, found)

    def add_noise(self, key: Key) -> Ints:
        """Return the counts with noise; each has a draw of its own."""
        numbers = np.arange(self.counts.size, dtype=np.uint64)
        drawn = self.measured.noise.at(key, (self.measured.place,), numbers)
        return np.asarray(self.counts + drawn.reshape(self.counts.shape))


def make_tables(answers: Sequence[Answers], key: Key) -> dict[str, pl.DataFrame]:
    """Return all tables in the order of the S-DHC, those derived free of cost among them, sorted."""
    rows: dict[str, list[pl.DataFrame]] = {}
    for answer in answers:
        noisy, wanted = answer.add_noise(key), answer.measured
        for table, cells in _list_targets(wanted.table).items():
            rows.setdefault(table, []).append(_make_rows(answer, noisy, table, cells))
    return {
        name: pl.concat(rows[name]).select(*list_variables(name), *MEASURE_COLUMNS).sort(_row_order(name))
        for name in TABLE_ORDER
        if name in rows
    }


def list_states(table: pl.DataFrame) -> set[str]:
    """Return the states that a table shows."""
    return set(table.filter(pl.col(REGION_TYPE) == STATE)[REGION].unique())


def select_rows(table: pl.DataFrame, item: MeasuredTable) -> pl.DataFrame:
    """Return the rows of a released table that one measurement made."""
    rows = table.filter(pl.col(REGION_TYPE) == item.region_type)
    return (
        rows.filter(pl.col(ITERATION).is_in(ITERATION_CODES[item.level]))
        if ITERATION in rows.columns
        else rows
    )


def has_measurement(tables: Mapping[str, pl.DataFrame], item: MeasuredTable) -> bool:
    """Return whether released tables hold a measurement; a census may lack what it needs."""
    if item.table not in tables:
        return False
    table = tables[item.table]
    levels = table[ITERATION].to_list() if ITERATION in table.columns else [ALL] * table.height
    rows = zip(table[REGION_TYPE].to_list(), levels, strict=True)
    return (item.region_type, ITERATION_CODES[item.level][0]) in rows


def _list_targets(table: str) -> dict[str, dict[int, int]]:
    """Return the tables that one measured table makes, with the cell of each of its cells."""
    own = {table: {cell: cell for cell in TABULATION_BY_NAME[table].cells}}
    return own | {name: cells for name, (source, cells) in DERIVED_TABLES.items() if source == table}


def _make_rows(answer: Answers, noisy: Ints, table: str, cells: Mapping[int, int]) -> pl.DataFrame:
    wanted = answer.measured
    source, codes = TABULATION_BY_NAME[wanted.table].cells, ITERATION_CODES[wanted.level]
    targets = sorted(set(cells.values()))
    parts = [[i for i, cell in enumerate(source) if cells[cell] == target] for target in targets]
    counts = np.stack([noisy[:, :, part].sum(axis=2) for part in parts], axis=2)
    variance = [float(wanted.noise.variance) * len(part) for part in parts]
    reach = [find_margin(wanted.noise, len(part)) for part in parts]
    shape = counts.shape
    region, code, cell = (axis.ravel() for axis in np.indices(shape))
    estimate, wide = counts.ravel().astype(np.float64), np.array(reach)[cell]
    return pl.DataFrame(
        {
            REGION_TYPE: series_of(np.full(counts.size, wanted.region_type, object), pl.String()),
            REGION: series_of(np.array(answer.regions, object)[region], pl.String()),
            ITERATION: series_of(np.array(codes, object)[code], pl.String()),
            cell_column(table): series_of(np.array(targets, np.int64)[cell]),
            COUNT: series_of(counts.ravel()),
            VARIANCE: series_of(np.array(variance)[cell]),
            "estimate": series_of(estimate),
            "standard_error": series_of(np.sqrt(np.array(variance))[cell]),
            "low": series_of(estimate - wide),
            "high": series_of(estimate + wide),
        }
    )


def _row_order(table: str) -> list[pl.Expr]:
    """Return the order of rows: the nation first, then the states."""
    names = [name for name in list_variables(table) if name != REGION_TYPE]
    return [pl.col(REGION_TYPE) != USA, *(pl.col(name) for name in names)]


@lru_cache(maxsize=256)
def find_margin(noise: CellNoise, terms: int = 1) -> float:
    """Return the smallest k with P(|sum of ``terms`` draws| ≤ k) ≥ 95 %, half the interval of a count.

    >>> from fractions import Fraction
    >>> find_margin(CellNoise("zcdp", Fraction("0.016371"), Fraction(484)))
    238.0
    """
    if noise.budget is None:
        return 0.0
    deviation = float(noise.variance) ** 0.5
    if deviation > MAX_EXACT_DEVIATION:
        return _find_smooth_margin(noise, terms)
    points = np.arange(-int(14 * deviation + 40), int(14 * deviation + 41))
    if noise.definition == "zcdp":
        weights = np.exp(-(points**2) / (2 * float(noise.variance)))
    else:
        weights = np.exp(-np.abs(points) / noise.scale)
    law = weights / weights.sum()
    total = law
    for _ in range(terms - 1):
        total = np.convolve(total, law)
    both = total[len(total) // 2 :].copy()
    both[1:] *= 2
    return float(np.searchsorted(np.cumsum(both), COVERAGE))


def _find_smooth_margin(noise: CellNoise, terms: int) -> float:
    """Return the same for a very wide law, as if it were continuous, rounded up."""
    if noise.definition == "zcdp" or terms > 2:
        return float(np.ceil(Z95 * (float(noise.variance) * terms) ** 0.5))
    t = np.linspace(0, 30, 300_001)  # in units of the scale
    beyond = np.exp(-t) * (1 if terms == 1 else 1 + t / 2)
    return float(np.ceil(noise.scale * t[np.searchsorted(-beyond, COVERAGE - 1)]))


# Write the tables as the Bureau's program does: one text file each, with ``|`` between fields, its variance in each row.

NOISE_NAMES = {"zcdp": "Discrete Gaussian", "puredp": "Two-Sided Geometric"}


def to_bureau_table(name: str, table: pl.DataFrame, definition: Definition) -> pl.DataFrame:
    """Return a published table with the Bureau's columns, all of them text, sorted as text."""
    cell = f"{name.upper()}_DATA_CELL"
    iteration = [pl.col(ITERATION).alias("ITERATION_CODE")] if ITERATION in list_variables(name) else []
    variance = [_write_number(value) for value in table["variance"].to_list()]
    made = table.select(
        pl.col(REGION).alias("REGION_ID"),
        pl.col(REGION_TYPE).alias("REGION_TYPE"),
        *iteration,
        pl.col(cell_column(name)).cast(pl.String).alias(cell),
        pl.lit(NOISE_NAMES[definition]).alias("NOISE_DISTRIBUTION"),
        pl.Series("VARIANCE", variance, pl.String),
        pl.col("count").cast(pl.String).alias("COUNT"),
    )
    keys = ["REGION_ID", "REGION_TYPE", *(["ITERATION_CODE"] if iteration else []), cell]
    return made.sort(keys)


def write_files(folder: Path, tables: Mapping[str, pl.DataFrame], definition: Definition) -> tuple[Path, ...]:
    """Write one file for each table, such as PH1_num.csv, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        path = folder / f"{name}.csv"
        to_bureau_table(name, table, definition).write_csv(path, separator="|")
        paths.append(path)
    return tuple(paths)


def _write_number(value: float) -> str:
    """Return a variance with all its digits; whole ones without a point.

    >>> _write_number(8.0), _write_number(31.83385287773731)
    ('8', '31.83385287773731')
    """
    return str(int(value)) if value == int(value) else repr(value)
