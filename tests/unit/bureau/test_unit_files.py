"""The unit file of DHC: every household type goes to the Bureau's codes and comes back from them."""

from pathlib import Path

import polars as pl

from stirred import Workload
from stirred.census import read
from stirred.census.bureau import MDF_COLUMNS, MDF_PERSONS_FILE, MDF_UNITS_FILE
from stirred.mechanisms.topdown.histogram import cell_expression
from stirred.mechanisms.topdown.run.records import make_facility_rows, make_unit_rows

WORKLOAD = Workload.preset("dhc-units")
TYPES = WORKLOAD.histogram.axis("hhtype")
BLOCK = "390599771001000"


def folder(place: Path, units: pl.DataFrame) -> Path:
    """A census in the Bureau's layout with these units and no person."""
    units.write_csv(place / MDF_UNITS_FILE, separator="|")
    (place / MDF_PERSONS_FILE).write_text("|".join(MDF_COLUMNS[MDF_PERSONS_FILE]) + "\n")
    return place


def test_every_type_comes_back(tmp_path: Path) -> None:
    count = TYPES.size
    levels = {"sex": 2, "hhage": 9, "hisp": 2, "race": 7, "elderly": 4, "tenvac": 3}
    records = pl.DataFrame(
        {"block": [BLOCK] * count, "HHTYPE": range(count)}
        | {name: [i % size for i in range(count)] for name, size in levels.items()}
    )
    homes = read(folder(tmp_path, make_unit_rows(TYPES, records))).scan("household").collect()
    cells = homes.select(cell_expression(WORKLOAD.histogram, homes.schema)).to_series().to_numpy()
    found = WORKLOAD.histogram.coordinates(cells)
    for axis, got in zip(WORKLOAD.histogram.axes, found, strict=True):
        wanted = records["HHTYPE" if axis.name == "hhtype" else axis.name]
        assert got.tolist() == wanted.to_list()


def test_a_file_without_households(tmp_path: Path) -> None:
    """Vacancies and facilities are read from a file that has no column about households."""
    made = make_facility_rows(pl.DataFrame({"block": [BLOCK], "kind": [10], "count": [1]}), "HHTYPE")
    census = read(folder(tmp_path, made.select(MDF_COLUMNS[MDF_UNITS_FILE])))
    homes = census.scan("household").collect()
    assert homes.select("kind", "gq_type", "gq_code", "tenure", "vacancy").rows() == [(3, 3, 301, 0, 0)]
    assert "size" not in homes.columns
