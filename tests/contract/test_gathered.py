"""What the driver of a cluster is sent in a whole run, to the written packet: at most 1 % of the census, rows and bytes.

In this census nearly every record is alone with its values, as in a real one, so that a table of all variables is as large
as the records. Sums, shapes of strata and the cells that are published are what may come to the driver.
"""

import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from golden.packets.make import CASES, REFUSED, TESTS, WORKLOAD, Case, write_plan
from stirred import Key, Spark, load, run
from stirred.assess.attack import uniqueness
from stirred.engine import Engine
from stirred.mechanisms.release import Release, count_records

PERSONS_IN_MEMORY = (
    "targeted-swapping+persons"  # refused on a cluster: risks of persons are counted in memory alone
)

CENSUS = """name = "gathered"
[geography]
spine = ["state", "county", "tract"]
[record.household]
files = ["household.parquet"]
id = "hid"
[record.household.variables]
size = {type = "integer", range = "1..3"}
tenure = {levels = ["own", "rent"]}
rooms = {type = "integer", range = "1..9"}
built = {type = "integer", range = "1900..2020"}
[record.person]
files = ["person.parquet"]
household = "hid"
of = "household"
[record.person.variables]
age = {type = "integer", range = "0..99"}
sex = {levels = ["f", "m"]}
job = {type = "integer", range = "1..150"}
"""
TRACTS = 48


def write_census(folder: Path, households: int) -> int:
    """Write a census whose records are nearly all different, and return the bytes that they take as Arrow data."""
    rng = np.random.default_rng(households)
    place = np.arange(households)
    tract, size = place % TRACTS, 1 + place // TRACTS % 3
    homes = pl.DataFrame(
        {
            "hid": 7 * place + 3,
            "state": [str(t // 24) for t in tract],
            "county": [f"{t // 6:02d}" for t in tract],
            "tract": [f"{t:03d}" for t in tract],
            "size": size,
            "tenure": rng.choice(["own", "rent"], households),
            "rooms": rng.integers(1, 10, households),
            "built": rng.integers(1900, 2021, households),
        }
    )
    owner = np.repeat(homes["hid"].to_numpy(), size)
    persons = pl.DataFrame(
        {
            "hid": owner,
            "age": rng.integers(0, 100, owner.size),
            "sex": rng.choice(["f", "m"], owner.size),
            "job": rng.integers(1, 151, owner.size),
        }
    )
    folder.mkdir(parents=True)
    (folder / "census.toml").write_text(CENSUS)
    (folder / "workload.toml").write_text(WORKLOAD)
    shutil.copytree(TESTS / "contract" / "code_lists", folder / "lists")
    shutil.copytree(TESTS / "data" / "safetab_h", folder / "totals")
    total = 0
    for name, frame in (("household", homes), ("person", persons)):
        table = frame.to_arrow()
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=1 << 15)
        total += table.nbytes
    return total


def gather(case: Case, households: int, spark: Spark, place: Path) -> tuple[float, float]:
    """Run a plan to its packet, the internal part too, and return the shares of rows and bytes that the driver was sent."""
    size = write_census(place / "census", households)
    plan = write_plan(((case.mechanism, case.settings),), more=case.plan, tables=case.tables)
    plan = plan.replace("utility = false", "utility = true")
    (place / "census" / "plan.toml").write_text(plan)
    packet = run(load(place / "census" / "plan.toml"), place / "packet", key=Key.for_tests(7), engine=spark)
    assert (packet.public / "report.html").exists()
    records = sum(
        pq.read_metadata(place / "census" / f"{name}.parquet").num_rows for name in ("household", "person")
    )
    return spark.gathered_rows / records, spark.gathered_bytes / size


@pytest.mark.spark("local")
def test_a_swap_gathers_sums(spark: Spark, tmp_path: Path) -> None:
    """Quick: the mechanism whose records are published, with its report and the comparison with the census."""
    rows, size = gather(CASES["permutation-swapping"], 12_000, spark, tmp_path)
    assert 0 < rows <= 0.01
    assert 0 < size <= 0.01


@pytest.mark.slow  # a minute or more each
@pytest.mark.spark("local")
@pytest.mark.parametrize("name", [name for name in CASES if name not in (REFUSED, PERSONS_IN_MEMORY)])
def test_no_mechanism_gathers_records(name: str, spark: Spark, tmp_path: Path) -> None:
    rows, size = gather(CASES[name], 100_000, spark, tmp_path)
    assert rows <= 0.01
    assert size <= 0.01


@pytest.mark.slow  # the run of the quick test once more
@pytest.mark.spark("local")
def test_cells_that_are_gathered_are_found(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: the report counts unique records from all cells, which the driver is sent."""

    def count_here(
        release: Release, asked: list[list[str]], *, record_type: str, engine: Engine, census: object = None
    ) -> list[uniqueness.LoneCounts]:
        cells = [count_records(release, by, record_type=record_type, engine=engine)["count"] for by in asked]
        return [uniqueness.LoneCounts(int(n.sum()), int((n == 1).sum()), 0, 0) for n in cells]

    monkeypatch.setattr(uniqueness, "count_lone", count_here)
    rows, size = gather(CASES["permutation-swapping"], 12_000, spark, tmp_path)
    assert rows > 0.5
    assert size > 0.5
