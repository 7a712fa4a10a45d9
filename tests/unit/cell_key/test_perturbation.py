"""Looking up noise: ties in both conventions, large counts in both dialects, files written and read again, intervals."""

from pathlib import Path

import numpy as np
import pytest

from stirred.errors import DataError, InputError
from stirred.mechanisms.tables.cell_key import (
    GridTable,
    IntervalTable,
    design_table,
    read_table,
    write_grid,
    write_intervals,
)
from stirred.mechanisms.tables.cell_key.perturbation import UNITS_PER_ONE, NoiseRow, estimate_counts


def two_values(digits: int, ties: str) -> IntervalTable:
    """A count of 1 falls to 0 in the first half of the keys and rises in the second."""
    half = NoiseRow(np.array([-1.0, 1.0]), np.array([UNITS_PER_ONE // 2, UNITS_PER_ONE]))
    return IntervalTable({0.0: NoiseRow(np.zeros(1), np.array([UNITS_PER_ONE])), 1.0: half}, digits, ties)  # type: ignore[arg-type]


@pytest.mark.parametrize("digits", [5, 8, 12])
@pytest.mark.parametrize(("ties", "at_half"), [("below", 1), ("up-to", -1)])
def test_a_key_at_the_end_of_an_interval(digits: int, ties: str, at_half: int) -> None:
    table = two_values(digits, ties)
    half = 10**digits // 2
    keys = np.array([0, half - 1, half, half + 1, 10**digits - 1])
    assert table.noise(np.ones(5, np.int64), keys).tolist() == [-1, -1, at_half, 1, 1]


def test_the_worked_example_of_the_handbook() -> None:
    """Keys 0.9, 0.3 and 0.6 sum to 0.8 (modulo 1); three records with this key get +1."""
    ends = np.array([20_000_000, 60_000_000, UNITS_PER_ONE])
    table = IntervalTable(
        {
            0.0: NoiseRow(np.zeros(1), np.array([UNITS_PER_ONE])),
            3.0: NoiseRow(np.array([-1.0, 0.0, 1.0]), ends),
        }
    )
    key = (90_000_000 + 30_000_000 + 60_000_000) % table.modulus
    assert (key, table.noise(np.array([3]), np.array([key])).tolist()) == (80_000_000, [1])


def test_empty_cells_have_no_noise_in_either_dialect() -> None:
    nothing = np.zeros(4, np.int64)
    assert not design_table(3, 2).noise(nothing, np.arange(4)).any()
    assert not GridTable(np.ones((5, 4), np.int64), 2).noise(nothing, np.arange(4)).any()


def test_large_counts_repeat_the_last_rows() -> None:
    grid = GridTable(np.zeros((750, 256), np.int64), 250)
    assert grid.rows(np.array([1, 750, 751, 1000, 1001, 12_345])).tolist() == [1, 750, 501, 750, 501, 595]
    table = design_table(3, 2)
    keys = np.arange(0, table.modulus, table.modulus // 50)
    assert (table.noise(np.full(len(keys), 3), keys) == table.noise(np.full(len(keys), 10**6), keys)).all()


def test_tables_are_written_and_read_again(tmp_path: Path) -> None:
    table = design_table(5, 3, js=2, stay=0.5)
    for separator, name in ((";", "tau.txt"), (",", "ptable.csv")):
        write_intervals(table, tmp_path / name, separator=separator)
        again = read_table(tmp_path / name)
        assert isinstance(again, IntervalTable)
        assert all((again.rows[at].ends == row.ends).all() for at, row in table.rows.items())
    grid = GridTable(np.arange(12).reshape(3, 4) - 6, 2)
    write_grid(grid, tmp_path / "ons.csv")
    again = read_table(tmp_path / "ons.csv", period=2)
    assert isinstance(again, GridTable)
    assert (again.grid == grid.grid).all()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a,b\n1,2\n", DataError),
        ("", DataError),
        ("i;v;p_int_ub\n0;0;1\n1;x;1\n", DataError),
        ("i;v;p_int_ub\n0;0;1\n1;0;0.5\n", DataError),  # the last interval ends before 1
        ("pcv,ckey,pvalue\n1,0,0\n2,1,0\n", DataError),  # two pairs are missing
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, text: str, kind: type[Exception]) -> None:
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(kind):
        read_table(path)
    with pytest.raises(InputError):
        read_table(tmp_path / "nowhere.csv")


def test_the_interval_of_a_shown_count_covers_as_it_says() -> None:
    """Exactly, by summing over all keys: a large count has the symmetric law, so the interval covers at least 95 %."""
    table = design_table(5, 3)
    noise = np.arange(-5, 6)
    shown = 100 + noise
    error, low, high = estimate_counts(table, shown)
    chances = table.chance(np.full(11, 100), noise)
    assert error == pytest.approx(np.full(11, 3**0.5), abs=1e-6)
    assert chances[(low <= 100) & (high >= 100)].sum() >= 0.95


def test_a_table_that_rounds_has_an_error_too() -> None:
    """Rounding to a base of 5 adds no noise to multiples of 5, and yet a shown 10 may have been 8 to 12."""
    rounding = np.array([round(n / 5) * 5 - n for n in range(1, 51)])
    grid = GridTable(np.repeat(rounding[:, None], 4, axis=1), 5)
    error, low, high = estimate_counts(grid, np.array([10]))
    assert (float(low[0]), float(high[0])) == (8.0, 12.0)
    assert error[0] == pytest.approx(2**0.5)
