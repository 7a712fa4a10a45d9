"""Numbers are coarsened to declared bands when they are read, the same from every file and on every engine."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stirred.census import Census, read
from stirred.errors import DataError, SchemaError

CODEBOOK = """name = "rents"
[geography]
spine = ["area"]
[record.household]
files = ["h.{kind}"]
[record.household.variables]
rent = {{ bands = {bands}, missing = {{ policy = "keep", codes = [-9] }} }}
"""
RENTS = [-4, 0, 999, 1000, 4999, 5000, 10**7, -9, None]
BANDS = ["<0", "0-<1000", "0-<1000", "1000-<5000", "1000-<5000", ">=5000", ">=5000", None, None]


def rents(path: Path, kind: str, bands: str = "[0, 1000, 5000]", values: object = RENTS) -> Census:
    frame = pl.DataFrame({"area": ["a"] * len(values), "rent": values})  # type: ignore[arg-type]
    (frame.write_csv if kind == "csv" else frame.write_parquet)(path / f"h.{kind}")
    (path / "census.toml").write_text(CODEBOOK.format(kind=kind, bands=bands))
    return read(path / "census.toml")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_number_is_read_as_its_band(kind: str, tmp_path: Path) -> None:
    census = rents(tmp_path, kind)
    census.require_valid()
    assert census.scan("household", ["rent"]).collect()["rent"].to_list() == BANDS
    assert census.domain.levels("household", "rent") == ("<0", "0-<1000", "1000-<5000", ">=5000")


def test_decimals_and_round_limits(tmp_path: Path) -> None:
    census = rents(tmp_path, "parquet", '"1-2-5"', [0.4, 1.0, 1.99, 49.9, 50.0, 3e9])
    found = census.scan("household", ["rent"]).collect()["rent"].to_list()
    assert found == ["0-<1", "1-<2", "1-<2", "20-<50", "50-<100", ">=1000000000"]
    # the oracle: each limit by NumPy's search in the same list
    limits = np.array([0, *(d * 10**p for p in range(9) for d in (1, 2, 5)), 10**9], float)
    low = [
        int(limits[np.searchsorted(limits, value, side="right") - 1])
        for value in (0.4, 1.0, 1.99, 49.9, 50.0)
    ]
    assert [int(band.split("-")[0]) for band in found[:-1]] == low


def test_what_is_no_number_is_a_problem_and_not_shown(tmp_path: Path) -> None:
    census = rents(tmp_path, "csv", values=["12", "twelve", "7"])
    with pytest.raises(DataError, match="outside the listed levels") as caught:
        census.require_valid()
    assert "twelve" not in str(caught.value)


@pytest.mark.parametrize("bands", ["[]", "[5, 5]", "[9, 1]", '"quantiles"'])
def test_bands_that_are_none_are_refused(bands: str, tmp_path: Path) -> None:
    with pytest.raises(SchemaError):
        rents(tmp_path, "csv", bands)


def test_a_band_is_described_as_it_was_declared(tmp_path: Path) -> None:
    census = rents(tmp_path, "csv")
    again = Census.of(census.describe(), {"household": {"area": ["a"], "rent": [7]}})
    assert again.schema.record("household").variables == census.schema.record("household").variables
