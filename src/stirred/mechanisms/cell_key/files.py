"""Perturbation tables as files: those of ptable and tau-ARGUS (intervals), and those of the ONS (a grid)."""

import csv
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from stirred.errors import DataError, InputError
from stirred.mechanisms.cell_key.perturbation import (
    BOUND_DIGITS,
    UNITS_PER_ONE,
    GridTable,
    IntervalTable,
    NoiseRow,
    Ties,
)
from stirred.roots import require_readable
from stirred.toml_text import MAX_LINE_CHARACTERS, CsvTable, require_plain

GRID_COLUMNS = ("pcv", "ckey", "pvalue")
OLD_NAMES = {"p_ij": "p", "p_ij_ub": "p_int_ub"}  # of tau-ARGUS before 2019
ROW_KINDS = ("all", "even", "odd")


def read_table(
    path: Path | str,
    *,
    digits: int = BOUND_DIGITS,
    ties: Ties = "below",
    period: int = 250,
    kind: str = "all",
) -> IntervalTable | GridTable:
    """Read the perturbation table of a file, in either dialect; ``kind`` chooses rows of even or odd counts.

    Files of ptable and tau-ARGUS have a row for each interval (columns i, v, p_int_ub; ``;`` or ``,`` between), those of the
    ONS one for each pair of a row and a key (columns pcv, ckey, pvalue; CSV or Parquet).
    """
    path = Path(path)
    rows = _read_rows(path)
    names = set(rows[0]) if rows else set()
    if names >= set(GRID_COLUMNS):
        return _read_grid(rows, period)
    if not names >= {"i", "v", "p_int_ub"}:
        raise DataError(
            f"{path.name} is not a perturbation table",
            why="it has neither the columns i, v, p_int_ub nor the columns pcv, ckey, pvalue",
            fix="export it with pt_export of ptable, or as pcv,ckey,pvalue",
        )
    chosen = [row for row in rows if row.get("type", "all") in (kind, "all")]
    by_class: dict[float, list[tuple[float, int]]] = {}
    try:
        for row in chosen:
            end = Fraction(row["p_int_ub"]) * UNITS_PER_ONE
            by_class.setdefault(float(row["i"]), []).append((float(row["v"]), round(end)))
    except ValueError:
        raise _number_error(path) from None
    found = {
        at: NoiseRow(np.array([value for value, _ in row]), np.array([end for _, end in row]))
        for at, row in by_class.items()
    }
    return IntervalTable(found, digits, ties)


def write_intervals(
    table: IntervalTable, path: Path | str, *, separator: str = ";", kind: str = "all"
) -> None:
    """Write intervals as tau-ARGUS reads them (``;``), or as ptable's own CSV (``,``, with where intervals begin)."""
    full = separator == ","
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerow(
            ["i", "j", "p", "v", *(["p_int_lb"] if full else []), "p_int_ub", *(["type"] if full else [])]
        )
        for at in table.classes():
            row = table.rows[float(at)]
            starts = np.concatenate([[0], row.ends[:-1]])
            for value, start, end in zip(row.values, starts, row.ends, strict=True):
                line = [
                    _write_plain(at),
                    _write_plain(at + value),
                    _write_decimal(int(end - start)),
                    _write_plain(value),
                ]
                writer.writerow(
                    [
                        *line,
                        *([_write_decimal(int(start))] if full else []),
                        _write_decimal(int(end)),
                        *([kind] if full else []),
                    ]
                )


def write_grid(table: GridTable, path: Path | str) -> None:
    """Write a grid as the ONS packages read it."""
    rows, keys = table.grid.shape
    pl.DataFrame(
        {
            "pcv": np.repeat(np.arange(1, rows + 1), keys),
            "ckey": np.tile(np.arange(keys), rows),
            "pvalue": table.grid.ravel(),
        }
    ).write_csv(path)


def _read_rows(path: Path) -> Sequence[Mapping[str, str]]:
    try:
        if path.suffix == ".parquet":
            frame = pl.read_parquet(require_readable(path))
            return [dict(zip(frame.columns, map(str, row), strict=True)) for row in frame.iter_rows()]
        require_plain(path)
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline(MAX_LINE_CHARACTERS)
            file.seek(0)
            found = CsvTable(file, delimiter=";" if ";" in first else ",").rows()
            return [
                {
                    OLD_NAMES.get(str(name).strip(), str(name).strip()): str(value)
                    for name, value in row.items()
                }
                for row in found
            ]
    except FileNotFoundError:
        raise InputError(
            f"there is no perturbation table {path.name}",
            why="the file does not exist",
            fix="name an existing file, or design one with D and V",
        ) from None
    except (OSError, UnicodeDecodeError, csv.Error, pl.exceptions.PolarsError):
        raise DataError(
            f"{path.name} cannot be read as a table",
            why="it is neither CSV in UTF-8 nor Parquet",
            fix="save it again as CSV",
        ) from None


def _read_grid(rows: Sequence[Mapping[str, str]], period: int) -> GridTable:
    try:
        numbers = np.array([[int(float(row[name])) for name in GRID_COLUMNS] for row in rows], np.int64)
    except ValueError:
        raise _number_error(None) from None
    most, keys = int(numbers[:, 0].max()), int(numbers[:, 1].max()) + 1
    grid = np.full((most, keys), np.iinfo(np.int64).min)
    inside = (numbers[:, 0] >= 1) & (numbers[:, 1] >= 0)
    grid[numbers[inside, 0] - 1, numbers[inside, 1]] = numbers[inside, 2]
    missing = int((grid == np.iinfo(np.int64).min).sum())
    if missing or len(numbers) != most * keys:
        raise DataError(
            "the perturbation table does not have each pair of pcv and ckey once",
            why=f"{missing} pairs are missing, {max(len(numbers) - most * keys, 0)} are too many",
            fix="take the whole table: every pcv from 1 with every ckey from 0",
        )
    return GridTable(grid, min(period, most))


def _number_error(path: Path | None) -> DataError:
    name = path.name if path is not None else "the perturbation table"
    return DataError(
        f"{name} has a value that is not a number",
        why="classes, noise and bounds are numbers",
        fix="write decimals with a point",
    )


def _write_decimal(units: int) -> str:
    """Return a number of units of 10^-8 as a decimal."""
    text = f"{units // UNITS_PER_ONE}.{units % UNITS_PER_ONE:0{BOUND_DIGITS}d}".rstrip("0").rstrip(".")
    return text or "0"


def _write_plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
